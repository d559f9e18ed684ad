//! Notices that a roster is held back: the publisher's metadata, which is verified, names a newer version than this reader receives.

use core::time::Duration;

use namecast_units::Instant;

use super::output::Event;

/// Time for which a reader may be behind its publisher: four looks for a newer roster, 5 s apart. With the 2 s from one metadata to the next, a
/// roster held back is noticed within 30 s.
const MAX_BEHIND: Duration = Duration::from_secs(20);

/// Versions of the roster that the publisher named.
#[derive(Debug, Default)]
pub(super) struct RosterWatch {
    behind_since: Option<Instant>,
    /// The version reported last.
    reported: Option<u64>,
    /// Versions found to be held back.
    pub held_back: u64,
}

impl RosterWatch {
    /// Takes the version that verified metadata names, while this reader has version `known`. Returns the event, once for each version.
    pub(super) fn on_told(&mut self, now: Instant, known: u64, told: Option<u64>) -> Option<Event> {
        let Some(told) = told.filter(|told| *told > known) else {
            self.behind_since = None;
            return None;
        };
        let since = *self.behind_since.get_or_insert(now);
        if now.since(since) < MAX_BEHIND || self.reported >= Some(told) {
            return None;
        }
        self.reported = Some(told);
        self.held_back += 1;
        Some(Event::RosterHeldBack { known, told })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Version 3 is named from 10 s on and not received for 20 s: it is reported once, and version 5 later. Whoever receives what was named, or
    /// hears of none, is not behind.
    #[test]
    fn a_version_that_is_not_received_is_reported_once() {
        let mut watch = RosterWatch::default();
        let at = |seconds: u64| Instant::ZERO + Duration::from_secs(seconds);
        let event = |known, told| Some(Event::RosterHeldBack { known, told });
        assert_eq!(watch.on_told(at(0), 2, Some(2)), None);
        assert_eq!(watch.on_told(at(10), 2, Some(3)), None);
        assert_eq!(watch.on_told(at(29), 2, Some(3)), None);
        assert_eq!(watch.on_told(at(30), 2, Some(3)), event(2, 3));
        assert_eq!(watch.on_told(at(60), 2, Some(3)), None);
        assert_eq!(watch.on_told(at(61), 2, Some(5)), event(2, 5));
        assert_eq!(watch.held_back, 2);
        assert_eq!(watch.on_told(at(62), 5, Some(5)), None);
        assert_eq!(watch.on_told(at(63), 5, Some(6)), None);
        assert_eq!(watch.on_told(at(70), 5, None), None);
        assert_eq!(watch.on_told(at(84), 5, Some(6)), None);
        assert_eq!(watch.on_told(at(104), 5, Some(6)), event(5, 6));
    }
}
