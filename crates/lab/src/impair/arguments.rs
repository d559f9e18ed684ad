//! What may be typed after `namecast impair`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, bail};
use clap::{Args, Parser};
use namecast_command::{number, parse_address};
use namecast_netem as netem;
use namecast_units::{Bitrate, ByteSize, Duration, parse_duration};

use super::RelayConfig;

/// Frames that a queue discipline's queue holds unless told otherwise: as many as a Linux interface's.
const QUEUE_PACKETS: usize = 1_000;

/// `namecast impair`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Both directions are alike unless --forward or --backward says otherwise; the rate counts UDP payload.
Frames that a queue marks get a congestion mark in their NDN link header.

Examples:
  namecast impair --to 127.0.0.1:6363 --rate 10M --delay 8ms --queue 50
  namecast impair --to 127.0.0.1:6363 --delay 20ms --jitter 5ms --reorder --loss 2% --burst 4
  namecast impair --to 127.0.0.1:6363 --rate 10M --codel --mark --rate-at 30s=5M --outage 50s..55s
  namecast impair --to 127.0.0.1:6363 --delay 10ms --backward rate=5M,queue-bytes=64KiB
  namecast impair --to 127.0.0.1:6363 --delay 20ms --backward model=lte --forward rate=5M
  namecast impair --to 127.0.0.1:6363 --delay 20ms --queue 1000 --trace drive.trace
  namecast impair --to 127.0.0.1:6363 --config links.toml --duration 60s --stats impair.json

