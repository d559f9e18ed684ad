//! How late pictures are that come from outside, by the clock in their pixels: through `namecast publish` and `namecast watch`, less
//! what ffmpeg alone takes to show the same octets. Also what publishing costs.
//!
//! ```text
//!  drawn clock ─▶ ffmpeg: H.264 ┬─ pipe, RTMP or SRT ─▶ namecast publish ─▶ forwarder ─▶ namecast watch ─▶ ffmpeg ─▶ clock read
//!                               └─ the same ─▶ ffmpeg, which holds nothing back ───────────────────────────────────▶ clock read
//! ```
//!
//! `cargo run --release -p namecast-media --example inputs -- target/release/namecast [INPUT …]`

use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use namecast_media::ingest::burned_clock::Reading;
use namecast_media::ingest::ladder::PictureSize;
use namecast_media::ingest::source::{DrawnVideo, Source};

const SIZE: PictureSize = PictureSize {
    width: 640,
    height: 360,
};
const RATE: u32 = 30;
/// Playout target of the watcher, in milliseconds: its default.
const TARGET: f64 = 100.0;
/// Frames reach the pipe so long before they are due, so that whoever reads it can decode them, in milliseconds.
const DECODE_LEAD: f64 = 40.0;
/// What is not measured at the beginning, and what is measured after it.
const SETTLING: Duration = Duration::from_secs(4);
const MEASURED: Duration = Duration::from_secs(8);

/// A way in: its name, container, and scheme if it is no pipe.
type Way = (&'static str, &'static str, Option<&'static str>);
const WAYS: [Way; 5] = [
    ("h264", "h264", None),
    ("ts", "mpegts", None),
    ("mkv", "matroska", None),
    ("rtmp", "flv", Some("rtmp")),
    ("srt", "mpegts", Some("srt")),
];
const BITRATES: [&str; 3] = ["300k", "1M", "2500k"];

/// A process that ends with this value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Setup {
    namecast: PathBuf,
    directory: tempfile::TempDir,
    forwarder: String,
}

/// Ages of pictures in milliseconds, each with when it was read.
type Ages = Receiver<(Instant, f64)>;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let namecast = arguments
        .next()
        .context("name the program: inputs target/release/namecast")?;
    let chosen: Vec<String> = arguments.collect();
    let port = free_port(false)?;
    let setup = Setup {
        namecast: namecast.into(),
        directory: tempfile::tempdir()?,
        forwarder: format!("tcp4://127.0.0.1:{port}"),
    };
    let listen = format!("127.0.0.1:{port}");
    let page = free_port(false)?.to_string();
    let _forwarder = setup.namecast(
        &[
            "forwarder",
            "--udp",
            "off",
            "--tcp",
            &listen,
            "--unix",
            "off",
            "--port",
            &page,
            "--quiet",
        ],
        Stdio::null(),
    )?;
    println!(
        "input  bitrate   first picture   pixels   ffmpeg alone   added   reported   (ms)   publish's CPU"
    );
    for way in WAYS {
        for bitrate in BITRATES {
            let is_chosen = chosen.is_empty() || chosen.iter().any(|it| it == way.0);
            if is_chosen {
                measure(&setup, way, bitrate)?;
            }
        }
    }
    Ok(())
}

