//! Scenarios as experiment files describe them, and what must come of them.

use std::path::Path;

use namecast_sim::scenario::Scenario;
use serde_json::{Value, json};

use crate::outcome::{assert_within, run};

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

/// The bounds of the issue: at least 0.98 of the link, at most 3 ms of queue, at a round-trip time of 20 ms.
#[test]
fn adaptive_rate_control_fills_a_short_path_and_keeps_its_queue_short() {
    let outcome = run(&dumbbell("arc", "8 ms"), 1);
    assert_within(&outcome, "utilisation", 0.98..=1.001);
    assert_within(&outcome, "added-rtt", 0.5..=3.0);
    assert_within(&outcome, "goodput", 9.3..=9.54);
    assert_within(&outcome, "drops", 0.0..=0.0);
}

/// At 300 ms of round-trip time: 0.81 of the link by the independent model, within 3 %.
#[test]
fn adaptive_rate_control_leaves_some_of_a_long_path_unused() {
    let mut scenario = dumbbell("arc", "148 ms");
    scenario["duration"] = json!("60s");
    scenario["measure"] = json!({ "from": "20s" });
    let outcome = run(&scenario, 1);
    assert_within(&outcome, "utilisation", 0.78..=0.87);
    assert_within(&outcome, "added-rtt", 0.5..=2.7);
}

/// A window that fills the path and half of the queue: (20.9 ms · 10 Mbit/s) / 1074 octets is 24 packets.
#[test]
fn a_fixed_window_waits_for_what_exceeds_the_path() {
    let outcome = run(&dumbbell("window:49", "8 ms"), 1);
    assert_within(&outcome, "utilisation", 0.999..=1.001);
    // 49 packets at 0.8592 ms each are 42.1 ms, of which 20.9 are the path's.
    assert_within(&outcome, "rtt", 41.9..=42.3);
    assert_within(&outcome, "added-rtt", 20.9..=21.5);
    assert_within(&outcome, "queue-delay", 20.9..=21.5);
}

/// 5 Mbit/s of content are 5.244 Mbit/s with headers.
#[test]
fn a_fixed_rate_below_the_bottleneck_meets_no_queue() {
    let outcome = run(&dumbbell("rate:5M", "8 ms"), 1);
    assert_within(&outcome, "goodput", 4.99..=5.01);
    assert_within(&outcome, "utilisation", 0.523..=0.526);
    assert_within(&outcome, "queue-delay", 0.0..=0.001);
    assert_within(&outcome, "added-rtt", -0.02..=0.02);
}

/// From 10 down to 5 Mbit/s at 15 s: the rate falls below the new bandwidth within half a second, and not before a
/// round-trip time.
#[test]
fn convergence_counts_from_the_change() {
    let mut scenario = dumbbell("arc", "8 ms");
    scenario["changes"] = json!([{ "at": "15s", "link": "R1-R2", "rate": "5 Mbit/s" }]);
    scenario["convergence"] = json!({ "change": 1, "below": "5 Mbit/s" });
    scenario["probes"] = json!({ "before": "14.9s", "after": "20s" });
    let outcome = run(&scenario, 1);
    assert_within(&outcome, "convergence", 0.2..=0.82);
    assert_within(&outcome, "estimate-before", 8.5..=10.5);
    assert_within(&outcome, "estimate-after", 4.2..=5.3);
    // Of 5 Mbit/s, although the file's rate is 10.
    assert_within(&outcome, "utilisation", 0.97..=1.001);
}

/// Two flows of one name: what C1 has fetched, R2 has.
#[test]
fn flows_of_one_name_share_what_a_cache_holds() {
    let mut scenario = dumbbell("rate:4M", "8 ms");
    scenario["topology"]["flows"] = json!(2);
    scenario["cache"] = json!("16 MiB");
    let flow = |consumer: &str, start: &str| json!({ "consumer": consumer, "producer": "P1", "prefix": "/p", "controller": "rate:4M", "start": start });
    scenario["flows"] = json!([flow("C1", "0s"), flow("C2", "1s")]);
    let outcome = run(&scenario, 1);
    assert_within(&outcome, "goodput", 7.9..=8.1);
    // Once over the bottleneck: 4 of 9.53 Mbit/s.
    assert_within(&outcome, "utilisation", 0.41..=0.43);
}

