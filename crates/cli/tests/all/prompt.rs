//! The real command, as people meet it at the prompt: exit statuses with their sentences, closed pipes, and no process left behind.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::program::{Program, command, start_forwarder, start_publisher, until};

/// What a command that has to end with `status` says of it.
fn said(home: &Path, arguments: &str, status: i32) -> String {
    let Output {
        status: ended,
        stderr,
        ..
    } = command(home, arguments).output().unwrap();
    let said = String::from_utf8(stderr).unwrap();
    assert_eq!(ended.code(), Some(status), "{arguments}: {said}");
    said
}

#[test]
fn exit_statuses_come_with_what_to_type_next() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let (_forwarder, face) = start_forwarder(home);
    let nobody = said(
        home,
        &format!("watch /nobody --duration 1s --connect {face}"),
        1,
    );
    assert!(nobody.contains("namecast publish /nobody does"), "{nobody}");
    // No forwarder listens on the first port of all.
    let nowhere = "--duration 1s --connect tcp4://127.0.0.1:1";
    for command in [
        "watch /x",
        "archive /x --store kept",
        "publish /x --input test --ladder 200k --no-audio",
    ] {
        let said = said(home, &format!("{command} {nowhere}"), 1);
        let advice = "start one with namecast forwarder, or name another with --connect";
        assert!(said.contains(advice), "{command}: {said}");
    }
    let both = said(home, "watch /x --json --output -", 2);
    assert!(both.contains("--stats FILE"), "{both}");

    let _publisher = start_publisher(home, &face);
    let line = format!("watch /test --duration 60s --rung 7M --connect {face}");
    let unknown = said(home, &line, 1);
    assert!(
        unknown.contains("write --rung with 200k, auto, "),
        "{unknown}"
    );
}

/// Whoever reads has left before the first line: no command panics, and none fails.
#[test]
fn commands_whose_reader_has_left_end_quietly() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let (_forwarder, face) = start_forwarder(home);
    let managed = [
        "status",
        "status --json",
        "face list",
        "route list",
        "strategy list",
        "cs info",
        "trace /x",
        "top --json",
    ];
    let managed = managed.map(|command| format!("{command} --connect {face}"));
    let others = [
        "--help",
        "key list",
        "key /x",
        "forwarder --print-config",
        "experiment list",
        "forwarder --json --udp off --tcp off --unix off --port 0",
        "demo --json --ladder 200k --no-audio --port 0",
    ];
    let managed = managed.iter().map(String::as_str);
    for line in managed.chain(others) {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ended = command(home, line).stdout(writer).output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{line}: {}: {said}", ended.status);
        assert!(!said.contains("panicked"), "{line}: {said}");
    }
    // Where nobody reads what goes wrong either, the status still says that it did.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let ended = command(home, "watch /x --duration 1s")
        .stderr(writer)
        .status();
    assert_eq!(ended.unwrap().code(), Some(1));
}

/// The processes that a process has started and not seen end.
fn children(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let ids = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    ids.filter(|id| parent_of(*id) == Some(parent)).collect()
}

/// None for a process that is not there, or has ended.
fn parent_of(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name before may contain anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?;
    fields.next()?.parse().ok().filter(|_| state != "Z")
}

/// Sends a signal to a program once it has children, and waits until they are gone.
fn ends_without_children(program: &mut Program, line: &str, signal: &str) {
    let id = program.0.id();
    let children = until("child", || Some(children(id)).filter(|ids| !ids.is_empty()));
    let sent = Command::new("kill")
        .args([signal, &id.to_string()])
        .status();
    assert!(sent.unwrap().success());
    let what = format!("end of {line} by {signal}");
    let status = until(&what, || program.0.try_wait().unwrap());
    assert_eq!(status.code().is_none(), signal == "-KILL", "{status}");
    for child in children {
        until("end of a child", || {
            parent_of(child).is_none().then_some(())
        });
    }
}

/// The signal of a terminal that goes; where that is ignored, as under `nohup`, programs go on, and another one ends them.
fn hang_up() -> &'static str {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    match u64::from_str_radix(mask.unwrap().trim(), 16).unwrap() & 1 {
        0 => "-HUP",
        _ => "-TERM",
    }
}

/// Inputs that wait for ever keep no ffmpeg alive, whatever ends the command.
#[test]
fn no_child_outlives_the_command() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let (_forwarder, face) = start_forwarder(home);
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = port.local_addr().unwrap().port();
    let lines = [
        "publish /a --input test --ladder 200k".to_owned(),
        "publish /a --input -".to_owned(),
        format!("publish /a --input rtmp://127.0.0.1:{port}/key"),
        "demo --ladder 200k --port 0".to_owned(),
    ];
    for (line, signal) in lines
        .iter()
        .flat_map(|line| ["-KILL", hang_up()].map(|it| (line, it)))
    {
        let connect = if line.starts_with("demo") {
            String::new()
        } else {
            format!("--connect {face}")
        };
        let mut command = command(home, &format!("{line} {connect}"));
        // Nothing ever comes of it, and it does not end.
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        ends_without_children(&mut Program(command.spawn().unwrap()), line, signal);
    }
    let _publisher = start_publisher(home, &face);
    for (output, signal) in [("a.mkv", "-KILL"), ("b.mp4", hang_up())] {
        let line = format!("watch /test --quiet --output {output} --connect {face}");
        ends_without_children(&mut Program::start(home, &line), &line, signal);
    }
}
