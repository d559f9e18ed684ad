//! Runs scenarios as experiment files describe them, and looks at what came of them.

use std::path::Path;

use namecast_sim::scenario::{Outcome, Scenario};
use serde_json::Value;

pub(crate) fn run(scenario: &Value, seed: u64) -> Outcome {
    let scenario: Scenario = serde_json::from_value(scenario.clone()).unwrap();
    scenario.run(Path::new("."), seed).unwrap()
}

#[track_caller]
pub(crate) fn assert_within(
    outcome: &Outcome,
    metric: &str,
    bounds: core::ops::RangeInclusive<f64>,
) {
    let value = outcome.metrics[metric];
    assert!(
        bounds.contains(&value),
        "{metric} {value} not in {bounds:?}: {:#?}",
        outcome.metrics
    );
}
