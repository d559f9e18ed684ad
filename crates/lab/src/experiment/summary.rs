//! `summary.json`: what an experiment found, for programs and for the report.

use std::collections::BTreeMap;

use namecast_command::source::Problem;
use serde::{Deserialize, Serialize};

use super::claim::ClaimResult;
use super::file::Of;
use super::key;
use super::measured::{Evaluated, Measured, Runs};
use super::plan::Experiment;
use super::statistics::Statistics;
use super::tree::Scale;

/// What an experiment found. The same file and seed give the same bytes.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Summary {
    /// Such as `arc/figure05`.
    pub id: String,
    /// From which the seeds of all runs follow.
    pub seed: u64,
    /// Runs of each point.
    pub runs: u32,
    /// Means over the runs; `null` where no run has a value.
    pub metrics: BTreeMap<String, Option<f64>>,
    /// What the paper reports: the same keys.
    pub paper: BTreeMap<String, Option<f64>>,
    /// What would be ideal: the same keys.
    pub ideal: BTreeMap<String, Option<f64>>,
    /// What must hold; empty in a quick run, which claims nothing.
    pub checks: Vec<CheckResult>,
    /// What the paper says, and whether it came out; empty in a quick run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<ClaimResult>,
    /// Whether runs were shorter and fewer than the file states.
    #[serde(default)]
    pub quick: bool,
    /// By which the file's quantities were multiplied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scales: Vec<String>,
    /// What is shown.
    #[serde(default)]
    pub title: String,
    /// Figure or table of the paper.
    #[serde(default)]
    pub item: String,
    /// Key of the paper.
    #[serde(default)]
    pub source: String,
    /// Markdown for the report.
    #[serde(default)]
    pub about: String,
    /// Names of the sweeps, in the order of the labels in keys.
    #[serde(default)]
    pub sweeps: Vec<String>,
    /// Spread of each metric.
    #[serde(default)]
    pub confidence: BTreeMap<String, Statistics>,
    /// Check → where its bounds come from.
    #[serde(default)]
    pub why: BTreeMap<String, String>,
    /// What to show, in order.
    #[serde(default)]
    pub figures: Vec<FigureEntry>,
    /// What to type to get the same.
    #[serde(default)]
    pub command: String,
}

/// Whether a value is where it should be.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct CheckResult {
    /// Metric or expression, and which runs if not their mean.
    pub name: String,
    /// What was found; `null` if no run has a value.
    pub value: Option<f64>,
    /// Smallest value allowed.
    pub min: Option<f64>,
    /// Largest value allowed.
    pub max: Option<f64>,
    /// Whether it is. A run without a value is a reason why not.
    pub ok: bool,
}

/// One figure of the report.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct FigureEntry {
    /// What is shown.
    pub title: String,
    /// Picture beside `summary.json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Or rows and columns; the first row heads the columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub table: Vec<Vec<String>>,
}

/// What of the command line is part of a summary.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) seed: u64,
    pub(super) runs: u32,
    pub(super) quick: bool,
}

impl Summary {
    /// Works out everything but the figures.
    ///
    /// # Errors
    /// References or checks speak of what was not measured.
    pub(super) fn new(
        experiment: &Experiment<'_>,
        measured: &Measured,
        asked: Asked,
    ) -> Result<Self, Vec<Problem>> {
        let mut summary = Self {
            id: experiment.id.clone(),
            seed: asked.seed,
            runs: asked.runs,
            quick: asked.quick,
            scales: experiment.scales.iter().map(Scale::to_string).collect(),
            title: experiment.header.title.clone(),
            item: experiment.header.item.clone(),
            source: experiment.header.paper.clone(),
            about: experiment.header.about.clone(),
            command: command(experiment, asked),
            ..Self::default()
        };
        let sweeps = experiment.sweeps.iter();
        summary.sweeps = sweeps.map(|sweep| sweep.name.clone()).collect();
        for (metric, labels, runs) in measured.all() {
            summary.add(key::key(metric, labels), runs);
        }
        let mut problems = Vec::new();
        for (reference, expression) in &experiment.references {
            match measured.evaluate(expression) {
                Ok(found) => {
                    for Evaluated { name, runs } in found {
                        summary.add(name.clone(), &runs);
                        let places = [
                            (&mut summary.paper, reference.value.paper),
                            (&mut summary.ideal, reference.value.ideal),
                        ];
                        for (place, value) in places {
                            if value.is_some() {
                                place.insert(name.clone(), value);
                            }
                        }
                    }
                }
                Err(message) => {
                    let place = reference.value.metric.span();
                    problems.push(experiment.sources.problem(place, message));
                }
            }
        }
        for (check, expression) in &experiment.checks {
            match measured.evaluate(expression) {
                Ok(_) if asked.quick => {}
                Ok(found) => {
                    for evaluated in found {
                        let result = judge(
                            evaluated,
                            check.value.of,
                            [check.value.min, check.value.max],
                        );
                        summary
                            .why
                            .insert(result.name.clone(), check.value.why.clone());
                        summary.checks.push(result);
                    }
                }
                Err(message) => {
                    let place = check.value.metric.span();
                    problems.push(experiment.sources.problem(place, message));
                }
            }
        }
        match claims(experiment, measured) {
            Ok(_) if asked.quick => {}
            Ok(claims) => summary.claims = claims,
            Err(more) => problems.extend(more),
        }
        problems.is_empty().then_some(summary).ok_or(problems)
    }

