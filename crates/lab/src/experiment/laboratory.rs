//! What the runner asks of whatever carries experiments out.

use core::fmt;
use std::collections::BTreeMap;
use std::path::Path;

use serde::de::DeserializeOwned;

/// Metric that is above zero if something else disturbed a run: its result is kept, but not for another time.
pub(super) const DISTURBED: &str = "disturbed";

/// Runs scenarios. The runner knows nothing about them but that they can be written in TOML.
pub trait Laboratory: Sync {
    /// What is run; its fields are what `[scenario]` may say.
    type Scenario: DeserializeOwned + Send + Sync;

    /// Looks for what would stop `scenario` from running. Paths in it start at `base`.
    ///
    /// # Errors
    /// What is wrong, and what was expected.
    fn validate(&self, scenario: &Self::Scenario, base: &Path) -> Result<(), Refusal>;

    /// What `scenario`'s files say that is ignored, a sentence each.
    fn remarks(&self, _scenario: &Self::Scenario, _base: &Path) -> Vec<String> {
        Vec::new()
    }

    /// Whether `scenario` takes real time. Such runs go one at a time; one that says that it was disturbed has a second chance when
    /// nothing else runs.
    fn takes_real_time(&self, _scenario: &Self::Scenario) -> bool {
        false
    }

    /// Runs `scenario`. A pure function, unless the scenario [takes real time](Self::takes_real_time): the same scenario and seed give
    /// the same outcome, on every machine.
    ///
    /// # Errors
    /// Why it could not run to its end.
    fn run(&self, scenario: &Self::Scenario, base: &Path, seed: u64) -> Result<Outcome, Refusal>;
}

/// Why a scenario does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Path of the field at fault, such as `flows.0.rate`, if it is one.
    pub field: Option<String>,
    /// What is wrong, and what was expected.
    pub message: String,
}

impl From<String> for Refusal {
    fn from(message: String) -> Self {
        Self {
            field: None,
            message,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(field) = &self.field {
            write!(f, "{field}: ")?;
        }
        f.write_str(&self.message)
    }
}

/// What one run of a scenario yields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// One number per name. One that is not finite counts as missing: what it stands for never happened.
    pub metrics: BTreeMap<String, f64>,
    /// Curves.
    pub series: Vec<Series>,
}

/// A curve of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// What it shows, such as `estimate`.
    pub name: String,
    /// Unit of the second coordinate, such as `Mbit/s`.
    pub unit: String,
    /// First coordinate: seconds of virtual time, or whatever the series is over.
    pub points: Vec<(f64, f64)>,
}
