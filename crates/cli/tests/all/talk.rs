//! Two people talk through a forwarder; nobody listens before the call is taken.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use crate::program::{
    command, home, newest_stats, start_bundling_forwarder, start_forwarder, until,
};

fn prepared(home: &Path, arguments: &str) -> Command {
    let mut command = command(home, &format!("talk {arguments} --stats stats"));
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

fn start(home: &Path, arguments: &str) -> Child {
    prepared(home, arguments).spawn().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Samples of a recording, and how many of them are of a tone.
fn samples(recording: &Path) -> (usize, usize) {
    let octets = fs::read(recording).unwrap();
    let data = octets.windows(4).position(|it| it == b"data").unwrap() + 8;
    let samples = octets[data..].chunks_exact(2);
    let samples = samples.map(|pair| i16::from_le_bytes([pair[0], pair[1]]).unsigned_abs());
    let loud = samples.clone().filter(|&level| level > 500).count();
    (samples.count(), loud)
}

fn heard(home: &Path) -> u64 {
    let stats = newest_stats(&home.join("stats"));
    let played = stats.and_then(|it| it["sound"]["packets_played"].as_u64());
    played.unwrap_or(0)
}

#[test]
fn two_people_hear_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let (_plain, plain) = start_forwarder(directory.path());
    let (_bundling, bundling) = start_bundling_forwarder(directory.path());
    for (round, face, flag) in [
        (1, &bundling, ""),
        (2, &bundling, "--no-bundle"),
        (3, &plain, ""),
    ] {
        let (alice, bob) = (
            home(directory.path(), &format!("alice{round}")),
            home(directory.path(), &format!("bob{round}")),
        );
        let at = format!("--connect {face} --input test --output heard.wav {flag}");
        let mut callee = start(&bob, &format!("/bob --answer --duration 60s {at}"));
        let mut caller = start(&alice, &format!("/alice /bob --duration 60s {at}"));
        until("two seconds of sound at both", || {
            (heard(&alice) > 100 && heard(&bob) > 100).then_some(())
        });
        // Who hangs up ends the call for both.
        assert!(interrupt(&caller).success());
        assert!(caller.wait().unwrap().success());
        assert!(callee.wait().unwrap().success());
        for home in [&alice, &bob] {
            let (all, loud) = samples(&home.join("heard.wav"));
            assert!(
                all > 48_000 * 2 && loud > all / 2,
                "round {round}: {loud} of {all}"
            );
            let stats = newest_stats(&home.join("stats")).unwrap();
            assert_eq!(stats["final"], true);
            assert!(stats["sound"]["mouth_to_ear_ms"]["p50"].as_f64().unwrap() > 0.0);
            assert_eq!(stats["packets_forged"], 0);
        }
    }
}

/// Writes a shell script.
fn write_program(path: &Path, command: &str) {
    fs::write(path, format!("#!/bin/sh\n{command}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Interrupts a program, as Ctrl-C does.
fn interrupt(program: &Child) -> std::process::ExitStatus {
    let id = program.id().to_string();
    Command::new("kill").args(["-INT", &id]).status().unwrap()
}

/// An ffmpeg that leaves a mark: nobody starts it on either side as long as the call is not taken.
#[test]
fn nothing_listens_before_the_call_is_taken() {
    let directory = tempfile::tempdir().unwrap();
    let (_forwarder, face) = start_forwarder(directory.path());
    let (alice, bob) = (
        home(directory.path(), "alice"),
        home(directory.path(), "bob"),
    );
    let marker = directory.path().join("listened");
    let spy = directory.path().join("ffmpeg");
    write_program(&spy, &format!("echo > {}", marker.display()));
    let start = |home: &Path, arguments: &str| {
        let mut command = prepared(home, &format!("{arguments} --connect {face}"));
        command.env("NAMECAST_FFMPEG", &spy).spawn().unwrap()
    };
    let mut callee = start(&bob, "/bob --duration 60s");
    let caller = start(&alice, "/alice /bob --duration 5s");
    let output = caller.wait_with_output().unwrap();
    callee.kill().unwrap();
    let told = callee.wait_with_output().unwrap();
    assert!(text(&told).contains("/alice is calling"), "{}", text(&told));
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output).contains("did not take the call"),
        "{}",
        text(&output)
    );
    assert!(!marker.exists(), "somebody listened");
}

/// Whoever takes every call goes on after one that failed, and is heard by the next caller, whom a third neither ends nor delays.
#[test]
fn one_call_at_a_time_is_taken_and_a_failed_one_is_not_the_last() {
    let directory = tempfile::tempdir().unwrap();
    let (_forwarder, face) = start_forwarder(directory.path());
    let [alice, bob, carol, dave] =
        ["alice", "bob", "carol", "dave"].map(|name| home(directory.path(), name));
    let at = format!("--connect {face} --input test");
    // The first call fails at the callee, as there is no ffmpeg yet.
    let ffmpeg = directory.path().join("ffmpeg");
    let arguments = format!("/bob --answer --duration 90s --output heard.wav {at}");
    let mut callee = prepared(&bob, &arguments);
    callee.env("NAMECAST_FFMPEG", &ffmpeg);
    let mut callee = callee.spawn().unwrap();
    let call = |home: &Path, who: &str, seconds: u32| {
        let limits = format!("--duration {seconds}s --output none");
        start(home, &format!("/{who} /bob {limits} {at}"))
    };
    let failed = call(&dave, "dave", 60).wait_with_output().unwrap();
    assert!(
        text(&failed).contains("no sound there"),
        "{}",
        text(&failed)
    );
    write_program(&ffmpeg, "exec ffmpeg \"$@\"");

    let mut caller = call(&alice, "alice", 60);
    until("a second of sound at the callee", || {
        (heard(&bob) > 50).then_some(())
    });
    let third = call(&carol, "carol", 60).wait_with_output().unwrap();
    assert_eq!(third.status.code(), Some(1));
    assert!(text(&third).contains("busy"), "{}", text(&third));
    let before = heard(&bob);
    until("another second of sound", || {
        (heard(&bob) > before + 50).then_some(())
    });
    assert!(interrupt(&caller).success());
    assert!(caller.wait().unwrap().success());
    assert!(callee.wait().unwrap().success());
    let stats = newest_stats(&bob.join("stats")).unwrap();
    let sound = &stats["sound"];
    let [played, concealed] =
        ["packets_played", "packets_concealed"].map(|it| sound[it].as_u64().unwrap());
    assert!(concealed * 20 <= played, "{concealed} beside {played}");
}

#[test]
fn what_is_written_wrong_says_what_to_write() {
    let directory = tempfile::tempdir().unwrap();
    for (arguments, why) in [
        ("/alice /alice", "namecast talk /alice /bob"),
        ("/alice --buffer 200ms", "write 0ms to 150ms"),
    ] {
        let output = start(directory.path(), arguments)
            .wait_with_output()
            .unwrap();
        assert!(!output.status.success());
        assert!(text(&output).contains(why), "{}", text(&output));
    }
}
