//! Putting a network together, and taking parts of it down.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use namecast_apps::Application;
use namecast_forward as forward;
use namecast_forward::{
    AddRouteError, ExtensionFields, FaceConfig, FaceId, SendQueueConfig, StrategyKind,
};
use namecast_netem as netem;
use namecast_packet::Name;
use namecast_units::{Instant, Random};
use smallvec::SmallVec;

use super::livelock::Tally;
use super::queue::EventQueue;
use super::{
    Action, ApplicationId, Attachment, Direction, Network, Node, Part, Running, Setup,
    SocketBuffer, short,
};

use crate::clock::HostClock;
use crate::hop::CustomHop;
use crate::topology::{Link, LinkIndex, NodeIndex, Topology};

/// What a node is like.
#[derive(Clone, Debug, Default)]
pub struct NodeConfig {
    /// Its forwarder. The seed is mixed with the node's place, so that all nodes may share one configuration.
    pub forwarder: forward::Config,
    /// Strategy for all names; none: the forwarder's default.
    pub strategy: Option<StrategyKind>,
    /// Hops of one's own, which see the packets of all names.
    pub hops: Vec<CustomHop>,
    /// Its clocks.
    pub clock: HostClock,
}

impl Network {
    /// A network of `topology`; `configure` says what each node is like, and `seed` fixes the randomness of links.
    pub fn new(
        topology: &Topology,
        seed: u64,
        mut configure: impl FnMut(NodeIndex) -> NodeConfig,
    ) -> Self {
        let mut network = Self {
            now: Instant::ZERO,
            nodes: Vec::with_capacity(topology.nodes.len()),
            directions: Vec::with_capacity(2 * topology.links.len()),
            applications: Vec::new(),
            events: EventQueue::new(),
            actions: Vec::new(),
            work: VecDeque::new(),
            tally: Tally::default(),
            socket_buffers: BTreeMap::new(),
            outputs: VecDeque::new(),
            sink: None,
            link_sink: None,
            hops: 0,
        };
        for (index, node) in topology.nodes.iter().enumerate() {
            network.add_node(node.name.clone(), configure(index));
        }
        let mut random = Random::from_seed(seed);
        for link in &topology.links {
            network.connect(link, random.next_u64());
            let last = network.directions.len() - 1;
            network.directions[last].link =
                netem::Link::new(link.backward.clone(), random.next_u64());
        }
        network
    }

    fn add_node(&mut self, name: String, config: NodeConfig) {
        let index = self.nodes.len();
        let part = self.add_part(Part::Node(short(index)));
        let NodeConfig {
            forwarder: config,
            strategy,
            hops,
            clock,
        } = config;
        let config = self.shared(config);
        self.nodes.push(Node {
            attachments: SmallVec::new(),
            clock,
            part,
            is_up: true,
            node: empty_node(&config, strategy, &hops, index),
            setup: Setup {
                name,
                config,
                strategy,
                hops,
                faces: Vec::new(),
                routes: Vec::new(),
            },
        });
    }

    /// The configuration as simulated nodes have it, shared with the node before if that has the same.
    fn shared(&self, config: forward::Config) -> Arc<forward::Config> {
        let config = forward::Config {
            // Frames do not come in shared receive buffers here.
            keep: forward::Keep::Frames,
            ..config
        };
        match self.nodes.last() {
            Some(before) if *before.setup.config == config => Arc::clone(&before.setup.config),
            _ => Arc::new(config),
        }
    }

    /// Connects two nodes with a link that is the same in both directions.
    fn connect(&mut self, link: &Link, seed: u64) {
        let first = self.directions.len();
        let mut end = |from: NodeIndex, to: NodeIndex, direction: usize| {
            // Whether two nodes speak of extensions is not for a simulated network to find out.
            let has_hops = |node: NodeIndex| !self.nodes[node].setup.hops.is_empty();
            let extension_fields = match has_hops(from) && has_hops(to) {
                true => ExtensionFields::On,
                false => ExtensionFields::default(),
            };
            let config = FaceConfig {
                extension_fields,
                description: self.nodes[to].setup.name.clone(),
                mtu: link.service.mtu,
                reliability: link.service.reliability,
                ..FaceConfig::default()
            };
            if let Some(queue) = link.service.node_queue {
                let buffer = SocketBuffer {
                    size: queue.socket_buffer,
                    is_full: false,
                };
                self.socket_buffers.insert(direction, buffer);
            }
            let queue = link.service.node_queue.map(|queue| queue.send_queue);
            let attachment = Attachment::Direction(short(direction));
            (from, self.add_face(from, attachment, (config, queue)))
        };
        let near = end(link.ends.0, link.ends.1, first);
        let far = end(link.ends.1, link.ends.0, first + 1);
        for to in [far, near] {
            let part = self.add_part(Part::Direction(short(self.directions.len())));
            let link = netem::Link::new(link.forward.clone(), seed);
            self.directions.push(Direction { link, part, to });
        }
    }

    fn add_face(
        &mut self,
        node: NodeIndex,
        attachment: Attachment,
        face: (FaceConfig, Option<SendQueueConfig>),
    ) -> FaceId {
        let node = &mut self.nodes[node];
        let id = add_node_face(&mut node.node, face.clone());
        node.attachments.push(attachment);
        node.setup.faces.push(face);
        id
    }

    pub(super) fn add_part(&mut self, part: Part) -> u32 {
        self.events.add_part(part)
    }

