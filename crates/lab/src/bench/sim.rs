//! `namecast bench sim`: how much network the simulator runs in a second of processor time, and in how much memory.
//!
//! A packet-hop is one Interest or Data received over a link. The raw limit is the emulated links alone, taken in the same
//! run: frames that hop from link to link through an event queue, with no node in between.

mod growth;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::Context;
use bytes::Bytes;
use clap::Args;
use namecast_command::number;
use namecast_command::report::print_line;
use namecast_forward as forward;
use namecast_netem as netem;
use namecast_packet::Name;
use namecast_sim::topology::routes::Graph;
use namecast_sim::topology::{
    AccessHosts, Dumbbell, Grid, Limits, NodeIndex, ScaleFree, Topology, ndnsim,
};
use namecast_sim::workload::{Choice, Requester, RequesterConfig, Responder, Spacing};
use namecast_sim::{Network, NodeConfig};
use namecast_units::{Bitrate, ByteSize, Duration, Instant};
use serde::{Deserialize, Serialize};

use super::measure::{self, Usage};

/// Octets of content in a Data packet.
const PAYLOAD: usize = 1_024;
/// Cached packets of a node: ndnSIM's default of 100.
const CACHE: ByteSize = ByteSize::bytes(100 * (PAYLOAD as u64 + 50 + 256));
/// Most producers of a dumbbell.
const MAX_PRODUCERS: usize = 32;
/// Parts of a run, whose rates show whether it slows down.
const PARTS: u32 = 4;

/// `namecast bench sim`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  namecast bench sim                            all scenarios, about a minute
  namecast bench sim --map as3967.txt           with a real map instead of the synthetic one of its size
  namecast bench sim --pending                  only what more pending events cost, the median of five runs
  namecast bench sim --quick --json             shorter runs, for scripts")]
pub struct BenchSim {
    /// An annotated ndnSIM topology to use as the router map; its hosts are the nodes whose names begin with 'acc'.
    #[arg(long, value_name = "FILE")]
    pub map: Option<PathBuf>,
    /// Only what more pending events cost, beside their logarithm: dumbbells of ever more flows at one rate in all, five times
    /// in turn, and the median.
    #[arg(long)]
    pub pending: bool,
    /// A tenth of the simulated time.
    #[arg(long)]
    pub quick: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
    /// Only the scenario with this place in the list, as JSON: each runs in a process of its own, whose memory is its own.
    #[arg(long, hide = true, value_parser = number::<usize>(0..=1_000))]
    pub only: Option<usize>,
}

/// Everything that was measured.
#[derive(Debug, Serialize)]
struct Report {
    load_before: f64,
    debug_build: bool,
    /// Hops per second of processor time of links without nodes.
    raw_hops_per_second: f64,
    scenarios: Vec<Figures>,
    /// What more pending events cost, in the last of them.
    growth: Vec<growth::Growth>,
}

/// One scenario.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Figures {
    name: String,
    nodes: usize,
    simulated_seconds: f64,
    hops: u64,
    cpu_seconds: f64,
    hops_per_second: f64,
    /// Share of the raw limit.
    ratio_to_raw: f64,
    /// Rate of the last part of the run over that of the first: 1 if simulated time costs the same throughout.
    last_to_first: f64,
    /// Deadlines in the event queue at the end.
    pending_events: usize,
    /// Resident memory that the network added, in MiB: before traffic, and at the end.
    built_mib: f64,
    run_mib: f64,
    /// The first, per node, in KiB.
    kib_per_node: f64,
}

/// Who asks whom, in which network.
struct Scenario {
    name: String,
    topology: Topology,
    /// Producer and its consumers.
    groups: Vec<(NodeIndex, Vec<NodeIndex>)>,
    /// Time between two Interests of a consumer.
    interval: Duration,
    span: Duration,
}

/// Measures, and prints the report.
pub(crate) fn run(arguments: &BenchSim) -> anyhow::Result<()> {
    if let Some(only) = arguments.only {
        let scenario = scenarios(arguments)?.into_iter().nth(only);
        let figures = measure_scenario(scenario.context("no such scenario")?)?;
        print_line(serde_json::to_string(&figures)?)?;
        return Ok(());
    }
    if arguments.pending {
        return growth::run(arguments);
    }
    let load_before = measure::load();
    let raw = raw_hops_per_second()?;
    let mut report = Report {
        load_before,
        debug_build: cfg!(debug_assertions),
        raw_hops_per_second: raw,
        scenarios: Vec::new(),
        growth: Vec::new(),
    };
    if !arguments.json {
        print_line(format_args!(
            "links alone: {:.0} k hops per processor second\n",
            raw / 1e3
        ))?;
        print_line(format_args!(
            "{:<34} {:>7} {:>10} {:>9} {:>8} {:>6} {:>6} {:>9} {:>9}",
            "scenario", "nodes", "hops", "k hops/s", "of raw", "slows", "events", "KiB/node", "MiB"
        ))?;
    }
    for place in 0..scenarios(arguments)?.len() {
        let mut figures = in_own_process(arguments, place)?;
        figures.ratio_to_raw = figures.hops_per_second / raw;
        if !arguments.json {
            print_line(line(&figures))?;
        }
        report.scenarios.push(figures);
    }
    let dumbbells = report.scenarios.len() - growth::FLOWS.len();
    report.growth = growth::growth(&report.scenarios[dumbbells..]);
    if arguments.json {
        print_line(serde_json::to_string_pretty(&report)?)?;
    } else {
        growth::print(&report.growth)?;
    }
    Ok(())
}

