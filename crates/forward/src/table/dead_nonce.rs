//! Dead nonce list: Nonces of Interests that have left the PIT, to find loops longer than their lifetime.

use core::time::Duration;
use std::collections::VecDeque;

use hashbrown::HashMap;
use namecast_units::Instant;

use crate::name_hash::HashedKeys;

/// Remembers transmissions for a while.
///
/// Differs from NFD, whose list keeps a number of Nonces that it adapts so that they stay about as long as intended:
/// here each stays exactly its time, unless the capacity is reached first.
#[derive(Debug)]
pub(crate) struct DeadNonceList {
    lifetime: Duration,
    capacity: usize,
    /// When each transmission is forgotten.
    until: HashMap<u64, Instant, HashedKeys>,
    /// The same in order of time; a transmission that came again is listed twice.
    order: VecDeque<(Instant, u64)>,
}

impl DeadNonceList {
    pub(crate) fn new(lifetime: Duration, capacity: usize) -> Self {
        Self {
            lifetime,
            capacity,
            until: HashMap::default(),
            order: VecDeque::new(),
        }
    }

    /// How long a transmission is remembered.
    pub(crate) const fn lifetime(&self) -> Duration {
        self.lifetime
    }

    /// Remembers `transmission` from now on.
    pub(crate) fn insert(&mut self, now: Instant, transmission: u64) {
        self.forget(now);
        let until = now + self.lifetime;
        self.until.insert(transmission, until);
        self.order.push_back((until, transmission));
        while self.order.len() > self.capacity {
            self.pop();
        }
    }

    /// Whether `transmission` was inserted less than a lifetime ago.
    pub(crate) fn contains(&self, now: Instant, transmission: u64) -> bool {
        self.until
            .get(&transmission)
            .is_some_and(|&until| until > now)
    }

    fn forget(&mut self, now: Instant) {
        while self.order.front().is_some_and(|&(until, _)| until <= now) {
            self.pop();
        }
    }

    fn pop(&mut self) {
        let Some((until, transmission)) = self.order.pop_front() else {
            return;
        };
        if self.until.get(&transmission) == Some(&until) {
            self.until.remove(&transmission);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFETIME: Duration = Duration::from_secs(6);

    #[test]
    fn a_nonce_is_remembered_for_its_lifetime_to_the_nanosecond() {
        let mut list = DeadNonceList::new(LIFETIME, 10);
        list.insert(Instant::ZERO, 1);
        let last = Instant::from_nanos(5_999_999_999);
        assert!(list.contains(last, 1) && !list.contains(last, 2));
        assert!(!list.contains(Instant::ZERO + LIFETIME, 1));
    }

    #[test]
    fn inserting_again_prolongs() {
        let mut list = DeadNonceList::new(LIFETIME, 10);
        list.insert(Instant::ZERO, 1);
        list.insert(Instant::ZERO + LIFETIME / 2, 1);
        list.insert(Instant::ZERO + LIFETIME, 2);
        assert!(list.contains(Instant::ZERO + LIFETIME, 1));
        assert_eq!(list.order.len(), 2);
    }

    #[test]
    fn the_oldest_gives_way() {
        let mut list = DeadNonceList::new(LIFETIME, 2);
        (1..=3).for_each(|transmission| list.insert(Instant::ZERO, transmission));
        let kept: Vec<_> = (1..=3).map(|t| list.contains(Instant::ZERO, t)).collect();
        assert_eq!(kept, [false, true, true]);
        assert_eq!((list.until.len(), list.order.len()), (2, 2));
    }
}
