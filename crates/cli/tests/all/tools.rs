//! `list`, `peek`, `put` and `ping` through a forwarder, found as NDN applications find it, also over TLS.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::program::{Program, command, fetch, start_publisher, until};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Runs a command with variables in its environment, and `client.conf` as it is at `home`.
fn namecast(home: &Path, variables: &[(&str, &str)], arguments: &str) -> Output {
    let mut command = command(home, arguments);
    command.envs(variables.iter().copied()).output().unwrap()
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

/// A server of something, once the forwarder knows of it: its first line is printed before.
fn registered(home: &Path, face: &str, arguments: &str, prefix: &str) -> (Program, String) {
    let mut server = Program::start(home, &format!("{arguments} --connect {face}"));
    let mut line = String::new();
    let output = server.0.stdout.take().unwrap();
    BufReader::new(output).read_line(&mut line).unwrap();
    until("route to it", || {
        let routes = namecast(home, &[], &format!("route list --json --connect {face}"));
        let routes: Value = serde_json::from_slice(&routes.stdout).ok()?;
        let mut routes = routes.as_array()?.iter();
        routes.find(|route| route["prefix"] == prefix).map(drop)
    });
    (server, line.trim().to_owned())
}

/// The PEM form of what `der` holds.
fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
}

fn forwarder(home: &Path, arguments: &str) -> (Program, Value) {
    let line = format!("forwarder --json --udp off --tcp 127.0.0.1:0 --port 0 {arguments}");
    let mut forwarder = Program::start(home, &line);
    let about = forwarder.lines().next().unwrap();
    (forwarder, about)
}

#[test]
fn an_object_is_put_and_peeked() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let (_forwarder, about) = forwarder(home, "");
    let face = about["faces"][0].as_str().unwrap();
    let content: Vec<u8> = (0..100_000_u32).map(|at| (at / 7) as u8).collect();
    fs::write(home.join("file"), &content).unwrap();
    let (_put, versioned) = registered(home, face, "put /files/a file", "/files/a");
    assert!(versioned.starts_with("/files/a/v="), "{versioned}");
    let at = format!("--connect {face}");
    for name in ["/files/a", versioned.as_str()] {
        let peeked = namecast(home, &[], &format!("peek {name} --object {at}"));
        let errors = text(&peeked.stderr);
        assert!(peeked.status.success(), "{errors}");
        assert!(peeked.stdout == content, "{} octets", peeked.stdout.len());
        assert!(
            errors.contains("100000 bytes, signed by /files/a/KEY/"),
            "{errors}"
        );
    }
    let one = namecast(home, &[], &format!("peek {versioned}/seg=26 --pipe {at}"));
    assert_eq!(
        (one.stdout.as_slice(), text(&one.stderr).as_str()),
        (&content[26 * 3_776..], "")
    );
    // The name goes on, another key is wanted, nobody has it.
    let other_key = "0".repeat(64);
    for (arguments, why) in [
        (
            "peek /files/a --lifetime 500ms".to_owned(),
            "--can-be-prefix",
        ),
        (
            format!("peek /files/a --object --key {other_key}"),
            "another key is wanted",
        ),
        (
            "peek /nobody --object --lifetime 500ms".to_owned(),
            "no route to /nobody",
        ),
    ] {
        let refused = namecast(home, &[], &format!("{arguments} {at}"));
        let errors = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{errors}");
        assert!(
            errors.contains(why) && refused.stdout.is_empty(),
            "{errors}"
        );
    }
}

/// The forwarder is found by the environment, and by `client.conf`; it need not be ours.
#[test]
fn pings_are_answered() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let (_forwarder, about) = forwarder(home, "");
    let face = about["faces"][0].as_str().unwrap();
    let (_serving, line) = registered(home, face, "ping /here --serve", "/here/ping");
    assert!(
        line.starts_with("answering /here/ping through tcp4://"),
        "{line}"
    );
    let by_name = face.replace("tcp4://127.0.0.1", "tcp://localhost");
    let environment = [("NDN_CLIENT_TRANSPORT", by_name.as_str())];
    let pinged = namecast(home, &environment, "ping /here --count 2 --interval 10ms");
    let printed = text(&pinged.stdout);
    assert!(pinged.status.success(), "{}", text(&pinged.stderr));
    assert!(printed.contains(&format!("through {by_name}")), "{printed}");
    assert!(
        printed.contains("2 sent, 2 answered, 0 % lost"),
        "{printed}"
    );
    fs::create_dir(home.join(".ndn")).unwrap();
    fs::write(
        home.join(".ndn/client.conf"),
        format!("; ours\ntransport={face}\n"),
    )
    .unwrap();
    let lost = namecast(home, &[], "ping /nobody --count 1 --lifetime 500ms");
    assert_eq!(lost.status.code(), Some(1));
    let printed = text(&lost.stdout);
    assert!(
        printed.contains(face) && printed.contains("100 % lost"),
        "{printed}"
    );
    // Nothing listens there.
    let environment = [("NDN_CLIENT_TRANSPORT", "unix:///no/such.sock")];
    let absent = namecast(home, &environment, "status");
    let errors = text(&absent.stderr);
    assert!(
        errors.contains("which NDN_CLIENT_TRANSPORT names"),
        "{errors}"
    );
}

