//! Whether a difference is more than chance.

use serde::Serialize;
use special::Beta;

use crate::experiment::statistics::Statistics;

/// Of all differences that are said to be significant, the share that may be by chance.
pub(super) const FALSE_DISCOVERY_RATE: f64 = 0.05;

/// How likely a difference is by chance, by Student's t. Where runs do not scatter at all, which it takes for certainty, it is by how
/// many ways there are to exchange runs between A and B: two runs of each that agree prove little.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Test {
    /// Over the differences of runs with the same seed.
    Paired,
    /// Over the runs of both, whose variances may differ: Welch's.
    Welch,
}

/// What a test found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Tested {
    /// Mean difference, B less A.
    pub(super) difference: Option<f64>,
    /// How likely one as large would be by chance, in either direction.
    pub(super) p: Option<f64>,
}

/// Tests the differences of pairs: t = mean / (deviation / √n), with n − 1 degrees of freedom. Pairs that lack a value do not count.
pub(super) fn paired(pairs: &[[Option<f64>; 2]]) -> Tested {
    let differences = pairs.iter().filter_map(|[a, b]| Some(Some((*b)? - (*a)?)));
    let differences: Vec<Option<f64>> = differences.collect();
    let Some(found) = Statistics::of(&differences) else {
        return Tested::default();
    };
    let runs = found.runs as f64;
    let error = found.deviation / runs.sqrt();
    Tested {
        difference: Some(found.mean),
        // Each pair the one way or the other.
        p: two_sided(found.mean, error, runs - 1.0, 2.0_f64.powf(1.0 - runs)),
    }
}

/// Tests two means by Welch's t-test.
///
/// ```text
/// t = (mean_b − mean_a) / √(v_a + v_b),   v = deviation² / n
/// degrees of freedom = (v_a + v_b)² / (v_a² / (n_a − 1) + v_b² / (n_b − 1))
/// ```
pub(super) fn welch(a: Option<&Statistics>, b: Option<&Statistics>) -> Tested {
    let (Some(a), Some(b)) = (a, b) else {
        return Tested::default();
    };
    let difference = b.mean - a.mean;
    let variance = |of: &Statistics| of.deviation * of.deviation / of.runs as f64;
    let (of_a, of_b) = (variance(a), variance(b));
    let part = |variance: f64, of: &Statistics| variance * variance / (of.runs as f64 - 1.0);
    let sum = of_a + of_b;
    let freedom = match a.runs.min(b.runs) {
        0 | 1 => 0.0,
        _ if sum == 0.0 => (a.runs + b.runs - 2) as f64,
        _ => sum * sum / (part(of_a, a) + part(of_b, b)),
    };
    Tested {
        difference: Some(difference),
        p: two_sided(
            difference,
            sum.sqrt(),
            freedom,
            2.0 / choices(a.runs, b.runs),
        ),
    }
}

/// In how many ways the runs of both could be dealt to A and B.
fn choices(a: usize, b: usize) -> f64 {
    (1..=b).map(|run| (a + run) as f64 / run as f64).product()
}

/// The probability of a mean at least so far from zero; `None` without degrees of freedom, `exchanged` if runs do not scatter.
///
/// ```text
/// p = I(ν / (ν + t²); ν/2, ½),   I: the regularised incomplete beta function, ν: degrees of freedom
/// ```
fn two_sided(mean: f64, error: f64, freedom: f64, exchanged: f64) -> Option<f64> {
    /// As a share of the mean, what may come from rounding.
    const ROUNDING: f64 = 1e-12;
    if freedom <= 0.0 {
        return None;
    }
    if error <= ROUNDING * mean.abs() {
        return Some(if mean == 0.0 { 1.0 } else { exchanged });
    }
    let t = mean / error;
    let (x, half) = (freedom / (freedom + t * t), freedom / 2.0);
    Some(x.inc_beta(half, 0.5, half.ln_beta(0.5)))
}

/// Returns the largest of the probabilities that is significant if a share `rate` of those that are may be by chance: by
/// Benjamini and Hochberg. Of none it is below zero.
pub(super) fn significant_of(all: &[f64], rate: f64) -> f64 {
    let mut sorted = all.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let ranked = sorted.iter().enumerate();
    let mut passing = ranked.filter(|(index, p)| **p <= rate * (*index as f64 + 1.0) / count);
    passing.next_back().map_or(-1.0, |(_, p)| *p)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: Option<f64>, expected: f64) {
        let found = found.expect("there are enough runs");
        assert!((found - expected).abs() < 5e-4, "{found}, not {expected}");
    }

    /// "Student", The Probable Error of a Mean, 1908: hours of sleep gained by ten patients with each of two drugs.
    const SLEEP: [[f64; 10]; 2] = [
        [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0],
        [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4],
    ];

    /// Known results of these data: paired t = 4.0621 with 9 degrees of freedom, p = 0.002833; Welch t = 1.8608 with 17.776,
    /// p = 0.07939.
    #[test]
    fn students_own_example() {
        let [first, second] = SLEEP;
        let pairs: Vec<_> = first.iter().zip(&second).collect();
        let pairs: Vec<_> = pairs.iter().map(|(a, b)| [Some(**a), Some(**b)]).collect();
        close(paired(&pairs).difference, 1.58);
        close(paired(&pairs).p, 0.002_833);
        let of = |values: [f64; 10]| Statistics::of(&values.map(Some)).expect("ten values");
        let unpaired = welch(Some(&of(first)), Some(&of(second)));
        close(unpaired.difference, 1.58);
        close(unpaired.p, 0.079_39);
    }

    /// Two pairs can be exchanged in four ways, of which two have differences as large. Two runs each can be dealt in six ways.
    #[test]
    fn runs_that_do_not_scatter_prove_little_and_single_runs_nothing() {
        let pair = |a: f64, b: f64| [Some(a), Some(b)];
        assert_eq!(paired(&[pair(1.0, 1.0), pair(2.0, 2.0)]).p, Some(1.0));
        assert_eq!(paired(&[pair(1.0, 1.5), pair(2.0, 2.5)]).p, Some(0.5));
        // The second pair lacks a value.
        assert_eq!(paired(&[pair(1.0, 2.0), [None, Some(1.0)]]).p, None);
        assert_eq!(paired(&[]), Tested::default());
        let of = |values: &[f64]| {
            let values: Vec<_> = values.iter().map(|value| Some(*value)).collect();
            Statistics::of(&values)
        };
        let p = |a: &[f64], b: &[f64]| welch(of(a).as_ref(), of(b).as_ref()).p;
        assert_eq!(p(&[1.0], &[2.0, 2.0]), None);
        close(p(&[1.0, 1.0], &[2.0, 2.0]), 2.0 / 6.0);
        assert_eq!(p(&[2.0, 2.0], &[2.0, 2.0]), Some(1.0));
    }

    /// Of five, the bounds are 0.01, 0.02, 0.03, 0.04 and 0.05: the third misses its own, but the fourth meets it, so all four count.
    #[test]
    fn a_step_that_is_missed_counts_if_a_later_one_is_met() {
        let all = [0.001, 0.9, 0.032, 0.019, 0.039];
        assert!((significant_of(&all, 0.05) - 0.039).abs() < 1e-12);
        assert!(significant_of(&[0.06, 0.2], 0.05) < 0.0);
        assert!(significant_of(&[], 0.05) < 0.0);
    }
}
