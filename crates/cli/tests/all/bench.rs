//! The forwarder's measurement works; times that it measures on a busy machine mean nothing, but memory does.

use std::process::Command;

use serde_json::Value;

/// Runs `namecast bench` with these arguments, and returns what it reports.
fn report(arguments: &str) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_namecast"))
        .args(arguments.split_whitespace())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn relays_and_forwarder_deliver_in_every_kind_of_load() {
    let report = report(
        "bench forwarder --rounds 1 --span 300ms --json \
         --case unique-bursts --case hits --case large --case live8",
    );
    let cases = report["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 4);
    for case in cases {
        for program in ["relay", "plain_relay", "forwarder"] {
            for figure in ["cost_us", "delivered_per_second", "delay_p50_us"] {
                let value = case[program][figure].as_f64().unwrap();
                assert!(value > 0.0, "{program} {figure}: {case}");
            }
        }
    }
}

/// One session and ten, with a frame for an exchange instead of two but for what goes alone at the start and the end.
#[test]
fn sessions_have_everything_with_bundles_and_without() {
    let report = report(
        "bench exchange --json --rounds 1 --count 400 --payload 100 --window 4 --sessions 1,10",
    );
    let points = report["points"].as_array().unwrap();
    assert_eq!(points.len(), 2);
    for point in points {
        // A side's last answers may leave after it has everything; what is sent again adds to the others.
        for (way, frames) in [("plain", 1.8..4.0), ("bundled", 0.9..1.7)] {
            let sent = point[way]["frames"].as_f64().unwrap();
            assert!(frames.contains(&sent), "{way}: {point}");
            assert_eq!(point[way]["missing"], 0.0, "{way}: {point}");
        }
    }
}

/// Resident memory of full tables is what they are told to take. The order of names is in it.
#[test]
fn full_tables_take_the_memory_that_is_configured() {
    let report = report("bench memory --json --size 250 --bound 16MiB");
    let rows = report.as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for row in rows {
        for figure in ["store_ratio", "pending_ratio", "ratio", "ordered_ratio"] {
            let ratio = row[figure].as_f64().unwrap();
            assert!((0.9..=1.1).contains(&ratio), "{figure}: {row}");
        }
    }
}
