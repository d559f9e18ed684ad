//! Nodes, links and applications, and the loop that runs them.

mod build;
mod livelock;
mod queue;
mod run;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use namecast_apps::{Application, Now};
use namecast_forward as forward;
use namecast_forward::{FaceConfig, FaceId, Forwarder, SendQueueConfig, StrategyKind};
use namecast_netem as netem;
use namecast_packet::Name;
use namecast_units::{ByteSize, Instant};
use smallvec::SmallVec;

use crate::application::Hosted;
use crate::clock::HostClock;
use crate::hop::CustomHop;
use crate::topology::{LinkIndex, NodeIndex};
use crate::trace::{LinkSink, Sink};

pub use build::NodeConfig;
pub use livelock::MAX_CALLS_AT_INSTANT;
use queue::EventQueue;

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
/// Methods panic on indices that the network does not have: those are the caller's own. Those that let time pass panic if a
/// node or application never lets it, which is a bug: see [`MAX_CALLS_AT_INSTANT`].
pub struct Network {
    now: Instant,
    nodes: Vec<Node>,
    /// Two for each link: 2·link from its first end, 2·link + 1 from its second.
    directions: Vec<Direction>,
    applications: Vec<Running>,
    events: EventQueue<Part>,
    /// Each until it has happened.
    actions: Vec<Option<Action>>,
    work: VecDeque<Work>,
    tally: livelock::Tally,
    /// What the system buffers for a direction before which a node has a queue of its own. Others take all at once.
    socket_buffers: BTreeMap<usize, SocketBuffer>,
    /// Memory that each link has for what comes out of it while it is its turn.
    outputs: VecDeque<netem::Output>,
    sink: Option<Box<dyn Sink>>,
    link_sink: Option<Box<dyn LinkSink>>,
    hops: u64,
}

/// What the system buffers for a socket.
#[derive(Clone, Copy, Debug)]
struct SocketBuffer {
    size: ByteSize,
    /// Whether a frame found no room since it was less than half full.
    is_full: bool,
}

impl SocketBuffer {
    /// Returns the room for another frame if so many octets are buffered: Linux says that a socket has room again when less than
    /// half of its buffer is taken.
    fn room(&mut self, taken: ByteSize) -> ByteSize {
        self.is_full &= taken.as_bytes() * 2 >= self.size.as_bytes();
        match (taken, self.is_full) {
            // A frame that is larger is buffered alone.
            (ByteSize::ZERO, _) => ByteSize::bytes(u64::MAX),
            (_, true) => ByteSize::ZERO,
            (taken, false) => self.size - taken,
        }
    }
}

/// Who has a deadline in the event queue, by place in its list. Places are short, as there are many parts.
#[derive(Clone, Copy, Debug)]
enum Part {
    Node(u32),
    Direction(u32),
    Application(u32),
    Action(u32),
}

/// A place in a list, as parts have it.
fn short(place: usize) -> u32 {
    u32::try_from(place).expect("memory ends before 2^32 parts")
}

/// In lines of the processor's caches, which do not hold many nodes: what frames touch comes first.
#[repr(C, align(64))]
struct Node {
    /// What is behind each face, from the first on. Few have more than fit here.
    attachments: SmallVec<[Attachment; 4]>,
    clock: HostClock,
    part: u32,
    is_up: bool,
    node: forward::Node,
    setup: Setup,
}

/// What a node is started with, and started again with after a failure.
struct Setup {
    name: String,
    config: Arc<forward::Config>,
    strategy: Option<StrategyKind>,
    hops: Vec<CustomHop>,
    /// What the forwarder was told of each face, and the queue that the node has before it, if any.
    faces: Vec<(FaceConfig, Option<SendQueueConfig>)>,
    /// In the order in which they were added.
    routes: Vec<(Name, FaceId, u64)>,
}

#[derive(Clone, Copy, Debug)]
enum Attachment {
    Direction(u32),
    Application(u32),
}

/// As [`Node`], and of an odd number of lines, so that the first ones of many do not contend for a few places of the caches.
#[repr(C, align(64))]
struct Direction {
    part: u32,
    to: (NodeIndex, FaceId),
    link: netem::Link,
}

const _: () = assert!(cfg!(not(target_pointer_width = "64")) || size_of::<Direction>() == 7 * 64);

struct Running {
    application: Box<dyn Hosted>,
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
        &self.nodes[node].setup.name
    }

    /// A node's forwarder and links, to look at.
    pub fn node(&self, node: NodeIndex) -> &forward::Node {
        &self.nodes[node].node
    }

    /// A node's tables, to look at.
    pub fn forwarder(&self, node: NodeIndex) -> &Forwarder {
        &self.node(node).forwarder
    }

    /// The emulated direction of a link that starts at its first end, or at its second.
    pub fn direction(&self, link: LinkIndex, from_second: bool) -> &netem::Link {
        &self.directions[2 * link + usize::from(from_second)].link
    }

    /// The octets that wait for that direction in the queue that its node has of its own.
    pub fn queued_in_node(&self, link: LinkIndex, from_second: bool) -> ByteSize {
        let (node, face) = self.near_end(2 * link + usize::from(from_second));
        let link = self.nodes[node].node.link(face);
        link.map_or(ByteSize::ZERO, |link| link.queued())
    }

    /// The face at which `node` meets `link`, if it does.
    pub fn face_of(&self, node: NodeIndex, link: LinkIndex) -> Option<FaceId> {
        let ends = [self.near_end(2 * link), self.directions[2 * link].to];
        ends.iter()
            .find(|(end, _)| *end == node)
            .map(|&(_, face)| face)
    }

    /// Where a direction starts: the end of the opposite one.
    fn near_end(&self, direction: usize) -> (NodeIndex, FaceId) {
        self.directions[direction ^ 1].to
    }

    /// An application, if it is of that type.
    pub fn application<A: Application + 'static>(&self, id: ApplicationId) -> Option<&A> {
        let application: &dyn std::any::Any = &*self.applications[id.0].application;
        application.downcast_ref()
    }

    /// Changes an application, then sends what it wants to send.
    pub fn with_application<A: Application + 'static, R>(
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

    /// Reports every frame that leaves a link to `sink` from now on.
    pub fn set_link_sink(&mut self, sink: Box<dyn LinkSink>) {
        self.link_sink = Some(sink);
    }

    /// Takes the sink back, to read or finish it.
    pub fn take_sink(&mut self) -> Option<Box<dyn Sink>> {
        self.sink.take()
    }
}
