//! What never lets time pass is stopped.

use std::collections::BTreeMap;

use namecast_units::Instant;

/// Most calls of one node or application at one instant of virtual time, for each of its faces, or of a direction of a link:
/// expired timeouts and frames handed to it. What needs more lets time stand still, which is a bug; the run then panics and says where.
///
/// A node with many faces may well get a frame from each at once, and some from each at the start of a run.
pub const MAX_CALLS_AT_INSTANT: u32 = 10_000;

/// Whom the simulator calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Called {
    Node(usize),
    Application(usize),
    /// A direction of a link.
    Direction(usize),
}

/// Calls of one at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Calls {
    pub(super) timeouts: u32,
    pub(super) frames: u32,
}

impl Calls {
    pub(super) const TIMEOUT: Self = Self {
        timeouts: 1,
        frames: 0,
    };
    pub(super) const FRAME: Self = Self {
        timeouts: 0,
        frames: 1,
    };

    pub(super) const fn total(self) -> u32 {
        self.timeouts.saturating_add(self.frames)
    }
}

/// Calls at the present instant. Who was called is only noted once all together had as many calls as one may have, so
/// that other instants cost nothing; one that never ends is found after twice as many at most.
#[derive(Debug, Default)]
pub(super) struct Tally {
    at: Instant,
    total: u32,
    by_whom: BTreeMap<Called, Calls>,
}

impl Tally {
    /// Counts a call; the calls of this one if they have been noted.
    #[inline]
    pub(super) fn count(&mut self, now: Instant, called: Called, call: Calls) -> Option<Calls> {
        if now != self.at {
            self.at = now;
            self.total = 0;
        }
        self.total = self.total.saturating_add(1);
        (self.total > MAX_CALLS_AT_INSTANT).then(|| self.note(called, call))
    }

    #[cold]
    fn note(&mut self, called: Called, call: Calls) -> Calls {
        if self.total == MAX_CALLS_AT_INSTANT + 1 {
            self.by_whom.clear();
        }
        let calls = self.by_whom.entry(called).or_default();
        calls.timeouts = calls.timeouts.saturating_add(call.timeouts);
        calls.frames = calls.frames.saturating_add(call.frames);
        *calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10 000 calls of all are not noted. Then those of each are counted by themselves, until time passes.
    #[test]
    fn calls_are_counted_for_each_and_forgotten_when_time_passes() {
        let mut tally = Tally::default();
        let (node, application) = (Called::Node(3), Called::Application(3));
        let now = Instant::from_nanos(5);
        for _ in 0..MAX_CALLS_AT_INSTANT {
            assert_eq!(tally.count(now, node, Calls::FRAME), None);
        }
        for number in 1..50 {
            let calls = tally.count(now, node, Calls::FRAME).unwrap();
            assert_eq!((calls.timeouts, calls.frames), (0, number));
            let calls = tally.count(now, application, Calls::TIMEOUT).unwrap();
            assert_eq!((calls.timeouts, calls.frames), (number, 0));
        }
        let later = Instant::from_nanos(6);
        for _ in 0..MAX_CALLS_AT_INSTANT {
            assert_eq!(tally.count(later, node, Calls::TIMEOUT), None);
        }
        let calls = tally.count(later, node, Calls::TIMEOUT);
        assert_eq!(calls, Some(Calls::TIMEOUT));
    }
}
