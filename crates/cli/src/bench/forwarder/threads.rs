//! What a second forwarding thread is worth.
//!
//! ```text
//!   processor 1: load 1, first thread      each load has consumers and a producer of its own
//!   processor 2: load 2, second thread
//! ```
//!
//! Loads want processors too, so that what is delivered in a second says little. They sleep while they have nothing to do, so
//! that the threads are busy: one that waits for packets finds them one by one, and each costs it more. What a forwarder could carry on processors of
//! its own follows from the processor time of its busiest thread for a Data packet: with two threads, for each of which half
//! is left, and all that they cost each other, twice as much at best.

use std::collections::BTreeMap;

use namecast_units::Duration;
use serde::Serialize;

use super::load::{Load, Outcome, Traffic};
use super::measured::{processors, stay_on};
use super::ours::{self, Options};
use super::port::Port;
use super::{WARM_UP, median};

/// Loads, of which each has a processor.
const LOADS: usize = 2;

/// One kind of load.
#[derive(Debug, Serialize)]
pub(super) struct ThreadsReport {
    case: String,
    one: Side,
    two: Side,
    /// How many times as much two threads can carry.
    speed_up: f64,
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
            "{:<16} one thread: {};  two: {};  two carry {:.2} times as much",
            self.case,
            side(&self.one),
            side(&self.two),
            self.speed_up
        )
    }
}

/// Lets forwarders with one and two threads take turns.
pub(super) fn measure(
    case: String,
    traffic: Traffic,
    rounds: usize,
    span: Duration,
) -> anyhow::Result<ThreadsReport> {
    let mut turns = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        for (place, side) in turns.iter_mut().enumerate() {
            side.push(measure_turn(place + 1, traffic, span)?);
        }
    }
    let speed_ups = turns[0].iter().zip(&turns[1]);
    let speed_up = median(speed_ups.map(|(one, two)| one.busiest_us / two.busiest_us));
    let [one, two] = turns.map(|side| {
        let over = |figure: fn(&Side) -> f64| median(side.iter().map(figure));
        Side {
            cost_us: over(|it| it.cost_us),
            busiest_us: over(|it| it.busiest_us),
            delivered_per_second: over(|it| it.delivered_per_second),
            lost_share: over(|it| it.lost_share),
        }
    });
    Ok(ThreadsReport {
        case,
        one,
        two,
        speed_up,
    })
}

fn measure_turn(threads: usize, traffic: Traffic, span: Duration) -> anyhow::Result<Side> {
    let places = processors()?;
    let producers = [(); LOADS].map(|()| Port::new());
    let producers: Result<Vec<_>, _> = producers.into_iter().collect();
    let producers = producers?;
    let addresses: Result<Vec<_>, _> = producers.iter().map(Port::address).collect();
    let options = Options {
        threads,
        ..Options::default()
    };
    let (program, entry, _directory) = ours::start(&addresses?, options)?;
    let loads = producers.into_iter().enumerate();
    let loads: anyhow::Result<Vec<_>> = loads
        .map(|(number, producer)| Load::new(traffic, producer, number))
        .collect();
    let mut loads = loads?;
    let mut run = |span| -> anyhow::Result<Vec<Outcome>> {
        std::thread::scope(|scope| {
            let running: Vec<_> = (loads.iter_mut().zip(places.iter().cycle()))
                .map(|(load, &place)| {
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
    run(WARM_UP)?;
    let before = program.thread_times()?;
    let outcomes = run(span)?;
    let after = program.thread_times()?;
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
