//! What the laboratory finds out about frames in time, about Interests, and about streams beside other traffic.

use serde_json::{Value, json};

use crate::outcome::{assert_within, run};

/// P – R – C{n} at 25 ms and 10 Mbit/s from R on: one rung of 1 Mbit/s, and sound. 12 s, of which 3 to 10 are measured.
fn line(watchers: u32) -> Value {
    let config = json!({ "rate": "10 Mbit/s", "delay": "25 ms", "queue": { "kind": "drop-tail", "packets": 100 } });
    let hosts = (1..=watchers).map(|n| json!({ "name": format!("C{n}") }));
    let nodes = ["P", "R", "E"].map(|name| json!({ "name": name }));
    let mut links = vec![
        json!({ "ends": ["P", "R"] }),
        json!({ "ends": ["R", "E"], "config": config, "back": { "delay": "25 ms" } }),
    ];
    links.extend((1..=watchers).map(|n| json!({ "ends": ["E", format!("C{n}")] })));
    json!({
        "kind": "stream",
        "duration": "12s",
        "measure": { "from": "3s", "until": "10s" },
        "links": ["R>E"],
        "caches": { "R": "16 MiB" },
        "topology": {
            "kind": "explicit",
            "node": nodes.into_iter().chain(hosts).collect::<Vec<_>>(),
            "link": links,
        },
        "publishers": [{
            "count": watchers,
            "prefix": "/s{}",
            "streams": [{ "kind": "video" }, { "kind": "audio" }],
        }],
        "watchers": [{
            "count": watchers,
            "node": "C{}",
            "prefix": "/s{}",
            "start": "1s",
            "target": "250 ms",
            "audio": true,
        }],
    })
}

#[test]
fn all_is_in_time_where_nothing_happens() {
    let outcome = run(&line(1), 1);
    for metric in ["in-time-share", "complete-share", "sound-in-time-share"] {
        assert_within(&outcome, metric, 1.0..=1.0);
    }
    for metric in ["freeze", "switches", "rung-back", "sound-gap", "sound-back"] {
        assert_within(&outcome, metric, 0.0..=1e-5);
    }
    assert_within(&outcome, "shown-rate", 0.95..=1.05);
    assert_within(&outcome, "link-1-own-rate-share", 1.0..=1.0);
    assert_within(&outcome, "link-1-own-queue-delay-p95", 0.0..=15.0);
    assert_within(&outcome, "link-1-own-queue-long", 0.0..=0.0);
    assert_within(&outcome, "link-1-own-dropped", 0.0..=0.0);
}

/// The publisher dies at 5 s, so of 210 frames the first 60 are in time, and of 350 packets of sound the first 100.
#[test]
fn nothing_is_in_time_once_the_publisher_is_dead() {
    let mut scenario = line(1);
    scenario["changes"] = json!([{ "at": "5s", "publisher": 1, "up": false }]);
    scenario["windows"] = json!({ "dead": { "from": "5s", "until": "10s" } });
    let outcome = run(&scenario, 1);
    assert_within(&outcome, "in-time-share", 59.0 / 210.0..=61.0 / 210.0);
    assert_within(
        &outcome,
        "sound-in-time-share",
        99.0 / 350.0..=101.0 / 350.0,
    );
    // 150 frames.
    assert_within(&outcome, "freeze", 4_966.0..=5_034.0);
    assert_within(&outcome, "in-time-share-dead", 0.0..=0.01);
    assert!(outcome.metrics["rung-back-dead"].is_nan());
}

/// The picture is of the one rung all the time, also once nothing new comes.
#[test]
fn quality_is_that_of_the_rung_shown() {
    let mut scenario = line(1);
    scenario["publishers"][0]["streams"][0]["quality"] = json!({ "psnr": [33.5], "ssim": [0.9] });
    scenario["changes"] = json!([{ "at": "5s", "publisher": 1, "up": false }]);
    let outcome = run(&scenario, 1);
    for metric in ["quality-psnr", "quality-psnr-1"] {
        assert_within(&outcome, metric, 33.499..=33.501);
    }
    assert_within(&outcome, "quality-ssim", 0.899..=0.901);
}

/// From 6 s on frames take 300 ms longer. If the laboratory's deadline stayed where it was, none would be in time from then on.
#[test]
fn the_deadline_follows_the_delay_of_the_path() {
    let mut scenario = line(1);
    scenario["changes"] = json!([{ "at": "6s", "link": "R>E", "delay": "325 ms" }]);
    scenario["windows"] = json!({ "after": { "from": "8s", "until": "10s" } });
    let outcome = run(&scenario, 1);
    assert_within(&outcome, "in-time-share-after", 0.9..=1.0);
}

