//! `namecast bench exchange`: two-way sessions between two programs through a forwarder, after \[PIGGYBACK\], Figs 3 to 5.
//!
//! ```text
//!   side A ──Data and Interest──▶ forwarder ──▶ side B      three processes; the forwarder has a processor of its own
//!          ◀──Interest and Data──           ◀──             each session has a socket on both sides, and two routes
//! ```
//!
//! Sides sleep until something comes. Side A sends its window of Interests; then each Data packet that comes is answered with the next
//! Interest, each Interest with Data: in one packet, or in two. A round trip is from when an Interest was wanted, so that waiting for Data
//! to travel with is part of it, to when its Data are there. With several sessions, the Interests are divided among them.

use std::io::BufRead;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Instant;

use anyhow::Context;
use clap::Args;
use namecast_command::number;
use namecast_command::report::print_line;
use namecast_units::Duration;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::thread::CpuSet;
use serde::{Deserialize, Serialize};

use super::super::measure::{self, Delays};
use super::exchange::start_forwarder;
use super::measured::Measured;
use super::peer::{Exchanged, Outcome, Peer, learn_faces};
use super::port::Port;
use super::{median, plane};

/// How long a side sleeps at most, and while an Interest waits for Data to travel with.
const SLEEP: Duration = Duration::from_millis(50);
const SHORT_SLEEP: Duration = Duration::from_micros(200);

/// `namecast bench exchange`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  namecast bench exchange                                  windows of 1 to 40 and three sizes, about three minutes
  namecast bench exchange --payload 1000 --window 5        one of them
  namecast bench exchange --payload 1000 --window 4 --sessions 1,10,100,1000 --count 100000")]
pub struct BenchExchange {
    /// Interests that each side of a session has outstanding.
    #[arg(long = "window", value_name = "COUNT", value_delimiter = ',', default_value = "1,2,5,10,20,40", value_parser = number::<u64>(1..=10_000))]
    pub windows: Vec<u64>,
    /// Bytes of content of a packet.
    #[arg(long = "payload", value_name = "BYTES", value_delimiter = ',', default_value = "100,1000,4000", value_parser = number::<usize>(1..=8_000))]
    pub payloads: Vec<usize>,
    /// Sessions at once.
    #[arg(long, value_name = "COUNT", value_delimiter = ',', default_value = "1", value_parser = number::<usize>(1..=5_000))]
    pub sessions: Vec<usize>,
    /// Interests each way, of all sessions together.
    #[arg(long, default_value_t = 10_000, value_parser = number::<u64>(1..=100_000_000))]
    pub count: u64,
    /// How often both take turns; medians are printed.
    #[arg(long, default_value_t = 5, value_parser = number::<usize>(1..=1_000))]
    pub rounds: usize,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
    /// Be one side.
    #[arg(long, hide = true, value_parser = number::<usize>(0..=1))]
    pub side: Option<usize>,
    /// Be a side whose Interests travel with Data.
    #[arg(long, hide = true)]
    pub bundled: bool,
}

/// Everything that was measured.
#[derive(Debug, Serialize)]
struct Report {
    load_before: f64,
    debug_build: bool,
    points: Vec<Point>,
}

/// One size, window and number of sessions; medians of all rounds.
#[derive(Debug, Serialize)]
struct Point {
    payload: usize,
    window: u64,
    sessions: usize,
    plain: Transfer,
    bundled: Transfer,
    /// Medians over the rounds of what bundles save of the forwarder's processor time, of the median round trip and of the transfer time.
    saved_cost: f64,
    saved_round_trip: f64,
    saved_time: f64,
}

/// What one transfer took.
#[derive(Clone, Copy, Debug, Serialize)]
struct Transfer {
    /// The forwarder's processor time for an exchange, in microseconds.
    cost_us: f64,
    /// The tables' part of it: that of the forwarding plane without sockets.
    plane_us: f64,
    round_trip_p50_us: f64,
    round_trip_p99_us: f64,
    /// Until both sides had everything, in milliseconds.
    time_ms: f64,
    /// Frames that the sides sent for an exchange.
    frames: f64,
    /// Interests that were sent again, and packets that never came.
    lost: f64,
    missing: f64,
    /// Of the forwarder, resident, in MiB.
    memory_mib: f64,
}

/// What a side reports.
#[derive(Debug, Serialize, Deserialize)]
struct SideReport {
    delivered: u64,
    sent: u64,
    lost: u64,
    time_ms: f64,
    p50_us: f64,
    p99_us: f64,
}

