//! Shows with real processes: cues of a desk, devices that execute them, are killed and go on.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::program::{Program, command, home, start_forwarder, until};
use crate::trust::{certify, init};

/// A desk that reads commands, and writes what it says to `desk.json` of its home.
struct Desk(Program);

impl Desk {
    /// Its JSON goes to `desk.json` of its home.
    fn start(home: &Path, arguments: &str) -> Self {
        let mut command = command(home, &format!("cue desk /show --json {arguments}"));
        let file = fs::File::create(home.join("desk.json")).unwrap();
        let said = fs::File::create(home.join("stderr")).unwrap();
        let command = command.stdin(Stdio::piped()).stdout(file).stderr(said);
        Self(Program(command.spawn().unwrap()))
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

/// The desk that leads is killed with a cue on its way: the second takes over within two seconds and goes on with the list. The device
/// executes each cue once, and the first desk, started again, hears that it does not lead any more.
#[test]
fn a_second_desk_takes_over_from_one_that_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let (_forwarder, face) = start_forwarder(directory.path());
    let homes = ["main", "backup", "light-1"].map(|name| home(directory.path(), name));
    let [main, backup, light] = &homes;
    let list = "devices = ['light-1']\n[[cue]]\nnumber = '1'\n[[cue]]\nnumber = '2'\n";
    for home in [main, backup] {
        fs::write(home.join("show.toml"), list).unwrap();
    }
    let leading = format!("--list show.toml --connect {face}");
    let mut first = Desk::start(main, &leading);
    let second = format!("--list show.toml --desk backup --with main --auto --connect {face}");
    let mut second = Desk::start(backup, &second);
    let device = format!("{face} --desk main --desk backup");
    let _light = Program(start_device(light, "light-1", &device));
    // Until the device and the second desk hear the first one.
    until("the device", || {
        first.say("standby 1");
        (!executed(light, "standby").is_empty()).then_some(())
    });
    second.say("go 2");
    until("the second desk", || {
        first.say("standby 1");
        second.say("go 2");
        let text = fs::read_to_string(backup.join("stderr")).unwrap();
        text.contains("as main leads: write take").then_some(())
    });
    first.say("go");
    until("the first cue was sent", || {
        let lines = lines(&main.join("desk.json")).into_iter();
        let mut sent = lines.filter(|line| line["action"] == "go");
        sent.next().map(drop)
    });
    first.0.kill();
    until("the second desk leads", || {
        let lines = lines(&backup.join("desk.json")).into_iter();
        let mut leads = lines.filter(|line| line["leads"] == true);
        leads.next().map(drop)
    });
    second.say("go");
    until("the second cue", || {
        executed(light, "go")
            .contains(&"2".to_owned())
            .then_some(())
    });
    assert_eq!(executed(light, "go"), ["1", "2"]);
    let mut again = Desk::start(main, &format!("{leading} --with backup"));
    until("the first desk hears who leads", || {
        again.say("standby 1");
        let lines = lines(&main.join("desk.json")).into_iter();
        let mut superseded = lines.filter(|line| line["leader"] == "backup");
        superseded.next().map(drop)
    });
    assert_eq!(executed(light, "go"), ["1", "2"]);
}

/// A show as a room: the device obeys the desk that the anchor certified, also when the host has ended, and executes nothing of a desk without a
/// certificate. A desk with the certificate of a device does not start.
#[test]
fn a_device_obeys_certified_desks_alone() {
    let directory = tempfile::tempdir().unwrap();
    let (_forwarder, face) = start_forwarder(directory.path());
    let names = ["host", "main", "stranger", "device", "light-1"];
    let homes = names.map(|name| home(directory.path(), name));
    let [host, main, stranger, other, light] = &homes;
    let anchor = init(host, "/show", "show");
    certify(host, main, "/show/desk/main");
    certify(host, light, "/show/device/light-1");
    certify(host, other, "/show/device/light-2");
    let mut serving = Program::start(host, &format!("trust serve /show --quiet --connect {face}"));
    let rules = format!("--schema /show --key {anchor}");
    let desks = "--desk main --desk stranger";
    let _light = Program(start_device(
        light,
        "light-1",
        &format!("{face} {desks} {rules}"),
    ));
    let mut desk = Desk::start(main, &format!("--device light-1 {rules} --connect {face}"));
    let stood_by = || executed(light, "standby").len();
    until("the device", || {
        desk.say("standby 1");
        (stood_by() > 0).then_some(())
    });
    let desk_of_device = format!("cue desk /show --desk light-2 {rules} --connect {face}");
    let refused = command(other, &desk_of_device).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        said.contains("no certificate for /show/desk/light-2 is installed"),
        "{said}"
    );
    serving.kill();
    let without = format!("--desk stranger --connect {face}");
    let mut without = Desk::start(stranger, &without);
    for _ in 0..20 {
        without.say("go 7");
    }
    desk.say("go 2");
    until("the certified desk's cue", || {
        executed(light, "go")
            .contains(&"2".to_owned())
            .then_some(())
    });
    until("its report", || {
        let reports = reports(main);
        reports
            .iter()
            .any(|(_, number, _)| number == "2")
            .then_some(())
    });
    assert_eq!(executed(light, "go"), ["2"]);
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