/// Measures one scenario in a process that has done nothing before. The ratio to the raw limit is left to the caller.
fn in_own_process(arguments: &BenchSim, place: usize) -> anyhow::Result<Figures> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bench", "sim", "--only", &place.to_string()]);
    if arguments.quick {
        command.arg("--quick");
    }
    if let Some(map) = &arguments.map {
        command.arg("--map").arg(map);
    }
    let output = command.stderr(Stdio::inherit()).output()?;
    anyhow::ensure!(
        output.status.success(),
        "scenario {place} could not be measured"
    );
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn line(figures: &Figures) -> String {
    format!(
        "{:<34} {:>7} {:>10} {:>9.0} {:>7.1}% {:>6.2} {:>6} {:>9.1} {:>9.1}",
        figures.name,
        figures.nodes,
        figures.hops,
        figures.hops_per_second / 1e3,
        figures.ratio_to_raw * 100.0,
        figures.last_to_first,
        figures.pending_events,
        figures.kib_per_node,
        figures.run_mib,
    )
}

/// The scenarios of the published measurements, one of ten thousand nodes, and dumbbells of ever more flows at one rate
/// in all, which show what the number of pending events costs.
fn scenarios(arguments: &BenchSim) -> anyhow::Result<Vec<Scenario>> {
    let span = |seconds: u64| {
        Duration::from_millis(if arguments.quick {
            seconds * 100
        } else {
            seconds * 1_000
        })
    };
    let mut list = vec![
        dumbbell(1, Bitrate::mbps(10), 1_100, span(60))?,
        dumbbell(32, Bitrate::mbps(100), 11_000, span(10))?,
        dumbbell(32, Bitrate::mbps(100), 11_000, span(60))?,
    ];
    let (name, map) = match &arguments.map {
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            let name = path
                .file_stem()
                .map_or("map".into(), |stem| stem.to_string_lossy());
            (
                name.into_owned(),
                ndnsim::read(&text, &path.display().to_string(), &Limits::default())?,
            )
        }
        None => (
            "synthetic map, 79 routers".to_owned(),
            synthetic_map(79, 147, 79)?,
        ),
    };
    list.push(hosts(name, map, (8, 32), span(20))?);
    let grid = |side| Grid {
        width: side,
        height: side,
        link: link(1_000, 5),
        access_hosts: Some(access(side * side)),
    };
    for (side, seconds) in [(10, 20), (32, 10)] {
        let topology = grid(side).build(&Limits::default())?;
        list.push(hosts(
            format!("grid {side} x {side} and hosts"),
            topology,
            (8, 32),
            span(seconds),
        )?);
    }
    let large = synthetic_map(9_892, 19_784, 108)?;
    list.push(hosts(
        "ten thousand nodes".to_owned(),
        large,
        (8, 100),
        span(10),
    )?);
    for flows in growth::FLOWS {
        list.push(dumbbell(flows, Bitrate::mbps(100), 11_000, span(20))?);
    }
    Ok(list)
}

fn link(megabits: u64, millis: u64) -> netem::Config {
    netem::Config {
        rate: Some(Bitrate::mbps(megabits).into()),
        delay: Duration::from_millis(millis),
        queue: netem::Queue::DropTail { packets: 1_000 },
        ..netem::Config::default()
    }
}

fn access(count: usize) -> AccessHosts {
    AccessHosts {
        count,
        link: link(1_000, 1),
        seed: 1,
    }
}

/// Flows between pairs of hosts, which ask for `interests` a second in all.
fn dumbbell(
    flows: usize,
    rate: Bitrate,
    interests: u32,
    span: Duration,
) -> anyhow::Result<Scenario> {
    let mut shape = Dumbbell {
        flows,
        ..Dumbbell::default()
    };
    shape.bottleneck.rate = Some(rate.into());
    let topology = shape.build(&Limits::default())?;
    let name = |letter: char, flow: usize| topology.node(&format!("{letter}{flow}"));
    // More producers than the published measurements have would fill every node with routes, and measure those.
    let producers = flows.min(MAX_PRODUCERS);
    let groups = (1..=producers).filter_map(|first| {
        let consumers = (first..=flows)
            .step_by(producers)
            .filter_map(|flow| name('C', flow));
        Some((name('P', first)?, consumers.collect()))
    });
    Ok(Scenario {
        name: format!("dumbbell n={flows}, {} s", span.as_secs_f64()),
        groups: groups.collect(),
        topology,
        interval: Duration::from_secs(u64::try_from(flows)?) / interests,
        span,
    })
}

