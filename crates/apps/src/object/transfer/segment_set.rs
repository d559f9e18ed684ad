//! Which segments of an object are here.

/// A set of segment numbers: a bit for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentSet {
    words: Vec<u64>,
    length: u64,
    count: u64,
}

impl SegmentSet {
    const BITS: u64 = u64::BITS as u64;

    /// A set of numbers below `length` without any.
    pub fn new(length: u64) -> Self {
        let words = usize::try_from(length.div_ceil(Self::BITS)).unwrap_or(usize::MAX);
        Self {
            words: vec![0; words],
            length,
            count: 0,
        }
    }

    /// Returns how many numbers are in the set.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the number that all are below.
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// Returns whether `number` is in the set.
    pub fn contains(&self, number: u64) -> bool {
        let (word, bit) = Self::place(number);
        number < self.length && self.words[word] & bit != 0
    }

    /// Adds `number`. Returns whether it is new; not if it is too large.
    pub fn insert(&mut self, number: u64) -> bool {
        if number >= self.length || self.contains(number) {
            return false;
        }
        let (word, bit) = Self::place(number);
        self.words[word] |= bit;
        self.count += 1;
        true
    }

    /// Returns the least number from `from` on that is not in the set, and below `end`.
    pub fn next_missing(&self, from: u64, end: u64) -> Option<u64> {
        let end = end.min(self.length);
        let mut number = from;
        while number < end {
            let (word, _) = Self::place(number);
            let missing = !self.words[word] >> (number % Self::BITS);
            if missing != 0 {
                let found = number + u64::from(missing.trailing_zeros());
                return (found < end).then_some(found);
            }
            number = (word as u64 + 1) * Self::BITS;
        }
        None
    }

    /// Returns the numbers in the set as octets, the least bit first.
    pub fn encode(&self) -> Vec<u8> {
        self.words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect()
    }

    /// Reads what [`encode`](Self::encode) made of a set of numbers below `length`; `None` if it is another's.
    pub fn decode(length: u64, octets: &[u8]) -> Option<Self> {
        let mut set = Self::new(length);
        let (words, rest) = octets.as_chunks::<8>();
        if words.len() != set.words.len() || !rest.is_empty() {
            return None;
        }
        for (word, octets) in set.words.iter_mut().zip(words) {
            *word = u64::from_le_bytes(*octets);
        }
        let spare = set.words.len() as u64 * Self::BITS - length;
        let is_clean = set
            .words
            .last()
            .is_none_or(|last| spare == 0 || last >> (Self::BITS - spare) == 0);
        set.count = set
            .words
            .iter()
            .map(|word| u64::from(word.count_ones()))
            .sum();
        is_clean.then_some(set)
    }

    const fn place(number: u64) -> (usize, u64) {
        ((number / Self::BITS) as usize, 1 << (number % Self::BITS))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use namecast_units::Random;

    use super::*;

    #[test]
    fn it_is_a_set() {
        for seed in 0..50 {
            let mut random = Random::from_seed(seed);
            let length = 1 + random.below(300);
            let mut set = SegmentSet::new(length);
            let mut twin = BTreeSet::new();
            for _ in 0..random.below(600) {
                let number = random.below(length + 5);
                let is_new = number < length && twin.insert(number);
                assert_eq!(set.insert(number), is_new, "seed {seed}");
            }
            assert_eq!(set.count(), twin.len() as u64);
            for from in 0..length + 2 {
                let end = from + random.below(100);
                let missing = (from..end.min(length)).find(|it| !twin.contains(it));
                assert_eq!(set.next_missing(from, end), missing, "seed {seed}");
            }
            assert_eq!(
                SegmentSet::decode(length, &set.encode()).as_ref(),
                Some(&set)
            );
            assert_eq!(SegmentSet::decode(length + 64, &set.encode()), None);
        }
        assert_eq!(SegmentSet::decode(3, &[8, 0, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(SegmentSet::decode(3, &[7]), None);
    }
}
