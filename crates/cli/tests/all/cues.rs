//! Shows with real processes: cues of a desk, devices that execute them, are killed and go on.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
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
    let second = format!(
        "--list show.toml --desk backup --with main --auto --log backup.log --connect {face}"
    );
    let mut second = Desk::start(backup, &second);
    let device = format!("{face} --desk main --desk backup --log light.log");
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
    logs_tell_who_was_obeyed(light, backup);
}

/// The log of the device tells which desk it obeyed, and that of the second desk what it refused to send.
fn logs_tell_who_was_obeyed(light: &Path, backup: &Path) {
    let obeyed = until("the device's log", || {
        let log = log(light, "light.log --verify").ok()?;
        let done = log.iter().map(|line| &line["done"]);
        let of_go = done.filter(|done| done["number"] == "1" || done["number"] == "2");
        let of_go = of_go.filter(|done| done["outcome"] == "executed");
        let obeyed: Vec<_> = of_go
            .map(|done| (done["number"].clone(), done["leader"].clone()))
            .collect();
        let superseded = log
            .iter()
            .any(|line| line["done"]["outcome"] == "superseded");
        (obeyed.len() > 2 && superseded).then_some(obeyed)
    });
    let by = |desk: &str| obeyed.iter().any(|(_, leader)| leader["desk"] == desk);
    assert!(by("main") && by("backup"), "{obeyed:?}");
    let second = log(backup, "backup.log --verify").unwrap();
    let mut refused = second
        .iter()
        .filter(|line| line["done"]["outcome"] == "refused");
    assert!(
        refused.any(|line| line["done"]["number"] == "2"),
        "{second:?}"
    );
}

/// What `namecast cue log` prints in `home`, or says where it ends with an error.
fn log(home: &Path, arguments: &str) -> Result<Vec<Value>, String> {
    let printed = command(home, &format!("cue log --json {arguments}"))
        .output()
        .unwrap();
    if !printed.status.success() {
        return Err(String::from_utf8_lossy(&printed.stderr).into_owned());
    }
    let text = String::from_utf8(printed.stdout).unwrap();
    Ok(text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect())
}

/// Numbers of the cues in a log, that were pressed or that a device executed.
fn numbers(log: &[Value], of: &str) -> Vec<String> {
    let messages = log.iter().map(|line| &line[of]);
    let is_go = |it: &&Value| it["action"] == "go" || it["outcome"] == "executed";
    let of_go = messages
        .filter(is_go)
        .map(|it| it["number"].as_str().unwrap().to_owned());
    of_go.collect()
}

/// Desk and device keep logs; an archive keeps the same packets. One changed octet is found. The desk's log is replayed in a rehearsal: a
/// device in rehearsal executes it, and one that is in the show refuses all of it.
#[test]
fn a_log_is_verified_and_replayed_in_rehearsal_alone() {
    let directory = tempfile::tempdir().unwrap();
    let (_forwarder, face) = start_forwarder(directory.path());
    let homes = ["main", "light-1", "light-2", "archive"].map(|name| home(directory.path(), name));
    let [main, first, second, archive] = &homes;
    let store = archive.join("store");
    let keep = format!(
        "archive /show/cues/main/main --quiet --store {} --connect {face}",
        store.display()
    );
    let mut keeping = Program::start(archive, &keep);
    let logging = format!("--device light-1 --log main.log --connect {face}");
    let mut desk = Desk::start(main, &logging);
    let in_show = format!("{face} --log light.log");
    let _first = Program(start_device(first, "light-1", &in_show));
    until("the device", || {
        desk.say("standby 1");
        (!executed(first, "standby").is_empty()).then_some(())
    });
    desk.say("go 1");
    desk.say("go 2");
    until("both cues", || {
        (executed(first, "go") == ["1", "2"]).then_some(())
    });
    let pressed = until("the desk's log", || {
        let log = log(main, "main.log --verify").ok()?;
        (numbers(&log, "cue").len() == 2).then_some(log)
    });
    assert_eq!(numbers(&pressed, "cue"), ["1", "2"]);
    let key = pressed[0]["key"].as_str().unwrap();
    assert!(log(main, &format!("main.log --verify --key {key}")).is_ok());
    let refused = log(main, &format!("main.log --verify --key {}", "0".repeat(64))).unwrap_err();
    assert!(refused.contains("line 1: signed by the key"), "{refused}");
    until("the device's log", || {
        let log = log(first, "light.log --verify").ok()?;
        let done = numbers(&log, "done");
        done.ends_with(&["1".to_owned(), "2".to_owned()])
            .then_some(())
    });
    // The archive has the same, with the same signatures.
    let kept = format!(
        "--store {} /show/cues/main/main --verify --key {key}",
        store.display()
    );
    let kept = until("the archive", || {
        let log = log(main, &kept).ok()?;
        (numbers(&log, "cue") == ["1", "2"]).then_some(log)
    });
    assert_eq!(kept.last(), pressed.last());
    keeping.kill();
    let mut octets = fs::read(main.join("main.log")).unwrap();
    let place = octets
        .windows(4)
        .rposition(|four| four == b"\"go\"")
        .unwrap();
    octets[place + 1] = b'n';
    fs::write(main.join("changed.log"), octets).unwrap();
    let refused = log(main, "changed.log --verify").unwrap_err();
    assert!(
        refused.contains("changed.log: line") && refused.contains("signature"),
        "{refused}"
    );
    drop(desk);
    is_replayed_in_rehearsal_alone([main, first, second], &face);
}

