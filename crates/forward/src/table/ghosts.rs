//! Hashes of what left a cache lately, in eight octets each.

use core::num::NonZeroU32;

use namecast_units::ByteSize;

use super::memory;

/// Ghosts of one bucket: a cache line of them.
const WAYS: usize = 8;

/// A hash, of which 32 bits are kept: one that never left is taken for a ghost once in some million times.
#[derive(Clone, Copy, Debug, Default)]
struct Ghost {
    hash: u32,
    /// How many had left when this one did. None: nobody is here.
    number: Option<NonZeroU32>,
}

/// The last hashes that left. Where more than eight fall into one bucket, the oldest of them is forgotten early, so that
/// memory is what it is however many come and go; a hash table would be between a quarter and seven eighths full.
#[derive(Debug, Default)]
pub(super) struct Ghosts {
    /// A power of two of buckets, or none.
    buckets: Vec<[Ghost; WAYS]>,
    left: u32,
}

const _: () = memory::check::<Ghost>(ByteSize::bytes(8));

impl Ghosts {
    /// Memory of each place that there is room for: as doubling makes it, one to two ghosts.
    pub(super) const MEMORY_PER_PLACE: ByteSize = ByteSize::bytes(12);

    /// Makes room for one ghost for each of so many places.
    pub(super) fn grow(&mut self, places: usize) {
        while self.buckets.len() * WAYS < places {
            let buckets = (self.buckets.len() * 2).max(1);
            let before = core::mem::replace(&mut self.buckets, vec![Default::default(); buckets]);
            for ghost in before
                .into_iter()
                .flatten()
                .filter(|it| it.number.is_some())
            {
                // Those of one bucket fall into two now, so there is room.
                let mut bucket = self.bucket(ghost.hash).into_iter().flatten();
                if let Some(free) = bucket.find(|it| it.number.is_none()) {
                    *free = ghost;
                }
            }
        }
    }

    /// Notes that what hashes to `hash` left.
    pub(super) fn insert(&mut self, hash: u32) {
        self.left = self.left.wrapping_add(1);
        let left = self.left;
        // Itself as it left before, or nobody, or who left first.
        let rank = |ghost: &&mut Ghost| match ghost.number {
            Some(number) => (ghost.hash == hash, false, left.wrapping_sub(number.get())),
            None => (false, true, 0),
        };
        let bucket = self.bucket(hash).into_iter().flatten();
        if let Some(worst) = bucket.max_by_key(rank) {
            *worst = Ghost {
                hash,
                // None once in 2^32 times, and then there is no ghost.
                number: NonZeroU32::new(left),
            };
        }
    }

    /// Whether what hashes to `hash` is among the last `count` that left. It is a ghost no more.
    pub(super) fn remove(&mut self, hash: u32, count: usize) -> bool {
        let left = self.left;
        let bucket = self.bucket(hash).into_iter().flatten();
        let found = bucket.filter(|ghost| ghost.hash == hash).find_map(|ghost| {
            let number = ghost.number.take()?;
            Some(left.wrapping_sub(number.get()))
        });
        found.is_some_and(|since| (since as usize) < count)
    }

    fn bucket(&mut self, hash: u32) -> Option<&mut [Ghost; WAYS]> {
        let last = self.buckets.len().checked_sub(1)?;
        self.buckets.get_mut(hash as usize & last)
    }
}

#[cfg(test)]
mod tests {
    use namecast_units::Random;

    use super::*;

    /// All that left, the last one last. A ghost goes early when eight others of its bucket left after it.
    #[derive(Default)]
    struct Twin(Vec<(u32, usize)>);

    impl Twin {
        fn insert(&mut self, hash: u32, number: usize, buckets: usize) {
            self.0.retain(|&(other, _)| other != hash);
            let is_beside =
                |&(other, _): &(u32, usize)| ((other ^ hash) as usize).is_multiple_of(buckets);
            if self.0.iter().copied().filter(is_beside).count() == WAYS {
                let oldest = self.0.iter().position(is_beside).unwrap();
                self.0.remove(oldest);
            }
            self.0.push((hash, number));
        }

        fn remove(&mut self, hash: u32, after: usize) -> bool {
            let at = self.0.iter().position(|&(other, _)| other == hash);
            at.is_some_and(|at| self.0.remove(at).1 > after)
        }
    }

    #[test]
    fn ghosts_are_the_last_that_left_as_a_plain_list_has_them() {
        for seed in 0..20 {
            let mut random = Random::from_seed(seed);
            let (mut ghosts, mut twin) = (Ghosts::default(), Twin::default());
            let (mut left, mut places, mut found) = (0, 1, [0; 2]);
            ghosts.grow(places);
            for _ in 0..5_000 {
                if random.chance(0.01) && places < 200 {
                    places += usize::try_from(random.below(20)).unwrap();
                    ghosts.grow(places);
                }
                let hash = u32::try_from(random.below(300)).unwrap();
                if random.chance(0.7) {
                    left += 1;
                    ghosts.insert(hash);
                    let buckets = places.div_ceil(WAYS).next_power_of_two();
                    twin.insert(hash, left, buckets);
                } else {
                    let is_ghost = ghosts.remove(hash, places);
                    let after = left.saturating_sub(places);
                    assert_eq!(is_ghost, twin.remove(hash, after), "seed {seed}");
                    found[usize::from(is_ghost)] += 1;
                }
            }
            assert!(found.iter().all(|&count| count > 200), "{found:?}");
        }
    }

    /// Room for 100 places: a thousand that left in a row take no more, and most of the last hundred are known.
    #[test]
    fn memory_is_bounded_and_few_are_forgotten_early() {
        let mut ghosts = Ghosts::default();
        ghosts.grow(100);
        let mut random = Random::from_seed(1);
        let hashes: Vec<_> = (0..1_000).map(|_| random.below(1 << 32) as u32).collect();
        hashes.iter().for_each(|&hash| ghosts.insert(hash));
        assert_eq!(ghosts.buckets.len() * WAYS, 128);
        let known = hashes[900..]
            .iter()
            .filter(|hash| ghosts.remove(**hash, 100));
        assert!((85..=100).contains(&known.count()));
        assert!(!hashes[..900].iter().any(|hash| ghosts.remove(*hash, 100)));
    }
}
