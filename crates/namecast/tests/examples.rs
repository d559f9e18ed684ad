//! The examples, as people start them, against a forwarder of this process.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use namecast::{Node, Options};
use tempfile::TempDir;

/// A program that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A forwarder, and a directory of keys for the examples.
struct World {
    home: TempDir,
    _forwarder: Node,
    address: String,
}

impl World {
    async fn new() -> Self {
        let forwarder = Node::start(Options::default());
        let address = forwarder.listen("udp://127.0.0.1:0").await.unwrap();
        Self {
            home: tempfile::tempdir().unwrap(),
            _forwarder: forwarder,
            address: address.to_string(),
        }
    }

    fn start(&self, example: &str, name: &str) -> Running {
        let mut command = Command::new(path(example));
        command.args([&self.address, name]);
        command.env("XDG_DATA_HOME", self.home.path());
        let command = command.stdout(Stdio::piped()).stdin(Stdio::null());
        Running(command.spawn().unwrap())
    }

    /// Returns the first `count` lines that a program prints and `is_wanted` accepts.
    fn lines(program: &mut Running, count: usize, is_wanted: fn(&str) -> bool) -> Vec<String> {
        let output = BufReader::new(program.0.stdout.take().unwrap());
        let lines = output.lines().map(|line| line.unwrap());
        lines.filter(|line| is_wanted(line)).take(count).collect()
    }
}

/// The example that cargo built beside this test.
fn path(example: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    profile.join("examples").join(example)
}

#[tokio::test(flavor = "multi_thread")]
async fn readings_are_printed_in_order() {
    let world = World::new().await;
    let mut data = world.start("data", "/demo/thermometer");
    let lines = World::lines(&mut data, 10, |_| true);
    let tenths = |line: &String| {
        let (number, unit) = line.split_once(' ').unwrap();
        assert_eq!(unit, "°C");
        number.replace('.', "").parse::<u32>().unwrap() - 210
    };
    let tenths: Vec<u32> = lines.iter().map(tenths).collect();
    let expected: Vec<u32> = (0..10).map(|n| (tenths[0] + n) % 50).collect();
    assert_eq!(tenths, expected);
}

/// A second of video: the first frame is a key frame, and there is one in each 30.
#[tokio::test(flavor = "multi_thread")]
async fn a_picture_is_published_and_watched() {
    let world = World::new().await;
    let _camera = world.start("publish", "/demo/camera");
    let mut watch = world.start("watch", "/demo/camera");
    let frames = World::lines(&mut watch, 60, |line| line.starts_with("frame "));
    assert!(frames[0].ends_with(", key"), "{}", frames[0]);
    let keys = frames.iter().filter(|line| line.ends_with(", key")).count();
    assert!((2..=3).contains(&keys), "{keys} key frames of 60");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_served_and_fetched() {
    let world = World::new().await;
    let mut serve = world.start("serve", "/demo/files");
    let lines = World::lines(&mut serve, 1, |_| true);
    let size = std::fs::metadata("Cargo.toml").unwrap().len();
    assert!(
        lines[0].starts_with("/demo/files/Cargo.toml/v="),
        "{lines:?}"
    );
    assert!(lines[0].ends_with(&format!(": {size} bytes")), "{lines:?}");
}

/// An example is what people read first.
#[test]
fn examples_are_short() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines <= 30, "{}: {lines} lines", path.display());
    }
}
