//! What many runs say together.

use namecast_units::Random;
use serde::{Deserialize, Serialize};

/// Resamples of the bootstrap. Beyond a few thousand, the interval's ends move by less than its width shows.
const RESAMPLES: usize = 2_000;
/// Share of resampled means that lie below the interval, and above it.
const TAIL: f64 = 0.025;
/// Makes the same interval of the same numbers every time.
const RESAMPLING_SEED: u64 = 0x006e_616d_6563_6173;

/// One metric over all its runs.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Statistics {
    /// Arithmetic mean.
    pub mean: f64,
    /// Lower end of the 95 % confidence interval of the mean: bootstrap, percentile method.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Sample standard deviation, with n − 1; 0 for a single run.
    pub deviation: f64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Runs that have a value.
    pub runs: usize,
    /// Runs without one: what the metric stands for did not happen in them.
    pub missing: usize,
}

impl Statistics {
    /// Sums up one value a run. `None` if no run has one.
    pub fn of(values: &[Option<f64>]) -> Option<Self> {
        let present: Vec<f64> = values.iter().copied().flatten().collect();
        if present.is_empty() {
            return None;
        }
        let mean = mean(&present);
        let squares: f64 = present
            .iter()
            .map(|value| (value - mean) * (value - mean))
            .sum();
        let freedom = (present.len() - 1).max(1) as f64;
        let (low, high) = interval(&present);
        Some(Self {
            mean,
            low,
            high,
            deviation: (squares / freedom).sqrt(),
            min: present.iter().copied().fold(f64::INFINITY, f64::min),
            max: present.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            runs: present.len(),
            missing: values.len() - present.len(),
        })
    }
}

/// Mean, by differences from the first value: equal values then have exactly themselves as mean.
fn mean(values: &[f64]) -> f64 {
    let first = values[0];
    let sum: f64 = values.iter().map(|value| value - first).sum();
    first + sum / values.len() as f64
}

/// The middle 95 % of the means of samples drawn with replacement.
fn interval(values: &[f64]) -> (f64, f64) {
    let mut random = Random::from_seed(RESAMPLING_SEED);
    let count = values.len() as u64;
    let mut sample = vec![0.0; values.len()];
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            for drawn in &mut sample {
                *drawn = values[random.below(count) as usize];
            }
            mean(&sample)
        })
        .collect();
    means.sort_by(f64::total_cmp);
    (quantile(&means, TAIL), quantile(&means, 1.0 - TAIL))
}

/// The value below which a share of the `sorted` values lies, interpolated between neighbours.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let position = share * (sorted.len() - 1) as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * (position - below as f64)
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "numbers worked by hand come out exactly")]
mod tests {
    use super::*;

    /// 2, 4, 4, 4, 5, 5, 7, 9: mean 40/8 = 5, squares 9+1+1+1+0+0+4+16 = 32, deviation √(32/7).
    #[test]
    fn the_textbook_sample() {
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0].map(Some);
        let statistics = Statistics::of(&values).unwrap();
        assert_eq!(
            (statistics.mean, statistics.min, statistics.max),
            (5.0, 2.0, 9.0)
        );
        assert_eq!((statistics.runs, statistics.missing), (8, 0));
        assert!((statistics.deviation - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
        // The bootstrap's standard error is √(32/8)/√8 = 0.7071, so the ends are near 5 ∓ 1.96 · 0.7071 = 3.61 and 6.39.
        assert!((3.4..=3.9).contains(&statistics.low), "{}", statistics.low);
        assert!(
            (6.1..=6.6).contains(&statistics.high),
            "{}",
            statistics.high
        );
    }

    #[test]
    fn one_value_and_equal_values_have_no_spread() {
        for values in [vec![Some(0.1)], vec![Some(0.1); 10]] {
            let statistics = Statistics::of(&values).unwrap();
            let Statistics {
                mean,
                low,
                high,
                deviation,
                ..
            } = statistics;
            assert_eq!((mean, low, high, deviation), (0.1, 0.1, 0.1, 0.0));
        }
        assert_eq!(Statistics::of(&[]), None);
    }

    #[test]
    fn runs_without_a_value_are_counted_and_not_averaged() {
        let statistics = Statistics::of(&[Some(1.0), None, Some(3.0)]).unwrap();
        assert_eq!(
            (statistics.mean, statistics.runs, statistics.missing),
            (2.0, 2, 1)
        );
        assert_eq!(Statistics::of(&[None, None]), None);
    }

    /// Half of the resamples of {0, 1} have one of each, a quarter two zeros, a quarter two ones: both ends are reached.
    #[test]
    fn two_values_reach_from_one_to_the_other() {
        let statistics = Statistics::of(&[Some(0.0), Some(1.0)]).unwrap();
        assert_eq!(
            (statistics.low, statistics.mean, statistics.high),
            (0.0, 0.5, 1.0)
        );
    }

    /// An interval of 95 % holds the true mean in 95 of 100 cases, and somewhat fewer for a percentile bootstrap of ten.
    #[test]
    fn the_interval_holds_the_truth_about_as_often_as_it_says() {
        let mut random = Random::from_seed(7);
        let held = (0..400).filter(|_| {
            let values: Vec<_> = (0..10).map(|_| Some(random.unit())).collect();
            let statistics = Statistics::of(&values).unwrap();
            statistics.low <= 0.5 && 0.5 <= statistics.high
        });
        let held = held.count();
        assert!((340..=390).contains(&held), "{held} of 400");
    }

    #[test]
    fn quantiles_interpolate() {
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.5), 2.0);
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.75), 3.0);
        assert_eq!(quantile(&[1.0], 0.975), 1.0);
    }
}
