//! Data packets: NDN Packet Format v0.3, section "Data Packet".

mod template;

pub use template::DataTemplate;

use core::ops::Range;
use core::time::Duration;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::error::{DecodeError, Problem};
use crate::interest::Interest;
use crate::name::Name;
use crate::signature::{SignatureInfo, Signer, Verifier, VerifyError};
use crate::tlv::{self, Element, Fields, Reader, Writer};

/// What a Data packet's Content is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ContentType {
    /// Application payload.
    #[default]
    Blob,
    /// A list of names to request instead.
    Link,
    /// A public key: the packet is a certificate.
    Key,
    /// The application says that it has nothing under this name.
    Nack,
    /// Names or digests of other packets.
    Manifest,
    /// The producer answers for a prefix: see [`PrefixAnnouncement`](crate::PrefixAnnouncement).
    PrefixAnnouncement,
    /// Any other assigned or private number.
    Other(u64),
}

impl ContentType {
    /// Returns the assigned number.
    pub const fn number(self) -> u64 {
        match self {
            Self::Blob => 0,
            Self::Link => 1,
            Self::Key => 2,
            Self::Nack => 3,
            Self::Manifest => 4,
            Self::PrefixAnnouncement => 5,
            Self::Other(number) => number,
        }
    }
}

impl From<u64> for ContentType {
    fn from(number: u64) -> Self {
        match number {
            0 => Self::Blob,
            1 => Self::Link,
            2 => Self::Key,
            3 => Self::Nack,
            4 => Self::Manifest,
            5 => Self::PrefixAnnouncement,
            other => Self::Other(other),
        }
    }
}

/// A decoded Data packet; its fields share the memory of [`wire`](Self::wire).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data {
    wire: Bytes,
    name: Name,
    meta: MetaInfo,
    content: Option<Range<usize>>,
    signed: Range<usize>,
    /// The element SignatureInfo, which is valid; decoded where somebody asks, as forwarders do not.
    signature_info: Range<usize>,
    signature_value: Range<usize>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct MetaInfo {
    content_type: ContentType,
    freshness: Duration,
    final_block: Option<Name>,
}

impl Data {
    /// Starts a Data packet named `name`.
    pub fn builder(name: Name) -> DataBuilder {
        DataBuilder {
            name,
            meta: MetaInfo::default(),
            embedded: None,
            content: None,
        }
    }

    /// Decodes the Data packet that fills `wire` whole.
    ///
    /// # Errors
    /// The first violation of the packet format, with field and offset.
    pub fn decode(wire: Bytes) -> Result<Self, DecodeError> {
        let whole = Reader::new(&wire).only("Data", tlv::DATA)?;
        let mut reader = Reader::within(&wire, whole.value.clone());
        let (name, _) = required_name(&wire, &mut reader)?;
        let mut meta = MetaInfo::default();
        let (mut content, mut info, mut value) = (None, None, None);
        let mut fields = Fields::new(
            reader,
            "Data",
            &[
                tlv::META_INFO,
                tlv::CONTENT,
                tlv::SIGNATURE_INFO,
                tlv::SIGNATURE_VALUE,
            ],
        );
        while let Some(field) = fields.field()? {
            match field.element_type {
                tlv::META_INFO => meta = decode_meta_info(&wire, &field)?,
                tlv::CONTENT => content = Some(field.value),
                tlv::SIGNATURE_INFO => {
                    SignatureInfo::check(&wire, &field)?;
                    info = Some(field.whole());
                }
                _ => value = Some(field),
            }
        }
        let missing = |field| DecodeError::new(field, wire.len(), Problem::Missing);
        let signature_info = info.ok_or(missing("SignatureInfo"))?;
        let value = value.ok_or(missing("SignatureValue"))?;
        Ok(Self {
            name,
            meta,
            content,
            signed: whole.value.start..value.start,
            signature_info,
            signature_value: value.value,
            wire,
        })
    }

    /// Returns the packet's octets.
    pub const fn wire(&self) -> &Bytes {
        &self.wire
    }

    /// Returns the packet's name.
    pub const fn name(&self) -> &Name {
        &self.name
    }

    /// Returns where in [`wire`](Self::wire) the name's TLV-VALUE is, for tables that keep the packet and not the name.
    pub fn name_range(&self) -> Range<usize> {
        let end = self.signed.start + self.name.encoded_size();
        end - self.name.value().len()..end
    }

    /// Returns what the Content is.
    pub const fn content_type(&self) -> ContentType {
        self.meta.content_type
    }

    /// Returns how long after arrival the packet counts as fresh; zero: never.
    pub const fn freshness(&self) -> Duration {
        self.meta.freshness
    }

    /// Last component that a name in this packet's series will have, as a name of one component.
    pub const fn final_block(&self) -> Option<&Name> {
        self.meta.final_block.as_ref()
    }

