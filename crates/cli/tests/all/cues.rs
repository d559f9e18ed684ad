//! Shows with real processes: cues of a desk, devices that execute them, are killed and go on.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::program::{Program, command, home, start_forwarder, until};

/// A desk that reads commands, and writes what it says to `desk.json` of its home.
struct Desk(Program);

impl Desk {
    fn start(home: &Path, arguments: &str) -> Self {
        let mut command = command(home, &format!("cue desk /show --json {arguments}"));
        let file = fs::File::create(home.join("desk.json")).unwrap();
        let child = command.stdin(Stdio::piped()).stdout(file).spawn().unwrap();
        Self(Program(child))
    }

    fn say(&mut self, line: &str) {
        let input = self.0.0.stdin.as_mut().unwrap();
        writeln!(input, "{line}").unwrap();
    }
}

/// A device that writes what it executes to `executed.json` of its home, after what is there already.
fn start_device(home: &Path, id: &str, face: &str) -> Child {
    let line = format!(
        "device /show {id} --json --journal journal --stale 60s --duration 120s --connect {face}"
    );
    let file = fs::OpenOptions::new();
    let file = file
        .clone()
        .create(true)
        .append(true)
        .open(home.join("executed.json"));
    let mut command = command(home, &line);
    command.stdout(file.unwrap()).spawn().unwrap()
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let whole = text.lines().map(serde_json::from_str);
    whole.filter_map(Result::ok).collect()
}

/// Numbers of the cues that the device in `home` executed with this action, in their order.
fn executed(home: &Path, action: &str) -> Vec<String> {
    let lines = lines(&home.join("executed.json")).into_iter();
    let lines = lines.filter(|line| line["action"] == action);
    let numbers = lines.map(|line| line["executed"].as_str().unwrap().to_owned());
    numbers.collect()
}

/// What devices reported: who, which cue, and how late in milliseconds.
fn reports(home: &Path) -> Vec<(String, String, f64)> {
    let lines = lines(&home.join("desk.json")).into_iter();
    let reports = lines.filter(|line| line["outcome"] == "executed");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    reports
        .filter_map(|line| {
            let late = line["late_ms"].as_f64()?;
            Some((text(&line["device"]), text(&line["number"]), late))
        })
        .collect()
}

/// Two devices execute a list's cues once each, and at their time. One is killed between two cues, and starts again with its journal.
#[test]
fn devices_execute_each_cue_once() {
    let directory = tempfile::tempdir().unwrap();
    let (_forwarder, face) = start_forwarder(directory.path());
    let homes = ["desk", "light-1", "light-2"].map(|name| home(directory.path(), name));
    let [desk, first, second] = &homes;
    let list = "devices = ['light-1', 'light-2']\n[[cue]]\nnumber = '1'\n[[cue]]\nnumber = '2'\ntargets = ['light-2']\n[[cue]]\nnumber = '3'\n";
    fs::write(desk.join("show.toml"), list).unwrap();
    let mut running = Desk::start(desk, &format!("--list show.toml --connect {face}"));
    let mut one = Program(start_device(first, "light-1", &face));
    let _two = Program(start_device(second, "light-2", &face));
    let went = |home: &Path, number: &str| executed(home, "go").iter().any(|it| it == number);
    // What is sent before a device has joined is not for it.
    until("both devices", || {
        running.say("standby 1");
        let ready = [first, second]
            .iter()
            .all(|home| !executed(home, "standby").is_empty());
        ready.then_some(())
    });
    running.say("go");
    running.say("go");
    until("the second cue", || went(second, "2").then_some(()));
    until("the first cue", || went(first, "1").then_some(()));
    one.kill();
    let _one = Program(start_device(first, "light-1", &face));
    let before = executed(first, "standby").len();
    until("the device that was killed", || {
        running.say("standby 9");
        (executed(first, "standby").len() > before).then_some(())
    });
    running.say("go 3");
    until("the last cue", || {
        let all = [first, second].iter().all(|home| went(home, "3"));
        all.then_some(())
    });
    assert_eq!(executed(first, "go"), ["1", "3"]);
    assert_eq!(executed(second, "go"), ["1", "2", "3"]);
    let reported = until("all reports", || {
        let reported = reports(desk);
        let third = reported.iter().filter(|(_, number, _)| number == "3");
        (third.count() == 2).then_some(reported)
    });
    assert!(
        reported.iter().all(|(.., late)| *late >= 0.0),
        "{reported:?}"
    );
}

/// A list with two cues of one number is refused before the show.
#[test]
fn a_list_that_is_wrong_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let list = "[[cue]]\nnumber = '1'\n[[cue]]\nnumber = '1'\n";
    fs::write(directory.path().join("show.toml"), list).unwrap();
    let refused = command(directory.path(), "cue desk /show --list show.toml")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        text.contains("show.toml: cue 2: number '1' is that of cue 1"),
        "{text}"
    );
}
