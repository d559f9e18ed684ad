//! The web server of a running forwarder: what it answers to whom.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use crate::program::Program;

/// A forwarder with 8 places for WebSockets and `settings` in its section `[web]`, and the port of its page.
fn start(home: &Path, settings: &str) -> (Program, u16) {
    let file = home.join("namecast.toml");
    let text = format!(
        "listen = {{ udp = [], tcp = [], unix = [] }}\ntables = {{ connections = 8 }}\n[web]\n{settings}\n"
    );
    std::fs::write(file, text).unwrap();
    let line = "forwarder --json --config namecast.toml --port 0";
    let mut forwarder = Program::start(home, line);
    let about = forwarder.lines().next().unwrap();
    let url = about["url"].as_str().unwrap();
    let port = url.trim_end_matches('/').rsplit(':').next().unwrap();
    (forwarder, port.parse().unwrap())
}

/// Head and body of what the server answers to `GET path` with these lines, in which `PORT` is its port.
fn get(port: u16, path: &str, lines: &str) -> (String, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let lines = lines.replace("PORT", &port.to_string());
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nConnection: close\r\n{lines}\r\n"
    )
    .unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_lowercase(), body.to_owned())
}

fn status(port: u16, path: &str, lines: &str) -> u16 {
    let (head, _) = get(port, path, lines);
    head.split(' ').nth(1).unwrap().parse().unwrap()
}

const OWN: &str = "Host: 127.0.0.1:PORT\r\n";
const REBOUND: &str = "Host: evil.example:PORT\r\n";

#[test]
fn the_state_of_a_node_is_for_its_own_machine() {
    let home = tempfile::tempdir().unwrap();
    let (_forwarder, port) = start(home.path(), "");
    for path in ["/status.json", "/metrics"] {
        assert_eq!(status(port, path, OWN), 200);
        assert_eq!(status(port, path, REBOUND), 421);
        let foreign = format!("{OWN}Origin: https://evil.example\r\n");
        assert_eq!(status(port, path, &foreign), 403);
        let forwarded = format!("{OWN}X-Forwarded-For: 198.51.100.7\r\n");
        let (head, body) = get(port, path, &forwarded);
        assert!(head.starts_with("http/1.1 403"), "{head}");
        assert!(body.contains("public-status"), "{body}");
    }
    assert_eq!(status(port, "/node.json", REBOUND), 421);
    assert_eq!(status(port, "/node.json", ""), 400);
}

#[test]
fn viewers_of_a_name_are_counted_for_everybody() {
    let home = tempfile::tempdir().unwrap();
    let (_forwarder, port) = start(home.path(), "");
    let (head, body) = get(port, "/viewers.json?name=/show", OWN);
    assert!(head.starts_with("http/1.1 200"), "{head}");
    assert_eq!(body.trim(), r#"{"viewers":0}"#);
    assert_eq!(status(port, "/viewers.json?name=show%zz", OWN), 400);
    assert_eq!(status(port, "/viewers.json", OWN), 400);
}

#[test]
fn allowed_pages_read_what_a_node_says_of_itself_and_no_others() {
    let home = tempfile::tempdir().unwrap();
    let settings = "allow-origins = [\"https://watch.example\"]\nframe-ancestors = [\"https://portal.example\"]";
    let (_forwarder, port) = start(home.path(), settings);
    let (head, _) = get(port, "/node.json", OWN);
    assert!(!head.contains("access-control-allow-origin"), "{head}");
    assert!(
        head.contains("cross-origin-resource-policy: same-origin"),
        "{head}"
    );
    assert!(
        head.contains("frame-ancestors https://portal.example"),
        "{head}"
    );
    for rule in [
        "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'",
        "connect-src 'self' wss: https:;",
        "referrer-policy: no-referrer",
    ] {
        assert!(head.contains(rule), "{rule}: {head}");
    }
    let allowed = format!("{OWN}Origin: https://watch.example\r\n");
    let (head, _) = get(port, "/node.json", &allowed);
    assert!(
        head.contains("access-control-allow-origin: https://watch.example"),
        "{head}"
    );
    assert!(
        head.contains("cross-origin-resource-policy: cross-origin"),
        "{head}"
    );
    // Players of other pages read streams as these do; here there is none.
    let (head, _) = get(port, "/hls/nobody/1.m4s", &allowed);
    assert!(head.starts_with("http/1.1 404"), "{head}");
    assert!(
        head.contains("access-control-allow-origin: https://watch.example"),
        "{head}"
    );
    assert_eq!(status(port, "/status.json", &allowed), 403);
    let foreign = format!("{OWN}Origin: https://evil.example\r\n");
    assert_eq!(status(port, "/node.json", &foreign), 403);
    assert_eq!(status(port, "/hls/nobody/index.m3u8", &foreign), 403);
}

/// Times that a state is looked at until it is as expected.
const MAX_LOOKS: usize = 1_000;
const UPGRADE: &str = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// The status with which a WebSocket is answered, and the connection.
fn upgrade(port: u16, lines: &str) -> (u16, TcpStream) {
    upgrade_at("/ws", port, lines)
}

fn upgrade_at(path: &str, port: u16, lines: &str) -> (u16, TcpStream) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let lines = lines.replace("PORT", &port.to_string());
    write!(stream, "GET {path} HTTP/1.1\r\n{UPGRADE}{lines}\r\n").unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    let status = String::from_utf8_lossy(&head[9..]).parse().unwrap();
    (status, stream)
}

