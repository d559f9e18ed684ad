//! `namecast bench memory`: memory of a forwarder whose tables are full, beside the bounds that it was told.
//!
//! The forwarder is a process of its own. What it takes besides its tables is there before these are filled: its program is not
//! counted, and buffers, threads and management have been used once when it is first looked at. Its content store is filled by
//! Data that are asked for and answered, until as many have given way as it holds; its table of pending Interests by Interests that
//! nobody answers, until it refuses one.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
use bytes::Bytes;
use clap::{Args, ValueEnum};
use namecast_command::number;
use namecast_command::report::print_line;
use namecast_packet::signature::{NullSigner, Signer};
use namecast_packet::{
    Component, Data, DataTemplate, Interest, InterestTemplate, LpPacket, Name, Nonce,
};
use namecast_units::{ByteSize, Duration};
use serde::Serialize;
use serde_json::Value;
use tempfile::TempDir;

use super::super::measure::namecast;
use super::load;
use super::measured::Measured;
use super::port::{Port, Sending};

/// Without an answer for so long, Interests count as lost, or as waiting.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(100);
/// Octets of packets on their way through the forwarder, and how many packets at least and at most.
const WINDOW: usize = 64 * 1024;
const FEWEST: usize = 16;
const MOST: usize = 256;
/// How much memory may differ from the bounds.
const TOLERANCE: f64 = 0.1;
/// How often the store is filled, so that S3-FIFO remembers as many as it holds.
const FILLS: f64 = 2.2;

/// Octets of packets: alone, and all of them in turn.
const USUAL: [u16; 3] = [100, 1_000, 8_000];

/// `namecast bench memory`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  namecast bench memory                        both policies, packets of 100, 1000 and 8000 octets, each and mixed
  namecast bench memory --size 1000 --json")]
pub struct BenchMemory {
    /// Octets of Interests and Data; may be repeated.
    #[arg(long = "size", value_parser = number::<u16>(100..=8_500))]
    pub sizes: Vec<u16>,
    /// Which Data give way; may be repeated.
    #[arg(long = "policy")]
    pub policies: Vec<Policy>,
    /// Bound of the content store, and of pending Interests.
    #[arg(long, default_value = "64 MiB")]
    pub bound: ByteSize,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// Which Data give way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Policy {
    /// Those not used for longest.
    Lru,
    /// Those not used again soon.
    S3Fifo,
}

