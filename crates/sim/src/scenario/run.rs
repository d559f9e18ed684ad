//! One run of a network scenario.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use namecast_apps::sequence::{Fetcher, Sample};
use namecast_forward as forward;
use namecast_netem as netem;
use namecast_units::{Bitrate, ByteSize, Duration, Instant, Random};

use super::fetching::{Fetched, Fetching};
use super::flows::{Flow, FlowDelivery};
use super::forwarding::Strategy;
use super::hops;
use super::measure::crossing;
use super::network::{MAX_SHOWN_FLOWS, Medium, NetworkScenario};
use super::observed::{FlowSnapshot, ObservedFlows};
use super::place::{Direction, directions, find};
use super::segments::{self, LinkWatch};
use super::{Outcome, ScenarioError, Series};
use crate::network::{ApplicationId, Network, NodeConfig};
use crate::topology::{LinkIndex, NodeIndex, Topology, routes};

/// Data that an application may get at one instant and still tell of.
const MAX_FETCHED: usize = 1_024;
/// Pause between two looks whether all flows are complete.
const COMPLETE_PAUSE: Duration = Duration::from_secs(1);
/// Size of an Interest on the wire, for the round-trip time of an idle path.
const INTEREST: ByteSize = ByteSize::bytes(40);

pub(super) struct Run<'a> {
    scenario: &'a NetworkScenario,
    /// Whether applications tell what they fetch.
    traced: bool,
    network: Network,
    flows: Vec<Running>,
    bottleneck: Direction,
    links: LinkWatch,
    /// The bottleneck's rate from each time on.
    capacity: Vec<(Duration, Bitrate)>,
    /// When each change took place.
    changed_at: Vec<Duration>,
    routes: Routes,
}

/// Links of flows on their way to producers.
#[derive(Default)]
struct Routes {
    /// By producer: the link of each node.
    towards: BTreeMap<NodeIndex, Vec<Option<LinkIndex>>>,
    /// By prefix of flows that end: octets of the flow, and its links that have a rate.
    trees: BTreeMap<String, (u64, BTreeSet<LinkIndex>)>,
    /// Links that have a rate.
    rated: Vec<LinkIndex>,
}

impl Routes {
    fn new(topology: &Topology) -> Self {
        let links = topology.links.iter().enumerate();
        let rated = links.filter(|(_, link)| link.forward.rate.is_some());
        Self {
            rated: rated.map(|(index, _)| index).collect(),
            ..Self::default()
        }
    }
}

struct Running {
    application: ApplicationId,
    /// Interest-to-Data time of an idle path, in milliseconds.
    base_rtt: f64,
}

impl<'a> Run<'a> {
    /// A run at its beginning; `traced` if its applications are to tell what they fetch. Files are looked for in `base`.
    ///
    /// # Errors
    /// If the scenario is not valid, or not for the simulator.
    pub(super) fn new(
        scenario: &'a NetworkScenario,
        base: &Path,
        seed: u64,
        traced: bool,
    ) -> Result<Self, ScenarioError> {
        scenario.validate(base)?;
        if scenario.medium != Medium::Simulator {
            let problem = "the simulator runs 'simulator' only";
            return Err(ScenarioError::new("medium", problem));
        }
        let mut topology = scenario.topology(base)?;
        let mut random = Random::from_seed(seed);
        let wrong = |field: &str, problem: String| ScenarioError::new(field, problem);
        let bottleneck = Direction::parse(&scenario.bottleneck, &topology)
            .map_err(|problem| wrong("bottleneck", problem))?;
        let mut changed_at = Vec::new();
        for change in &scenario.changes {
            let at = change.at + change.spread.mul_f64(random.unit());
            changed_at.push(at);
            let step = netem::Step {
                at,
                rate: change.rate,
                delay: change.delay,
            };
            let affected =
                directions(&change.link, &topology).map_err(|problem| wrong("changes", problem))?;
            for direction in affected {
                direction.config_mut(&mut topology).schedule.push(step);
            }
        }
        let capacity = capacity(bottleneck.config(&topology));
        let links = LinkWatch::new(&scenario.links, &topology)
            .map_err(|problem| wrong("links", problem))?;
        let config = NodeConfig {
            forwarder: forward::Config {
                content_store: forward::ContentStoreConfig::with_capacity(scenario.cache),
                pit: pit(scenario),
                ..forward::Config::default()
            },
            hops: hops::named_hops(&scenario.hops)?,
            strategy: Some(scenario.strategy)
                .filter(|strategy| *strategy != Strategy::default())
                .map(Into::into),
            ..NodeConfig::default()
        };
        let network = Network::new(&topology, random.next_u64(), |_| config.clone());
        let mut run = Self {
            scenario,
            traced,
            network,
            flows: Vec::new(),
            bottleneck,
            links,
            capacity,
            changed_at,
            routes: Routes::new(&topology),
        };
        run.schedule_failures(&topology)?;
        for eviction in &scenario.evictions {
            let node =
                find(&topology, &eviction.node).map_err(|problem| wrong("evictions", problem))?;
            run.network
                .schedule(Instant::ZERO + eviction.at, move |network| {
                    network.evict_all(node)
                });
        }
        let mut fetching = Fetching::new(&topology, scenario.packet, scenario.routes);
        for flow in &scenario.flows {
            for number in 1..=flow.count {
                run.add_flow(&mut fetching, (flow, number), &mut random)?;
            }
        }
        Ok(run)
    }

