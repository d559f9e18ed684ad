//! Interests that came before what they ask for: held until it exists, or their lifetime ends.

use std::collections::{BTreeMap, BTreeSet};

use core::ops::RangeBounds;

use bytes::Bytes;
use namecast_packet::Nonce;
use namecast_units::Instant;

/// One held Interest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiter {
    /// When it came.
    pub arrived_at: Instant,
    /// When its lifetime ends.
    pub expires_at: Instant,
    /// Tells transmissions of an Interest apart.
    pub nonce: Nonce,
    /// Octets to return with the answer, if the link requested that.
    pub pit_token: Option<Bytes>,
}

/// What became of an Interest that was to be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// It is in the table.
    Yes,
    /// An Interest for the same thing with the same Nonce is already there.
    Duplicate,
    /// There is no room.
    Full,
}

/// Interests by what they ask for, bounded in all and per key.
#[derive(Debug)]
pub struct PendingTable<K> {
    waiters: BTreeMap<K, Vec<Waiter>>,
    expiries: BTreeSet<(Instant, K, Nonce)>,
    most: usize,
    max_per_key: usize,
}

impl<K: Ord + Copy> PendingTable<K> {
    /// A table for at most `most` Interests, of which at most `max_per_key` ask for the same.
    pub const fn new(most: usize, max_per_key: usize) -> Self {
        Self {
            waiters: BTreeMap::new(),
            expiries: BTreeSet::new(),
            most,
            max_per_key,
        }
    }

    /// Returns the Interests in the table.
    pub fn len(&self) -> usize {
        self.expiries.len()
    }

    /// Returns whether no Interest is held.
    pub fn is_empty(&self) -> bool {
        self.expiries.is_empty()
    }

    /// Holds `waiter`, which requests `key`.
    pub fn insert(&mut self, key: K, waiter: Waiter) -> Held {
        let same = self.waiters.get_mut(&key);
        let same = same.map_or(&mut [][..], Vec::as_mut_slice);
        if let Some(known) = same.iter_mut().find(|other| other.nonce == waiter.nonce) {
            // One that waits longer is not to end with one that repeats its Nonce.
            if known.expires_at < waiter.expires_at {
                self.expiries.remove(&(known.expires_at, key, known.nonce));
                known.expires_at = waiter.expires_at;
                self.expiries.insert((waiter.expires_at, key, waiter.nonce));
            }
            return Held::Duplicate;
        }
        if self.expiries.len() >= self.most || same.len() >= self.max_per_key {
            return Held::Full;
        }
        self.expiries.insert((waiter.expires_at, key, waiter.nonce));
        self.waiters.entry(key).or_default().push(waiter);
        Held::Yes
    }

    /// Returns the Interest for `key` that came first.
    pub fn oldest(&self, key: &K) -> Option<&Waiter> {
        self.waiters.get(key)?.first()
    }

    /// Removes all Interests for `key`, in the order they came.
    pub fn take(&mut self, key: &K) -> Vec<Waiter> {
        let waiters = self.waiters.remove(key).unwrap_or_default();
        for waiter in &waiters {
            self.expiries
                .remove(&(waiter.expires_at, *key, waiter.nonce));
        }
        waiters
    }

    /// Removes all Interests for keys in `range` and tells how many there were.
    pub fn remove(&mut self, range: impl RangeBounds<K>) -> usize {
        let keys: Vec<_> = self.waiters.range(range).map(|(key, _)| *key).collect();
        keys.iter().map(|key| self.take(key).len()).sum()
    }

    /// Removes the Interests whose lifetime has ended and tells how many there were.
    pub fn expire(&mut self, now: Instant) -> usize {
        let before = self.expiries.len();
        while let Some(&(at, key, nonce)) = self.expiries.first()
            && at <= now
        {
            self.expiries.pop_first();
            let waiters = self.waiters.get_mut(&key);
            let waiters = waiters.expect("each expiry belongs to an Interest that is held");
            waiters.retain(|waiter| waiter.nonce != nonce);
            if waiters.is_empty() {
                self.waiters.remove(&key);
            }
        }
        before - self.expiries.len()
    }

    /// Returns when the next lifetime ends.
    pub fn next_expiry(&self) -> Option<Instant> {
        self.expiries.first().map(|(at, ..)| *at)
    }
}

#[cfg(test)]
mod tests;
