//! Reed–Solomon parity over the segments of one sample: any N of N + P shards give the sample back.
//!
//! The code is Leopard-RS over GF(2¹⁶), as the crate `reed-solomon-simd` computes it; a test pins its output, since it
//! is part of the wire format.

use bytes::Bytes;
use reed_solomon_simd::{ReedSolomonDecoder, ReedSolomonEncoder};

/// Why parity could not be computed, or a sample not recovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FecError {
    /// There are no data shards, or a size of zero.
    #[error("there is nothing to protect")]
    Empty,
    /// More shards than the code allows.
    #[error("{data} data and {parity} parity shards are more than the code allows")]
    TooMany {
        /// Data shards.
        data: usize,
        /// Parity shards.
        parity: usize,
    },
    /// A data shard is longer than the shard size, or a parity shard not of the padded shard size.
    #[error("a shard of {got} octets does not fit shards of {expected}")]
    ShardSize {
        /// Octets there should be, at most or exactly.
        expected: usize,
        /// Octets there are.
        got: usize,
    },
    /// Fewer shards than data shards are there.
    #[error("{got} shards are there, {needed} are needed")]
    NotEnough {
        /// Shards needed: as many as there were data shards.
        needed: usize,
        /// Shards there, data and parity.
        got: usize,
    },
}

/// Most data and most parity shards, well inside what the code allows.
const MAX_SHARDS: usize = 4_096;

/// Returns the octets of a parity shard: `shard_size` made even, as the code works on pairs of octets.
pub const fn padded_size(shard_size: usize) -> usize {
    shard_size.next_multiple_of(2)
}

/// Parity shards over `shards`, each of which counts as padded with zeros to `shard_size`, made even.
///
/// Over one data shard, parity is a copy of it, padded.
///
/// # Errors
/// If there is nothing to protect, there are too many shards, or one is longer than `shard_size`.
pub fn parity(shards: &[Bytes], shard_size: usize, count: usize) -> Result<Vec<Bytes>, FecError> {
    check_counts(shards.len(), count, shard_size)?;
    if count == 0 {
        return Ok(Vec::new());
    }
    let size = padded_size(shard_size);
    let padded = shards.iter().map(|shard| pad(shard, shard_size));
    if shards.len() == 1 {
        let copy: Vec<_> = padded.collect::<Result<_, _>>()?;
        return Ok(vec![copy[0].clone(); count]);
    }
    let mut encoder = ReedSolomonEncoder::new(shards.len(), count, size)
        .expect("counts and size were checked against the code's bounds");
    for shard in padded {
        encoder
            .add_original_shard(shard?)
            .expect("as many shards of one size as promised");
    }
    let result = encoder.encode().expect("every shard was added");
    Ok(result.recovery_iter().map(Bytes::copy_from_slice).collect())
}

/// Returns all data shards, those that were lost from what else is there. Shards that are there come back as they are, those
/// recovered with `shard_size` octets.
///
/// # Errors
/// If too few shards are there, or one does not have the size it must have.
pub fn recover(
    data: &[Option<Bytes>],
    parity: &[Option<Bytes>],
    shard_size: usize,
) -> Result<Vec<Bytes>, FecError> {
    check_counts(data.len(), parity.len(), shard_size)?;
    let size = padded_size(shard_size);
    let wrong = parity.iter().flatten().find(|shard| shard.len() != size);
    if let Some(shard) = wrong {
        let (expected, got) = (size, shard.len());
        return Err(FecError::ShardSize { expected, got });
    }
    let there = data.iter().flatten().count();
    if there == data.len() {
        return Ok(data.iter().flatten().cloned().collect());
    }
    let (needed, got) = (data.len(), there + parity.iter().flatten().count());
    if got < needed {
        return Err(FecError::NotEnough { needed, got });
    }
    if let ([None], Some(copy)) = (data, parity.iter().flatten().next()) {
        return Ok(vec![copy.slice(..shard_size)]);
    }
    let mut decoder = ReedSolomonDecoder::new(data.len(), parity.len(), size)
        .expect("counts and size were checked against the code's bounds");
    for (index, shard) in data.iter().enumerate() {
        if let Some(shard) = shard {
            decoder
                .add_original_shard(index, pad(shard, shard_size)?)
                .expect("each index once, of one size");
        }
    }
    for (index, shard) in parity.iter().enumerate() {
        if let Some(shard) = shard {
            decoder
                .add_recovery_shard(index, shard)
                .expect("each index once, of one size");
        }
    }
    let result = decoder.decode().expect("enough shards were added");
    let restored = |index| {
        let shard: &[u8] = result
            .restored_original(index)
            .expect("the decoder restores every shard it was not given");
        Bytes::copy_from_slice(&shard[..shard_size])
    };
    let shards = data.iter().enumerate();
    Ok(shards
        .map(|(index, shard)| shard.clone().unwrap_or_else(|| restored(index)))
        .collect())
}

