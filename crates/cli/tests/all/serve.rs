//! `namecast serve`: pushers that come, go, die and fall silent, by RTMP and SRT, as ffmpeg pushes.

mod rtmp;
#[cfg(feature = "srt")]
mod srt;

use std::cell::RefCell;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::program::{Program, command, newest_stats, start_forwarder, until};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rtmp::{Clip, Encoder, Tape};
use serde_json::Value;

const TIMEOUT: Duration = Duration::from_secs(60);

/// A server with its forwarder, and what it tells.
struct Server {
    serve: Program,
    events: Receiver<Value>,
    /// Events that were told and nobody has asked for yet.
    passed_over: RefCell<Vec<Value>>,
    rtmp: String,
    srt: String,
    /// URL of its metrics.
    metrics: String,
    face: String,
    home: tempfile::TempDir,
    _forwarder: Program,
}

impl Server {
    fn start() -> Self {
        Self::start_with("--ladder copy")
    }

    fn start_with(encoding: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let (forwarder, face) = start_forwarder(home.path());
        fs::write(home.path().join("key"), "s3cret\n").unwrap();
        let line = format!(
            "serve --json --rtmp 127.0.0.1:0 --srt 127.0.0.1:0 --key-file key {encoding} --stats serve.json --connect {face} \
             --metrics 127.0.0.1:0"
        );
        let mut serve = Program::start(home.path(), &line);
        let mut lines = serve.lines();
        let metrics = lines.next().unwrap()["metrics"]
            .as_str()
            .unwrap()
            .to_owned();
        let about = lines.next().unwrap();
        let (sender, events) = channel();
        thread::spawn(move || lines.try_for_each(|line| sender.send(line)));
        let address = |protocol: &str| about[protocol].as_str().unwrap().to_owned();
        Self {
            serve,
            events,
            passed_over: RefCell::default(),
            rtmp: address("rtmp"),
            srt: address("srt"),
            metrics,
            face,
            home,
            _forwarder: forwarder,
        }
    }

    /// Waits for an event about `name`.
    fn event(&self, event: &str, name: &str) -> Value {
        let deadline = Instant::now() + TIMEOUT;
        let is_it = |told: &Value| told["event"] == event && told["name"] == name;
        let mut passed_over = self.passed_over.borrow_mut();
        if let Some(at) = passed_over.iter().position(is_it) {
            return passed_over.remove(at);
        }
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let told = self.events.recv_timeout(left);
            let told = told.unwrap_or_else(|_| panic!("no {event} of {name}: {passed_over:?}"));
            if is_it(&told) {
                return told;
            }
            passed_over.push(told);
        }
    }

    fn counter(&self, name: &str) -> Option<u64> {
        newest_stats(&self.home.path().join("serve.json"))?[name].as_u64()
    }

    fn watch(&self, name: &str) -> Program {
        let (stats, face) = (stats(name), &self.face);
        let line = format!("watch {name} --quiet --stats {stats} --connect {face}");
        Program::start(self.home.path(), &line)
    }

    /// Pictures that the watcher of `name` has received.
    fn received(&self, name: &str) -> u64 {
        let stats = newest_stats(&self.home.path().join(stats(name)));
        let received = stats.and_then(|it| it["video"]["received"].as_u64());
        received.unwrap_or(0)
    }

    fn rtmp_socket(&self) -> String {
        let address = self.rtmp.trim_start_matches("rtmp://");
        address.trim_end_matches("/app/").to_owned()
    }

    fn srt_socket(&self) -> String {
        let address = self.srt.trim_start_matches("srt://");
        address.trim_end_matches("?streamid=").to_owned()
    }

    /// What is no RTMP, and what is no SRT.
    fn send_garbage(&self) {
        let mut tcp = TcpStream::connect(self.rtmp_socket()).unwrap();
        tcp.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        // It ends, which may take back what was not read.
        let _ = tcp.read_to_end(&mut Vec::new());
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        for len in 0..1_500_u32 {
            let octets: Vec<u8> = (0..len).map(|it| ((it * it * len) >> 3) as u8).collect();
            udp.send_to(&octets, self.srt_socket()).unwrap();
        }
    }

    fn interrupt(&mut self) {
        let pid = self.serve.0.id().to_string();
        let sent = Command::new("kill").args(["-INT", &pid]).status();
        assert!(sent.unwrap().success());
        let status = until("end", || self.serve.0.try_wait().unwrap());
        assert!(status.success());
    }

    /// Processes that it started.
    fn children(&self) -> Vec<u32> {
        let pid = self.serve.0.id();
        let mut all = String::new();
        for task in fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
            let path = task.unwrap().path().join("children");
            all.push_str(&fs::read_to_string(path).unwrap_or_default());
        }
        all.split_whitespace()
            .filter_map(|it| it.parse().ok())
            .collect()
    }
}

