//! `namecast bench marks`: congestion marks of two forwarders with a slow link between them, and of the simulator's.
//!
//! ```text
//!  Fetcher ─ Unix ─ forwarder ◀── UDP, tc tbf ── forwarder ─ Unix ─ Server        real time
//!  Fetcher ──────── forwarder ◀── netem::Link ── forwarder ──────── Server        virtual time
//! ```
//!
//! `interop/run.sh marks` starts the forwarders, each in a network namespace, and calls this. What the kernel buffers for the
//! link is read off its queue while a flow runs that keeps it full; in virtual time the socket buffer has as many octets.

use anyhow::bail;
use clap::{Args, ValueEnum};
use namecast::{Node, connect};
use namecast_apps::sequence::FetcherConfig;
use namecast_command::number;
use namecast_command::report::print_line;
use namecast_forward::{CongestionLaw, CongestionMarking, SendQueueConfig};
use namecast_packet::Name;
use namecast_sim::topology::{NodeQueue, Topology};
use namecast_stream::rate::RateControl;
use namecast_units::{Bitrate, ByteSize, Duration, parse_duration};
use serde::Serialize;

use super::flow::{DATA, HEADERS, KernelLink, KernelQueue, Running, Simulated, flow, median};
use crate::impair::arguments::parse_share;

/// Time before a flow begins: for a route to be registered, and for CoDel to forget how often it marked the flow before, which
/// it remembers for 16 intervals of 100 ms.
const PAUSE: Duration = Duration::from_secs(3);
/// A flow that keeps the kernel's queue full, how long it runs until it does, how often it is looked at then, and the time
/// between two looks: four in what it takes to become half full.
const STANDING: RateControl = RateControl::Window { window: 300 };
const FILLING: Duration = Duration::from_secs(1);
const LOOKS: usize = 200;
const LOOK: Duration = Duration::from_millis(10);
/// Part of a run in which the flow starts: it does not count.
const START: Duration = Duration::from_secs(5);

/// `namecast bench marks`.
#[derive(Clone, Debug, Args)]
pub struct BenchMarks {
    /// Between what.
    #[command(flatten)]
    pub link: KernelLink,
    /// What the producer's forwarder marks by, with its usual numbers.
    #[arg(long, value_enum)]
    pub law: Law,
    /// What decides how fast Data is requested; several are measured in turn.
    #[arg(long, value_name = "NAME", default_value = "window:300")]
    pub controller: Vec<RateControl>,
    /// Runs, of which the median counts.
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = number::<usize>(1..=1_000))]
    pub runs: usize,
    /// How long marks are counted in each, from the fifth second on.
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = parse_duration)]
    pub span: Duration,
    /// By which share the medians may differ.
    #[arg(long, value_name = "SHARE", default_value_t = 0.1, value_parser = parse_share)]
    pub tolerance: f64,
    /// Print one JSON object for each controller.
    #[arg(long)]
    pub json: bool,
}

/// What marks go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Law {
    /// NFD's rule.
    Nfd,
    /// CoDel.
    Codel,
}

impl From<Law> for CongestionLaw {
    fn from(law: Law) -> Self {
        match law {
            Law::Nfd => Self::Nfd,
            Law::Codel => Self::CoDel,
        }
    }
}

/// What came of all runs with one controller.
#[derive(Debug, Serialize)]
struct Report {
    law: Law,
    controller: String,
    /// Octets of frames that the kernel holds.
    socket_buffer: u64,
    /// Marks per second that the consumer saw, of each run.
    sockets: Vec<f64>,
    simulator: Vec<f64>,
    sockets_median: f64,
    simulator_median: f64,
    ratio: f64,
}