/// Measures, and prints the report; or is one side.
pub(crate) fn run(arguments: &BenchExchange) -> anyhow::Result<()> {
    if let Some(side) = arguments.side {
        return run_side(arguments, side);
    }
    let mut report = Report {
        load_before: measure::load(),
        debug_build: cfg!(debug_assertions),
        points: Vec::new(),
    };
    if !arguments.json {
        print_line(format_args!(
            "{:>7} {:>6} {:>8}  {:<48}  {:<48}  saved: processor, round trip, time",
            "payload", "window", "sessions", "one by one", "bundles"
        ))?;
    }
    for &payload in &arguments.payloads {
        let planes = plane::measure(payload)?;
        for &window in &arguments.windows {
            for &sessions in &arguments.sessions {
                let load = Exchanged {
                    payload,
                    window,
                    count: arguments.count.div_ceil(sessions as u64),
                    is_bundled: false,
                };
                let point = measure_point(load, sessions, arguments.rounds, planes)?;
                if !arguments.json {
                    print_line(point.line())?;
                }
                report.points.push(point);
            }
        }
    }
    if arguments.json {
        print_line(serde_json::to_string_pretty(&report)?)?;
    }
    Ok(())
}

impl Point {
    /// For people.
    fn line(&self) -> String {
        let transfer = |it: &Transfer| {
            let lost = match it.lost + it.missing > 0.0 {
                true => format!(", sent again {:.0}, missing {:.0}", it.lost, it.missing),
                false => String::new(),
            };
            format!(
                "{:.2} µs (tables {:.2}), {:.0}/{:.0} µs, {:.0} ms, {:.0} MiB{lost}",
                it.cost_us,
                it.plane_us,
                it.round_trip_p50_us,
                it.round_trip_p99_us,
                it.time_ms,
                it.memory_mib
            )
        };
        format!(
            "{:>7} {:>6} {:>8}  {:<48}  {:<48}  {:.1} %, {:.1} %, {:.1} %",
            self.payload,
            self.window,
            self.sessions,
            transfer(&self.plain),
            transfer(&self.bundled),
            self.saved_cost * 100.0,
            self.saved_round_trip * 100.0,
            self.saved_time * 100.0
        )
    }
}

/// Lets transfers with bundles and without take turns.
fn measure_point(
    load: Exchanged,
    sessions: usize,
    rounds: usize,
    planes: plane::Planes,
) -> anyhow::Result<Point> {
    let mut turns = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        for (is_bundled, transfers) in [false, true].into_iter().zip(&mut turns) {
            let plane_us = match is_bundled {
                true => planes.bundled_us,
                false => planes.plain_us,
            };
            let load = Exchanged { is_bundled, ..load };
            transfers.push(Transfer {
                plane_us,
                ..measure_transfer(load, sessions)?
            });
        }
    }
    let saved = |figure: fn(&Transfer) -> f64| {
        let rounds = turns[0].iter().zip(&turns[1]);
        median(rounds.map(|(plain, bundled)| 1.0 - figure(bundled) / figure(plain)))
    };
    let (saved_cost, saved_round_trip, saved_time) = (
        saved(|it| it.cost_us),
        saved(|it| it.round_trip_p50_us),
        saved(|it| it.time_ms),
    );
    let [plain, bundled] = turns.map(|transfers| {
        let over = |figure: fn(&Transfer) -> f64| median(transfers.iter().map(figure));
        Transfer {
            cost_us: over(|it| it.cost_us),
            plane_us: over(|it| it.plane_us),
            round_trip_p50_us: over(|it| it.round_trip_p50_us),
            round_trip_p99_us: over(|it| it.round_trip_p99_us),
            time_ms: over(|it| it.time_ms),
            frames: over(|it| it.frames),
            lost: over(|it| it.lost),
            missing: over(|it| it.missing),
            memory_mib: over(|it| it.memory_mib),
        }
    });
    Ok(Point {
        payload: load.payload,
        window: load.window,
        sessions,
        plain,
        bundled,
        saved_cost,
        saved_round_trip,
        saved_time,
    })
}

