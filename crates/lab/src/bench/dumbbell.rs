//! `namecast bench dumbbell`: a flow between two forwarders with a slow link of the kernel's between them, and in the simulator.
//!
//! ```text
//!  Fetcher ─ Unix ─ forwarder ◀─ delay ◀── UDP, tc tbf ── forwarder ─ Unix ─ Server        real time
//!  Fetcher ──────── forwarder ◀─────── netem::Link ────── forwarder ──────── Server        virtual time
//! ```
//!
//! `interop/run.sh dumbbell` starts the forwarders, each in a network namespace, and calls this. What left the kernel's queue is what `tc` says, before
//! and after: to ask it more often costs milliseconds in which a queue grows. The mean wait is the mean round-trip time
//! less that of a flow of half the rate, which finds no queue.
//!
//! Machines are never on time, and a queue that is nearly empty is longer for it. By how much they are late is the mean round-trip time of
//! that flow less the least. In the simulator, half of it is the mean jitter each way.

use anyhow::{Context, bail, ensure};
use clap::Args;
use namecast::{Node, connect};
use namecast_apps::sequence::Figures;
use namecast_command::number;
use namecast_command::report::print_line;
use namecast_net::Clock;
use namecast_netem as netem;
use namecast_packet::Name;
use namecast_sim::topology::{NodeIndex, Topology};
use namecast_stream::rate::RateControl;
use namecast_units::{Bitrate, ByteSize, Duration, parse_duration};
use serde::Serialize;

use super::flow::{DATA, HEADERS, KernelLink, KernelQueue, Running, Simulated, flow, median};
use crate::impair::arguments::parse_share;

/// Time before a flow begins, for a route to be registered.
const PAUSE: Duration = Duration::from_secs(1);
/// Part of a run in which the flow starts: it does not count.
const START: Duration = Duration::from_secs(8);
/// Time that the simulator is given, so that its figures are those of the long run.
const LONG: Duration = Duration::from_secs(300);

/// `namecast bench dumbbell`.
#[derive(Clone, Debug, Args)]
pub struct BenchDumbbell {
    /// Between what.
    #[command(flatten)]
    pub link: KernelLink,
    /// Packets of 1116 octets that it holds.
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = number::<usize>(1..=100_000))]
    pub queue: usize,
    /// Delay between the forwarders, each way.
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = parse_duration)]
    pub delay: Duration,
    /// What decides how fast Data is requested; several are measured in turn.
    #[arg(long, value_name = "NAME", default_values = ["arc", "aimd-gap"])]
    pub controller: Vec<RateControl>,
    /// Runs, of which the median counts.
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = number::<usize>(1..=1_000))]
    pub runs: usize,
    /// How long each is measured, from the eighth second on.
    #[arg(long, value_name = "TIME", default_value = "32s", value_parser = parse_duration)]
    pub span: Duration,
    /// By which share utilisation and mean wait may differ.
    #[arg(long, value_name = "SHARE", default_value_t = 0.1, value_parser = parse_share)]
    pub tolerance: f64,
    /// Print one JSON object for each controller.
    #[arg(long)]
    pub json: bool,
}

/// What a flow made of the link.
#[derive(Clone, Copy, Debug, Serialize)]
struct Use {
    /// Share of the rate that carried packets, headers included.
    utilisation: f64,
    /// Mean wait in the queue, ms.
    wait: f64,
    /// Mean round-trip time, ms.
    rtt: f64,
    /// Packets that the queue dropped, a second.
    drops: f64,
}

/// What came of one controller.
#[derive(Debug, Serialize)]
struct Report {
    controller: String,
    /// What round-trip times are above the least of them on average, without a queue, ms.
    noise: f64,
    sockets: Vec<Use>,
    simulator: Use,
    /// Median over sockets, over the simulator's.
    utilisation_ratio: f64,
    wait_ratio: f64,
}

/// Measures, and prints the report.
///
/// # Errors
/// If a forwarder or the link is not as expected, or sockets and simulator differ by more than is tolerated.
pub(crate) async fn run(arguments: &BenchDumbbell) -> anyhow::Result<()> {
    ensure!(
        arguments.span > Duration::ZERO,
        "expected a span above zero"
    );
    let producer = connect(&arguments.link.producer).await?;
    let consumer = connect(&arguments.link.consumer).await?;
    let nodes = (&producer, &consumer);
    let empty = without_queue(arguments, nodes).await?;
    let noise = empty.noise.as_secs_f64() * 1e3;
    if !arguments.json {
        print_line(format_args!(
            "without a queue: round trip {:.2} ms, of which {noise:.2} ms are noise",
            empty.mean
        ))?;
    }
    let mut differ = Vec::new();
    for (place, control) in arguments.controller.iter().enumerate() {
        let mut sockets = Vec::new();
        for run in 0..arguments.runs {
            // Names that no cache has seen.
            let prefix = format!("/dumbbell/{place}/{run}").parse()?;
            sockets.push(over_sockets(arguments, nodes, empty, (prefix, *control)).await?);
        }
        let simulator = simulated(arguments, empty.noise, *control)?;
        let median = |of: fn(&Use) -> f64| median(sockets.iter().map(of));
        let report = Report {
            controller: control.to_string(),
            noise,
            utilisation_ratio: median(|it| it.utilisation) / simulator.utilisation,
            wait_ratio: median(|it| it.wait) / simulator.wait,
            sockets,
            simulator,
        };
        print(&report, arguments.json)?;
        let agrees = |ratio: f64| (ratio - 1.0).abs() <= arguments.tolerance;
        if !agrees(report.utilisation_ratio) || !agrees(report.wait_ratio) {
            differ.push(report.controller);
        }
    }
    if !differ.is_empty() {
        bail!("sockets and simulator differ: {}", differ.join(", "));
    }
    Ok(())
}