/// The log of the desk in the first home is replayed: of two devices the second, which is in rehearsal, executes it.
fn is_replayed_in_rehearsal_alone([main, first, second]: [&Path; 3], face: &str) {
    let rehearsal = "--device light-1 --device light-2 --rehearsal --replay main.log";
    let mut desk = Desk::start(main, &format!("{rehearsal} --connect {face}"));
    let _second = Program(start_device(
        second,
        "light-2",
        &format!("{face} --rehearsal"),
    ));
    let before = executed(first, "standby").len();
    let reported = |outcome: &str, device: &str| {
        let lines = lines(&main.join("desk.json")).into_iter();
        let mut of = lines.filter(|line| line["outcome"] == outcome && line["device"] == device);
        of.next().is_some()
    };
    until("both devices", || {
        desk.say("standby 7");
        (reported("executed", "light-2") && reported("refused", "light-1")).then_some(())
    });
    desk.say("replay");
    until("the replay", || {
        (executed(second, "go") == ["1", "2"]).then_some(())
    });
    until("the refusal", || {
        let lines = lines(&main.join("desk.json")).into_iter();
        let mut refused =
            lines.filter(|line| line["outcome"] == "refused" && line["number"] == "2");
        refused.next().map(drop)
    });
    assert_eq!(executed(first, "go"), ["1", "2"]);
    assert_eq!(executed(first, "standby").len(), before);
}

/// Devices that answer are ready; one that does not answer is named, and the command ends with an error. It does not speak for a desk that runs.
#[test]
fn a_check_names_the_device_that_does_not_answer() {
    let directory = tempfile::tempdir().unwrap();
    let (_forwarder, face) = start_forwarder(directory.path());
    let homes = ["main", "lights"].map(|name| home(directory.path(), name));
    let [main, lights] = &homes;
    let devices = format!("device /show test --count 2 --json --connect {face}");
    let _devices = Program::start(lights, &devices);
    let check = |devices: &str| {
        let line = format!("cue check /show --json {devices} --connect {face}");
        let checked = command(main, &line).output().unwrap();
        let text = String::from_utf8(checked.stdout).unwrap();
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        (
            checked.status.code(),
            lines,
            String::from_utf8_lossy(&checked.stderr).into_owned(),
        )
    };
    let (status, ready, said) = check("--device test-1 --device test-2 --wait 60s");
    assert_eq!(status, Some(0), "{ready:?} {said}");
    for device in &ready {
        assert_eq!(
            (&device["ready"], &device["loss"]),
            (&true.into(), &0.0.into()),
            "{device}"
        );
        let [offset, error] = ["offset_ms", "error_ms"].map(|name| device[name].as_f64().unwrap());
        // Metadata is given again for 10 ms.
        assert!(offset.abs() <= error + 10.0 && error < 50.0, "{device}");
        assert!(device["key_until"].as_u64().unwrap() > 0);
    }
    let (status, found, said) = check("--device test-1 --device gone --wait 1s");
    assert_eq!(status, Some(1));
    let gone = found.iter().find(|it| it["device"] == "gone").unwrap();
    assert_eq!(gone["ready"], false);
    assert!(
        gone["problems"][0]
            .as_str()
            .unwrap()
            .starts_with("does not answer"),
        "{gone}"
    );
    assert!(said.contains("of 2 devices"), "{said}");
    let mut desk = Desk::start(main, &format!("--device test-1 --connect {face}"));
    until("the desk", || {
        desk.say("standby 1");
        (!lines(&main.join("desk.json")).is_empty()).then_some(())
    });
    let refused = until("the refusal", || {
        let (status, found, said) = check("--device test-1 --wait 1s");
        (status == Some(1) && found.is_empty()).then_some(said)
    });
    assert!(refused.contains("the desk main runs"), "{refused}");
}

/// A device that sends cues as if it were a desk moves no desk: its messages are read as reports.
#[test]
fn a_device_takes_over_no_desk() {
    let directory = tempfile::tempdir().unwrap();
    let (_forwarder, face) = start_forwarder(directory.path());
    let homes = ["main", "liar"].map(|name| home(directory.path(), name));
    let [main, liar] = &homes;
    let line = format!("publish /show/device/liar --data acks=- --reading events --connect {face}");
    let mut lying = command(liar, &line);
    lying
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut lying = Program(lying.spawn().unwrap());
    let mut desk = Desk::start(main, &format!("--device liar --connect {face}"));
    let lie = r#"{"id":"abababababababababababababababab","number":"lead","action":"lead","term":7,"at":1}"#;
    until("the lie", || {
        writeln!(lying.0.stdin.as_mut().unwrap(), "{lie}").unwrap();
        let text = fs::read_to_string(main.join("stderr")).unwrap();
        text.contains("device liar sends no report").then_some(())
    });
    desk.say("go 1");
    until("the cue", || {
        let lines = lines(&main.join("desk.json")).into_iter();
        let mut sent = lines.filter(|line| line["sent"] == "1");
        sent.next().map(drop)
    });
}

