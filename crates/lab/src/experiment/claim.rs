//! What papers say, and whether it came out.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::figure::{bound, significant};
use super::file::Claim;
use super::measured::Evaluated;
use super::statistics::Statistics;

/// Share of a point's runs in which a claim must hold for it to hold there.
const MIN_SHARE: f64 = 0.9;

/// Whether a claim came out.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// In nine of ten runs of each point, or more.
    Holds,
    /// So at some of the points only.
    Differs,
    /// At none.
    DidNotComeOut,
}

impl Verdict {
    /// As people read it.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Differs => "differs",
            Self::DidNotComeOut => "did not come out",
        }
    }
}

/// What a paper says, and what was measured.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ClaimResult {
    /// What the paper says.
    pub says: String,
    /// Where.
    pub place: String,
    /// Metric or expression that it was judged by, asterisks included.
    pub metric: String,
    /// Smallest value with which it holds.
    pub min: Option<f64>,
    /// Largest value with which it holds.
    pub max: Option<f64>,
    /// What was measured at each point.
    pub found: Vec<Found>,
    /// Whether it holds.
    pub verdict: Verdict,
    /// Why it came out so.
    pub because: String,
}

/// What was measured at one point.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Found {
    /// The expression there.
    pub name: String,
    /// Mean over the runs and its 95 % confidence interval; none if no run has a value.
    pub mean: Option<[f64; 3]>,
    /// Share of the runs in which the claim holds. A run without a value is one of them only if the claim says so.
    pub share: f64,
}

impl ClaimResult {
    /// Judges what was found at all points that the claim speaks of.
    pub(super) fn new(claim: &Claim, found: &[Evaluated]) -> Self {
        let holds = |value: f64| {
            claim.min.is_none_or(|min| value >= min) && claim.max.is_none_or(|max| value <= max)
        };
        let found: Vec<Found> = found
            .iter()
            .map(|Evaluated { name, runs }| {
                let met = runs.iter().filter(|run| run.map_or(claim.never, holds));
                let statistics = Statistics::of(runs);
                Found {
                    name: name.clone(),
                    mean: statistics.map(|found| [found.mean, found.low, found.high]),
                    share: met.count() as f64 / runs.len().max(1) as f64,
                }
            })
            .collect();
        let points = found.iter().filter(|found| found.share >= MIN_SHARE);
        let verdict = match points.count() {
            0 => Verdict::DidNotComeOut,
            points if points == found.len() => Verdict::Holds,
            _ => Verdict::Differs,
        };
        Self {
            says: claim.says.clone(),
            place: claim.place.clone(),
            metric: claim.metric.get_ref().clone(),
            min: claim.min,
            max: claim.max,
            found,
            verdict,
            because: claim.because.clone(),
        }
    }

    /// Returns whether another is the same claim, whatever came out.
    pub(super) fn is_same_claim(&self, other: &Self) -> bool {
        (&self.place, &self.says, &self.metric) == (&other.place, &other.says, &other.metric)
    }

    /// Returns what was measured: one value with its interval, or the least and the greatest of several points.
    pub(super) fn measured(&self) -> String {
        let means: Vec<[f64; 3]> = self.found.iter().filter_map(|found| found.mean).collect();
        let missing = self.found.len() - means.len();
        let mut text = match means[..] {
            [] => "never happened".to_owned(),
            [[mean, low, high]] => format!(
                "{} ({} … {})",
                significant(mean),
                significant(low),
                significant(high)
            ),
            _ => {
                let values = || means.iter().map(|[mean, ..]| *mean);
                let least = values().fold(f64::INFINITY, f64::min);
                let most = values().fold(f64::NEG_INFINITY, f64::max);
                format!("{} … {}", significant(least), significant(most))
            }
        };
        if missing > 0 && !means.is_empty() {
            let _ = write!(text, ", never at {missing} of {} points", self.found.len());
        }
        let held = |found: &&Found| found.share >= MIN_SHARE;
        if self.verdict == Verdict::Differs {
            let held = self.found.iter().filter(held).count();
            let _ = write!(text, "; at {held} of {} points", self.found.len());
        }
        text
    }

    /// Returns with which values it holds.
    pub(super) fn bound(&self) -> String {
        bound(self.min, self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(points: &[&[Option<f64>]]) -> ClaimResult {
        let claim: Claim = toml::from_str(
            "says = 'a | b'\nplace = 'Fig. 1'\nmetric = 'u/*'\nmin = 1.0\nbecause = 'it is'",
        )
        .expect("a claim");
        let found: Vec<Evaluated> = points
            .iter()
            .enumerate()
            .map(|(index, runs)| Evaluated {
                name: format!("u/{index}"),
                runs: runs.to_vec(),
            })
            .collect();
        ClaimResult::new(&claim, &found)
    }

    #[test]
    fn nine_runs_of_ten_hold_and_eight_do_not() {
        let mut runs = [Some(1.0); 10];
        runs[0] = Some(0.9);
        assert_eq!(judged(&[&runs]).verdict, Verdict::Holds);
        runs[1] = None;
        assert_eq!(judged(&[&runs]).verdict, Verdict::DidNotComeOut);
    }

    #[test]
    fn what_never_happened_holds_only_if_the_claim_says_so() {
        let text = "says = 'late'\nplace = 'x'\nmetric = 'u'\nmin = 9.0\n";
        for (never, verdict) in [(true, Verdict::Holds), (false, Verdict::DidNotComeOut)] {
            let claim: Claim = toml::from_str(&format!("{text}never = {never}")).expect("a claim");
            let found = Evaluated {
                name: "u".to_owned(),
                runs: vec![None; 10],
            };
            assert_eq!(ClaimResult::new(&claim, &[found]).verdict, verdict);
        }
    }

    #[test]
    fn some_points_make_a_difference_and_are_counted() {
        let claim = judged(&[&[Some(2.0)], &[Some(0.5)], &[None]]);
        assert_eq!(claim.verdict, Verdict::Differs);
        assert_eq!(
            claim.measured(),
            "0.5 … 2, never at 1 of 3 points; at 1 of 3 points"
        );
    }
}
