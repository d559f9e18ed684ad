//! Metadata Interests: which are out, and when the next one leaves.

use std::collections::VecDeque;

use core::time::Duration;

use namecast_packet::Nonce;
use namecast_stream::path::Token;
use namecast_units::{Instant, Timestamp};

/// Probes whose answers are still expected.
const MAX_PROBES: usize = 8;
/// Shortest time from one probe to the next, whatever calls for them. Doubles with each that is not answered.
pub(crate) const PROBE_SPACING: Duration = Duration::from_millis(100);
/// Nonces of the last probes, and when they left.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentProbes(VecDeque<(Nonce, Instant)>);

impl SentProbes {
    pub(crate) fn push(&mut self, now: Instant, nonce: Nonce) {
        if self.0.len() == MAX_PROBES {
            self.0.pop_front();
        }
        self.0.push_back((nonce, now));
    }

    /// When the probe left that had `nonce`.
    pub(crate) fn sent_at(&self, nonce: Nonce) -> Option<Instant> {
        let mut sent = self.0.iter();
        Some(sent.find(|(own, _)| *own == nonce)?.1)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Time from one probe to the next while all is well.
const INTERVAL: Duration = Duration::from_secs(2);
/// Time from one probe to the next while nothing arrives.
const STARVED_INTERVAL: Duration = Duration::from_millis(250);
/// Probes without an answer until those of a starved watcher become rarer by half.
const MAX_UNANSWERED: u32 = 8;

/// Probes of a watcher.
#[derive(Clone, Debug)]
pub(crate) struct Probes {
    /// Token of the metadata request.
    pub token: Token,
    sent: SentProbes,
    /// When the last one left, answered or not.
    sent_at: Option<Instant>,
    /// Since the last answer.
    unanswered: u32,
    next_at: Option<Instant>,
    /// When the newest answer was served, by the publisher's clock.
    served_at: Timestamp,
}

impl Probes {
    pub(crate) fn new(token: Token) -> Self {
        Self {
            token,
            sent: SentProbes::default(),
            sent_at: None,
            unanswered: 0,
            next_at: None,
            served_at: Timestamp::default(),
        }
    }

    /// Returns when the next one is due.
    pub(crate) fn poll_timeout(&self) -> Instant {
        self.next_at.unwrap_or_default()
    }

    /// Returns whether one may leave now; if not, the next one is due as soon as one may.
    pub(crate) fn may_leave(&mut self, now: Instant) -> bool {
        let spacing = PROBE_SPACING * (1 << self.unanswered.saturating_sub(1).min(8));
        let spacing = spacing.min(STARVED_INTERVAL);
        let earliest = self.sent_at.map(|sent| sent + spacing);
        let Some(earliest) = earliest.filter(|at| *at > now) else {
            return true;
        };
        self.next_at = Some(self.next_at.map_or(earliest, |at| at.min(earliest)));
        false
    }

    /// Records one that is to leave. The next one is due soon, later where nobody answers; while all is well, at `common`.
    pub(crate) fn on_wanted(&mut self, now: Instant, common: Option<Duration>) {
        let doublings = (self.unanswered / MAX_UNANSWERED).min(8);
        let backed_off = (STARVED_INTERVAL * (1 << doublings)).min(INTERVAL);
        self.next_at = Some(now + common.unwrap_or(backed_off).max(PROBE_SPACING));
        self.sent_at = Some(now);
        self.unanswered = self.unanswered.saturating_add(1);
    }

    /// Records the Nonce of one that left.
    pub(crate) fn on_sent(&mut self, now: Instant, nonce: Nonce) {
        self.sent.push(now, nonce);
    }

    /// Returns the time until the next probe while all is well: when the publisher's clock, if it is known, shows a multiple of the
    /// interval. All watchers then ask at one time, so that nodes combine their Interests, and the publisher answers as often as
    /// if there were one.
    pub(crate) fn until_common(publisher_now: Option<Timestamp>) -> Duration {
        let Some(publisher_now) = publisher_now else {
            return INTERVAL;
        };
        let interval = INTERVAL.as_micros() as u64;
        let wait = Duration::from_micros(interval - publisher_now.as_micros() % interval);
        // Not twice in a short time when a probe went out for another reason, or the clock was found to be a little off.
        if wait < INTERVAL / 2 {
            wait + INTERVAL
        } else {
            wait
        }
    }

    /// Lets the next one leave as if nothing arrived.
    pub(crate) fn hasten(&mut self, now: Instant) {
        let soon = self
            .sent_at
            .map_or(now, |sent| now.max(sent + STARVED_INTERVAL));
        self.next_at = self.next_at.map(|at| at.min(soon));
    }

    /// Lets the next one leave soon: what is missing is expected to be there then.
    pub(crate) fn expect(&mut self, now: Instant) {
        self.next_at = self.next_at.map(|at| at.min(now + STARVED_INTERVAL));
    }

    /// Lets the next one wait for a whole interval: nothing better is expected before.
    pub(crate) fn rest(&mut self, now: Instant) {
        self.next_at = Some(now + INTERVAL);
    }

    /// Returns whether an answer is expected.
    pub(crate) fn is_out(&self) -> bool {
        !self.sent.is_empty()
    }

    /// Returns when the probe left that had `nonce`.
    pub(crate) fn sent_at(&self, nonce: Nonce) -> Option<Instant> {
        self.sent.sent_at(nonce)
    }

    /// Records when verified metadata was served, by the publisher's clock. Returns whether it is later than all before; `None` if it
    /// is an older one, which answers no probe of ours.
    pub(crate) fn on_served(&mut self, served_at: Timestamp, is_answer: bool) -> Option<bool> {
        if !is_answer && served_at < self.served_at {
            return None;
        }
        let before = core::mem::replace(&mut self.served_at, served_at);
        Some(before != Timestamp::default() && served_at > before)
    }

    /// An answer came: no other is expected.
    pub(crate) fn on_answer(&mut self) {
        self.sent.clear();
        self.unanswered = 0;
    }

    /// Expects answers again.
    pub(crate) const fn on_link_change(&mut self) {
        self.unanswered = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::client;

    fn probes() -> Probes {
        Probes::new(client().object(0))
    }

    /// One leaves with this Nonce.
    fn send(probes: &mut Probes, now: Instant, nonce: u32) {
        probes.on_wanted(now, None);
        probes.on_sent(now, nonce.into());
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// One each 250 ms; after 8 without an answer each 500 ms, after 16 each second, and so on up to two seconds.
    #[test]
    fn probes_that_nobody_answers_become_rarer() {
        let mut probes = probes();
        let mut now = at(0);
        let mut waits = Vec::new();
        for nonce in 0..40_u32 {
            assert!(probes.may_leave(now));
            send(&mut probes, now, nonce);
            waits.push(probes.poll_timeout().since(now).as_millis());
            now = probes.poll_timeout();
        }
        let at_8 = [0, 8, 16, 24, 39].map(|index| waits[index]);
        assert_eq!(at_8, [250, 500, 1_000, 2_000, 2_000]);
        probes.on_answer();
        send(&mut probes, now, 40);
        assert_eq!(probes.poll_timeout().since(now).as_millis(), 250);
    }

    /// 100 ms after the first, and 200 after the second, which nobody answered.
    #[test]
    fn probes_keep_a_distance() {
        let mut probes = probes();
        send(&mut probes, at(0), 1);
        assert!(!probes.may_leave(at(99)));
        assert_eq!(probes.poll_timeout(), at(100));
        assert!(probes.may_leave(at(100)));
        send(&mut probes, at(100), 2);
        assert!(!probes.may_leave(at(299)) && probes.may_leave(at(300)));
        assert!(probes.is_out());
        assert_eq!(probes.sent_at(2.into()), Some(at(100)));
        probes.on_answer();
        assert!(!probes.is_out());
    }

    /// At 10.5 s of the publisher's clock the next even second is 1.5 s away; at 11.5 s it is too near, so the one after it counts.
    #[test]
    fn watchers_probe_at_even_seconds_of_the_publishers_clock() {
        let until = |millis: u64| {
            let publisher_now = Timestamp::from_micros(millis * 1_000);
            Probes::until_common(Some(publisher_now)).as_millis()
        };
        assert_eq!([10_000, 10_500, 11_500].map(until), [2_000, 1_500, 2_500]);
        assert_eq!(Probes::until_common(None), INTERVAL);
    }

    #[test]
    fn older_metadata_counts_only_as_an_answer() {
        let served = Timestamp::from_micros;
        let mut probes = probes();
        assert_eq!(probes.on_served(served(5), false), Some(false), "the first");
        assert_eq!(probes.on_served(served(7), false), Some(true));
        assert_eq!(probes.on_served(served(6), false), None);
        assert_eq!(probes.on_served(served(6), true), Some(false));
        assert_eq!(probes.on_served(served(7), false), Some(true));
    }
}
