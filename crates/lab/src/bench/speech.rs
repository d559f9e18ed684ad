//! `namecast bench speech`: how much of what is spoken is heard in a call over a path with delay and loss.
//!
//! ```text
//!  speech ─▶ namecast talk /alice ─▶ namecast impair ─▶ namecast forwarder ─▶ namecast talk /bob ─▶ recording
//! ```
//!
//! Each 200 ms of the speech are looked for in the recording, near where those before them were found: packets that are concealed or
//! left out move what follows. How alike both are is their normalised cross-correlation. What Opus and the resamplers change is in it
//! without loss as well, so that a call with loss is measured by the one without.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use anyhow::{Context, ensure};
use clap::Args;
use namecast_command::parse_duration;
use namecast_command::report::print_line;
use namecast_units::Duration;
use serde::Serialize;
use serde_json::Value;

use super::measure::{self, namecast};
use crate::impair::arguments::parse_share;

/// Harvard sentences, lists 1 and 2 of IEEE 297, which are made to have the sounds of English as often as speech has them.
const SENTENCES: &str = "The birch canoe slid on the smooth planks. Glue the sheet to the dark blue background. \
    It's easy to tell the depth of a well. These days a chicken leg is a rare dish. Rice is often served in round bowls. \
    The juice of lemons makes fine punch. The box was thrown beside the parked truck. The hogs were fed chopped corn and garbage.";
/// Samples a second that are compared, and those of 200 ms.
const RATE: usize = 8_000;
const WINDOW: usize = RATE / 5;
/// How far from where it would be if nothing had moved a window is looked for, and how much earlier or later the recording may begin.
const NEAR: usize = RATE / 5;
const FAR: usize = RATE * 3;
/// How alike a window is to what was heard if it was found.
const FOUND: f64 = 0.7;
/// Samples of 10 ms, whose loudness tells roughly where the recording begins.
const BLOCK: usize = RATE / 100;
/// Windows whose samples have less than this in the mean are pauses.
const SILENCE: f64 = 200.0;
/// Share of the correlation without loss that is to be had with it.
const BOUND: f64 = 0.9;
/// Silence behind the speech, within which the caller hangs up.
const SILENT_END: Duration = Duration::from_secs(4);

/// `namecast bench speech`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  namecast bench speech                                    sentences of ffmpeg's flite, without loss and at 5%, about a minute
  namecast bench speech --input spoken.wav --loss 10%")]
pub struct BenchSpeech {
    /// File of speech in the place of sentences that ffmpeg speaks.
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// Share of frames that are lost in each direction.
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = parse_share)]
    pub loss: f64,
    /// One way between the caller and the forwarder.
    #[arg(long, value_name = "TIME", default_value = "25ms", value_parser = parse_duration)]
    pub delay: Duration,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// Everything that was measured.
#[derive(Debug, Serialize)]
struct Report {
    load_before: f64,
    debug_build: bool,
    clean: Call,
    lossy: Call,
    windows: usize,
    /// Windows in which the call with loss has at least nine tenths of the correlation of the call without.
    windows_held: usize,
    /// The least share of it, and at which second.
    worst: f64,
    worst_at: f64,
}

/// What was heard in one call.
#[derive(Debug, Serialize)]
struct Call {
    correlation_p50: f64,
    /// What `talk` counted.
    sound: Value,
    /// Correlation of each window that is no pause.
    #[serde(skip)]
    windows: Vec<(usize, f64)>,
}

/// A process that ends with this value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Measures, and prints the report.
pub(crate) fn run(arguments: &BenchSpeech) -> anyhow::Result<()> {
    let load_before = measure::load();
    let directory = tempfile::tempdir()?;
    let speech = directory.path().join("speech.wav");
    prepare(arguments.input.as_deref(), &speech)?;
    let source = samples(&speech)?;
    let mut calls = Vec::new();
    for loss in [0.0, arguments.loss] {
        let home = directory.path().join(format!("loss-{loss}"));
        fs::create_dir(&home)?;
        calls.push(call(&home, (&speech, &source), (arguments.delay, loss))?);
    }
    let [clean, lossy]: [Call; 2] = calls.try_into().expect("two calls were made");
    let report = Report::new(load_before, clean, lossy)?;
    if arguments.json {
        return print_line(serde_json::to_string_pretty(&report)?);
    }
    for (name, call) in [
        ("without loss", &report.clean),
        ("with loss", &report.lossy),
    ] {
        print_line(call.line(name))?;
    }
    print_line(format_args!(
        "{} of {} windows of 200 ms have {BOUND} of the correlation without loss; the least {:.3} at {:.1} s",
        report.windows_held, report.windows, report.worst, report.worst_at
    ))
}

