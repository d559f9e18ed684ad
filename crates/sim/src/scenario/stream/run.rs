//! One run of a stream scenario.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use namecast_apps::object::{Server, ServerConfig, ServerError};
use namecast_apps::sequence::Fetcher;
use namecast_forward as forward;
use namecast_netem as netem;
use namecast_packet::Name;
use namecast_stream::path::Weight;
use namecast_stream::{ProducerConfig, StreamKind};
use namecast_units::{ByteSize, Duration, Instant, Random};

use super::super::fetching::Fetching;
use super::super::forwarding::Routes;
use super::super::hops;
use super::super::network::Medium;
use super::super::place::{Direction, change_link, directions, find};
use super::super::{Outcome, ScenarioError};
use super::StreamScenario;
use super::measure::{self, Sample};
use super::observed::{Observed, Snapshot, Viewing, WatcherSnapshot, main_stats};
use super::passage::{Passage, Shared};
use super::path::BaseDelay;
use super::publishing::{NextHops, Published};
use super::spec::{Signature, WatcherSpec};
use super::talks;
use crate::clock::EPOCH;
use crate::live::{
    LivePublisher, LivePublisherConfig, LiveTalker, LiveWatcher, LiveWatcherConfig, Media, Shown,
    Signing,
};
use crate::network::{ApplicationId, Network, NodeConfig};
use crate::topology::routes::Graph;
use crate::topology::{NodeIndex, Topology};

/// Content of each segment of an object, in octets.
const OBJECT_SEGMENT: usize = 1_000;

pub(in super::super) struct Run<'a> {
    pub(super) scenario: &'a StreamScenario,
    network: Network,
    published: Vec<Published>,
    publishers: Vec<ApplicationId>,
    pub(super) watchers: Vec<Watching<'a>>,
    /// Fetchers of flows.
    flows: Vec<ApplicationId>,
    /// Sides of calls.
    talkers: Vec<ApplicationId>,
    /// Directions of links to tell about, with their rates at the start in bits per second; infinite if they have none.
    links: Vec<(Direction, f64)>,
    /// What passed these links.
    pub(super) passage: Shared,
    /// The rate of the first of them, if it follows a schedule.
    pub(super) schedule: Option<Arc<netem::Schedule>>,
}

/// One watcher.
pub(super) struct Watching<'a> {
    pub(super) spec: &'a WatcherSpec,
    node: NodeIndex,
    application: ApplicationId,
    /// Its place among those that share the uplink.
    place: usize,
    pub(super) joined_at: Instant,
    /// The stream that metrics are of, and when its frame at position 0 is captured.
    pub(super) media: Media,
    pub(super) origin: Instant,
    sound: Option<Media>,
    base: BaseDelay,
}

impl<'a> Run<'a> {
    /// A run at its beginning. Files are looked for in `base`.
    ///
    /// # Errors
    /// If the scenario is not valid.
    pub(in super::super) fn new(
        scenario: &'a StreamScenario,
        base: &Path,
        seed: u64,
    ) -> Result<Self, ScenarioError> {
        scenario.validate(base)?;
        if scenario.medium != Medium::Simulator {
            let problem = "the simulator runs 'simulator' only";
            return Err(ScenarioError::new("medium", problem));
        }
        let mut topology = scenario.topology(base)?;
        let mut random = Random::from_seed(seed);
        let changed_at = schedule_links(scenario, &mut topology, &mut random)?;
        let hops = hops::named_hops(&scenario.hops)?;
        let config = |node: NodeIndex| NodeConfig {
            forwarder: forward::Config {
                content_store: forward::ContentStoreConfig::with_capacity(
                    *(scenario.caches)
                        .get(&topology.nodes[node].name)
                        .unwrap_or(&scenario.cache),
                ),
                ..forward::Config::default()
            },
            strategy: Some(scenario.strategy.into()),
            hops: hops.clone(),
            ..NodeConfig::default()
        };
        let links = scenario.links.iter().map(|link| {
            let direction = Direction::parse(link, &topology)
                .map_err(|problem| ScenarioError::new("links", problem))?;
            let rate = direction.config(&topology).rate.as_ref();
            let rate = rate.and_then(netem::Rate::mean);
            let rate = rate.map_or(f64::INFINITY, |rate| rate.as_bps() as f64);
            Ok((direction, rate))
        });
        let links = links.collect::<Result<Vec<_>, _>>()?;
        let network = Network::new(&topology, random.next_u64(), config);
        let published = Published::all(scenario, random.next_u64());
        let mut run = Self {
            scenario,
            passage: passage(scenario, &links, &published)?,
            schedule: schedule(&links, &topology),
            links,
            network,
            published,
            publishers: Vec::new(),
            watchers: Vec::new(),
            flows: Vec::new(),
            talkers: Vec::new(),
        };
        run.add_publishers(&topology)?;
        for watcher in &scenario.watchers {
            for number in 1..=watcher.count {
                run.add_watcher(&topology, watcher, number, &mut random)?;
            }
        }
        run.schedule_weights(&changed_at);
        run.schedule_failures(&topology, &changed_at)?;
        let mut fetching = Fetching::new(&topology, scenario.packet, scenario.routes);
        for flow in &scenario.flows {
            for number in 1..=flow.count {
                let network = &mut run.network;
                let fetched = fetching.add(network, (flow, number), &mut random, |config| {
                    config.sample_interval = None;
                })?;
                run.flows.push(fetched.application);
            }
        }
        run.add_talks(&topology)?;
        if !run.links.is_empty() {
            run.network.set_link_sink(Box::new(Rc::clone(&run.passage)));
        }
        Ok(run)
    }

