//! The metrics of a stream scenario, whatever it ran on.

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

use namecast_apps::live::Stats;
use namecast_apps::live::stats::StreamStats;
use namecast_netem as netem;
use namecast_stream::StreamKind;
use namecast_units::{ByteSize, Instant};

use super::super::measure::jain;
use super::edge;
use super::frames::{FrameFigures, Frames};
use super::in_time::{InTime, Watched};
use super::path::BaseDelay;
use super::spec::WatcherSpec;
use super::{MAX_TOLD, StreamScenario};
use crate::live::{FrameRecord, Media, Shown, Traffic};

/// Frames that are captured later than this before the end, and the playout target, may not be shown any more.
const SETTLES: Duration = Duration::from_secs(1);

/// Everything that counts up, at one instant.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Time since the start of the run.
    pub at: Duration,
    /// What each watcher has counted.
    pub watchers: Vec<WatcherSnapshot>,
    /// Packets at each publisher's face.
    pub publishers: Vec<Traffic>,
    /// What each of [`StreamScenario::links`] has counted.
    pub links: Vec<netem::Counters>,
}

/// What one watcher has counted.
#[derive(Clone, Debug, Default)]
pub struct WatcherSnapshot {
    /// Its own figures.
    pub stats: Stats,
    /// Packets at its face.
    pub traffic: Traffic,
    /// Payload of frames delivered.
    pub payload: ByteSize,
    /// Content of the object that it fetches.
    pub object: ByteSize,
}

/// One watcher. Instants count from the start of the run.
#[derive(Debug)]
pub struct Viewing<'a> {
    /// What it was told.
    pub spec: &'a WatcherSpec,
    /// When it joined.
    pub joined_at: Instant,
    /// The stream that metrics are of.
    pub media: Media,
    /// When the frame at position 0 of that was captured.
    pub origin: Instant,
    /// The sound that it pulls beside its video.
    pub sound: Option<Media>,
    /// Delay of the path from the publisher, if that is known.
    pub base: Option<BaseDelay>,
    /// What became of frames.
    pub records: &'a VecDeque<FrameRecord>,
    /// The watcher, for what only a simulated one writes down.
    pub simulated: Option<Shown<'a>>,
}

/// A run that is over.
#[derive(Debug)]
pub struct Observed<'a> {
    /// What was run.
    pub scenario: &'a StreamScenario,
    /// All watchers, copies included.
    pub watchers: Vec<Viewing<'a>>,
    /// What was counted at each of [`StreamScenario::edges`].
    pub snapshots: Vec<Snapshot>,
    /// Rates of [`StreamScenario::links`] at the start, in bits per second; infinite for those without.
    pub link_rates: Vec<f64>,
}

impl Observed<'_> {
    /// Metrics of watchers, publishers and links, as [`StreamScenario`] lists them, by name.
    ///
    /// # Panics
    /// If an edge has no snapshot.
    pub fn metrics(&self) -> BTreeMap<String, f64> {
        let at = |time: Duration| {
            let mut found = self.snapshots.iter();
            let found = found.find(|snapshot| snapshot.at == time);
            found.expect("every window's edge was an edge")
        };
        let duration = self.scenario.duration;
        let judged = self.watchers.iter().map(|viewing| Judged {
            frames: viewing.frames(),
            in_time: viewing.in_time(&viewing.media, duration),
            sound: (viewing.sound.as_ref()).and_then(|sound| viewing.in_time(sound, duration)),
        });
        let judged: Vec<Judged<'_>> = judged.collect();
        let mut metrics = BTreeMap::new();
        for (suffix, from, until) in self.scenario.all_windows() {
            let (from, until) = (at(from), at(until));
            let mut metric = |name: &str, value: f64| {
                metrics.insert(format!("{name}{suffix}"), value);
            };
            self.add_watchers(&judged, from, until, &mut metric);
            add_quality(&judged, from.at, until.at, &mut metric);
            self.add_network(from, until, &mut metric);
        }
        metrics
    }

    /// Metrics of all watchers, and of each.
    fn add_watchers(
        &self,
        judged: &[Judged<'_>],
        from: &Snapshot,
        until: &Snapshot,
        metric: &mut dyn FnMut(&str, f64),
    ) {
        let all = self.watchers.iter().zip(judged).enumerate();
        let values: Vec<Vec<(&'static str, f64)>> = all
            .map(|(index, (viewing, judged))| {
                let frames = &judged.frames;
                let (before, after) = (&from.watchers[index], &until.watchers[index]);
                let margin = viewing.spec.target().unwrap_or(SETTLES) + SETTLES;
                let end = viewing.spec.stop.unwrap_or(self.scenario.duration);
                let end = end.min(self.scenario.duration).saturating_sub(margin);
                let goal = viewing.spec.goal.as_deref();
                let (start, end) = (Instant::ZERO + from.at, Instant::ZERO + until.at.min(end));
                let figures = frames.within(start, end, goal);
                let mut values = frame_values(&figures);
                values.extend(stats_values(viewing.spec, &figures, before, after));
                let seconds = until.at.saturating_sub(from.at).as_secs_f64();
                values.extend(traffic_values(seconds, before, after));
                if let Some(watcher) = viewing.simulated {
                    values.extend(edge::values(watcher, start, end));
                }
                let millis =
                    |time: Option<Duration>| time.map_or(f64::NAN, |time| time.as_secs_f64() * 1e3);
                values.push(("first-shown", millis(frames.first_shown(None))));
                let window = (start, Instant::ZERO + until.at);
                values.extend(judged.values(window, goal));
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
            if ["rendered-share", "in-time-share", "shown-rate"].contains(name) {
                let least = of_all.iter().copied().fold(f64::INFINITY, f64::min);
                metric(&format!("{name}-min"), least);
            }
            if *name == "shown-rate" {
                metric("jain", jain(&of_all));
                metric("shown-rate-sum", of_all.iter().sum());
            }
        }
    }

    /// Metrics of publishers and links.
    fn add_network(&self, from: &Snapshot, until: &Snapshot, metric: &mut dyn FnMut(&str, f64)) {
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
            let mut metric =
                |name: &str, value| metric(&format!("link-{}-{name}", place + 1), value);
            let frames = (after.delivered - before.delivered) as f64;
            let bits = (after.delivered_size - before.delivered_size).as_bits() as f64;
            metric("frames", frames);
            metric("rate", bits / seconds / 1e6);
            metric("utilisation", bits / seconds / self.link_rates[place]);
            let waited = (after.queued_nanos - before.queued_nanos) as f64;
            metric("queue-delay", waited / frames.max(1.0) / 1e6);
            metric("dropped", (after.dropped() - before.dropped()) as f64);
        }
    }
}

impl Viewing<'_> {
    fn frames(&self) -> Frames<'_> {
        let (origin, joined_at) = (self.origin, self.joined_at);
        Frames::new(&self.media, origin, joined_at, self.records.iter())
    }

    pub(super) fn in_time<'s>(
        &'s self,
        media: &'s Media,
        duration: Duration,
    ) -> Option<InTime<'s>> {
        let stop = self.spec.stop.unwrap_or(duration);
        let watched = Watched {
            media,
            origin: self.origin,
            base: self.base.as_ref()?,
            target: self.spec.target()?,
            joined_at: self.joined_at,
            ends_at: Instant::ZERO + stop.min(duration),
        };
        Some(InTime::new(watched, self.records.iter()))
    }
}