/// What `/status.json` says to an own page.
fn state(port: u16) -> serde_json::Value {
    let (_, text) = get(port, "/status.json", OWN);
    let at = text.find('{').unwrap();
    let until = text.rfind('}').unwrap();
    serde_json::from_str(&text[at..=until]).unwrap()
}

/// Faces of pages that count as local.
fn local_web_faces(state: &serde_json::Value) -> usize {
    let faces = state["node"]["faces"].as_array().unwrap().iter();
    let is_web =
        |face: &&serde_json::Value| face["remote"].as_str().unwrap().starts_with("wsclient");
    faces
        .filter(is_web)
        .filter(|face| face["is_local"] == true)
        .count()
}

/// All places are taken by those who do nothing. A page of this machine gets one all the same; foreign pages get none.
#[test]
fn who_does_nothing_gives_way_to_own_pages() {
    let home = tempfile::tempdir().unwrap();
    let (_forwarder, port) = start(home.path(), "");
    let foreign = format!("{OWN}Origin: https://evil.example\r\n");
    assert_eq!(upgrade(port, &foreign).0, 403);
    let rebound = format!("{REBOUND}Origin: http://evil.example:PORT\r\n");
    assert_eq!(upgrade(port, &rebound).0, 421);
    let forwarded = format!("{OWN}Origin: http://127.0.0.1:PORT\r\nVia: 1.1 proxy\r\n");
    let strangers: Vec<_> = (0..8)
        .map(|at| upgrade(port, if at % 2 == 0 { OWN } else { &forwarded }))
        .collect();
    assert!(strangers.iter().all(|(status, _)| *status == 101));
    let own = format!("{OWN}Origin: http://127.0.0.1:PORT\r\n");
    let (answer, _connection) = upgrade(port, &own);
    assert_eq!(answer, 101);
    // The face is there soon after the answer that the connection is taken.
    let mut states = (0..MAX_LOOKS).map(|_| state(port));
    let state = states.find(|state| local_web_faces(state) > 0);
    let state = state.expect("the page's own face is added");
    assert_eq!(local_web_faces(&state), 1);
    let drops = &state["node"]["link_drops"];
    assert_eq!(drops["foreign_origin"], 1);
    assert_eq!(drops["foreign_host"], 1);
    assert_eq!(drops["too_many_faces"], 1);
}

/// Routers of the NDN testbed take WebSockets there.
#[test]
fn the_path_may_end_with_a_slash() {
    let home = tempfile::tempdir().unwrap();
    let (_forwarder, port) = start(home.path(), "");
    assert_eq!(upgrade_at("/ws/", port, OWN).0, 101);
    assert_eq!(upgrade_at("/ws", port, OWN).0, 101);
}

/// A connection that says nothing, or never ends its header, is closed after the time that it has.
#[test]
fn a_header_has_a_time_and_a_size() {
    let home = tempfile::tempdir().unwrap();
    let (_forwarder, port) = start(home.path(), "header-timeout = \"100ms\"");
    for start in ["", "GET / HTTP/1.1\r\nHost: 127"] {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(start.as_bytes()).unwrap();
        let mut rest = Vec::new();
        // Ends at once or with an error status; without a bound it would wait for ever.
        let _ = stream.read_to_end(&mut rest);
    }
    let (_forwarder, port) = self::start(home.path(), "");
    // Also where the response comes long before the end of the request, which would be lost if the connection were reset.
    for size in [20_000, 200_000] {
        let long = format!("{OWN}X-Long: {}\r\n", "a".repeat(size));
        assert_eq!(status(port, "/node.json", &long), 431);
    }
}