impl Policy {
    fn name(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// One forwarder, in octets of anonymous resident memory where nothing else is said.
#[derive(Debug, Serialize)]
struct Figures {
    policy: String,
    /// Octets of its packets.
    packets: String,
    /// After a few packets only.
    idle: u64,
    /// What a full content store adds, over its bound.
    store_ratio: f64,
    cached: u64,
    /// What full pending Interests add to that, over their bound.
    pending_ratio: f64,
    pending: u64,
    /// Both together, over both bounds.
    ratio: f64,
    /// The same once somebody asked for a prefix, from when on the store keeps names in order.
    ordered_ratio: f64,
    is_within: bool,
}

/// Measures, and prints what came out.
pub(crate) fn run(arguments: &BenchMemory) -> anyhow::Result<()> {
    let alone = |sizes: &[u16]| sizes.iter().map(|&size| vec![size]).collect();
    let mut rows: Vec<Vec<u16>> = alone(&arguments.sizes);
    if rows.is_empty() {
        rows = alone(&USUAL);
        rows.push(USUAL.to_vec());
    }
    let policies = match arguments.policies.is_empty() {
        true => Policy::value_variants(),
        false => &arguments.policies,
    };
    let mut all = Vec::new();
    if !arguments.json {
        print_line(format_args!(
            "{:<8} {:>13} {:>9} {:>8} {:>7} {:>8} {:>7} {:>7} {:>8}",
            "", "octets", "idle", "cached", "of", "pending", "of", "of both", "ordered"
        ))?;
    }
    for &policy in policies {
        for sizes in &rows {
            let figures = measure(policy, sizes, arguments.bound)?;
            if !arguments.json {
                print_line(line(&figures))?;
            }
            all.push(figures);
        }
    }
    if arguments.json {
        print_line(serde_json::to_string_pretty(&all)?)?;
    }
    Ok(())
}

fn line(figures: &Figures) -> String {
    format!(
        "{:<8} {:>13} {:>9} {:>8} {:>7.3} {:>8} {:>7.3} {:>7.3} {:>8.3} {}",
        figures.policy,
        figures.packets,
        ByteSize::bytes(figures.idle).to_string(),
        figures.cached,
        figures.store_ratio,
        figures.pending,
        figures.pending_ratio,
        figures.ratio,
        figures.ordered_ratio,
        if figures.is_within { "" } else { "beyond 10 %" }
    )
}

/// Fills a forwarder's tables, one after the other.
fn measure(policy: Policy, sizes: &[u16], bound: ByteSize) -> anyhow::Result<Figures> {
    let mut ends = Ends::new(sizes)?;
    let forwarder = Forwarder::start(policy, bound, ends.producer.address()?)?;
    forwarder.program.keep_off()?;
    ends.fetch(forwarder.entry, ends.window as u64);
    forwarder.entries()?;
    let idle = forwarder.program.memory()?;
    let bound = bound.as_bytes() as f64;
    let over = |now: u64, before: u64, bound: f64| (now as f64 - before as f64) / bound;
    let octets: u64 = sizes.iter().copied().map(u64::from).sum();
    let most = bound / (octets as f64 / sizes.len() as f64);
    ends.fetch(forwarder.entry, (most * FILLS) as u64);
    let (_, cached) = forwarder.entries()?;
    let stored = forwarder.program.memory()?;
    ends.ask_until_refused(forwarder.entry);
    let (pending, _) = forwarder.entries()?;
    let full = forwarder.program.memory()?;
    ends.ask_for_prefix(forwarder.entry);
    ends.fetch(forwarder.entry, most as u64);
    let ordered = forwarder.program.memory()?;
    let ratio = over(full, idle, 2.0 * bound);
    let ordered_ratio = over(ordered, idle, 2.0 * bound);
    let store_ratio = over(stored, idle, bound);
    let pending_ratio = over(full, stored, bound);
    Ok(Figures {
        policy: policy.name(),
        packets: sizes
            .iter()
            .map(u16::to_string)
            .collect::<Vec<_>>()
            .join("/"),
        idle,
        store_ratio,
        cached,
        pending_ratio,
        pending,
        ratio,
        ordered_ratio,
        is_within: [store_ratio, pending_ratio, ratio, ordered_ratio]
            .iter()
            .all(|ratio| (ratio - 1.0).abs() <= TOLERANCE),
    })
}

/// A running forwarder whose every Interest goes to one producer.
struct Forwarder {
    program: Measured,
    entry: SocketAddr,
    socket: PathBuf,
    _directory: TempDir,
}

impl Forwarder {
    fn start(policy: Policy, bound: ByteSize, producer: SocketAddr) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let socket = directory.path().join("node.sock");
        let octets = bound.as_bytes();
        let text = format!(
            "listen = {{ udp = [\"127.0.0.1:0\"], tcp = [], unix = [{socket:?}] }}\n\
             content-store = {{ capacity = \"{octets}\", policy = \"{}\" }}\n\
             tables = {{ pending-interests = {octets}, face-pending-interests = {octets}, pending-memory = \"{octets}\" }}\n\
             [[face]]\nuri = \"udp4://{producer}\"\n\
             [[route]]\nprefix = \"/\"\nface = \"udp4://{producer}\"\n",
            policy.name()
        );
        let file = directory.path().join("namecast.toml");
        std::fs::write(&file, text)?;
        let mut command = namecast()?;
        command
            .args(["forwarder", "--port", "0", "--json", "--config"])
            .arg(file);
        let mut program = Measured::start(command, 0..1)?;
        let said: Value = serde_json::from_str(&program.line()?)?;
        let uris = said["faces"]
            .as_array()
            .context("the forwarder has no faces")?;
        let entry = uris
            .iter()
            .filter_map(|uri| uri.as_str()?.strip_prefix("udp4://"))
            .next()
            .context("the forwarder has no UDP face")?;
        Ok(Self {
            entry: entry.parse()?,
            program,
            socket,
            _directory: directory,
        })
    }

    /// How many Interests are pending, and how many packets are cached.
    fn entries(&self) -> anyhow::Result<(u64, u64)> {
        let output = namecast()?
            .args(["status", "--json", "--connect"])
            .arg(format!("unix://{}", self.socket.display()))
            .output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "no status: {said}");
        let status: Value = serde_json::from_slice(&output.stdout)?;
        let number = |field: &str| status["general"][field].as_u64().context("no number");
        Ok((number("pit_entries")?, number("cs_entries")?))
    }
}

/// A consumer and a producer.
struct Ends {
    consumer: Port,
    producer: Port,
    /// Names of which Data is fetched.
    short: InterestTemplate,
    /// Interests of the sizes that are measured, in turn, for which there is no Data.
    long: Vec<InterestTemplate>,
    /// Data of these sizes.
    data: Vec<DataTemplate>,
    /// Packets on their way.
    window: usize,
    next: u64,
    answered: usize,
}