A configuration has two tables, of which a missing one is a perfect link:
  [forward]
  delay = \"10ms\"
  [backward]
  rate = \"10M\"            # or { trace = \"drive.trace\" }, or { model = \"lte\", seed = 1, mean = \"4M\" }
  delay = \"10ms\"
  loss = { kind = \"gilbert-elliott\", good-to-bad = 0.01, bad-to-good = 0.25 }
  queue = { kind = \"codel\", packets = 200, mark = true }
  schedule = [{ at = \"30s\", rate = \"5M\" }]")]
pub struct Impair {
    /// Where clients send to.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:6464", value_parser = parse_address)]
    pub listen: SocketAddr,
    /// The server behind the link.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:6363", value_parser = parse_address)]
    pub to: SocketAddr,
    /// The link.
    #[command(flatten)]
    pub shape: Shape,
    /// What is different from clients to the server: the options above without dashes, as in rate=1M,queue=20,reorder.
    #[arg(long, value_name = "LIST", value_parser = parse_shape)]
    pub forward: Option<Shape>,
    /// What is different from the server to clients.
    #[arg(long, value_name = "LIST", value_parser = parse_shape)]
    pub backward: Option<Shape>,
    /// Both links from a TOML file, instead of the options above.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["Shape", "RateShape", "QueueShape", "forward", "backward"])]
    pub config: Option<PathBuf>,
    /// Fixes all randomness.
    #[arg(long, default_value_t = 1, value_parser = number::<u64>(0..=u64::MAX))]
    pub seed: u64,
    /// Most clients at a time.
    #[arg(long, value_name = "COUNT", default_value_t = 64, value_parser = number::<usize>(1..=1_000_000))]
    pub max_clients: usize,
    /// How long, and what is told.
    #[command(flatten)]
    pub run: namecast_command::Run,
}

/// What a link is like.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[group(id = "Shape", multiple = true)]
pub struct Shape {
    /// Its rate.
    #[command(flatten)]
    rate: RateShape,
    /// Propagation delay.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    delay: Option<Duration>,
    /// Random addition to the delay, uniform between zero and this.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    jitter: Option<Duration>,
    /// Jitter is the upper half of a bell curve instead, with this deviation.
    #[arg(long)]
    normal: bool,
    /// Frames with less jitter overtake those with more.
    #[arg(long)]
    reorder: bool,
    /// Share of frames that are lost, such as 1%.
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    loss: Option<f64>,
    /// Frames are lost in bursts of so many on average.
    #[arg(long, value_name = "FRAMES", requires = "loss", value_parser = parse_burst)]
    burst: Option<f64>,
    /// Its queue.
    #[command(flatten)]
    queue: QueueShape,
    /// Share of frames that arrive twice.
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    duplicate: Option<f64>,
    /// Share of frames of which one bit is flipped.
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    corrupt: Option<f64>,
    /// Nothing passes from one time to another since the start, such as 5s..10s; may be repeated.
    #[arg(long, value_name = "TIME..TIME")]
    outage: Vec<Range>,
    /// The rate from a time on, such as 30s=5M; may be repeated.
    #[arg(long, value_name = "TIME=RATE")]
    rate_at: Vec<At<Bitrate>>,
    /// The delay from a time on, such as 30s=50ms; may be repeated.
    #[arg(long, value_name = "TIME=TIME")]
    delay_at: Vec<At<Span>>,
}

/// How fast a link is: constant, or as a trace or a model says.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[group(id = "RateShape", multiple = true)]
struct RateShape {
    /// Rate, such as 10M.
    #[arg(long, value_name = "RATE")]
    rate: Option<Bitrate>,
    /// The rate from a file, repeated without end: lines of milliseconds, each an opportunity to deliver 1500 bytes (mahimahi's
    /// format), or lines of seconds,bits-per-second.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rate", "rate_at"])]
    trace: Option<PathBuf>,
    /// The rate as of a phone (lte, umts, evdo), a shared wifi or a low satellite.
    #[arg(long, value_name = "NAME", value_parser = parse_model, conflicts_with_all = ["rate", "rate_at", "trace"])]
    model: Option<netem::ModelKind>,
    /// Another seed of the model is another place and time.
    #[arg(long, value_name = "SEED", requires = "model", value_parser = number::<u64>(0..=u64::MAX))]
    model_seed: Option<u64>,
    /// Mean rate of the model instead of its usual one.
    #[arg(long, value_name = "RATE", requires = "model")]
    model_mean: Option<Bitrate>,
}

/// What queues a link has.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[group(id = "QueueShape", multiple = true)]
struct QueueShape {
    /// Frames that the queue holds.
    #[arg(long, value_name = "FRAMES", conflicts_with = "queue_bytes", value_parser = number::<usize>(0..=u64::MAX))]
    queue: Option<usize>,
    /// Bytes that the queue holds, such as 64KiB.
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["codel", "red", "ramp", "pi2"])]
    queue_bytes: Option<ByteSize>,
    /// CoDel drops from the queue (RFC 8289).
    #[arg(long, conflicts_with_all = ["red", "ramp", "pi2"])]
    codel: bool,
    /// CoDel marks instead.
    #[arg(long, requires = "codel")]
    mark: bool,
    /// Random early detection marks.
    #[arg(long, conflicts_with_all = ["ramp", "pi2"])]
    red: bool,
    /// Frames that waited for 0.8 to 1.2 ms or more are marked (RFC 9332).
    #[arg(long, conflicts_with = "pi2")]
    ramp: bool,
    /// PI2 marks, with a target of 15 ms (RFC 9332).
    #[arg(long)]
    pi2: bool,
}

impl Impair {
    /// The relay that was asked for.
    ///
    /// # Errors
    /// What is wrong with a file, or with the options together.
    pub fn relay(&self) -> anyhow::Result<RelayConfig> {
        let (forward, backward) = match &self.config {
            Some(path) => super::read_file(path)?,
            None => {
                let link = |own: &Option<Shape>, name| {
                    let shape = own.as_ref().map(|own| own.over(&self.shape));
                    shape
                        .unwrap_or_else(|| self.shape.clone())
                        .link()
                        .context(name)
                };
                (
                    link(&self.forward, "forward")?,
                    link(&self.backward, "backward")?,
                )
            }
        };
        Ok(RelayConfig {
            forward,
            backward,
            seed: self.seed,
            max_clients: self.max_clients,
            ..RelayConfig::new(self.listen, self.to)
        })
    }
}