/// File of a watcher's statistics.
fn stats(name: &str) -> String {
    format!("{}.json", name.trim_matches('/').replace('/', "-"))
}

/// An ffmpeg that pushes; killed at the end of the test.
struct Pusher(Child);

impl Pusher {
    fn start(address: &str) -> Self {
        let format = if address.starts_with("srt") {
            "mpegts"
        } else {
            "flv"
        };
        // Large enough for key frames of 100 kB, before which MPEG-TS has no sound.
        let source = "testsrc2=size=1280x720:rate=25";
        let encode =
            "-c:v libx264 -preset ultrafast -tune zerolatency -pix_fmt yuv420p -g 25 -c:a aac";
        let mut command = Command::new("ffmpeg");
        command.args(["-loglevel", "error", "-re", "-f", "lavfi", "-i", source]);
        command
            .args(["-f", "lavfi", "-i", "sine"])
            .args(encode.split(' '));
        command.args(["-f", format, address]);
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    fn signal(&self, signal: &str) {
        let pid = self.0.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status().unwrap();
        assert!(sent.success());
    }

    /// What it said before it gave up.
    fn refused(mut self) -> String {
        let status = until("end of the pusher", || self.0.try_wait().unwrap());
        assert!(!status.success());
        let mut said = String::new();
        let mut stderr = self.0.stderr.take().unwrap();
        stderr.read_to_string(&mut said).unwrap();
        said
    }
}

impl Drop for Pusher {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const PICTURES: u64 = 10;

/// The PEM form of what `der` holds.
fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
}

/// Within TLS and without, at the same port. A key that is taken back ends its stream, and the other goes on.
#[test]
fn a_certificate_makes_it_rtmps_and_keys_are_read_again() {
    let home = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let write = |name: &str, text: String| fs::write(home.path().join(name), text).unwrap();
    write("cert.pem", pem("CERTIFICATE", made.cert.der()));
    write(
        "key.pem",
        pem("PRIVATE KEY", &made.signing_key.serialize_der()),
    );
    let path = |name: &str| home.path().join(name).display().to_string();
    let (certificate, key) = (path("cert.pem"), path("key.pem"));
    let mut server = Server::start_with(&format!(
        "--ladder copy --tls-cert {certificate} --tls-key {key} --port 0"
    ));
    let keys = server.home.path().join("key");
    fs::write(&keys, "s3cret /cam\nother /desk/*\n").unwrap();
    let hang_up = |server: &Server| {
        let pid = server.serve.0.id().to_string();
        let sent = Command::new("kill").args(["-HUP", &pid]).status().unwrap();
        assert!(sent.success());
    };
    hang_up(&server);
    let within_tls = server.rtmp.replace("rtmp://", "rtmps://");
    let clear = Pusher::start(&format!("{}cam?key=s3cret", server.rtmp));
    let _sealed = Pusher::start(&format!("{within_tls}desk/a?key=other"));
    server.event("begun", "/cam");
    server.event("begun", "/desk/a");
    let _watcher = server.watch("/desk/a");
    fs::write(&keys, "other /desk/*\n").unwrap();
    hang_up(&server);
    let mut clear = clear;
    until("end of the pusher", || clear.0.try_wait().unwrap());
    until("picture", || {
        (server.received("/desk/a") > PICTURES).then_some(())
    });
    let said = Pusher::start(&format!("{within_tls}cam?key=other")).refused();
    assert!(said.contains("the key is not for this name"), "{said}");
    server.interrupt();
}

/// Each way in which a pusher leaves, by both protocols at once: the next one is taken, and who watches goes on. Those that were
/// stopped keep their connections, as those do whose network is gone.
#[test]
fn pushers_come_and_go() {
    let server = Server::start();
    let streams = [
        ("/cam", format!("{}cam?key=s3cret", server.rtmp)),
        ("/desk/cam", format!("{}desk/cam?key=s3cret", server.srt)),
    ];
    let push = || {
        streams
            .each_ref()
            .map(|(_, address)| Pusher::start(address))
    };
    let watch = |(name, _): &(&str, String)| server.watch(name);
    let mut pushers = vec![push()];
    let mut watchers = Vec::new();
    for leave in ["-INT", "-KILL", "-STOP", "-KILL"] {
        for (name, _) in &streams {
            server.event("begun", name);
        }
        if watchers.is_empty() {
            watchers.extend(streams.each_ref().map(watch));
        }
        for (name, _) in &streams {
            let seen = server.received(name);
            let goes_on = || (server.received(name) > seen + PICTURES).then_some(());
            until("picture", goes_on);
        }
        let last = pushers.last().unwrap();
        last.iter().for_each(|pusher| pusher.signal(leave));
        pushers.push(push());
    }
    for (name, _) in &streams {
        server.event("begun", name);
    }
    assert_eq!(server.counter("refused_taken"), Some(0));
}

#[test]
fn whoever_may_not_push_hears_why_and_disturbs_nobody() {
    let mut server = Server::start();
    let address = format!("{}cam?key=s3cret", server.rtmp);
    let srt = format!("{}cam?key=s3cret", server.srt);
    let _first = Pusher::start(&address);
    server.event("begun", "/cam");
    let _watcher = server.watch("/cam");
    until("picture", || {
        (server.received("/cam") > PICTURES).then_some(())
    });

    let said = Pusher::start(&address).refused();
    assert!(said.contains("somebody pushes as /cam already"), "{said}");
    Pusher::start(&srt).refused();
    let bad = address.replace("cam", "c%40m");
    let said = Pusher::start(&bad).refused();
    assert!(said.contains("the name is none"), "{said}");
    let wrong = address.replace("s3cret", "secret");
    let said = Pusher::start(&wrong).refused();
    assert!(said.contains("the key is missing or wrong"), "{said}");
    // After a wrong key its source waits a second.
    let wrong = srt.replace("s3cret", "secret");
    until("another wrong key", || {
        Pusher::start(&wrong).refused();
        server.counter("refused_key").filter(|&it| it == 2)
    });
    server.send_garbage();
    for (counter, count) in [
        ("refused_taken", 2),
        ("refused_key", 2),
        ("refused_name", 1),
        ("malformed", 1),
    ] {
        until(counter, || {
            server.counter(counter).filter(|&it| it == count)
        });
    }
    assert_eq!(server.counter("admitted"), Some(1));

    let seen = server.received("/cam");
    until("picture", || {
        (server.received("/cam") > seen + PICTURES).then_some(())
    });
    let children = server.children();
    assert!(!children.is_empty());
    server.interrupt();
    until("end of ffmpeg", || {
        let is_there = |pid: &u32| Path::new(&format!("/proc/{pid}")).exists();
        (!children.iter().any(is_there)).then_some(())
    });
    TcpListener::bind(server.rtmp_socket()).unwrap();
    UdpSocket::bind(server.srt_socket()).unwrap();
}

/// A push of 1280×720 at 25 fps by RTMP, which the encoder hears, and by SRT.
#[test]
fn pushes_that_cost_too_much_end() {
    for (limit, counter, sentence) in [
        (
            "--max-picture 1280x640",
            "refused_picture",
            "its pictures have 1280x720 pixels, more than 1280x640",
        ),
        (
            "--max-fps 2",
            "refused_frame_rate",
            "it has more than 2 pictures per second",
        ),
        (
            "--max-bitrate 100k",
            "refused_bitrate",
            "it has more than 100.0 kbit/s",
        ),
    ] {
        let server = Server::start_with(&format!("--ladder copy {limit}"));
        let _srt = Pusher::start(&format!("{}srt?key=s3cret", server.srt));
        let ended = server.event("ended", "/srt");
        let why = ended["why"].as_str().unwrap();
        assert!(why.contains(sentence), "{why}");
        let rtmp = Pusher::start(&format!("{}cam?key=s3cret", server.rtmp));
        if counter == "refused_picture" {
            let said = rtmp.refused();
            assert!(said.contains(sentence), "{said}");
        } else {
            let ended = server.event("ended", "/cam");
            let why = ended["why"].as_str().unwrap();
            assert!(why.contains(sentence), "{why}");
        }
        until(counter, || {
            server.counter(counter).filter(|&count| count >= 2)
        });
        assert_eq!(server.counter("malformed"), Some(0));
    }
}

/// A push ends while somebody else publishes its name through the forwarder, and so does another publisher of what is pushed.
#[test]
fn a_name_has_one_publisher() {
    let server = Server::start();
    let publish = |name: &str| {
        let (home, face) = (server.home.path(), &server.face);
        let line = format!("publish {name} --quiet --input test --ladder 200k --connect {face}");
        let mut command = command(home, &line);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        Program(command.spawn().unwrap())
    };
    let _publisher = publish("/cam");
    let _watcher = server.watch("/cam");
    until("picture", || {
        (server.received("/cam") > PICTURES).then_some(())
    });
    let _refused = Pusher::start(&format!("{}cam?key=s3cret", server.rtmp));
    let ended = server.event("ended", "/cam");
    let why = ended["why"].as_str().unwrap();
    assert!(
        why.contains("/cam is published already (key /cam/KEY/"),
        "{why}"
    );

    let _pusher = Pusher::start(&format!("{}desk?key=s3cret", server.rtmp));
    server.event("begun", "/desk");
    let mut second = publish("/desk");
    let status = until("end", || second.0.try_wait().unwrap());
    assert_eq!(status.code(), Some(1));
    let seen = server.received("/cam");
    until("picture", || {
        (server.received("/cam") > seen + PICTURES).then_some(())
    });
}

const HEVC: &str = "-c:v libx265 -preset ultrafast -x265-params log-level=none:bframes=0";
const AV1: &str = "-c:v libsvtav1 -preset 12";
const H264: &str = "-c:v libx264 -preset ultrafast -tune zerolatency";

/// HEVC is encoded anew, AV1 and H.264 are passed through; the last one's times leave 24 bits, and then 32, without being repeated in
/// further chunks. What cannot be read is refused, and the encoder hears why.
#[test]
fn encoders_of_all_kinds_are_seen() {
    let server = Server::start_with("--ladder copy");
    let encoded = Server::start_with("--ladder 300k");
    let hevc = Clip::encode(HEVC, b"hvcC", Some(b"hvc1"));
    let av1 = Clip::encode(AV1, b"av1C", Some(b"av01"));
    let h264 = Clip::encode(H264, b"avcC", None);
    let vvc = Clip::encode(HEVC, b"hvcC", Some(b"vvc1"));
    let is_over = AtomicBool::new(false);
    let push = &|address: &str, name: &str, clip: &Clip, time: u32| {
        let path = format!("{}?key=s3cret", name.trim_start_matches('/'));
        Encoder::connect(address, &path, time == 0).push(clip, time, &is_over)
    };
    thread::scope(|scope| {
        let streams = [
            (&encoded, "/hevc", "HEVC", &hevc, 0),
            (&server, "/av1", "AV1", &av1, 0),
            // A second before times take four octets, and one before they begin anew.
            (&server, "/day", "H.264", &h264, 0xff_ffff - 1_000),
            (&server, "/month", "H.264", &h264, u32::MAX - 1_000),
        ];
        for (server, name, _, clip, time) in streams {
            let address = server.rtmp_socket();
            scope.spawn(move || push(&address, name, clip, time));
        }
        for (server, name, described, ..) in streams {
            let begun = server.event("begun", name);
            assert_eq!(begun["video"]["codec"], described, "{begun}");
            assert_eq!(begun["video"]["height"], 180);
            let _watcher = server.watch(name);
            until("picture", || {
                (server.received(name) > PICTURES).then_some(())
            });
        }
        is_over.store(true, Ordering::Relaxed);
    });
    is_over.store(false, Ordering::Relaxed);
    let address = server.rtmp_socket();
    let said = push(&address, "/vvc", &vvc, 0);
    assert!(said.contains("NetStream.Publish.Rejected"), "{said}");
    assert!(
        said.contains("the video codec vvc1 is not accepted"),
        "{said}"
    );
    until("refusal", || {
        server.counter("refused_codec").filter(|&it| it == 1)
    });
}

/// Another sample rate, and then another number of channels, on one connection: published anew under the name, and who watches goes on.
#[test]
fn sound_that_changes_in_mid_stream_is_followed() {
    let server = Server::start();
    let sounds = [(44_100, 2), (48_000, 2), (48_000, 1)];
    let tapes = sounds.map(|(sample_rate, channels)| Tape::encode(sample_rate, channels));
    let address = server.rtmp_socket();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            Encoder::connect(&address, "cam?key=s3cret", true).play(&tapes, &is_over);
        });
        let mut watcher = None;
        for (sample_rate, channels) in sounds {
            let begun = server.event("begun", "/cam");
            assert_eq!(begun["audio"]["sample_rate"], sample_rate, "{begun}");
            assert_eq!(begun["audio"]["channels"], channels, "{begun}");
            watcher.get_or_insert_with(|| server.watch("/cam"));
            let seen = server.received("/cam");
            until("picture", || {
                (server.received("/cam") > seen + PICTURES).then_some(())
            });
            if channels == 2 {
                let ended = server.event("ended", "/cam");
                let why = ended["why"].as_str().unwrap();
                assert!(why.starts_with("the sound changed from AAC"), "{why}");
            }
        }
        until("changes", || {
            server.counter("changed").filter(|&it| it == 2)
        });
        assert_eq!(server.counter("admitted"), Some(1));
        assert_eq!(server.counter("refused_taken"), Some(0));
        is_over.store(true, Ordering::Relaxed);
    });
}

