//! Scenarios of live streams as experiment files describe them, and what must come of them.

use std::path::Path;

use namecast_sim::scenario::Scenario;
use serde_json::{Value, json};

use crate::outcome::{assert_within, run};

/// P – R – C at 25 ms and 10 Mbit/s each: RTT 100 ms. 12 s, of which 3 to 11 are measured.
fn line() -> Value {
    let link = |from: &str, to: &str| {
        let config = json!({ "rate": "10 Mbit/s", "delay": "25 ms" });
        json!({ "ends": [from, to], "config": config })
    };
    json!({
        "kind": "stream",
        "duration": "12s",
        "measure": { "from": "3s", "until": "10s" },
        "links": ["P>R", "C>R"],
        "cache": "16 MiB",
        "topology": {
            "kind": "explicit",
            "node": [{ "name": "P" }, { "name": "R" }, { "name": "C" }],
            "link": [link("P", "R"), link("R", "C")],
        },
        "watchers": [{ "start": "1s" }],
    })
}

/// Seven seconds at 30 frames a second, all in time. The first frame is there after two round trips and what 15 kB of key
/// frame take on 10 Mbit/s twice. A frame is 50 ms and its serialisation on the way, and shown 100 ms later.
#[test]
fn a_good_network_gives_the_ideal_figures() {
    let outcome = run(&line(), 1);
    assert_within(&outcome, "frames", 210.0..=210.0);
    assert_within(&outcome, "rendered-share", 1.0..=1.0);
    assert_within(&outcome, "gaps", 0.0..=0.0);
    assert_within(&outcome, "stale", 0.0..=0.0);
    assert_within(&outcome, "join", 200.0..=240.0);
    assert_within(&outcome, "longest-gap", 33.0..=34.0);
    assert_within(&outcome, "latency", 150.0..=153.0);
    // 1 Mbit/s and what 210 frames of varying sizes, one in 30 of them four times as large, differ from it.
    assert_within(&outcome, "payload-rate", 0.95..=1.05);
    assert_within(&outcome, "rung-rate", 1.0..=1.0);
    // What leaves the producer is what crosses its link, 3 octets of link header at most apart, and what arrives.
    let [rate, link, data] =
        ["producer-rate", "link-1-rate", "data-rate"].map(|m| outcome.metrics[m]);
    assert!((rate / link - 1.0).abs() < 0.02, "{rate} {link}");
    assert!((rate / data - 1.0).abs() < 0.02, "{rate} {data}");
    assert_within(&outcome, "link-1-dropped", 0.0..=0.0);
    assert!((outcome.metrics["link-1-utilisation"] - link / 10.0).abs() < 1e-9);
}

/// Of 10 Mbit/s the stream takes 1.2 with parity and headers. The object gets most of the rest, and the stream loses no frame;
/// some 15 ms queue.
#[test]
fn an_object_has_what_the_stream_leaves() {
    let mut scenario = line();
    scenario["watchers"][0]["object"] = json!("20 MB");
    let outcome = run(&scenario, 1);
    assert_within(&outcome, "rendered-share", 1.0..=1.0);
    assert_within(&outcome, "gaps", 0.0..=0.0);
    assert_within(&outcome, "latency", 150.0..=180.0);
    assert_within(&outcome, "object-rate", 5.0..=8.8);
    assert_within(&outcome, "link-1-queue-delay", 0.0..=20.0);
    assert_within(&outcome, "link-1-dropped", 0.0..=0.0);
}

#[test]
fn the_same_seed_gives_the_same_outcome_and_another_does_not() {
    let mut scenario = line();
    scenario["series"] = json!(true);
    let first = run(&scenario, 7);
    assert_eq!(first, run(&scenario, 7));
    assert_ne!(
        first.metrics["producer-rate"].to_bits(),
        run(&scenario, 8).metrics["producer-rate"].to_bits()
    );
    let names: Vec<&str> = first.series.iter().map(|series| &*series.name).collect();
    for name in ["producer", "link-2", "data-1", "lead-1", "drd-1", "pit"] {
        assert!(names.contains(&name), "{name} among {names:?}");
    }
}

/// The publisher dies at 5 s: of the frames from 3 s to 10 s, the five seconds' worth after it are lost.
#[test]
fn frames_of_a_dead_publisher_are_lost() {
    let mut scenario = line();
    scenario["changes"] = json!([{ "at": "5s", "publisher": 1, "up": false }]);
    let outcome = run(&scenario, 1);
    assert_within(&outcome, "frames", 210.0..=210.0);
    // Those that were published in the last 50 ms are on the way and arrive.
    assert_within(&outcome, "lost", 149.0..=150.0);
    assert_within(&outcome, "late", 0.0..=0.0);
}

/// A link that is down for a second loses what was published in it, up to the key frame with which playback goes on.
#[test]
fn a_link_that_is_down_for_a_second_costs_a_second() {
    let mut scenario = line();
    scenario["changes"] = json!([
        { "at": "5s", "link": "R-C", "up": false },
        { "at": "6s", "link": "R-C", "up": true },
    ]);
    let outcome = run(&scenario, 1);
    let missing = outcome.metrics["lost"] + outcome.metrics["late"];
    assert!((27.0..=62.0).contains(&missing), "{missing}");
    assert_within(&outcome, "gaps", 1.0..=2.0);
}

