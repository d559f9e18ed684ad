//! Inter-frame FEC, over the leads of consecutive samples: `docs/stream-format.md`, section "Inter-frame FEC".
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
pub const MAX_INTER_FRAME_PARITY: u32 = 8;

const INTER_FRAME: u32 = 194;
const SAMPLES: u32 = 196;
const PARITY_COUNT: u32 = 144;

/// Inter-frame FEC as a rung offers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterFrameFec {
    /// Samples in a group, K: those numbered g·K to g·K + K − 1 in their class.
    pub samples: u32,
    /// Shards of parity that there are of a group, P.
    pub parity: u32,
}

/// Why leads were not protected, or not given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InterFrameFecError {
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
    #[error("a lead of {0} octets is too large for inter-frame FEC")]
    TooLarge(usize),
    /// The group has fewer shards.
    #[error("there is no shard {0}")]
    NoSuchShard(usize),
    /// Leads and shards do not fit each other.
    #[error(transparent)]
    Code(#[from] FecError),
}

impl InterFrameFec {
    /// Returns whether the numbers are within bounds.
    pub fn is_valid(self) -> bool {
        GROUP_SIZES.contains(&self.samples) && (1..=MAX_INTER_FRAME_PARITY).contains(&self.parity)
    }

    /// Returns the number of the group that sample `sequence` is in.
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
    pub fn encode(self, packets: &[Bytes], index: usize) -> Result<Bytes, InterFrameFecError> {
        let longest = packets.iter().map(Bytes::len).max().unwrap_or(0);
        let mut writer = Writer::default();
        writer.nested(INTER_FRAME, |header| {
            header
                .number(SAMPLES, u64::from(self.samples))
                .number(PARITY_COUNT, u64::from(self.parity));
        });
        if writer.len() + fec::padded_size(longest) > MAX_LEAD_CONTENT {
            return Err(InterFrameFecError::TooLarge(longest));
        }
        let (needed, got) = (self.samples as usize, packets.len());
        if got != needed {
            return Err(FecError::NotEnough { needed, got }.into());
        }
        // The shards depend on how many there are, so that all are computed for one.
        let shards = fec::parity(packets, longest, self.parity as usize)?;
        let shard = shards
            .get(index)
            .ok_or(InterFrameFecError::NoSuchShard(index))?;
        writer.raw(shard);
        Ok(writer.finish())
    }

    /// Returns the shard in `content`.
    ///
    /// # Errors
    /// If it is malformed, empty, or of another code than this.
    pub fn decode(self, content: &Bytes) -> Result<Bytes, InterFrameFecError> {
        let mut reader = Reader::new(content);
        let element =
            reader
                .element("Across")?
                .ok_or(DecodeError::new("Across", 0, Problem::Missing))?;
        if element.element_type != INTER_FRAME {
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
            return Err(InterFrameFecError::OtherCode { samples, parity });
        }
        let shard = content.slice(reader.position()..);
        if shard.is_empty() {
            return Err(FecError::Empty.into());
        }
        Ok(shard)
    }