/// One flow of 2 Mbit/s, two of 3: the second kind has six eighths, and both of its flows the same.
#[test]
fn kinds_of_flows_have_their_shares() {
    let mut scenario = dumbbell("rate:2M", "8 ms");
    scenario["topology"]["flows"] = json!(2);
    scenario["flows"][0]["kind"] = json!("slow");
    let fast = json!({ "kind": "fast", "count": 2, "prefix": "/fast{}", "controller": "rate:3M" });
    scenario["flows"].as_array_mut().unwrap().push(fast);
    let outcome = run(&scenario, 1);
    assert_within(&outcome, "kind-slow-goodput", 1.99..=2.01);
    assert_within(&outcome, "kind-slow-share", 0.249..=0.251);
    assert_within(&outcome, "kind-fast-goodput", 2.99..=3.01);
    assert_within(&outcome, "kind-fast-share", 0.749..=0.751);
    assert_within(&outcome, "kind-fast-jain", 0.999..=1.0);
}

/// At 4 of 10 Mbit/s the second bottleneck is full with 2 Mbit/s of content for its own flow and 1.8 for the long one, which
/// crosses the first one, too.
#[test]
fn the_long_flow_of_a_parking_lot_crosses_all_bottlenecks() {
    let mut scenario = dumbbell("rate:2M", "8 ms");
    scenario["topology"] =
        json!({ "kind": "parking-lot", "bottlenecks": 2, "rates": ["10 Mbit/s", "4 Mbit/s"] });
    let long = json!({ "kind": "long", "consumer": "C0", "producer": "P0", "prefix": "/p0", "controller": "rate:1800k" });
    scenario["flows"] = json!([long, { "count": 2, "controller": "rate:2M" }]);
    let wire = |content: f64| content * 1_074.0 / 1_024.0;
    for (bottleneck, rate) in [("R1>R2", 10.0), ("R2>R3", 4.0)] {
        scenario["bottleneck"] = json!(bottleneck);
        let outcome = run(&scenario, 1);
        assert_within(&outcome, "kind-long-goodput", 1.79..=1.81);
        let used = wire(3.8) / rate;
        assert_within(&outcome, "utilisation", used - 0.005..=used + 0.005);
    }
}

#[test]
fn a_scenario_that_contradicts_itself_is_refused_by_field() {
    let refused = |change: &dyn Fn(&mut Value)| {
        let mut scenario = dumbbell("arc", "8 ms");
        change(&mut scenario);
        let scenario: Scenario = serde_json::from_value(scenario).unwrap();
        scenario.validate(Path::new(".")).unwrap_err().to_string()
    };
    type Case<'a> = (&'a dyn Fn(&mut Value), &'a str);
    let cases: [Case<'_>; 8] = [
        (
            &|s| s["bottleneck"] = json!("R1-R2"),
            "bottleneck: 'R1-R2' is no direction",
        ),
        (
            &|s| s["bottleneck"] = json!("R1>X"),
            "bottleneck: there is no node 'X'",
        ),
        (&|s| s["flows"] = json!([]), "flows: 0 flows: expected 1 to"),
        (
            &|s| s["flows"][0]["consumer"] = json!("C9"),
            "flows.0.consumer: there is no node 'C9'",
        ),
        (
            &|s| s["flows"][0]["kind"] = json!("a b"),
            "flows.0.kind: expected letters, digits",
        ),
        (
            &|s| s["measure"] = json!({ "from": "40s" }),
            "measure: expected 'from' before 'until'",
        ),
        (
            &|s| s["packet"] = json!({ "payload": 1024, "wire": 1030 }),
            "packet.wire: expected 1064 to 8800",
        ),
        (
            &|s| s["convergence"] = json!({ "change": 1, "below": "1M" }),
            "convergence.change: expected 1 to 0",
        ),
    ];
    for (change, expected) in cases {
        let error = refused(change);
        assert!(error.contains(expected), "{error}");
    }
}

