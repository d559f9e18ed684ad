//! Interests that differ in a number and the Nonce only, made by copying and patching one of them.

use super::{Interest, InterestBuilder, Nonce};
use crate::tlv::{self, Reader};

/// What a series of Interests has in common: everything but the number at the end of their names, and the Nonce.
///
/// Each Interest is what [`InterestBuilder::build`] makes, octet for octet, for a fraction of the cost: its octets are
/// copied into one allocation, which it is alone to use, and nothing is decoded.
#[derive(Clone, Debug)]
pub struct InterestTemplate {
    /// One Interest for each length that a number may have: 1, 2, 4 and 8 octets.
    models: Box<[Model; 4]>,
}

/// An Interest to copy, and where to write.
#[derive(Clone, Debug)]
struct Model {
    interest: Interest,
    number_at: usize,
    nonce_at: usize,
}

impl InterestTemplate {
    pub(super) fn new(builder: &InterestBuilder, kind: u16) -> Self {
        // The smallest number of each length.
        let numbers = [0, 1 << 8, 1 << 16, 1 << 32];
        let models = numbers.map(|number| {
            let mut builder = builder.clone();
            builder.name = builder.name.builder().number(kind, number).finish();
            Model::new(builder.build(Nonce([0; 4])), tlv::number_size(number))
        });
        Self {
            models: Box::new(models),
        }
    }

    /// Returns the Interest that requests `number`, for one transmission.
    pub fn build(&self, number: u64, nonce: Nonce) -> Interest {
        let width = tlv::number_size(number);
        self.models[width.ilog2() as usize].build(&number.to_be_bytes()[8 - width..], nonce)
    }
}

impl Model {
    /// `width` is the length of the number at the end of the name.
    fn new(interest: Interest, width: usize) -> Self {
        const VALID: &str = "a built Interest is valid";
        let wire = interest.wire();
        let whole = Reader::new(wire).only("Interest", tlv::INTEREST);
        let mut reader = Reader::within(wire, whole.expect(VALID).value);
        let mut next = || reader.element("Interest").expect(VALID).expect(VALID);
        let name = next().value;
        let nonce_at = loop {
            let element = next();
            if element.element_type == tlv::NONCE {
                break element.value.start;
            }
        };
        Self {
            interest,
            number_at: name.end - width,
            nonce_at,
        }
    }

    fn build(&self, number: &[u8], nonce: Nonce) -> Interest {
        self.interest
            .patched((self.number_at, number), (self.nonce_at, nonce.0))
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::name::{Component, Name};

    /// Lengths change at 2⁸, 2¹⁶ and 2³²; the long prefix takes the way of its own.
    #[test]
    fn a_template_makes_what_the_builder_makes() {
        let kinds = [Component::SEQUENCE, Component::SEGMENT, 8];
        for (prefix, kind) in ["/p7", "/", &"/long".repeat(20)].into_iter().zip(kinds) {
            let prefix: Name = prefix.parse().unwrap();
            let with = |name| {
                Interest::builder(name)
                    .must_be_fresh()
                    .forwarding_hint("/h".parse().unwrap())
                    .lifetime(Duration::from_millis(700))
                    .hop_limit(9)
            };
            let template = with(prefix.clone()).template(kind);
            let (largest, nonce) = (u64::MAX, Nonce([1, 2, 3, 4]));
            for number in [0, 255, 256, 65_535, 65_536, (1 << 32) - 1, 1 << 32, largest] {
                let name = prefix.builder().number(kind, number).finish();
                let (made, built) = (template.build(number, nonce), with(name).build(nonce));
                assert_eq!(made, built);
                assert_eq!(Interest::decode(made.wire().clone()), Ok(built));
            }
        }
    }

    #[test]
    fn packets_of_one_template_do_not_share_memory() {
        let template = Interest::builder("/p".parse().unwrap()).template(Component::SEQUENCE);
        let first = template.build(1, Nonce([1; 4]));
        let second = template.build(2, Nonce([2; 4]));
        assert_eq!(first.name().to_string(), "/p/seq=1");
        assert_eq!(
            (first.nonce(), second.nonce()),
            (Some(Nonce([1; 4])), Some(Nonce([2; 4])))
        );
    }

    #[test]
    #[should_panic(expected = "a template has no parameters")]
    fn a_template_with_parameters_is_a_bug() {
        let builder = Interest::builder("/p".parse().unwrap()).parameters("p");
        drop(builder.template(Component::SEQUENCE));
    }
}
