//! Whether DRD′ is steady, and whether it has moved since it was looked at last.

use std::collections::VecDeque;

use core::time::Duration;

/// Values that mean and deviation are taken over.
const WINDOW: usize = 7;
/// Steady once deviation / mean was at most this, so many times in a row.
const STEADY: f64 = 0.12;
const STEADY_TIMES: u32 = 3;
/// A value this far from the mean, as a share of it, is a change by itself.
const LARGE: f64 = 0.20;
/// Values this far from it are one when they come so many times in a row.
const SMALL: f64 = 0.08;
const SMALL_TIMES: u32 = 7;

/// Tells changes of DRD′ from its variation, as NDN-RTC 1.4.4 does.
#[derive(Clone, Debug, Default)]
pub struct ChangeEstimator {
    values: VecDeque<f64>,
    steady: u32,
    small: u32,
    has_changed: bool,
}

impl ChangeEstimator {
    /// Takes the DRD′ of one sample.
    pub fn on_value(&mut self, value: Duration) {
        let value = value.as_secs_f64();
        if self.is_steady() {
            let mean = self.mean();
            let off = (value - mean).abs() / mean;
            self.small = if (SMALL..=LARGE).contains(&off) {
                self.small + 1
            } else {
                0
            };
            self.has_changed |= off > LARGE || self.small >= SMALL_TIMES;
        }
        self.values.push_back(value);
        if self.values.len() > WINDOW {
            self.values.pop_front();
        }
        let is_even = self.values.len() == WINDOW && self.deviation() <= STEADY * self.mean();
        if is_even {
            self.steady = self.steady.saturating_add(1);
        } else {
            (self.steady, self.small) = (0, 0);
        }
    }

    /// Returns whether DRD′ is steady.
    pub const fn is_steady(&self) -> bool {
        self.steady >= STEADY_TIMES
    }

    /// Returns whether it has changed since [`forget_change`](Self::forget_change).
    pub const fn has_changed(&self) -> bool {
        self.has_changed
    }

    /// Looks for the next change.
    pub const fn forget_change(&mut self) {
        self.has_changed = false;
        self.small = 0;
    }

    fn mean(&self) -> f64 {
        self.values.iter().sum::<f64>() / self.values.len() as f64
    }

    fn deviation(&self) -> f64 {
        let mean = self.mean();
        let squares: f64 = self.values.iter().map(|v| (v - mean) * (v - mean)).sum();
        (squares / (self.values.len() - 1) as f64).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(estimator: &mut ChangeEstimator, millis: u64, times: u32) {
        (0..times).for_each(|_| estimator.on_value(Duration::from_millis(millis)));
    }

    /// Seven values fill the window, the ninth is the third even one.
    #[test]
    fn steady_after_a_full_window_and_three_even_values() {
        let mut estimator = ChangeEstimator::default();
        feed(&mut estimator, 100, 8);
        assert!(!estimator.is_steady());
        feed(&mut estimator, 100, 1);
        assert!(estimator.is_steady() && !estimator.has_changed());
    }

    /// 121 of 100 is a change at once, 119 is not; one value of 121 among 100s leaves deviation 7.9 / 103 = 0.077: steady.
    #[test]
    fn one_large_step_is_a_change() {
        for (step, changed) in [(121, true), (119, false), (79, true), (81, false)] {
            let mut estimator = ChangeEstimator::default();
            feed(&mut estimator, 100, 9);
            feed(&mut estimator, step, 1);
            assert_eq!(estimator.has_changed(), changed, "{step}");
        }
        let mut estimator = ChangeEstimator::default();
        feed(&mut estimator, 100, 9);
        feed(&mut estimator, 121, 1);
        estimator.forget_change();
        assert!(estimator.is_steady() && !estimator.has_changed());
    }

    /// The mean follows a step of 10 %: only a few values are off by 8 % of it, so it is no change.
    #[test]
    fn a_small_step_counts_only_while_it_is_off_the_mean() {
        let mut estimator = ChangeEstimator::default();
        feed(&mut estimator, 100, 9);
        feed(&mut estimator, 110, 20);
        assert!(!estimator.has_changed());
        // Growing by 3 % each time, the value stays 9 to 12 % above the mean of the seven before.
        let mut value = 100_000;
        for _ in 0..12 {
            value += value * 3 / 100;
            estimator.on_value(Duration::from_micros(value));
        }
        assert!(estimator.has_changed());
    }

    #[test]
    fn what_varies_widely_is_not_steady() {
        let mut estimator = ChangeEstimator::default();
        for step in 0..50 {
            feed(&mut estimator, 60 + step % 2 * 80, 1);
            assert!(!estimator.is_steady() && !estimator.has_changed());
        }
    }
}
