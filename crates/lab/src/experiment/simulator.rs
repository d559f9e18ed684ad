//! The laboratory that runs scenarios in virtual time, or over sockets where they say so.

use std::borrow::Cow;
use std::path::Path;

use namecast_sim::CustomHop;
use namecast_sim::scenario::{Medium, NetworkScenario, Scenario, ScenarioError, StreamScenario};
use namecast_stream::rate::CustomControl;

use super::laboratory::{Laboratory, Outcome, Refusal, Series};
use super::sockets;

/// Runs scenarios of the simulator, which may name controllers of one's own.
#[derive(Clone, Debug, Default)]
pub struct Simulator {
    controllers: Vec<CustomControl>,
    hops: Vec<CustomHop>,
}

impl Simulator {
    /// Lets scenarios name `controller`. The names of our own cannot be given away.
    pub fn register(&mut self, controller: CustomControl) {
        self.controllers.push(controller);
    }

    /// Lets scenarios name `hop`.
    pub fn register_hop(&mut self, hop: CustomHop) {
        self.hops.push(hop);
    }

    /// Returns `scenario` with the controllers and hops that it names.
    pub(super) fn prepare<'s>(&self, scenario: &'s Scenario) -> Cow<'s, Scenario> {
        let mut prepared = Cow::Borrowed(scenario);
        for controller in &self.controllers {
            prepared.to_mut().register(*controller);
        }
        for hop in &self.hops {
            prepared.to_mut().register_hop(hop.clone());
        }
        prepared
    }
}

impl Laboratory for Simulator {
    type Scenario = Scenario;

    fn validate(&self, scenario: &Scenario, base: &Path) -> Result<(), Refusal> {
        let scenario = self.prepare(scenario);
        scenario.validate(base).map_err(refusal)?;
        match over_sockets(&scenario) {
            Some(OverSockets::Flow(network)) => sockets::flow::validate(network),
            Some(OverSockets::Stream(stream)) => sockets::stream::validate(stream, base),
            None => Ok(()),
        }
    }

    fn remarks(&self, scenario: &Scenario, base: &Path) -> Vec<String> {
        scenario.remarks(base)
    }

    fn takes_real_time(&self, scenario: &Scenario) -> bool {
        over_sockets(scenario).is_some()
    }

    fn run(&self, scenario: &Scenario, base: &Path, seed: u64) -> Result<Outcome, Refusal> {
        let scenario = self.prepare(scenario);
        if let Some(real) = over_sockets(&scenario) {
            scenario.validate(base).map_err(refusal)?;
            return match real {
                OverSockets::Flow(network) => sockets::flow::run(network, seed),
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
