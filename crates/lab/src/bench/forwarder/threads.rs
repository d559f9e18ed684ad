//! What a second forwarding thread is worth.
//!
//! ```text
//!   processor 1: load 1, first thread      each load has consumers and a producer of its own
//!   processor 2: load 2, second thread
//! ```
//!
//! Threads want processors of their own, and there may be no others than those of the loads. So the loads take turns with what
//! is measured: every so often they take what came, fill their windows and sleep; they go first, and then the processors are
//! free. What a forwarder could carry follows from the processor time of its busiest thread for a Data packet: with two
//! threads, for each of which half is left, and all that they cost each other, twice as much at best. What is best on this
//! machine, two programs that share nothing show, with a load each.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use namecast_units::Duration;
use serde::Serialize;
use tempfile::TempDir;

use super::load::{Load, Outcome, Traffic};
use super::measured::{Measured, processors, stay_on};
use super::ours::{self, Options};
use super::port::Port;
use super::{WARM_UP, median};

/// Loads, of which each has a processor.
const LOADS: usize = 2;
/// How often loads have their turn, and Interests that each has outstanding: about half of what one thread can carry.
const RHYTHM: Duration = Duration::from_millis(16);
const WINDOW: u64 = 1_024;

/// What each load requests, in bursts of this length.
pub(super) fn traffic(burst: u64) -> Traffic {
    Traffic {
        burst,
        window: WINDOW,
        rhythm: Some(RHYTHM),
        ..Traffic::default()
    }
}

/// What is measured.
#[derive(Clone, Copy, Debug)]
enum Forwarders {
    /// One with so many threads, for both loads.
    Threads(usize),
    /// One for each load, with a thread and a processor of its own.
    Apart,
}

impl Forwarders {
    const ALL: [Self; 3] = [Self::Threads(1), Self::Threads(2), Self::Apart];
}

/// One kind of load.
#[derive(Debug, Serialize)]
pub(super) struct ThreadsReport {
    case: String,
    one: Side,
    two: Side,
    /// Two programs with one thread each, which share nothing.
    apart: Side,
    /// How many times as much two threads can carry as one.
    speed_up: f64,
    /// How many times as much two programs can carry.
    apart_speed_up: f64,
}

/// A forwarder with so many threads, medians of all rounds.
#[derive(Clone, Copy, Debug, Serialize)]
struct Side {
    /// Processor time for a Data packet, in microseconds.
    cost_us: f64,
    /// The busiest thread's part of it.
    busiest_us: f64,
    delivered_per_second: f64,
    lost_share: f64,
}

impl ThreadsReport {
    /// For people.
    pub(super) fn line(&self) -> String {
        let side = |side: &Side| {
            format!(
                "{:.2} µs, busiest thread {:.2}, {:.0} k/s",
                side.cost_us,
                side.busiest_us,
                side.delivered_per_second / 1e3
            )
        };
        format!(
            "{:<16} one thread: {};  two: {};  two programs: {};\n{:<16} two threads carry {:.2} times as much as one, two \
             programs that share nothing {:.2} times",
            self.case,
            side(&self.one),
            side(&self.two),
            side(&self.apart),
            "",
            self.speed_up,
            self.apart_speed_up
        )
    }
}

/// Lets forwarders take turns.
pub(super) fn measure(
    case: String,
    traffic: Traffic,
    rounds: usize,
    span: Duration,
) -> anyhow::Result<ThreadsReport> {
    let mut turns = Forwarders::ALL.map(|_| Vec::new());
    for _ in 0..rounds {
        for (sides, forwarders) in turns.iter_mut().zip(Forwarders::ALL) {
            sides.push(measure_turn(forwarders, traffic, span)?);
        }
    }
    let speed_up = |place: usize| {
        let rounds = turns[0].iter().zip(&turns[place]);
        median(rounds.map(|(one, more)| one.busiest_us / more.busiest_us))
    };
    let (two, apart) = (speed_up(1), speed_up(2));
    let sides = turns.map(|sides| {
        let over = |figure: fn(&Side) -> f64| median(sides.iter().map(figure));
        Side {
            cost_us: over(|it| it.cost_us),
            busiest_us: over(|it| it.busiest_us),
            delivered_per_second: over(|it| it.delivered_per_second),
            lost_share: over(|it| it.lost_share),
        }
    });
    Ok(ThreadsReport {
        case,
        one: sides[0],
        two: sides[1],
        apart: sides[2],
        speed_up: two,
        apart_speed_up: apart,
    })
}