/// δ = 20 packets of 1024 octets every 10 ms: 16.384 Mbit/s per second, and the loss-free climb of the adaptive phase.
#[test]
fn closed_forms_hold_for_the_controller_alone() {
    let evolution = |path: Value, rest: Value| {
        let mut scenario =
            json!({ "kind": "evolution", "controller": "arc", "path": path, "duration": "1s" });
        scenario
            .as_object_mut()
            .unwrap()
            .extend(rest.as_object().unwrap().clone());
        run(&scenario, 1)
    };
    let start = evolution(json!({ "kind": "idle" }), json!({}));
    assert_within(&start, "slope", 16.0..=16.7);
    let climb = json!({
        "controller": { "kind": "arc", "initial-rate": 1100.0 },
        "duration": "20s", "first-lost": true, "from": "5M", "until": "9.5M",
    });
    assert_within(
        &evolution(json!({ "kind": "idle" }), climb),
        "time",
        8.05..=8.25,
    );
    let fall = json!({
        "controller": { "kind": "arc", "initial-rate": 2800.0 },
        "duration": "2s", "first-lost": true, "from": "10M", "until": "5M",
    });
    assert_within(
        &evolution(json!({ "kind": "congested" }), fall),
        "time",
        0.39..=0.43,
    );
}

#[test]
fn a_trace_is_the_same_each_time_and_has_all_its_files() {
    let mut scenario = dumbbell("arc", "8 ms");
    scenario["duration"] = json!("2s");
    scenario["measure"] = json!({ "from": "1s" });
    let scenario: Scenario = serde_json::from_value(scenario).unwrap();
    let directory = std::env::temp_dir().join(format!("namecast-trace-{}", std::process::id()));
    let digest = |seed| scenario.trace(Path::new("."), seed, &directory).unwrap();
    let first = digest(1);
    assert_ne!(digest(2), first);
    assert_eq!(digest(1), first);
    let lines = |name: &str| {
        std::fs::read_to_string(directory.join(name))
            .unwrap()
            .lines()
            .count()
    };
    assert!(lines("events.csv") > 1_000);
    // Two rows for each Data.
    assert!(lines("app-delays-trace.txt") > 500);
    // Four nodes at four times: two rows each of the cache, one of drops.
    assert_eq!([lines("cs-trace.txt"), lines("drop-trace.txt")], [33, 17]);
    assert!(lines("rate-trace.txt") > 300);
    assert!(
        std::fs::metadata(directory.join("events.parquet"))
            .unwrap()
            .len()
            > 10_000
    );
    std::fs::remove_dir_all(directory).unwrap();
}

/// A hundred packets for two receivers, one a second after the other, which finds all in the router's content store: each of three links
/// carries 859 200 bits of Data once, and Interests of 20 octets. The link without a rate does not count.
#[test]
fn flows_that_end_tell_what_links_carried() {
    let link = json!({ "rate": "10 Mbit/s", "delay": "1 ms" });
    let flow = |consumer: &str, start: &str| {
        json!({
            "consumer": consumer,
            "producer": "P",
            "prefix": "/p",
            "controller": "window:10",
            "end": { "packets": 100, "repair": "at-end" },
            "start": start,
            "start-spread": "0s",
        })
    };
    let scenario = json!({
        "kind": "network",
        "duration": "3s",
        "bottleneck": "P>R",
        "cache": "1 MiB",
        "topology": {
            "kind": "explicit",
            "node": [{ "name": "P" }, { "name": "R" }, { "name": "C1" }, { "name": "C2" }, { "name": "C3" }],
            "link": [
                { "ends": ["P", "R"], "config": link },
                { "ends": ["R", "C1"], "config": link },
                { "ends": ["R", "C2"], "config": link },
                { "ends": ["C2", "C3"] },
            ],
        },
        "flows": [flow("C1", "0s"), flow("C3", "1s")],
    });
    let outcome = run(&scenario, 1);
    assert_within(&outcome, "least-load", 0.002_577_6..=0.002_577_601);
    assert_within(&outcome, "load", 0.002_61..=0.002_64);
    assert_within(&outcome, "sent", 1.0..=1.0);
    // 86 ms at the rate, and a round trip.
    assert_within(&outcome, "completion-1", 0.087..=0.1);
    assert_within(&outcome, "completion-2", 0.087..=0.1);
}
