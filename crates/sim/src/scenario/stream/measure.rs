//! What only the simulator measures: sizes of tables, and curves.

use core::time::Duration;
use std::collections::BTreeMap;

use namecast_units::{Bitrate, ByteSize, Instant};

use super::super::measure::of_kinds;
use super::super::{OracleConfig, Outcome, Series, oracle};
use super::MAX_TOLD;
use super::edge;
use super::observed::Observed;
use super::requests;
use super::run::Run;
use super::talks;

/// Sizes of tables at one instant, and points of curves.
#[derive(Default)]
pub(super) struct Sample {
    pub(super) at: Duration,
    pub(super) pit: u64,
    pub(super) cached: u64,
    pub(super) producer_held: u64,
    pub(super) producer_cached: u64,
    pub(super) watcher_samples: u64,
    pub(super) watcher_outstanding: u64,
    pub(super) watcher_buffered: u64,
    pub(super) events: u64,
    /// Bits of Data that left the publishers so far.
    pub(super) producer_size: u64,
    pub(super) watchers: Vec<WatcherSample>,
    /// Bits that each link has delivered so far.
    pub(super) links: Vec<u64>,
    /// What a frame would wait at each link, ms.
    pub(super) queues: Vec<f64>,
    /// What each watcher takes the path to carry.
    pub(super) capacities: Vec<Option<Bitrate>>,
}

/// A watcher's point of curves.
pub(super) struct WatcherSample {
    pub(super) data_bits: u64,
    pub(super) lead: Option<u64>,
    pub(super) drd: Option<f64>,
    /// What the choice of the rung takes the way to carry, Mbit/s.
    pub(super) bandwidth: Option<f64>,
    /// Bitrate of what it pulls, Mbit/s.
    pub(super) rung: Option<f64>,
}

