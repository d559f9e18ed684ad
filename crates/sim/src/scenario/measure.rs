//! What is read off a run.

use std::collections::BTreeMap;

use namecast_units::{Bitrate, Duration};
use serde::{Deserialize, Serialize};

use super::flows::Flow;

/// A part of the run over which is averaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Window {
    /// Its start.
    #[serde(with = "namecast_units::duration")]
    pub from: Duration,
    /// Its end; none: the end of the run.
    #[serde(default, with = "namecast_units::optional_duration")]
    pub until: Option<Duration>,
}

/// How long the first flow needs to follow a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Convergence {
    /// Which change, counted from 1.
    pub change: usize,
    /// The estimate has converged when it is at most this.
    #[serde(default)]
    pub below: Option<Bitrate>,
    /// The estimate has converged when it is at least this.
    #[serde(default)]
    pub above: Option<Bitrate>,
}

/// Jain's fairness index: 1 if all are equal, 1/n if one has everything. Of nothing at all it is 1.
pub(super) fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    if squares == 0.0 {
        return 1.0;
    }
    sum * sum / (shares.len() as f64 * squares)
}

/// Metrics of each kind of flows, from the goodput of each flow and of `all` that is received: `kind-K-goodput` is the mean of its
/// flows, `kind-K-share` what they have together of all, `kind-K-jain` Jain's index among them.
pub(super) fn of_kinds(flows: &[Flow], goodputs: &[f64], all: f64) -> Vec<(String, f64)> {
    let mut kinds: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let copies = flows
        .iter()
        .flat_map(|flow| (0..flow.count).map(move |_| flow));
    for (flow, goodput) in copies.zip(goodputs) {
        if let Some(kind) = &flow.kind {
            kinds.entry(kind).or_default().push(*goodput);
        }
    }
    let metrics = kinds.into_iter().flat_map(|(kind, goodputs)| {
        let sum: f64 = goodputs.iter().sum();
        let values = [
            ("goodput", sum / goodputs.len() as f64),
            ("share", sum / all),
            ("jain", jain(&goodputs)),
        ];
        values.map(|(name, value)| (format!("kind-{kind}-{name}"), value))
    });
    metrics.collect()
}

/// The first time, after `from`, at which a curve has crossed its bound; none if it never does.
pub(super) fn crossing(points: &[(f64, f64)], from: f64, convergence: &Convergence) -> Option<f64> {
    let bound = |rate: Bitrate| rate.as_bps() as f64 / 1e6;
    let reached = |value: f64| {
        convergence.below.is_none_or(|below| value <= bound(below))
            && convergence.above.is_none_or(|above| value >= bound(above))
    };
    let after = points.iter().filter(|(at, _)| *at > from);
    let mut found = after.filter(|(_, value)| reached(*value));
    found.next().map(|(at, _)| at - from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (1 + 2 + 3)² / (3 · (1 + 4 + 9)) = 36 / 42.
    #[test]
    fn jain_by_hand() {
        assert!((jain(&[1.0, 2.0, 3.0]) - 36.0 / 42.0).abs() < 1e-12);
        assert!((jain(&[5.0, 0.0, 0.0, 0.0]) - 0.25).abs() < 1e-12);
        assert!((jain(&[0.0, 0.0]) - 1.0).abs() < 1e-12);
    }

    /// Two kinds of 1 and 3, and of 6, beside two flows without a kind of 2 each.
    #[test]
    fn kinds_share_what_all_receive() {
        let flow = |count, kind: Option<&str>| Flow {
            count,
            kind: kind.map(str::to_owned),
            ..Flow::default()
        };
        let flows = [flow(2, Some("a")), flow(2, None), flow(1, Some("b"))];
        let found = of_kinds(&flows, &[1.0, 3.0, 2.0, 2.0, 6.0], 16.0);
        let expected = [
            ("kind-a-goodput", 2.0),
            ("kind-a-share", 0.25),
            ("kind-a-jain", 0.8),
            ("kind-b-goodput", 6.0),
            ("kind-b-share", 0.375),
            ("kind-b-jain", 1.0),
        ];
        assert_eq!(
            found,
            expected.map(|(name, value)| (name.to_owned(), value))
        );
    }

    #[test]
    fn a_crossing_counts_from_the_change() {
        let points = [(1.0, 10.0), (2.0, 6.0), (2.5, 5.0), (3.0, 4.0)];
        let below = |rate| Convergence {
            change: 1,
            below: Some(Bitrate::mbps(rate)),
            above: None,
        };
        assert_eq!(crossing(&points, 2.0, &below(5)), Some(0.5));
        assert_eq!(crossing(&points, 1.0, &below(3)), None);
        let above = Convergence {
            change: 1,
            below: None,
            above: Some(Bitrate::mbps(5)),
        };
        assert_eq!(crossing(&points, 0.0, &above), Some(1.0));
    }
}
