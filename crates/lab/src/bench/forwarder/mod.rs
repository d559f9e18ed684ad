//! `namecast bench forwarder`: what a forwarder costs, as a ratio to a program that copies datagrams and looks at nothing.
//!
//! ```text
//!   consumers ──Interest──▶ relay or forwarder ──Interest──▶ producer      one thread that never sleeps has both ends;
//!             ◀────Data────                    ◀────Data────               what is measured has a processor of its own
//! ```
//!
//! The relay asks the kernel for datagrams as the forwarder does: several with one call in, equal ones with one call out.
//! A Data packet's cost is processor time of the measured process, kernel included, over Data that reached consumers.

mod exchange;
mod load;
mod measured;
pub(crate) mod memory;
mod ndnd;
mod ours;
mod peer;
mod plane;
mod port;
mod relay;
pub(crate) mod sessions;
mod threads;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::{Args, ValueEnum};
use namecast_command::report::print_line;
use namecast_command::{number, parse_address};
use namecast_units::{Duration, parse_duration};
use serde::Serialize;
use tempfile::TempDir;

use super::measure::{self, Delays};
use exchange::ExchangeReport;
use load::{Load, Outcome, Traffic};
use measured::Measured;
use peer::Exchanged;
use port::{Port, Sending};
use threads::ThreadsReport;

/// Time that passes before each measurement.
const WARM_UP: Duration = Duration::from_millis(300);
/// What stands in a column.
const FIGURES: &str = "µs  k/s  p50/p99 µs";
/// Segments of a frame of 8.3 KB.
const SEGMENTS: u64 = 9;
/// Octets of the frames of fragmented Data.
const FRAGMENT: usize = 1_420;
/// Names that cached Data is asked for by.
const CATALOGUE: u64 = 1_000;

/// `namecast bench forwarder`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  namecast bench forwarder                     all cases, about six minutes; leave the machine alone meanwhile
  namecast bench forwarder --case unique       one case
  namecast bench forwarder --quick --json      shorter runs, for scripts")]
pub struct BenchForwarder {
    /// Only this case; may be repeated.
    #[arg(long = "case")]
    pub cases: Vec<Case>,
    /// How often relay and forwarder take turns; medians are told.
    #[arg(long, default_value_t = 5, value_parser = number::<usize>(1..=1_000))]
    pub rounds: usize,
    /// How long each turn takes.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_duration)]
    pub span: Duration,
    /// Also measure ndnd, whose executable this is: `interop/run.sh ndnd` builds it.
    #[arg(long, value_name = "FILE")]
    pub ndnd: Option<PathBuf>,
    /// Have the forwarder ask a hop about all packets, as its configuration file would write it, and say its fields to everybody; may be
    /// repeated.
    #[arg(long = "hop", value_name = "NAME")]
    pub hops: Vec<String>,
    /// Two short rounds.
    #[arg(long)]
    pub quick: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
    /// Be the relay to this producer.
    #[arg(long, hide = true, value_parser = parse_address)]
    pub relay: Option<SocketAddr>,
    /// The relay sends each datagram with a call of its own.
    #[arg(long, hide = true)]
    pub one_by_one: bool,
}

impl BenchForwarder {
    /// How many turns there are, and how long each takes.
    fn turns(&self) -> (usize, Duration) {
        match self.quick {
            true => (2, self.span / 4),
            false => (self.rounds.max(1), self.span),
        }
    }
}

