//! One run of an experiment, kept so that any program can be asked whether it still gets the same.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::claim::ClaimResult;
use super::laboratory::{Laboratory, Refusal};
use super::plan::Experiment;
use super::summary::{CheckResult, Summary};

/// The cheapest run of an experiment: the first of one point.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Replay {
    /// Labels of the point, with slashes between.
    pub point: String,
    /// The run's own seed.
    pub seed: u64,
    /// Processor time that it took, in seconds.
    pub cpu_seconds: f64,
    /// What it measured; `null` for what never happened.
    pub metrics: BTreeMap<String, Option<f64>>,
}

/// What a repository keeps of an experiment whose runs are all done.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Kept {
    /// Such as `arc/figure05`.
    pub id: String,
    /// Runs of each point.
    pub runs: u32,
    /// What must hold.
    pub checks: Vec<CheckResult>,
    /// What the paper says, and whether it came out.
    pub claims: Vec<ClaimResult>,
    /// One run to replay; none of what runs in real time.
    pub replay: Option<Replay>,
}

impl Kept {
    pub(super) fn new(summary: &Summary, replay: Option<Replay>) -> Self {
        Self {
            id: summary.id.clone(),
            runs: summary.runs,
            checks: summary.checks.clone(),
            claims: summary.claims.clone(),
            replay,
        }
    }
}

impl Replay {
    /// Largest relative difference of what counts as the same: functions such as the logarithm differ from system to system.
    const TOLERANCE: f64 = 1e-9;

    /// Runs it again. Returns a line for each of its metrics that differs; others may have come.
    ///
    /// # Errors
    /// If there is no such point any more, or it does not run.
    pub fn differences<L: Laboratory>(
        &self,
        experiment: &Experiment<'_>,
        laboratory: &L,
    ) -> Result<Vec<String>, Refusal> {
        let points = experiment.points(laboratory, false);
        let points = points.map_err(|problems| Refusal::from(problems.to_string()))?;
        let mut points = points.iter();
        let point = points
            .find(|point| point.labels.join("/") == self.point)
            .ok_or_else(|| Refusal::from(format!("there is no point {} any more", self.point)))?;
        let base: &Path = &experiment.base;
        let now = laboratory.run(&point.scenario, base, self.seed)?.metrics;
        let finite = |value: f64| Some(value).filter(|value| value.is_finite());
        let differs = self.metrics.iter().filter_map(|(name, &before)| {
            let now = now.get(name).copied().and_then(finite);
            let is_same = match (before, now) {
                (Some(a), Some(b)) => (a - b).abs() <= Self::TOLERANCE * a.abs().max(b.abs()),
                (None, None) => true,
                _ => false,
            };
            (!is_same).then(|| format!("{name} was {before:?}, is {now:?}"))
        });
        Ok(differs.collect())
    }
}
