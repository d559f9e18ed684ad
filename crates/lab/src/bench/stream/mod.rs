//! `namecast bench stream`: what a stream costs and how fast it is, on loopback sockets and within the process.
//!
//! Samples are made up, so nothing but this program is measured. Figures of the machine are divided by what plain UDP
//! sockets reach in the same run, so that they compare across machines.

mod raw;
mod synthetic;
mod turns;

use anyhow::Context;
use clap::Args;
use namecast_command::report::{print_error, print_line};
use namecast_command::{number, parse_duration};
use namecast_units::{Bitrate, Duration, Random};
use serde::Serialize;

use crate::bench::measure::{self, Delays, Usage};
use synthetic::{Stage, Way};
use turns::Turns;

/// Seed of the pauses between joins, which must not be in step with key samples.
const SEED: u64 = 1;
/// Time for caches and estimators to settle before anything is measured.
const WARM_UP: Duration = Duration::from_secs(2);

/// `namecast bench stream`.
#[derive(Clone, Debug, Args)]
pub struct BenchStream {
    /// How often to join, for the median.
    #[arg(long, default_value_t = 20, value_parser = number::<u32>(1..=100_000))]
    pub joins: u32,
    /// How long memory is observed.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_duration)]
    pub soak: Duration,
    /// How long each steady measurement takes.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_duration)]
    pub steady: Duration,
    /// Bitrate of the synthetic video.
    #[arg(long, default_value = "3M")]
    pub bitrate: Bitrate,
    /// Octets of payload that segments aim at.
    #[arg(long, default_value_t = 1_000, value_parser = number::<u32>(256..=8_000))]
    pub segment_size: u32,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// Everything that was measured.
#[derive(Debug, Serialize)]
struct Report {
    /// What the figures were measured with.
    setup: Setup,
    /// From starting a node and a watcher to the first complete key sample, over UDP; one key sample a second.
    join_ms: Delays,
    /// From publication to the complete, verified sample, over UDP.
    delivery_udp_ms: Delays,
    /// The same on a face in the process.
    delivery_in_process_ms: Delays,
    /// Octets of packets over octets of payload, per 1000 octets of payload, without parity.
    overhead_octets_per_1000: f64,
    /// The same per data segment.
    overhead_octets_per_segment: f64,
    /// Data packets the producer sent per published frame, with one watcher.
    data_per_frame_one_watcher: f64,
    /// The same with two.
    data_per_frame_two_watchers: f64,
    /// The second over the first: 1 if each packet leaves once, 2 if each watcher costs a copy.
    two_watchers_ratio: f64,
    /// Processor time for each megabit delivered (making, signing, forwarding, checking), in milliseconds.
    cpu_ms_per_megabit: f64,
    /// The same for plain UDP datagrams of 1200 octets.
    raw_udp_cpu_ms_per_megabit: f64,
    /// The first over the second.
    cpu_ratio_to_raw_udp: f64,
    /// Cost of certificates and ciphers.
    turns: Turns,
    /// Estimated processor time of the stream over UDP with sealed samples, over that with open ones: ciphers take as long as in
    /// [`Turns`].
    sealed_cpu_ratio: f64,
    /// Rate of the plain UDP datagrams, in Mbit/s.
    raw_udp_megabits_per_second: f64,
    /// Resident memory after the warm-up and at the end, in MiB, and its growth in percent.
    memory: Memory,
}

#[derive(Debug, Serialize)]
struct Setup {
    bitrate_bps: u64,
    segment_size: u32,
    joins: u32,
    soak_seconds: f64,
    processors: usize,
    load_before: f64,
    debug_build: bool,
}

#[derive(Debug, Serialize)]
struct Memory {
    start_mib: f64,
    end_mib: f64,
    growth_percent: f64,
}

/// Measures, and prints the report.
pub(crate) async fn run(arguments: &BenchStream) -> anyhow::Result<()> {
    let tell = |text: &str| {
        if !arguments.json {
            print_error(format_args!("{text} …"));
        }
    };
    let setup = Setup {
        bitrate_bps: arguments.bitrate.as_bps(),
        segment_size: arguments.segment_size,
        joins: arguments.joins,
        soak_seconds: arguments.soak.as_secs_f64(),
        processors: std::thread::available_parallelism().map_or(1, Into::into),
        load_before: measure::load(),
        debug_build: cfg!(debug_assertions),
    };
    tell("plain UDP");
    let raw = raw::measure()
        .await
        .context("plain UDP on loopback failed")?;
    tell("overhead");
    let overhead = overhead(arguments).await?;
    tell("joining");
    let join_ms = joins(arguments).await?;
    tell("delivery over UDP");
    let open = Stage::start(arguments, Stage::PARITY_PERCENT).await?;
    let (delivery_udp_ms, udp) = steady(arguments, open, &[Way::Udp]).await?;
    tell("certified keys and sealed samples");
    let turns = turns::compare(arguments)?;
    tell("delivery in the process");
    let open = Stage::start(arguments, Stage::PARITY_PERCENT).await?;
    let (delivery_in_process_ms, _) = steady(arguments, open, &[Way::InProcess]).await?;
    tell("two watchers");
    let open = Stage::start(arguments, Stage::PARITY_PERCENT).await?;
    let (_, two) = steady(arguments, open, &[Way::Udp, Way::Udp]).await?;
    tell("memory");
    let memory = soak(arguments).await?;
    let report = Report {
        setup,
        join_ms,
        delivery_udp_ms,
        delivery_in_process_ms,
        overhead_octets_per_1000: overhead.per_1000,
        overhead_octets_per_segment: overhead.per_segment,
        data_per_frame_one_watcher: udp.data_per_frame,
        data_per_frame_two_watchers: two.data_per_frame,
        two_watchers_ratio: two.data_per_frame / udp.data_per_frame,
        cpu_ms_per_megabit: udp.cpu_ms_per_megabit,
        raw_udp_cpu_ms_per_megabit: raw.cpu_ms_per_megabit,
        cpu_ratio_to_raw_udp: udp.cpu_ms_per_megabit / raw.cpu_ms_per_megabit,
        turns,
        sealed_cpu_ratio: 1.0 + turns.sealed_ms_per_megabit / udp.cpu_ms_per_megabit,
        raw_udp_megabits_per_second: raw.megabits_per_second,
        memory,
    };
    match arguments.json {
        true => print_line(serde_json::to_string(&report)?)?,
        false => report.print()?,
    }
    Ok(())
}

struct Overhead {
    per_1000: f64,
    per_segment: f64,
}

/// What names, headers, digests and signatures add to the payload.
async fn overhead(arguments: &BenchStream) -> anyhow::Result<Overhead> {
    let stage = Stage::start(arguments, 0).await?;
    tokio::time::sleep(WARM_UP).await;
    let producer = stage.counters().await;
    stage.stop().await;
    let added = (producer.wire - producer.payload) as f64;
    Ok(Overhead {
        per_1000: added / producer.payload as f64 * 1e3,
        per_segment: added / producer.data_segments as f64,
    })
}

/// Joins again and again, at moments that have nothing to do with the key samples'.
async fn joins(arguments: &BenchStream) -> anyhow::Result<Delays> {
    let stage = Stage::start(arguments, Stage::PARITY_PERCENT).await?;
    tokio::time::sleep(WARM_UP).await;
    let mut random = Random::from_seed(SEED);
    let mut delays = Vec::new();
    for _ in 0..arguments.joins {
        tokio::time::sleep(Duration::from_millis(random.below(1_000))).await;
        delays.push(stage.join().await?);
    }
    stage.stop().await;
    Ok(Delays::new(delays))
}

/// What a steady stream costs.
struct Cost {
    data_per_frame: f64,
    cpu_ms_per_megabit: f64,
}

/// Lets watchers watch for a while. Delays are the first watcher's, the cost is everyone's.
async fn steady(
    arguments: &BenchStream,
    stage: Stage,
    ways: &[Way],
) -> anyhow::Result<(Delays, Cost)> {
    let mut watchers = Vec::new();
    for &way in ways {
        watchers.push(stage.watch(way).await?);
    }
    tokio::time::sleep(WARM_UP).await;
    for watcher in &watchers {
        watcher.reset();
    }
    let (before, usage) = (stage.counters().await, Usage::now()?);
    tokio::time::sleep(arguments.steady).await;
    let (after, used) = (stage.counters().await, Usage::now()?.since(usage));
    let received: Vec<_> = watchers.iter().map(synthetic::Watching::take).collect();
    for watcher in watchers {
        watcher.stop().await;
    }
    stage.stop().await;
    let octets: u64 = received.iter().map(|received| received.octets).sum();
    let data = after.data_sent - before.data_sent;
    let frames = after.samples - before.samples;
    let cost = Cost {
        data_per_frame: data as f64 / frames as f64,
        cpu_ms_per_megabit: used.as_secs_f64() * 1e3 / (octets as f64 * 8e-6),
    };
    let delays = received.into_iter().next().map(|received| received.delays);
    Ok((Delays::new(delays.unwrap_or_default()), cost))
}

/// Watches memory while a stream is watched.
async fn soak(arguments: &BenchStream) -> anyhow::Result<Memory> {
    let stage = Stage::start(arguments, Stage::PARITY_PERCENT).await?;
    let watcher = stage.watch(Way::Udp).await?;
    // Caches fill for as long as they keep things; only then can memory be flat.
    tokio::time::sleep(Stage::CACHE_FILLS.min(arguments.soak)).await;
    watcher.reset();
    let start_mib = measure::resident_mib()?;
    tokio::time::sleep(arguments.soak).await;
    watcher.reset();
    let end_mib = measure::resident_mib()?;
    watcher.stop().await;
    stage.stop().await;
    Ok(Memory {
        start_mib,
        end_mib,
        growth_percent: (end_mib / start_mib - 1.0) * 100.0,
    })
}

impl Report {
    fn print(&self) -> anyhow::Result<()> {
        let Self { setup, memory, .. } = self;
        let rate = setup.bitrate_bps as f64 / 1e6;
        print_line(format_args!(
            "{rate:.1} Mbit/s at 30 frames/s, segments of {} octets, {} processors, load {:.1} before{}",
            setup.segment_size,
            setup.processors,
            setup.load_before,
            if setup.debug_build {
                ", NOT an optimised build"
            } else {
                ""
            }
        ))?;
        print_line(format_args!(
            "join, {} times           {}",
            setup.joins, self.join_ms
        ))?;
        print_line(format_args!(
            "delivery over UDP         {}",
            self.delivery_udp_ms
        ))?;
        print_line(format_args!(
            "delivery in the process   {}",
            self.delivery_in_process_ms
        ))?;
        print_line(format_args!(
            "wire overhead             {:.1} octets per 1000 of payload, {:.1} per segment",
            self.overhead_octets_per_1000, self.overhead_octets_per_segment
        ))?;
        print_line(format_args!(
            "Data per frame            {:.2} with one watcher, {:.2} with two: ratio {:.3}",
            self.data_per_frame_one_watcher,
            self.data_per_frame_two_watchers,
            self.two_watchers_ratio
        ))?;
        print_line(format_args!(
            "processor                 {:.2} ms per Mbit, plain UDP {:.2} (at {:.0} Mbit/s): ratio {:.1}",
            self.cpu_ms_per_megabit,
            self.raw_udp_cpu_ms_per_megabit,
            self.raw_udp_megabits_per_second,
            self.cpu_ratio_to_raw_udp
        ))?;
        print_line(format_args!(
            "a sample in the process   {:.0} µs; {:.3} of that with a key that a schema allows, {:.3} sealed, which adds {:.1} octets",
            self.turns.sample_us, self.turns.certified, self.turns.sealed, self.turns.sealed_octets
        ))?;
        print_line(format_args!(
            "processor, sealed         {:.3} of an open stream's over UDP, estimated",
            self.sealed_cpu_ratio
        ))?;
        print_line(format_args!(
            "memory                    {:.1} MiB, after {:.0} s {:.1} MiB: {:+.1} %",
            memory.start_mib, setup.soak_seconds, memory.end_mib, memory.growth_percent
        ))
    }
}
