//! Parity across the leads of consecutive samples: `docs/stream-format.md`, section "Parity across samples".
//!
//! ```text
//!   K = 4:   lead 8   lead 9   lead 10   lead 11 │ across 0   across 1
//!            any four of these give back the leads that are missing, bit for bit
//! ```
//!
//! A lead carries the digests of its sample's parity, so that parity of the sample's own cannot make up for the lead; a
//! sample of one segment has none at all. What a group gives back are whole packets with their signatures, so whoever made
//! the parity, nothing but the signer's own leads comes out that verifies.

use core::ops::RangeInclusive;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use namecast_packet::tlv::{Fields, Reader, Writer};
use namecast_packet::{Data, DecodeError, Problem};

use crate::fec::{self, FecError};
use crate::sample::MAX_LEAD_CONTENT;

/// Samples in a group.
pub const GROUP_SIZES: RangeInclusive<u32> = 2..=32;
/// Most shards of parity of a group.
pub const MAX_ACROSS_PARITY: u32 = 8;

const ACROSS: u32 = 194;
const SAMPLES: u32 = 196;
const PARITY_COUNT: u32 = 144;

/// Parity across samples as a rung offers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Across {
    /// Samples in a group, K: those numbered g·K to g·K + K − 1 in their class.
    pub samples: u32,
    /// Shards of parity that there are of a group, P.
    pub parity: u32,
}

/// Why leads were not protected, or not given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AcrossError {
    /// An element is malformed or missing.
    #[error(transparent)]
    Malformed(#[from] DecodeError),
    /// The shard is of another code than the rung offers.
    #[error("shard of {parity} for {samples} samples is not of the code on offer")]
    OtherCode {
        /// Samples in a group.
        samples: u64,
        /// Shards of parity.
        parity: u64,
    },
    /// The longest lead of the group leaves no room for anything else in a packet.
    #[error("a lead of {0} octets is too large for parity across samples")]
    TooLarge(usize),
    /// The group has fewer shards.
    #[error("there is no shard {0}")]
    NoSuchShard(usize),
    /// Leads and shards do not fit each other.
    #[error(transparent)]
    Code(#[from] FecError),
}

impl Across {
    /// Whether the numbers are within bounds.
    pub fn is_valid(self) -> bool {
        GROUP_SIZES.contains(&self.samples) && (1..=MAX_ACROSS_PARITY).contains(&self.parity)
    }

    /// Number of the group that sample `sequence` is in.
    pub fn group(self, sequence: u64) -> u64 {
        sequence / u64::from(self.samples.max(1))
    }

    /// First and last sample of group `group`; `None` beyond the last group of all.
    pub fn members(self, group: u64) -> Option<RangeInclusive<u64>> {
        let size = u64::from(self.samples.max(1));
        let first = group.checked_mul(size)?;
        Some(first..=first.checked_add(size - 1)?)
    }

    /// First and last sample of the group whose last one is `sequence`; `None` if it is no group's last.
    pub fn ends_with(self, sequence: u64) -> Option<RangeInclusive<u64>> {
        let members = self.members(self.group(sequence))?;
        (*members.end() == sequence).then_some(members)
    }

    /// Content of shard `index` of the group whose leads have these `packets`, all K of them in order.
    ///
    /// ```text
    /// Across 194 = Samples 196, ParityCount 144;  then the shard
    /// ```
    ///
    /// # Errors
    /// If the longest packet is too large, their number is wrong, or there is no such shard.
    pub fn encode(self, packets: &[Bytes], index: usize) -> Result<Bytes, AcrossError> {
        let longest = packets.iter().map(Bytes::len).max().unwrap_or(0);
        let mut writer = Writer::default();
        writer.nested(ACROSS, |header| {
            header
                .number(SAMPLES, u64::from(self.samples))
                .number(PARITY_COUNT, u64::from(self.parity));
        });
        if writer.len() + fec::padded_size(longest) > MAX_LEAD_CONTENT {
            return Err(AcrossError::TooLarge(longest));
        }
        let (needed, got) = (self.samples as usize, packets.len());
        if got != needed {
            return Err(FecError::NotEnough { needed, got }.into());
        }
        // The shards depend on how many there are, so that all are computed for one.
        let shards = fec::parity(packets, longest, self.parity as usize)?;
        let shard = shards.get(index).ok_or(AcrossError::NoSuchShard(index))?;
        writer.raw(shard);
        Ok(writer.finish())
    }

    /// The shard in `content`.
    ///
    /// # Errors
    /// If it is malformed, empty, or of another code than this.
    pub fn decode(self, content: &Bytes) -> Result<Bytes, AcrossError> {
        let mut reader = Reader::new(content);
        let element = reader
            .element("Across")?
            .ok_or(DecodeError::new("Across", 0, Problem::Missing))?;
        if element.element_type != ACROSS {
            let problem = Problem::UnexpectedType(element.element_type);
            return Err(element.error("Across", problem).into());
        }
        let within = Reader::within(content, element.value.clone());
        let mut fields = Fields::new(within, "Across", &[SAMPLES, PARITY_COUNT]);
        let (mut samples, mut parity) = (0, 0);
        while let Some(field) = fields.field()? {
            match field.element_type {
                SAMPLES => samples = field.number("Samples", content)?,
                _ => parity = field.number("ParityCount", content)?,
            }
        }
        if (samples, parity) != (u64::from(self.samples), u64::from(self.parity)) {
            return Err(AcrossError::OtherCode { samples, parity });
        }
        let shard = content.slice(reader.position()..);
        if shard.is_empty() {
            return Err(FecError::Empty.into());
        }
        Ok(shard)
    }

    /// The packets that are missing among `packets`, with their places; `shards` are as [`decode`](Self::decode) gave them.
    /// Nothing vouches for them but their own signatures.
    ///
    /// # Errors
    /// If they are too few, or of sizes that do not fit, or what comes out is no packet.
    pub fn recover(
        self,
        packets: &[Option<Bytes>],
        shards: &[Option<Bytes>],
    ) -> Result<Vec<(usize, Data)>, AcrossError> {
        let size = shards.iter().flatten().next().map_or(0, Bytes::len);
        let all = fec::recover(packets, shards, size)?;
        let missing = all
            .into_iter()
            .enumerate()
            .filter(|(index, _)| packets[*index].is_none());
        missing
            .map(|(index, padded)| Ok((index, first_packet(&padded)?)))
            .collect()
    }
}

/// The packet that `padded` begins with.
fn first_packet(padded: &Bytes) -> Result<Data, DecodeError> {
    let mut reader = Reader::new(padded);
    reader.element("Data")?;
    Data::decode(padded.slice(..reader.position()))
}
