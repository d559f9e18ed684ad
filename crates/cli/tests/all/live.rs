//! The real command: forwarder, publisher and watcher as three processes.

use std::path::Path;
use std::process::Command;

use namecast_net::Clock;
use serde_json::Value;

use crate::program::{Program, clocks, newest_stats, start_forwarder, start_publisher, until};

/// Interrupts a program, as Ctrl-C does, and waits until it has ended well.
fn interrupt(program: &mut Program) {
    let id = program.0.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &id])
            .status()
            .unwrap()
            .success()
    );
    let status = until("the end after an interrupt", || {
        program.0.try_wait().unwrap()
    });
    assert!(status.success(), "{status}");
}

fn received(path: &Path) -> u64 {
    newest_stats(path)
        .and_then(|stats| stats["video"]["received"].as_u64())
        .unwrap_or(0)
}

/// Waits until `count` more frames were received than now.
fn until_more(path: &Path, count: u64) {
    let before = received(path);
    until("further frames", || {
        (received(path) >= before + count).then_some(())
    });
}

/// From capture through the smallest rung's encoder, three nodes and a recording, back to pixels: every frame decodes, shows
/// a valid clock, and they are in order without a gap unless the statistics own up to one.
#[test]
fn what_is_watched_decodes_in_order_and_shows_its_clock() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let (_forwarder, face) = start_forwarder(home);
    let mut publisher = start_publisher(home, &face);
    let mut watcher = Program::start(
        home,
        &format!("watch /test --quiet --output film.mp4 --stats stats.json --connect {face}"),
    );
    let stats = home.join("stats.json");
    until_more(&stats, 70);
    interrupt(&mut watcher);
    interrupt(&mut publisher);

    let stats = newest_stats(&stats).unwrap();
    assert_eq!(stats["final"], true);
    assert_eq!(stats["verification_failures"], 0);
    assert_eq!(stats["signer"]["trusted"], true);
    let video = &stats["video"];
    let readings = clocks(&home.join("film.mp4"));
    assert!(readings.len() >= 60, "{} frames", readings.len());
    assert!(readings.len() as u64 <= video["received"].as_u64().unwrap());
    let whole = video["lost"] == 0 && video["skips"] == 0;
    for pair in readings.windows(2) {
        let step = pair[1].number - pair[0].number;
        assert!(step == 1 || (!whole && step < 1_000), "{pair:?}");
        assert!(pair[1].millis > pair[0].millis, "{pair:?}");
    }
    let probed = Command::new("ffprobe")
        .args([
            "-loglevel",
            "error",
            "-show_entries",
            "stream=codec_name",
            "-of",
            "csv=p=0",
        ])
        .arg(home.join("film.mp4"))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&probed.stdout), "h264\nopus\n");
}

/// A publisher that is killed and started again is watched on, by the same watcher, and what comes then is new.
#[test]
fn a_publisher_that_was_killed_is_watched_again() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let (_forwarder, face) = start_forwarder(home);
    let mut publisher = start_publisher(home, &face);
    let mut watcher = Program::start(
        home,
        &format!("watch /test --quiet --output film.nut --stats stats.json --connect {face}"),
    );
    let stats = home.join("stats.json");
    until_more(&stats, 30);
    publisher.kill();
    let killed_at = Clock::new().wall().as_micros() / 1_000;
    let mut publisher = start_publisher(home, &face);
    until_more(&stats, 60);
    interrupt(&mut watcher);
    interrupt(&mut publisher);

    let stats = newest_stats(&stats).unwrap();
    assert!(stats["rejoins"].as_u64() >= Some(1), "{stats}");
    assert_eq!(stats["verification_failures"], 0);
    let readings = clocks(&home.join("film.nut"));
    let after = readings
        .iter()
        .filter(|reading| reading.millis > killed_at)
        .count();
    assert!(after >= 30, "{after} frames after the restart");
    for pair in readings.windows(2) {
        assert!(pair[1].millis > pair[0].millis, "{pair:?}");
    }
}

/// The page's server tells what the page needs, and ends with an interrupt.
#[test]
fn the_demo_serves_its_page_and_its_state() {
    let home = tempfile::tempdir().unwrap();
    let mut demo = Program::start(home.path(), "demo --json --ladder 200k --port 0");
    let about = demo.lines().next().unwrap();
    let url = about["url"].as_str().unwrap();
    let port = url.trim_end_matches('/').rsplit(':').next().unwrap();
    // The publisher's figures come once a second.
    let status = until("figures of the publisher", || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_namecast"));
        let status = command.args(["status", "--json", "--port", port]).output();
        let status: Value = serde_json::from_slice(&status.unwrap().stdout).ok()?;
        (!status["publisher"].is_null()).then_some(status)
    });
    let prefix = &status["node"]["routes"][0]["prefix"];
    assert!(prefix.is_string(), "{status}");
    assert!(status["publisher"]["frames_published"].is_u64());
    assert_eq!(about["key_digest"].as_str().unwrap().len(), 64);
    interrupt(&mut demo);
}

#[test]
fn what_goes_wrong_is_explained() {
    let home = tempfile::tempdir().unwrap();
    let explain = |arguments: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_namecast"))
            .args(arguments.split_whitespace())
            .env("XDG_DATA_HOME", home.path())
            .output()
            .unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(explain("publish /x --input missing.mp4").contains("--input test"));
    assert!(explain("publish /x --input /dev/video99").contains("plug one in"));
    assert!(explain("watch /x --key 12").contains("64 hexadecimal digits"));
    assert!(explain("watch /x --key /x/KEY/1").contains("64 hexadecimal digits"));
    assert!(explain("watch /x --controller best").contains("unlimited"));
    assert!(explain("status --port 1").contains("namecast forwarder"));
    assert!(explain("demo --stats /nowhere/x").contains("--stats"));
}
