//! Running `namecast`s, and what they leave.

#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(
    clippy::allow_attributes,
    reason = "whether a part is unused differs per test file"
)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use namecast_media::ingest::burned_clock::Reading;
use namecast_media::ingest::ladder::PictureSize;
use namecast_net::Clock;
use namecast_units::Duration;
use serde_json::Value;

/// No step takes this long, however loaded the machine is.
const TIMEOUT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(50);
const SMALL: PictureSize = PictureSize {
    width: 320,
    height: 180,
};

/// A `namecast` to run, for which nothing but `home` exists.
pub(crate) fn command(home: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_namecast"));
    command.args(arguments.split_whitespace());
    command.env("HOME", home).env("XDG_DATA_HOME", home);
    command.env_remove("XDG_RUNTIME_DIR").current_dir(home);
    command.env_remove("NDN_CLIENT_TRANSPORT");
    command.stdin(Stdio::null());
    command
}

/// One running `namecast`; ends with the test.
pub(crate) struct Program(pub(crate) Child);

impl Program {
    pub(crate) fn start(home: &Path, arguments: &str) -> Self {
        let mut command = command(home, arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }

    /// The lines it prints, which are JSON.
    pub(crate) fn lines(&mut self) -> impl Iterator<Item = Value> + use<> {
        let lines = BufReader::new(self.0.stdout.take().unwrap()).lines();
        lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap())
    }

    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A forwarder, and the face that applications connect to.
pub(crate) fn start_forwarder(home: &Path) -> (Program, String) {
    let (forwarder, [face]) = start_forwarder_with(home, "--udp off --tcp 127.0.0.1:0");
    (forwarder, face)
}

/// A forwarder with other arguments, and the first of its faces.
pub(crate) fn start_forwarder_with<const N: usize>(
    home: &Path,
    arguments: &str,
) -> (Program, [String; N]) {
    let line = format!("forwarder --json --port 0 {arguments}");
    let mut forwarder = Program::start(home, &line);
    let about = forwarder.lines().next().unwrap();
    let face = |at: usize| about["faces"][at].as_str().unwrap().to_owned();
    (forwarder, core::array::from_fn(face))
}

/// A forwarder that takes Data and the next Interest in one packet.
pub(crate) fn start_bundling_forwarder(home: &Path) -> (Program, String) {
    let config = home.join("bundling.toml");
    let text = "hops = [\"piggyback\"]\n\
                listen = { udp = [], tcp = [\"127.0.0.1:0\"], unix = [] }\n";
    fs::write(&config, text).unwrap();
    let arguments = format!("--config {}", config.display());
    let (forwarder, [face]) = start_forwarder_with(home, &arguments);
    (forwarder, face)
}

/// The home of somebody called `name`.
pub(crate) fn home(of: &Path, name: &str) -> PathBuf {
    let home = of.join(name);
    fs::create_dir_all(&home).unwrap();
    home
}

/// A publisher of the test picture as `/test`.
pub(crate) fn start_publisher(home: &Path, face: &str) -> Program {
    let line = format!("publish /test --quiet --input test --ladder 200k --connect {face}");
    Program::start(home, &line)
}

/// What a web server answers to a request for `url`: its status, and the text.
pub(crate) fn fetch(url: &str) -> (u16, String) {
    let (authority, path) = url["http://".len()..].split_once('/').unwrap();
    let mut stream = TcpStream::connect(authority).unwrap();
    let head = format!("GET /{path} HTTP/1.0\r\nHost: {authority}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, text) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap();
    (status.parse().unwrap(), text.to_owned())
}

/// Waits for something, and says what did not come.
pub(crate) fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let deadline = Clock::new().now() + TIMEOUT;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Clock::new().now() < deadline, "no {what}");
        thread::sleep(PAUSE);
    }
}

/// The newest whole object in a statistics file.
pub(crate) fn newest_stats(path: &Path) -> Option<Value> {
    let text = fs::read_to_string(path).ok()?;
    text.lines()
        .rev()
        .find_map(|line| serde_json::from_str(line).ok())
}

/// The clocks in a recording's frames, as ffmpeg decodes them.
pub(crate) fn clocks(recording: &Path) -> Vec<Reading> {
    let decoded = Command::new("ffmpeg")
        .args(["-loglevel", "error", "-i"])
        .arg(recording)
        .args([
            "-map",
            "0:v:0",
            "-fps_mode",
            "passthrough",
            "-f",
            "rawvideo",
        ])
        .args(["-pix_fmt", "gray", "pipe:1"])
        .output()
        .unwrap();
    assert!(
        decoded.status.success(),
        "{}",
        String::from_utf8_lossy(&decoded.stderr)
    );
    let frames = decoded.stdout.chunks(320 * 180);
    frames
        .map(|frame| Reading::read(frame, SMALL).expect("the clock is readable"))
        .collect()
}
