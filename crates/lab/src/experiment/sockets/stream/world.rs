//! Nodes with relays between them.

use core::fmt::Display;
use std::net::SocketAddr;

use namecast_net::{FaceId, FaceUri, Listener, Node, NodeConfig, TrafficStatus, UdpConfig};
use namecast_netem as netem;
use namecast_packet::Name;
use namecast_sim::live::Traffic;
use namecast_sim::topology::NodeIndex;
use namecast_units::{ByteSize, Duration, Random};

use super::super::super::laboratory::Refusal;
use super::super::ANY_PORT;
use super::stage::{Hop, Stage, Told};
use crate::impair::{Drops, Flow, Relay, RelayConfig, Report};

/// All nodes, and a relay for each link that Interests take. They stop when it is dropped.
#[derive(Debug)]
pub(super) struct World {
    nodes: Vec<Node>,
    /// One socket of each node for whoever sends it Interests.
    listeners: Vec<Listener<SocketAddr>>,
    relays: Vec<Relay>,
}

/// What the system or a node refused.
pub(super) fn broken(error: impl Display) -> Refusal {
    Refusal::from(format!("the run over sockets failed: {error}"))
}

impl World {
    /// Starts all nodes and connects them.
    ///
    /// # Errors
    /// If the system gives no socket or thread.
    pub(super) async fn start(stage: &Stage<'_>, seed: u64) -> Result<Self, Refusal> {
        let mut world = Self {
            nodes: Vec::new(),
            listeners: Vec::new(),
            relays: Vec::new(),
        };
        for &cache in &stage.caches {
            // Routers are other machines to each other.
            let node = Node::start(NodeConfig {
                udp: UdpConfig {
                    loopback_is_local: false,
                    ..UdpConfig::default()
                },
                ..NodeConfig::caching(cache)
            });
            let strategy = stage.scenario.strategy.into();
            let set = node.set_strategy(&Name::root(), strategy);
            set.map_err(broken)?;
            let listener = node.listen_udp(ANY_PORT).await.map_err(broken)?;
            world.nodes.push(node);
            world.listeners.push(listener);
        }
        let mut random = Random::from_seed(seed);
        for hop in &stage.hops {
            world.connect(stage, hop, random.next_u64()).await?;
        }
        Ok(world)
    }

    async fn connect(&mut self, stage: &Stage<'_>, hop: &Hop, seed: u64) -> Result<(), Refusal> {
        let mut config = RelayConfig::new(ANY_PORT, *self.listeners[hop.to].address());
        config.forward = hop.interests.clone();
        config.backward = hop.data.clone();
        config.seed = seed;
        config.max_clients = 1;
        config.idle_timeout = stage.scenario.duration + Duration::from_secs(60);
        let relay = Relay::start(config).map_err(broken)?;
        let from = &self.nodes[hop.from];
        let face = from.connect(FaceUri::Udp(relay.address())).await;
        let face = face.map_err(broken)?;
        from.connected(face).await.map_err(broken)?;
        for root in &stage.roots {
            let added = from.add_route(root.clone(), face, hop.cost).await;
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

    /// What each of the links to tell about has counted so far.
    ///
    /// # Errors
    /// If a relay has ended, which is a defect.
    pub(super) fn links(&self, told: &[Told]) -> Result<Vec<netem::Counters>, Refusal> {
        let of = |told: &Told| {
            let report = self.relays[told.hop].report();
            let report = report.ok_or_else(|| broken("a relay ended early"))?;
            Ok(counters(match told.is_data {
                true => &report.backward,
                false => &report.forward,
            }))
        };
        told.iter().map(of).collect()
    }

    /// Ends everything, and gives the relays' last reports.
    pub(super) async fn stop(self) -> Vec<Report> {
        let reports = self.relays.into_iter().filter_map(Relay::stop).collect();
        drop(self.listeners);
        for node in self.nodes {
            node.shutdown().await;
        }
        reports
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
        delivered_size: ByteSize::bytes(flow.delivered_octets),
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
