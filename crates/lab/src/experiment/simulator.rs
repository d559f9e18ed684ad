//! The laboratory that runs scenarios in virtual time, or over sockets where they say so.

use std::path::Path;

use namecast_sim::scenario::{Medium, NetworkScenario, Scenario, ScenarioError, StreamScenario};

use super::laboratory::{Laboratory, Outcome, Refusal, Series};
use super::sockets;

/// Runs scenarios of the simulator.
#[derive(Clone, Copy, Debug)]
pub struct Simulator;

impl Laboratory for Simulator {
    type Scenario = Scenario;

    fn validate(&self, scenario: &Scenario, base: &Path) -> Result<(), Refusal> {
        scenario.validate(base).map_err(refusal)?;
        match over_sockets(scenario) {
            Some(OverSockets::Flow(network)) => sockets::validate(network),
            Some(OverSockets::Stream(stream)) => sockets::stream::validate(stream, base),
            None => Ok(()),
        }
    }

    fn takes_real_time(&self, scenario: &Scenario) -> bool {
        over_sockets(scenario).is_some()
    }

    fn run(&self, scenario: &Scenario, base: &Path, seed: u64) -> Result<Outcome, Refusal> {
        if let Some(real) = over_sockets(scenario) {
            scenario.validate(base).map_err(refusal)?;
            return match real {
                OverSockets::Flow(network) => sockets::run(network, seed),
                OverSockets::Stream(stream) => sockets::stream::run(stream, base, seed),
            };
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

/// A scenario that takes real time.
enum OverSockets<'a> {
    Flow(&'a NetworkScenario),
    Stream(&'a StreamScenario),
}

fn over_sockets(scenario: &Scenario) -> Option<OverSockets<'_>> {
    match scenario {
        Scenario::Network(network) if network.medium == Medium::Sockets => {
            Some(OverSockets::Flow(network))
        }
        Scenario::Stream(stream) if stream.medium == Medium::Sockets => {
            Some(OverSockets::Stream(stream))
        }
        _ => None,
    }
}

fn refusal(error: ScenarioError) -> Refusal {
    Refusal {
        field: Some(error.field),
        message: error.problem,
    }
}
