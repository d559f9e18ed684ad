//! How long before the last moment an Interest leaves.

use std::cmp::Reverse;
use std::collections::VecDeque;

use core::time::Duration;

use namecast_units::{Instant, WindowedMinimum};

/// What timers and queues of a quiet path may cost.
const LEAST: Duration = Duration::from_millis(5);
/// More than this is no variation of the path.
const MOST: Duration = Duration::from_millis(500);
/// Samples whose Interest has left and that have not come; beyond it, nothing is learnt from the oldest.
const MAX_LEFT: usize = 256;

/// The time for which Interests wait at the producer, on purpose: what they were late by lately, and a little more.
///
/// ```text
///         Interest leaves        reaches the producer      sample is published
///               ├──────── DRD_up ────────┼──── waited ────────────┤
///               ├──── variation ─────┤   │
///               └ margin = the most that was needed in the last 10 s + 5 ms
/// ```
#[derive(Clone, Debug)]
pub struct Margin {
    /// Margins with which Interests left, by sample.
    left: VecDeque<(u64, Duration)>,
    /// By how much Interests came later than planned (a minimum in reverse).
    needed: WindowedMinimum<Reverse<Duration>>,
    /// Before anything is known.
    initial: Duration,
    is_known: bool,
}

impl Margin {
    /// A margin of `initial` and a little more until the first Interest has told.
    pub fn new(initial: Duration) -> Self {
        Self {
            left: VecDeque::new(),
            needed: WindowedMinimum::new(Duration::from_secs(1), 10),
            initial,
            is_known: false,
        }
    }

    /// Returns the margin now.
    pub fn current(&self, now: Instant) -> Duration {
        if !self.is_known {
            return self.initial + LEAST;
        }
        let needed = self
            .needed
            .minimum(now)
            .map_or(Duration::ZERO, |most| most.0);
        (needed + LEAST).min(MOST)
    }

    /// Records that the Interest for sample `sequence` left with `margin`.
    pub fn on_left(&mut self, sequence: u64, margin: Duration) {
        self.left.push_back((sequence, margin));
        if self.left.len() > MAX_LEFT {
            self.left.pop_front();
        }
    }

    /// Records how long that Interest waited for its sample.
    pub fn on_waited(&mut self, now: Instant, sequence: u64, waited: Duration) {
        if let Some(margin) = self.margin_of(sequence) {
            self.is_known = true;
            self.needed
                .push(now, Reverse(margin.saturating_sub(waited)));
        }
    }

    /// Records that it came `late` after its sample was published, at most.
    pub fn on_late(&mut self, now: Instant, sequence: u64, late: Duration) {
        if let Some(margin) = self.margin_of(sequence) {
            self.is_known = true;
            self.needed.push(now, Reverse((margin + late).min(MOST)));
        }
    }

    fn margin_of(&mut self, sequence: u64) -> Option<Duration> {
        let at = self.left.iter().position(|(other, _)| *other == sequence)?;
        self.left.remove(at).map(|(_, margin)| margin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consumer::fixtures::{at, ms};

    /// Left 40 ms early and waited 40: nothing was needed. Waited 22 of 40: 18 are. 10 late with 5: 15 are, which is less.
    #[test]
    fn the_margin_is_the_most_that_was_needed_and_five() {
        let mut margin = Margin::new(ms(40));
        assert_eq!(margin.current(at(0)), ms(45));
        margin.on_left(1, ms(40));
        margin.on_left(2, ms(40));
        margin.on_waited(at(100), 1, ms(40));
        assert_eq!(margin.current(at(100)), ms(5));
        margin.on_waited(at(140), 2, ms(22));
        assert_eq!(margin.current(at(140)), ms(23));
        margin.on_left(3, ms(5));
        margin.on_late(at(200), 3, ms(10));
        assert_eq!(margin.current(at(200)), ms(23));
        // Ten seconds later it is forgotten.
        assert_eq!(margin.current(at(10_100)), ms(5));
    }

    /// What was learnt from Interests that left under an older margin must not add up.
    #[test]
    fn interests_under_way_are_judged_by_their_own_margin() {
        let mut margin = Margin::new(ms(5));
        (0..6).for_each(|sample| margin.on_left(sample, ms(5)));
        for sample in 0..6 {
            margin.on_late(at(sample * 40), sample, ms(20));
        }
        assert_eq!(margin.current(at(200)), ms(30));
    }

    #[test]
    fn a_sample_that_is_not_known_or_told_twice_teaches_nothing() {
        let mut margin = Margin::new(ms(40));
        margin.on_waited(at(0), 9, ms(0));
        assert_eq!(margin.current(at(0)), ms(45));
        (0..1_000).for_each(|sample| margin.on_left(sample, ms(5)));
        assert!(margin.left.len() <= MAX_LEFT);
        margin.on_late(at(0), 999, Duration::MAX / 2);
        margin.on_late(at(0), 999, Duration::MAX / 2);
        assert_eq!(margin.current(at(0)), MOST);
    }
}