    /// Returns the Interest within the MetaInfo, as [`piggyback`](crate::piggyback) encodes it, if there is one.
    ///
    /// It asks for nothing by itself: only the producer's node, and those after it that are told so in front of the Data, send it.
    pub fn embedded_interest(&self) -> Option<Bytes> {
        let at = self.signed.start + self.name.encoded_size();
        let mut reader = Reader::within(&self.wire, at..self.signed.end);
        while let Ok(Some(element)) = reader.element("Data") {
            if element.element_type != tlv::META_INFO {
                continue;
            }
            let mut fields = Reader::within(&self.wire, element.value);
            while let Ok(Some(field)) = fields.element("MetaInfo") {
                if field.element_type == tlv::EMBEDDED_INTEREST {
                    return Some(self.wire.slice(field.value));
                }
            }
            return None;
        }
        None
    }

    /// Returns the Content; `None` if the element is absent.
    pub fn content(&self) -> Option<Bytes> {
        self.content.clone().map(|range| self.wire.slice(range))
    }

    /// Returns how the packet is signed, and by which key.
    pub fn signature_info(&self) -> SignatureInfo {
        let element = Reader::within(&self.wire, self.signature_info.clone()).element("Data");
        let element = element.ok().flatten();
        let info = element.and_then(|it| SignatureInfo::decode(&self.wire, &it).ok());
        info.expect("checked when the packet was made")
    }

    /// Returns the signature's octets.
    pub fn signature_value(&self) -> &[u8] {
        &self.wire[self.signature_value.clone()]
    }

    /// Returns the octets that the signature covers: from Name to the one before SignatureValue.
    pub fn signed_portion(&self) -> &[u8] {
        &self.wire[self.signed.clone()]
    }

    /// SHA-256 digest of the whole packet.
    pub fn implicit_digest(&self) -> [u8; 32] {
        Sha256::digest(&self.wire).into()
    }

    /// Checks the signature with `verifier`.
    ///
    /// # Errors
    /// If the verifier cannot judge this signature, or it is wrong.
    pub fn verify(&self, verifier: &dyn Verifier) -> Result<(), VerifyError> {
        verifier.verify(
            &self.signature_info(),
            self.signed_portion(),
            self.signature_value(),
        )
    }
}

/// Returns the Name that every packet starts with, and how many parameters digests it holds; nothing may come before it.
pub(crate) fn required_name(
    wire: &Bytes,
    reader: &mut Reader<'_>,
) -> Result<(Name, usize), DecodeError> {
    let at = reader.position();
    let element = reader
        .element("Name")?
        .ok_or(DecodeError::new("Name", at, Problem::Missing))?;
    if element.element_type != tlv::NAME {
        return Err(element.error("Name", Problem::UnexpectedType(element.element_type)));
    }
    Name::with_digest_count(wire, &element)
}

fn decode_meta_info(wire: &Bytes, element: &Element) -> Result<MetaInfo, DecodeError> {
    let mut meta = MetaInfo::default();
    let mut fields = Fields::new(
        Reader::within(wire, element.value.clone()),
        "MetaInfo",
        &[
            tlv::CONTENT_TYPE,
            tlv::FRESHNESS_PERIOD,
            tlv::FINAL_BLOCK_ID,
        ],
    );
    while let Some(field) = fields.field()? {
        match field.element_type {
            tlv::CONTENT_TYPE => meta.content_type = field.number("ContentType", wire)?.into(),
            tlv::FRESHNESS_PERIOD => {
                meta.freshness = Duration::from_millis(field.number("FreshnessPeriod", wire)?);
            }
            _ => {
                let id = Name::from_element(wire, &field)?;
                if id.len() != 1 {
                    return Err(field.error("FinalBlockId", Problem::BadLength(field.value.len())));
                }
                meta.final_block = Some(id);
            }
        }
    }
    Ok(meta)
}

/// Puts a [`Data`] packet together.
#[derive(Clone, Debug)]
pub struct DataBuilder {
    name: Name,
    meta: MetaInfo,
    embedded: Option<Bytes>,
    content: Option<Bytes>,
}

impl DataBuilder {
    /// Says what the Content is.
    pub const fn content_type(mut self, content_type: ContentType) -> Self {
        self.meta.content_type = content_type;
        self
    }

    /// Lets caches call the packet fresh for `period`, cut to whole milliseconds.
    pub fn freshness(mut self, period: Duration) -> Self {
        let millis = u64::try_from(period.as_millis()).unwrap_or(u64::MAX);
        self.meta.freshness = Duration::from_millis(millis);
        self
    }

    /// Announces the last component of this packet's series.
    ///
    /// # Panics
    /// If `id` does not have exactly one component.
    pub fn final_block(mut self, id: Name) -> Self {
        assert_eq!(id.len(), 1, "FinalBlockId holds one component");
        self.meta.final_block = Some(id);
        self
    }

    /// Puts an Interest into the MetaInfo, which the signature covers: see [`piggyback`](crate::piggyback).
    pub fn embed(mut self, interest: &Interest) -> Self {
        self.embedded = Some(crate::piggyback::encode(interest, &self.name));
        self
    }

