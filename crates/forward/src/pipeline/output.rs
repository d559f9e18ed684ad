//! What waits to be taken by the driver.

use std::collections::{BTreeMap, VecDeque};

use namecast_units::Instant;

use super::Transmit;
use crate::face::FaceId;

/// Packets to be sent, in the order in which they came about, and those that hops delay. Bounds are those of the faces.
#[derive(Debug, Default)]
pub(super) struct Output {
    ready: VecDeque<Transmit>,
    /// By when they are to be sent, and then in the order in which they came.
    delayed: BTreeMap<(Instant, u64), Transmit>,
    /// Packets that were ever delayed.
    count: u64,
    /// Whether what is due now stays until it [is taken](Self::pop), so that others can join it.
    pub(super) keeps_due: bool,
}

impl Output {
    /// Adds a packet.
    #[inline]
    pub(super) fn push(&mut self, transmit: Transmit) {
        self.ready.push_back(transmit);
    }

    /// Adds a packet that waits until `at`; returns its place among those that wait.
    #[cold]
    pub(super) fn push_delayed(&mut self, at: Instant, transmit: Transmit) -> (Instant, u64) {
        self.count += 1;
        self.delayed.insert((at, self.count), transmit);
        (at, self.count)
    }

    /// Takes back a packet that waits still.
    pub(super) fn take(&mut self, held: (Instant, u64)) -> Option<Transmit> {
        self.delayed.remove(&held)
    }

    /// Returns how many packets are ready.
    pub(super) fn ready(&self) -> usize {
        self.ready.len()
    }

    /// Returns the packet in a place of those that are ready, to be changed.
    pub(super) fn at_mut(&mut self, place: usize) -> Option<&mut Transmit> {
        self.ready.get_mut(place)
    }

    /// Makes ready what was delayed until `now`.
    #[inline]
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if !self.delayed.is_empty() {
            self.release(now);
        }
    }

    #[cold]
    fn release(&mut self, now: Instant) {
        while let Some(first) = self.delayed.first_entry()
            && (first.key().0 < now || first.key().0 == now && !self.keeps_due)
        {
            self.ready.push_back(first.remove());
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.delayed.first_key_value().map(|(&(at, _), _)| at)
    }

    /// Takes the next packet that is to be sent `now`.
    #[inline]
    pub(super) fn pop(&mut self, now: Instant) -> Option<Transmit> {
        let ready = self.ready.pop_front();
        if ready.is_some() || self.delayed.is_empty() {
            return ready;
        }
        let first = self.delayed.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    /// Forgets what was for a face.
    pub(super) fn remove_face(&mut self, face: FaceId) {
        self.ready.retain(|transmit| transmit.face != face);
        self.delayed.retain(|_, transmit| transmit.face != face);
    }
}
