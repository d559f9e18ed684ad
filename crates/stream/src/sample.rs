//! The lead segment of a sample: header, digests of the other segments, first share of the payload.
//!
//! `docs/stream-format.md`, section "Sample, lead segment, segments". Everything here comes from the network: sizes and
//! counts are checked against each other before anybody allocates by them.

use core::time::Duration;

use bytes::Bytes;

use namecast_packet::tlv::{Element, Fields, Reader, Writer};
use namecast_packet::{Data, DecodeError, Digests, Nonce, PacketDigest, Problem};
use namecast_units::Timestamp;

use crate::fec;
use crate::names::SegmentKind;
use crate::seal::Seal;

/// Most segments of a sample, data and parity together: what 8000 octets of digests and header have room for.
pub const MAX_SEGMENTS: usize = 480;
/// Most copies of a lead, each under a name of its own.
pub const MAX_LEAD_COPIES: usize = 4;
/// Most octets of Content in a lead, so that the packet stays below 8800 with the longest names.
pub const MAX_LEAD_CONTENT: usize = 8_000;
/// Most octets in a segment's share.
pub const MAX_SHARD_SIZE: usize = 8_000;
/// Largest sample, in octets.
pub const MAX_PAYLOAD_SIZE: usize = MAX_SEGMENTS * MAX_SHARD_SIZE;
/// Largest composition offset: at 2 frames a second, the sixteen pictures that H.264 can reorder take less.
pub const MAX_COMPOSITION_OFFSET: Duration = Duration::from_secs(10);
/// Most pictures by which the decoding order differs from that of presentation: the largest picture buffer of H.264 and HEVC.
pub const MAX_REORDERED: u64 = 16;

const SAMPLE_HEADER: u32 = 128;
const CAPTURED_AT: u32 = 130;
const ENCODED_AFTER: u32 = 132;
const PUBLISHED_AFTER: u32 = 134;
const POSITION: u32 = 136;
const OTHER_SEQUENCE: u32 = 138;
const PAYLOAD_SIZE: u32 = 140;
const SHARD_SIZE: u32 = 142;
const PARITY_COUNT: u32 = 144;
const WAITED_FOR: u32 = 146;
const INTEREST_NONCE: u32 = 148;
const COMPOSITION_OFFSET: u32 = 198;
/// Odd, so critical: a reader that does not know it refuses the sample.
const SEAL: u32 = 201;
const ORDER: [u32; 12] = [
    CAPTURED_AT,
    ENCODED_AFTER,
    PUBLISHED_AFTER,
    POSITION,
    OTHER_SEQUENCE,
    PAYLOAD_SIZE,
    SHARD_SIZE,
    PARITY_COUNT,
    WAITED_FOR,
    INTEREST_NONCE,
    COMPOSITION_OFFSET,
    SEAL,
];

// Digests of the largest sample leave room for the largest header (111 octets) and the Digests element's own (4).
const _: () = assert!((MAX_SEGMENTS - 1) * PacketDigest::SIZE + 111 + 4 <= MAX_LEAD_CONTENT);

/// The Interest that waited longest for a lead at the producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// How long it had waited when the sample was published.
    pub waited_for: Duration,
    /// Its Nonce, by which its sender knows its own.
    pub nonce: Nonce,
}

/// What a lead says about its sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleHeader {
    /// Wall clock at capture; of a picture that is decoded before one shown earlier: the decoding time by that clock.
    pub captured_at: Timestamp,
    /// Presentation time minus decoding time; zero where pictures are shown in decoding order.
    pub composition_offset: Duration,
    /// From capture to the end of encoding.
    pub encoded_after: Duration,
    /// From capture to publication.
    pub published_after: Duration,
    /// Decoding order within the rung; the same key frame of a closed group has the same position in every rung.
    pub position: u64,
    /// Of a delta sample: the key sample it depends on. Of a key sample: the delta sample that follows it.
    pub other_sequence: u64,
    /// Octets of the sample.
    pub payload_size: usize,
    /// Octets of each data segment's share but the lead's; `None` if the lead holds all.
    pub shard_size: Option<usize>,
    /// Number of parity segments.
    pub parity_count: usize,
    /// The Interest for the lead that waited longest, if one did.
    pub asked: Option<Asked>,
    /// Key that the payload is sealed with; `None`: it is not sealed.
    pub seal: Option<Seal>,
}

