//! What certificates and ciphers cost: a publisher and a watcher in this process and in virtual time, so that sockets, timers and other programs cost
//! nothing. Each case takes its turn in each round, and the median of the rounds' ratios counts.

use anyhow::{Context, ensure};
use namecast_apps::Output;
use namecast_apps::live::watcher::{Trust, Watched};
use namecast_apps::live::{Publisher, PublisherConfig, Watcher, WatcherConfig};
use namecast_apps::trust::schema::{Limits, Schema};
use namecast_apps::trust::template::Template;
use namecast_apps::trust::{Anchor, ChainConfig, Chains, ExchangeSecret, SharedChains};
use namecast_packet::signature::Ed25519Signer;
use namecast_packet::{Certificate, KeyLocator, Name, Validity};
use namecast_stream::ProducerConfig;
use namecast_units::{Duration, Instant, Timestamp};
use serde::Serialize;

use super::BenchStream;
use super::synthetic::{self, FRAMES_PER_SECOND, Stage, Synthetic};
use crate::bench::measure::Usage;

const ROUNDS: usize = 15;
/// Stream time that is measured in each turn, behind a second in which the watcher joins.
const SECONDS: u64 = 10;
/// From one call of publisher and watcher to the next.
const STEP: Duration = Duration::from_millis(2);
const WALL: Timestamp = Timestamp::from_micros(1_790_000_000_000_000);
/// Seeds of the keys of anchor, publisher and reader.
const ANCHOR: u8 = 1;
const SIGNER: u8 = 2;
const READER: [u8; 32] = [3; 32];

/// How the publisher is trusted, and who reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    /// A key that signs its own certificate.
    Single,
    /// A key that a schema and an anchor's certificate allow.
    Certified,
    /// The first one's samples sealed.
    Sealed,
}

/// Ratios.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Turns {
    /// Processor time with a key that a schema allows, over that with a single key.
    pub(super) certified: f64,
    /// The same of sealed samples over open ones.
    pub(super) sealed: f64,
    /// Processor time that sealing and opening add to a megabit, in milliseconds.
    pub(super) sealed_ms_per_megabit: f64,
    /// Octets of all packets that sealing adds to a sample.
    pub(super) sealed_octets: f64,
    /// Processor time for a sample with a single key, in microseconds.
    pub(super) sample_us: f64,
}

/// Cost of a turn.
struct Turn {
    used: Duration,
    octets: u64,
    samples: u64,
}

