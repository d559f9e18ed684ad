//! The laboratory that runs scenarios in virtual time.

use std::path::Path;

use namecast_sim::scenario::{Scenario, ScenarioError};

use super::laboratory::{Laboratory, Outcome, Refusal, Series};

/// Runs scenarios of the simulator.
#[derive(Clone, Copy, Debug)]
pub struct Simulator;

impl Laboratory for Simulator {
    type Scenario = Scenario;

    fn validate(&self, scenario: &Scenario, base: &Path) -> Result<(), Refusal> {
        scenario.validate(base).map_err(refusal)
    }

    fn run(&self, scenario: &Scenario, base: &Path, seed: u64) -> Result<Outcome, Refusal> {
        let outcome = scenario.run(base, seed).map_err(refusal)?;
        let series = outcome.series.into_iter().map(|series| Series {
            name: series.name,
            unit: series.unit,
            points: series.points,
        });
        Ok(Outcome {
            metrics: outcome.metrics,
            series: series.collect(),
        })
    }
}

fn refusal(error: ScenarioError) -> Refusal {
    Refusal {
        field: Some(error.field),
        message: error.problem,
    }
}
