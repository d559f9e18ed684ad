//! Missing numbers of a flow, requested by name over one of several paths.
//!
//! ```text
//!  room? ─▶ a number that is missing, out on no other path ─▶ on_sent ─┬─ Data ─▶ W + 1, then W + 1/W; marked: W/2, once a round trip
//!                                                                    └─ silence ─▶ free to be requested again, W/2
//! ```
//!
//! Each path has a window of its own \[SAID\]: neighbours who have chunks are one, the provider is another.

use core::time::Duration;
use std::collections::BTreeMap;

use namecast_units::Instant;

use crate::rate::{RoundTrip, RoundTripConfig};

/// Window at the start, and at most.
const INITIAL: f64 = 2.0;
const MAX_WINDOW: f64 = 1_024.0;
/// Least timeout, and least time beyond a round trip: queues fill while the window doubles, and what is requested twice comes twice.
const MIN_TIMEOUT: Duration = Duration::from_millis(500);

/// Numbers that are requested over one path.
///
/// A plain value: while there is [room](Self::has_room), request a missing number and call [`on_sent`](Self::on_sent).
#[derive(Clone, Debug)]
pub struct RepairWindow {
    window: f64,
    /// Whether each Data makes room for two, as no queue has built up.
    in_slow_start: bool,
    out: BTreeMap<u64, Instant>,
    round_trip: RoundTrip,
    min_round_trip: Duration,
    /// What left before counts no more: the window was cut for it.
    cut_at: Instant,
}

impl Default for RepairWindow {
    fn default() -> Self {
        Self {
            window: INITIAL,
            in_slow_start: true,
            out: BTreeMap::new(),
            round_trip: RoundTrip::new(RoundTripConfig::new(MIN_TIMEOUT, MIN_TIMEOUT)),
            min_round_trip: Duration::MAX,
            cut_at: Instant::ZERO,
        }
    }
}

impl RepairWindow {
    /// Returns whether one more may be out.
    pub fn has_room(&self) -> bool {
        (self.out.len() as f64) < self.window.floor()
    }

    /// Returns whether a number is out.
    pub fn is_out(&self, number: u64) -> bool {
        self.out.contains_key(&number)
    }

    /// Takes a number that is requested now.
    pub fn on_sent(&mut self, now: Instant, number: u64) {
        self.out.insert(number, now);
    }

    /// Takes Data of a number. Returns whether it was out.
    pub fn on_data(&mut self, now: Instant, number: u64, is_marked: bool) -> bool {
        let Some(sent_at) = self.out.remove(&number) else {
            return false;
        };
        let round_trip = now.since(sent_at);
        self.round_trip.on_sample(round_trip);
        self.min_round_trip = self.min_round_trip.min(round_trip);
        // A queue of a round trip's length: marks by its mean would come too late.
        self.in_slow_start &= round_trip <= self.min_round_trip * 2;
        if is_marked {
            self.cut(now, sent_at);
        } else {
            let step = if self.in_slow_start {
                1.0
            } else {
                1.0 / self.window
            };
            self.window = (self.window + step).min(MAX_WINDOW);
        }
        true
    }

    /// Takes a number whose Interest came back. Returns whether it was out.
    pub fn on_nack(&mut self, now: Instant, number: u64) -> bool {
        let sent_at = self.out.remove(&number);
        sent_at.inspect(|at| self.cut(now, *at)).is_some()
    }

    /// Returns numbers that are lost: they may be requested again. Early and repeated calls return none.
    pub fn take_lost(&mut self, now: Instant) -> Vec<u64> {
        let timeout = self.round_trip.timeout();
        let is_lost = |_: &u64, sent_at: &mut Instant| now.since(*sent_at) >= timeout;
        let lost: Vec<_> = self.out.extract_if(.., is_lost).collect();
        let last = lost.iter().map(|(_, sent_at)| *sent_at).max();
        if let Some(last) = last {
            let was_cut = self.cut_at > last;
            self.cut(now, last);
            if !was_cut {
                self.round_trip.back_off();
            }
        }
        lost.into_iter().map(|(number, _)| number).collect()
    }

    /// Returns when to call [`take_lost`](Self::take_lost) next, if ever.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let first = self.out.values().min()?;
        Some(*first + self.round_trip.timeout())
    }

    /// Halves the window for something that left at `sent_at`, unless that was done since.
    fn cut(&mut self, now: Instant, sent_at: Instant) {
        if sent_at >= self.cut_at {
            self.window = (self.window / 2.0).max(1.0);
            self.in_slow_start = false;
            self.cut_at = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// Sends until there is no room, from `first` on. Returns how many.
    fn fill(window: &mut RepairWindow, now: Instant, first: u64) -> u64 {
        let mut count = 0;
        while window.has_room() {
            window.on_sent(now, first + count);
            count += 1;
        }
        count
    }

    /// 2, 4, 8 at first; a mark among eight halves them once; then one more in a round trip.
    #[test]
    fn it_doubles_until_a_mark_and_grows_by_one_then() {
        let mut window = RepairWindow::default();
        assert_eq!(fill(&mut window, at(0), 0), 2);
        for number in 0..2 {
            assert!(window.on_data(at(10), number, false));
        }
        assert_eq!(fill(&mut window, at(10), 2), 4);
        for number in 2..6 {
            assert!(window.on_data(at(20), number, number == 3 || number == 4));
        }
        // 4, 5, cut to 2.5, not again, 2.5 + 1/2.5 = 2.9.
        assert!((window.window - 2.9).abs() < 1e-9, "{}", window.window);
        assert!(!window.on_data(at(20), 5, false), "it came already");
        assert_eq!(fill(&mut window, at(20), 6), 2);
        window.on_data(at(30), 6, false);
        assert!((window.window - (2.9 + 1.0 / 2.9)).abs() < 1e-9);
    }

    /// 40 ms, then 81: from four on it grows by one in a round trip.
    #[test]
    fn a_queue_ends_the_start() {
        let mut window = RepairWindow::default();
        fill(&mut window, at(0), 0);
        window.on_data(at(40), 0, false);
        window.on_data(at(80), 1, false);
        assert!((window.window - 4.0).abs() < 1e-9);
        window.on_sent(at(80), 2);
        window.on_data(at(161), 2, false);
        assert!((window.window - 4.25).abs() < 1e-9);
    }

    /// The timeout is 1 s before anything was measured, and doubles.
    #[test]
    fn what_is_lost_is_free_again() {
        let mut window = RepairWindow::default();
        fill(&mut window, at(0), 7);
        assert!(window.is_out(7) && !window.has_room());
        assert_eq!(window.poll_timeout(), Some(at(1_000)));
        assert!(window.take_lost(at(999)).is_empty());
        assert_eq!(window.take_lost(at(1_000)), [7, 8]);
        assert!(!window.is_out(7) && window.poll_timeout().is_none());
        assert_eq!(fill(&mut window, at(1_000), 7), 1);
        assert_eq!(window.poll_timeout(), Some(at(3_000)));
        assert!(window.on_nack(at(1_100), 7) && !window.on_nack(at(1_100), 7));
        assert!(window.has_room());
    }
}