fn measure_transfer(load: Exchanged, sessions: usize) -> anyhow::Result<Transfer> {
    let sides: anyhow::Result<Vec<_>> = (0..2)
        .map(|side| start_side(load, sessions, side))
        .collect();
    let mut sides = sides?;
    let mut addresses = vec![Vec::new(); 2];
    for (side, addresses) in sides.iter_mut().zip(&mut addresses) {
        *addresses = serde_json::from_str::<Vec<SocketAddr>>(&side.line()?)?;
    }
    // Routes are numbered session by session.
    let pairs = addresses[0].iter().zip(&addresses[1]);
    let addresses: Vec<_> = pairs.flat_map(|(&a, &b)| [a, b]).collect();
    let (forwarder, entry, _directory) = start_forwarder(&addresses, load.is_bundled)?;
    for side in &mut sides {
        side.tell(&entry.to_string())?;
        side.line()?;
    }
    let before = forwarder.processor_time()?;
    // Side A begins, and the other is to listen by then.
    for side in sides.iter_mut().rev() {
        side.tell("start")?;
    }
    let reports: anyhow::Result<Vec<SideReport>> = sides
        .iter_mut()
        .map(|side| Ok(serde_json::from_str(&side.line()?)?))
        .collect();
    let reports = reports?;
    let cost = forwarder.processor_time()? - before;
    let sum = |figure: fn(&SideReport) -> u64| reports.iter().map(figure).sum::<u64>() as f64;
    let max = |figure: fn(&SideReport) -> f64| reports.iter().map(figure).fold(0.0, f64::max);
    let delivered = sum(|it| it.delivered);
    Ok(Transfer {
        cost_us: cost.as_secs_f64() * 1e6 / delivered,
        plane_us: 0.0,
        round_trip_p50_us: max(|it| it.p50_us),
        round_trip_p99_us: max(|it| it.p99_us),
        time_ms: max(|it| it.time_ms),
        frames: sum(|it| it.sent) / delivered,
        lost: sum(|it| it.lost),
        missing: (2 * load.count * sessions as u64) as f64 - delivered,
        memory_mib: forwarder.memory()? as f64 / f64::from(1 << 20),
    })
}

fn start_side(load: Exchanged, sessions: usize, side: usize) -> anyhow::Result<Measured> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bench", "exchange"]);
    for (option, value) in [
        ("--side", side as u64),
        ("--payload", load.payload as u64),
        ("--window", load.window),
        ("--sessions", sessions as u64),
        ("--count", load.count),
    ] {
        command.args([option, &value.to_string()]);
    }
    if load.is_bundled {
        command.arg("--bundled");
    }
    // The forwarder has the first processor.
    Measured::start(command, 1..CpuSet::MAX_CPU)
}

/// Is one side of all sessions until the input ends; `--count` is that of each.
fn run_side(arguments: &BenchExchange, side: usize) -> anyhow::Result<()> {
    let [sessions, ..] = arguments.sessions[..] else {
        anyhow::bail!("write --sessions COUNT");
    };
    let load = Exchanged {
        payload: *arguments
            .payloads
            .first()
            .context("write --payload BYTES")?,
        window: *arguments.windows.first().context("write --window COUNT")?,
        count: arguments.count,
        is_bundled: arguments.bundled,
    };
    let ports: Result<Vec<_>, _> = (0..sessions).map(|_| Port::new()).collect();
    let ports = ports?;
    let addresses: Result<Vec<_>, _> = ports.iter().map(Port::address).collect();
    print_line(serde_json::to_string(&addresses?)?)?;
    let peers = ports.into_iter().enumerate();
    let peers: anyhow::Result<Vec<_>> = peers
        .map(|(session, port)| Peer::new((session, side), port, load, None))
        .collect();
    let mut peers = peers?;
    let mut lines = std::io::stdin().lock().lines();
    let entry = lines.next().context("no address")??;
    learn_faces(&mut peers, |session| (session, side), entry.parse()?)?;
    print_line("ready")?;
    lines.next().context("no start")??;
    let start = Instant::now();
    let mut outcome = Outcome::default();
    let mut is_reported = false;
    loop {
        for peer in &mut peers {
            peer.turn(&mut outcome);
        }
        if !is_reported && peers.iter().all(Peer::is_complete) {
            is_reported = true;
            let time_ms = start.elapsed().as_secs_f64() * 1e3;
            let delays = Delays::new(core::mem::take(&mut outcome.delays));
            print_line(serde_json::to_string(&SideReport {
                delivered: outcome.delivered,
                sent: outcome.sent,
                lost: outcome.lost,
                time_ms,
                p50_us: delays.p50 * 1e3,
                p99_us: delays.p99 * 1e3,
            })?)?;
        }
        if !wait(&peers)? {
            return Ok(());
        }
    }
}

/// Sleeps until something comes or is due; false if the input has ended.
fn wait(peers: &[Peer]) -> anyhow::Result<bool> {
    let input = std::io::stdin();
    let mut waiting = vec![PollFd::new(&input, PollFlags::IN)];
    waiting.extend(peers.iter().map(|peer| PollFd::new(peer, PollFlags::IN)));
    let is_short = peers.iter().any(Peer::waits);
    let sleep = if is_short { SHORT_SLEEP } else { SLEEP };
    poll(&mut waiting, Some(&Timespec::try_from(sleep)?))?;
    Ok(waiting[0].revents().is_empty())
}
