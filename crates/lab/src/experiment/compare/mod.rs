//! `namecast experiment compare`: what differs between two folders of results.
//!
//! ```text
//!  A/**/summary.json, runs.csv ─┐
//!                               ├─▶ verdicts that changed, values with tests of their difference, what only one has
//!  B/**/summary.json, runs.csv ─┘
//! ```
//!
//! Values with the same seeds in both are compared run by run, as what differs by chance is then the same in both.

mod results;
mod significance;
mod table;
mod verdicts;

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;

use super::statistics::Statistics;
use results::Results;
pub use significance::Test;
use significance::{FALSE_DISCOVERY_RATE, paired, significant_of, welch};
use verdicts::changed;
pub use verdicts::{Judged, VerdictChange};

/// What two folders of results, A and B, differ in.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Comparison {
    /// Claims and checks of both whose verdict changed, those that became worse first.
    pub verdicts: Vec<VerdictChange>,
    /// Values of both, those whose difference is significant first.
    pub values: Vec<ValueChange>,
    /// What only A has.
    pub only_a: Vec<String>,
    /// What only B has.
    pub only_b: Vec<String>,
    /// What could not be read or compared, and why.
    pub skipped: Vec<String>,
}

/// One metric at one point of the sweeps, in both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ValueChange {
    /// The experiment's ID; both, if they differ.
    pub experiment: String,
    /// As in `summary.json`: the metric, and a label of each sweep.
    pub name: String,
    /// In A; `None` if no run has a value.
    pub a: Option<Statistics>,
    /// In B.
    pub b: Option<Statistics>,
    /// Mean of B less that of A; between the runs that both have a value of, if the test is paired.
    pub difference: Option<f64>,
    /// How likely a difference as large would be by chance; `None` where there are too few runs to tell.
    pub p: Option<f64>,
    /// How that was found out.
    pub test: Test,
    /// Whether anything differs, by chance or not.
    pub differs: bool,
    /// Whether the difference is significant: of those that are said to be, one in twenty is by chance at most.
    pub significant: bool,
}

impl Comparison {
    /// Reads and compares all results below two folders whose ID one of `patterns` means; all of them without patterns.
    /// Experiments are compared with those of the same ID, or with each other if each folder has a single one.
    ///
    /// # Errors
    /// A folder cannot be read or has no results.
    pub fn new(a: &Path, b: &Path, patterns: &[String]) -> Result<Self, String> {
        let mut comparison = Self::default();
        let mut read = |folder| Results::below(folder, patterns, &mut comparison.skipped);
        let (mut a, mut b) = (read(a)?, read(b)?);
        if let ([one], [other]) = (&a[..], &b[..]) {
            comparison.add(one, other);
        } else {
            let ids = |of: &[Results]| -> BTreeSet<String> {
                of.iter().map(|one| one.summary.id.clone()).collect()
            };
            let (ids_a, ids_b) = (ids(&a), ids(&b));
            let lonely = |id: &String| format!("experiment {id}");
            (comparison.only_a).extend(ids_a.difference(&ids_b).map(lonely));
            (comparison.only_b).extend(ids_b.difference(&ids_a).map(lonely));
            a.retain(|one| ids_b.contains(&one.summary.id));
            b.retain(|one| ids_a.contains(&one.summary.id));
            for (one, other) in a.iter().zip(&b) {
                comparison.add(one, other);
            }
        }
        comparison.verdicts.sort_by_key(|change| !change.worse);
        comparison.judge();
        Ok(comparison)
    }

    /// Returns a table for people: verdicts that changed, values that differ (or `all` of them), and what only one has.
    pub fn text(&self, all: bool) -> String {
        table::text(self, all)
    }

    fn add(&mut self, a: &Results, b: &Results) {
        let experiment = match (&a.summary.id, &b.summary.id) {
            (a, b) if a == b => a.clone(),
            (a, b) => format!("{a} → {b}"),
        };
        if a.summary.quick || b.summary.quick {
            let note = format!("verdicts of {experiment}: a quick run claims nothing");
            self.skipped.push(note);
        } else {
            let verdicts = changed(&experiment, &a.summary, &b.summary);
            self.verdicts.extend(verdicts.changes);
            self.only_a.extend(verdicts.only_a);
            self.only_b.extend(verdicts.only_b);
        }
        let in_both = (a.summary.metrics.keys()).filter(|name| b.has(name));
        let values = in_both.map(|name| compare(&experiment, name, a, b));
        self.values.extend(values);
        self.only_a.extend(lonely(&experiment, a, b));
        self.only_b.extend(lonely(&experiment, b, a));
    }

    /// Finds out which differences are significant, and puts these first.
    fn judge(&mut self) {
        let differing = self.values.iter().filter(|value| value.differs);
        let all: Vec<f64> = differing.filter_map(|value| value.p).collect();
        let bound = significant_of(&all, FALSE_DISCOVERY_RATE);
        for value in &mut self.values {
            value.significant = value.differs && value.p.is_some_and(|p| p <= bound);
        }
        self.values.sort_by_key(|value| !value.significant);
    }
}

fn compare(experiment: &str, name: &str, a: &Results, b: &Results) -> ValueChange {
    let (in_a, in_b) = (a.statistics(name), b.statistics(name));
    let pairs = Results::pairs(a, b, name);
    let (test, tested) = match &pairs {
        Some(pairs) => (Test::Paired, paired(pairs)),
        None => (Test::Welch, welch(in_a.as_ref(), in_b.as_ref())),
    };
    let run_differs = pairs.is_some_and(|pairs| pairs.iter().any(|[a, b]| a != b));
    ValueChange {
        experiment: experiment.to_owned(),
        name: name.to_owned(),
        a: in_a,
        b: in_b,
        difference: tested.difference,
        p: tested.p,
        test,
        differs: run_differs || in_a != in_b,
        significant: false,
    }
}

/// What `one` has measured and `other` has not: whole points, whole metrics, and single values.
fn lonely(experiment: &str, one: &Results, other: &Results) -> Vec<String> {
    let (points, metrics) = other.points_and_metrics();
    let mut known = BTreeSet::new();
    let missing = (one.summary.metrics.keys()).filter(|name| !other.has(name));
    missing
        .map(|name| match one.split(name) {
            Some((_, point)) if !points.contains(point) => format!("{experiment}: point {point}"),
            Some((metric, _)) if !metrics.contains(metric) => {
                format!("{experiment}: metric {metric}")
            }
            _ => format!("{experiment}: value {name}"),
        })
        .filter(|what| known.insert(what.clone()))
        .collect()
}
