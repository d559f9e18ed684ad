//! Bound on log lines that strangers cause.

use core::time::Duration;
use std::collections::BTreeMap;

/// Time from one line of a reason to the next.
const INTERVAL: Duration = Duration::from_secs(1);
/// Reasons that are remembered; where there are more, lines of further ones are left out.
const MAX_REASONS: usize = 1_024;

/// Lets through one log line per second for each reason, and counts those left out. Times are since any moment, the same for all.
#[derive(Clone, Debug)]
pub struct LogLimit<R> {
    reasons: BTreeMap<R, Reason>,
}

#[derive(Clone, Copy, Debug)]
struct Reason {
    logged_at: Duration,
    left_out: u64,
}

impl<R> LogLimit<R> {
    /// A limit of which nothing was logged.
    pub const fn new() -> Self {
        Self {
            reasons: BTreeMap::new(),
        }
    }
}

impl<R> Default for LogLimit<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R: Ord> LogLimit<R> {
    /// Returns whether a line of `reason` is logged at `now`, and how many were left out since the last one: `None` to leave it out.
    pub fn admit(&mut self, now: Duration, reason: R) -> Option<u64> {
        if let Some(known) = self.reasons.get_mut(&reason) {
            if now.saturating_sub(known.logged_at) < INTERVAL {
                known.left_out += 1;
                return None;
            }
            known.logged_at = now;
            return Some(core::mem::take(&mut known.left_out));
        }
        if self.reasons.len() >= MAX_REASONS {
            let is_recent = |it: &Reason| now.saturating_sub(it.logged_at) < INTERVAL;
            self.reasons.retain(|_, it| is_recent(it));
        }
        (self.reasons.len() < MAX_REASONS).then(|| {
            let (logged_at, left_out) = (now, 0);
            self.reasons.insert(
                reason,
                Reason {
                    logged_at,
                    left_out,
                },
            );
            0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_second_for_each_reason() {
        let mut limit = LogLimit::new();
        let mut admitted = |millis, reason| limit.admit(Duration::from_millis(millis), reason);
        assert_eq!(admitted(0, "key"), Some(0));
        assert_eq!(admitted(1, "name"), Some(0));
        assert_eq!([1, 500, 999].map(|at| admitted(at, "key")), [None; 3]);
        assert_eq!(admitted(1_000, "key"), Some(3));
        assert_eq!(admitted(1_500, "key"), None);
        // A clock that went back.
        assert_eq!(admitted(900, "key"), None);
        assert_eq!(admitted(5_000, "key"), Some(2));
        assert_eq!(admitted(5_000, "name"), Some(0));
    }

    /// A flood of reasons, each new: none is admitted beyond the bound, until the first are a second old.
    #[test]
    fn reasons_are_bounded() {
        let mut limit = LogLimit::new();
        let admitted = (0..5_000).filter(|at| limit.admit(Duration::ZERO, *at) == Some(0));
        assert_eq!(admitted.count(), MAX_REASONS);
        assert_eq!(limit.admit(Duration::from_secs(1), 7_000), Some(0));
        assert_eq!(limit.reasons.len(), 1);
    }
}