const fn check_counts(data: usize, parity: usize, shard_size: usize) -> Result<(), FecError> {
    if data == 0 || shard_size == 0 {
        return Err(FecError::Empty);
    }
    if data > MAX_SHARDS || parity > MAX_SHARDS {
        return Err(FecError::TooMany { data, parity });
    }
    Ok(())
}

/// `shard` with zeros up to the padded size.
fn pad(shard: &Bytes, shard_size: usize) -> Result<Bytes, FecError> {
    let size = padded_size(shard_size);
    if shard.len() > shard_size {
        let (expected, got) = (shard_size, shard.len());
        return Err(FecError::ShardSize { expected, got });
    }
    if shard.len() == size {
        return Ok(shard.clone());
    }
    let mut padded = shard.to_vec();
    padded.resize(size, 0);
    Ok(padded.into())
}

#[cfg(test)]
mod tests {
    use namecast_units::Random;

    use super::*;

    fn shards(count: usize, size: usize, seed: u64) -> Vec<Bytes> {
        let mut random = Random::from_seed(seed);
        (0..count)
            .map(|_| {
                let mut shard = vec![0; size];
                random.fill(&mut shard);
                shard.into()
            })
            .collect()
    }

    /// `shards` without those whose bit is set in `lost`.
    fn without(shards: &[Bytes], lost: u32) -> Vec<Option<Bytes>> {
        let there =
            |(index, shard): (usize, &Bytes)| (lost >> index & 1 == 0).then(|| shard.clone());
        shards.iter().enumerate().map(there).collect()
    }

    /// Every pattern of losses for every N ≤ 5, P ≤ 3: at most P lost give the data back, more do not.
    #[test]
    fn any_n_shards_give_the_data_back_and_fewer_do_not() {
        for (n, p) in (1..=5).flat_map(|n| (0..=3).map(move |p| (n, p))) {
            let mut data = shards(n, 10, 7);
            // The lead's shard is shorter.
            data[0].truncate(3);
            let parity = parity(&data, 10, p).unwrap();
            assert_eq!(parity.len(), p);
            for lost in 0..1_u32 << (n + p) {
                let given = without(&data, lost);
                let given_parity = without(&parity, lost >> n);
                let result = recover(&given, &given_parity, 10);
                let recoverable =
                    (lost.count_ones() as usize) <= p || given.iter().all(Option::is_some);
                let Ok(recovered) = result else {
                    assert!(!recoverable, "n {n} p {p} lost {lost:b}: {result:?}");
                    continue;
                };
                assert!(recoverable, "n {n} p {p} lost {lost:b}");
                for ((is, was), given) in recovered.iter().zip(&data).zip(&given) {
                    let size = if given.is_some() { was.len() } else { 10 };
                    assert_eq!((is.len(), &is[..was.len()]), (size, &was[..]));
                    assert!(is[was.len()..].iter().all(|&octet| octet == 0));
                }
            }
        }
    }

    #[test]
    fn an_odd_shard_size_works() {
        let data = shards(4, 7, 3);
        let parity = parity(&data, 7, 2).unwrap();
        assert!(parity.iter().all(|shard| shard.len() == 8));
        let recovered = recover(&without(&data, 0b1010), &without(&parity, 0), 7);
        assert_eq!(recovered, Ok(data));
    }

    #[test]
    fn parity_of_one_shard_is_a_copy() {
        let data = [Bytes::from_static(b"abc")];
        let copies = parity(&data, 3, 2).unwrap();
        assert_eq!(copies, [&b"abc\0"[..], b"abc\0"]);
        let recovered = recover(&[None], &[None, Some(copies[1].clone())], 3);
        assert_eq!(recovered, Ok(data.to_vec()));
    }

    /// Parity is on the wire: another version of the library must compute the same.
    #[test]
    fn the_code_never_changes() {
        let data: Vec<Bytes> = (0_u8..3)
            .map(|n| vec![n, n + 1, n + 2, 250].into())
            .collect();
        let parity = parity(&data, 4, 2).unwrap();
        assert_eq!(parity, [&b"j\xff\x02\xee"[..], b"i\xff\x07\x14"]);
    }

    #[test]
    fn wrong_shapes_are_named() {
        let data = shards(2, 4, 1);
        assert_eq!(parity(&[], 4, 1), Err(FecError::Empty));
        assert_eq!(parity(&data, 0, 1), Err(FecError::Empty));
        let too_long = FecError::ShardSize {
            expected: 2,
            got: 4,
        };
        assert_eq!(parity(&data, 2, 1), Err(too_long));
        let some = |shard: &Bytes| Some(shard.clone());
        assert_eq!(
            recover(
                &[some(&data[0]), None],
                &[Some(Bytes::from_static(b"abc"))],
                4
            ),
            Err(FecError::ShardSize {
                expected: 4,
                got: 3
            })
        );
        assert_eq!(
            recover(&[some(&data[0]), None], &[None], 4),
            Err(FecError::NotEnough { needed: 2, got: 1 })
        );
        assert_eq!(
            recover(&vec![None; 5_000], &[], 4),
            Err(FecError::TooMany {
                data: 5_000,
                parity: 0
            })
        );
    }
}
