//! How much is done in a second, and for whom.

use std::collections::BTreeMap;

use namecast_units::Instant;

/// Counts what happens in the current second, for each key and in total.
#[derive(Debug, Default)]
pub(super) struct Rates {
    second: u64,
    total: u32,
    by_key: BTreeMap<[u8; 32], u32>,
}

impl Rates {
    /// Counts one more, if there are fewer than `max`. Returns whether there are.
    pub(super) fn take(&mut self, now: Instant, max: u32) -> bool {
        self.advance(now);
        let has_room = self.total < max;
        self.total += u32::from(has_room);
        has_room
    }

    /// Counts one more of `key`, if there are fewer than `max_of_key` of it and `max` of all.
    pub(super) fn take_of(
        &mut self,
        now: Instant,
        key: [u8; 32],
        (max_of_key, max): (u32, u32),
    ) -> bool {
        self.advance(now);
        let count = self.by_key.get(&key).copied().unwrap_or(0);
        if count >= max_of_key || !self.take(now, max) {
            return false;
        }
        self.by_key.insert(key, count + 1);
        true
    }

    fn advance(&mut self, now: Instant) {
        let second = now.since(Instant::ZERO).as_secs();
        if second != self.second {
            *self = Self {
                second,
                ..Self::default()
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use namecast_units::Duration;

    use super::*;

    #[test]
    fn each_key_has_its_share_of_each_second() {
        let mut rates = Rates::default();
        for second in 0..2 {
            let now = Instant::ZERO + Duration::from_secs(second);
            let taken = [1, 1, 1, 2, 3, 4].map(|key| rates.take_of(now, [key; 32], (2, 4)));
            assert_eq!(taken, [true, true, false, true, true, false]);
            assert!(rates.take(now, 5) && !rates.take(now, 5));
        }
    }
}
