//! What the rest of the crate asks of the event loop.

use std::collections::{BTreeMap, BTreeSet};

use namecast_forward::{
    CacheOptions, CongestionMarking, ExtensionFields, FaceConfig, FaceId, LinkType, Scope, Traffic,
};
use namecast_packet::Name;
use namecast_units::{ByteSize, Duration};
use tokio::sync::{oneshot, watch};

use super::events::FaceEvent;
use super::options::FaceNature;
use super::room::FaceRefusal;
use super::{
    EthernetRequests, FaceOptions, LinkEnd, LinkState, ListenerEntry, NodeError, NodeStatus,
    Persistency,
};
use crate::FaceUri;
use crate::admission::Source;
use crate::link::{ListenerId, UdpPath};
use crate::web::Visitor;

type Reply<T> = oneshot::Sender<T>;

/// One request to the event loop.
#[derive(Debug)]
pub(crate) enum Command {
    /// Adds a face and gives the link's end of it.
    AddFace(NewFace, Reply<Result<LinkEnd, NodeError>>),
    /// Ends a face and its routes.
    RemoveFace(FaceId),
    /// Changes what may be chosen of a face, all of it or nothing.
    UpdateFace {
        /// The face.
        face: FaceId,
        /// What is chosen.
        options: FaceOptions,
        /// Receives whether it worked.
        reply: Reply<Result<(), NodeError>>,
    },
    /// A face's peer can be reached, or not any more.
    LinkChanged {
        /// The face.
        face: FaceId,
        /// Whether it can be reached now.
        is_up: bool,
    },
    /// Requests the face of a datagram's sender, which is made if there is room for it.
    DatagramFace {
        /// Socket that the datagram came in on.
        listener: ListenerId,
        /// Who sent it, and where.
        path: UdpPath,
        /// Whether it returned what only that peer can have received.
        is_proven: bool,
        /// Tells which face, or why it gets none.
        reply: Reply<Result<FaceId, FaceRefusal>>,
    },
    /// Ends the face of a listener that gives way to one more of a source, if one does.
    EndIdlest {
        /// The listener.
        listener: ListenerId,
        /// Where the newcomer comes from.
        source: Source,
        /// Receives whether one ended.
        reply: Reply<bool>,
    },
    /// Ends faces whose peers may not come any more.
    EndDenied,
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
        /// Receives whether it worked.
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
    /// Requests something, and changes nothing.
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
    /// What became of faces, from an event's number on.
    FaceEvents(u64, Reply<Vec<FaceEvent>>),
    /// By which Ethernet faces on an interface are asked for.
    Ethernet(FaceUri, Reply<Option<EthernetRequests>>),
    /// All counters.
    Status(Reply<NodeStatus>),
}

/// What shall be different in the content store.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CacheUpdate {
    /// Memory that it may take.
    pub(crate) capacity: Option<ByteSize>,
    /// Whether Data is taken in.
    pub(crate) admits: Option<bool>,
    /// Whether Interests are answered.
    pub(crate) serves: Option<bool>,
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
    /// Who came by the web, if it is a face of the web.
    pub(crate) visitor: Option<Visitor>,
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
    /// Whether packets are marked when the queue is long.
    pub(crate) congestion_marking: bool,
    /// When it counts as long.
    pub(crate) congestion: CongestionMarking,
    /// Packets from the peer.
    pub(crate) incoming: Traffic,
    /// Packets to the peer.
    pub(crate) outgoing: Traffic,
}

/// What management needs to know about the content store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContentStoreDescription {
    /// How much it may hold, and what it does.
    pub(crate) options: CacheOptions,
    /// Packets in it.
    pub(crate) packets: usize,
    /// Memory that they take.
    pub(crate) size: ByteSize,
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
    /// What was chosen of it, where that is not up to the forwarder's side.
    pub(crate) options: FaceOptions,
    /// Whom the peer came to; none: it was gone to, or is an application.
    pub(crate) listener: Option<ListenerId>,
    /// Who came by the web, as far as can be told; none: it is no face of the web.
    pub(crate) visitor: Option<Visitor>,
    /// Where the peer comes from, if that is not its address: it came by a proxy.
    pub(crate) source: Option<Source>,
    /// Whether the peer can be reached; none if that is so as long as the face lives.
    pub(crate) state: Option<watch::Sender<LinkState>>,
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
            extension_fields: ExtensionFields::Auto,
            description: remote.to_string(),
        };
        Self {
            config,
            remote,
            local: None,
            persistency: Persistency::OnDemand,
            options: FaceOptions::default(),
            listener: None,
            visitor: None,
            source: None,
            state: None,
        }
    }

    /// A face of `visitor`, who came by the web.
    pub(crate) fn of_visitor(remote: FaceUri, visitor: Visitor, mtu: Option<usize>) -> Self {
        Self {
            visitor: Some(visitor),
            ..Self::on_demand(remote, visitor.scope(), mtu)
        }
    }

    /// The face of an application in this process.
    pub(crate) fn application(purpose: &str) -> Self {
        let remote = FaceUri::Internal(purpose.to_owned());
        let mut new = Self::on_demand(remote, Scope::Local, None);
        new.config.extension_fields = ExtensionFields::On;
        new
    }

    /// Adds this node's address.
    pub(crate) fn at(mut self, local: FaceUri) -> Self {
        self.local = Some(local);
        self
    }

    /// Counts it among those that came to `listener`.
    pub(crate) const fn accepted_by(mut self, listener: ListenerId) -> Self {
        self.listener = Some(listener);
        self
    }

    /// Counts it among the faces of `source`, instead of that of its address.
    pub(crate) const fn of_source(mut self, source: Option<Source>) -> Self {
        self.source = source;
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

    /// Makes the face as `options` say.
    ///
    /// # Errors
    /// If it cannot be so.
    pub(crate) fn with_options(mut self, options: &FaceOptions) -> Result<Self, NodeError> {
        let nature = FaceNature {
            scope: self.config.scope,
            persistency: self.persistency,
            is_from_datagram: false,
            link_type: self.config.link_type,
            is_udp_peer: self.is_udp_peer(),
            link_mtu: self.config.mtu,
        };
        if let Some(impossible) = options.impossible_for(&nature) {
            return Err(NodeError::ImpossibleOptions(impossible));
        }
        options.apply(&mut self.config, nature.link_mtu);
        self.persistency = options.persistency.unwrap_or(self.persistency);
        self.options = *options;
        Ok(self)
    }

    /// Makes it a face to all peers on a link, which stays until it is removed, as NFD's do.
    pub(crate) const fn multi_access(mut self) -> Self {
        self.config.link_type = LinkType::MultiAccess;
        self.persistency = Persistency::Permanent;
        self
    }

    /// Whether it leads to one peer over UDP.
    pub(crate) const fn is_udp_peer(&self) -> bool {
        FaceNature::is_udp_peer(&self.remote, self.config.link_type)
    }

    /// Lets the face outlive its connection.
    pub(crate) const fn persistent(mut self) -> Self {
        self.persistency = Persistency::Persistent;
        self
    }

    /// Has the connection's state be told by `state`.
    pub(crate) fn with_state(mut self, state: watch::Sender<LinkState>) -> Self {
        self.state = Some(state);
        self
    }
}
