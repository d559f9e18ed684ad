//! Two consumers over two labelled paths, one of which is served by a cache until it runs dry: what nodes say of their paths is used.

use serde_json::{Value, json};

use crate::outcome::{assert_within, run};

/// Fig. 8 of \[RFCC\] with less delay: C1 from the start, C2 from 3 s on, both over A–B with 15 and A–C with 5 Mbit/s.
fn two_paths(controller: &Value) -> Value {
    let link = |ends: [&str; 2], rate: &str| json!({ "ends": ends, "config": { "rate": rate, "delay": "10 ms", "queue": { "kind": "drop-tail", "packets": 100 } } });
    let flow = |consumer: &str, start: &str| {
        json!({
            "consumer": consumer, "producer": "E", "prefix": "/video", "controller": controller, "start": start,
            "segment": 400, "max-paths": 2,
        })
    };
    let names = ["C1", "C2", "A", "B", "C", "D", "E"];
    json!({
        "kind": "network",
        "duration": "12 s",
        "measure": { "from": "4 s" },
        "cache": "512 MiB",
        "routes": "all",
        "hops": ["rate-feedback", "path-labels"],
        "bottleneck": "B>A",
        "links": ["B>A", "C>A"],
        "packet": { "payload": 8_000, "wire": 8_060 },
        "topology": {
            "kind": "explicit",
            "node": names.map(|name| json!({ "name": name })),
            "link": [
                link(["A", "B"], "15 Mbit/s"), link(["A", "C"], "5 Mbit/s"), link(["B", "D"], "1 Gbit/s"),
                link(["C", "D"], "1 Gbit/s"), link(["D", "E"], "1 Gbit/s"), link(["C1", "A"], "30 Mbit/s"),
                link(["C2", "A"], "30 Mbit/s"),
            ],
        },
        "flows": [flow("C1", "0 s"), flow("C2", "3 s")],
    })
}

/// Both paths are found and full but for the pause between segments: 400 · 8000 · 8 bit at 19.8 Mbit/s of content and a round trip of
/// 80 ms are 18.2 Mbit/s. C2 comes from the cache faster than that, and no queue builds up when it runs dry.
#[test]
fn tags_keep_the_queue_short_where_a_cache_runs_dry() {
    let outcome = run(&two_paths(&json!("copa")), 1);
    for number in 1..=2 {
        assert_within(&outcome, &format!("paths-{number}"), 2.0..=2.0);
    }
    assert_within(&outcome, "segment-rate-1", 16.5..=19.0);
    assert_within(&outcome, "switches-2", 1.0..=100.0);
    assert_within(&outcome, "switch-peak-1", 0.0..=40.0);
    assert_within(&outcome, "link-1-drops", 0.0..=0.0);
    assert_within(&outcome, "link-2-drops", 0.0..=0.0);
}

/// Without the nodes' help there is one path, without labels, and nothing else differs.
#[test]
fn nodes_that_say_nothing_leave_one_path() {
    let mut scenario = two_paths(&json!("copa"));
    scenario["hops"] = json!([]);
    scenario["duration"] = json!("8 s");
    let outcome = run(&scenario, 1);
    assert_within(&outcome, "paths-1", 1.0..=1.0);
    assert_within(&outcome, "segment-rate-1", 11.0..=14.9);
}