/// Why a lead was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SampleError {
    /// The packet has no Content.
    #[error("lead has no Content")]
    Empty,
    /// An element is malformed or missing.
    #[error(transparent)]
    Malformed(#[from] DecodeError),
    /// CompositionOffset is larger than [`MAX_COMPOSITION_OFFSET`].
    #[error("composition offset of {0} µs is too large")]
    CompositionOffset(u64),
    /// PayloadSize is larger than [`MAX_PAYLOAD_SIZE`].
    #[error("sample of {0} octets is too large")]
    PayloadTooLarge(u64),
    /// ShardSize is zero or larger than [`MAX_SHARD_SIZE`].
    #[error("shard of {0} octets is out of bounds")]
    ShardSize(u64),
    /// There are more digests than [`MAX_SEGMENTS`] leaves.
    #[error("{0} digests are too many")]
    TooManySegments(usize),
    /// ParityCount does not fit the number of digests.
    #[error("{parity} parity segments do not fit {digests} digests")]
    ParityCount {
        /// ParityCount.
        parity: u64,
        /// Number of digests.
        digests: usize,
    },
    /// The lead's share of the payload is not what the sizes leave for it.
    #[error("lead holds {got} octets of the sample where sizes leave {expected}")]
    Share {
        /// Octets that PayloadSize, ShardSize and the number of segments leave; negative if they contradict.
        expected: i64,
        /// Octets there are.
        got: usize,
    },
}

impl SampleHeader {
    /// Wall clock at presentation without any delay: the order in which pictures are shown.
    pub fn presented_at(&self) -> Timestamp {
        self.captured_at + self.composition_offset
    }

    /// Wall clock at the end of encoding.
    pub fn encoded_at(&self) -> Timestamp {
        self.captured_at + self.encoded_after
    }

    /// Wall clock at publication.
    pub fn published_at(&self) -> Timestamp {
        self.captured_at + self.published_after
    }

    /// Returns the octets of the SampleHeader element.
    pub fn encoded_size(&self) -> usize {
        let mut writer = Writer::default();
        self.encode(&mut writer);
        writer.len()
    }

    /// Appends the SampleHeader element.
    pub fn encode(&self, writer: &mut Writer) {
        writer.nested(SAMPLE_HEADER, |header| {
            header
                .number(CAPTURED_AT, self.captured_at.as_micros())
                .number(ENCODED_AFTER, micros(self.encoded_after))
                .number(PUBLISHED_AFTER, micros(self.published_after))
                .number(POSITION, self.position)
                .number(OTHER_SEQUENCE, self.other_sequence)
                .number(PAYLOAD_SIZE, self.payload_size as u64);
            if let Some(size) = self.shard_size {
                header.number(SHARD_SIZE, size as u64);
            }
            if self.parity_count > 0 {
                header.number(PARITY_COUNT, self.parity_count as u64);
            }
            if let Some(asked) = self.asked {
                header.number(WAITED_FOR, micros(asked.waited_for));
                header.element(INTEREST_NONCE, &asked.nonce.0);
            }
            if !self.composition_offset.is_zero() {
                header.number(COMPOSITION_OFFSET, micros(self.composition_offset));
            }
            if let Some(seal) = &self.seal {
                header.element(SEAL, &seal.encode());
            }
        });
    }

