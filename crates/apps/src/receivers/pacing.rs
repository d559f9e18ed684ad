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
/// The same for one that has acknowledged nothing: the word that it is to may wait in the queue that it is chosen for, or be lost there.
const MAX_FIRST_TIMEOUTS: u32 = 4;
const PASSED_OVER: Duration = Duration::from_secs(10);

/// Which receiver acknowledges, and what may leave.
#[derive(Debug)]
pub(crate) struct Pacing {
    quantile: f64,
    window: Window,
    acknowledging: Option<ReceiverId>,
    has_acknowledged: bool,
    /// A receiver that was silent, and until when it is not chosen.
    passed_over: Option<(ReceiverId, Instant)>,
}

impl Pacing {
    /// Paced by the receiver at `quantile` of all: 0, the slowest.
    pub(crate) fn new(quantile: f64) -> Self {
        Self {
            quantile: quantile.clamp(0.0, 1.0),
            window: Window::default(),
            acknowledging: None,
            has_acknowledged: false,
            passed_over: None,
        }
    }

    /// Returns whether this receiver acknowledges.
    pub(crate) fn is_acknowledging(&self, id: ReceiverId) -> bool {
        self.acknowledging == Some(id)
    }

    /// Chooses who acknowledges, of receivers that lack segments and have reported lately. One whose rate is similar to that of the right
    /// one stays. Another is chosen when it reports itself, and hears of it with the answer: `reporting`.
    pub(crate) fn choose(
        &mut self,
        now: Instant,
        reporting: ReceiverId,
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
        let chosen = chosen.map(|(_, id)| id);
        let is_told = chosen.is_none_or(|id| id == reporting);
        if !is_similar && is_told && self.acknowledging != chosen {
            self.acknowledging = chosen;
            self.has_acknowledged = false;
            self.window.hand_over();
        }
    }

    /// Returns whether a segment may leave: always as long as nobody acknowledges.
    pub(crate) fn may_send(&self) -> bool {
        self.acknowledging.is_none() || self.window.may_send()
    }

    /// Takes a segment that leaves.
    pub(crate) fn on_sent(&mut self, now: Instant, number: u64) {
        if self.acknowledging.is_some() {
            self.window.on_sent(now, number);
        }
    }

    /// Takes an acknowledgement.
    pub(crate) fn on_acknowledged(&mut self, now: Instant, id: ReceiverId, numbers: &[u64]) {
        if self.is_acknowledging(id) {
            self.has_acknowledged = true;
            self.window.on_acknowledged(now, numbers);
        }
    }

    /// Lets another receiver acknowledge where one is silent. Early and repeated calls do nothing.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.window.handle_timeout(now);
        let max = match self.has_acknowledged {
            true => MAX_TIMEOUTS,
            false => MAX_FIRST_TIMEOUTS,
        };
        if self.window.timeouts() >= max
            && let Some(silent) = self.acknowledging.take()
        {
            self.passed_over = Some((silent, now + PASSED_OVER));
            self.window.hand_over();
        }
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.acknowledging.and(self.window.poll_timeout())
    }
}

#[cfg(test)]
mod tests {
    use namecast_units::Bitrate;

    use super::super::reports::Report;
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
            pacing.choose(at(1), [9; 8], receivers(&[0, 1, 9, 4]));
            assert_eq!(pacing.acknowledging, None, "it hears of it when it reports");
            pacing.choose(at(1), [expected; 8], receivers(&[0, 1, 9, 4]));
            assert!(pacing.is_acknowledging([expected; 8]), "{quantile}");
        }
    }

    #[test]
    fn a_similar_rate_changes_nothing() {
        let mut pacing = Pacing::new(0.0);
        pacing.choose(at(1), [1; 8], receivers(&[4, 5]));
        pacing.choose(at(2), [2; 8], receivers(&[5, 4]));
        assert!(pacing.is_acknowledging([1; 8]), "4 of 5 are similar");
        pacing.choose(at(3), [2; 8], receivers(&[6, 4]));
        assert!(pacing.is_acknowledging([2; 8]), "4 of 6 are not");
        pacing.choose(at(4), [1; 8], receivers(&[6, 0]));
        assert!(pacing.is_acknowledging([1; 8]), "the other has all");
        pacing.choose(at(5), [1; 8], receivers(&[]));
        assert!(pacing.may_send() && !pacing.is_acknowledging([1; 8]));
    }

    /// 1, 2, 4 and 8 s without a first acknowledgement, then 1 and 2 s without one: the silent one is not chosen for 10 s.
    #[test]
    fn a_silent_receiver_is_passed_over() {
        let mut pacing = Pacing::new(0.0);
        pacing.choose(at(0), [1; 8], receivers(&[1, 2]));
        for (sent, due) in [(0, 1), (1, 3), (3, 7)] {
            pacing.on_sent(at(sent), 7);
            assert!(!pacing.may_send());
            pacing.on_acknowledged(at(sent), [2; 8], &[7]);
            assert!(!pacing.may_send(), "another's acknowledgement");
            assert_eq!(pacing.poll_timeout(), Some(at(due)));
            pacing.handle_timeout(at(due));
            assert!(pacing.is_acknowledging([1; 8]));
        }
        pacing.on_sent(at(7), 8);
        pacing.handle_timeout(at(15));
        assert!(pacing.may_send() && pacing.poll_timeout().is_none());
        pacing.choose(at(16), [2; 8], receivers(&[1, 2]));
        assert!(pacing.is_acknowledging([2; 8]));
        pacing.choose(at(25), [1; 8], receivers(&[1, 2]));
        assert!(pacing.is_acknowledging([1; 8]));
    }

    #[test]
    fn two_timeouts_are_enough_for_one_that_has_acknowledged() {
        let mut pacing = Pacing::new(0.0);
        pacing.choose(at(0), [1; 8], receivers(&[1, 2]));
        pacing.on_sent(at(0), 7);
        pacing.on_acknowledged(at(0), [1; 8], &[7]);
        for _ in 0..2 {
            let sent_at = pacing.window.poll_timeout().unwrap_or(at(1));
            pacing.on_sent(sent_at, 8);
            let due = pacing.poll_timeout().unwrap();
            pacing.handle_timeout(due);
        }
        assert_eq!(pacing.acknowledging, None);
    }
}
