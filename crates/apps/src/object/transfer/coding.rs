//! Reed–Solomon parity of an object of any size, in memory that does not depend on it.
//!
//! ```text
//!  segments   0 … k−1 │ k … 2k−1 │ …      blocks of k segments; the last one may have fewer
//!  parity     S … S+m−1 │ S+m … S+2m−1 │ …        m of each block, numbers after the final one
//!
//!             ┌ column ┐
//!  shard 0    ████████░░░░░░░░    a column of a multiple of 64 octets of all shards of a block is a code of its own,
//!  shard 1    ████████░░░░░░░░    so that a block is encoded and decoded one column after the other
//! ```
//!
//! Any k of the k + m shards give a block back. The code is that of [`fec`](namecast_stream::fec): Leopard-RS over GF(2¹⁶).

use std::io;

use reed_solomon_simd::{ReedSolomonDecoder, ReedSolomonEncoder};
use serde::{Deserialize, Serialize};

use super::SegmentSet;

/// Most segments of a block: with three times as much parity it fills the field.
pub(super) const MAX_BLOCK: u32 = 16_384;
/// Most parity segments of a block.
pub(super) const MAX_PARITY: u32 = 49_152;
/// Unit of a shard's size in octets: the code works on one unit at a time.
pub(super) const SHARD_UNIT: usize = 64;
/// Memory of the shards of a column.
const COLUMN_MEMORY: usize = 64 << 20;

/// How parity is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coding {
    /// k, segments of a block; the last block may have fewer.
    pub block: u32,
    /// m, parity segments of each block.
    pub parity: u32,
}

/// Content and parity of an object, as shards: segments padded with zeros to whole ones.
pub trait Shards {
    /// Reads octets of segment `number`, from `from` on. What lies behind the content's end is zero.
    ///
    /// # Errors
    /// Error of the system.
    fn read(&mut self, number: u64, from: usize, octets: &mut [u8]) -> io::Result<()>;

    /// Writes octets of segment `number`, from `from` on. What lies behind the content's end is left out.
    ///
    /// # Errors
    /// Error of the system.
    fn write(&mut self, number: u64, from: usize, octets: &[u8]) -> io::Result<()>;
}

/// The segments of one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Number of the first segment, and how many there are.
    pub first: u64,
    /// Segments with content.
    pub count: u32,
    /// Number of the first parity segment.
    pub parity: u64,
}

impl Coding {
    /// Returns the coding of an object of `segments`, with `times` as much parity as content, 1 to 3.
    pub fn of(segments: u64, times: u32) -> Self {
        let blocks = segments.div_ceil(u64::from(MAX_BLOCK)).max(1);
        // Blocks of one size: the last one is not much easier to get than the others.
        let block = u32::try_from(segments.div_ceil(blocks)).unwrap_or(MAX_BLOCK);
        let block = block.clamp(1, MAX_BLOCK);
        Self {
            block,
            parity: block * times.clamp(1, 3),
        }
    }

    pub(super) fn is_supported(self) -> bool {
        ReedSolomonEncoder::supports(self.block as usize, self.parity as usize)
    }

    /// Returns the number of blocks of `segments`.
    pub fn blocks(self, segments: u64) -> u64 {
        segments.div_ceil(u64::from(self.block))
    }

    /// Returns block `index` of an object of `segments`.
    pub fn block(self, segments: u64, index: u64) -> Block {
        let first = index * u64::from(self.block);
        let count = segments.saturating_sub(first).min(u64::from(self.block));
        Block {
            first,
            count: count as u32,
            parity: segments + index * u64::from(self.parity),
        }
    }

    /// Returns the block that segment `number` of an object of `segments` is of, content or parity.
    pub fn block_of(self, segments: u64, number: u64) -> u64 {
        match number.checked_sub(segments) {
            None => number / u64::from(self.block),
            Some(parity) => parity / u64::from(self.parity),
        }
    }

    /// Octets of each shard that are coded at a time.
    fn column(self, shard: usize) -> usize {
        let shards = (self.block + self.parity) as usize;
        let octets = COLUMN_MEMORY / shards / SHARD_UNIT * SHARD_UNIT;
        octets.clamp(SHARD_UNIT, shard)
    }

    /// Writes the parity of `block`, shards of which have `shard` octets.
    ///
    /// # Errors
    /// Error of the system on reading or writing.
    pub fn encode(self, block: Block, shard: usize, shards: &mut impl Shards) -> io::Result<()> {
        let column = self.column(shard);
        let mut octets = vec![0; column];
        for from in (0..shard).step_by(column) {
            let octets = &mut octets[..column.min(shard - from)];
            let mut encoder =
                ReedSolomonEncoder::new(block.count as usize, self.parity as usize, octets.len())
                    .map_err(io::Error::other)?;
            for number in block.first..block.first + u64::from(block.count) {
                shards.read(number, from, octets)?;
                encoder
                    .add_original_shard(&*octets)
                    .map_err(io::Error::other)?;
            }
            let parity = encoder.encode().map_err(io::Error::other)?;
            for (number, octets) in (block.parity..).zip(parity.recovery_iter()) {
                shards.write(number, from, octets)?;
            }
        }
        Ok(())
    }