    /// Starts an application on a node. Its first deadline counts from now.
    pub fn add_application(
        &mut self,
        node: NodeIndex,
        application: impl Application<Event: 'static> + 'static,
    ) -> ApplicationId {
        let config = FaceConfig::application("application");
        self.add_application_on(node, config, application)
    }

    /// Starts an application on a node, on a face like `config`.
    pub fn add_application_on(
        &mut self,
        node: NodeIndex,
        config: FaceConfig,
        application: impl Application<Event: 'static> + 'static,
    ) -> ApplicationId {
        let index = self.applications.len();
        let attachment = Attachment::Application(short(index));
        let face = self.add_face(node, attachment, (config, None));
        let part = self.add_part(Part::Application(short(index)));
        self.applications.push(Running {
            application: Box::new(application),
            part,
            node,
            face,
        });
        self.drain_application(index);
        self.work_off();
        ApplicationId(index)
    }

    /// The face that an application has at its node.
    pub fn application_face(&self, id: ApplicationId) -> FaceId {
        self.applications[id.0].face
    }

    /// Routes a prefix at `node` to one of its faces.
    ///
    /// # Errors
    /// If the forwarder refuses it.
    pub fn add_route(
        &mut self,
        node: NodeIndex,
        prefix: Name,
        face: FaceId,
        cost: u64,
    ) -> Result<(), AddRouteError> {
        let node = &mut self.nodes[node];
        (node.node.forwarder).add_route(prefix.clone(), face, cost)?;
        node.setup.routes.push((prefix, face, cost));
        Ok(())
    }

    /// Starts an application that answers for `prefix` on a node, with shortest routes to it from every node that
    /// `towards` says a way for: see [`Graph::towards`](crate::topology::routes::Graph::towards).
    ///
    /// # Errors
    /// If a forwarder refuses a route.
    pub fn add_producer(
        &mut self,
        node: NodeIndex,
        prefix: &Name,
        application: impl Application<Event: 'static> + 'static,
        towards: &[Option<LinkIndex>],
    ) -> Result<ApplicationId, AddRouteError> {
        let id = self.add_application(node, application);
        self.add_route(node, prefix.clone(), self.application_face(id), 0)?;
        for (index, link) in towards.iter().enumerate() {
            if let Some(face) = link.and_then(|link| self.face_of(index, link)) {
                self.add_route(index, prefix.clone(), face, 1)?;
            }
        }
        Ok(id)
    }

    /// Lets `action` happen at `at`, or now if that has passed.
    pub fn schedule(&mut self, at: Instant, action: impl FnOnce(&mut Self) + 'static) {
        let at = at.max(self.now);
        let index = self.actions.len();
        let action: Action = Box::new(action);
        self.actions.push(Some(action));
        let part = self.add_part(Part::Action(short(index)));
        self.events.wake(part, at);
    }

    /// Takes both directions of a link down, which loses what is under way, or up again.
    pub fn set_link_up(&mut self, link: LinkIndex, is_up: bool) {
        for index in [2 * link, 2 * link + 1] {
            self.at_direction(index, |link, now| link.set_up(now, is_up));
        }
        self.work_off();
    }

    /// Fails a node, or starts it again with its routes but with empty tables.
    ///
    /// While it is down, frames that reach it are lost and its applications do nothing; they find their own state as it
    /// was.
    pub fn set_node_up(&mut self, index: NodeIndex, is_up: bool) {
        let node = &mut self.nodes[index];
        if node.is_up == is_up {
            return;
        }
        node.is_up = is_up;
        if !is_up {
            return;
        }
        let setup = &node.setup;
        node.node = empty_node(&setup.config, setup.strategy, &setup.hops, index);
        for face in &setup.faces {
            add_node_face(&mut node.node, face.clone());
        }
        for (prefix, face, cost) in &setup.routes {
            node.node
                .forwarder
                .add_route(prefix.clone(), *face, *cost)
                .expect("it was accepted before");
        }
        for application in 0..self.applications.len() {
            if self.applications[application].node == index {
                self.drain_application(application);
            }
        }
        self.work_off();
    }

    /// Empties a node's content store.
    pub fn evict_all(&mut self, index: NodeIndex) {
        let store = self.nodes[index].node.forwarder.content_store_mut();
        store.erase(&Name::default(), usize::MAX);
    }

    /// Sets a host's wall clock, without its applications being told.
    pub fn set_wall_offset(&mut self, node: NodeIndex, micros: i64) {
        self.nodes[node].clock.wall_offset_micros = micros;
    }
}

fn empty_node(
    config: &Arc<forward::Config>,
    strategy: Option<StrategyKind>,
    hops: &[CustomHop],
    index: NodeIndex,
) -> forward::Node {
    let seed = config.seed ^ (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut node = forward::Node::sharing(Arc::clone(config), seed);
    if let Some(strategy) = strategy {
        node.forwarder
            .set_strategy(Name::default(), strategy)
            .expect("an empty table takes the empty name");
    }
    for hop in hops {
        node.forwarder.install((hop.build)());
    }
    node
}

fn add_node_face(
    node: &mut forward::Node,
    (config, queue): (FaceConfig, Option<SendQueueConfig>),
) -> FaceId {
    let face = node
        .add_face(config)
        .expect("bounds are wide enough for the topology");
    if let Some(queue) = queue {
        node.set_send_queue(face, queue);
    }
    face
}