#[test]
fn live_streams_are_listed() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let (_forwarder, about) = forwarder(home, "");
    let face = about["faces"][0].as_str().unwrap();
    let none = namecast(home, &[], &format!("list --json --connect {face}"));
    assert_eq!(text(&none.stdout).trim(), "[]");
    let (_serving, _) = registered(home, face, "ping /here --serve", "/here/ping");
    let _publisher = start_publisher(home, face);
    let listed = until("stream", || {
        let listed = namecast(home, &[], &format!("list --json --connect {face}"));
        let listed: Value = serde_json::from_slice(&listed.stdout).ok()?;
        (!listed.as_array()?.is_empty()).then_some(listed)
    });
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    let found = &listed[0];
    assert_eq!(found["name"], "/test");
    assert_eq!(found["streams"][0]["rungs"][0], "200k");
    assert!(
        found["key"].is_string() && found["since"].is_u64(),
        "{found}"
    );
}

/// Its certificate is trusted as one of the system's, and read again at SIGHUP, unless it is wrong.
#[test]
fn the_page_and_its_websocket_are_served_with_a_certificate_of_files() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let renew = || {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = pem("PRIVATE KEY", &made.signing_key.serialize_der());
        let certificate = pem("CERTIFICATE", made.cert.der());
        fs::write(home.join("key.pem"), key).unwrap();
        fs::write(home.join("cert.pem"), &certificate).unwrap();
        certificate
    };
    let first = renew();
    fs::write(home.join("first.pem"), first).unwrap();
    let config = "listen = { udp = [], tcp = [], unix = [\"node.sock\"] }\n\
                  web = { tls-cert = \"cert.pem\", tls-key = \"key.pem\" }\n";
    fs::write(home.join("namecast.toml"), config).unwrap();
    let line = "forwarder --json --port 0 --config namecast.toml";
    let mut forwarder = Program::start(home, line);
    let mut lines = forwarder.lines();
    let about = lines.next().unwrap();
    let url = about["other_urls"][0].as_str().unwrap();
    let face = format!("{}ws", url.replace("https://", "wss://"));
    let unix = format!("unix://{}/node.sock", home.display());
    let (_serving, _) = registered(home, &unix, "ping /here --serve", "/here/ping");
    let ping = |roots: &str| {
        let environment = [("SSL_CERT_FILE", roots)];
        let line = format!("ping /here --count 1 --connect {face}");
        namecast(home, &environment, &line)
    };
    let pinged = ping("first.pem");
    assert!(pinged.status.success(), "{}", text(&pinged.stderr));
    let second = renew();
    fs::write(home.join("second.pem"), second).unwrap();
    let hang_up = |program: &Program| {
        let id = program.0.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-HUP", &id])
                .status()
                .unwrap()
                .success()
        );
    };
    hang_up(&forwarder);
    let reloaded = lines.next().unwrap();
    assert!(
        reloaded["reloaded"][0]
            .as_str()
            .unwrap()
            .contains("certificate"),
        "{reloaded}"
    );
    assert!(!ping("first.pem").status.success());
    assert!(ping("second.pem").status.success());
    fs::write(home.join("key.pem"), "nothing").unwrap();
    hang_up(&forwarder);
    let refused = lines.next().unwrap();
    assert!(
        refused["not_reloaded"]
            .as_str()
            .unwrap()
            .contains("key.pem"),
        "{refused}"
    );
    assert!(ping("second.pem").status.success());
}

/// The address of the metrics of a command, which says it on standard error.
fn observed(home: &Path, arguments: &str) -> (Program, String) {
    let mut command = command(home, &format!("{arguments} --metrics 127.0.0.1:0"));
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut program = Program(command.spawn().unwrap());
    let mut line = String::new();
    let errors = program.0.stderr.take().unwrap();
    BufReader::new(errors).read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("Metrics: ").expect("the address");
    (program, url.to_owned())
}

#[test]
fn what_runs_until_it_is_interrupted_has_metrics_and_health() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let (_forwarder, about) = forwarder(home, "");
    let face = about["faces"][0].as_str().unwrap();
    fs::write(home.join("file"), "content").unwrap();
    let ping = "ping /here --interval 10ms";
    let lost = "ping /nobody --interval 10ms";
    let problem = "/nobody does not answer\n";
    let mut running = Vec::new();
    for (arguments, metric, health) in [
        (
            "put /a file",
            "namecast_object_size_bytes 7.0",
            (200, "ok\n"),
        ),
        (
            "ping /here --serve",
            "namecast_ping_served_total ",
            (200, "ok\n"),
        ),
        (ping, "namecast_ping_rtt_seconds_count ", (200, "ok\n")),
        (lost, "outcome=\"nacked\"} 1", (503, problem)),
    ] {
        let (program, url) = observed(home, &format!("{arguments} --connect {face}"));
        running.push(program);
        until(metric, || fetch(&url).1.contains(metric).then_some(()));
        let text = fetch(&url).1;
        assert!(
            text.contains("namecast_web_connections_total{server=\"http://127.0.0.1:"),
            "{text}"
        );
        let of_health = url.replace("/metrics", "/health");
        until(health.1, || {
            (fetch(&of_health) == (health.0, health.1.to_owned())).then_some(())
        });
    }
}

/// Each of them writes more than one line of logs: to a full disk, to a pipe that nobody reads any more, and to a file, without colours.
#[test]
fn logs_that_cannot_be_written_end_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let socket = home.join("s").display().to_string();
    let line =
        format!("forwarder -vv --duration 300ms --udp off --tcp off --port 0 --unix {socket}");
    let log = home.join("log");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let file = fs::File::create(&log).unwrap();
    for errors in [full.into(), writer.into(), file.into()] {
        let errors: Stdio = errors;
        let status = command(home, &line).stderr(errors).status().unwrap();
        assert!(status.success(), "{status}");
    }
    let written = fs::read_to_string(log).unwrap();
    assert!(
        written.lines().count() > 1 && !written.contains('\u{1b}'),
        "{written}"
    );
}