    fn signing(&self) -> Signing {
        match self.scenario.signature {
            Signature::Ed25519 => Signing::default(),
            Signature::Hmac => Signing::Hmac,
        }
    }

    fn add_publishers(&mut self, topology: &Topology) -> Result<(), ScenarioError> {
        let wrong = |problem: String| ScenarioError::new("publishers", problem);
        let graph = Graph::new(topology);
        let mut next_hops = NextHops::new();
        for published in &self.published {
            let publisher = &published.spec;
            let node = find(topology, &publisher.node).map_err(wrong)?;
            let root = name(&publisher.prefix)?;
            let application = LivePublisher::new(LivePublisherConfig {
                signing: self.signing(),
                start: published.start,
                stop: publisher.stop,
                shared_since: publisher.shared.then_some(EPOCH),
                producer: ProducerConfig {
                    headers: publisher.headers as usize,
                    ..ProducerConfig::default()
                },
                ..LivePublisherConfig::new(root.clone(), published.media())
            });
            let id = self.network.add_application(node, application);
            self.publishers.push(id);
            self.find_ways((&graph, node), (&root, id), &mut next_hops);
        }
        self.add_routes(next_hops).map_err(wrong)
    }

    /// Adds the ways to an application that serves `root` at a node.
    fn find_ways(
        &self,
        (graph, node): (&Graph, NodeIndex),
        (root, id): (&Name, ApplicationId),
        next_hops: &mut NextHops,
    ) {
        let own = (root.clone(), node, self.network.application_face(id));
        next_hops.insert(own, 0);
        for (at, ways) in graph.all_next_hops(node).into_iter().enumerate() {
            let taken = match self.scenario.routes {
                Routes::Shortest => 1,
                Routes::All => usize::MAX,
            };
            for way in ways.into_iter().take(taken) {
                let face = self.network.face_of(at, way.link);
                let face = face.expect("a way starts at its node");
                let cost = next_hops
                    .entry((root.clone(), at, face))
                    .or_insert(way.cost);
                *cost = way.cost.min(*cost);
            }
        }
    }

