//! A terminal on another machine: those whose key is authorised work there, nobody else executes anything.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

mod program;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;

use program::{command, home, newest_stats, start_bundling_forwarder, start_forwarder, until};

fn prepared(home: &Path, arguments: &str) -> Command {
    let mut command = command(home, &format!("remote {arguments}"));
    command.stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env("SHELL", "/bin/sh").env("PS1", "$ ");
    command
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

/// SHA-256 of the key of `name`, as people see it.
fn digest(home: &Path, name: &str) -> String {
    let output = command(home, &format!("key {name}")).output().unwrap();
    let file = home.join("certificate");
    fs::write(&file, output.stdout).unwrap();
    let trust = format!("key trust {name} {} --known-keys scratch", file.display());
    assert!(command(home, &trust).status().unwrap().success());
    let line = fs::read_to_string(home.join("scratch")).unwrap();
    let line = line.lines().last().unwrap();
    line.split(' ').nth(1).unwrap().to_owned()
}

/// A machine that lets some keys in, once it serves.
struct Machine {
    home: PathBuf,
    program: Child,
    digest: String,
}

impl Machine {
    fn start(of: &Path, face: &str, authorised: &str) -> Self {
        let home = home(of, "host");
        fs::write(home.join("keys"), authorised).unwrap();
        let digest = digest(&home, "/host");
        let line = format!("/host --serve --authorised-keys keys --stats stats --connect {face}");
        let mut command = prepared(&home, &line);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let program = command.spawn().unwrap();
        until("route to the machine", || {
            let line = format!("route list --json --connect {face}");
            let routes = crate::command(&home, &line).output().unwrap();
            text(&routes.stdout).contains("/host/remote").then_some(())
        });
        Self {
            home,
            program,
            digest,
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// Types `lines` as `/me` at `home`, and returns what came of it.
fn work(home: &Path, machine: &Machine, (face, arguments): (&str, &str), lines: &str) -> Output {
    let line = format!(
        "/me /host --key {} --stats stats --connect {face} {arguments}",
        machine.digest
    );
    let mut program = prepared(home, &line).spawn().unwrap();
    let mut stdin = program.stdin.take().unwrap();
    let lines = lines.to_owned();
    // What comes is read meanwhile.
    let typing = thread::spawn(move || stdin.write_all(lines.as_bytes()));
    let output = program.wait_with_output().unwrap();
    // Who is not let in reads nothing.
    let _ = typing.join().unwrap();
    output
}

#[test]
fn who_is_authorised_works_there() {
    let directory = tempfile::tempdir().unwrap();
    let (_plain, plain) = start_forwarder(directory.path());
    let (_bundling, bundling) = start_bundling_forwarder(directory.path());
    let me = home(directory.path(), "me");
    let own = digest(&me, "/me");
    for (face, flag) in [(&bundling, ""), (&bundling, "--no-bundle"), (&plain, "")] {
        let machine = Machine::start(directory.path(), face, &format!("{own} me\n"));
        let lines = "stty size; i=0; while [ $i -lt 3000 ]; do echo line-$i; i=$((i+1)); done; touch here; exit\n";
        let arguments = format!("--duration 60s {flag}");
        let output = work(&me, &machine, (face, &arguments), lines);
        let (said, printed) = (text(&output.stderr), text(&output.stdout));
        assert!(output.status.success(), "{said}");
        assert!(printed.contains("24 80"), "{printed}");
        // Every line once and in order.
        let numbers = printed
            .lines()
            .filter_map(|line| line.trim().strip_prefix("line-"));
        let numbers: Vec<u32> = numbers.filter_map(|it| it.parse().ok()).collect();
        assert_eq!(numbers, (0..3_000).collect::<Vec<_>>());
        assert!(machine.home.join("here").exists());
        fs::remove_file(machine.home.join("here")).unwrap();
        let stats = newest_stats(&me.join("stats")).unwrap();
        assert!(stats["echo_ms"]["p50"].as_f64().unwrap() > 0.0, "{stats}");
    }
}

/// More than may wait to be sent, all of which the terminal there echoes meanwhile.
#[test]
fn a_large_text_is_typed_whole() {
    let directory = tempfile::tempdir().unwrap();
    let (_forwarder, face) = start_forwarder(directory.path());
    let me = home(directory.path(), "me");
    let own = digest(&me, "/me");
    let machine = Machine::start(directory.path(), &face, &own);
    let text: String = (0..6_000)
        .map(|number| format!("{number:0>99}\n"))
        .collect();
    let typed = format!("cat > there\n{text}\u{4}exit\n");
    let output = work(&me, &machine, (&face, "--duration 60s"), &typed);
    assert!(output.status.success());
    let written = fs::read_to_string(machine.home.join("there")).unwrap();
    assert!(written == text, "{} of {}", written.len(), text.len());
}

/// A client that is killed comes back to its program, which has gone on; and a key that is taken from the file lets nobody in.
#[test]
fn who_was_killed_comes_back_to_the_same_program() {
    let directory = tempfile::tempdir().unwrap();
    let (_forwarder, face) = start_forwarder(directory.path());
    let me = home(directory.path(), "me");
    let own = digest(&me, "/me");
    let machine = Machine::start(directory.path(), &face, &own);
    let line = format!("/me /host --key {} --connect {face}", machine.digest);
    let mut program = prepared(&me, &line).spawn().unwrap();
    let mut stdin = program.stdin.take().unwrap();
    stdin.write_all(b"kept=17; touch begun\n").unwrap();
    until("first command", || {
        machine.home.join("begun").exists().then_some(())
    });
    program.kill().unwrap();
    program.wait().unwrap();
    let arguments = "--resume --duration 30s";
    let output = work(
        &me,
        &machine,
        (&face, arguments),
        "echo it is $kept; exit\n",
    );
    let printed = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(printed.contains("it is 17"), "{printed}");
    // What was printed before is there again.
    assert!(printed.contains("touch begun"), "{printed}");
    fs::write(machine.home.join("keys"), "# nobody\n").unwrap();
    until("file of keys read again", || {
        let output = work(&me, &machine, (&face, "--duration 2s"), "exit\n");
        output.stdout.is_empty().then_some(())
    });
}

/// Neither a stranger's key, nor a machine whose key is not known, nor a file without keys.
#[test]
fn nobody_else_executes_anything() {
    let directory = tempfile::tempdir().unwrap();
    let (_forwarder, face) = start_forwarder(directory.path());
    let (me, eve) = (home(directory.path(), "me"), home(directory.path(), "eve"));
    let own = digest(&me, "/me");
    let machine = Machine::start(directory.path(), &face, &own);
    // Eve says that she is me; her key is another.
    let typed = "touch there\nexit\n";
    let output = work(&eve, &machine, (&face, "--duration 5s"), typed);
    assert!(text(&output.stdout).is_empty());
    let refused = until("refusal", || {
        let stats = newest_stats(&machine.home.join("stats"))?;
        stats["setups_refused"]["strangers"]
            .as_u64()
            .filter(|&it| it > 0)
    });
    assert!(refused > 0);
    assert!(!machine.home.join("there").exists(), "executed");
    // A machine that nobody vouched for is not worked on.
    let mut program = prepared(&me, &format!("/me /host --connect {face}"))
        .spawn()
        .unwrap();
    drop(program.stdin.take());
    let output = program.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("namecast key trust /host"),
        "{}",
        text(&output.stderr)
    );
    // Without a file, or with an empty one, nobody is let in at all.
    fs::write(me.join("empty"), "# nobody\n").unwrap();
    for (arguments, why) in [
        ("--serve", "--authorised-keys"),
        ("--serve --authorised-keys empty", "holds no key"),
    ] {
        let output = prepared(&me, &format!("/me {arguments}")).output().unwrap();
        assert!(!output.status.success());
        assert!(
            text(&output.stderr).contains(why),
            "{}",
            text(&output.stderr)
        );
    }
}
