//! Nodes, links and applications, and the loop that runs them.

mod build;
mod queue;
mod run;

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use namecast_forward as forward;
use namecast_forward::{FaceConfig, FaceId, Forwarder, StrategyKind};
use namecast_netem as netem;
use namecast_packet::Name;
use namecast_units::Instant;

use crate::application::Application;
use crate::clock::{HostClock, Now};
use crate::topology::NodeIndex;
use crate::trace::Sink;

pub use build::NodeConfig;
use queue::EventQueue;

/// Place of a link in the network: the same as in the topology that it was made from.
pub type LinkIndex = usize;

/// Handle of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ApplicationId(usize);

/// A change that was scheduled.
type Action = Box<dyn FnOnce(&mut Network)>;

/// A network in virtual time.
///
/// Made from a topology by [`Network::new`]; then applications and routes are added, and [`run_until`](Self::run_until)
/// lets time pass. Frames are shared between nodes, not copied; memory is that of tables and of what is under way.
///
/// # Panics
/// Methods panic on indices that the network does not have: those are the caller's own.
pub struct Network {
    now: Instant,
    nodes: Vec<Node>,
    /// Two for each link: 2·link from its first end, 2·link + 1 from its second.
    directions: Vec<Direction>,
    applications: Vec<Running>,
    events: EventQueue,
    parts: Vec<Part>,
    /// Each until it has happened.
    actions: Vec<Option<Action>>,
    work: VecDeque<Work>,
    sink: Option<Box<dyn Sink>>,
    hops: u64,
}

/// Who has a deadline in the event queue.
#[derive(Clone, Copy, Debug)]
enum Part {
    Node(usize),
    Direction(usize),
    Application(usize),
    Action(usize),
}

struct Node {
    forwarder: Forwarder,
    clock: HostClock,
    is_up: bool,
    part: u32,
    /// What is behind each face, from the first on, and what the forwarder was told of it.
    faces: Vec<(Attachment, FaceConfig)>,
    /// What was set up, in order, to set it up again after a failure.
    routes: Vec<(Name, FaceId, u64)>,
    name: String,
    config: Arc<forward::Config>,
    strategy: Option<StrategyKind>,
}

#[derive(Clone, Copy, Debug)]
enum Attachment {
    Direction(usize),
    Application(usize),
}

struct Direction {
    link: netem::Link,
    part: u32,
    from: (NodeIndex, FaceId),
    to: (NodeIndex, FaceId),
}

struct Running {
    application: Box<dyn Application>,
    part: u32,
    node: NodeIndex,
    face: FaceId,
}

/// A frame that is handed over now.
enum Work {
    ToNode(NodeIndex, FaceId, Bytes),
    ToApplication(usize, Bytes),
}

impl Network {
    /// Virtual time since the start.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Frames that have crossed a link so far: one Interest or Data over one link is one hop.
    pub const fn hops(&self) -> u64 {
        self.hops
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// A node's name.
    pub fn node_name(&self, node: NodeIndex) -> &str {
        &self.nodes[node].name
    }

    /// A node's forwarding plane, to look at.
    pub fn forwarder(&self, node: NodeIndex) -> &Forwarder {
        &self.nodes[node].forwarder
    }

    /// The emulated direction of a link that starts at its first end, or at its second.
    pub fn direction(&self, link: LinkIndex, from_second: bool) -> &netem::Link {
        &self.directions[2 * link + usize::from(from_second)].link
    }

    /// The face at which `node` meets `link`, if it does.
    pub fn face_of(&self, node: NodeIndex, link: LinkIndex) -> Option<FaceId> {
        let ends = [self.directions[2 * link].from, self.directions[2 * link].to];
        ends.iter()
            .find(|(end, _)| *end == node)
            .map(|&(_, face)| face)
    }

    /// An application, if it is of that type.
    pub fn application<A: Application>(&self, id: ApplicationId) -> Option<&A> {
        let application: &dyn std::any::Any = &*self.applications[id.0].application;
        application.downcast_ref()
    }

    /// Changes an application, then sends what it wants to send.
    pub fn with_application<A: Application, R>(
        &mut self,
        id: ApplicationId,
        change: impl FnOnce(&mut A, Now) -> R,
    ) -> Option<R> {
        let running = &mut self.applications[id.0];
        let now = self.nodes[running.node].clock.read(self.now);
        let application: &mut dyn std::any::Any = &mut *running.application;
        let result = change(application.downcast_mut()?, now);
        self.drain_application(id.0);
        self.work_off();
        Some(result)
    }

    /// Hands every event to `sink` from now on.
    pub fn set_sink(&mut self, sink: Box<dyn Sink>) {
        self.sink = Some(sink);
    }

    /// Takes the sink back, to read or finish it.
    pub fn take_sink(&mut self) -> Option<Box<dyn Sink>> {
        self.sink.take()
    }
}
