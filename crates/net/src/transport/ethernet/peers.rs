//! The peers of one interface that have faces.

use std::collections::BTreeMap;

use namecast_units::{Duration, Instant};

use crate::MacAddress;

/// What belongs to each peer, and when it was last heard.
#[derive(Debug)]
pub(super) struct Peers<T> {
    entries: BTreeMap<MacAddress, Entry<T>>,
    max_on_demand: usize,
}

#[derive(Debug)]
struct Entry<T> {
    value: T,
    last_heard: Instant,
    /// Whether it stays however long it is silent.
    is_kept: bool,
}

impl<T> Peers<T> {
    /// Room for so many that do not stay.
    pub(super) const fn new(max_on_demand: usize) -> Self {
        Self {
            entries: BTreeMap::new(),
            max_on_demand,
        }
    }

    /// Whether one more that does not stay has room.
    pub(super) fn has_room(&self) -> bool {
        let on_demand = self.entries.values().filter(|entry| !entry.is_kept);
        on_demand.count() < self.max_on_demand
    }

    /// Adds a peer; gives what belonged to it before.
    pub(super) fn insert(
        &mut self,
        now: Instant,
        peer: MacAddress,
        value: T,
        is_kept: bool,
    ) -> Option<T> {
        let entry = Entry {
            value,
            last_heard: now,
            is_kept,
        };
        self.entries.insert(peer, entry).map(|entry| entry.value)
    }

    /// What belongs to a peer that was heard now.
    pub(super) fn heard(&mut self, now: Instant, peer: MacAddress) -> Option<&T> {
        let entry = self.entries.get_mut(&peer)?;
        entry.last_heard = now;
        Some(&entry.value)
    }

    /// Takes out those that were silent for `timeout` and do not stay, or for which `has_ended` holds.
    pub(super) fn take_ended(
        &mut self,
        now: Instant,
        timeout: Duration,
        has_ended: impl Fn(&T) -> bool,
    ) -> Vec<T> {
        let is_over = |entry: &mut Entry<T>| {
            let is_idle = !entry.is_kept && now.since(entry.last_heard) >= timeout;
            is_idle || has_ended(&entry.value)
        };
        let ended = self.entries.extract_if(.., |_, entry| is_over(entry));
        ended.map(|(_, entry)| entry.value).collect()
    }

    /// Takes one out.
    pub(super) fn remove(&mut self, peer: MacAddress) -> Option<T> {
        self.entries.remove(&peer).map(|entry| entry.value)
    }

    /// All of them.
    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.entries.values().map(|entry| &entry.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Duration = Duration::from_secs(600);
    const A: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    const B: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
    const C: MacAddress = MacAddress([2, 0, 0, 0, 0, 3]);

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// Heard at second 10, a peer has ended at second 610 and not a nanosecond before; one that is kept has not.
    #[test]
    fn a_silent_peer_ends_unless_it_is_kept() {
        let mut peers = Peers::new(8);
        peers.insert(at(0), A, 'a', false);
        peers.insert(at(0), B, 'b', true);
        assert_eq!(peers.heard(at(10), A), Some(&'a'));
        let just_before = at(610).saturating_sub(Duration::from_nanos(1));
        assert!(peers.take_ended(just_before, IDLE, |_| false).is_empty());
        assert_eq!(peers.take_ended(at(610), IDLE, |_| false), ['a']);
        assert_eq!(peers.heard(at(611), A), None);
        assert!(peers.take_ended(at(9_999), IDLE, |_| false).is_empty());
        assert_eq!(peers.take_ended(at(0), IDLE, |value| *value == 'b'), ['b']);
        assert_eq!(peers.values().count(), 0);
    }

    #[test]
    fn only_peers_that_do_not_stay_take_room() {
        let mut peers = Peers::new(1);
        peers.insert(at(0), A, 'a', true);
        assert!(peers.has_room());
        peers.insert(at(0), B, 'b', false);
        assert!(!peers.has_room());
        assert_eq!(peers.insert(at(0), B, 'c', true), Some('b'));
        assert!(peers.has_room());
        peers.insert(at(0), C, 'd', false);
        assert!(!peers.has_room());
        assert_eq!(peers.remove(C), Some('d'));
        assert!(peers.has_room());
    }
}