    /// Writes the segments of `block` that are not in `here`, of which there must be as many as the block has segments.
    ///
    /// # Errors
    /// If there are too few, or what the system says of reading and writing.
    pub fn decode(
        self,
        block: Block,
        shard: usize,
        (here, shards): (&SegmentSet, &mut impl Shards),
    ) -> io::Result<()> {
        let own = block.first..block.first + u64::from(block.count);
        let missing: Vec<_> = own.clone().filter(|it| !here.contains(*it)).collect();
        let parity = block.parity..block.parity + u64::from(self.parity);
        let parity: Vec<_> = parity
            .filter(|it| here.contains(*it))
            .take(missing.len())
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let column = self.column(shard);
        let mut octets = vec![0; column];
        for from in (0..shard).step_by(column) {
            let octets = &mut octets[..column.min(shard - from)];
            let mut decoder =
                ReedSolomonDecoder::new(block.count as usize, self.parity as usize, octets.len())
                    .map_err(io::Error::other)?;
            for number in own.clone().filter(|it| here.contains(*it)) {
                shards.read(number, from, octets)?;
                let index = (number - block.first) as usize;
                decoder
                    .add_original_shard(index, &*octets)
                    .map_err(io::Error::other)?;
            }
            for &number in &parity {
                shards.read(number, from, octets)?;
                let index = (number - block.parity) as usize;
                decoder
                    .add_recovery_shard(index, &*octets)
                    .map_err(io::Error::other)?;
            }
            let restored = decoder.decode().map_err(io::Error::other)?;
            for &number in &missing {
                let index = (number - block.first) as usize;
                let octets = restored.restored_original(index);
                let octets = octets.ok_or_else(|| io::Error::other("a shard was not restored"))?;
                shards.write(number, from, octets)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use namecast_units::Random;

    use super::*;

    /// Shards in memory.
    struct Memory(Vec<Vec<u8>>);

    impl Shards for Memory {
        fn read(&mut self, number: u64, from: usize, octets: &mut [u8]) -> io::Result<()> {
            octets.copy_from_slice(&self.0[number as usize][from..from + octets.len()]);
            Ok(())
        }

        fn write(&mut self, number: u64, from: usize, octets: &[u8]) -> io::Result<()> {
            self.0[number as usize][from..from + octets.len()].copy_from_slice(octets);
            Ok(())
        }
    }

    fn shards(random: &mut Random, segments: usize, total: u64, shard: usize) -> Memory {
        let octets = |random: &mut Random| (0..shard).map(|_| random.below(256) as u8).collect();
        let mut shards: Vec<Vec<u8>> = (0..segments).map(|_| octets(random)).collect();
        shards.resize(total as usize, vec![0; shard]);
        Memory(shards)
    }

    /// 11 segments in blocks of 4, the last of 3, with 8 parity each. Any four of a block's twelve are enough.
    #[test]
    fn any_k_of_a_block_give_it_back() {
        let coding = Coding {
            block: 4,
            parity: 8,
        };
        assert_eq!(coding.blocks(11), 3);
        let last = Block {
            first: 8,
            count: 3,
            parity: 27,
        };
        assert_eq!(coding.block(11, 2), last);
        assert_eq!(
            [10, 11, 18, 19, 27].map(|it| coding.block_of(11, it)),
            [2, 0, 0, 1, 2]
        );
        for seed in 0..20 {
            let mut random = Random::from_seed(seed);
            let mut memory = shards(&mut random, 11, 35, 128);
            for block in 0..3 {
                coding
                    .encode(coding.block(11, block), 128, &mut memory)
                    .unwrap();
            }
            let whole = memory.0.clone();
            for index in 0..3 {
                let block = coding.block(11, index);
                let mut all: Vec<u64> = (block.first..block.first + u64::from(block.count))
                    .chain(block.parity..block.parity + 8)
                    .collect();
                let mut here = SegmentSet::new(35);
                for _ in 0..block.count {
                    let at = random.below(all.len() as u64) as usize;
                    here.insert(all.swap_remove(at));
                }
                for number in all {
                    memory.0[number as usize].fill(0xEE);
                }
                coding.decode(block, 128, (&here, &mut memory)).unwrap();
            }
            assert_eq!(memory.0[..11], whole[..11], "seed {seed}");
        }
    }

    /// A column of 64 octets of a shard is the code of that column alone.
    #[test]
    fn columns_are_codes_of_their_own() {
        let coding = Coding {
            block: 3,
            parity: 3,
        };
        let mut random = Random::from_seed(5);
        let mut whole = shards(&mut random, 3, 6, 192);
        let mut second = Memory(
            whole
                .0
                .iter()
                .map(|shard| shard[64..128].to_vec())
                .collect(),
        );
        coding.encode(coding.block(3, 0), 192, &mut whole).unwrap();
        coding.encode(coding.block(3, 0), 64, &mut second).unwrap();
        for (whole, column) in whole.0.iter().zip(&second.0) {
            assert_eq!(whole[64..128], **column);
        }
    }

    #[test]
    fn too_few_are_an_error() {
        let coding = Coding {
            block: 2,
            parity: 2,
        };
        let mut memory = shards(&mut Random::from_seed(1), 2, 4, 64);
        let mut here = SegmentSet::new(4);
        here.insert(1);
        let decoded = coding.decode(coding.block(2, 0), 64, (&here, &mut memory));
        assert!(decoded.is_err());
    }

    /// The largest block: 65 536 shards in columns of 1024 octets.
    #[test]
    fn blocks_are_even_and_within_the_code() {
        assert_eq!(
            Coding::of(1, 3),
            Coding {
                block: 1,
                parity: 3
            }
        );
        assert_eq!(Coding::of(16_385, 3).block, 8_193);
        let largest = Coding::of(1 << 20, 3);
        assert_eq!(
            largest,
            Coding {
                block: MAX_BLOCK,
                parity: MAX_PARITY
            }
        );
        assert!(largest.is_supported() && Coding::of(16_385, 3).is_supported());
        assert_eq!(largest.column(3_776), 1_024);
        assert_eq!(Coding::of(10, 3).column(3_776), 3_776);
    }
}