impl Report {
    fn new(load_before: f64, clean: Call, lossy: Call) -> anyhow::Result<Self> {
        let shares: Vec<_> = (clean.windows.iter())
            .filter_map(|&(window, clean)| {
                let found = lossy.windows.iter().find(|it| it.0 == window)?;
                Some((window, found.1 / clean))
            })
            .collect();
        let worst = shares.iter().min_by(|a, b| a.1.total_cmp(&b.1));
        let &(window, worst) = worst.context("nothing is spoken in the file")?;
        Ok(Self {
            load_before,
            debug_build: cfg!(debug_assertions),
            windows: shares.len(),
            windows_held: shares.iter().filter(|it| it.1 >= BOUND).count(),
            worst,
            worst_at: (window * WINDOW) as f64 / RATE as f64,
            clean,
            lossy,
        })
    }
}

impl Call {
    /// For people.
    fn line(&self, name: &str) -> String {
        let sound = |figure: &str| self.sound.pointer(figure).and_then(Value::as_f64);
        let sound = |figure: &str| sound(figure).unwrap_or(f64::NAN);
        format!(
            "{name}: correlation {:.3} in the median, longest gap {} ms; {} packets of 20 ms concealed, {} left out, {} played; mouth \
             to ear {:.0} ms, buffer {:.0} ms",
            self.correlation_p50,
            sound("/longest_gap_ms"),
            sound("/packets_concealed"),
            sound("/packets_left_out"),
            sound("/packets_played"),
            sound("/mouth_to_ear_ms/p50"),
            sound("/buffer_ms"),
        )
    }
}

/// Has `speech` said by a caller behind a link with this delay one way, and this loss.
fn call(
    home: &Path,
    (speech, source): (&Path, &[f32]),
    (delay, loss): (Duration, f64),
) -> anyhow::Result<Call> {
    let config = home.join("forwarder.toml");
    fs::write(
        &config,
        "listen = { udp = [\"127.0.0.1:0\"], tcp = [], unix = [] }\n",
    )?;
    let line = format!("forwarder --json --port 0 --config {}", config.display());
    let (_forwarder, said) = start(home, &line)?;
    let face = said["faces"][0]
        .as_str()
        .context("the forwarder has no face")?;
    let to = face.split("://").last().context("it has no address")?;
    let line = format!(
        "impair --json --listen 127.0.0.1:0 --to {to} --delay {}us --loss {loss}",
        delay.as_micros()
    );
    let (_relay, said) = start(home, &line)?;
    let behind = said["listen"]
        .as_str()
        .context("the relay has no address")?;

    let span = Duration::from_secs_f64(source.len() as f64 / RATE as f64);
    let line = format!(
        "talk /bob --json --answer --input test --output heard.wav --stats stats --connect {face} --duration {}s",
        (span + SILENT_END).as_secs()
    );
    let mut callee = Running(prepared(home, &line)?.stdout(Stdio::null()).spawn()?);
    let line = format!(
        "talk /alice /bob --json --output none --connect udp4://{behind} --duration {}s --input",
        span.as_secs()
    );
    let mut caller = prepared(home, &line)?;
    let caller = caller.arg(speech).stdout(Stdio::null()).status()?;
    ensure!(caller.success(), "the caller failed: {caller}");
    callee.0.wait()?;
    let stats = fs::read_to_string(home.join("stats"))?;
    let stats: Value = serde_json::from_str(stats.lines().last().context("no statistics")?)?;
    let windows = correlations(source, &samples(&home.join("heard.wav"))?);
    let mut sorted: Vec<_> = windows.iter().map(|it| it.1).collect();
    sorted.sort_by(f64::total_cmp);
    Ok(Call {
        correlation_p50: *sorted.get(sorted.len() / 2).context("nothing was heard")?,
        sound: stats["sound"].clone(),
        windows,
    })
}

fn prepared(home: &Path, line: &str) -> anyhow::Result<Command> {
    let mut command = namecast()?;
    command.args(line.split_whitespace()).current_dir(home);
    command.env("HOME", home).env("XDG_DATA_HOME", home);
    command.env_remove("XDG_RUNTIME_DIR");
    command.stdin(Stdio::null()).stderr(Stdio::null());
    Ok(command)
}

/// Starts a program that goes on. Returns the first line that it prints; it may print more.
fn start(home: &Path, line: &str) -> anyhow::Result<(Running, Value)> {
    let mut command = prepared(home, line)?;
    let mut running = Running(command.stdout(Stdio::piped()).spawn()?);
    let mut said = String::new();
    let mut output = BufReader::new(running.0.stdout.take().context("no output")?);
    output.read_line(&mut said)?;
    thread::spawn(move || io::copy(&mut output, &mut io::sink()));
    Ok((running, serde_json::from_str(&said)?))
}

/// Writes what is to be said, of a file or the sentences.
fn prepare(input: Option<&Path>, speech: &Path) -> anyhow::Result<()> {
    let mut command = Command::new("ffmpeg");
    command.args(["-loglevel", "error"]);
    if let Some(file) = input {
        command.arg("-i").arg(file);
    } else {
        let sentences = speech.with_extension("txt");
        fs::write(&sentences, SENTENCES)?;
        let filter = format!("flite=textfile={}", sentences.display());
        command.args(["-f", "lavfi", "-i", &filter]);
    }
    let silence = format!("apad=pad_dur={}", SILENT_END.as_secs());
    command.args(["-af", &silence, "-ac", "1", "-ar", "48000"]);
    let status = command.arg(speech).status().context("cannot run ffmpeg")?;
    ensure!(
        status.success(),
        "ffmpeg cannot read the file, or has no filter flite to speak with: write --input FILE"
    );
    Ok(())
}