    fn decode(content: &Bytes, element: &Element) -> Result<Self, SampleError> {
        let mut numbers = [None; ORDER.len()];
        let (mut nonce, mut seal) = (None, None);
        let reader = Reader::within(content, element.value.clone());
        let mut fields = Fields::new(reader, "SampleHeader", &ORDER);
        while let Some(field) = fields.field()? {
            match field.element_type {
                INTEREST_NONCE => {
                    nonce = Some(Nonce(field.array("InterestNonce", content)?));
                    continue;
                }
                SEAL => {
                    let read = Seal::decode(&content[field.value.clone()]);
                    seal = Some(read.ok_or_else(|| field.error("Seal", Problem::Malformed))?);
                    continue;
                }
                _ => {}
            }
            let index = ORDER.iter().position(|&known| known == field.element_type);
            let index = index.expect("Fields gives types of ORDER only");
            numbers[index] = Some(field.number(FIELD_NAMES[index], content)?);
        }
        let required = |index: usize| {
            numbers[index].ok_or(element.error(FIELD_NAMES[index], Problem::Missing))
        };
        let [captured, encoded, published, position, other, size] =
            [0, 1, 2, 3, 4, 5].map(required);
        let [shard_size, parity_count, waited_for, offset] = [6, 7, 8, 10].map(|at| numbers[at]);
        let asked = waited_for.zip(nonce).map(|(waited, nonce)| Asked {
            waited_for: Duration::from_micros(waited),
            nonce,
        });
        Ok(Self {
            captured_at: Timestamp::from_micros(captured?),
            composition_offset: composition_offset(offset.unwrap_or(0))?,
            encoded_after: Duration::from_micros(encoded?),
            published_after: Duration::from_micros(published?),
            position: position?,
            other_sequence: other?,
            payload_size: bounded(size?, MAX_PAYLOAD_SIZE).map_err(SampleError::PayloadTooLarge)?,
            shard_size: shard_size
                .map(|size| bounded(size, MAX_SHARD_SIZE).map_err(SampleError::ShardSize))
                .transpose()?,
            parity_count: bounded(parity_count.unwrap_or(0), MAX_SEGMENTS)
                .map_err(|parity| SampleError::ParityCount { parity, digests: 0 })?,
            asked,
            seal,
        })
    }
}

/// Names of the fields of [`ORDER`], for errors.
const FIELD_NAMES: [&str; ORDER.len()] = [
    "CapturedAt",
    "EncodedAfter",
    "PublishedAfter",
    "Position",
    "OtherSequence",
    "PayloadSize",
    "ShardSize",
    "ParityCount",
    "WaitedFor",
    "InterestNonce",
    "CompositionOffset",
    "Seal",
];

/// Content of a lead: `header`, then `digests` of the other segments (data, then parity), then the lead's share.
pub fn encode_lead(header: &SampleHeader, digests: &Digests, share: &[u8]) -> Bytes {
    let capacity = 120 + digests.value().len() + share.len();
    let mut writer = Writer::with_capacity(capacity);
    header.encode(&mut writer);
    digests.encode(&mut writer);
    writer.raw(share);
    writer.finish()
}

/// A lead as a consumer sees it, sizes and counts checked against each other. Its signature is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lead {
    header: SampleHeader,
    digests: Digests,
    share: Bytes,
}

impl Lead {
    /// Reads the lead segment `data`, whose memory it shares.
    ///
    /// # Errors
    /// If an element is malformed or missing, or sizes and counts contradict each other or the format's bounds.
    pub fn decode(data: &Data) -> Result<Self, SampleError> {
        Self::decode_content(&data.content().ok_or(SampleError::Empty)?)
    }

