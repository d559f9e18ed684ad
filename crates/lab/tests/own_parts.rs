//! Programs with a controller or a hop of their own, as their examples show them.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Runs an experiment file of one flow over 10 Mbit/s, with results below `home`.
fn run(home: &Path, controller: &str) -> Output {
    run_with(home, "own_controller", controller, "")
}

/// The same by another example, with further lines of the scenario.
fn run_with(home: &Path, example: &str, controller: &str, lines: &str) -> Output {
    run_for(home, example, controller, (5, lines))
}

fn run_for(home: &Path, example: &str, controller: &str, (duration, lines): (u32, &str)) -> Output {
    let file = format!(
        r#"
        title = "One flow"
        seeds = 1
        [scenario]
        kind = "network"
        duration = "{duration} s"
        measure = {{ from = "1 s" }}
        bottleneck = "R1>R2"
        {lines}
        flows = [{{ controller = "{controller}", start-spread = "0 s" }}]
        [scenario.topology]
        kind = "dumbbell"
        flows = 1
        bottleneck = {{ rate = "10 Mbit/s", delay = "8 ms", queue = {{ kind = "drop-tail", packets = 50 }} }}
        "#
    );
    std::fs::create_dir_all(home.join("files/own")).unwrap();
    std::fs::write(home.join("files/own/flow.toml"), file).unwrap();
    let tests = std::env::current_exe().unwrap();
    let target = tests.ancestors().nth(2).unwrap();
    Command::new(target.join("examples").join(example))
        .args([
            "experiment",
            "run",
            "--experiments",
            "files",
            "--out",
            "results",
        ])
        .current_dir(home)
        .output()
        .expect("`cargo test` without `--test` has built the example")
}

/// It starts with 1 Mbit/s and adds 2 kbit/s for each packet of 8192 bits, so its rate is 1 Mbit/s · exp(t · 2000 / 8192 s):
/// from the first second to the fifth, (3.39 − 1.28) / 0.244 / 4 = 2.16 Mbit/s on average.
#[test]
fn an_experiment_runs_a_controller_that_the_program_registers() {
    let home = tempfile::tempdir().unwrap();
    let output = run(home.path(), "mine");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let summary = home.path().join("results/own/flow/summary.json");
    let summary: Value = serde_json::from_slice(&std::fs::read(summary).unwrap()).unwrap();
    let goodput = summary["metrics"]["goodput"].as_f64().unwrap();
    assert!((2.05..2.25).contains(&goodput), "{goodput}");
}

/// The median of a metric of what was run.
fn metric(home: &Path, name: &str) -> f64 {
    let summary = home.join("results/own/flow/summary.json");
    let summary: Value = serde_json::from_slice(&std::fs::read(summary).unwrap()).unwrap();
    summary["metrics"][name].as_f64().unwrap()
}

/// The four nodes on the way drop a tenth of the Data each: of a constant rate of requests 0.9⁴ = 0.656 is answered.
#[test]
fn an_experiment_runs_a_hop_that_the_program_registers() {
    let home = tempfile::tempdir().unwrap();
    let plain = run_with(home.path(), "own_hop", "rate:2M", "");
    assert!(
        plain.status.success(),
        "{}",
        String::from_utf8_lossy(&plain.stderr)
    );
    let without = metric(home.path(), "goodput");
    let output = run_with(home.path(), "own_hop", "rate:2M", "hops = [\"mine\"]");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let share = metric(home.path(), "goodput") / without;
    assert!((0.62..0.69).contains(&share), "{share}");
    let refused = run_with(home.path(), "own_hop", "rate:2M", "hops = [\"yours\"]");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && said.contains("'yours' is no hop"),
        "{said}"
    );
}

/// Between sockets there are two nodes: 0.9² = 0.81 of 2 Mbit/s is answered.
#[test]
fn an_experiment_over_sockets_runs_it_too() {
    let home = tempfile::tempdir().unwrap();
    let lines = "medium = \"sockets\"\ntrials = 1\nhops = [\"mine\"]";
    let output = run_for(home.path(), "own_hop", "rate:2M", (3, lines));
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let goodput = metric(home.path(), "goodput");
    assert!((1.5..1.8).contains(&goodput), "{goodput}");
}

#[test]
fn a_name_that_nobody_registered_is_refused_with_its_line() {
    let home = tempfile::tempdir().unwrap();
    let output = run(home.path(), "yours");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    let expected = "flow.toml:10:";
    assert!(said.contains(expected), "{said}");
    assert!(
        said.contains("'yours' is no controller: write one of arc,"),
        "{said}"
    );
}