/// Starts what is measured; tells where each load enters.
fn start(
    forwarders: Forwarders,
    producers: &[SocketAddr],
) -> anyhow::Result<Vec<(Measured, SocketAddr, TempDir)>> {
    let plain = Options::default();
    let all = match forwarders {
        Forwarders::Threads(threads) => vec![Options { threads, ..plain }],
        Forwarders::Apart => (0..LOADS)
            .map(|processor| Options {
                processor,
                ..plain.clone()
            })
            .collect(),
    };
    let running: anyhow::Result<Vec<_>> = all
        .into_iter()
        .map(|options| ours::start(producers, &options))
        .collect();
    let running = running?;
    running
        .iter()
        .try_for_each(|(program, ..)| program.step_back())?;
    Ok(running)
}

fn measure_turn(forwarders: Forwarders, traffic: Traffic, span: Duration) -> anyhow::Result<Side> {
    let places = processors()?;
    let producers = [(); LOADS].map(|()| Port::new());
    let producers: Result<Vec<_>, _> = producers.into_iter().collect();
    let producers = producers?;
    let addresses: Result<Vec<_>, _> = producers.iter().map(Port::address).collect();
    let programs = start(forwarders, &addresses?)?;
    let entries = programs.iter().map(|(_, entry, _)| *entry);
    // Each load has the processor that the program it loads has not: most packets come from elsewhere.
    let entries: Vec<_> = entries.rev().cycle().take(LOADS).collect();
    let loads = producers.into_iter().enumerate();
    let loads: anyhow::Result<Vec<_>> = loads
        .map(|(number, producer)| Load::new(traffic, producer, number))
        .collect();
    let mut loads = loads?;
    let mut run = |span| -> anyhow::Result<Vec<Outcome>> {
        std::thread::scope(|scope| {
            let places = places.iter().cycle();
            let running: Vec<_> = (loads.iter_mut().zip(places).zip(&entries))
                .map(|((load, &place), &entry)| {
                    scope.spawn(move || {
                        stay_on(place)?;
                        anyhow::Ok(load.run(entry, span))
                    })
                })
                .collect();
            let ended = running.into_iter().map(|it| it.join());
            ended
                .map(|it| it.map_err(|_| anyhow::anyhow!("a load panicked"))?)
                .collect()
        })
    };
    let times = || -> anyhow::Result<BTreeMap<_, _>> {
        let times = programs.iter().map(|(program, ..)| program.thread_times());
        let times: anyhow::Result<Vec<_>> = times.collect();
        Ok(times?.into_iter().flatten().collect())
    };
    run(WARM_UP)?;
    let before = times()?;
    let outcomes = run(span)?;
    let after = times()?;
    Ok(side(&outcomes, &before, &after))
}

fn side<K: Ord>(
    outcomes: &[Outcome],
    before: &BTreeMap<K, Duration>,
    after: &BTreeMap<K, Duration>,
) -> Side {
    let delivered: u64 = outcomes.iter().map(|it| it.delivered).sum();
    let lost: u64 = outcomes.iter().map(|it| it.lost).sum();
    let spent = after.iter().map(|(thread, &time)| {
        let earlier = before.get(thread).copied().unwrap_or_default();
        time.saturating_sub(earlier).as_secs_f64() * 1e6 / delivered.max(1) as f64
    });
    let spent: Vec<f64> = spent.collect();
    let span = outcomes.first().map_or(1.0, |it| it.span.as_secs_f64());
    Side {
        cost_us: spent.iter().sum(),
        busiest_us: spent.iter().copied().fold(0.0, f64::max),
        delivered_per_second: delivered as f64 / span,
        lost_share: lost as f64 / (delivered + lost).max(1) as f64,
    }
}