/// A kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Case {
    /// Each name asked for once, 1000 octets, one datagram at a time.
    Unique,
    /// The same in bursts of 32, with segmentation and receive offload.
    UniqueBursts,
    /// Each name asked for once, 8000 octets in one datagram.
    Large,
    /// The same in bursts of 7.
    LargeBursts,
    /// A thousand names over and over: the cache answers.
    Hits,
    /// The same in bursts of 32.
    HitsBursts,
    /// Eight consumers ask for each name.
    Shared,
    /// 10 000 Data a second: delays.
    Delay,
    /// Half as many a second as each program can carry: nothing may get lost.
    HalfLoad,
    /// Each name asked for once, 8000 octets in frames of at most 1420.
    Fragments,
    /// The same in bursts of 7 packets.
    FragmentsBursts,
    /// A live stream of 30 frames a second in nine segments of 1000 octets each, asked for ahead of time, to one watcher.
    Live1,
    /// The same to eight.
    Live8,
    /// The same to sixteen.
    Live16,
    /// What a second forwarding thread is worth, each name asked for once.
    Threads,
    /// The same in bursts of 32.
    ThreadsBursts,
    /// Two peers that exchange Data of 100 octets, with the next Interest in the same packet or apart.
    #[value(name = "exchange-100")]
    Exchange100,
    /// The same with 1000 octets.
    #[value(name = "exchange-1000")]
    Exchange1000,
    /// The same with 4000 octets, in frames of at most 1400.
    #[value(name = "exchange-4000")]
    Exchange4000,
    /// 1000 octets again, one Interest of each peer at a time: nothing is sent together with anything else.
    ExchangeSingle,
}

impl Case {
    fn traffic(self) -> Traffic {
        let plain = Traffic::default();
        match self {
            Self::Unique | Self::HalfLoad => plain,
            Self::Exchange100 | Self::Exchange1000 | Self::Exchange4000 | Self::ExchangeSingle => {
                plain
            }
            Self::UniqueBursts => Traffic { burst: 32, ..plain },
            Self::Threads => threads::traffic(1),
            Self::ThreadsBursts => threads::traffic(32),
            Self::Fragments => Traffic {
                payload: 8_000,
                window: 64,
                mtu: Some(FRAGMENT),
                ..plain
            },
            Self::FragmentsBursts => Traffic {
                payload: 8_000,
                window: 63,
                burst: 7,
                mtu: Some(FRAGMENT),
                ..plain
            },
            Self::Large => Traffic {
                payload: 8_000,
                window: 64,
                ..plain
            },
            Self::LargeBursts => Traffic {
                payload: 8_000,
                window: 63,
                burst: 7,
                ..plain
            },
            Self::Hits => Traffic {
                catalogue: Some(CATALOGUE),
                ..plain
            },
            Self::HitsBursts => Traffic {
                catalogue: Some(CATALOGUE),
                burst: 32,
                ..plain
            },
            Self::Shared => Traffic {
                consumers: 8,
                window: 64,
                ..plain
            },
            Self::Delay => Traffic {
                rate: Some(10_000.0),
                ..plain
            },
            Self::Live1 => live(1),
            Self::Live8 => live(8),
            Self::Live16 => live(16),
        }
    }

    /// What peers exchange.
    const fn exchanged(self) -> Option<Exchanged> {
        let (payload, window) = match self {
            Self::Exchange100 => (100, 256),
            Self::Exchange1000 => (1_000, 256),
            Self::Exchange4000 => (4_000, 256),
            Self::ExchangeSingle => (1_000, 1),
            _ => return None,
        };
        Some(Exchanged {
            payload,
            window,
            count: u64::MAX,
            is_bundled: false,
        })
    }

