//! The real command: a publisher is recorded, killed, and watched from the past.

use std::path::Path;

use namecast_cli::commands::PastTime;
use namecast_media::ingest::burned_clock::Reading;
use namecast_net::Clock;
use serde_json::Value;

use crate::program::{
    Program, clocks, command, newest_stats, start_forwarder, start_publisher, until,
};

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

/// A stream is recorded, and forwarder, publisher and archive start again, in each order: what was recorded before is watched,
/// though the publisher, which remembers nothing of it, answers for the time index too.
#[test]
fn the_past_is_watched_whoever_started_first() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let socket = home.join("forwarder.sock");
    let face = format!("unix://{}", socket.display());
    let start = |who: usize, stats: &Path| {
        let line = match who {
            0 => format!(
                "forwarder --json --port 0 --udp off --tcp off --unix {}",
                socket.display()
            ),
            1 => format!(
                "publish /test --quiet --input test --ladder 200k --connect {face} --stats {}",
                stats.display()
            ),
            _ => format!(
                "archive /test --quiet --store kept --connect {face} --stats {}",
                stats.display()
            ),
        };
        let mut program = Program::start(home, &line);
        // The next one shall not overtake it.
        match who {
            0 => drop(program.lines().next().unwrap()),
            1 => until_at_least(stats, "frames_published", 1),
            _ => until_at_least(stats, "interests_received", 0),
        }
        program
    };
    let begin = |order: [usize; 3], turn: &str| {
        let stats = |who| home.join(format!("{turn}-{who}.json"));
        let programs = order.map(|who| start(who, &stats(who)));
        (programs, stats(2))
    };
    let (mut programs, stats) = begin([0, 1, 2], "first");
    until_at_least(&stats, "samples", 300);
    programs.iter_mut().for_each(Program::kill);
    let since = newest_stats(&stats).unwrap()["since"].as_f64().unwrap();
    let from = since as u64 + 2;

    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        let (_programs, stats) = begin(order, &format!("{order:?}").replace([',', ' '], ""));
        // The archive has found the publisher.
        until_at_least(&stats, "samples", 50);
        let watch = format!(
            "watch /test --json --no-audio --output film.mp4 --duration 5s --from {from} --connect {face}"
        );
        let played = until(&format!("playback after {order:?}"), || {
            let mut watcher = Program::start(home, &watch);
            watcher.lines().find_map(|said| playing_from(&said))
        });
        assert!(
            played.abs_diff(from * 1_000_000) < FRAME,
            "{played} for {from}"
        );
    }
}
