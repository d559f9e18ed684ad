//! A bound on how often something happens.

use core::time::Duration;
use std::collections::VecDeque;

use namecast_units::Instant;

const SECOND: Duration = Duration::from_secs(1);

/// Allows so many events in any second.
#[derive(Debug)]
pub(super) struct Pace {
    limit: usize,
    last: VecDeque<Instant>,
}

impl Pace {
    pub(super) const fn new(limit: usize) -> Self {
        Self {
            limit,
            last: VecDeque::new(),
        }
    }

    /// Returns the first moment from `at` on at which the next event is allowed.
    pub(super) fn earliest(&self, at: Instant) -> Instant {
        match self.last.front() {
            Some(first) if self.last.len() == self.limit => at.max(*first + SECOND),
            _ => at,
        }
    }

    /// Returns whether an event is allowed now, and counts it if so.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        if self.earliest(now) > now {
            return false;
        }
        if self.last.len() == self.limit {
            self.last.pop_front();
        }
        self.last.push_back(now);
        true
    }
}
