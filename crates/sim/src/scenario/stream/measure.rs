//! What is read off a run.

use core::time::Duration;

use namecast_apps::live::Stats;
use namecast_apps::live::stats::StreamStats;
use namecast_netem as netem;
use namecast_stream::StreamKind;
use namecast_units::{ByteSize, Instant};

use super::super::{Outcome, Series};
use super::MAX_TOLD;
use super::edge;
use super::frames::{FrameFigures, Frames};
use super::run::{Run, Watching};
use crate::live::Traffic;

/// Frames that are captured later than this before the end, and the playout target, may not be shown any more.
const SETTLES: Duration = Duration::from_secs(1);

/// Everything that counts up, at one instant.
pub(super) struct Snapshot {
    pub(super) at: Duration,
    pub(super) watchers: Vec<WatcherSnapshot>,
    pub(super) publishers: Vec<Traffic>,
    pub(super) links: Vec<netem::Counters>,
}

/// What one watcher has counted.
pub(super) struct WatcherSnapshot {
    pub(super) stats: Stats,
    pub(super) traffic: Traffic,
    /// Payload of frames handed out.
    pub(super) payload: ByteSize,
}

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
}

/// A watcher's point of curves.
pub(super) struct WatcherSample {
    pub(super) data_bits: u64,
    pub(super) lead: Option<u64>,
    pub(super) drd: Option<f64>,
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

/// Name, start and end of a window.
type NamedWindow = (String, Duration, Duration);

pub(super) fn outcome(
    run: &Run<'_>,
    windows: &[NamedWindow],
    snapshots: &[Snapshot],
    samples: &[Sample],
) -> Outcome {
    let mut outcome = Outcome::default();
    let at = |time: Duration| {
        let mut found = snapshots.iter().filter(|snapshot| snapshot.at == time);
        found.next().expect("every window's edge was an edge")
    };
    let frames: Vec<Frames<'_>> = run
        .watchers
        .iter()
        .map(|watching| {
            let records = run.watcher(watching).records();
            Frames::new(
                &watching.media,
                watching.origin,
                watching.joined_at,
                records.iter(),
            )
        })
        .collect();
    for (suffix, from, until) in windows {
        let (from, until) = (at(*from), at(*until));
        let mut metric = |name: &str, value: f64| {
            outcome.metrics.insert(format!("{name}{suffix}"), value);
        };
        watchers(run, &frames, from, until, &mut metric);
        network(run, from, until, &mut metric);
        for (name, size) in TABLES {
            let within = samples
                .iter()
                .filter(|s| (from.at..=until.at).contains(&s.at));
            metric(name, within.map(size).max().unwrap_or(0) as f64);
        }
    }
    if run.scenario.series {
        keep_series(run, samples, &mut outcome);
    }
    outcome
}

/// The stream of a watcher that metrics are of.
pub(super) const fn main_stats<'s>(
    watching: &Watching<'_>,
    stats: &'s Stats,
) -> Option<&'s StreamStats> {
    match watching.spec.main_kind() {
        StreamKind::Audio => stats.audio.as_ref(),
        StreamKind::Video | StreamKind::Other => stats.video.as_ref(),
    }
}

