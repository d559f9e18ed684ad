//! What the rest of the crate asks of the event loop.

use std::collections::{BTreeMap, BTreeSet};

use namecast_forward::{FaceConfig, FaceId, LinkType, Scope, StrategyKind, Traffic};
use namecast_packet::Name;
use namecast_units::{ByteSize, Duration};
use tokio::sync::{oneshot, watch};

use super::{LinkState, ListenerEntry, NodeError, NodeStatus, Persistency};
use crate::FaceUri;
use crate::link::{LinkEnd, ListenerId};

type Reply<T> = oneshot::Sender<T>;

/// One request to the event loop.
#[derive(Debug)]
pub(crate) enum Command {
    /// Adds a face and gives the link's end of it.
    AddFace(NewFace, Reply<Result<LinkEnd, NodeError>>),
    /// Ends a face and its routes.
    RemoveFace(FaceId),
    /// Makes a listener known; from then on its datagrams make faces.
    AddListener(ListenerEntry, Reply<()>),
    /// Ends a listener and the faces that its datagrams made.
    RemoveListener(ListenerId),
    /// Adds a route.
    AddRoute {
        /// Names it is for.
        prefix: Name,
        /// Where it leads.
        face: FaceId,
        /// Which of several to take: the lowest.
        cost: u64,
        /// Tells whether it worked.
        reply: Reply<Result<(), NodeError>>,
    },
    /// Takes a route back.
    RemoveRoute {
        /// Names it is for.
        prefix: Name,
        /// Where it leads.
        face: FaceId,
        /// Tells that it is gone.
        reply: Reply<()>,
    },
    /// Chooses a strategy.
    SetStrategy {
        /// Names it is for.
        prefix: Name,
        /// The strategy.
        strategy: StrategyKind,
        /// Tells whether it worked.
        reply: Reply<Result<(), NodeError>>,
    },
    /// Takes the choice of a strategy back.
    UnsetStrategy(Name, Reply<()>),
    /// Asks for something, and changes nothing.
    Ask(Query),
}

/// One question to the event loop.
#[derive(Debug)]
pub(crate) enum Query {
    /// Whether a face's peer can be reached.
    LinkState(FaceId, Reply<Option<watch::Receiver<LinkState>>>),
    /// What a face is.
    Face(FaceId, Reply<Option<FaceDescription>>),
    /// What all faces are, in the order they were made.
    Faces(Reply<Vec<FaceDescription>>),
    /// Which faces there are.
    FaceIds(Reply<BTreeSet<FaceId>>),
    /// The cost of each next hop.
    Routes(Reply<NextHops>),
    /// The strategies that were chosen.
    Strategies(Reply<Vec<(Name, StrategyKind)>>),
    /// What the content store is.
    ContentStore(Reply<ContentStoreDescription>),
    /// All counters.
    Status(Reply<NodeStatus>),
}

/// Cost by prefix and face.
pub(crate) type NextHops = BTreeMap<(Name, FaceId), u64>;

/// What management needs to know about a face.
#[derive(Clone, Debug)]
pub(crate) struct FaceDescription {
    /// The face's number.
    pub(crate) id: FaceId,
    /// The peer's address.
    pub(crate) remote: FaceUri,
    /// This node's address, if it is known.
    pub(crate) local: Option<FaceUri>,
    /// Whether the peer is on this host.
    pub(crate) scope: Scope,
    /// How many peers there can be.
    pub(crate) link_type: LinkType,
    /// What ends the face.
    pub(crate) persistency: Persistency,
    /// When it ends if the peer stays silent.
    pub(crate) expires_in: Option<Duration>,
    /// Longest frame, in octets; none: any.
    pub(crate) mtu: Option<usize>,
    /// Whether frames are acknowledged, and sent again if lost.
    pub(crate) reliability: bool,
    /// Whether the peer may see and choose faces.
    pub(crate) local_fields: bool,
    /// Packets from the peer.
    pub(crate) incoming: Traffic,
    /// Packets to the peer.
    pub(crate) outgoing: Traffic,
}

/// What management needs to know about the content store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContentStoreDescription {
    /// Memory that it may take.
    pub(crate) capacity: ByteSize,
    /// Packets in it.
    pub(crate) packets: usize,
    /// Interests that it answered.
    pub(crate) hits: u64,
    /// Interests that it could not answer.
    pub(crate) misses: u64,
}

/// A face to be.
#[derive(Debug)]
pub(crate) struct NewFace {
    /// The forwarder's side.
    pub(crate) config: FaceConfig,
    /// The peer.
    pub(crate) remote: FaceUri,
    /// This node's address, as the peer sees it.
    pub(crate) local: Option<FaceUri>,
    /// What ends the face.
    pub(crate) persistency: Persistency,
    /// Whether the peer can be reached; none if that is so as long as the face lives.
    pub(crate) state: Option<watch::Receiver<LinkState>>,
}

impl NewFace {
    /// A face to `remote` that lives as long as its connection.
    pub(crate) fn on_demand(remote: FaceUri, scope: Scope, mtu: Option<usize>) -> Self {
        let config = FaceConfig {
            scope,
            link_type: LinkType::PointToPoint,
            mtu,
            reliability: false,
            local_fields: false,
            description: remote.to_string(),
        };
        Self {
            config,
            remote,
            local: None,
            persistency: Persistency::OnDemand,
            state: None,
        }
    }

    /// The face of an application in this process.
    pub(crate) fn application(purpose: &str) -> Self {
        let remote = FaceUri::Internal(purpose.to_owned());
        Self::on_demand(remote, Scope::Local, None)
    }

    /// Adds this node's address.
    pub(crate) fn at(mut self, local: FaceUri) -> Self {
        self.local = Some(local);
        self
    }

    /// Lets the peer see and choose faces.
    pub(crate) fn with_local_fields(mut self) -> Self {
        self.config.local_fields = true;
        self
    }

    /// Has frames acknowledged, and sent again if lost, if `is_wanted`.
    pub(crate) const fn with_reliability(mut self, is_wanted: bool) -> Self {
        self.config.reliability = is_wanted;
        self
    }

    /// Lets the face outlive its connection, whose state is in `state`.
    pub(crate) fn persistent(mut self, state: watch::Receiver<LinkState>) -> Self {
        self.persistency = Persistency::Persistent;
        self.state = Some(state);
        self
    }
}
