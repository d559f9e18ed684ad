//! The simulator's metrics, read off the fetcher and the relay.

use std::collections::BTreeMap;

use namecast_apps::sequence::Figures;
use namecast_sim::scenario::{NetworkScenario, Window};
use namecast_units::Duration;

use super::stage::Stage;
use crate::impair::{Flow, Report};

/// Everything that counts up, at one instant.
#[derive(Debug)]
pub(super) struct Edge {
    /// When it was wanted.
    pub(super) at: Duration,
    /// When the fetcher's figures were read.
    pub(super) read_at: Duration,
    pub(super) figures: Figures,
    /// Tells its own time.
    pub(super) relay: Report,
}

/// The edges of all windows, in order of time.
pub(super) fn edges(scenario: &NetworkScenario) -> Vec<Duration> {
    let windows = windows(scenario).into_iter();
    let mut edges: Vec<_> = windows.flat_map(|(_, from, until)| [from, until]).collect();
    // The run takes as long as it says, whatever is measured.
    edges.push(scenario.duration);
    edges.sort_unstable();
    edges.dedup();
    edges
}

/// Suffix, start and end of each window.
fn windows(scenario: &NetworkScenario) -> Vec<(String, Duration, Duration)> {
    let bounds = |window: &Window| (window.from, window.until.unwrap_or(scenario.duration));
    let whole = [(String::new(), &scenario.measure)];
    let named = scenario.windows.iter();
    let named = named.map(|(name, window)| (format!("-{name}"), window));
    let all = whole.into_iter().chain(named).map(|(suffix, window)| {
        let (from, until) = bounds(window);
        (suffix, from, until)
    });
    all.collect()
}

/// The metrics of all windows.
pub(super) fn metrics(stage: &Stage<'_>, edges: &[Edge]) -> BTreeMap<String, f64> {
    let at = |time: Duration| {
        let mut edges = edges.iter();
        edges
            .find(|edge| edge.at == time)
            .expect("every window's edge was an edge")
    };
    let mut metrics = BTreeMap::new();
    for (suffix, from, until) in windows(stage.scenario) {
        let (from, until) = (at(from), at(until));
        let link = of_the_link(stage, &from.relay, &until.relay);
        let flow = of_the_flow(stage, from, until);
        let all = link.into_iter().chain(flow);
        metrics.extend(all.map(|(name, value)| (format!("{name}{suffix}"), value)));
    }
    metrics
}

/// Of the bottleneck, over the time between the two reports.
fn of_the_link(stage: &Stage<'_>, from: &Report, until: &Report) -> [(&'static str, f64); 3] {
    let (before, after) = (&from.backward, &until.backward);
    let bits = (after.delivered_octets - before.delivered_octets) as f64 * 8.0;
    let capacity = stage.rate.as_bps() as f64 * (until.seconds - from.seconds);
    // As the simulator does, by all frames, though a copy did not wait.
    let frames = (after.delivered - before.delivered).max(1) as f64;
    let waited = |flow: &Flow| flow.queue_ms_mean * (flow.delivered - flow.duplicated) as f64;
    let drops = |flow: &Flow| flow.dropped.queue_full + flow.dropped.active_queue;
    [
        ("utilisation", bits / capacity),
        ("queue-delay", (waited(after) - waited(before)) / frames),
        ("drops", (drops(after) - drops(before)) as f64),
    ]
}

/// Of the only flow.
fn of_the_flow(stage: &Stage<'_>, from: &Edge, until: &Edge) -> [(&'static str, f64); 11] {
    let change = |value: fn(&Figures) -> u64| (value(&until.figures) - value(&from.figures)) as f64;
    let seconds = (until.read_at - from.read_at).as_secs_f64();
    let goodput = change(|figures| figures.content.as_bits()) / seconds / 1e6;
    let rtt = change(|figures| figures.rtt_sum_nanos) / change(|figures| figures.rtt_samples) / 1e6;
    [
        ("goodput", goodput),
        ("goodput-min", goodput),
        ("goodput-max", goodput),
        ("goodput-1", goodput),
        ("jain", 1.0),
        ("rtt", rtt),
        ("added-rtt", rtt - stage.base_rtt.as_secs_f64() * 1e3),
        ("interests", change(|figures| figures.requests.interests)),
        ("gaps", change(|figures| figures.requests.gaps)),
        ("timeouts", change(|figures| figures.requests.timeouts)),
        ("nacks", change(|figures| figures.requests.nacks)),
    ]
}
