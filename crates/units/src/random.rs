//! Randomness from a seed.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A seeded generator (xoshiro256++) whose sequence is the same on every platform and in every version.
///
/// Not for keys: those come from the operating system, in the runtimes.
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The generator that `seed` stands for.
    pub fn from_seed(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Returns the next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a number in `0..bound`, each equally likely. A bound of zero gives zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        // Multiply-shift: its bias is below bound / 2⁶⁴.
        let product = u128::from(self.next_u64()) * u128::from(bound);
        u64::try_from(product >> 64).expect("the upper half of a 128-bit product has 64 bits")
    }

    /// Returns a number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// Fills `octets` with random bits.
    pub fn fill(&mut self, octets: &mut [u8]) {
        for chunk in octets.chunks_mut(8) {
            let word = self.next_u64().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_fixes_the_sequence_and_another_seed_changes_it() {
        let draw = |seed| {
            let mut random = Random::from_seed(seed);
            [random.next_u64(), random.next_u64()]
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    /// The sequence is part of every golden trace, so its first word is pinned.
    #[test]
    fn the_sequence_never_changes() {
        assert_eq!(Random::from_seed(0).next_u64(), 0x5317_5d61_490b_23df);
    }

    #[test]
    fn below_stays_below_and_reaches_both_ends() {
        let mut random = Random::from_seed(3);
        let mut seen = [false; 4];
        for _ in 0..200 {
            seen[usize::try_from(random.below(4)).unwrap()] = true;
        }
        assert_eq!(seen, [true; 4]);
        assert_eq!(random.below(0), 0);
    }

    /// 10 000 draws at p = 0.2: σ = √(n·p·(1−p)) = 40, so ±160 is four σ.
    #[test]
    fn chance_matches_its_probability() {
        let mut random = Random::from_seed(9);
        let hits = (0..10_000).filter(|_| random.chance(0.2)).count();
        assert!((1_840..=2_160).contains(&hits), "{hits}");
    }
}
