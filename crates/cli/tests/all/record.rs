//! What `watch` writes of a stream that is really published: containers that are broken off, and HLS, beside NUT, which is written without ffmpeg.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::program::{Program, start_forwarder, until};

/// Octets of a recording that is long enough, four seconds at 400 kbit/s, and what it must have in common with another.
const ENOUGH: u64 = 200_000;
const IN_COMMON: usize = 30;

/// Containers round times to milliseconds, in seconds.
const TOLERANCE: f64 = 0.003;

/// One packet: when it is shown, in seconds, and a digest of it.
type Packet = (f64, String);

/// Packets of a recording's pictures and sound: their NAL units in one form, without delimiters.
fn packets(file: &Path) -> [Vec<Packet>; 2] {
    let output = Command::new("ffmpeg")
        .args(["-v", "quiet", "-copyts", "-i"])
        .arg(file)
        .args(["-map", "0:v", "-map", "0:a", "-c", "copy"])
        .args(["-bsf:v", "h264_mp4toannexb,h264_metadata=aud=remove"])
        .args(["-f", "framemd5", "-"])
        .output()
        .unwrap();
    let mut units = [0.0; 2];
    let mut packets = [Vec::new(), Vec::new()];
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        if let Some(unit) = line.strip_prefix("#tb ") {
            let (stream, unit) = unit.split_once(": ").unwrap();
            let (above, below) = unit.split_once('/').unwrap();
            let unit = above.parse::<f64>().unwrap() / below.parse::<f64>().unwrap();
            units[stream.parse::<usize>().unwrap()] = unit;
        } else if !line.starts_with('#') {
            let fields: Vec<_> = line.split(',').map(str::trim).collect();
            let stream: usize = fields[0].parse().unwrap();
            let shown_at = fields[2].parse::<f64>().unwrap() * units[stream];
            packets[stream].push((shown_at, fields[5].to_owned()));
        }
    }
    packets
}

/// How much later a picture is in one recording than in another: the first that both have says it.
fn shift(name: &str, found: &[Packet], whole: &[Packet]) -> f64 {
    let there = |digest: &str| whole.iter().find(|(_, other)| other == digest);
    let mut pairs = found
        .iter()
        .filter_map(|(at, digest)| Some(at - there(digest)?.0));
    pairs.next().unwrap_or_else(|| {
        panic!(
            "{name}: none of {} pictures is one of {}",
            found.len(),
            whole.len()
        )
    })
}

/// Counts the packets that both have; fails if they differ in any. Each lacks what it was too late for.
fn common(name: &str, found: &[Packet], whole: &[Packet], shift: f64) -> usize {
    let mut count = 0;
    for (at, digest) in found {
        let is_then = |(then, _): &&Packet| (at - then - shift).abs() < TOLERANCE;
        if let Some((_, other)) = whole.iter().find(is_then) {
            assert_eq!(digest, other, "{name}: at {at} s");
            count += 1;
        }
    }
    count
}

fn children(program: &Program) -> Vec<String> {
    let id = program.0.id();
    let tasks = fs::read_dir(format!("/proc/{id}/task")).unwrap();
    let of_task = |task: std::io::Result<fs::DirEntry>| {
        fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default()
    };
    let all: String = tasks.map(of_task).collect();
    all.split_whitespace().map(str::to_owned).collect()
}

fn signal(signal: &str, id: &str) {
    assert!(
        Command::new("kill")
            .args([signal, id])
            .status()
            .unwrap()
            .success()
    );
}

#[test]
fn recordings_hold_what_was_published() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let (_forwarder, face) = start_forwarder(home);
    let line =
        format!("publish /test --quiet --input test --ladder 200k,400k@480x270 --connect {face}");
    let _publisher = Program::start(home, &line);
    let watch = |output: &str| {
        let line = format!("watch /test --quiet --output {output} --connect {face}");
        Program::start(home, &line)
    };
    let mut whole = ["film.nut", "hls:live"].map(watch);
    let broken = ["film.mp4", "film.mkv", "film.ts"];
    let mut watchers = broken.map(watch);
    let size = |name: &str| fs::metadata(home.join(name)).map_or(0, |it| it.len());
    until("long recordings", || {
        let names = broken.into_iter().chain(["film.nut"]);
        names.map(size).all(|size| size > ENOUGH).then_some(())
    });
    // Their ffmpegs first: whatever they had not written is lost.
    for (watcher, name) in watchers.iter_mut().zip(broken) {
        let children = children(watcher);
        assert_eq!(children.len(), 1, "{name} is written by one ffmpeg");
        signal("-KILL", &children[0]);
        watcher.kill();
    }
    for program in &mut whole {
        signal("-INT", &program.0.id().to_string());
        let status = until("the end after an interrupt", || {
            program.0.try_wait().unwrap()
        });
        assert!(status.success(), "{status}");
    }

    let [pictures, sound] = packets(&home.join("film.nut"));
    for name in broken.into_iter().chain(["live/index.m3u8"]) {
        let [mut found, sounds] = packets(&home.join(name));
        if broken.contains(&name) {
            // The last one may be cut off.
            found.pop();
        }
        let shift = shift(name, &found, &pictures);
        let seen = common(name, &found, &pictures, shift);
        assert!(seen >= IN_COMMON, "{name}: {seen} pictures in common");
        // HLS and MPEG-TS have AAC: whether it is in step is seen in namecast-media's test.
        if name.ends_with(".mp4") || name.ends_with(".mkv") {
            let heard = common(name, &sounds, &sound, shift);
            assert!(
                heard >= IN_COMMON,
                "{name}: {heard} packets of sound in common"
            );
        } else {
            assert!(
                sounds.len() >= IN_COMMON,
                "{name}: {} packets of sound",
                sounds.len()
            );
        }
    }
}