/// Metrics of how good the pictures were, of all watchers of which that is known, and of each.
fn add_quality(
    judged: &[Judged<'_>],
    from: Duration,
    until: Duration,
    metric: &mut dyn FnMut(&str, f64),
) {
    let (from, until) = (Instant::ZERO + from, Instant::ZERO + until);
    let mut of_all: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (index, watcher) in judged.iter().enumerate() {
        let Some(frames) = &watcher.in_time else {
            continue;
        };
        for (measure, figures) in frames.measures() {
            let quality = frames.quality(from, until, figures);
            of_all.entry(measure).or_default().push(quality);
            if judged.len() <= MAX_TOLD {
                metric(&format!("quality-{measure}-{}", index + 1), quality);
            }
        }
    }
    for (measure, values) in of_all {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        metric(&format!("quality-{measure}"), mean);
    }
}

/// What became of the frames of one watcher.
struct Judged<'a> {
    frames: Frames<'a>,
    /// Video, and sound beside it, if the path is known.
    in_time: Option<InTime<'a>>,
    sound: Option<InTime<'a>>,
}

impl Judged<'_> {
    /// Metrics of the frames that were captured in a window and are in time.
    fn values(
        &self,
        (from, until): (Instant, Instant),
        goal: Option<&str>,
    ) -> Vec<(&'static str, f64)> {
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        let seconds = |time: Option<Duration>| time.map_or(f64::NAN, |time| time.as_secs_f64());
        let mut values = Vec::new();
        if let Some(frames) = &self.in_time {
            let figures = frames.within(from, until, goal);
            let span = figures.span.as_secs_f64();
            values.extend([
                ("in-time-share", ratio(figures.in_time, figures.frames)),
                ("complete-share", ratio(figures.complete, figures.frames)),
                ("shown-rate", figures.bits as f64 / span / 1e6),
                ("freeze", millis(figures.freeze)),
                ("switches", figures.switches as f64 / span * 60.0),
                ("rung-back", seconds(figures.back)),
            ]);
            if goal.is_some() {
                values.push(("goal-in-time", seconds(figures.goal)));
            }
        }
        if let Some(frames) = &self.sound {
            let figures = frames.within(from, until, None);
            values.extend([
                (
                    "sound-in-time-share",
                    ratio(figures.in_time, figures.frames),
                ),
                ("sound-gap", millis(figures.freeze)),
                ("sound-back", seconds(figures.back)),
            ]);
        }
        values
    }
}

/// The stream of a watcher that metrics are of.
pub(super) const fn main_stats<'s>(
    spec: &WatcherSpec,
    stats: &'s Stats,
) -> Option<&'s StreamStats> {
    match spec.main_kind() {
        StreamKind::Audio => stats.audio.as_ref(),
        StreamKind::Video | StreamKind::Data | StreamKind::Other => stats.video.as_ref(),
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
        ("latency-max", millis(figures.max_age)),
        (
            "payload-rate",
            figures.shown_bits as f64 / figures.span.as_secs_f64() / 1e6,
        ),
        ("rung-rate", figures.rung_sum as f64 / shown / 1e6),
    ]
}

fn stats_values(
    spec: &WatcherSpec,
    figures: &FrameFigures,
    before: &WatcherSnapshot,
    after: &WatcherSnapshot,
) -> Vec<(&'static str, f64)> {
    let (first, last) = (
        main_stats(spec, &before.stats),
        main_stats(spec, &after.stats),
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
            ratio(change(|stats| stats.recovered_inter_frame), figures.frames),
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
    let content = (is.content_size - was.content_size).as_bits() as f64;
    let payload = (after.payload - before.payload).as_bits() as f64;
    let object = (after.object - before.object).as_bits() as f64;
    vec![
        ("interests", (is.interests - was.interests) as f64),
        ("interests-again", again as f64),
        ("data-rate", bits / seconds / 1e6),
        ("content-rate", content / seconds / 1e6),
        ("object-rate", object / seconds / 1e6),
        ("overhead", bits / payload - 1.0),
    ]
}

fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}
