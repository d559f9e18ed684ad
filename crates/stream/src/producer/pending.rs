//! Interests that came before what they ask for: held until it exists, or their lifetime ends.
//!
//! What is due soon goes first: where the table is full, or a face has its share of it, the Interest for what is due last is dropped.

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
    /// When what it requests is expected to exist.
    pub due_at: Instant,
    /// Number of the face that it came in on, if known. All that is known of it is whether it is the same.
    pub face: Option<u64>,
}

/// What became of an Interest that was to be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// It is in the table.
    Yes,
    /// An Interest for the same thing with the same Nonce is already there.
    Duplicate,
    /// It is in the table instead of one for what is due later.
    InsteadOfAnother,
    /// There is no room.
    Full,
}

/// Interests by what they ask for, bounded in all and per key.
#[derive(Debug)]
pub struct PendingTable<K> {
    waiters: BTreeMap<K, Vec<Waiter>>,
    expiries: BTreeSet<(Instant, K, Nonce)>,
    /// Those of each face, in the order in which what they request is due.
    by_face: BTreeMap<Option<u64>, BTreeSet<(Instant, K, Nonce)>>,
    most: usize,
    max_per_key: usize,
}

/// Largest part of a table for one face whose number is known: below half, so that two faces do not fill it.
const SHARE: (usize, usize) = (2, 5);

impl<K: Ord + Copy> PendingTable<K> {
    /// A table for at most `most` Interests, of which at most `max_per_key` ask for the same.
    pub const fn new(most: usize, max_per_key: usize) -> Self {
        Self {
            waiters: BTreeMap::new(),
            expiries: BTreeSet::new(),
            by_face: BTreeMap::new(),
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
        if same.len() >= self.max_per_key {
            return Held::Full;
        }
        let held = match self.crowding(&waiter) {
            None => Held::Yes,
            Some((due_at, last, nonce)) if (waiter.due_at, key) < (due_at, last) => {
                self.remove_one(last, nonce);
                Held::InsteadOfAnother
            }
            Some(_) => return Held::Full,
        };
        self.expiries.insert((waiter.expires_at, key, waiter.nonce));
        let of_face = self.by_face.entry(waiter.face).or_default();
        of_face.insert((waiter.due_at, key, waiter.nonce));
        self.waiters.entry(key).or_default().push(waiter);
        held
    }

    /// Returns the Interest that gives way to `waiter` if any does: what is due last of its face, if that has its share, or of all, if
    /// the table is full. `None`: there is room.
    fn crowding(&self, waiter: &Waiter) -> Option<(Instant, K, Nonce)> {
        let of_face = self.by_face.get(&waiter.face);
        let share = (self.most * SHARE.0 / SHARE.1).max(1);
        if let Some(of_face) = of_face.filter(|it| waiter.face.is_some() && it.len() >= share) {
            return of_face.last().copied();
        }
        if self.expiries.len() < self.most {
            return None;
        }
        let faces = self.by_face.values();
        faces.filter_map(|of_face| of_face.last().copied()).max()
    }

    fn remove_one(&mut self, key: K, nonce: Nonce) {
        let Some(waiters) = self.waiters.get_mut(&key) else {
            return;
        };
        let Some(at) = waiters.iter().position(|it| it.nonce == nonce) else {
            return;
        };
        let waiter = waiters.remove(at);
        if waiters.is_empty() {
            self.waiters.remove(&key);
        }
        self.forget(key, &waiter);
    }

    /// Removes what is kept of a waiter beside itself.
    fn forget(&mut self, key: K, waiter: &Waiter) {
        self.expiries
            .remove(&(waiter.expires_at, key, waiter.nonce));
        if let Some(of_face) = self.by_face.get_mut(&waiter.face) {
            of_face.remove(&(waiter.due_at, key, waiter.nonce));
            if of_face.is_empty() {
                self.by_face.remove(&waiter.face);
            }
        }
    }

    /// Returns the Interest for `key` that came first.
    pub fn oldest(&self, key: &K) -> Option<&Waiter> {
        self.waiters.get(key)?.first()
    }

    /// Returns whether an Interest for a key in `range` is held.
    pub fn has_any(&self, range: impl RangeBounds<K>) -> bool {
        self.waiters.range(range).next().is_some()
    }

    /// Removes all Interests for `key`, in the order they came.
    pub fn take(&mut self, key: &K) -> Vec<Waiter> {
        let waiters = self.waiters.remove(key).unwrap_or_default();
        for waiter in &waiters {
            self.forget(*key, waiter);
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
            self.remove_one(key, nonce);
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