    /// Sets the Content.
    pub fn content(mut self, content: impl Into<Bytes>) -> Self {
        self.content = Some(content.into());
        self
    }

    /// Makes Data packets of one content under many names, with made-up signatures of `signature_length` octets.
    ///
    /// This one's name is not used.
    pub fn template(self, info: SignatureInfo, signature_length: usize) -> DataTemplate {
        DataTemplate::new(self, info, signature_length)
    }

    /// Appends what stands between Name and SignatureValue; tells where Content and SignatureInfo went.
    fn encode_body(&self, info: &SignatureInfo, writer: &mut Writer) -> Places {
        self.meta.encode(self.embedded.as_deref(), writer);
        let content = self.content.as_ref().map(|content| {
            writer.element(tlv::CONTENT, content);
            writer.len() - content.len()..writer.len()
        });
        let start = writer.len();
        info.encode(tlv::SIGNATURE_INFO, writer);
        Places {
            content,
            signature_info: start..writer.len(),
        }
    }

    /// Signs the packet and encodes it.
    pub fn sign(self, signer: &dyn Signer) -> Data {
        let info = signer.info();
        let content_length = self.content.as_ref().map_or(0, Bytes::len);
        let mut signed = Writer::with_capacity(content_length + self.name.value().len() + 160);
        self.name.encode(&mut signed);
        let places = self.encode_body(&info, &mut signed);
        let signature = signer.sign(signed.as_slice());

        let length = signed.len() + tlv::element_size(tlv::SIGNATURE_VALUE, signature.len());
        let mut wire = Writer::with_capacity(tlv::element_size(tlv::DATA, length));
        wire.header(tlv::DATA, length);
        let start = wire.len();
        wire.raw(signed.as_slice());
        let signed = start..wire.len();
        wire.element(tlv::SIGNATURE_VALUE, &signature);
        Data {
            name: self.name,
            meta: self.meta,
            content: places.content.as_ref().map(|it| shifted(it, start)),
            signed,
            signature_info: shifted(&places.signature_info, start),
            signature_value: wire.len() - signature.len()..wire.len(),
            wire: wire.finish(),
        }
    }
}

/// Where parts of a packet are.
#[derive(Clone, Debug)]
struct Places {
    /// Octets of the Content, without its type and length.
    content: Option<Range<usize>>,
    /// SignatureInfo whole.
    signature_info: Range<usize>,
}

/// `range`, in octets that begin `by` octets into others, as a range of those.
const fn shifted(range: &Range<usize>, by: usize) -> Range<usize> {
    range.start + by..range.end + by
}

impl MetaInfo {
    /// Appends MetaInfo, without defaults; nothing at all if all are.
    fn encode(&self, embedded: Option<&[u8]>, writer: &mut Writer) {
        if *self == Self::default() && embedded.is_none() {
            return;
        }
        writer.nested(tlv::META_INFO, |meta| {
            if self.content_type != ContentType::Blob {
                meta.number(tlv::CONTENT_TYPE, self.content_type.number());
            }
            if !self.freshness.is_zero() {
                let millis = u64::try_from(self.freshness.as_millis()).unwrap_or(u64::MAX);
                meta.number(tlv::FRESHNESS_PERIOD, millis);
            }
            if let Some(id) = &self.final_block {
                meta.element(tlv::FINAL_BLOCK_ID, id.value());
            }
            if let Some(interest) = embedded {
                meta.element(tlv::EMBEDDED_INTEREST, interest);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::NullSigner;

    fn builder() -> DataBuilder {
        Data::builder("/a".parse().unwrap())
    }

    #[test]
    fn freshness_is_cut_to_milliseconds() {
        let fresh = |micros| {
            builder()
                .freshness(Duration::from_micros(micros))
                .sign(&NullSigner)
        };
        assert_eq!(fresh(1_999).freshness(), Duration::from_millis(1));
        assert_eq!(fresh(999), builder().sign(&NullSigner));
    }

    #[test]
    fn the_name_stands_where_the_packet_says() {
        for length in [0, 1, 252, 253, 300] {
            let name: Name = format!("/{}", "a".repeat(length)).parse().unwrap();
            let built = Data::builder(name.clone()).sign(&NullSigner);
            let decoded = Data::decode(built.wire().clone()).unwrap();
            for data in [built, decoded] {
                assert_eq!(data.wire().slice(data.name_range()), name.value());
            }
        }
    }

    #[test]
    fn absent_and_empty_content_differ() {
        let (absent, empty) = (
            builder().sign(&NullSigner),
            builder().content("").sign(&NullSigner),
        );
        assert_eq!(
            (absent.content(), empty.content()),
            (None, Some(Bytes::new()))
        );
        assert_ne!(absent.implicit_digest(), empty.implicit_digest());
    }

    #[test]
    #[should_panic(expected = "FinalBlockId holds one component")]
    fn a_final_block_of_two_components_is_a_bug() {
        drop(builder().final_block("/a/b".parse().unwrap()));
    }
}