/// Two streams, and a flow of 2 Mbit/s of content in packets of 1074 octets.
#[test]
fn data_of_streams_is_told_from_other_data() {
    let mut scenario = line(2);
    scenario["watchers"][0]["stagger"] = json!("500 ms");
    scenario["flows"] = json!([{
        "consumer": "C1",
        "producer": "P",
        "prefix": "/bulk",
        "controller": "rate:2M",
        "kind": "bulk",
    }]);
    let outcome = run(&scenario, 1);
    assert_within(&outcome, "kind-bulk-goodput", 1.99..=2.01);
    // Of 2 Mbit/s and twice 1.1 Mbit/s of frames' payload.
    assert_within(&outcome, "kind-bulk-share", 0.46..=0.49);
    let shares = ["kind-bulk-share", "streams-share"].map(|name| outcome.metrics[name]);
    assert!((shares[0] + shares[1] - 1.0).abs() < 1e-9, "{shares:?}");
    let [rate, share] = ["link-1-rate", "link-1-own-rate-share"].map(|name| outcome.metrics[name]);
    let flow = 2.0 * 1_074.0 / 1_024.0;
    assert!(
        (rate * (1.0 - share) / flow - 1.0).abs() < 0.02,
        "{rate} {share}"
    );
    // Link headers are a few octets in packets of some 300 and 1060.
    let of_streams = 2.0 * outcome.metrics["data-rate"];
    assert!(
        (1.0..1.06).contains(&(rate * share / of_streams)),
        "{share} {of_streams}"
    );
    assert_within(&outcome, "in-time-share-min", 1.0..=1.0);
    // The copies' frames differ in size.
    let [first, second] = ["shown-rate-1", "shown-rate-2"].map(|name| outcome.metrics[name]);
    assert!((first - second).abs() > 1e-6, "{first} {second}");
    assert_within(&outcome, "jain", 0.99..=1.0);
}

/// 1.5 Interests per segment needed and 50 a second over ten seconds, 1.25 per segment that the path carries and 50 in any
/// second, and four per segment.
#[track_caller]
fn assert_interests_within_bounds(scenario: &Value, seed: u64) {
    let outcome = run(scenario, seed);
    assert_within(&outcome, "interest-load", 0.0..=1.0);
    assert_within(&outcome, "interest-peak-load", 0.0..=1.0);
    assert_within(&outcome, "interests-per-segment", 1.0..=4.0);
}

/// A scenario of 30 s with four rungs.
fn ladder() -> Value {
    let mut scenario = line(1);
    scenario["duration"] = json!("30s");
    scenario["measure"] = json!({ "from": "3s" });
    let rungs = ["300 kbit/s", "600 kbit/s", "1200 kbit/s", "2500 kbit/s"];
    scenario["publishers"][0]["streams"][0]["rungs"] = json!(rungs);
    scenario
}

#[test]
fn interests_are_within_bounds_where_nothing_happens() {
    assert_interests_within_bounds(&ladder(), 1);
}

#[test]
#[ignore = "after losses every Interest is hedged by a second one, which at 500 kbit/s is more than the bound"]
fn interests_are_within_bounds_when_the_rate_falls() {
    let mut scenario = ladder();
    scenario["changes"] = json!([
        { "at": "12s", "link": "R>E", "rate": "500 kbit/s" },
        { "at": "20s", "link": "R>E", "rate": "10 Mbit/s" },
    ]);
    for packets in [50, 500] {
        scenario["topology"]["link"][1]["config"]["queue"]["packets"] = json!(packets);
        assert_interests_within_bounds(&scenario, 1);
    }
}

#[test]
#[ignore = "where Data is lost, every Interest is hedged by a second one: 1.2 times the bound"]
fn interests_are_within_bounds_with_loss_and_outages() {
    let mut scenario = ladder();
    scenario["topology"]["link"][1]["config"]["loss"] = json!({ "kind": "random", "share": 0.05 });
    assert_interests_within_bounds(&scenario, 1);
    scenario["topology"]["link"][1]["config"]["outages"] =
        json!([{ "from": "15s", "until": "17s" }]);
    assert_interests_within_bounds(&scenario, 1);
}