/// Metrics of all watchers, and of each.
fn watchers(
    run: &Run<'_>,
    frames: &[Frames<'_>],
    from: &Snapshot,
    until: &Snapshot,
    metric: &mut dyn FnMut(&str, f64),
) {
    let all = run.watchers.iter().zip(frames).enumerate();
    let values: Vec<Vec<(&'static str, f64)>> = all
        .map(|(index, (watching, frames))| {
            let (before, after) = (&from.watchers[index], &until.watchers[index]);
            let margin = watching.spec.target + SETTLES;
            let end = watching.spec.stop.unwrap_or(run.scenario.duration);
            let end = end.min(run.scenario.duration).saturating_sub(margin);
            let goal = watching.spec.goal.as_deref();
            let (start, end) = (Instant::ZERO + from.at, Instant::ZERO + until.at.min(end));
            let figures = frames.within(start, end, goal);
            let mut values = frame_values(&figures);
            values.extend(stats_values(watching, &figures, before, after));
            let seconds = until.at.saturating_sub(from.at).as_secs_f64();
            values.extend(traffic_values(seconds, before, after));
            values.extend(edge::values(run.watcher(watching), start, end));
            let millis =
                |time: Option<Duration>| time.map_or(f64::NAN, |time| time.as_secs_f64() * 1e3);
            values.push(("first-shown", millis(frames.first_shown(None))));
            if goal.is_some() {
                values.push(("goal-reached", millis(frames.first_shown(goal)) / 1e3));
                values.push(("goal-share", ratio(figures.goal, figures.frames)));
            }
            values
        })
        .collect();
    if values.len() <= MAX_TOLD {
        for (index, values) in values.iter().enumerate() {
            for (name, value) in values {
                metric(&format!("{name}-{}", index + 1), *value);
            }
        }
    }
    let Some(first) = values.first() else { return };
    for (name, _) in first {
        let of_all = values.iter().flatten().filter(|(other, _)| other == name);
        let of_all: Vec<f64> = of_all.map(|(_, value)| *value).collect();
        metric(name, of_all.iter().sum::<f64>() / of_all.len() as f64);
        if *name == "rendered-share" {
            let least = of_all.iter().copied().fold(f64::INFINITY, f64::min);
            metric("rendered-share-min", least);
        }
    }
}

fn frame_values(figures: &FrameFigures) -> Vec<(&'static str, f64)> {
    let of_frames = |count: u64| ratio(count, figures.frames);
    let shown = figures.rendered as f64;
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    vec![
        ("frames", figures.frames as f64),
        ("rendered", shown),
        ("late", figures.late as f64),
        ("lost", figures.lost as f64),
        ("rendered-share", of_frames(figures.rendered)),
        ("late-share", of_frames(figures.late)),
        ("lost-share", of_frames(figures.lost)),
        ("gaps", figures.gaps as f64),
        ("longest-gap", millis(figures.longest_gap)),
        ("stale", figures.stale.as_secs_f64()),
        ("latency", millis(figures.age_sum) / shown),
        ("latency-max", millis(figures.most_age)),
        (
            "payload-rate",
            figures.shown_bits as f64 / figures.span.as_secs_f64() / 1e6,
        ),
        ("rung-rate", figures.rung_sum as f64 / shown / 1e6),
    ]
}

fn stats_values(
    watching: &Watching<'_>,
    figures: &FrameFigures,
    before: &WatcherSnapshot,
    after: &WatcherSnapshot,
) -> Vec<(&'static str, f64)> {
    let (first, last) = (
        main_stats(watching, &before.stats),
        main_stats(watching, &after.stats),
    );
    let change = |count: fn(&StreamStats) -> u64| {
        let end = last.map_or(0, count);
        end.saturating_sub(first.map_or(0, count))
    };
    vec![
        ("join", after.stats.join_ms.unwrap_or(f64::NAN)),
        (
            "rejoins",
            (after.stats.rejoins - before.stats.rejoins) as f64,
        ),
        ("drd", after.stats.rtt_ms.unwrap_or(f64::NAN)),
        (
            "lead",
            last.map_or(f64::NAN, |last| last.interest_lead as f64),
        ),
        (
            "parity-share",
            ratio(change(|stats| stats.recovered_fec), figures.frames),
        ),
        (
            "retransmission-share",
            ratio(
                change(|stats| stats.recovered_retransmission),
                figures.frames,
            ),
        ),
        (
            "rebuilt-share",
            ratio(change(|stats| stats.recovered_across), figures.frames),
        ),
    ]
}

fn traffic_values(
    seconds: f64,
    before: &WatcherSnapshot,
    after: &WatcherSnapshot,
) -> Vec<(&'static str, f64)> {
    let (was, is) = (&before.traffic, &after.traffic);
    let again = after.stats.interests_retransmitted - before.stats.interests_retransmitted;
    let bits = (is.data_size - was.data_size).as_bits() as f64;
    let payload = (after.payload - before.payload).as_bits() as f64;
    vec![
        ("interests", (is.interests - was.interests) as f64),
        ("interests-again", again as f64),
        ("data-rate", bits / seconds / 1e6),
        ("overhead", bits / payload - 1.0),
    ]
}

/// Metrics of publishers and links.
fn network(run: &Run<'_>, from: &Snapshot, until: &Snapshot, metric: &mut dyn FnMut(&str, f64)) {
    let seconds = until.at.saturating_sub(from.at).as_secs_f64();
    let sum = |snapshot: &Snapshot, count: fn(&Traffic) -> u64| -> u64 {
        snapshot.publishers.iter().map(count).sum()
    };
    let change = |count: fn(&Traffic) -> u64| (sum(until, count) - sum(from, count)) as f64;
    metric("producer-data", change(|traffic| traffic.data));
    metric("producer-interests", change(|traffic| traffic.interests));
    let bits = change(|traffic| traffic.data_size.as_bits());
    metric("producer-rate", bits / seconds / 1e6);
    for (place, (before, after)) in from.links.iter().zip(&until.links).enumerate() {
        let mut metric = |name: &str, value| metric(&format!("link-{}-{name}", place + 1), value);
        let frames = (after.delivered - before.delivered) as f64;
        let bits = (after.delivered_size - before.delivered_size).as_bits() as f64;
        metric("frames", frames);
        metric("rate", bits / seconds / 1e6);
        metric("utilisation", bits / seconds / run.link_rate(place));
        let waited = (after.queued_nanos - before.queued_nanos) as f64;
        metric("queue-delay", waited / frames.max(1.0) / 1e6);
        metric("dropped", (after.dropped() - before.dropped()) as f64);
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
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
        for series in edge::series(run.watcher(&run.watchers[index]), number) {
            keep(series.name, &series.unit, series.points);
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