/// The OSC message by which QLab starts a cue.
fn start(number: &str) -> Vec<u8> {
    let pad = |text: &str| {
        let length = (text.len() + 1).next_multiple_of(4);
        [text.as_bytes(), &vec![0; length - text.len()]].concat()
    };
    [pad(&format!("/cue/{number}/start")), pad(",")].concat()
}

/// The same in 3 200 bundles in each other.
fn nested() -> Vec<u8> {
    let mut nested = start("9");
    for _ in 0..3_200 {
        let length = u32::try_from(nested.len()).unwrap().to_be_bytes();
        nested = [&b"#bundle\0\0\0\0\0\0\0\0\x01"[..], &length, &nested].concat();
    }
    nested
}

/// Runs `namecast cue go` in `home`. Returns its status and what it says.
fn go(home: &Path, address: &str, number: &str) -> (Option<i32>, String) {
    let line = format!("cue go {number} --osc {address}");
    let pressed = command(home, &line).output().unwrap();
    let said = String::from_utf8_lossy(&pressed.stderr).into_owned();
    (pressed.status.code(), said)
}

/// A desk hears `namecast cue go`, and QLab's OSC by UDP and TCP; a device sends what it executes as OSC. What is no OSC is refused and counted.
#[test]
fn osc_presses_a_desk_and_leaves_a_device() {
    let directory = tempfile::tempdir().unwrap();
    let (_forwarder, face) = start_forwarder(directory.path());
    let homes = ["main", "backup", "light-1"].map(|name| home(directory.path(), name));
    let [main, backup, light] = &homes;
    let sound = UdpSocket::bind("127.0.0.1:0").unwrap();
    let out = format!("{face} --osc {}", sound.local_addr().unwrap());
    let _light = Program(start_device(light, "light-1", &out));
    let osc = |home: &Path| {
        let lines = lines(&home.join("desk.json"));
        Some(lines.first()?["osc"].as_str()?.to_owned())
    };
    let hearing = format!("--osc 127.0.0.1:0 --connect {face}");
    let mut desk = Desk::start(main, &format!("{hearing} --duration 120s"));
    let address = until("the desk's address", || osc(main));
    until("the device", || {
        desk.say("standby 1");
        (!executed(light, "standby").is_empty()).then_some(())
    });
    assert_eq!(go(main, &address, "1"), (Some(0), String::new()));
    let qlab = UdpSocket::bind("127.0.0.1:0").unwrap();
    qlab.send_to(&start("2"), &address).unwrap();
    // 3 270 bundles in each other, and what is no OSC.
    let nested = nested();
    for _ in 0..50 {
        qlab.send_to(&nested, &address).unwrap();
        qlab.send_to(b"hello", &address).unwrap();
    }
    let mut tcp = TcpStream::connect(&address).unwrap();
    let message = start("3");
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    tcp.write_all(&[&length[..], &message].concat()).unwrap();
    let mut reply = [0; 12];
    tcp.read_exact(&mut reply).unwrap();
    assert_eq!(reply[4..], *b"/reply\0\0");
    let sorted = || {
        let mut numbers = executed(light, "go");
        numbers.sort_unstable();
        numbers
    };
    until("three cues", || (sorted() == ["1", "2", "3"]).then_some(()));
    let refused = go(main, &address, "*");
    assert_eq!(refused.0, Some(0), "a number is any text: {}", refused.1);
    let mut heard = Vec::new();
    let mut buffer = [0; 100];
    while !heard.contains(&start("3")) {
        let length = sound.recv(&mut buffer).unwrap();
        heard.push(buffer[..length].to_vec());
    }
    assert!(heard.contains(&start("1")) && heard.contains(&start("2")));
    let follows = format!("--desk backup --with main --standby {hearing}");
    let _follows = Desk::start(backup, &follows);
    let follower = until("the second desk's address", || osc(backup));
    let (status, said) = go(main, &follower, "4");
    assert_eq!(status, Some(1));
    assert!(said.contains("write take to take over"), "{said}");
    let (status, said) = go(main, "127.0.0.1:1", "4");
    assert_eq!(status, Some(1));
    assert!(said.contains("no desk hears OSC on 127.0.0.1:1"), "{said}");
    // The lines about refused packets: at most one a second, which name how many were left out.
    let said = fs::read_to_string(main.join("stderr")).unwrap();
    let lines = said
        .lines()
        .filter(|line| line.starts_with("OSC was refused"))
        .count();
    assert!((1..=20).contains(&lines), "{said}");
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
        text.contains("show.toml: line 4: number '1' is that of line 2"),
        "{text}"
    );
}