/// Names of the tables' sizes, and where they are.
type Table = (&'static str, fn(&Sample) -> u64);
const TABLES: [Table; 8] = [
    ("pit", |sample| sample.pit),
    ("cached", |sample| sample.cached),
    ("producer-held", |sample| sample.producer_held),
    ("producer-cached", |sample| sample.producer_cached),
    ("watcher-samples", |sample| sample.watcher_samples),
    ("watcher-outstanding", |sample| sample.watcher_outstanding),
    ("watcher-buffered", |sample| sample.watcher_buffered),
    ("events", |sample| sample.events),
];

/// What came of a run; `fetched` is what each flow had received at each of the scenario's edges.
pub(super) fn outcome(
    run: &Run<'_>,
    observed: &Observed<'_>,
    samples: &[Sample],
    fetched: &[Vec<ByteSize>],
) -> Outcome {
    let mut metrics = observed.metrics();
    for (suffix, from, until) in run.scenario.all_windows() {
        for (name, size) in TABLES {
            let within = samples.iter().filter(|s| (from..=until).contains(&s.at));
            let most = within.map(size).max().unwrap_or(0) as f64;
            metrics.insert(format!("{name}{suffix}"), most);
        }
    }
    add_requests(run, observed, samples, &mut metrics);
    add_passage(run, &mut metrics);
    add_flows(observed, fetched, &mut metrics);
    talks::add(run, &mut metrics);
    add_ideal(run, observed, &mut metrics);
    let mut outcome = Outcome {
        metrics,
        series: Vec::new(),
    };
    if run.scenario.series {
        keep_series(run, samples, &mut outcome);
        keep_shown(observed, &mut outcome);
    }
    outcome
}

/// Metrics of Interests.
fn add_requests(
    run: &Run<'_>,
    observed: &Observed<'_>,
    samples: &[Sample],
    metrics: &mut BTreeMap<String, f64>,
) {
    for (suffix, from, until) in run.scenario.all_windows() {
        let mut of_all: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for (index, viewing) in observed.watchers.iter().enumerate() {
            let capacity = samples.iter();
            let capacity = capacity.map(|sample| (sample.at, sample.capacities[index]));
            let from = from.max(viewing.joined_at.since(Instant::ZERO));
            let values = requests::values(viewing, &capacity.collect(), (from, until));
            for (name, value) in values {
                of_all.entry(name).or_default().push(value);
                if observed.watchers.len() <= MAX_TOLD {
                    metrics.insert(format!("{name}-{}{suffix}", index + 1), value);
                }
            }
        }
        for (name, values) in of_all {
            let most = values.into_iter().fold(f64::NAN, f64::max);
            metrics.insert(format!("{name}{suffix}"), most);
        }
    }
}

/// Metrics of Data of streams at links.
fn add_passage(run: &Run<'_>, metrics: &mut BTreeMap<String, f64>) {
    let passage = run.passage.borrow();
    for (window, (suffix, _, _)) in run.scenario.all_windows().iter().enumerate() {
        for link in 0..run.scenario.links.len() {
            for (name, value) in passage.passed(link, window).values() {
                metrics.insert(format!("link-{}-{name}{suffix}", link + 1), value);
            }
        }
    }
}

/// Metrics of kinds of flows, and of streams beside them, by what is received.
fn add_flows(
    observed: &Observed<'_>,
    fetched: &[Vec<ByteSize>],
    metrics: &mut BTreeMap<String, f64>,
) {
    let flows = &observed.scenario.flows;
    if flows.is_empty() {
        return;
    }
    let edges = observed.scenario.edges();
    let place = |at: Duration| edges.iter().position(|edge| *edge == at);
    for (suffix, from, until) in observed.scenario.all_windows() {
        let [from, until] = [from, until].map(|at| place(at).expect("windows end at edges"));
        let span = (edges[until] - edges[from]).as_secs_f64();
        let rate = |size: ByteSize| size.as_bits() as f64 / span / 1e6;
        let pairs = fetched[from].iter().zip(&fetched[until]);
        let goodputs: Vec<f64> = pairs
            .map(|(before, after)| rate(*after - *before))
            .collect();
        let watched = |snapshot: usize| -> ByteSize {
            let watchers = observed.snapshots[snapshot].watchers.iter();
            watchers.map(|watcher| watcher.payload).sum()
        };
        let streams = rate(watched(until) - watched(from));
        let all = streams + goodputs.iter().sum::<f64>();
        metrics.insert(format!("streams-share{suffix}"), streams / all);
        let kinds = of_kinds(flows, &goodputs, all).into_iter();
        metrics.extend(kinds.map(|(name, value)| (format!("{name}{suffix}"), value)));
    }
}

/// What could be reached over the first link's schedule if it were known in advance.
fn add_ideal(run: &Run<'_>, observed: &Observed<'_>, metrics: &mut BTreeMap<String, f64>) {
    let (Some(schedule), [viewing]) = (&run.schedule, &*observed.watchers) else {
        return;
    };
    let Some(target) = viewing.spec.target() else {
        return;
    };
    let media = &viewing.media;
    let mut rungs: Vec<Bitrate> = media.rungs.iter().map(|rung| rung.bitrate).collect();
    rungs.sort_unstable();
    let defaults = OracleConfig::default();
    let ideal = oracle(
        schedule,
        &OracleConfig {
            rungs,
            sound: viewing
                .sound
                .as_ref()
                .map_or(Bitrate::ZERO, |_| defaults.sound),
            frame_rate: media.rate.num / media.rate.den.max(1),
            key_interval: media.key_interval,
            key_size: media.key_factor,
            target,
            duration: run.scenario.duration,
            ..defaults
        },
    );
    let rate = ideal.bitrate.as_bps() as f64 / 1e6;
    metrics.insert("ideal-in-time-share".to_owned(), ideal.in_time_share);
    metrics.insert("ideal-shown-rate".to_owned(), rate);
}

fn keep_series(run: &Run<'_>, samples: &[Sample], outcome: &mut Outcome) {
    let mut keep = |name: String, unit: &str, points: Vec<(f64, f64)>| {
        outcome.series.push(Series {
            name,
            unit: unit.to_owned(),
            points,
        });
    };
    for (name, size) in TABLES {
        let points = samples.iter().map(|s| (s.at.as_secs_f64(), size(s) as f64));
        keep(name.to_owned(), "", points.collect());
    }
    keep(
        "producer".to_owned(),
        "Mbit/s",
        rates(samples, &|s| s.producer_size),
    );
    for place in 0..run.scenario.links.len() {
        let points = rates(samples, &|s| s.links[place]);
        keep(format!("link-{}", place + 1), "Mbit/s", points);
        let points = samples.iter();
        let points = points.map(|s| (s.at.as_secs_f64(), s.queues[place]));
        keep(format!("queue-{}", place + 1), "ms", points.collect());
    }
    for index in 0..run.watchers.len().min(MAX_TOLD) {
        let number = index + 1;
        let points = rates(samples, &|s| s.watchers[index].data_bits);
        keep(format!("data-{number}"), "Mbit/s", points);
        let curve = |value: fn(&WatcherSample) -> Option<f64>| -> Vec<(f64, f64)> {
            let points = samples.iter().filter_map(|sample| {
                Some((sample.at.as_secs_f64(), value(&sample.watchers[index])?))
            });
            points.collect()
        };
        keep(
            format!("lead-{number}"),
            "frames",
            curve(|w| w.lead.map(|lead| lead as f64)),
        );
        keep(format!("drd-{number}"), "ms", curve(|w| w.drd));
        keep(
            format!("bandwidth-{number}"),
            "Mbit/s",
            curve(|w| w.bandwidth),
        );
        keep(format!("rung-{number}"), "Mbit/s", curve(|w| w.rung));
        for series in edge::series(run.watcher(&run.watchers[index]), number) {
            keep(series.name, &series.unit, series.points);
        }
    }
}

/// Curves of what could be shown in time.
fn keep_shown(observed: &Observed<'_>, outcome: &mut Outcome) {
    let watchers = observed.watchers.iter().enumerate().take(MAX_TOLD);
    for (index, viewing) in watchers {
        if let Some(frames) = viewing.in_time(&viewing.media, observed.scenario.duration) {
            outcome.series.push(Series {
                name: format!("shown-{}", index + 1),
                unit: "Mbit/s".to_owned(),
                points: frames.curve(),
            });
        }
    }
}

/// Growth of a count of bits from sample to sample, in Mbit/s.
fn rates(samples: &[Sample], bits: &dyn Fn(&Sample) -> u64) -> Vec<(f64, f64)> {
    let pairs = samples.windows(2);
    let rate = |pair: &[Sample]| {
        let span = pair[1].at.saturating_sub(pair[0].at).as_secs_f64();
        let grown = bits(&pair[1]).saturating_sub(bits(&pair[0])) as f64;
        (pair[1].at.as_secs_f64(), grown / span / 1e6)
    };
    pairs.map(rate).collect()
}