fn synthetic_map(nodes: usize, links: usize, hosts: usize) -> anyhow::Result<Topology> {
    let shape = ScaleFree {
        nodes,
        links,
        seed: 1,
        link: link(1_000, 5),
        access_hosts: Some(access(hosts)),
    };
    Ok(shape.build(&Limits::default())?)
}

/// Producers and consumers spread over the hosts of a map; each consumer asks one producer 50 times a second.
fn hosts(
    name: String,
    topology: Topology,
    (producers, consumers): (usize, usize),
    span: Duration,
) -> anyhow::Result<Scenario> {
    let hosts: Vec<NodeIndex> = (0..topology.nodes.len())
        .filter(|&node| topology.nodes[node].name.starts_with("acc"))
        .collect();
    anyhow::ensure!(
        hosts.len() >= producers + consumers,
        "the map has {} hosts ('acc…'), {} are needed",
        hosts.len(),
        producers + consumers
    );
    let groups = (0..producers).map(|producer| {
        let mine = (producer..consumers).step_by(producers);
        (
            hosts[producer],
            mine.map(|consumer| hosts[producers + consumer]).collect(),
        )
    });
    Ok(Scenario {
        name,
        groups: groups.collect(),
        topology,
        interval: Duration::from_millis(20),
        span,
    })
}

fn measure_scenario(scenario: Scenario) -> anyhow::Result<Figures> {
    let before = measure::resident_mib()?;
    let mut network = build(&scenario)?;
    let built = measure::resident_mib()?;
    let mut rates = Vec::new();
    let start = Usage::now()?;
    let mut last = start;
    for part in 1..=PARTS {
        let hops = network.hops();
        network.run_until(Instant::ZERO + scenario.span * part / PARTS);
        let now = Usage::now()?;
        rates.push((network.hops() - hops) as f64 / now.since(last).as_secs_f64());
        last = now;
    }
    let cpu = last.since(start).as_secs_f64();
    let rate = network.hops() as f64 / cpu;
    let nodes = scenario.topology.nodes.len();
    Ok(Figures {
        name: scenario.name,
        nodes,
        simulated_seconds: scenario.span.as_secs_f64(),
        hops: network.hops(),
        cpu_seconds: cpu,
        hops_per_second: rate,
        ratio_to_raw: 0.0,
        last_to_first: rates[rates.len() - 1] / rates[0],
        pending_events: network.pending_events(),
        built_mib: built - before,
        run_mib: measure::resident_mib()? - before,
        kib_per_node: (built - before) * 1_024.0 / nodes as f64,
    })
}

fn build(scenario: &Scenario) -> anyhow::Result<Network> {
    let config = NodeConfig {
        forwarder: forward::Config {
            content_store: forward::ContentStoreConfig::with_capacity(CACHE),
            ..forward::Config::default()
        },
        ..NodeConfig::default()
    };
    let mut network = Network::new(&scenario.topology, 1, |_| config.clone());
    let graph = Graph::new(&scenario.topology);
    let mut number = 0;
    for (group, (producer, consumers)) in scenario.groups.iter().enumerate() {
        let prefix: Name = format!("/p{group}").parse()?;
        let towards = graph.towards(*producer);
        let responder = Responder::new(PAYLOAD, Duration::ZERO);
        network.add_producer(*producer, &prefix, responder, &towards)?;
        for &consumer in consumers {
            number += 1;
            let prefix = prefix.builder().generic(&number.to_string()).finish();
            let requester = Requester::new(RequesterConfig {
                prefix,
                interval: scenario.interval,
                spacing: Spacing::Even,
                choice: Choice::Sequence,
                lifetime: Duration::from_secs(2),
                start: scenario.interval * (number % 97) / 97,
                seed: u64::from(number),
            });
            network.add_application(consumer, requester);
        }
    }
    Ok(network)
}

/// Links in a ring that hand one frame each to the next.
fn raw_hops_per_second() -> anyhow::Result<f64> {
    const LINKS: usize = 65;
    const HOPS: u64 = 2_000_000;
    let mut links: Vec<_> = (0..LINKS)
        .map(|_| netem::Link::new(link(1_000, 1), 1))
        .collect();
    let mut events = BinaryHeap::new();
    for (index, link) in links.iter_mut().enumerate() {
        let start = Instant::from_nanos(index as u64 * 997);
        link.handle_frame(start, Bytes::from(vec![0; PAYLOAD]));
        events.push(Reverse((link.poll_timeout(), index)));
    }
    let start = Usage::now()?;
    let mut hops = 0;
    while hops < HOPS {
        let Some(Reverse((Some(now), index))) = events.pop() else {
            anyhow::bail!("a link without a frame");
        };
        links[index].handle_timeout(now);
        let next = (index + 1) % LINKS;
        while let Some(output) = links[index].poll_output() {
            if let netem::Output::Delivered { frame, .. } = output {
                hops += 1;
                links[next].handle_frame(now, frame);
                events.push(Reverse((links[next].poll_timeout(), next)));
            }
        }
    }
    Ok(HOPS as f64 / Usage::now()?.since(start).as_secs_f64())
}