    fn add(&mut self, name: String, runs: &Runs) {
        let statistics = Statistics::of(runs);
        let mean = statistics.map(|statistics| statistics.mean);
        self.metrics.insert(name.clone(), mean);
        for known in [&mut self.paper, &mut self.ideal] {
            known.entry(name.clone()).or_insert(None);
        }
        if let Some(statistics) = statistics {
            self.confidence.insert(name, statistics);
        }
    }

    /// Checks that do not hold.
    pub fn failed(&self) -> impl Iterator<Item = &CheckResult> {
        self.checks.iter().filter(|check| !check.ok)
    }
}

/// What became of all that the paper says.
///
/// # Errors
/// Claims speak of what was not measured.
fn claims(
    experiment: &Experiment<'_>,
    measured: &Measured,
) -> Result<Vec<ClaimResult>, Vec<Problem>> {
    let (mut results, mut problems) = (Vec::new(), Vec::new());
    for (claim, expression) in &experiment.claims {
        match measured.evaluate(expression) {
            Ok(found) => results.push(ClaimResult::new(&claim.value, &found)),
            Err(message) => {
                let place = claim.value.metric.span();
                problems.push(experiment.sources.problem(place, message));
            }
        }
    }
    match problems.is_empty() {
        true => Ok(results),
        false => Err(problems),
    }
}

fn judge(evaluated: Evaluated, of: Of, [min, max]: [Option<f64>; 2]) -> CheckResult {
    let Evaluated { name, runs } = evaluated;
    let margin = |value: f64| {
        let above = min.map_or(f64::INFINITY, |min| value - min);
        let below = max.map_or(f64::INFINITY, |max| max - value);
        above.min(below)
    };
    let (name, value) = match of {
        Of::Mean => (
            name,
            Statistics::of(&runs).map(|statistics| statistics.mean),
        ),
        Of::Worst => {
            let present = runs.iter().copied().flatten();
            let worst = present.min_by(|a, b| margin(*a).total_cmp(&margin(*b)));
            (format!("{name} (worst run)"), worst)
        }
    };
    let complete = runs.iter().all(Option::is_some);
    CheckResult {
        name,
        value,
        min,
        max,
        ok: complete && value.is_some_and(|value| margin(value) >= 0.0),
    }
}

fn command(experiment: &Experiment<'_>, asked: Asked) -> String {
    let mut command = format!(
        "namecast experiment run {} --seed {}",
        experiment.id, asked.seed
    );
    if asked.quick {
        command.push_str(" --quick");
    }
    for scale in &experiment.scales {
        command.push_str(&format!(" --scale {scale}"));
    }
    if asked.runs != usual_runs(experiment, asked.quick) {
        command.push_str(&format!(" --runs {}", asked.runs));
    }
    command
}

/// How many runs a point has unless the command line says.
pub(super) fn usual_runs(experiment: &Experiment<'_>, quick: bool) -> u32 {
    /// Two show that a result repeats; fewer would hide that it depends on the seed.
    const QUICK_RUNS: u32 = 2;
    if quick {
        experiment.seeds.min(QUICK_RUNS)
    } else {
        experiment.seeds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(runs: &[Option<f64>], of: Of, bounds: [Option<f64>; 2]) -> (Option<f64>, bool) {
        let name = "u".to_owned();
        let runs = runs.to_vec();
        let result = judge(Evaluated { name, runs }, of, bounds);
        (result.value, result.ok)
    }

    #[test]
    fn bounds_are_part_of_what_is_allowed() {
        let runs = [Some(1.0), Some(3.0)];
        let mean = |min, max| judged(&runs, Of::Mean, [min, max]);
        assert_eq!(mean(Some(2.0), Some(2.0)), (Some(2.0), true));
        assert_eq!(mean(Some(2.1), None), (Some(2.0), false));
        assert_eq!(mean(None, Some(1.9)), (Some(2.0), false));
    }

    #[test]
    fn the_worst_run_is_the_one_nearest_to_failing_or_furthest_beyond() {
        let runs = [Some(1.0), Some(3.0), Some(2.0)];
        let worst = |min, max| judged(&runs, Of::Worst, [min, max]);
        assert_eq!(worst(Some(1.0), None), (Some(1.0), true));
        assert_eq!(worst(Some(1.5), None), (Some(1.0), false));
        assert_eq!(worst(None, Some(2.5)), (Some(3.0), false));
        assert_eq!(worst(Some(0.5), Some(9.0)), (Some(1.0), true));
    }

    #[test]
    fn a_run_without_a_value_does_not_pass() {
        for of in [Of::Mean, Of::Worst] {
            assert_eq!(
                judged(&[Some(1.0), None], of, [Some(0.0), None]),
                (Some(1.0), false)
            );
            assert_eq!(judged(&[None], of, [Some(0.0), None]), (None, false));
        }
    }
}