    fn schedule_failures(&mut self, topology: &Topology) -> Result<(), ScenarioError> {
        for (change, &at) in self.scenario.changes.iter().zip(&self.changed_at) {
            let Some(up) = change.up else { continue };
            let affected = directions(&change.link, topology)
                .map_err(|problem| ScenarioError::new("changes", problem))?;
            let link = affected[0].link;
            self.network.schedule(Instant::ZERO + at, move |network| {
                network.set_link_up(link, up)
            });
        }
        Ok(())
    }

    fn add_flow(
        &mut self,
        fetching: &mut Fetching<'_>,
        flow: (&Flow, u32),
        random: &mut Random,
    ) -> Result<(), ScenarioError> {
        let wants_samples = self.scenario.series || self.scenario.convergence.is_some();
        let traced = self.traced;
        let fetched = fetching.add(&mut self.network, flow, random, |config| {
            config.sample_interval = config.sample_interval.filter(|_| wants_samples);
            config.max_fetched = if traced { MAX_FETCHED } else { 0 };
        })?;
        let base_rtt = self.base_rtt(fetching.topology(), flow, &fetched);
        self.flows.push(Running {
            application: fetched.application,
            base_rtt: base_rtt.as_secs_f64() * 1e3,
        });
        Ok(())
    }

    /// Delays and one serialisation at each link, there and back.
    fn base_rtt(
        &mut self,
        topology: &Topology,
        (flow, number): (&Flow, u32),
        fetched: &Fetched,
    ) -> Duration {
        let Fetched {
            consumer, producer, ..
        } = *fetched;
        let towards = self.routes.towards.entry(producer);
        let towards = towards.or_insert_with(|| routes::towards(topology, producer));
        let mut tree = flow.end.map(|end| {
            let prefix = Flow::named(&flow.prefix, number);
            let size = end.packets.get() * u64::from(self.scenario.packet.wire);
            let tree = self.routes.trees.entry(prefix);
            &mut tree.or_insert_with(|| (size, BTreeSet::new())).1
        });
        let data = ByteSize::bytes(u64::from(self.scenario.packet.wire));
        let takes = |config: &netem::Config, size: ByteSize| {
            let rate = config.rate.as_ref().and_then(netem::Rate::mean);
            config.delay + rate.map_or(Duration::ZERO, |rate| (size + config.headers) / rate)
        };
        let mut at = consumer;
        let mut total = Duration::ZERO;
        while let Some(index) = towards[at] {
            let link = &topology.links[index];
            if let Some(tree) = tree.as_mut().filter(|_| link.forward.rate.is_some()) {
                tree.insert(index);
            }
            let is_first = link.ends.0 == at;
            let (there, back) = match is_first {
                true => (&link.forward, &link.backward),
                false => (&link.backward, &link.forward),
            };
            total += takes(there, INTEREST) + takes(back, data);
            at = if is_first { link.ends.1 } else { link.ends.0 };
        }
        total
    }

    /// How long it takes.
    pub(super) const fn duration(&self) -> Duration {
        self.scenario.duration
    }

    /// The network, before it has run.
    pub(super) const fn network(&mut self) -> &mut Network {
        &mut self.network
    }

    /// Lets it run to its end and measures.
    pub(super) fn finish(mut self) -> Outcome {
        let mut outcome = Outcome::default();
        let mut snapshots = Vec::new();
        for edge in self.scenario.edges() {
            self.run_until(Instant::ZERO + edge);
            snapshots.push(self.snapshot(edge));
            let probes = self
                .scenario
                .probes
                .iter()
                .filter(|(_, probe)| probe.0 == edge);
            for (name, _) in probes {
                let estimate = self.fetcher(0).estimate();
                let value = estimate.map_or(f64::NAN, |rate| rate.as_bps() as f64 / 1e6);
                outcome.metrics.insert(format!("estimate-{name}"), value);
            }
        }
        let observed = ObservedFlows {
            scenario: self.scenario,
            base_rtts: self.flows.iter().map(|flow| flow.base_rtt).collect(),
            capacity: core::mem::take(&mut self.capacity),
            snapshots,
        };
        outcome.metrics.extend(observed.metrics());
        self.measure_convergence(&mut outcome);
        self.measure_segments(&mut outcome);
        self.measure_any_next(&mut outcome);
        self.measure_ends(&mut outcome);
        if self.scenario.series {
            self.keep_series(&mut outcome);
        }
        outcome
    }

