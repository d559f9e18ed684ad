//! The laboratory that runs scenarios in virtual time, or over sockets where they say so.

use std::path::Path;

use namecast_sim::scenario::{Medium, NetworkScenario, Scenario, ScenarioError};

use super::laboratory::{Laboratory, Outcome, Refusal, Series};
use super::sockets;

/// Runs scenarios of the simulator.
#[derive(Clone, Copy, Debug)]
pub struct Simulator;

impl Laboratory for Simulator {
    type Scenario = Scenario;

    fn validate(&self, scenario: &Scenario, base: &Path) -> Result<(), Refusal> {
        scenario.validate(base).map_err(refusal)?;
        over_sockets(scenario).map_or(Ok(()), sockets::validate)
    }

    fn needs_quiet(&self, scenario: &Scenario) -> bool {
        over_sockets(scenario).is_some()
    }

    fn run(&self, scenario: &Scenario, base: &Path, seed: u64) -> Result<Outcome, Refusal> {
        if let Some(network) = over_sockets(scenario) {
            scenario.validate(base).map_err(refusal)?;
            return sockets::run(network, seed);
        }
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

/// The scenario, if it is one that takes real time.
fn over_sockets(scenario: &Scenario) -> Option<&NetworkScenario> {
    match scenario {
        Scenario::Network(network) if network.medium == Medium::Sockets => Some(network),
        _ => None,
    }
}

fn refusal(error: ScenarioError) -> Refusal {
    Refusal {
        field: Some(error.field),
        message: error.problem,
    }
}
