//! What is read off flows, over whatever medium they run.

use std::collections::BTreeMap;

use namecast_apps::sequence::Figures;
use namecast_netem as netem;
use namecast_units::{Bitrate, Duration};

use super::measure::{Window, jain, of_kinds};
use super::network::{MAX_SHOWN_FLOWS, NetworkScenario};

/// Everything that counts up, at one instant.
#[derive(Clone, Debug)]
pub struct FlowSnapshot {
    /// The time for which it was wanted.
    pub at: Duration,
    /// When it was taken, which is later in real time.
    pub taken_at: Duration,
    /// What each flow's fetcher has counted.
    pub flows: Vec<Figures>,
    /// What the bottleneck has counted.
    pub bottleneck: netem::Counters,
}

/// A run of flows, as its metrics see it.
#[derive(Clone, Debug)]
pub struct ObservedFlows<'a> {
    /// What was run.
    pub scenario: &'a NetworkScenario,
    /// Interest-to-Data time of an idle path, in milliseconds, for each flow.
    pub base_rtts: Vec<f64>,
    /// The bottleneck's rate from each time on.
    pub capacity: Vec<(Duration, Bitrate)>,
    /// One for each of the scenario's edges.
    pub snapshots: Vec<FlowSnapshot>,
}

impl NetworkScenario {
    /// Returns the times at which a run is to be observed, in order: edges of windows, probes and the end.
    pub fn edges(&self) -> Vec<Duration> {
        let windows = self.all_windows();
        let mut edges: Vec<Duration> = windows
            .iter()
            .flat_map(|(_, from, until)| [*from, *until])
            .collect();
        edges.extend(self.probes.values().map(|probe| probe.0));
        edges.push(self.duration);
        edges.sort_unstable();
        edges.dedup();
        edges
    }

    /// Returns suffix, start and end of each window.
    pub(super) fn all_windows(&self) -> Vec<(String, Duration, Duration)> {
        let bounds = |window: &Window| (window.from, window.until.unwrap_or(self.duration));
        let (from, until) = bounds(&self.measure);
        let mut windows = vec![(String::new(), from, until)];
        for (name, window) in &self.windows {
            let (from, until) = bounds(window);
            windows.push((format!("-{name}"), from, until));
        }
        windows
    }
}

impl ObservedFlows<'_> {
    /// Returns the metrics of all windows.
    ///
    /// # Panics
    /// If there is no snapshot for one of the scenario's edges.
    pub fn metrics(&self) -> BTreeMap<String, f64> {
        let at = |time: Duration| {
            let mut snapshots = self.snapshots.iter();
            snapshots
                .find(|snapshot| snapshot.at == time)
                .expect("every window's edge was an edge")
        };
        let mut metrics = BTreeMap::new();
        for (suffix, from, until) in self.scenario.all_windows() {
            let between = self.between(at(from), at(until));
            metrics.extend(between.map(|(name, value)| (format!("{name}{suffix}"), value)));
        }
        metrics
    }

    fn between(
        &self,
        from: &FlowSnapshot,
        until: &FlowSnapshot,
    ) -> impl Iterator<Item = (String, f64)> {
        let change = |value: &dyn Fn(&Figures) -> u64| -> Vec<f64> {
            let pairs = from.flows.iter().zip(&until.flows);
            pairs
                .map(|(before, after)| (value(after) - value(before)) as f64)
                .collect()
        };
        let count = |value: &dyn Fn(&Figures) -> u64| change(value).iter().sum::<f64>();
        let seconds = (until.taken_at - from.taken_at).as_secs_f64();
        let content = change(&|figures| figures.content.as_bits());
        let goodputs: Vec<f64> = content.iter().map(|bits| bits / seconds / 1e6).collect();
        let wire = change(&|figures| figures.wire.as_bits());
        let wire: Vec<f64> = wire.iter().map(|bits| bits / seconds / 1e6).collect();
        let rtt_sum = count(&|figures| figures.rtt_sum_nanos);
        let samples = change(&|figures| figures.rtt_samples);
        let total: f64 = samples.iter().sum();
        let base = samples.iter().zip(&self.base_rtts);
        let base: f64 = base.map(|(count, rtt)| count * rtt).sum();
        let of_kinds = of_kinds(&self.scenario.flows, &goodputs, goodputs.iter().sum());
        let of_flows = [
            ("goodput", goodputs.iter().sum()),
            ("wire", wire.iter().sum()),
            (
                "goodput-min",
                goodputs.iter().copied().fold(f64::INFINITY, f64::min),
            ),
            ("goodput-max", goodputs.iter().copied().fold(0.0, f64::max)),
            ("jain", jain(&goodputs)),
            ("rtt", rtt_sum / total / 1e6),
            ("added-rtt", (rtt_sum / 1e6 - base) / total),
            ("interests", count(&|figures| figures.requests.interests)),
            ("gaps", count(&|figures| figures.requests.gaps)),
            ("timeouts", count(&|figures| figures.requests.timeouts)),
            ("nacks", count(&|figures| figures.requests.nacks)),
        ];
        let rtts = change(&|figures| figures.rtt_sum_nanos);
        let rtts = rtts.into_iter().zip(samples);
        let is_shown = goodputs.len() <= MAX_SHOWN_FLOWS;
        let each = goodputs.into_iter().zip(wire).zip(rtts).enumerate();
        let each = each.filter(move |_| is_shown);
        let each = each.flat_map(|(index, ((goodput, wire), (rtt, samples)))| {
            [
                ("goodput", goodput),
                ("wire", wire),
                ("rtt", rtt / samples / 1e6),
            ]
            .map(|(name, value)| (format!("{name}-{}", index + 1), value))
        });
        let all = of_flows.into_iter().chain(self.of_bottleneck(from, until));
        all.map(|(name, value)| (name.to_owned(), value))
            .chain(each)
            .chain(of_kinds)
    }

    fn of_bottleneck(&self, from: &FlowSnapshot, until: &FlowSnapshot) -> [(&'static str, f64); 3] {
        let (before, after) = (&from.bottleneck, &until.bottleneck);
        let delivered = (after.delivered_size - before.delivered_size).as_bits() as f64;
        let frames = (after.delivered - before.delivered).max(1) as f64;
        let waited = (after.queued_nanos - before.queued_nanos) as f64;
        let drops = |counters: &netem::Counters| counters.queue_full + counters.active_queue;
        let capacity = self.capacity_bits(from.taken_at, until.taken_at);
        [
            ("utilisation", delivered / capacity),
            ("queue-delay", waited / frames / 1e6),
            ("drops", (drops(after) - drops(before)) as f64),
        ]
    }

    /// Bits that the bottleneck could have carried.
    fn capacity_bits(&self, from: Duration, until: Duration) -> f64 {
        let ends = self
            .capacity
            .iter()
            .skip(1)
            .map(|(at, _)| *at)
            .chain([Duration::MAX]);
        let parts = self.capacity.iter().zip(ends).map(|((start, rate), end)| {
            let span = end.min(until).saturating_sub((*start).max(from));
            rate.as_bps() as f64 * span.as_secs_f64()
        });
        parts.sum()
    }
}