fn print(report: &Report, json: bool) -> anyhow::Result<()> {
    if json {
        print_line(serde_json::to_string(report)?)?;
        return Ok(());
    }
    let line = |medium: &str, it: &Use| {
        print_line(format_args!(
            "{:<12} {medium:<10} utilisation {:.3}, wait {:.2} ms, round trip {:.2} ms, {:.1} drops/s",
            report.controller, it.utilisation, it.wait, it.rtt, it.drops
        ))
    };
    for sockets in &report.sockets {
        line("kernel", sockets)?;
    }
    line("simulator", &report.simulator)?;
    print_line(format_args!(
        "{:<12} ratio      utilisation {:.3}, wait {:.3}",
        report.controller, report.utilisation_ratio, report.wait_ratio
    ))?;
    Ok(())
}

/// Mean round-trip time between two readings, ms.
fn mean_rtt(before: &Figures, after: &Figures) -> f64 {
    let sum = after.rtt_sum_nanos - before.rtt_sum_nanos;
    sum as f64 / (after.rtt_samples - before.rtt_samples) as f64 / 1e6
}

/// Round-trip times without a queue.
#[derive(Clone, Copy)]
struct Empty {
    /// Mean, ms.
    mean: f64,
    /// What they are above the least of them, on average.
    noise: Duration,
}

/// Measures round-trip times by a flow of half the rate, while nothing waits.
async fn without_queue(arguments: &BenchDumbbell, nodes: (&Node, &Node)) -> anyhow::Result<Empty> {
    let rate = Bitrate::bps(arguments.link.rate.as_bps() / 2);
    let flow = flow("/dumbbell/empty".parse()?, RateControl::Rate { rate }, 0);
    let running = Running::start(nodes, flow, PAUSE).await?;
    tokio::time::sleep(START).await;
    let figures = running.figures().await?;
    let least = figures.min_rtt.context("no Data was timed")?;
    let mean = mean_rtt(&Figures::default(), &figures);
    Ok(Empty {
        mean,
        noise: Duration::from_nanos((mean * 1e6) as u64).saturating_sub(least),
    })
}

/// Runs the flow between two forwarders.
async fn over_sockets(
    arguments: &BenchDumbbell,
    nodes: (&Node, &Node),
    empty: Empty,
    (prefix, control): (Name, RateControl),
) -> anyhow::Result<Use> {
    let running = Running::start(nodes, flow(prefix, control, 0), PAUSE).await?;
    tokio::time::sleep(START).await;
    let clock = Clock::new();
    let (begun, queue) = (clock.now(), KernelQueue::read(&arguments.link.device)?);
    let before = running.figures().await?;
    tokio::time::sleep(arguments.span).await;
    let after = running.figures().await?;
    let (ended, left) = (clock.now(), KernelQueue::read(&arguments.link.device)?);
    let seconds = ended.since(begun).as_secs_f64();
    let bits = ByteSize::bytes(left.bytes - queue.bytes).as_bits() as f64;
    let rtt = mean_rtt(&before, &after);
    Ok(Use {
        utilisation: bits / seconds / arguments.link.rate.as_bps() as f64,
        wait: rtt - empty.mean,
        rtt,
        drops: (left.drops - queue.drops) as f64 / seconds,
    })
}

/// Runs the flow in virtual time.
fn simulated(
    arguments: &BenchDumbbell,
    noise: Duration,
    control: RateControl,
) -> anyhow::Result<Use> {
    let (topology, ends) = dumbbell(arguments, noise);
    let flow = flow("/dumbbell".parse()?, control, 0);
    let mut simulated = Simulated::start(&topology, ends, 1, flow)?;
    let mut at = |time| {
        let figures = simulated.figures_at(time);
        (figures, *simulated.network.direction(0, false).counters())
    };
    let (before, queue) = at(START);
    let (after, left) = at(START + LONG);
    let seconds = LONG.as_secs_f64();
    let bits = (left.delivered_size - queue.delivered_size).as_bits() as f64;
    let packets = (left.delivered - queue.delivered) as f64;
    Ok(Use {
        utilisation: bits / seconds / arguments.link.rate.as_bps() as f64,
        wait: (left.queued_nanos - queue.queued_nanos) as f64 / packets / 1e6,
        rtt: mean_rtt(&before, &after),
        drops: (left.queue_full - queue.queue_full) as f64 / seconds,
    })
}

/// The link in virtual time, with its producer and consumer.
fn dumbbell(arguments: &BenchDumbbell, noise: Duration) -> (Topology, (NodeIndex, NodeIndex)) {
    let mut topology = Topology::default();
    let (consumer, producer) = (topology.add_node("consumer"), topology.add_node("producer"));
    let config = netem::Config {
        delay: arguments.delay,
        // Uniform from zero on, so that half of it is the mean.
        jitter: netem::Jitter {
            spread: noise,
            ..netem::Jitter::default()
        },
        ..netem::Config::default()
    };
    let link = topology.connect(producer, consumer, &config);
    topology.links[link].forward = netem::Config {
        rate: Some(arguments.link.rate.into()),
        headers: ByteSize::bytes(HEADERS),
        queue: netem::Queue::DropTailBytes {
            size: ByteSize::bytes(arguments.queue as u64 * (DATA as u64 + HEADERS)),
        },
        ..config
    };
    (topology, (producer, consumer))
}
