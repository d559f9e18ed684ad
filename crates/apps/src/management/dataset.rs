//! Status datasets, as their clients read them: lists in versioned segments.

use bytes::{Bytes, BytesMut};
use namecast_packet::tlv::{Element, Reader, Writer};
use namecast_packet::{Component, ContentType, Data, DecodeError, Name, Problem};

use super::ControlResponse;

/// Longest list, in octets. 4096 faces take about 1 MiB.
pub const MAX_DATASET_SIZE: usize = 8 << 20;

/// Why a dataset did not come.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatasetError {
    /// The forwarder refused.
    #[error("refused: {} ({})", .0.text, .0.code)]
    Refused(Box<ControlResponse>),
    /// A segment is not what it should be.
    #[error("the answer cannot be read: {0}")]
    Malformed(#[from] DecodeError),
    /// The list has more than 8 MiB.
    #[error("the list is too long")]
    TooLong,
}

/// One entry of a dataset.
pub trait Item: Default {
    /// TLV-TYPE of the entry.
    const TYPE: u32;
    /// What the entry is, for error messages.
    const WHAT: &'static str;

    /// Writes what is inside the entry's element.
    fn encode_fields(&self, writer: &mut Writer);

    /// Takes one field from inside the entry's element; passes over an unknown one.
    ///
    /// # Errors
    /// On a malformed field.
    fn read_field(&mut self, wire: &Bytes, field: &Element) -> Result<(), DecodeError>;

    /// Reads what is inside the entry's element.
    ///
    /// # Errors
    /// On a malformed field.
    fn decode_fields(wire: &Bytes, mut reader: Reader<'_>) -> Result<Self, DecodeError> {
        let mut item = Self::default();
        while let Some(field) = reader.element(Self::WHAT)? {
            item.read_field(wire, &field)?;
        }
        Ok(item)
    }

    /// Writes the entry's element.
    fn encode_to(&self, writer: &mut Writer) {
        writer.nested(Self::TYPE, |fields| self.encode_fields(fields));
    }

    /// The entry's element.
    fn encode(&self) -> Bytes {
        let mut writer = Writer::default();
        self.encode_to(&mut writer);
        writer.finish()
    }
}

/// The entries of a dataset whose segments' content, one behind another, is `content`. Other elements are skipped.
///
/// # Errors
/// On a malformed element or field.
pub fn decode_items<T: Item>(content: &Bytes) -> Result<Vec<T>, DecodeError> {
    let mut reader = Reader::new(content);
    let mut items = Vec::new();
    while let Some(element) = reader.element(T::WHAT)? {
        if element.element_type == T::TYPE {
            let fields = Reader::within(content, element.value);
            items.push(T::decode_fields(content, fields)?);
        }
    }
    Ok(items)
}

/// The segments of a dataset, as a client gets them one after another.
#[derive(Debug, Default)]
pub struct SegmentReader {
    content: BytesMut,
}

impl SegmentReader {
    /// Takes the next segment, the answer to what was asked for; tells what to ask for after it, if there is more.
    ///
    /// # Errors
    /// If it is a refusal, is malformed, or makes the list longer than 8 MiB. A segment that is not the last and empty is
    /// malformed: lists have an end, even of those who lie about it.
    pub fn add(&mut self, data: &Data) -> Result<Option<Name>, DatasetError> {
        let content = data.content().unwrap_or_default();
        if data.content_type() == ContentType::Nack {
            let refused = ControlResponse::decode(&content)?;
            return Err(DatasetError::Refused(Box::new(refused)));
        }
        self.content.extend_from_slice(&content);
        if self.content.len() > MAX_DATASET_SIZE {
            return Err(DatasetError::TooLong);
        }
        let number = |name: &Name| name.last()?.number_of(Component::SEGMENT);
        let last = data.final_block().and_then(number);
        let (Some(this), Some(last)) = (number(data.name()), last) else {
            return Ok(None);
        };
        if this >= last {
            return Ok(None);
        }
        if content.is_empty() {
            return Err(DecodeError::new("Content", data.wire().len(), Problem::Missing).into());
        }
        let next = data.name().parent().builder().segment(this + 1).finish();
        Ok(Some(next))
    }

    /// The content of all segments, one behind another.
    pub fn finish(self) -> Bytes {
        self.content.freeze()
    }
}

#[cfg(test)]
mod tests {
    use namecast_packet::signature::DigestSigner;

    use super::*;

    /// A list without an end would keep a client asking for ever.
    #[test]
    fn a_reader_gives_up_where_there_is_no_end() {
        let segment = |number: u64, length: usize| {
            let name = Name::root().builder().segment(number).finish();
            let last = Name::root().builder().segment(u64::MAX).finish();
            let data = Data::builder(name)
                .final_block(last)
                .content(vec![7; length]);
            data.sign(&DigestSigner)
        };
        let mut reader = SegmentReader::default();
        assert_eq!(
            reader.add(&segment(0, 1)),
            Ok(Some(segment(1, 0).name().clone()))
        );
        let refused = reader.add(&segment(1, 0)).unwrap_err();
        assert!(matches!(refused, DatasetError::Malformed(_)), "{refused}");
        let mut reader = SegmentReader::default();
        let many = (0..).find_map(|number| reader.add(&segment(number, 8_000)).err());
        assert_eq!(many, Some(DatasetError::TooLong));
        assert!(reader.finish().len() <= MAX_DATASET_SIZE + 8_000);
    }
}
