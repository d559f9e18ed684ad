//! The real command: a publisher is recorded, killed, and watched from the past.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

mod program;

use std::path::Path;

use namecast_cli::commands::PastTime;
use namecast_media::ingest::burned_clock::Reading;
use namecast_net::Clock;
use serde_json::Value;

use program::{Program, clocks, command, newest_stats, start_forwarder, start_publisher, until};

/// From one frame of the test picture to the next.
const FRAME: u64 = 41_000;

/// Waits until a number in a statistics file is at least `least`.
fn until_at_least(path: &Path, field: &str, least: u64) {
    let there = || newest_stats(path).and_then(|stats| stats[field].as_u64());
    until(&format!("{least} {field}"), || {
        (there() >= Some(least)).then_some(())
    });
}

/// What a watcher says when playback from the past begins: seconds since 1970 of the first frame.
fn playing_from(said: &Value) -> Option<u64> {
    let text = said["event"].as_str()?.strip_prefix("playing from ")?;
    let (seconds, _) = text.split_once(',')?;
    let (whole, micros) = seconds.split_once('.')?;
    Some(whole.parse::<u64>().ok()? * 1_000_000 + micros.parse::<u64>().ok()?)
}

/// The publisher is killed after some ten seconds, the archive too, and started again on what it left. Who comes then plays
/// from the time that it names: the first frame is the one captured last before, by what its pixels say too.
#[test]
fn a_killed_publisher_is_watched_from_the_past() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let (_forwarder, face) = start_forwarder(home);
    let mut publisher = start_publisher(home, &face);
    let record = |stats: &str| {
        let line = format!("archive /test --quiet --store kept --stats {stats} --connect {face}");
        Program::start(home, &line)
    };
    let mut archive = record("first.json");
    // 25 frames and 50 packets of sound a second.
    until_at_least(&home.join("first.json"), "samples", 600);
    publisher.kill();
    archive.kill();
    let stats = newest_stats(&home.join("first.json")).unwrap();
    assert_eq!(stats["samples_incomplete"], 0, "{stats}");
    assert_eq!(stats["verification_failures"], 0, "{stats}");

    let _archive = record("second.json");
    until_at_least(&home.join("second.json"), "chunks", 1);
    let now = Clock::new().wall().as_micros();
    // Nothing is kept of 1970, and the time that is offered instead is one that plays.
    let early = format!("watch /test --from 1 --connect {face}");
    let early = command(home, &early).output().unwrap();
    let text = String::from_utf8(early.stderr).unwrap();
    assert_eq!(early.status.code(), Some(1), "{text}");
    let (_, kept) = text.split_once("write --from '").expect("advice");
    let (kept, _) = kept.split_once('\'').unwrap();
    let Ok(PastTime::At(kept)) = kept.parse() else {
        panic!("{kept} can be written");
    };
    let kept = kept.as_micros() / 1_000_000;
    let watch = |from| {
        let line = format!(
            "watch /test --json --no-audio --output film.mp4 --duration 8s --from {from} --connect {face}"
        );
        Program::start(home, &line)
    };
    let plays = watch(kept).lines().find_map(|said| playing_from(&said));
    assert!(plays.is_some(), "{kept} is not kept");

    // The publisher did not lose a frame any more, as it may at its start.
    let from = (kept + 4) * 1_000_000;
    assert!(from < now);
    let mut watcher = watch(kept + 4);
    let mut said = watcher.lines();
    let first = said.find_map(|said| playing_from(&said));
    let first = first.expect("playback from the past begins");
    assert!(first <= from && from - first < FRAME, "{first} for {from}");
    let last = said.last().unwrap();
    assert_eq!(last["final"], true);
    assert_eq!(last["stats"]["verification_failures"], 0);
    watcher.0.wait().unwrap();

    // The recording begins with the key frame that the first one needs.
    let readings = clocks(&home.join("film.mp4"));
    assert!(readings.len() >= 60, "{} frames", readings.len());
    for pair in readings.windows(2) {
        assert_eq!(pair[1].number, pair[0].number + 1, "{pair:?}");
    }
    let is_first = |reading: &&Reading| reading.millis.abs_diff(first / 1_000) <= 1;
    assert!(readings.iter().any(|reading| is_first(&reading)));
}
