//! Set-ups that were answered, so that a replayed one is refused.

use std::collections::{BTreeSet, VecDeque};

/// Ephemeral keys, the oldest of which is forgotten for a new one.
#[derive(Debug)]
pub(super) struct Remembered {
    keys: BTreeSet<[u8; 32]>,
    order: VecDeque<[u8; 32]>,
    max: usize,
}

impl Remembered {
    pub(super) const fn new(max: usize) -> Self {
        Self {
            keys: BTreeSet::new(),
            order: VecDeque::new(),
            max,
        }
    }

    pub(super) fn contains(&self, key: &[u8; 32]) -> bool {
        self.keys.contains(key)
    }

    pub(super) fn insert(&mut self, key: [u8; 32]) {
        if self.keys.insert(key) {
            self.order.push_back(key);
        }
        while self.order.len() > self.max
            && let Some(oldest) = self.order.pop_front()
        {
            self.keys.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten() {
        let mut remembered = Remembered::new(2);
        for key in [1, 2, 1, 3] {
            remembered.insert([key; 32]);
        }
        let found = [1, 2, 3].map(|key| remembered.contains(&[key; 32]));
        assert_eq!(found, [false, true, true]);
    }
}