/// An opportunity every 3⅓ ms on average, 3.6 Mbit/s: enough for all frames, a third of them after a wait.
#[test]
fn a_link_may_have_a_trace() {
    let mut scenario = line();
    scenario["links"] = json!(["R>C"]);
    let trace = json!({ "trace": "tests/fixtures/three-deliveries.trace" });
    scenario["topology"]["link"][1]["config"]["rate"] = trace;
    scenario["topology"]["link"][1]["back"] = json!({ "delay": "25 ms" });
    let outcome = run(&scenario, 1);
    assert_within(&outcome, "rendered-share", 1.0..=1.0);
    let [rate, utilisation] = ["link-1-rate", "link-1-utilisation"].map(|m| outcome.metrics[m]);
    assert!(
        (utilisation - rate / 3.6).abs() < 1e-9,
        "{rate} {utilisation}"
    );
    // A key frame of some 15 kB takes 33 ms instead of the 12 that it takes on the link before, all others less.
    assert_within(&outcome, "link-1-queue-delay", 2.0..=15.0);
}

/// What a trace or model gives cannot be set on top of it; the delay can.
#[test]
fn changes_of_rate_are_refused_where_it_is_a_trace_or_model() {
    let change = |rate: Value, what: &str, value: &str| {
        let mut scenario = line();
        scenario["topology"]["link"][1]["config"]["rate"] = rate;
        scenario["changes"] = json!([{ "at": "5s", "link": "R>C", what: value }]);
        let scenario: Scenario = serde_json::from_value(scenario).unwrap();
        scenario.validate(Path::new("."))
    };
    let model = || json!({ "model": "lte" });
    let error = change(model(), "rate", "1 Mbit/s").unwrap_err();
    assert_eq!(error.field, "changes.0.rate");
    assert!(error.to_string().contains("trace or model"), "{error}");
    change(model(), "delay", "40 ms").unwrap();
    change(json!("5 Mbit/s"), "rate", "1 Mbit/s").unwrap();
}

/// The field that is refused once `key` has this value.
fn refused(key: &str, value: &Value) -> String {
    let mut scenario = line();
    scenario[key] = value.clone();
    let scenario: Scenario = serde_json::from_value(scenario).unwrap();
    scenario.validate(Path::new(".")).unwrap_err().field
}

#[test]
fn wrong_watchers_and_publishers_are_refused_with_their_field() {
    let watcher = |value: Value| refused("watchers", &json!([value]));
    assert_eq!(watcher(json!({ "node": "X" })), "watchers.0.node");
    assert_eq!(watcher(json!({ "prefix": "/x" })), "watchers.0.prefix");
    assert_eq!(watcher(json!({ "rung": "9M" })), "watchers.0.rung");
    assert_eq!(watcher(json!({ "goal": "highest" })), "watchers.0.goal");
    assert_eq!(
        watcher(json!({ "video": false, "audio": true })),
        "watchers.0.video"
    );
    assert_eq!(watcher(json!({ "count": 2_000 })), "watchers");
    let publisher = |value: Value| refused("publishers", &json!([value]));
    assert_eq!(publisher(json!({ "node": "Q" })), "publishers.0.node");
    assert_eq!(publisher(json!({ "streams": [] })), "publishers.0.streams");
    let wrong = json!({ "streams": [{ "rate": 0 }] });
    assert_eq!(publisher(wrong), "publishers.0.streams.0.rate");
    let twice = json!({ "streams": [{}, {}] });
    assert_eq!(publisher(twice), "publishers.0.streams.1.kind");
    // Words that are not known are refused where they stand.
    let mut scenario = line();
    scenario["watchers"] = json!([{ "synchroniser": { "profile": "papers" } }]);
    let error = serde_json::from_value::<Scenario>(scenario).unwrap_err();
    assert!(error.to_string().contains("code-1.4.4"), "{error}");
}

#[test]
fn wrong_changes_and_times_are_refused_with_their_field() {
    let change = |value: Value| refused("changes", &json!([value]));
    assert_eq!(change(json!({ "at": "1s", "node": "R" })), "changes.0");
    let third = json!({ "at": "1s", "publisher": 2, "up": true });
    assert_eq!(change(third), "changes.0.publisher");
    // It would count its frames from zero again.
    let again = json!({ "at": "1s", "publisher": 1, "up": true });
    assert_eq!(change(again), "changes.0.up");
    let both = json!({ "at": "1s", "link": "R-C", "node": "R", "up": true });
    assert_eq!(change(both), "changes.0");
    let rate = json!({ "at": "1s", "node": "R", "rate": "1 Mbit/s" });
    assert_eq!(change(rate), "changes.0");
    let second = json!({ "at": "1s", "watcher": 2, "weight": 8 });
    assert_eq!(change(second), "changes.0.watcher");
    assert_eq!(change(json!({ "at": "1s", "watcher": 1 })), "changes.0");
    let up = json!({ "at": "1s", "watcher": 1, "weight": 8, "up": true });
    assert_eq!(change(up), "changes.0");
    assert_eq!(refused("links", &json!(["P>C"])), "links.0");
    assert_eq!(refused("measure", &json!({ "from": "20s" })), "measure");
    assert_eq!(refused("sample", &json!("0s")), "sample");
}
