//! A terminal on another machine: those whose key is authorised work there, nobody else executes anything.

use std::fs;
use std::io::Write;
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::program::{
    command, home, newest_stats, start_bundling_forwarder, start_forwarder, start_forwarder_with,
    until,
};
use namecast_packet::tlv::{self, Reader, Writer};
use namecast_packet::{Interest, LpPacket, Nonce, Packet};

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
            let routes = crate::program::command(&home, &line).output().unwrap();
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
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("this key is not admitted here"), "{said}");
    let refused = until("refusal", || {
        let stats = newest_stats(&machine.home.join("stats"))?;
        stats["setups_refused"]["untrusted"]
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

/// A wire that somebody taps: it brings each datagram of the client twice, and keeps it.
struct Tap {
    face: String,
    seen: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Tap {
    fn start(forwarder: SocketAddr) -> Self {
        let client_side = UdpSocket::bind("127.0.0.1:0").unwrap();
        let face = format!("udp4://{}", client_side.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&seen);
        thread::spawn(move || {
            let forwarder_side = connected(forwarder);
            let back = forwarder_side.try_clone().unwrap();
            let mut octets = [0; 9_000];
            let (mut length, client) = client_side.recv_from(&mut octets).unwrap();
            let to_client = client_side.try_clone().unwrap();
            thread::spawn(move || {
                let mut octets = [0; 9_000];
                while let Ok(length) = back.recv(&mut octets) {
                    to_client.send_to(&octets[..length], client).unwrap();
                }
            });
            loop {
                let datagram = &octets[..length];
                kept.lock().unwrap().push(datagram.to_owned());
                for _ in 0..2 {
                    forwarder_side.send(datagram).unwrap();
                }
                length = client_side.recv(&mut octets).unwrap();
            }
        });
        Self { face, seen }
    }
}

fn connected(to: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(to).unwrap();
    socket
}

/// An Interest as no cache answers it, and no node takes for one that it has seen: neither is under the signature.
fn past_caches(interest: &Interest, nonce: u32) -> Vec<u8> {
    let interest = interest.with_nonce(Nonce::from(nonce));
    let wire = interest.wire();
    let whole = Reader::new(wire).only("Interest", tlv::INTEREST).unwrap();
    let mut value = Writer::default();
    interest.name().encode(&mut value);
    let rest = whole.value.start + value.len();
    value.element(tlv::MUST_BE_FRESH, &[]).raw(&wire[rest..]);
    let mut again = Writer::default();
    again.element(tlv::INTEREST, value.as_slice());
    again.finish().to_vec()
}

fn packets(datagrams: &[Vec<u8>]) -> impl Iterator<Item = Packet> {
    datagrams.iter().filter_map(|datagram| {
        let link = LpPacket::decode(datagram.clone().into()).unwrap();
        Packet::decode(link.fragment?).ok()
    })
}

/// Sends all that a client sent, as it was and then past all caches, with Nonces from `first` on.
fn replay(datagrams: &[Vec<u8>], by: &UdpSocket, first: u32) {
    for datagram in datagrams {
        by.send(datagram).unwrap();
    }
    for (nonce, packet) in (first..).zip(packets(datagrams)) {
        if let Packet::Interest(interest) = packet {
            by.send(&past_caches(&interest, nonce)).unwrap();
        }
    }
}

/// What the machine that started last refused, once it has refused one set-up for this reason.
fn refused(machine: &Machine, why: &str) -> serde_json::Value {
    until(why, || {
        let stats = newest_stats(&machine.home.join("stats"))?;
        let refused = stats["setups_refused"].clone();
        (refused[why] == 1).then_some(refused)
    })
}

/// Sent again as it was, a set-up is answered by the forwarder's content store and does not even come to the machine. With another
/// Nonce and past the caches, which nobody forbids, it comes there: one that remembers refuses it; one that was started
/// again answers, with another ephemeral key, of which nothing that was recorded is a proof.
#[test]
fn what_was_recorded_of_a_client_executes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let sockets = "--udp 127.0.0.1:0 --tcp 127.0.0.1:0";
    let (_forwarder, [udp, face]) = start_forwarder_with(directory.path(), sockets);
    let address = udp.strip_prefix("udp4://").unwrap().parse().unwrap();
    let me = home(directory.path(), "me");
    let own = digest(&me, "/me");
    let machine = Machine::start(directory.path(), &face, &own);
    let tap = Tap::start(address);
    let line = "echo executed >> there; exit\n";
    let output = work(&me, &machine, (&tap.face, "--duration 30s"), line);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let there = || fs::read_to_string(machine.home.join("there")).unwrap();
    assert_eq!(there(), "executed\n", "each key came twice");

    let seen = tap.seen.lock().unwrap().clone();
    let eve = connected(address);
    replay(&seen, &eve, 1);
    let counted = refused(&machine, "replayed");
    assert_eq!(counted["changed"], 0, "{counted}");
    let line = format!("status --json --connect {face}");
    let status = command(&me, &line).output().unwrap();
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    assert!(status["cs"]["hits"].as_u64() > Some(0), "{}", status["cs"]);

    drop(machine);
    let machine = Machine::start(directory.path(), &face, &own);
    // What the machine requests of the client now comes to Eve.
    let route = format!(
        "route add /me/remote udp4://{} --connect {face}",
        eve.local_addr().unwrap()
    );
    assert!(command(&me, &route).status().unwrap().success());
    replay(&seen, &eve, 1_000);
    let mut octets = [0; 9_000];
    eve.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    until("request of a proof", || {
        let length = eve.recv(&mut octets).unwrap();
        let asked = packets(&[octets[..length].to_owned()]).next();
        let Some(Packet::Interest(asked)) = asked else {
            return None;
        };
        asked
            .name()
            .to_string()
            .contains("32=confirm")
            .then_some(())
    });
    for packet in packets(&seen) {
        if let Packet::Data(data) = packet {
            eve.send(data.wire()).unwrap();
        }
    }
    let counted = refused(&machine, "changed");
    assert_eq!(counted["replayed"], 0, "{counted}");
    let there = fs::read_to_string(machine.home.join("there")).unwrap();
    assert_eq!(there, "executed\n");
}
