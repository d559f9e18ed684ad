//! One run of an experiment, written down event by event.

use std::path::Path;

use anyhow::Context;

use super::plan::Experiment;
use super::simulator::Simulator;

/// Which run is traced.
#[derive(Clone, Copy, Debug)]
pub struct TracedRun<'a> {
    /// Labels of the point, with slashes between; it need not be named if there is only one.
    pub point: Option<&'a str>,
    /// The short form of the experiment.
    pub quick: bool,
    /// The run's own seed.
    pub seed: u64,
}

impl Experiment<'_> {
    /// Runs one point and writes its traces into `directory`. Returns the digest of all events.
    ///
    /// # Errors
    /// If there is no such point, with those that there are, or it cannot be traced.
    pub fn trace(
        &self,
        simulator: &Simulator,
        run: TracedRun<'_>,
        directory: &Path,
    ) -> anyhow::Result<String> {
        let mut points = self.points(simulator, run.quick)?;
        let names: Vec<String> = points.iter().map(|point| point.labels.join("/")).collect();
        let place = match run.point {
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
        let scenario = simulator.prepare(&scenario);
        Ok(scenario.trace(&self.base, run.seed, directory)?)
    }
}