/// The server reports pushes without media or without a key frame, and frees their names.
#[test]
fn pushes_without_a_picture_say_what_is_missing() {
    let server = Server::start();
    let address = server.rtmp_socket();
    let is_over = AtomicBool::new(false);
    let keyless = Clip::encode(H264, b"avcC", None).without_keys();
    thread::scope(|scope| {
        scope.spawn(|| {
            Encoder::connect(&address, "keyless?key=s3cret", true).push(&keyless, 0, &is_over)
        });
        let _idle = Encoder::connect(&address, "idle?key=s3cret", true);
        let trouble = server.event("trouble", "/keyless");
        let what = trouble["what"].as_str().unwrap();
        assert!(what.contains("no key frame has arrived"), "{what}");
        let trouble = server.event("trouble", "/idle");
        let what = trouble["what"].as_str().unwrap();
        assert!(
            what.contains("no picture and no sound has arrived"),
            "{what}"
        );
        until("end of the idle one", || {
            server.counter("malformed").filter(|&it| it == 1)
        });
        is_over.store(true, Ordering::Relaxed);
    });
}

/// Ten times, two names at once, by both protocols: from the start of the pusher's process to its first picture at a watcher who stays.
#[test]
#[ignore = "measures: cargo test -p namecast-cli --test all serve:: -- --ignored --nocapture"]
fn how_soon_pushers_are_seen() {
    let server = Server::start();
    let streams = [
        ("/cam", format!("{}cam?key=s3cret", server.rtmp)),
        ("/desk/cam", format!("{}desk/cam?key=s3cret", server.srt)),
    ];
    let mut arrivals = Vec::new();
    let mut watchers = Vec::new();
    let mut pushers: Vec<[Pusher; 2]> = Vec::new();
    for round in 0..=10 {
        let leave = ["-INT", "-KILL", "-STOP"][round % 3];
        if let Some(last) = pushers.last() {
            last.iter().for_each(|pusher| pusher.signal(leave));
            thread::sleep(Duration::from_millis(500));
        }
        let began = Instant::now();
        pushers.push(
            streams
                .each_ref()
                .map(|(_, address)| Pusher::start(address)),
        );
        for (at, (name, _)) in streams.iter().enumerate() {
            server.event("begun", name);
            let begun = Instant::now();
            if watchers.len() == at {
                let line = format!("watch {name} --quiet --output - --connect {}", server.face);
                let mut watcher = Program::start(server.home.path(), &line);
                arrivals.push(arrival_times(watcher.0.stdout.take().unwrap()));
                watchers.push(watcher);
            }
            let seen = arrivals[at]
                .iter()
                .find(|&arrival| arrival > begun)
                .unwrap();
            let (begun, seen) = (begun - began, seen - began);
            println!("{round:2} after {leave:5} {name:9} published {begun:.2?} seen {seen:.2?}");
        }
        thread::sleep(Duration::from_secs(2));
    }
}

/// When something came.
fn arrival_times(mut from: impl Read + Send + 'static) -> Receiver<Instant> {
    let (sender, arrivals) = channel();
    thread::spawn(move || {
        let mut octets = vec![0; 1 << 16];
        while from.read(&mut octets).is_ok_and(|count| count > 0) {
            if sender.send(Instant::now()).is_err() {
                return;
            }
        }
    });
    arrivals
}