/// Compares the three.
pub(super) fn compare(arguments: &BenchStream) -> anyhow::Result<Turns> {
    let (mut certified, mut sealed, mut single) = (Vec::new(), Vec::new(), Vec::new());
    let mut added = 0.0;
    let mut ciphers = Vec::new();
    for round in 0..ROUNDS {
        let mut cases = [Case::Single, Case::Certified, Case::Sealed];
        let count = cases.len();
        cases.rotate_left(round % count);
        let mut turns = Vec::new();
        for case in cases {
            turns.push((case, turn(arguments, case)?));
        }
        let of = |case| turns.iter().find(|it| it.0 == case).map(|it| &it.1);
        let [open, by_rules, closed] = [Case::Single, Case::Certified, Case::Sealed].map(of);
        let (open, closed) = open.zip(closed).context("each has its turn")?;
        let by_rules = by_rules.context("each has its turn")?;
        let base = open.used.as_secs_f64();
        certified.push(by_rules.used.as_secs_f64() / base);
        sealed.push(closed.used.as_secs_f64() / base);
        single.push(base * 1e6 / open.samples as f64);
        let megabits = (arguments.bitrate * Duration::from_secs(SECONDS)).as_bytes() as f64 * 8e-6;
        ciphers.push((closed.used.as_secs_f64() - base) * 1e3 / megabits);
        let octets = |turn: &Turn| turn.octets as f64 / turn.samples as f64;
        added = octets(closed) - octets(open);
    }
    Ok(Turns {
        certified: median(certified),
        sealed: median(sealed),
        sealed_ms_per_megabit: median(ciphers),
        sealed_octets: added,
        sample_us: median(single),
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

fn pair(seed: u8, locator: &Name) -> Ed25519Signer {
    Ed25519Signer::from_seed([seed; 32], KeyLocator::Name(locator.clone()))
}

/// A publisher, and a watcher that trusts it.
fn both(arguments: &BenchStream, case: Case) -> anyhow::Result<(Publisher, Watcher)> {
    let (site, name): (Name, Name) = ("/bench".parse()?, "/bench/cam".parse()?);
    let validity = Validity::of_own_key(WALL);
    let own = Certificate::self_signed(&name, b"1", 1, validity, &pair(SIGNER, &name));
    let (certificate, trust) = match case {
        Case::Certified => {
            let anchor = Certificate::self_signed(&site, b"1", 1, validity, &pair(ANCHOR, &site));
            let issued: Name = "/bench/cam/KEY/1/bench/v=1".parse()?;
            let issuer = pair(ANCHOR, anchor.name());
            let issued = Certificate::issue(issued, &own.public_key()?, validity, &[], &issuer)?;
            let schema = Schema::compile(&Template::Streams.rules(&site), &Limits::default())?;
            let digest = Anchor::Digest(anchor.public_key()?.digest());
            let mut chains = Chains::new(schema.into(), 1, digest, ChainConfig::default());
            chains.offer(anchor.data().clone())?;
            (issued, Trust::Schema(SharedChains::new(chains)))
        }
        Case::Single | Case::Sealed => {
            let digest = own.public_key()?.digest();
            (own, Trust::Remembered(digest))
        }
    };
    let config = PublisherConfig {
        root: name.clone(),
        streams: vec![synthetic::stream(arguments, Stage::PARITY_PERCENT)],
        producer: ProducerConfig::default(),
        shared_since: None,
    };
    let locator = match case {
        Case::Certified => certificate.name().clone(),
        Case::Single | Case::Sealed => certificate.key_name().detached(),
    };
    let publisher = Publisher::new(config, WALL, Box::new(pair(SIGNER, &locator)), &certificate)?;
    let reader = ExchangeSecret::of_seed(&READER);
    let publisher = match case {
        Case::Sealed => publisher.sealed([4; 32], &[reader.public()].into())?,
        Case::Single | Case::Certified => publisher,
    };
    let watcher = Watcher::new(WatcherConfig {
        trust,
        wall_at_zero: WALL,
        reader: vec![reader],
        ..WatcherConfig::new(name)
    });
    Ok((publisher, watcher))
}

/// Publishes and watches for [`SECONDS`].
fn turn(arguments: &BenchStream, case: Case) -> anyhow::Result<Turn> {
    let (mut publisher, mut watcher) = both(arguments, case)?;
    let rung = publisher.rung("video", "bench").context("a rung")?;
    let synthetic = Synthetic::new(arguments.bitrate);
    let (mut position, mut frames) = (0_u64, 0_u64);
    let (mut now, end) = (Instant::ZERO, Duration::from_secs(SECONDS + 1));
    let mut started = None;
    while now.since(Instant::ZERO) < end {
        let wall = WALL + now.since(Instant::ZERO);
        if started.is_none() && now.since(Instant::ZERO) >= Duration::from_secs(1) {
            let counters = publisher.producer_counters();
            started = Some((Usage::now()?, counters.wire, counters.samples));
            frames = 0;
        }
        let next = Duration::from_secs(1) * u32::try_from(position)? / FRAMES_PER_SECOND;
        if now.since(Instant::ZERO) >= next {
            let frame = synthetic.frame(position, wall);
            publisher.publish_frame(now, wall, rung, frame)?;
            position += 1;
        }
        publisher.handle_timeout(now);
        watcher.handle_timeout(now);
        loop {
            let mut is_quiet = true;
            while let Some(output) = watcher.poll_output() {
                is_quiet = false;
                match output {
                    Output::Send(packet) => publisher.handle_packet(now, wall, packet),
                    Output::Event(Watched::Frame(_)) => frames += 1,
                    Output::Event(_) => {}
                }
            }
            while let Some(packet) = publisher.poll_output() {
                is_quiet = false;
                watcher.handle_packet(now, packet);
            }
            if is_quiet {
                break;
            }
        }
        now += STEP;
    }
    let (usage, wire, samples) = started.context("it ran")?;
    let used = Usage::now()?.since(usage);
    let counters = publisher.producer_counters();
    let samples = counters.samples - samples;
    ensure!(
        frames.abs_diff(samples) <= 15,
        "{frames} of {samples} frames were played in the process: {case:?}"
    );
    Ok(Turn {
        used,
        octets: counters.wire - wire,
        samples,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All three play, with a bitrate whose processor time is none. A sample grows by the tag of 16 octets and the seal of 9, by rounds of the
    /// parity's size, and by digits of other lengths.
    #[test]
    fn each_case_plays() {
        let arguments = BenchStream {
            joins: 1,
            soak: Duration::ZERO,
            steady: Duration::ZERO,
            bitrate: namecast_units::Bitrate::kbps(100),
            segment_size: 1_000,
            json: true,
        };
        let octets = |case| {
            let turn = turn(&arguments, case).unwrap();
            assert_eq!(turn.samples, u64::from(FRAMES_PER_SECOND) * SECONDS);
            turn.octets as f64 / turn.samples as f64
        };
        let [single, certified, sealed] = [Case::Single, Case::Certified, Case::Sealed].map(octets);
        assert!(
            (24.0..=28.0).contains(&(sealed - single)),
            "{single} {sealed}"
        );
        assert!(certified > single, "the whole name of a certificate");
        assert!((median(vec![3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
    }
}
