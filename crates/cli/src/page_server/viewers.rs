//! The number of viewers that a stream has through the node.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use namecast_packet::Name;

/// A count looks at all pending Interests, and so answers all requests within that time.
const KEPT: Duration = Duration::from_secs(1);
/// Names that are counted in that time.
const MAX_NAMES: usize = 64;

/// Faces that wait for a stream: one for each page, and for each neighbour one, however many are behind it.
#[derive(Clone, Debug, Default)]
pub(super) struct Viewers {
    counts: Arc<Mutex<BTreeMap<Name, (Instant, usize)>>>,
}

impl Viewers {
    /// Returns how many faces wait for Data of `name`, which `look` finds out; `None`: too many names were counted lately.
    pub(super) fn count(
        &self,
        now: Instant,
        name: Name,
        look: impl FnOnce(&Name) -> usize,
    ) -> Option<usize> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.retain(|_, (at, _)| now.duration_since(*at) < KEPT);
        if let Some((_, count)) = counts.get(&name) {
            return Some(*count);
        }
        (counts.len() < MAX_NAMES).then(|| {
            let count = look(&name);
            counts.insert(name, (now, count));
            count
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: usize) -> Name {
        format!("/{number}").parse().unwrap()
    }

    /// A count is made once a second, and 64 names are counted in that time.
    #[test]
    fn counts_are_few() {
        let viewers = Viewers::default();
        let begun = Instant::now();
        let count = |millis, number| {
            let now = begun + Duration::from_millis(millis);
            viewers.count(now, name(number), |_| millis as usize)
        };
        assert_eq!(count(5, 0), Some(5));
        assert_eq!(count(1_004, 0), Some(5));
        assert_eq!(count(1_005, 0), Some(1_005));
        for number in 1..MAX_NAMES {
            assert_eq!(count(1_100, number), Some(1_100));
        }
        assert_eq!(count(1_100, MAX_NAMES), None);
        assert_eq!(count(1_100, 1), Some(1_100));
        assert_eq!(count(2_005, MAX_NAMES), Some(2_005));
    }
}