    /// Lets it run until `edge`. Flows that all have an end are complete earlier, maybe, and nothing is left to see then.
    fn run_until(&mut self, edge: Instant) {
        let have_ends = self.scenario.flows.iter().all(|flow| flow.end.is_some());
        if self.scenario.series || !have_ends {
            return self.links.run_until(&mut self.network, edge);
        }
        while self.network.now() < edge && !self.is_complete() {
            let next = (self.network.now() + COMPLETE_PAUSE).min(edge);
            self.links.run_until(&mut self.network, next);
        }
    }

    fn is_complete(&self) -> bool {
        let mut flows = 0..self.flows.len();
        flows.all(|flow| {
            let ended = self.fetcher(flow).ended();
            ended.is_some_and(|it| it.completed_after.is_some())
        })
    }

    fn fetcher(&self, flow: usize) -> &Fetcher {
        self.network
            .application(self.flows[flow].application)
            .expect("flows run fetchers")
    }

    fn snapshot(&self, at: Duration) -> FlowSnapshot {
        let Direction { link, from_second } = self.bottleneck;
        FlowSnapshot {
            at,
            taken_at: at,
            flows: (0..self.flows.len())
                .map(|flow| self.fetcher(flow).figures())
                .collect(),
            bottleneck: *self.network.direction(link, from_second).counters(),
        }
    }

    fn measure_convergence(&self, outcome: &mut Outcome) {
        let Some(convergence) = &self.scenario.convergence else {
            return;
        };
        let changed_at = self.changed_at[convergence.change - 1];
        let estimates = self.estimates(0);
        let took = crossing(&estimates, changed_at.as_secs_f64(), convergence);
        outcome
            .metrics
            .insert("convergence".to_owned(), took.unwrap_or(f64::NAN));
    }

    fn measure_segments(&self, outcome: &mut Outcome) {
        let window = &self.scenario.measure;
        let until = window.until.unwrap_or(self.scenario.duration);
        let during = (Instant::ZERO + window.from, Instant::ZERO + until);
        outcome.metrics.extend(self.links.metrics(during));
        let fetchers: Vec<_> = (0..self.flows.len())
            .map(|flow| self.fetcher(flow))
            .collect();
        let enough = self.scenario.enough;
        let metrics = segments::metrics(&fetchers, &self.links, during.0, enough);
        outcome.metrics.extend(metrics);
    }

    /// Averages the samples of flows of any next Data.
    fn measure_any_next(&self, outcome: &mut Outcome) {
        let copies = (self.scenario.flows.iter())
            .flat_map(|flow| (0..flow.count).map(move |_| flow.delivery == FlowDelivery::AnyNext));
        let is_shown = self.flows.len() <= MAX_SHOWN_FLOWS;
        let any_next = copies.enumerate();
        let any_next = any_next.filter(|(_, is_any_next)| *is_any_next && is_shown);
        for (flow, _) in any_next {
            let samples = self.fetcher(flow).samples();
            for (suffix, from, until) in self.scenario.all_windows() {
                let (from, until) = (Instant::ZERO + from, Instant::ZERO + until);
                let during = || samples.iter().filter(|it| from < it.at && it.at <= until);
                let windows = during().filter_map(|it| it.window.map(f64::from));
                let spare = during().filter_map(|it| it.spare.map(f64::from));
                let number = flow + 1;
                let metrics = [("window", mean(windows)), ("spare", mean(spare))];
                let named = |(name, value)| (format!("{name}-{number}{suffix}"), value);
                outcome.metrics.extend(metrics.map(named));
            }
        }
    }