    /// Returns the packets that are missing among `packets`, with their places; `shards` are as [`decode`](Self::decode) gave them.
    /// Nothing vouches for them but their own signatures.
    ///
    /// # Errors
    /// If they are too few, or of sizes that do not fit, or what comes out is no packet.
    pub fn recover(
        self,
        packets: &[Option<Bytes>],
        shards: &[Option<Bytes>],
    ) -> Result<Vec<(usize, Data)>, InterFrameFecError> {
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

/// Returns the packet that `padded` begins with.
fn first_packet(padded: &Bytes) -> Result<Data, DecodeError> {
    let mut reader = Reader::new(padded);
    reader.element("Data")?;
    Data::decode(padded.slice(..reader.position()))
}

#[cfg(test)]
mod tests {
    use namecast_packet::signature::NullSigner;

    use super::*;

    const CODE: InterFrameFec = InterFrameFec {
        samples: 3,
        parity: 2,
    };

    /// Packets of different sizes, as signed.
    fn packets() -> Vec<Bytes> {
        let packet = |(index, size): (u64, usize)| {
            let name = "/a".parse::<namecast_packet::Name>().unwrap();
            let data = Data::builder(name.builder().sequence(index).finish())
                .content(vec![index as u8; size])
                .sign(&NullSigner);
            data.wire().clone()
        };
        (0..).zip([301, 40, 200]).map(packet).collect()
    }

    fn shards(packets: &[Bytes]) -> Vec<Bytes> {
        let shard = |index| CODE.decode(&CODE.encode(packets, index).unwrap()).unwrap();
        (0..2).map(shard).collect()
    }

    #[test]
    fn groups_are_counted_from_zero() {
        assert_eq!((CODE.group(5), CODE.group(6)), (1, 2));
        assert_eq!(CODE.members(2), Some(6..=8));
        assert_eq!(CODE.ends_with(8), Some(6..=8));
        assert_eq!(CODE.ends_with(7), None);
        // 2⁶⁴ − 1 is divisible by three: the last group begins with it, and is cut off.
        assert_eq!(CODE.members(u64::MAX / 3), None);
        assert_eq!(CODE.members(u64::MAX), None);
        assert_eq!(CODE.ends_with(u64::MAX), None);
    }

    /// Every pattern of losses: what is given back is what was signed, octet for octet, whatever the others' sizes.
    #[test]
    fn any_three_of_five_give_back_the_packets_as_they_were() {
        let packets = packets();
        let shards = shards(&packets);
        for lost in 0..1_u32 << 5 {
            let there =
                |(bit, shard): (usize, &Bytes)| (lost >> bit & 1 == 0).then(|| shard.clone());
            let given: Vec<_> = packets.iter().enumerate().map(there).collect();
            let parity: Vec<_> = (3..).zip(&shards).map(there).collect();
            let result = CODE.recover(&given, &parity);
            let missing = given.iter().filter(|packet| packet.is_none()).count();
            if missing == 0 {
                continue;
            }
            assert_eq!(result.is_ok(), lost.count_ones() <= 2, "{lost:b}");
            for (index, data) in result.unwrap_or_default() {
                assert!(given[index].is_none());
                assert_eq!(*data.wire(), packets[index], "{lost:b}");
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let packets = packets();
        let too_large = Bytes::from(vec![0; MAX_LEAD_CONTENT - 6]);
        let error = CODE.encode(&[packets[0].clone(), packets[1].clone(), too_large], 0);
        assert_eq!(
            error,
            Err(InterFrameFecError::TooLarge(MAX_LEAD_CONTENT - 6))
        );
        let fits = Bytes::from(vec![0; MAX_LEAD_CONTENT - 8]);
        let content = CODE.encode(&[packets[0].clone(), packets[1].clone(), fits], 1);
        assert_eq!(content.unwrap().len(), MAX_LEAD_CONTENT);
        let missing = FecError::NotEnough { needed: 3, got: 2 };
        assert_eq!(CODE.encode(&packets[..2], 0), Err(missing.into()));
        assert_eq!(
            CODE.encode(&packets, 2),
            Err(InterFrameFecError::NoSuchShard(2))
        );
    }

    #[test]
    fn shards_of_another_code_and_garbage_are_named() {
        let content = CODE.encode(&packets(), 0).unwrap();
        let other = InterFrameFec { samples: 4, ..CODE };
        let of_another = InterFrameFecError::OtherCode {
            samples: 3,
            parity: 2,
        };
        assert_eq!(other.decode(&content), Err(of_another));
        for end in 0..8 {
            assert!(CODE.decode(&content.slice(..end)).is_err(), "{end}");
        }
        assert!(CODE.decode(&Bytes::from_static(&[128, 0])).is_err());
        assert_eq!(
            CODE.decode(&Bytes::from_static(&[194, 0, 1, 2])),
            Err(InterFrameFecError::OtherCode {
                samples: 0,
                parity: 0
            })
        );
        // A shard that is none of these packets' gives no packet, or one that nobody signed.
        let packets = packets();
        let given = [None, Some(packets[1].clone()), Some(packets[2].clone())];
        let size = shards(&packets)[0].len();
        let zeros = [Some(Bytes::from(vec![0; size])), None];
        assert!(CODE.recover(&given, &zeros).is_err());
        // Nor does one that is shorter than the leads, or longer than the other.
        let short = [Some(Bytes::from(vec![0; 20])), None];
        assert!(CODE.recover(&given, &short).is_err());
        let uneven = [10, 12].map(|size| Some(Bytes::from(vec![0; size])));
        assert!(CODE.recover(&[None, None, None], &uneven).is_err());
    }
}
