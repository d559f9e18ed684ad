//! Scenarios as experiment files describe them, and what must come of them.

use std::path::Path;

use namecast_sim::scenario::{Outcome, Scenario};
use serde_json::{Value, json};

fn run(scenario: &Value, seed: u64) -> Outcome {
    let scenario: Scenario = serde_json::from_value(scenario.clone()).unwrap();
    scenario.run(Path::new("."), seed).unwrap()
}

/// One flow of `controller` over 10 Mbit/s for 30 s, of which the last 15 are measured.
fn dumbbell(controller: &str, delay: &str) -> Value {
    json!({
        "kind": "network",
        "duration": "30s",
        "measure": { "from": "15s" },
        "bottleneck": "R1>R2",
        "topology": {
            "kind": "dumbbell",
            "flows": 1,
            "bottleneck": {
                "rate": "10 Mbit/s",
                "delay": delay,
                "queue": { "kind": "drop-tail", "packets": 50 },
            },
        },
        "flows": [{ "controller": controller }],
    })
}

#[track_caller]
fn assert_within(outcome: &Outcome, metric: &str, bounds: core::ops::RangeInclusive<f64>) {
    let value = outcome.metrics[metric];
    assert!(
        bounds.contains(&value),
        "{metric} {value} not in {bounds:?}: {:#?}",
        outcome.metrics
    );
}

/// The bounds of the issue: at least 0.98 of the link, at most 3 ms of queue, at a round-trip time of 20 ms.
#[test]
fn adaptive_rate_control_fills_a_short_path_and_keeps_its_queue_short() {
    let outcome = run(&dumbbell("arc", "8 ms"), 1);
    assert_within(&outcome, "utilisation", 0.98..=1.001);
    assert_within(&outcome, "added-rtt", 0.5..=3.0);
    assert_within(&outcome, "goodput", 9.3..=9.54);
    assert_within(&outcome, "drops", 0.0..=0.0);
}