    fn add_routes(&mut self, next_hops: NextHops) -> Result<(), String> {
        for ((prefix, node, face), cost) in next_hops {
            let added = self.network.add_route(node, prefix, face, cost);
            added.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn add_talks(&mut self, topology: &Topology) -> Result<(), ScenarioError> {
        let wrong = |problem: String| ScenarioError::new("caller", problem);
        let graph = Graph::new(topology);
        let mut next_hops = NextHops::new();
        for (node, config) in talks::all(&self.scenario.publishers) {
            let node = find(topology, &node).map_err(wrong)?;
            let root = config.root.clone();
            let id = self.network.add_application(node, LiveTalker::new(config));
            self.talkers.push(id);
            self.find_ways((&graph, node), (&root, id), &mut next_hops);
        }
        self.add_routes(next_hops).map_err(wrong)
    }

    /// Both sides of each call, one after the other.
    pub(super) fn talkers(&self) -> Vec<&LiveTalker> {
        let talkers = self.talkers.iter();
        let talkers = talkers.map(|id| self.network.application(*id));
        talkers
            .map(|talker| talker.expect("talkers are talkers"))
            .collect()
    }

    fn add_watcher(
        &mut self,
        topology: &Topology,
        spec: &'a WatcherSpec,
        number: u32,
        random: &mut Random,
    ) -> Result<(), ScenarioError> {
        let wrong = |problem: String| ScenarioError::new("watchers", problem);
        let node = find(topology, &spec.node(number)).map_err(wrong)?;
        let prefix = spec.prefix(number);
        let root = name(&prefix)?;
        let stagger = spec.stagger * (number - 1);
        let start = spec.start + stagger + spec.start_spread.mul_f64(random.unit());
        let config = LiveWatcherConfig {
            watcher: spec
                .config(root.clone(), random.next_u64())
                .map_err(wrong)?,
            signing: self.signing(),
            start,
            stop: spec.stop,
            object: spec.object.map(|_| object_name(&root)),
            ..LiveWatcherConfig::new(root)
        };
        let (application, place) = self.add_to_uplink((node, spec), config);
        let mut published = self.published.iter();
        let published = published.find(|published| published.spec.prefix == prefix);
        let published = published.expect("it was validated");
        let find_stream = |kind: StreamKind| {
            let mut streams = published.media().into_iter();
            streams.find(|media| media.kind == kind)
        };
        let media = find_stream(spec.main_kind());
        let sound = find_stream(StreamKind::Audio).filter(|_| spec.audio && spec.video);
        let producer = find(topology, &published.spec.node).map_err(wrong)?;
        let origin = match published.spec.shared {
            true => Instant::ZERO,
            false => Instant::ZERO + published.start,
        };
        self.watchers.push(Watching {
            spec,
            node,
            application,
            place,
            joined_at: Instant::ZERO + start,
            media: media.expect("it was validated"),
            origin,
            sound,
            base: BaseDelay::new(topology, producer, node),
        });
        match spec.object {
            Some(size) => self
                .serve_object(producer, &name(&prefix)?, size)
                .map_err(wrong),
            None => Ok(()),
        }
    }

    /// Serves an object of this size under `root` at `node`, with the key of `root`.
    fn serve_object(&mut self, node: NodeIndex, root: &Name, size: ByteSize) -> Result<(), String> {
        let name = object_name(root);
        let config = ServerConfig {
            segment_size: OBJECT_SEGMENT,
            ..ServerConfig::new(name.clone())
        };
        let (signer, certificate) = self.signing().signer(root);
        let text = |error: ServerError| error.to_string();
        let mut server = Server::new(config, signer, certificate).map_err(text)?;
        let content = vec![0x5a; size.as_bytes() as usize];
        server
            .put(name.clone(), content.into(), EPOCH)
            .map_err(text)?;
        let id = self.network.add_application(node, server);
        let face = self.network.application_face(id);
        let added = self.network.add_route(node, name, face, 0);
        added.map_err(|error| error.to_string())
    }

    /// Adds a watcher to the program of others of its node, if it shares their uplink.
    fn add_to_uplink(
        &mut self,
        (node, spec): (NodeIndex, &WatcherSpec),
        config: LiveWatcherConfig,
    ) -> (ApplicationId, usize) {
        let mut others = self.watchers.iter();
        let other =
            others.find(|it| it.node == node && it.spec.shared_uplink && spec.shared_uplink);
        let Some(application) = other.map(|other| other.application) else {
            let watcher = LiveWatcher::new(config);
            return (self.network.add_application(node, watcher), 0);
        };
        let add = |live: &mut LiveWatcher, _| live.add(config);
        let place = self.network.with_application(application, add);
        (application, place.expect("watchers are watchers"))
    }

    fn schedule_weights(&mut self, changed_at: &[Duration]) {
        for (change, &at) in self.scenario.changes.iter().zip(changed_at) {
            let (Some(place), Some(weight)) = (change.watcher, change.weight) else {
                continue;
            };
            let Watching {
                application, place, ..
            } = self.watchers[place - 1];
            self.network.schedule(Instant::ZERO + at, move |network| {
                network.with_application(application, |watchers: &mut LiveWatcher, now| {
                    watchers.set_weight(now, place, Weight::new(weight));
                });
            });
        }
    }

    fn schedule_failures(
        &mut self,
        topology: &Topology,
        changed_at: &[Duration],
    ) -> Result<(), ScenarioError> {
        let wrong = |problem: String| ScenarioError::new("changes", problem);
        for (change, &at) in self.scenario.changes.iter().zip(changed_at) {
            let Some(up) = change.up else { continue };
            let at = Instant::ZERO + at;
            if let Some(link) = &change.link {
                let link = directions(link, topology).map_err(wrong)?[0].link;
                self.network
                    .schedule(at, move |network| network.set_link_up(link, up));
            } else if let Some(node) = &change.node {
                let node = find(topology, node).map_err(wrong)?;
                self.network
                    .schedule(at, move |network| network.set_node_up(node, up));
            } else if let Some(place) = change.publisher {
                let publisher = self.publishers[place - 1];
                self.network.schedule(at, move |network| {
                    network.with_application(publisher, |publisher: &mut LivePublisher, now| {
                        if up {
                            publisher.restart(now);
                        } else {
                            publisher.die();
                        }
                    });
                });
            }
        }
        Ok(())
    }

    /// How long it takes.
    pub(in super::super) const fn duration(&self) -> Duration {
        self.scenario.duration
    }

    /// The network, before it has run.
    pub(in super::super) const fn network(&mut self) -> &mut Network {
        &mut self.network
    }

    /// Lets it run to its end and measures.
    pub(in super::super) fn finish(mut self) -> Outcome {
        let mut snapshots = Vec::new();
        let mut fetched = Vec::new();
        let mut samples = Vec::new();
        let mut next_sample = Duration::ZERO;
        for edge in self.scenario.edges() {
            while next_sample <= edge {
                self.network.run_until(Instant::ZERO + next_sample);
                samples.push(self.sample(next_sample));
                next_sample += self.scenario.sample;
            }
            self.network.run_until(Instant::ZERO + edge);
            snapshots.push(self.snapshot(edge));
            fetched.push(self.fetched());
        }
        let observed = Observed {
            scenario: self.scenario,
            watchers: self.watchers.iter().map(|it| self.viewing(it)).collect(),
            snapshots,
            link_rates: self.links.iter().map(|(_, rate)| *rate).collect(),
        };
        measure::outcome(&self, &observed, &samples, &fetched)
    }

    /// Returns the content that each flow has received so far.
    fn fetched(&self) -> Vec<ByteSize> {
        let fetchers = self.flows.iter().map(|id| {
            let fetcher: Option<&Fetcher> = self.network.application(*id);
            fetcher.expect("flows run fetchers").figures().content
        });
        fetchers.collect()
    }

    fn viewing<'s>(&'s self, watching: &'s Watching<'_>) -> Viewing<'s> {
        let watcher = self.watcher(watching);
        Viewing {
            spec: watching.spec,
            joined_at: watching.joined_at,
            media: watching.media.clone(),
            origin: watching.origin,
            sound: watching.sound.clone(),
            base: Some(watching.base.clone()),
            records: watcher.records(),
            simulated: Some(watcher),
        }
    }