impl Shape {
    /// This, and what it does not say, from `base`. The queue and its discipline count as one, and so does the rate, be it
    /// constant, a trace or a model.
    fn over(&self, base: &Self) -> Self {
        Self {
            rate: given(&self.rate, &base.rate),
            delay: self.delay.or(base.delay),
            jitter: self.jitter.or(base.jitter),
            normal: self.normal || base.normal,
            reorder: self.reorder || base.reorder,
            loss: self.loss.or(base.loss),
            burst: if self.loss.is_some() {
                self.burst
            } else {
                base.burst
            },
            duplicate: self.duplicate.or(base.duplicate),
            corrupt: self.corrupt.or(base.corrupt),
            queue: given(&self.queue, &base.queue),
            outage: given(&self.outage, &base.outage),
            // A trace or a model leaves no room for those of the other options.
            rate_at: match self.rate.trace.is_some() || self.rate.model.is_some() {
                true => Vec::new(),
                false => given(&self.rate_at, &base.rate_at),
            },
            delay_at: given(&self.delay_at, &base.delay_at),
        }
    }

    /// The link that this says.
    fn link(&self) -> anyhow::Result<netem::Config> {
        let link = netem::Config {
            rate: self.rate.link()?,
            delay: self.delay.unwrap_or_default(),
            jitter: netem::Jitter {
                spread: self.jitter.unwrap_or_default(),
                shape: match self.normal {
                    true => netem::JitterShape::Normal,
                    false => netem::JitterShape::Uniform,
                },
                reorder: self.reorder,
            },
            loss: self.loss_process()?,
            outages: self.outages(),
            schedule: self.schedule(),
            queue: self.queue.discipline(),
            duplicate: self.duplicate.unwrap_or_default(),
            corrupt: self.corrupt.unwrap_or_default(),
            ..netem::Config::default()
        };
        link.validate()?;
        Ok(link)
    }

    fn loss_process(&self) -> anyhow::Result<netem::Loss> {
        match (self.loss, self.burst) {
            (None, _) => Ok(netem::Loss::None),
            (Some(share), None) => Ok(netem::Loss::Random { share }),
            (Some(share), Some(burst)) => {
                let loss = netem::Loss::bursts(share, burst);
                if let netem::Loss::GilbertElliott { good_to_bad, .. } = loss
                    && good_to_bad > 1.0
                {
                    bail!(
                        "such loss comes in longer bursts: write a larger --burst or a smaller --loss"
                    );
                }
                Ok(loss)
            }
        }
    }

    fn outages(&self) -> Vec<netem::Outage> {
        let mut outages: Vec<_> = (self.outage.iter())
            .map(|&Range { from, until }| netem::Outage { from, until })
            .collect();
        outages.sort_by_key(|outage| outage.from);
        outages
    }

    fn schedule(&self) -> Vec<netem::Step> {
        let rates = self.rate_at.iter().map(|step| netem::Step {
            at: step.at,
            rate: Some(step.value),
            delay: None,
        });
        let delays = self.delay_at.iter().map(|step| netem::Step {
            at: step.at,
            rate: None,
            delay: Some(step.value.0),
        });
        let mut schedule: Vec<_> = rates.chain(delays).collect();
        schedule.sort_by_key(|step| step.at);
        schedule
    }
}

impl RateShape {
    fn link(&self) -> anyhow::Result<Option<netem::Rate>> {
        if let Some(trace) = &self.trace {
            let file = netem::TraceFile {
                trace: trace.clone(),
                format: None,
            };
            let schedule = super::read_trace(&file, Path::new(""))?;
            return Ok(Some(netem::Rate::Schedule(schedule)));
        }
        let model = self.model.map(|kind| {
            netem::Rate::Model(netem::Model {
                kind,
                seed: self.model_seed.unwrap_or(netem::Model::SEED),
                mean: self.model_mean,
            })
        });
        Ok(model.or(self.rate.map(netem::Rate::Constant)))
    }
}

