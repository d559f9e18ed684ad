//! Pace of a sender at the rate of one of its receivers.
//!
//! ```text
//!  reports ─▶ the receiver at a quantile of their rates ─▶ it acknowledges each segment ─▶ Window ─▶ the next one may leave
//! ```

use namecast_stream::rate::pgmcc::Window;
use namecast_units::{Duration, Instant};

use super::reports::{Heard, ReceiverId};

/// Ratio of two rates beyond which another receiver acknowledges \[PGMCC\].
const SIMILAR: f64 = 0.75;
/// Timeouts in a row after which a receiver acknowledges no more, and how long others are preferred then.
const MAX_TIMEOUTS: u32 = 2;
const PASSED_OVER: Duration = Duration::from_secs(10);

/// Which receiver acknowledges, and what may leave.
#[derive(Debug)]
pub(super) struct Pacing {
    quantile: f64,
    window: Window,
    acknowledging: Option<ReceiverId>,
    /// A receiver that was silent, and until when it is not chosen.
    passed_over: Option<(ReceiverId, Instant)>,
}

impl Pacing {
    /// Paced by the receiver at `quantile` of all: 0, the slowest.
    pub(super) fn new(quantile: f64) -> Self {
        Self {
            quantile: quantile.clamp(0.0, 1.0),
            window: Window::default(),
            acknowledging: None,
            passed_over: None,
        }
    }

    /// Returns whether this receiver acknowledges.
    pub(super) fn is_acknowledging(&self, id: ReceiverId) -> bool {
        self.acknowledging == Some(id)
    }

    /// Chooses who acknowledges, of receivers that lack segments and have reported lately. One whose rate is similar to that of the right
    /// one stays.
    pub(super) fn choose(
        &mut self,
        now: Instant,
        receivers: impl Iterator<Item = (ReceiverId, Heard)>,
    ) {
        let passed_over = self.passed_over.filter(|(_, until)| now < *until);
        let is_eligible = |id: &ReceiverId| passed_over.is_none_or(|(other, _)| other != *id);
        let mut rates: Vec<_> = receivers
            .filter(|(id, heard)| heard.report.missing > 0 && is_eligible(id))
            .map(|(id, heard)| (heard.report.rate, id))
            .collect();
        rates.sort_unstable();
        let place = (self.quantile * rates.len().saturating_sub(1) as f64) as usize;
        let chosen = rates.get(place).copied();
        let before = rates.iter().find(|(_, id)| self.is_acknowledging(*id));
        let is_similar = match (before, chosen) {
            (Some((old, _)), Some((new, _))) => {
                let (old, new) = (old.as_bps() as f64, new.as_bps() as f64);
                old.min(new) >= SIMILAR * old.max(new)
            }
            _ => false,
        };
        if !is_similar && self.acknowledging != chosen.map(|(_, id)| id) {
            self.acknowledging = chosen.map(|(_, id)| id);
            self.window.hand_over();
        }
    }

    /// Returns whether a segment may leave: always as long as nobody acknowledges.
    pub(super) fn may_send(&self) -> bool {
        self.acknowledging.is_none() || self.window.may_send()
    }

    /// Takes a segment that leaves.
    pub(super) fn on_sent(&mut self, now: Instant, number: u64) {
        if self.acknowledging.is_some() {
            self.window.on_sent(now, number);
        }
    }

    /// Takes an acknowledgement.
    pub(super) fn on_acknowledged(&mut self, now: Instant, id: ReceiverId, numbers: &[u64]) {
        if self.is_acknowledging(id) {
            self.window.on_acknowledged(now, numbers);
        }
    }

    /// Lets another receiver acknowledge where one is silent. Early and repeated calls do nothing.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.window.handle_timeout(now);
        if self.window.timeouts() >= MAX_TIMEOUTS
            && let Some(silent) = self.acknowledging.take()
        {
            self.passed_over = Some((silent, now + PASSED_OVER));
            self.window.hand_over();
        }
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.acknowledging.and(self.window.poll_timeout())
    }
}

#[cfg(test)]
mod tests {
    use namecast_units::Bitrate;

    use super::super::Report;
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// Receivers 1, 2, … of these rates in Mbit/s. One of rate 0 has all segments.
    fn receivers(rates: &[u64]) -> impl Iterator<Item = (ReceiverId, Heard)> {
        rates.iter().zip(1..).map(|(rate, id)| {
            let report = Report {
                missing: u64::from(*rate > 0),
                rate: Bitrate::mbps(*rate),
                ..Report::default()
            };
            ([id; 8], Heard { report, at: at(0) })
        })
    }

    #[test]
    fn the_receiver_at_the_quantile_acknowledges() {
        for (quantile, expected) in [(0.0, 2), (0.5, 4), (1.0, 3)] {
            let mut pacing = Pacing::new(quantile);
            pacing.choose(at(1), receivers(&[0, 1, 9, 4]));
            assert!(pacing.is_acknowledging([expected; 8]), "{quantile}");
        }
    }

    #[test]
    fn a_similar_rate_changes_nothing() {
        let mut pacing = Pacing::new(0.0);
        pacing.choose(at(1), receivers(&[4, 5]));
        pacing.choose(at(2), receivers(&[5, 4]));
        assert!(pacing.is_acknowledging([1; 8]), "4 of 5 are similar");
        pacing.choose(at(3), receivers(&[6, 4]));
        assert!(pacing.is_acknowledging([2; 8]), "4 of 6 are not");
        pacing.choose(at(4), receivers(&[6, 0]));
        assert!(pacing.is_acknowledging([1; 8]), "the other has all");
        pacing.choose(at(5), receivers(&[]));
        assert!(pacing.may_send() && !pacing.is_acknowledging([1; 8]));
    }

    /// 1 s, then 2 s without acknowledgement: the silent one is not chosen for 10 s.
    #[test]
    fn a_silent_receiver_is_passed_over() {
        let mut pacing = Pacing::new(0.0);
        pacing.choose(at(0), receivers(&[1, 2]));
        pacing.on_sent(at(0), 7);
        assert!(!pacing.may_send());
        pacing.on_acknowledged(at(0), [2; 8], &[7]);
        assert!(!pacing.may_send(), "another's acknowledgement");
        assert_eq!(pacing.poll_timeout(), Some(at(1)));
        pacing.handle_timeout(at(1));
        pacing.on_sent(at(1), 8);
        pacing.handle_timeout(at(3));
        assert!(pacing.may_send() && pacing.poll_timeout().is_none());
        pacing.choose(at(4), receivers(&[1, 2]));
        assert!(pacing.is_acknowledging([2; 8]));
        pacing.choose(at(13), receivers(&[1, 2]));
        assert!(pacing.is_acknowledging([1; 8]));
    }
}