fn measure(setup: &Setup, (way, container, scheme): Way, bitrate: &str) -> anyhow::Result<()> {
    let name = format!("/inputs/{way}/{bitrate}");
    let stats = setup.directory.path().join(format!("{way}-{bitrate}.json"));
    let mut watch = setup.namecast(
        &[
            "watch",
            &name,
            "--output",
            "-",
            "--quiet",
            "--rung",
            "copy",
            "--stats",
            &stats.to_string_lossy(),
        ],
        Stdio::null(),
    )?;
    let (_watcher, shown) = decode("-f nut -i pipe:0", Some(stdout(&mut watch)?))?;
    let addresses = match scheme {
        Some(scheme) => Some([address(scheme)?, address(scheme)?]),
        None => None,
    };
    let input = addresses.as_ref().map_or("-", |it| &it[0].1);
    let publish = [
        "publish",
        &name,
        "--ladder",
        "copy,300k",
        "--input",
        input,
        "--quiet",
    ];
    let piped = scheme.map_or_else(Stdio::piped, |_| Stdio::null());
    let mut publish = setup.namecast(&publish, piped)?;
    let (mut alone, alone_shown) = match &addresses {
        Some(addresses) => decode(&addresses[1].2, None)?,
        None => decode("-i pipe:0", None)?,
    };
    // Whoever listens has to be there.
    thread::sleep(Duration::from_secs(2));
    let began = Instant::now();
    let output = output(addresses.as_ref(), container);
    let mut pusher = push(bitrate, &output)?;
    if scheme.is_none() {
        let ends = [&mut publish, &mut alone].map(|it| it.0.stdin.take());
        share(stdout(&mut pusher)?, ends);
    }
    let first = shown.recv_timeout(Duration::from_secs(30));
    let first = first.map(|(at, _)| at - began).unwrap_or_default();
    thread::sleep(SETTLING);
    let (from, cpu) = (Instant::now(), cpu_time(publish.0.id()));
    thread::sleep(MEASURED);
    let cpu = (cpu_time(publish.0.id()) - cpu) / MEASURED.as_secs_f64();
    let (pixels, alone) = (
        median(&shown, from) + DECODE_LEAD,
        median(&alone_shown, from),
    );
    let (added, reported) = (pixels - alone, reported(&stats));
    println!(
        "{way:5} {bitrate:>8} {:>12.2} s {pixels:>8.0} {alone:>14.0} {added:>7.0} {reported:>10.0} {:>14.1} %  {}",
        first.as_secs_f64(),
        cpu * 100.0,
        match first <= Duration::from_secs(2)
            && (reported - added).abs() <= 40.0
            && added <= TARGET + 150.0
        {
            true => "",
            false => "MISSED",
        }
    );
    Ok(())
}

/// Where ffmpeg writes what it encodes.
fn output(addresses: Option<&[Address; 2]>, container: &str) -> String {
    match addresses {
        Some([ours, alone]) => format!(
            "-f tee -map 0:v [f={container}]{}|[f={container}]{}",
            ours.0, alone.0
        ),
        None => format!("-flush_packets 1 -f {container} pipe:1"),
    }
}

