//! A network with publishers and watchers, in a few words.

use std::ops::Range;
use std::time::Duration;

use namecast_forward::StrategyKind;
use namecast_netem as netem;
use namecast_packet::Name;
use namecast_sim::live::{
    LivePublisher, LivePublisherConfig, LiveWatcher, LiveWatcherConfig, Media, Signing,
};
use namecast_sim::topology::{LinkIndex, NodeIndex, Topology, routes};
use namecast_sim::{ApplicationId, HostClock, Network, NodeConfig};
use namecast_stream::StreamKind;
use namecast_units::{Bitrate, Instant};

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn root() -> Name {
    "/demo".parse().unwrap()
}

/// Watches `/demo` from the start, all defaults.
pub(crate) fn watch() -> LiveWatcherConfig {
    LiveWatcherConfig::new(root())
}

/// A link of 100 Mbit/s.
pub(crate) fn link(delay: Duration) -> netem::Config {
    netem::Config {
        rate: Some(Bitrate::mbps(100).into()),
        delay,
        ..netem::Config::default()
    }
}

pub(crate) struct LiveWorld {
    pub(crate) network: Network,
    pub(crate) topology: Topology,
    pub(crate) signing: Signing,
}

impl LiveWorld {
    /// P – R – C.
    pub(crate) fn line(delay: Duration) -> Self {
        Self::line_with_clock(delay, "", HostClock::default())
    }

    /// P – R – C, where `host` has `clock`.
    pub(crate) fn line_with_clock(delay: Duration, host: &str, clock: HostClock) -> Self {
        let links = [("P", "R"), ("R", "C")];
        Self::of(&links, &link(delay), |node| NodeConfig {
            clock: if node == host {
                clock
            } else {
                HostClock::default()
            },
            ..NodeConfig::default()
        })
    }

    /// P – R – C, where all that reaches C comes through `bottleneck`; signed with HMACs, as that takes less time.
    pub(crate) fn behind(bottleneck: &netem::Config) -> Self {
        let mut topology = Topology::default();
        let nodes = ["P", "R", "C"].map(|name| topology.add_node(name));
        topology.connect(nodes[0], nodes[1], &link(ms(0)));
        topology.connect(nodes[1], nodes[2], bottleneck);
        Self {
            network: Network::new(&topology, 1, |_| NodeConfig::default()),
            topology,
            signing: Signing::Hmac,
        }
    }

    /// Nodes and links by name; `configure` gets each node's name.
    pub(crate) fn of(
        links: &[(&str, &str)],
        link: &netem::Config,
        configure: impl Fn(&str) -> NodeConfig,
    ) -> Self {
        let mut topology = Topology::default();
        for (from, to) in links {
            let ends = [from, to].map(|name| match topology.node(name) {
                Some(node) => node,
                None => topology.add_node(*name),
            });
            topology.connect(ends[0], ends[1], link);
        }
        let network = Network::new(&topology, 1, |node| configure(&topology.nodes[node].name));
        Self {
            network,
            topology,
            signing: Signing::default(),
        }
    }

    pub(crate) fn node(&self, name: &str) -> NodeIndex {
        self.topology.node(name).unwrap()
    }

    /// The link between two nodes.
    pub(crate) fn link(&self, from: &str, to: &str) -> LinkIndex {
        let ends = (self.node(from), self.node(to));
        let is_it = |have: (NodeIndex, NodeIndex)| have == ends || (have.1, have.0) == ends;
        let mut links = self.topology.links.iter();
        links.position(|link| is_it(link.ends)).unwrap()
    }

    /// Publishes `/demo` on a host, with shortest routes to it.
    pub(crate) fn publish(&mut self, host: &str, media: Vec<Media>) -> ApplicationId {
        let config = LivePublisherConfig {
            signing: self.signing,
            ..LivePublisherConfig::new(root(), media)
        };
        self.publish_as(host, config)
    }

    pub(crate) fn publish_as(&mut self, host: &str, config: LivePublisherConfig) -> ApplicationId {
        let node = self.node(host);
        let towards = routes::towards(&self.topology, node);
        let publisher = LivePublisher::new(config);
        self.network
            .add_producer(node, &root(), publisher, &towards)
            .unwrap()
    }

    /// The same, with every way that leads nearer.
    pub(crate) fn publish_everywhere(&mut self, host: &str, media: Vec<Media>) -> ApplicationId {
        let id = self.publish(host, media);
        let ways = routes::all_next_hops(&self.topology, self.node(host));
        for (at, ways) in ways.into_iter().enumerate() {
            for way in ways {
                let face = self.network.face_of(at, way.link).unwrap();
                self.network.add_route(at, root(), face, way.cost).unwrap();
            }
        }
        id
    }

    pub(crate) fn watch(&mut self, host: &str, config: LiveWatcherConfig) -> ApplicationId {
        let config = LiveWatcherConfig {
            signing: self.signing,
            ..config
        };
        let node = self.node(host);
        self.network.add_application(node, LiveWatcher::new(config))
    }

    pub(crate) fn watcher(&self, id: ApplicationId) -> &LiveWatcher {
        self.network.application(id).unwrap()
    }

    pub(crate) fn publisher(&self, id: ApplicationId) -> &LivePublisher {
        self.network.application(id).unwrap()
    }

    pub(crate) fn with_publisher(
        &mut self,
        at: Duration,
        id: ApplicationId,
        change: impl FnOnce(&mut LivePublisher, namecast_sim::Now) + 'static,
    ) {
        self.network.schedule(Instant::ZERO + at, move |network| {
            network.with_application(id, change);
        });
    }

    pub(crate) fn node_down(&mut self, name: &str, span: Range<Duration>) {
        let node = self.node(name);
        for (at, is_up) in [(span.start, false), (span.end, true)] {
            self.network.schedule(Instant::ZERO + at, move |network| {
                network.set_node_up(node, is_up)
            });
        }
    }

    pub(crate) fn run_until(&mut self, time: Duration) {
        self.network.run_until(Instant::ZERO + time);
    }

    pub(crate) fn now(&self) -> Instant {
        self.network.now()
    }

    /// Positions shown in time, in order, of frames that were captured in `span` by a publisher whose clock is right.
    pub(crate) fn rendered(
        &self,
        id: ApplicationId,
        kind: StreamKind,
        span: Range<Duration>,
    ) -> Vec<u64> {
        let zero = HostClock::default().read(Instant::ZERO).wall;
        let span = zero + span.start..zero + span.end;
        let records = self.watcher(id).records().iter();
        let shown = records.filter(|record| {
            record.stream == kind && record.is_rendered() && span.contains(&record.captured_at)
        });
        shown.map(|record| record.position).collect()
    }
}

/// A node that asks all ways at once.
pub(crate) fn multicast() -> NodeConfig {
    NodeConfig {
        strategy: Some(StrategyKind::Multicast),
        ..NodeConfig::default()
    }
}
