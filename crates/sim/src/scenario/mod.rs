//! What an experiment runs, as a value that a file describes.
//!
//! A scenario and a seed fix the outcome: no clock, no thread, no file that was not named.

mod choice;
mod evolution;
mod exchange;
mod fetching;
mod flows;
mod forwarding;
mod hops;
mod measure;
mod network;
mod observed;
mod oracle;
mod place;
mod run;
mod segments;
mod stream;
mod table;
mod trace;

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::topology::Spec;
pub use choice::Choice;
pub use evolution::{Evolution, Path as PathModel};

pub use exchange::{Exchange, Side};
pub use flows::{Change, End, Flow, FlowDelivery, FlowRepair};
pub use forwarding::{Routes, Strategy};
pub use hops::{HopChoice, named_hops};
pub use measure::{Convergence, Window};
pub use network::{Medium, NetworkScenario, PacketSize, Probe};
pub use observed::{FlowSnapshot, ObservedFlows};
pub use oracle::{Oracle, OracleConfig, oracle};
pub use place::change_link;
use run::Run;
pub use stream::{
    BaseDelay, LadderSpec, Observed, PublisherSpec, RecoverySpec, Signature, Snapshot,
    StreamChange, StreamScenario, StreamSpec, SynchroniserSpec, Viewing, WatcherSnapshot,
    WatcherSpec,
};
pub use table::{ParameterTable, TopologyTable};

/// What is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Scenario {
    /// Flows over a network.
    Network(Box<NetworkScenario>),
    /// Live streams over a network.
    Stream(Box<StreamScenario>),
    /// Two peers that send each other packets.
    Exchange(Box<Exchange>),
    /// A rate controller alone, told what a paper's closed form assumes.
    Evolution(Box<Evolution>),
    /// A controller's constants.
    Parameters(Box<ParameterTable>),
    /// A topology's links.
    Topology(Box<TopologyTable>),
}

/// What came of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Numbers, by name; the unit is in the name's documentation.
    pub metrics: BTreeMap<String, f64>,
    /// Curves.
    pub series: Vec<Series>,
}

/// A curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Unit of the second coordinate.
    pub unit: String,
    /// Points in order of the first coordinate, which is seconds of virtual time unless the name says otherwise.
    pub points: Vec<(f64, f64)>,
}

/// Why a scenario cannot run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct ScenarioError {
    /// The field at fault, as the file spells it.
    pub field: String,
    /// What is wrong with it, and what was expected.
    pub problem: String,
}

impl ScenarioError {
    fn new(field: impl Into<String>, problem: impl ToString) -> Self {
        Self {
            field: field.into(),
            problem: problem.to_string(),
        }
    }
}

impl Scenario {
    /// Checks what can be checked without running; files are looked for in `base`.
    ///
    /// # Errors
    /// If the scenario contradicts itself or names what does not exist.
    pub fn validate(&self, base: &Path) -> Result<(), ScenarioError> {
        match self {
            Self::Network(network) => network.validate(base),
            Self::Stream(stream) => stream.validate(base),
            Self::Exchange(exchange) => exchange.validate(base),
            Self::Evolution(evolution) => evolution.validate(),
            Self::Parameters(_) => Ok(()),
            Self::Topology(table) => table.run(base).map(drop),
        }
    }

    /// Returns a sentence for each kind of entry that is ignored in the topology's file; none if the file cannot be read.
    pub fn remarks(&self, base: &Path) -> Vec<String> {
        let topology = match self {
            Self::Network(network) => &network.topology,
            Self::Stream(stream) => &stream.topology,
            Self::Exchange(exchange) => &exchange.topology,
            Self::Topology(table) => &table.topology,
            Self::Evolution(_) | Self::Parameters(_) => return Vec::new(),
        };
        match topology {
            Spec::File(_) => topology
                .build(base)
                .map_or_else(|_| Vec::new(), |it| it.remarks),
            _ => Vec::new(),
        }
    }

    /// Runs it. The same scenario and seed give the same outcome, to the last bit.
    ///
    /// # Errors
    /// If it is not valid, or only real sockets can run it.
    pub fn run(&self, base: &Path, seed: u64) -> Result<Outcome, ScenarioError> {
        match self {
            Self::Network(network) => Run::new(network, base, seed, false).map(Run::finish),
            Self::Stream(stream) => stream::Run::new(stream, base, seed).map(stream::Run::finish),
            Self::Exchange(exchange) => exchange.run(base, seed),
            Self::Evolution(evolution) => evolution.run(seed),
            Self::Parameters(table) => Ok(table.run()),
            Self::Topology(table) => table.run(base),
        }
    }

    /// Runs it and writes what happens into `directory`: every event as `events.csv` and `events.parquet`, and ndnSIM's
    /// tables `app-delays-trace.txt`, `rate-trace.txt`, `cs-trace.txt` and `drop-trace.txt`. The result is the digest of
    /// all events, the same for the same scenario and seed.
    ///
    /// # Errors
    /// If it cannot run, is neither a network nor a stream, or the files cannot be written.
    pub fn trace(&self, base: &Path, seed: u64, directory: &Path) -> Result<String, ScenarioError> {
        let written = match self {
            Self::Network(network) => {
                let mut run = Run::new(network, base, seed, true)?;
                let duration = run.duration();
                trace::write(run.network(), duration, directory)
            }
            Self::Stream(stream) => {
                let mut run = stream::Run::new(stream, base, seed)?;
                let duration = run.duration();
                trace::write(run.network(), duration, directory)
            }
            Self::Exchange(_) | Self::Evolution(_) | Self::Parameters(_) | Self::Topology(_) => {
                return Err(ScenarioError::new(
                    "kind",
                    "only networks and streams have events to trace",
                ));
            }
        };
        written.map_err(|error| {
            ScenarioError::new("trace", format!("{}: {error}", directory.display()))
        })
    }
}