/// The median of the ages of pictures since `from`, in milliseconds.
fn median(ages: &Ages, from: Instant) -> f64 {
    let ages = ages.try_iter().filter(|(at, _)| *at >= from);
    let mut ages: Vec<f64> = ages.map(|(_, age)| age).collect();
    ages.sort_by(f64::total_cmp);
    ages.get(ages.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Gives the same octets to two processes.
fn share(mut octets: ChildStdout, mut ends: [Option<ChildStdin>; 2]) {
    thread::spawn(move || {
        let mut chunk = vec![0; 1 << 16];
        while let Ok(count @ 1..) = octets.read(&mut chunk) {
            for end in ends.iter_mut().flatten() {
                // One that has ended takes nothing more.
                let _ = end.write_all(&chunk[..count]);
            }
        }
    });
}

impl Setup {
    fn namecast(&self, arguments: &[&str], stdin: Stdio) -> anyhow::Result<Running> {
        let mut command = Command::new(&self.namecast);
        command.args(arguments).stdin(stdin).stdout(Stdio::piped());
        if arguments[0] != "forwarder" {
            command.args(["--connect", &self.forwarder]);
        }
        let file = |name| self.directory.path().join(name);
        match arguments[0] {
            "publish" => command.arg("--keys").arg(file("keys")),
            "watch" => command.arg("--known-keys").arg(file("known")),
            _ => &mut command,
        };
        let started = command.spawn();
        let program = self.namecast.display();
        Ok(Running(
            started.with_context(|| format!("cannot start {program}"))?,
        ))
    }
}

/// Where it is pushed to, what `publish` is told, and what ffmpeg is told, for one listener.
type Address = (String, String, String);

fn address(scheme: &str) -> anyhow::Result<Address> {
    let port = free_port(scheme == "srt")?;
    Ok(match scheme {
        "srt" => (
            format!("srt://127.0.0.1:{port}"),
            format!("srt://:{port}"),
            format!("-i srt://127.0.0.1:{port}?mode=listener"),
        ),
        _ => (
            format!("rtmp://127.0.0.1:{port}/live/x"),
            format!("rtmp://:{port}/live/x"),
            format!("-listen 1 -i rtmp://127.0.0.1:{port}/live/x"),
        ),
    })
}

fn free_port(is_udp: bool) -> anyhow::Result<u16> {
    Ok(match is_udp {
        true => UdpSocket::bind("127.0.0.1:0")?.local_addr()?.port(),
        false => TcpListener::bind("127.0.0.1:0")?.local_addr()?.port(),
    })
}

fn ffmpeg(line: &str) -> Command {
    let mut command = Command::new("ffmpeg");
    command
        .args("-hide_banner -loglevel fatal".split(' '))
        .args(line.split_whitespace());
    command
}

/// Draws the clock in real time, and encodes it to `output`.
fn push(bitrate: &str, output: &str) -> anyhow::Result<Running> {
    let line = format!(
        "-probesize 32 -use_wallclock_as_timestamps 1 -f rawvideo -pix_fmt yuv420p -video_size {SIZE} -framerate {RATE} -i pipe:0 \
         -fps_mode passthrough -enc_time_base 1:1000 -c:v libx264 -preset veryfast \
         -tune zerolatency -threads 1 -b:v {bitrate} -maxrate {bitrate} -bufsize {bitrate} -g {RATE} -bsf:v dump_extra=freq=keyframe {output}"
    );
    let mut command = ffmpeg(&line);
    let mut pusher = Running(
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?,
    );
    let mut stdin = pusher.0.stdin.take().context("it is piped")?;
    thread::spawn(move || {
        let (mut drawn, mut raw) = (DrawnVideo::new(SIZE, RATE), Vec::new());
        while drawn.next(&mut raw).is_ok() && stdin.write_all(&raw).is_ok() {}
    });
    Ok(pusher)
}

/// Decodes by an ffmpeg that holds nothing back, and reads the clock of each picture.
fn decode(input: &str, octets: Option<ChildStdout>) -> anyhow::Result<(Running, Ages)> {
    let line = format!(
        "-fflags nobuffer -flags low_delay -probesize 32 {input} -an -fps_mode passthrough -f rawvideo -pix_fmt gray pipe:1"
    );
    let mut command = ffmpeg(&line);
    command.stdin(octets.map_or_else(Stdio::piped, Stdio::from));
    let mut decoder = Running(command.stdout(Stdio::piped()).spawn()?);
    let mut pictures = stdout(&mut decoder)?;
    let (sender, ages) = channel();
    thread::spawn(move || {
        let mut luma = vec![0; SIZE.width as usize * SIZE.height as usize];
        while pictures.read_exact(&mut luma).is_ok() {
            let now = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            if let Ok(reading) = Reading::read(&luma, SIZE) {
                let age = now.as_secs_f64() * 1e3 - reading.millis as f64;
                // Nobody listens at the end.
                let _ = sender.send((Instant::now(), age));
            }
        }
    });
    Ok((decoder, ages))
}

fn stdout(running: &mut Running) -> anyhow::Result<ChildStdout> {
    running.0.stdout.take().context("its output is piped")
}

/// The latency that the watcher reports, in milliseconds.
fn reported(stats: &Path) -> f64 {
    let text = std::fs::read_to_string(stats).unwrap_or_default();
    let last = text.lines().rev().find_map(|line| {
        let object: serde_json::Value = serde_json::from_str(line).ok()?;
        object["latency"]["p50_ms"].as_f64()
    });
    last.unwrap_or(f64::NAN)
}

/// Seconds of processor time that a process and its children have taken so far.
fn cpu_time(process: u32) -> f64 {
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{process}/{file}"));
    let stat = read("stat").unwrap_or_default();
    // Fields 14 and 15, counted from behind the name, in hundredths of a second.
    let fields = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace();
    let ticks: f64 = fields
        .skip(11)
        .take(2)
        .filter_map(|it| it.parse::<f64>().ok())
        .sum();
    let tasks = std::fs::read_dir(format!("/proc/{process}/task"));
    let tasks = tasks.into_iter().flatten().flatten();
    let children =
        tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let children: String = children.collect();
    let children = children.split_whitespace().filter_map(|it| it.parse().ok());
    ticks / 100.0 + children.map(cpu_time).sum::<f64>()
}
