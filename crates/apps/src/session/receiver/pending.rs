//! Interests that are out, by number, and by when something is to be done about them.

use core::ops::RangeBounds;
use std::collections::{BTreeMap, BTreeSet};

use namecast_units::Instant;

/// An Interest that is out, or lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) sent_at: Instant,
    pub(super) transmissions: u32,
    /// Of those, since it has been missing.
    pub(super) retries: u32,
    /// When something is to be done about it.
    pub(super) due: Instant,
    /// Since when it has been known to be missing.
    pub(super) missing_since: Option<Instant>,
    /// What came for it was no packet of the other side: caches are passed by.
    pub(super) was_forged: bool,
}

#[derive(Debug, Default)]
pub(super) struct PendingInterests {
    by_number: BTreeMap<u64, Pending>,
    timers: BTreeSet<(Instant, u64)>,
}

impl PendingInterests {
    pub(super) fn get(&self, number: u64) -> Option<&Pending> {
        self.by_number.get(&number)
    }

    /// To change anything but when it is due.
    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut Pending> {
        self.by_number.get_mut(&number)
    }

    pub(super) fn len(&self) -> usize {
        self.by_number.len()
    }

    /// Those of some numbers, in order.
    pub(super) fn range(
        &self,
        numbers: impl RangeBounds<u64>,
    ) -> impl Iterator<Item = (u64, &Pending)> {
        self.by_number
            .range(numbers)
            .map(|(&number, it)| (number, it))
    }

    pub(super) fn insert(&mut self, number: u64, pending: Pending) {
        self.remove(number);
        self.timers.insert((pending.due, number));
        self.by_number.insert(number, pending);
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<Pending> {
        let pending = self.by_number.remove(&number)?;
        self.timers.remove(&(pending.due, number));
        Some(pending)
    }

    pub(super) fn set_due(&mut self, number: u64, due: Instant) {
        if let Some(pending) = self.by_number.get_mut(&number) {
            self.timers.remove(&(pending.due, number));
            pending.due = due;
            self.timers.insert((due, number));
        }
    }

    /// What is due first, and when.
    pub(super) fn first_due(&self) -> Option<(Instant, u64)> {
        self.timers.first().copied()
    }
}