/// Measures, and prints the report.
///
/// # Errors
/// If a forwarder or the link is not as expected, or the medians differ by more than is tolerated.
pub(crate) async fn run(arguments: &BenchMarks) -> anyhow::Result<()> {
    let producer = connect(&arguments.link.producer).await?;
    let consumer = connect(&arguments.link.consumer).await?;
    let nodes = (&producer, &consumer);
    let socket_buffer = socket_buffer(arguments, nodes).await?;
    let mut differ = Vec::new();
    for (place, control) in arguments.controller.iter().enumerate() {
        let mut sockets = Vec::new();
        for run in 0..arguments.runs {
            // Names that no cache has seen.
            let prefix: Name = format!("/marks/{place}/{run}").parse()?;
            sockets.push(over_sockets(arguments, nodes, flow(prefix, *control, run as u64)).await?);
        }
        let simulate = |seed| {
            let prefix = "/marks".parse()?;
            simulated(arguments, socket_buffer, flow(prefix, *control, seed))
        };
        let seeds = 0..arguments.runs as u64;
        let simulator = seeds.map(simulate).collect::<anyhow::Result<Vec<_>>>()?;
        let (sockets_median, simulator_median) = (
            median(sockets.iter().copied()),
            median(simulator.iter().copied()),
        );
        let report = Report {
            law: arguments.law,
            controller: control.to_string(),
            socket_buffer: socket_buffer.as_bytes(),
            sockets,
            simulator,
            sockets_median,
            simulator_median,
            ratio: sockets_median / simulator_median,
        };
        print(&report, arguments.json)?;
        if (report.ratio - 1.0).abs() > arguments.tolerance || report.ratio.is_nan() {
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
    let Report {
        sockets_median,
        simulator_median,
        ratio,
        ..
    } = report;
    print_line(format_args!(
        "{:?}, {}: {sockets_median:.2} marks/s over sockets, {simulator_median:.2} in the simulator, ratio {ratio:.3} (socket buffer {} bytes)",
        report.law, report.controller, report.socket_buffer
    ))?;
    let list = |runs: &[f64]| {
        let runs: Vec<_> = runs.iter().map(|marks| format!("{marks:.2}")).collect();
        runs.join(" ")
    };
    print_line(format_args!("  sockets:   {}", list(&report.sockets)))?;
    print_line(format_args!("  simulator: {}", list(&report.simulator)))?;
    Ok(())
}

/// Runs the flow between two forwarders. Returns the marks per second.
async fn over_sockets(
    arguments: &BenchMarks,
    nodes: (&Node, &Node),
    flow: FetcherConfig,
) -> anyhow::Result<f64> {
    let running = Running::start(nodes, flow, PAUSE).await?;
    tokio::time::sleep(START).await;
    let before = running.figures().await?.congestion_marks;
    tokio::time::sleep(arguments.span).await;
    let marks = running.figures().await?.congestion_marks - before;
    Ok(marks as f64 / arguments.span.as_secs_f64())
}

/// Returns the octets of frames that the kernel holds at most before it has no room, when more wait.
async fn socket_buffer(arguments: &BenchMarks, nodes: (&Node, &Node)) -> anyhow::Result<ByteSize> {
    let _running = Running::start(nodes, flow("/marks/full".parse()?, STANDING, 0), PAUSE).await?;
    tokio::time::sleep(FILLING).await;
    let mut held = ByteSize::ZERO;
    for _ in 0..LOOKS {
        tokio::time::sleep(LOOK).await;
        held = held.max(backlog(&arguments.link.device)?);
    }
    Ok(held)
}

/// Octets of frames in the kernel's queue.
fn backlog(device: &str) -> anyhow::Result<ByteSize> {
    let queue = KernelQueue::read(device)?;
    let headers = HEADERS * queue.qlen;
    Ok(ByteSize::bytes(queue.backlog.saturating_sub(headers)))
}

/// Runs the flow in virtual time. Returns the marks per second.
fn simulated(
    arguments: &BenchMarks,
    socket_buffer: ByteSize,
    flow: FetcherConfig,
) -> anyhow::Result<f64> {
    let mut topology = Topology::default();
    let consumer = topology.add_node("consumer");
    let producer = topology.add_node("producer");
    let link = topology.connect(producer, consumer, &namecast_netem::Config::default());
    // The kernel counts headers that the simulator's frames do not have.
    let share = DATA as f64 / (DATA as u64 + HEADERS) as f64;
    let rate = Bitrate::bps((arguments.link.rate.as_bps() as f64 * share) as u64);
    let link = &mut topology.links[link];
    link.forward.rate = Some(namecast_netem::Rate::Constant(rate));
    link.service.node_queue = Some(NodeQueue {
        socket_buffer,
        send_queue: SendQueueConfig {
            marking: Some(CongestionMarking {
                law: arguments.law.into(),
                ..CongestionMarking::default()
            }),
            ..SendQueueConfig::default()
        },
    });
    let seed = flow.requests.seed;
    let mut simulated = Simulated::start(&topology, (producer, consumer), seed, flow)?;
    let mut marks_at = |time| simulated.figures_at(time).congestion_marks;
    let marks = (marks_at(START), marks_at(START + arguments.span));
    Ok((marks.1 - marks.0) as f64 / arguments.span.as_secs_f64())
}