    /// Reads how flows that end did: of each, how long it took and where it came from; of all, what was sent for each packet.
    fn measure_ends(&self, outcome: &mut Outcome) {
        let copies =
            (self.scenario.flows.iter()).flat_map(|flow| (0..flow.count).map(move |_| flow.end));
        let mut completions = Vec::new();
        for (flow, end) in copies.enumerate() {
            let fetcher = self.fetcher(flow);
            let (Some(end), Some(ended)) = (end, fetcher.ended()) else {
                continue;
            };
            let packets = end.packets.get() as f64;
            let completion = ended
                .completed_after
                .map_or(f64::NAN, |it| it.as_secs_f64());
            completions.push(completion);
            if self.flows.len() > MAX_SHOWN_FLOWS {
                continue;
            }
            let metrics = [
                ("completion", completion),
                ("stall", ended.stalled.as_secs_f64()),
                ("repaired", ended.repaired as f64 / packets),
                ("from-peers", ended.from_peers as f64 / packets),
                ("served", fetcher.figures().served as f64 / packets),
            ];
            let named = |(name, value)| (format!("{name}-{}", flow + 1), value);
            outcome.metrics.extend(metrics.map(named));
        }
        let first = self.scenario.flows.iter().find_map(|flow| flow.end);
        let Some(end) = first else {
            return;
        };
        let Direction { link, from_second } = self.bottleneck;
        let frames = self
            .network
            .direction(link, from_second)
            .counters()
            .delivered;
        let sent = frames as f64 / end.packets.get() as f64;
        let all = completions.iter().copied();
        let longest = completions.iter().copied().fold(0.0, f64::max);
        let has_all = completions.iter().all(|it| it.is_finite());
        let metrics = [
            ("sent", sent),
            ("completion", mean(all)),
            ("completion-max", if has_all { longest } else { f64::NAN }),
        ];
        let named = |(name, value): (&str, f64)| (name.to_owned(), value);
        outcome.metrics.extend(metrics.map(named));
        outcome.metrics.extend(self.load().map(named));
    }

    /// What links carried, and would have to at least.
    fn load(&self) -> [(&'static str, f64); 2] {
        let directions = self.routes.rated.iter();
        let directions = directions.flat_map(|link| [(*link, false), (*link, true)]);
        let carried = directions.map(|(link, from_second)| {
            let direction = self.network.direction(link, from_second);
            direction.counters().delivered_size.as_bits() as f64
        });
        let trees = self.routes.trees.values();
        let least = trees.map(|(size, links)| (size * 8) as f64 * links.len() as f64);
        [
            ("load", carried.sum::<f64>() / 1e9),
            ("least-load", least.sum::<f64>() / 1e9),
        ]
    }

    /// A flow's estimate over time, in Mbit/s of content.
    fn estimates(&self, flow: usize) -> Vec<(f64, f64)> {
        let samples = self.fetcher(flow).samples();
        let points = samples.iter().filter_map(|sample| {
            let estimate = sample.estimate?;
            Some((seconds(sample.at), estimate.as_bps() as f64 / 1e6))
        });
        points.collect()
    }

    fn keep_series(&self, outcome: &mut Outcome) {
        outcome.series.extend(self.links.series());
        for flow in 0..self.flows.len() {
            let number = flow + 1;
            let samples = self.fetcher(flow).samples();
            let rtt = samples
                .iter()
                .filter_map(|sample| Some((seconds(sample.at), sample.rtt?.as_secs_f64() * 1e3)));
            let goodput = samples.windows(10).step_by(10).map(|ten| {
                let span = (seconds(ten[9].at) - seconds(ten[0].at)) * 10.0 / 9.0;
                let bits: u64 = ten.iter().map(|sample| sample.content.as_bits()).sum();
                (seconds(ten[9].at), bits as f64 / span / 1e6)
            });
            let of_samples = |value: fn(&Sample) -> Option<f64>| -> Vec<(f64, f64)> {
                let points = samples.iter().map(|it| (seconds(it.at), value(it)));
                points
                    .filter_map(|(at, value)| Some((at, value?)))
                    .collect()
            };
            let curves = [
                (
                    "window",
                    "requests",
                    of_samples(|it| it.window.map(f64::from)),
                ),
                (
                    "spare",
                    "requests",
                    of_samples(|it| it.spare.map(f64::from)),
                ),
                ("estimate", "Mbit/s", self.estimates(flow)),
                ("rtt", "ms", rtt.collect()),
                ("goodput", "Mbit/s", goodput.collect()),
            ];
            for (name, unit, points) in curves {
                outcome.series.push(Series {
                    name: format!("{name}-{number}"),
                    unit: unit.to_owned(),
                    points,
                });
            }
        }
    }
}

fn pit(scenario: &NetworkScenario) -> forward::PitConfig {
    let mut pit = forward::PitConfig::default();
    if scenario.strategy == Strategy::Ccnx {
        pit.suppression = forward::Suppression {
            initial: Duration::MAX,
            max: Duration::MAX,
            multiplier: 1,
        };
    }
    pit
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), it| (sum + it, count + 1));
    sum / f64::from(count)
}

fn seconds(at: Instant) -> f64 {
    at.since(Instant::ZERO).as_secs_f64()
}

/// A link's rate from each time on.
fn capacity(config: &netem::Config) -> Vec<(Duration, Bitrate)> {
    let first = config.rate.as_ref().and_then(netem::Rate::constant);
    let first = first.map(|rate| (Duration::ZERO, rate));
    let steps = config
        .schedule
        .iter()
        .filter_map(|step| Some((step.at, step.rate?)));
    first.into_iter().chain(steps).collect()
}