impl Ends {
    fn new(sizes: &[u16]) -> anyhow::Result<Self> {
        let template = |pad: usize| {
            let pad = "a".repeat(pad);
            let prefix = Name::root().child(Component::generic(&pad));
            let builder = Interest::builder(prefix).lifetime(Duration::from_secs(3_600));
            builder.template(Component::SEQUENCE)
        };
        let data = |content: usize| {
            let builder = Data::builder(Name::root()).freshness(Duration::from_secs(3_600));
            let builder = builder.content(vec![7; content]);
            builder.template(NullSigner.info(), 32)
        };
        let short = template(1);
        let nonce = Nonce::from(0);
        let name = short.build(FIRST, nonce).name().clone();
        Ok(Self {
            consumer: Port::new()?,
            producer: Port::new()?,
            long: sizes
                .iter()
                .map(|&size| {
                    sized(size.into(), template, |it| {
                        it.build(FIRST, nonce).wire().len()
                    })
                })
                .collect(),
            data: sizes
                .iter()
                .map(|&size| sized(size.into(), data, |it| it.build(name.clone()).wire().len()))
                .collect(),
            answered: 0,
            window: sizes
                .iter()
                .map(|&size| WINDOW / usize::from(size))
                .min()
                .unwrap_or_default()
                .clamp(FEWEST, MOST),
            short,
            next: FIRST,
        })
    }

    /// Requests `count` packets of Data, and answers, until nothing is under way any more.
    fn fetch(&mut self, entry: SocketAddr, count: u64) {
        let (mut fetched, mut under_way, mut heard_at) = (0, 0, Instant::now());
        while fetched < count || under_way > 0 {
            let interest = |it: &mut Self| it.short.build(it.next, it.nonce());
            if fetched < count {
                under_way += self.send(entry, self.window - under_way, interest);
            }
            self.answer();
            let mut came = 0;
            self.consumer.receive(|_, _| came += 1);
            fetched += came as u64;
            under_way = progress(under_way, came, &mut heard_at);
        }
    }

    /// Requests Data that does not exist until the forwarder says that it has no room any more.
    fn ask_until_refused(&mut self, entry: SocketAddr) {
        let (mut refused, mut under_way, mut heard_at) = (0, 0, Instant::now());
        while refused < self.window {
            let interest = |it: &mut Self| {
                let turn = it.next as usize % it.long.len();
                it.long[turn].build(it.next, it.nonce())
            };
            under_way += self.send(entry, self.window - under_way, interest);
            let (mut forwarded, mut nacks) = (0, 0);
            self.producer.receive(|_, _| forwarded += 1);
            // Data of before may come late.
            self.consumer
                .receive(|_, frame| nacks += usize::from(is_refusal(frame)));
            refused += nacks;
            under_way = progress(under_way, forwarded + nacks, &mut heard_at);
        }
    }

    /// Requests any packet under a prefix of which there is none.
    fn ask_for_prefix(&mut self, entry: SocketAddr) {
        let none = Name::root().child(Component::generic("none"));
        let interest = Interest::builder(none)
            .can_be_prefix()
            .build(Nonce::from(1));
        self.consumer
            .send(entry, &[interest.wire()], Sending::OneByOne);
    }

    fn nonce(&self) -> Nonce {
        Nonce::from(self.next as u32)
    }

    /// Sends so many Interests with new names.
    fn send(
        &mut self,
        entry: SocketAddr,
        count: usize,
        interest: impl Fn(&mut Self) -> Interest,
    ) -> usize {
        for _ in 0..count {
            self.next += 1;
            let wire = interest(self).wire().clone();
            self.consumer.send(entry, &[wire], Sending::OneByOne);
        }
        count
    }

    /// Answers what came to the producer.
    fn answer(&mut self) {
        let (mut from, mut frames) = (None, Vec::new());
        let (templates, answered) = (&self.data, &mut self.answered);
        self.producer.receive(|sender, datagram| {
            from = Some(sender);
            *answered += 1;
            let template = &templates[*answered % templates.len()];
            frames.extend(load::data_for(template, Bytes::copy_from_slice(datagram)));
        });
        if let Some(from) = from {
            self.producer.send(from, &frames, Sending::OneByOne);
        }
    }
}

fn is_refusal(frame: &[u8]) -> bool {
    let packet = LpPacket::decode(Bytes::copy_from_slice(frame));
    packet.is_ok_and(|packet| packet.nack.is_some())
}

/// Number of the first name, as long as the others.
const FIRST: u64 = 1 << 32;

/// The template whose packets have `size` octets, or as few more or less as its lengths allow.
fn sized<T>(size: usize, template: impl Fn(usize) -> T, length: impl Fn(&T) -> usize) -> T {
    let mut pad = size.saturating_sub(length(&template(0)));
    while pad > 0 && length(&template(pad)) > size {
        pad -= 1;
    }
    template(pad)
}

/// What is still under way once `came` of it came; nothing if nothing came for too long.
fn progress(under_way: usize, came: usize, heard_at: &mut Instant) -> usize {
    if came > 0 {
        *heard_at = Instant::now();
    } else if heard_at.elapsed() > ANSWER_TIMEOUT {
        *heard_at = Instant::now();
        return 0;
    }
    under_way.saturating_sub(came)
}