    /// Reads the Content of a lead segment.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn decode_content(content: &Bytes) -> Result<Self, SampleError> {
        let mut reader = Reader::new(content);
        let element = expect_element(&mut reader, "SampleHeader", SAMPLE_HEADER)?;
        let header = SampleHeader::decode(content, &element)?;
        let element = expect_element(&mut reader, "Digests", Digests::ELEMENT)?;
        let digests = Digests::decode(&content.slice(element.value))?;
        let lead = Self {
            header,
            digests,
            share: content.slice(reader.position()..),
        };
        lead.check()?;
        Ok(lead)
    }

    fn check(&self) -> Result<(), SampleError> {
        let (digests, parity) = (self.digests.len(), self.header.parity_count);
        if digests >= MAX_SEGMENTS {
            return Err(SampleError::TooManySegments(digests));
        }
        // Several data segments need a ShardSize, one has none.
        let several = self.header.shard_size.is_some();
        if parity > digests || several != (digests > parity) {
            let parity = parity as u64;
            return Err(SampleError::ParityCount { parity, digests });
        }
        if let Some(0) = self.header.shard_size {
            return Err(SampleError::ShardSize(0));
        }
        // All below 2²³ by the bounds above.
        let followers = (digests - parity) * self.header.shard_size.unwrap_or(0);
        let expected = self.header.payload_size as i64 - followers as i64;
        let fits = expected == self.share.len() as i64 && self.share.len() <= self.shard_size();
        if !fits {
            let got = self.share.len();
            return Err(SampleError::Share { expected, got });
        }
        Ok(())
    }

    /// Returns what the lead says about its sample.
    pub const fn header(&self) -> &SampleHeader {
        &self.header
    }

    /// Returns the number of data segments, the lead included: N.
    pub const fn data_count(&self) -> usize {
        self.digests.len() + 1 - self.header.parity_count
    }

    /// Returns the number of parity segments: P.
    pub const fn parity_count(&self) -> usize {
        self.header.parity_count
    }

    /// Returns the number of segments of `kind` that the lead vouches for.
    pub const fn count(&self, kind: SegmentKind) -> usize {
        match kind {
            SegmentKind::Data => self.data_count(),
            SegmentKind::Parity => self.parity_count(),
            SegmentKind::LeadCopy | SegmentKind::InterFrame => 0,
        }
    }

    /// Returns the octets of each data segment's share but the lead's; of the whole sample if the lead holds all.
    pub fn shard_size(&self) -> usize {
        self.header.shard_size.unwrap_or(self.header.payload_size)
    }

    /// Returns the lead's share of the payload: its beginning.
    pub const fn share(&self) -> &Bytes {
        &self.share
    }

    /// Digest of another segment; `None` for the lead itself and for segments that do not exist.
    pub fn digest(&self, kind: SegmentKind, index: u64) -> Option<PacketDigest> {
        let index = usize::try_from(index).ok()?;
        if index >= self.count(kind) {
            return None;
        }
        match kind {
            SegmentKind::Data => self.digests.get(index.checked_sub(1)?),
            SegmentKind::Parity => self.digests.get(self.data_count() - 1 + index),
            SegmentKind::LeadCopy | SegmentKind::InterFrame => None,
        }
    }

    /// Returns whether this lead vouches that `data` is segment `index` of `kind`, and it has the size it must have.
    pub fn vouches_for(&self, kind: SegmentKind, index: u64, data: &Data) -> bool {
        let size = match kind {
            SegmentKind::Data => self.shard_size(),
            SegmentKind::Parity => fec::padded_size(self.shard_size()),
            SegmentKind::LeadCopy | SegmentKind::InterFrame => return false,
        };
        self.digest(kind, index) == Some(PacketDigest::of(data))
            && data.content().is_some_and(|content| content.len() == size)
    }
}

fn expect_element(
    reader: &mut Reader<'_>,
    field: &'static str,
    element_type: u32,
) -> Result<Element, DecodeError> {
    let at = reader.position();
    match reader.element(field)? {
        Some(element) if element.element_type == element_type => Ok(element),
        Some(other) => Err(other.error(field, Problem::UnexpectedType(other.element_type))),
        None => Err(DecodeError::new(field, at, Problem::Missing)),
    }
}

/// `micros` as a composition offset, if it is not too large.
fn composition_offset(micros: u64) -> Result<Duration, SampleError> {
    let offset = Duration::from_micros(micros);
    match offset <= MAX_COMPOSITION_OFFSET {
        true => Ok(offset),
        false => Err(SampleError::CompositionOffset(micros)),
    }
}

/// `number` as a size, if it is at most `most`.
fn bounded(number: u64, most: usize) -> Result<usize, u64> {
    usize::try_from(number)
        .ok()
        .filter(|&size| size <= most)
        .ok_or(number)
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
