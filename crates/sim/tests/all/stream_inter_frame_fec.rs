//! Inter-frame FEC: sound over a link that loses packets, with no time to ask again for what was lost.

use serde_json::{Value, json};

use crate::outcome::{assert_within, run};

/// P – R – C at 25 ms each: RTT 100 ms. Sound of 50 packets a second with a target of 100 ms; groups of four take 60 ms. The
/// link R – C loses `loss`, and no cache shortens the way back. 60 s, of which 10 to 58 are measured: 2400 packets.
fn sound(loss: &Value, inter_frame: bool) -> Value {
    let link = |from: &str, to: &str, loss: &Value| {
        let config = json!({ "delay": "25 ms", "loss": loss });
        json!({ "ends": [from, to], "config": config })
    };
    json!({
        "kind": "stream",
        "duration": "60s",
        "measure": { "from": "10s", "until": "58s" },
        "links": ["R>C"],
        "signature": "hmac",
        "topology": {
            "kind": "explicit",
            "node": [{ "name": "P" }, { "name": "R" }, { "name": "C" }],
            "link": [link("P", "R", &json!({ "kind": "none" })), link("R", "C", loss)],
        },
        "publishers": [{
            "streams": [{ "kind": "audio", "across": { "samples": 4, "parity": 2 } }],
        }],
        "watchers": [{
            "start": "1s",
            "video": false,
            "audio": true,
            "recovery": { "across": inter_frame },
        }],
    })
}

/// What leaves the producer, per second, against the same without loss.
fn cost(scenario: &Value, seed: u64) -> f64 {
    let clean = sound(&json!({ "kind": "none" }), true);
    run(scenario, seed).metrics["producer-rate"] / run(&clean, seed).metrics["producer-rate"]
}

/// One in twenty is lost. Four packets and two shards: more than two of six are lost of 0.22 % of groups, and a lead that is lost
/// in one of these is one in two thousand. Without parity all of it is too late; with it, two shards for four leads cost half as
/// much again, and what they are larger than leads.
#[test]
fn lost_packets_are_rebuilt_in_time_where_none_can_be_asked_for_again() {
    let loss = json!({ "kind": "random", "share": 0.05 });
    let without = run(&sound(&loss, false), 1);
    assert_within(&without, "rendered-share", 0.90..=0.96);
    assert_within(&without, "rebuilt-share", 0.0..=0.0);
    let with = run(&sound(&loss, true), 1);
    assert_within(&with, "rendered-share", 0.996..=1.0);
    assert_within(&with, "rebuilt-share", 0.035..=0.065);
    let cost = cost(&sound(&loss, true), 1);
    assert!((1.4..=1.75).contains(&cost), "{cost}");
}

/// Where nothing is lost, or bursts of five take whole groups, parity is not asked for, or hardly.
#[test]
fn parity_is_not_paid_for_where_it_gives_nothing_back() {
    let clean = run(&sound(&json!({ "kind": "none" }), true), 1);
    assert_within(&clean, "rendered-share", 1.0..=1.0);
    let payload = 50.0 * 250.0 * 8.0 / 1e6;
    // Packets and nothing else: 250 octets of payload in some 400.
    assert_within(&clean, "producer-rate", payload..=payload * 1.8);
    let bursts = json!({ "kind": "gilbert-elliott", "good-to-bad": 0.010_526, "bad-to-good": 0.2 });
    let [with, without] = [true, false].map(|inter_frame| cost(&sound(&bursts, inter_frame), 1));
    assert!(with <= without + 0.08, "{with} {without}");
    let share = run(&sound(&bursts, true), 1).metrics["rendered-share"];
    assert!((0.90..=0.98).contains(&share), "{share}");
}

/// With time for two rounds of asking, those are cheaper, and as good.
#[test]
fn where_what_was_lost_can_be_asked_for_again_it_is() {
    let mut scenario = sound(&json!({ "kind": "random", "share": 0.05 }), true);
    scenario["watchers"][0]["target"] = json!("250 ms");
    let outcome = run(&scenario, 1);
    assert_within(&outcome, "rendered-share", 0.999..=1.0);
    assert_within(&outcome, "rebuilt-share", 0.0..=0.0);
    let cost = cost(&scenario, 1);
    assert!((1.03..=1.1).contains(&cost), "{cost}");
}
