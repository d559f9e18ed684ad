//! The laboratory that runs scenarios in virtual time.

use std::path::Path;

use serde::Deserialize;

use super::laboratory::{Laboratory, Outcome, Refusal};

/// Runs scenarios of the simulator.
#[derive(Clone, Copy, Debug)]
pub struct Simulator;

/// Nothing yet.
#[derive(Debug, Deserialize)]
pub struct Scenario {}

impl Laboratory for Simulator {
    type Scenario = Scenario;

    fn validate(&self, _: &Scenario, _: &Path) -> Result<(), Refusal> {
        Err("this build has no simulator".to_owned().into())
    }

    fn run(&self, _: &Scenario, _: &Path, _: u64) -> Result<Outcome, Refusal> {
        Err("this build has no simulator".to_owned().into())
    }
}
