//! Nodes with relays between them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use namecast_forward::StrategyKind;
use namecast_net::{FaceId, FaceUri, Listener, Node, NodeConfig, TrafficStatus, UdpConfig};
use namecast_netem as netem;
use namecast_packet::Name;
use namecast_sim::CustomHop;
use namecast_sim::live::Traffic;
use namecast_sim::topology::NodeIndex;
use namecast_units::{ByteSize, Duration, Random};

use super::super::laboratory::Refusal;
use super::broken;
use crate::impair::{Drops, Flow, Relay, RelayConfig, Report};

/// A port of this machine that the system chooses.
const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// Time without datagrams that a relay outlives, beyond that of a run.
const IDLE: Duration = Duration::from_secs(60);

/// Nodes, and links between them.
#[derive(Debug)]
pub(super) struct Layout {
    /// Cache of each node.
    pub(super) caches: Vec<ByteSize>,
    /// Strategy of each node.
    pub(super) strategy: StrategyKind,
    /// What each node asks about its packets.
    pub(super) rules: Vec<CustomHop>,
    pub(super) hops: Vec<Hop>,
    /// Names that Interests on these links have.
    pub(super) prefixes: Vec<Name>,
    /// How long the run takes.
    pub(super) duration: Duration,
}

/// A link that Interests take.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Hop {
    /// Who sends Interests.
    pub(super) from: NodeIndex,
    /// Who is nearer to the publisher.
    pub(super) to: NodeIndex,
    /// What the way by this link costs.
    pub(super) cost: u64,
    /// The way of Interests.
    pub(super) interests: netem::Config,
    /// The way of Data.
    pub(super) data: netem::Config,
}

/// All nodes, and a relay for each link that Interests take. They stop when it is dropped.
#[derive(Debug)]
pub(super) struct World {
    nodes: Vec<Node>,
    /// One socket of each node for whoever sends it Interests.
    listeners: Vec<Listener<SocketAddr>>,
    relays: Vec<Relay>,
}

impl World {
    /// Starts all nodes and connects them.
    ///
    /// # Errors
    /// If the system gives no socket or thread.
    pub(super) async fn start(layout: &Layout, seed: u64) -> Result<Self, Refusal> {
        let mut world = Self {
            nodes: Vec::new(),
            listeners: Vec::new(),
            relays: Vec::new(),
        };
        for &cache in &layout.caches {
            // Routers are other machines to each other.
            let config = NodeConfig {
                udp: UdpConfig {
                    loopback_is_local: false,
                    ..UdpConfig::default()
                },
                ..NodeConfig::caching(cache)
            };
            let rules = layout.rules.iter();
            let config = rules.fold(config, |config, rule| {
                let build = Arc::clone(&rule.build);
                config.hop(move |_| build())
            });
            let node = Node::start(config);
            let set = node.set_strategy(&Name::root(), layout.strategy);
            set.map_err(broken)?;
            let listener = node.listen_udp(ANY_PORT).await.map_err(broken)?;
            world.nodes.push(node);
            world.listeners.push(listener);
        }
        let mut random = Random::from_seed(seed);
        for hop in &layout.hops {
            world.connect(layout, hop, random.next_u64()).await?;
        }
        Ok(world)
    }

    async fn connect(&mut self, layout: &Layout, hop: &Hop, seed: u64) -> Result<(), Refusal> {
        let mut config = RelayConfig::new(ANY_PORT, *self.listeners[hop.to].address());
        config.forward = hop.interests.clone();
        config.backward = hop.data.clone();
        config.seed = seed;
        config.max_clients = 1;
        config.idle_timeout = layout.duration + IDLE;
        let relay = Relay::start(config).map_err(broken)?;
        let from = &self.nodes[hop.from];
        let face = from.connect(FaceUri::Udp(relay.address())).await;
        let face = face.map_err(broken)?;
        from.connected(face).await.map_err(broken)?;
        for prefix in &layout.prefixes {
            let added = from.add_route(prefix.clone(), face, hop.cost).await;
            added.map_err(broken)?;
        }
        self.relays.push(relay);
        Ok(())
    }

    pub(super) fn node(&self, node: NodeIndex) -> &Node {
        &self.nodes[node]
    }

    /// What passed a node's face to an application.
    ///
    /// # Errors
    /// If the node has stopped.
    pub(super) async fn traffic(
        &self,
        node: NodeIndex,
        face: FaceId,
    ) -> Result<ApplicationTraffic, Refusal> {
        let status = self.nodes[node].status().await.map_err(broken)?;
        let mut faces = status.faces.into_iter();
        let face = faces.find(|it| it.id == face.number());
        let face = face.ok_or_else(|| broken("an application lost its face"))?;
        Ok(ApplicationTraffic {
            sent: face.incoming,
            received: face.outgoing,
        })
    }

    /// What a link has counted so far: the way of Data, or that of Interests.
    ///
    /// # Errors
    /// If its relay has ended, which is a defect.
    pub(super) fn counters(&self, hop: usize, is_data: bool) -> Result<netem::Counters, Refusal> {
        let report = self.relays[hop].report();
        let report = report.ok_or_else(|| broken("a relay ended early"))?;
        Ok(counters(match is_data {
            true => &report.backward,
            false => &report.forward,
        }))
    }

    /// Ends everything. Returns the delay that 99 of 100 frames did not exceed beyond what their link wanted, in
    /// milliseconds, at the worst relay.
    pub(super) async fn stop(self) -> f64 {
        let reports: Vec<Report> = self.relays.into_iter().filter_map(Relay::stop).collect();
        drop(self.listeners);
        for node in self.nodes {
            node.shutdown().await;
        }
        let errors = reports.iter().map(|report| report.error_ms.p99);
        errors.fold(0.0, f64::max)
    }
}

/// Packets at an application's face, and octets of their frames.
#[derive(Clone, Copy, Debug)]
pub(super) struct ApplicationTraffic {
    sent: TrafficStatus,
    received: TrafficStatus,
}

impl ApplicationTraffic {
    /// As the simulator counts it, of one that sends Interests.
    pub(super) fn of_watcher(&self) -> Traffic {
        Traffic {
            interests: self.sent.interests,
            interest_size: ByteSize::bytes(self.sent.octets),
            data: self.received.data,
            data_size: ByteSize::bytes(self.received.octets),
            content_size: ByteSize::ZERO,
            nacks: self.received.nacks,
        }
    }

    /// As the simulator counts it, of one that sends Data.
    pub(super) fn of_publisher(&self) -> Traffic {
        Traffic {
            interests: self.received.interests,
            interest_size: ByteSize::bytes(self.received.octets),
            data: self.sent.data,
            data_size: ByteSize::bytes(self.sent.octets),
            content_size: ByteSize::ZERO,
            nacks: self.sent.nacks,
        }
    }
}

/// A relay's figures as the link behind it counted them.
fn counters(flow: &Flow) -> netem::Counters {
    let Drops {
        queue_full,
        active_queue,
        loss,
        down,
        in_flight_full,
    } = flow.dropped;
    let originals = flow.delivered - flow.duplicated;
    netem::Counters {
        delivered: flow.delivered,
        delivered_size: ByteSize::bytes(flow.delivered_bytes),
        marked: flow.marked,
        queue_full,
        active_queue,
        lost: loss,
        down,
        in_flight_full,
        duplicated: flow.duplicated,
        corrupted: flow.corrupted,
        queued_nanos: (flow.queue_ms_mean * 1e6 * originals as f64).round() as u64,
    }
}
