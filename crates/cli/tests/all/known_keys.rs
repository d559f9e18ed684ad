//! The real command: keys that are remembered at first use, changed, forgotten and pinned.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::program::{Program, command, start_forwarder};

/// Runs a command to its end, with its own directory for what it keeps.
fn run(home: &Path, arguments: &str) -> Output {
    command(home, arguments).output().unwrap()
}

/// What a command prints that has to succeed.
fn printed(home: &Path, arguments: &str) -> String {
    let output = run(home, arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// What a command complains about that has to fail.
fn refused(home: &Path, arguments: &str) -> String {
    let output = run(home, arguments);
    assert!(!output.status.success(), "{arguments}");
    String::from_utf8(output.stderr).unwrap()
}

fn known(home: &Path) -> Vec<Value> {
    serde_json::from_str(&printed(home, "key list --json")).unwrap()
}

/// A publisher of `/test` with the key in a directory of its own.
fn publish(home: &Path, keys: &str, face: &str) -> (Program, String) {
    let line =
        format!("publish /test --json --no-audio --ladder 200k --keys {keys} --connect {face}");
    let mut publisher = Program::start(home, &line);
    let about = publisher.lines().next().unwrap();
    (publisher, about["key_digest"].as_str().unwrap().to_owned())
}

/// Runs a command that prints JSON until it has said what `found` looks for.
fn until_said<T>(home: &Path, line: &str, found: impl FnMut(Value) -> Option<T>) -> T {
    let mut program = Program::start(home, &format!("{line} --json --duration 60s"));
    let said = program.lines().find_map(found);
    said.unwrap_or_else(|| panic!("{line} ended without it"))
}

fn remembered(said: Value) -> Option<String> {
    Some(said["remembered"].as_str()?.to_owned())
}

/// Watches until the statistics at the end, and returns what was said of signers, and the statistics.
fn watch_briefly(home: &Path, line: &str) -> (Vec<Value>, Value) {
    let mut program = Program::start(home, &format!("{line} --json --duration 4s"));
    let said: Vec<_> = program.lines().collect();
    let signers = said.iter().map(|said| &said["signer"]);
    let signers = signers.filter(|signer| !signer.is_null()).cloned();
    (signers.collect(), said.last().unwrap()["stats"].clone())
}

/// The first watch remembers; another publisher under the name is refused in words that name the command, by watchers and
/// archives; once the old key is forgotten, the new one plays.
#[test]
fn a_changed_key_is_refused_until_the_old_one_is_forgotten() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let (_forwarder, face) = start_forwarder(home);
    let watch = format!("watch /test --no-audio --connect {face}");
    let (mut publisher, first) = publish(home, "first", &face);
    let said = until_said(home, &watch, remembered);
    assert!(said.contains(&first), "{said}");
    let keys = known(home);
    assert_eq!(keys.len(), 1);
    assert_eq!(keys[0]["name"], "/test");
    assert_eq!(keys[0]["key_digest"], first.as_str());
    let again = until_said(home, &watch, |said| {
        Some(said["signer"]["text"].as_str()?.to_owned())
    });
    assert!(again.contains("(remembered since 2"), "{again}");
    publisher.kill();

    let (_publisher, second) = publish(home, "second", &face);
    assert_ne!(first, second);
    let is_refusal = |text: &str| {
        text.contains("/test is signed by another key")
            && text.ends_with("run: namecast key forget /test")
    };
    let (signers, stats) = watch_briefly(home, &watch);
    assert_eq!(signers.len(), 1, "{signers:?}");
    assert!(
        is_refusal(signers[0]["text"].as_str().unwrap()),
        "{signers:?}"
    );
    assert_eq!(stats["signer"]["trusted"], false);
    assert!(stats["video"].is_null(), "{stats}");
    let archive = format!("archive /test --store kept --connect {face}");
    until_said(home, &archive, |said| {
        said["event"]
            .as_str()
            .filter(|text| is_refusal(text))
            .map(|_| ())
    });
    // A pinned key counts whatever is remembered, and is not remembered.
    let (signers, stats) = watch_briefly(home, &format!("{watch} --key {second}"));
    assert_eq!(signers[0]["verdict"], "pinned");
    assert!(stats["video"]["received"].as_u64() > Some(0), "{stats}");
    assert_eq!(known(home), keys);

    printed(home, "key forget /test");
    let said = until_said(home, &watch, remembered);
    assert!(said.contains(&second), "{said}");
    assert_eq!(known(home)[0]["key_digest"], second.as_str());
}

/// A refusal is an error: it is said to those too who want to hear of nothing else.
#[test]
fn a_quiet_watcher_says_that_it_refuses() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let (_forwarder, face) = start_forwarder(home);
    let (_publisher, _) = publish(home, "own", &face);
    printed(home, &format!("key trust /test {}", "ab".repeat(32)));
    let line = format!("watch /test --quiet --connect {face} --duration 4s");
    let output = run(home, &line);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("run: namecast key forget /test"), "{said}");
    assert!(output.stdout.is_empty());
}

#[test]
fn keys_are_trusted_listed_and_forgotten() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let certificate = printed(home, "key /cam");
    assert_eq!(printed(home, "key /cam"), certificate, "made once");
    std::fs::write(home.join("cam.cert"), &certificate).unwrap();
    printed(home, "key trust /cam cam.cert");
    let digest = "cd".repeat(32);
    printed(home, &format!("key trust /other {digest}"));
    let replaced = printed(home, &format!("key trust /other {}", "ef".repeat(32)));
    assert!(replaced.contains(&digest), "{replaced}");
    let table = printed(home, "key list");
    assert!(table.starts_with("stream  key"), "{table}");
    assert!(!table.contains(&digest), "{table}");
    assert_eq!(table.lines().count(), 3);
    let forgotten = printed(home, "key forget /cam");
    assert!(
        forgotten.starts_with("Forgot the key of /cam"),
        "{forgotten}"
    );
    assert_eq!(known(home).len(), 1);

    let wrong = refused(home, "key forget /cam");
    assert!(wrong.contains("namecast key list"), "{wrong}");
    let wrong = refused(home, "key trust /other cam.cert");
    assert!(wrong.contains("is of /cam, not of /other"), "{wrong}");
    let wrong = refused(home, "key trust /other /other/KEY/1");
    assert!(wrong.contains("64 hexadecimal digits"), "{wrong}");
    assert!(refused(home, "key").contains("Usage"));
    assert!(printed(home, "key --help").contains("namecast key forget /cam"));

    let file = home.join("namecast/known_keys");
    std::fs::write(&file, "# mine\n/cam zz 2026-05-01\n").unwrap();
    for line in ["key list", "watch /cam", "archive /cam"] {
        let wrong = refused(home, line);
        assert!(wrong.contains("namecast/known_keys, line 2: "), "{wrong}");
    }
}

/// Sixteen processes at once: each key is there afterwards, once.
#[test]
fn processes_that_write_at_the_same_time_lose_nothing() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let digest = "ab".repeat(32);
    let trust = |index| Program::start(home, &format!("key trust /cam/{index} {digest}"));
    let writers: Vec<_> = (0..16).map(trust).collect();
    for mut writer in writers {
        assert!(writer.0.wait().unwrap().success());
    }
    let mut names: Vec<_> = known(home)
        .iter()
        .map(|key| key["name"].to_string())
        .collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 16);
    assert_eq!(known(home).len(), 16);
}
