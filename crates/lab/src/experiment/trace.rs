//! One run of an experiment, written down event by event.

use std::path::Path;

use anyhow::Context;

use super::plan::Experiment;
use super::simulator::Simulator;

impl Experiment<'_> {
    /// Runs one point with `seed` and writes its traces into `directory`; the digest of all events. The point is named by
    /// its labels with slashes between, and need not be named if there is only one.
    ///
    /// # Errors
    /// If there is no such point, with those that there are, or it cannot be traced.
    pub fn trace(
        &self,
        point: Option<&str>,
        quick: bool,
        seed: u64,
        directory: &Path,
    ) -> anyhow::Result<String> {
        let mut points = self.points(&Simulator, quick)?;
        let names: Vec<String> = points.iter().map(|point| point.labels.join("/")).collect();
        let place = match point {
            None if points.len() == 1 => Some(0),
            None => None,
            Some(wanted) => names.iter().position(|name| name == wanted),
        };
        let place = place.with_context(|| {
            format!(
                "choose one of its points with --point:\n  {}",
                names.join("\n  ")
            )
        })?;
        let scenario = points.swap_remove(place).scenario;
        Ok(scenario.trace(&self.base, seed, directory)?)
    }
}
