//! Growing pauses after repeated faults.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

/// Pauses after faults in a row, each twice as long as the one before. Times are since any moment, the same for all.
#[derive(Clone, Debug)]
pub struct Pauses<K> {
    first: Duration,
    longest: Duration,
    forgotten_after: Duration,
    max_keys: usize,
    faults: BTreeMap<K, Fault>,
    by_time: BTreeSet<(Duration, K)>,
}

#[derive(Clone, Copy, Debug)]
struct Fault {
    /// Faults in a row.
    count: u32,
    last: Duration,
}

impl<K: Copy + Ord> Pauses<K> {
    /// Returns pauses from `first` to `longest`. A key without a fault for `forgotten_after` begins anew; of more than `max_keys`
    /// keys, the one whose last fault is longest ago is forgotten.
    pub const fn new(
        first: Duration,
        longest: Duration,
        forgotten_after: Duration,
        max_keys: usize,
    ) -> Self {
        Self {
            first,
            longest,
            forgotten_after,
            max_keys,
            faults: BTreeMap::new(),
            by_time: BTreeSet::new(),
        }
    }

    /// Returns how long `key` has to wait; zero if it need not.
    pub fn remaining(&self, now: Duration, key: K) -> Duration {
        let fault = self.faults.get(&key);
        let until = fault.map_or(Duration::ZERO, |fault| fault.last + self.pause(fault.count));
        until.saturating_sub(now)
    }

    /// Records a fault of `key`, whose pause begins.
    pub fn record(&mut self, now: Duration, key: K) {
        let before = self.remove(key);
        let is_recent = |fault: &Fault| now.saturating_sub(fault.last) < self.forgotten_after;
        let count = before.filter(is_recent).map_or(0, |fault| fault.count);
        if self.faults.len() >= self.max_keys
            && let Some(&(_, oldest)) = self.by_time.first()
        {
            self.remove(oldest);
        }
        let count = count.saturating_add(1);
        self.faults.insert(key, Fault { count, last: now });
        self.by_time.insert((now, key));
    }

    /// Forgets the faults of `key`.
    pub fn forget(&mut self, key: K) {
        self.remove(key);
    }

    fn remove(&mut self, key: K) -> Option<Fault> {
        let fault = self.faults.remove(&key)?;
        self.by_time.remove(&(fault.last, key));
        Some(fault)
    }

    fn pause(&self, count: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(count.saturating_sub(1));
        self.first.saturating_mul(doubled).min(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn pauses() -> Pauses<u32> {
        Pauses::new(seconds(1), seconds(60), seconds(600), 3)
    }

    /// 1, 2, 4, … 60 s after faults in a row; none for another key, and 1 s again once the faults are forgotten.
    #[test]
    fn each_pause_is_twice_as_long_as_the_one_before() {
        let mut pauses = pauses();
        let mut now = seconds(5);
        for expected in [1, 2, 4, 8, 16, 32, 60, 60] {
            pauses.record(now, 7);
            assert_eq!(pauses.remaining(now, 7), seconds(expected));
            assert_eq!(pauses.remaining(now, 8), Duration::ZERO);
            now += seconds(expected);
            assert_eq!(pauses.remaining(now, 7), Duration::ZERO);
        }
        pauses.forget(7);
        pauses.record(now, 7);
        assert_eq!(pauses.remaining(now, 7), seconds(1));
        pauses.record(now + seconds(599), 7);
        assert_eq!(pauses.remaining(now + seconds(599), 7), seconds(2));
        pauses.record(now + seconds(1_199), 7);
        assert_eq!(pauses.remaining(now + seconds(1_199), 7), seconds(1));
    }

    #[test]
    fn of_too_many_keys_the_oldest_is_forgotten() {
        let mut pauses = pauses();
        for key in [1, 2, 3, 1, 4] {
            pauses.record(seconds(9), key);
            pauses.record(seconds(9 + u64::from(key)), key);
        }
        let now = seconds(9);
        let waits = [1, 2, 3, 4].map(|key| pauses.remaining(now, key) > Duration::ZERO);
        assert_eq!(waits, [false, true, true, true]);
        assert_eq!((pauses.faults.len(), pauses.by_time.len()), (3, 3));
    }
}
