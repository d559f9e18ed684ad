//! Data packets that differ in their names only, for simulations.

use super::{Data, DataBuilder, MetaInfo, Places, shifted};
use crate::name::Name;
use crate::signature::SignatureInfo;
use crate::tlv::{self, Writer};

/// What a series of Data packets has in common: everything but their names.
///
/// Their signature is zeros of the length that a real one would have: for simulations, in which packets must have their
/// true size and nobody checks who made them. Making one copies its octets once and computes nothing.
#[derive(Clone, Debug)]
pub struct DataTemplate {
    meta: MetaInfo,
    /// Everything behind the Name.
    tail: Vec<u8>,
    /// Where in `tail` parts of it are.
    places: Places,
    /// Where in `tail` the element SignatureValue begins.
    value_at: usize,
    signature_length: usize,
}

impl DataTemplate {
    pub(super) fn new(builder: DataBuilder, info: SignatureInfo, signature_length: usize) -> Self {
        let mut tail = Writer::default();
        let places = builder.encode_body(&info, &mut tail);
        let value_at = tail.len();
        tail.element(tlv::SIGNATURE_VALUE, &vec![0; signature_length]);
        Self {
            meta: builder.meta,
            tail: tail.as_slice().to_vec(),
            places,
            value_at,
            signature_length,
        }
    }

    /// Returns the packet of the series that is named `name`, whose octets the packet copies.
    pub fn build(&self, name: Name) -> Data {
        let length = name.encoded_size() + self.tail.len();
        let mut wire = Writer::with_capacity(tlv::element_size(tlv::DATA, length));
        wire.header(tlv::DATA, length);
        let start = wire.len();
        name.encode(&mut wire);
        let tail_at = wire.len();
        wire.raw(&self.tail);
        let end = wire.len();
        Data {
            name,
            meta: self.meta.clone(),
            content: (self.places.content.as_ref()).map(|it| shifted(it, tail_at)),
            signed: start..tail_at + self.value_at,
            signature_info: shifted(&self.places.signature_info, tail_at),
            signature_value: end - self.signature_length..end,
            wire: wire.finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use bytes::Bytes;

    use super::*;
    use crate::signature::{NullSigner, Signer};

    fn builder(name: Name) -> DataBuilder {
        Data::builder(name)
            .freshness(Duration::from_millis(10))
            .content(vec![7; 1_000])
            .final_block("/seg=9".parse().unwrap())
    }

    /// Sizes of names around that at which a length takes three octets.
    #[test]
    fn a_template_makes_what_the_builder_makes() {
        let template = builder(Name::root()).template(NullSigner.info(), 0);
        for length in [0, 1, 248, 249, 250, 251, 252, 253, 600] {
            let name: Name = format!("/{}", "a".repeat(length)).parse().unwrap();
            let built = builder(name.clone()).sign(&NullSigner);
            let made = template.build(name);
            assert_eq!(made, built);
            assert_eq!(Data::decode(made.wire().clone()), Ok(built));
        }
    }

    /// A signature of 64 octets takes 66 with type and length; nothing else changes in size.
    #[test]
    fn the_signature_has_the_length_it_was_given() {
        let name: Name = "/p/seq=5".parse().unwrap();
        let [short, long] = [0, 64].map(|length| {
            let template = Data::builder(Name::root()).template(NullSigner.info(), length);
            template.build(name.clone())
        });
        assert_eq!(long.wire().len(), short.wire().len() + 64);
        assert_eq!(long.signature_value(), [0; 64]);
        assert_eq!(long.content(), None::<Bytes>);
        assert_eq!(Data::decode(long.wire().clone()), Ok(long));
    }
}