    fn name(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// A stream to so many watchers, each of which requests a frame some time before it exists.
fn live(consumers: usize) -> Traffic {
    Traffic {
        consumers,
        burst: SEGMENTS,
        rate: Some(30.0 * SEGMENTS as f64),
        hold: Duration::from_millis(20),
        ..Traffic::default()
    }
}

/// Everything that was measured.
#[derive(Debug, Serialize)]
struct Report {
    load_before: f64,
    debug_build: bool,
    cases: Vec<CaseReport>,
    threads: Vec<ThreadsReport>,
    exchanges: Vec<ExchangeReport>,
}

/// One case, with the medians over all rounds.
#[derive(Debug, Serialize)]
struct CaseReport {
    case: String,
    relay: Figures,
    /// The relay that sends each datagram with a call of its own.
    plain_relay: Figures,
    forwarder: Figures,
    /// Median over the rounds of the forwarder's cost over the relay's.
    cost_ratio: f64,
    /// The same to the plain relay.
    plain_cost_ratio: f64,
    /// The other forwarder, and the ratio to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    ndnd: Option<Figures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ndnd_cost_ratio: Option<f64>,
}

/// What one program did.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Figures {
    /// Processor time for a Data packet that reached a consumer, in microseconds.
    cost_us: f64,
    delivered_per_second: f64,
    /// Interests without answer, over all.
    lost_share: f64,
    delay_p50_us: f64,
    delay_p99_us: f64,
}

/// Measures, and prints the report.
pub(crate) fn run(arguments: &BenchForwarder) -> anyhow::Result<()> {
    if let Some(producer) = arguments.relay {
        let how = match arguments.one_by_one {
            true => Sending::OneByOne,
            false => Sending::Joined,
        };
        return relay::run(producer, how);
    }
    let cases = match arguments.cases.is_empty() {
        true => Case::value_variants(),
        false => &arguments.cases,
    };
    let mut report = Report {
        load_before: measure::load(),
        debug_build: cfg!(debug_assertions),
        cases: Vec::new(),
        threads: Vec::new(),
        exchanges: Vec::new(),
    };
    if !arguments.json {
        let ndnd = arguments.ndnd.is_some();
        let (names, units) = match ndnd {
            true => (
                format!(" {:>24} {:>7}", "ndnd", "of"),
                format!(" {FIGURES:>24} {:>7}", "ndnd"),
            ),
            false => Default::default(),
        };
        print_line(format_args!(
            "{:<14} {:>24} {:>24} {:>24} {:>7} {:>7}{names}",
            "", "relay", "one call a datagram", "forwarder", "of", "of"
        ))?;
        print_line(format_args!(
            "{:<14} {FIGURES:>24} {FIGURES:>24} {FIGURES:>24} {:>7} {:>7}{units}",
            "", "relay", "plain"
        ))?;
    }
    for &case in cases {
        if matches!(case, Case::Threads | Case::ThreadsBursts) {
            let (rounds, span) = arguments.turns();
            let measured = threads::measure(case.name(), case.traffic(), rounds, span)?;
            if !arguments.json {
                print_line(measured.line())?;
            }
            report.threads.push(measured);
            continue;
        }
        if let Some(load) = case.exchanged() {
            let (rounds, span) = arguments.turns();
            let measured = exchange::measure(case.name(), load, rounds, span)?;
            if !arguments.json {
                print_line(measured.line())?;
            }
            report.exchanges.push(measured);
            continue;
        }
        let measured = measure_case(arguments, case)?;
        if !arguments.json {
            print_line(line(&measured))?;
        }
        report.cases.push(measured);
    }
    if arguments.json {
        print_line(serde_json::to_string_pretty(&report)?)?;
    }
    Ok(())
}

fn line(report: &CaseReport) -> String {
    let figures = |figures: &Figures| {
        let lost = match figures.lost_share > 0.0 {
            true => format!(" lost {:.2} %", figures.lost_share * 100.0),
            false => String::new(),
        };
        format!(
            "{:.2} {:>4.0} {:>5.0}/{:<6.0}{lost}",
            figures.cost_us,
            figures.delivered_per_second / 1e3,
            figures.delay_p50_us,
            figures.delay_p99_us
        )
    };
    let mut line = format!(
        "{:<14} {:>24} {:>24} {:>24} {:>7.2} {:>7.2}",
        report.case,
        figures(&report.relay),
        figures(&report.plain_relay),
        figures(&report.forwarder),
        report.cost_ratio,
        report.plain_cost_ratio
    );
    if let (Some(ndnd), Some(ratio)) = (&report.ndnd, report.ndnd_cost_ratio) {
        line += &format!(" {:>24} {ratio:>7.2}", figures(ndnd));
    }
    line
}

/// Lets relays and forwarder take turns.
fn measure_case(arguments: &BenchForwarder, case: Case) -> anyhow::Result<CaseReport> {
    let (rounds, span) = arguments.turns();
    let mut all = vec![
        What::Forwarder(&arguments.hops),
        What::Relay(Sending::Joined),
        What::Relay(Sending::OneByOne),
    ];
    all.extend(arguments.ndnd.as_deref().map(What::Ndnd));
    let mut turns = vec![Vec::new(); all.len()];
    for _ in 0..rounds {
        for (figures, &what) in turns.iter_mut().zip(&all) {
            figures.push(measure_turn(what, case, span)?);
        }
    }
    let ratio = |to: usize| {
        let pairs = turns[0].iter().zip(&turns[to]);
        median(pairs.map(|(ours, theirs)| ours.cost_us / theirs.cost_us))
    };
    let medians = |of: usize| {
        let over = |figure: fn(&Figures) -> f64| median(turns[of].iter().map(figure));
        Figures {
            cost_us: over(|it| it.cost_us),
            delivered_per_second: over(|it| it.delivered_per_second),
            lost_share: over(|it| it.lost_share),
            delay_p50_us: over(|it| it.delay_p50_us),
            delay_p99_us: over(|it| it.delay_p99_us),
        }
    };
    Ok(CaseReport {
        case: case.name(),
        forwarder: medians(0),
        relay: medians(1),
        plain_relay: medians(2),
        cost_ratio: ratio(1),
        plain_cost_ratio: ratio(2),
        ndnd: arguments.ndnd.is_some().then(|| medians(3)),
        ndnd_cost_ratio: arguments.ndnd.is_some().then(|| ratio(3)),
    })
}

/// Who is measured.
#[derive(Clone, Copy, Debug)]
enum What<'a> {
    Relay(Sending),
    /// Ours, with these hops.
    Forwarder(&'a [String]),
    /// Another forwarder, of this executable.
    Ndnd(&'a Path),
}

impl What<'_> {
    /// The relay has one consumer only.
    fn traffic(self, case: Case) -> Traffic {
        let traffic = case.traffic();
        match self {
            Self::Relay(_) => Traffic {
                consumers: 1,
                ..traffic
            },
            Self::Forwarder(_) | Self::Ndnd(_) => traffic,
        }
    }

    /// Starts it in front of `producer`; tells where Interests go, and what must be kept meanwhile.
    fn start(
        self,
        producer: SocketAddr,
        mtu: Option<usize>,
    ) -> anyhow::Result<(Measured, SocketAddr, Option<TempDir>)> {
        match self {
            Self::Relay(how) => {
                let mut command = Command::new(std::env::current_exe()?);
                command.args(["bench", "forwarder", "--relay", &producer.to_string()]);
                if how == Sending::OneByOne {
                    command.arg("--one-by-one");
                }
                let mut program = Measured::start(command, 0..1)?;
                let entry = program.line()?.trim().parse()?;
                Ok((program, entry, None))
            }
            Self::Forwarder(hops) => {
                let options = ours::Options {
                    mtu,
                    hops: hops.to_vec(),
                    ..ours::Options::default()
                };
                let (program, entry, directory) = ours::start(&[producer], &options)?;
                Ok((program, entry, Some(directory)))
            }
            Self::Ndnd(executable) => {
                let (program, entry, directory) = ndnd::start(executable, producer)?;
                Ok((program, entry, Some(directory)))
            }
        }
    }
}

fn measure_turn(what: What<'_>, case: Case, span: Duration) -> anyhow::Result<Figures> {
    let producer = Port::new()?;
    let traffic = what.traffic(case);
    let (program, entry, _directory) = what.start(producer.address()?, traffic.mtu)?;
    program.keep_off()?;
    let mut load = Load::new(traffic, producer, 0)?;
    load.run(entry, WARM_UP);
    if case == Case::HalfLoad {
        let most = load.run(entry, span);
        load.traffic.rate = Some(most.delivered as f64 / most.span.as_secs_f64() / 2.0);
        load.run(entry, WARM_UP);
    }
    let before = program.processor_time()?;
    let outcome = load.run(entry, span);
    let cost = program.processor_time()? - before;
    Ok(figures(outcome, cost))
}

fn figures(outcome: Outcome, cost: Duration) -> Figures {
    // Nothing delivered has no cost: such a figure is no number, and null in JSON.
    let delivered = outcome.delivered as f64;
    let delays = Delays::new(outcome.delays);
    Figures {
        cost_us: match outcome.delivered {
            0 => f64::NAN,
            _ => cost.as_secs_f64() * 1e6 / delivered,
        },
        delivered_per_second: outcome.delivered as f64 / outcome.span.as_secs_f64(),
        lost_share: outcome.lost as f64 / (outcome.delivered + outcome.lost).max(1) as f64,
        delay_p50_us: delays.p50 * 1e3,
        delay_p99_us: delays.p99 * 1e3,
    }
}

/// The middle one of some values, the upper of two middle ones.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
