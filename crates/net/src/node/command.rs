//! What the rest of the crate asks of the event loop.

use std::collections::BTreeSet;

use namecast_forward::{FaceConfig, FaceId, LinkType, Scope, StrategyKind};
use namecast_packet::Name;
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
    /// Asks whether a face's peer can be reached.
    LinkState(FaceId, Reply<Option<watch::Receiver<LinkState>>>),
    /// Asks what a face is.
    Describe(FaceId, Reply<Option<FaceDescription>>),
    /// Asks which faces there are.
    FaceIds(Reply<BTreeSet<FaceId>>),
    /// Asks for all counters.
    Status(Reply<NodeStatus>),
}

/// What management needs to know about a face.
#[derive(Clone, Debug)]
pub(crate) struct FaceDescription {
    /// Whether the peer is on this host.
    pub(crate) scope: Scope,
    /// The peer's address.
    pub(crate) remote: FaceUri,
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