impl QueueShape {
    fn discipline(&self) -> netem::Queue {
        let packets = self.queue.unwrap_or(QUEUE_PACKETS);
        if let Some(size) = self.queue_bytes {
            netem::Queue::DropTailBytes { size }
        } else if self.codel {
            netem::Queue::codel(packets, self.mark)
        } else if self.red {
            netem::Queue::red(packets)
        } else if self.ramp {
            netem::Queue::ramp(packets)
        } else if self.pi2 {
            netem::Queue::pi2(packets)
        } else {
            netem::Queue::DropTail { packets }
        }
    }
}

/// Returns `own`, or `base` if nothing was said.
fn given<T: Clone + Default + PartialEq>(own: &T, base: &T) -> T {
    match *own == T::default() {
        true => base.clone(),
        false => own.clone(),
    }
}

/// A time from one moment to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    from: Duration,
    until: Duration,
}

impl FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once("..");
        let parsed = parts.and_then(|(from, until)| {
            let from = parse_duration(from).ok()?;
            let until = parse_duration(until).ok()?;
            Some(Self { from, until })
        });
        parsed.ok_or_else(|| {
            format!("'{text}' is not a time from one moment to another: write 5s..10s")
        })
    }
}

/// A value from some time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct At<T> {
    at: Duration,
    value: T,
}

impl<T: FromStr> FromStr for At<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('=').and_then(|(at, value)| {
            let at = parse_duration(at).ok()?;
            let value = value.parse().ok()?;
            Some(Self { at, value })
        });
        parsed.ok_or_else(|| {
            format!("'{text}' is not a time and a value: write 30s=5M, or 30s=50ms for a delay")
        })
    }
}

/// A span of time, as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span(Duration);

impl FromStr for Span {
    type Err = namecast_units::ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_duration(text).map(Self)
    }
}

/// Reads the name of a model.
fn parse_model(text: &str) -> Result<netem::ModelKind, String> {
    let mut models = netem::ModelKind::ALL.into_iter();
    models.find(|model| model.name() == text).ok_or_else(|| {
        let names = netem::ModelKind::ALL.map(netem::ModelKind::name);
        format!("'{text}' is no model: write one of {}", names.join(", "))
    })
}

/// Reads a mean number of frames.
fn parse_burst(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(frames) if (1.0..=1e6).contains(&frames) => Ok(frames),
        _ => Err(format!(
            "'{text}' is no mean number of frames: write 1 to 1000000, as in 2.5"
        )),
    }
}

/// Reads `1%`, or `0.01`.
pub(crate) fn parse_share(text: &str) -> Result<f64, String> {
    let (number, scale) = match text.strip_suffix('%') {
        Some(percent) => (percent, 100.0),
        None => (text, 1.0),
    };
    let share = number.trim().parse::<f64>().map(|number| number / scale);
    match share {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(format!("'{text}' is not a share: write 1%, or 0.01")),
    }
}

/// A [`Shape`] by itself.
#[derive(Debug, Parser)]
#[command(
    no_binary_name = true,
    disable_help_flag = true,
    disable_version_flag = true
)]
struct Alone {
    #[command(flatten)]
    shape: Shape,
}

/// Reads `rate=1M,queue=20,reorder`: the options of a link without their dashes.
fn parse_shape(text: &str) -> Result<Shape, String> {
    let parts = text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty());
    let options = parts.map(|part| format!("--{part}"));
    let parsed = Alone::try_parse_from(options).map_err(|error| {
        let text = error.to_string();
        let problem = text.lines().next().unwrap_or_default();
        let problem = problem.trim_start_matches("error: ");
        format!("{problem}; write options without dashes, as in rate=1M,queue=20,reorder")
    });
    parsed.map(|alone| alone.shape)
}

#[cfg(test)]
mod tests;