    pub(super) fn watcher(&self, watching: &Watching<'_>) -> Shown<'_> {
        let live: Option<&LiveWatcher> = self.network.application(watching.application);
        live.expect("watchers are watchers").shown(watching.place)
    }

    fn publisher(&self, id: ApplicationId) -> &LivePublisher {
        let publisher = self.network.application(id);
        publisher.expect("publishers are publishers")
    }

    fn snapshot(&self, at: Duration) -> Snapshot {
        let now = Instant::ZERO + at;
        let watchers = self.watchers.iter().map(|watching| {
            let watcher = self.watcher(watching);
            WatcherSnapshot {
                stats: watcher.stats(now).unwrap_or_default(),
                traffic: *watcher.traffic(),
                payload: watcher.payload(),
                object: watcher.object(),
            }
        });
        Snapshot {
            at,
            watchers: watchers.collect(),
            publishers: self
                .publishers
                .iter()
                .map(|id| *self.publisher(*id).traffic())
                .collect(),
            links: self
                .links
                .iter()
                .map(|(link, _)| self.counters(*link))
                .collect(),
        }
    }

    fn counters(&self, direction: Direction) -> netem::Counters {
        let Direction { link, from_second } = direction;
        *self.network.direction(link, from_second).counters()
    }

    fn sample(&self, at: Duration) -> Sample {
        let mut sample = Sample {
            at,
            events: self.network.pending_events() as u64,
            ..Sample::default()
        };
        for node in 0..self.network.nodes() {
            let forwarder = self.network.forwarder(node);
            sample.pit += forwarder.pending_interests() as u64;
            sample.cached += forwarder.content_store().size().as_bytes();
        }
        for id in &self.publishers {
            let publisher = self.publisher(*id);
            let (held, kept) = publisher.sizes();
            sample.producer_held += held as u64;
            sample.producer_cached += kept.as_bytes();
            sample.producer_size += publisher.traffic().data_size.as_bits();
        }
        for watching in &self.watchers {
            let sizes = self.watcher(watching).table_sizes();
            sample.watcher_samples += sizes.consumers.samples as u64;
            sample.watcher_outstanding += sizes.consumers.outstanding as u64;
            sample.watcher_buffered += sizes.consumers.buffered as u64;
            let watcher = self.watcher(watching);
            let capacity = watcher.bandwidth(watching.spec.main_kind());
            sample.capacities.push(capacity);
        }
        if self.scenario.series {
            self.sample_curves(&mut sample);
        }
        sample
    }

    fn sample_curves(&self, sample: &mut Sample) {
        let now = Instant::ZERO + sample.at;
        for watching in self.watchers.iter().take(super::MAX_TOLD) {
            let watcher = self.watcher(watching);
            let stats = watcher.stats(now).unwrap_or_default();
            let main = main_stats(watching.spec, &stats);
            let bandwidth = watcher.bandwidth(watching.spec.main_kind());
            sample.watchers.push(measure::WatcherSample {
                data_bits: watcher.traffic().data_size.as_bits(),
                lead: main.map(|main| main.interest_lead),
                drd: stats.rtt_ms,
                bandwidth: bandwidth.map(|rate| rate.as_bps() as f64 / 1e6),
                rung: stats.video.as_ref().and_then(|_| {
                    let mut rungs = watching.media.rungs.iter();
                    let rung = rungs.find(|rung| Some(&rung.name) == stats.rung.as_ref())?;
                    Some(rung.bitrate.as_bps() as f64 / 1e6)
                }),
            });
        }
        let links = self.links.iter();
        let delivered = links.map(|(link, _)| self.counters(*link).delivered_size.as_bits());
        sample.links = delivered.collect();
        let queues = self.links.iter().map(|(direction, _)| {
            let link = (self.network).direction(direction.link, direction.from_second);
            link.queue_delay().as_secs_f64() * 1e3
        });
        sample.queues = queues.collect();
    }
}

/// Puts changes of links' rates and delays where links find them; when each change takes place.
fn schedule_links(
    scenario: &StreamScenario,
    topology: &mut Topology,
    random: &mut Random,
) -> Result<Vec<Duration>, ScenarioError> {
    let mut changed_at = Vec::new();
    for change in &scenario.changes {
        let at = change.at + change.spread.mul_f64(random.unit());
        changed_at.push(at);
        let Some(link) = &change.link else { continue };
        let step = netem::Step {
            at,
            rate: change.rate,
            delay: change.delay,
        };
        change_link(topology, link, step)
            .map_err(|problem| ScenarioError::new("changes", problem))?;
    }
    Ok(changed_at)
}

/// What will see the frames that pass `links`.
fn passage(
    scenario: &StreamScenario,
    links: &[(Direction, f64)],
    published: &[Published],
) -> Result<Shared, ScenarioError> {
    let prefixes = published.iter();
    let prefixes = prefixes.map(|published| name(&published.spec.prefix));
    let prefixes = prefixes.collect::<Result<Vec<_>, _>>()?;
    // Without flows and calls, all Data is of streams.
    let has_calls = scenario.publishers.iter().any(|it| it.caller.is_some());
    let has_others = has_calls || !scenario.flows.is_empty();
    let prefixes = Some(prefixes).filter(|_| has_others);
    let links = links.iter();
    let links = links.map(|(direction, _)| (direction.link, direction.from_second));
    let passage = Passage::new(links.collect(), &scenario.all_windows(), prefixes);
    Ok(Rc::new(RefCell::new(passage)))
}

/// The schedule of the first of `links`.
fn schedule(links: &[(Direction, f64)], topology: &Topology) -> Option<Arc<netem::Schedule>> {
    let (direction, _) = links.first()?;
    let rate = direction.config(topology).rate.as_ref()?;
    rate.schedule()
}

fn name(text: &str) -> Result<Name, ScenarioError> {
    let name = text.parse::<Name>();
    name.map_err(|error| ScenarioError::new("prefix", format!("'{text}' is no name: {error}")))
}

/// Name of the object that is served beside the stream `root`.
fn object_name(root: &Name) -> Name {
    root.builder().generic("object").finish()
}