/// What is in a file of sound, in one channel at [`RATE`].
fn samples(file: &Path) -> anyhow::Result<Vec<f32>> {
    let output = Command::new("ffmpeg")
        .args(["-loglevel", "error", "-i"])
        .arg(file)
        .args(["-ac", "1", "-ar", &RATE.to_string(), "-f", "s16le", "-"])
        .output()
        .context("cannot run ffmpeg")?;
    ensure!(
        output.status.success(),
        "ffmpeg cannot read {}",
        file.display()
    );
    let pairs = output.stdout.chunks_exact(2);
    Ok(pairs
        .map(|pair| f32::from(i16::from_le_bytes([pair[0], pair[1]])))
        .collect())
}

/// Finds each window of `source` in `heard`. Returns those that are no pauses, by their numbers, with how alike both are.
fn correlations(source: &[f32], heard: &[f32]) -> Vec<(usize, f64)> {
    let heard = &[&[0.0; FAR], heard].concat();
    let mut lag = beginning(source, heard);
    let mut found = Vec::new();
    for (number, window) in source.chunks_exact(WINDOW).enumerate() {
        if energy(window) < SILENCE * SILENCE * WINDOW as f64 {
            continue;
        }
        let at = number * WINDOW;
        let places = (at + lag).saturating_sub(NEAR)..at + lag + NEAR;
        let alike = places.filter_map(|place| {
            let part = heard.get(place..place + WINDOW)?;
            Some((place, likeness(window, part)))
        });
        if let Some((place, alike)) = alike.max_by(|a, b| a.1.total_cmp(&b.1)) {
            if alike >= FOUND {
                lag = place.saturating_sub(at);
            }
            found.push((number, alike));
        }
    }
    found
}

/// How many samples after the beginning of `heard` that of `source` is, to 10 ms, by how loud both are.
fn beginning(source: &[f32], heard: &[f32]) -> usize {
    let loudness = |samples: &[f32]| -> Vec<f32> {
        let blocks = samples.chunks_exact(BLOCK);
        let blocks: Vec<_> = blocks.map(|block| energy(block).sqrt() as f32).collect();
        let mean = blocks.iter().sum::<f32>() / blocks.len().max(1) as f32;
        blocks.iter().map(|it| it - mean).collect()
    };
    let (source, heard) = (loudness(source), loudness(heard));
    let lags = 0..(2 * FAR / BLOCK).min(heard.len());
    let product = |lag: usize| dot(&source, &heard[lag..]);
    let best = lags.max_by(|&a, &b| product(a).total_cmp(&product(b)));
    best.unwrap_or(0) * BLOCK
}

/// The normalised cross-correlation.
fn likeness(a: &[f32], b: &[f32]) -> f64 {
    dot(a, b) / (energy(a) * energy(b)).sqrt().max(1.0)
}

fn energy(samples: &[f32]) -> f64 {
    dot(samples, samples)
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    let products = a.iter().zip(b).map(|(a, b)| a * b);
    f64::from(products.sum::<f32>())
}

#[cfg(test)]
mod tests {
    use namecast_units::Random;

    use super::*;

    fn noise(length: usize, seed: u64) -> Vec<f32> {
        let mut random = Random::from_seed(seed);
        let sample = |_| random.below(20_001) as f32 - 10_000.0;
        (0..length).map(sample).collect()
    }

    /// Heard 1.5 s late and half as loud, from the second window on another 40 ms later; nothing of the third, and a pause in the fourth.
    #[test]
    fn windows_are_found_where_they_have_moved_to() {
        let mut source = noise(6 * WINDOW, 1);
        source[3 * WINDOW..4 * WINDOW].fill(0.0);
        let mut heard = vec![0.0; RATE * 3 / 2];
        heard.extend(source[..WINDOW].iter().map(|it| it / 2.0));
        heard.extend([0.0; RATE / 25]);
        heard.extend(&source[WINDOW..]);
        let third = RATE * 3 / 2 + RATE / 25 + 2 * WINDOW;
        heard[third..third + WINDOW].copy_from_slice(&noise(WINDOW, 2));
        let found = correlations(&source, &heard);
        let windows: Vec<_> = found.iter().map(|it| it.0).collect();
        assert_eq!(windows, [0, 1, 2, 4, 5]);
        let late = correlations(&source, &source[WINDOW / 2..]);
        assert!(late[1..].iter().all(|it| it.1 > 0.99), "{late:?}");
        for (window, alike) in found {
            assert_eq!(alike > 0.99, window != 2, "{window}: {alike}");
            assert!(window != 2 || alike < 0.3, "{alike}");
        }
    }
}
