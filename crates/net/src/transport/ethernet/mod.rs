//! Faces straight on Ethernet, without IP: EtherType 0x8624, one link packet to a frame.
//!
//! ```text
//!             ┌─ to NDN's group ─▶ the multicast face
//!   interface ┤
//!             └─ to this address ─▶ the sender's face, made when it first sends
//! ```
//!
//! One socket serves an interface. Packets longer than the interface takes are cut by NDNLPv2.

#[cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "only the packet socket of Linux carries frames")
)]
mod frame;
#[cfg_attr(not(target_os = "linux"), path = "no_socket.rs")]
mod socket;

mod peers;

use std::sync::Arc;

use bytes::Bytes;
use namecast_forward::{FaceId, Scope};
use namecast_units::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::interface::Interface;
use crate::link::{
    BATCH_FRAMES, LinkCounters, LinkDrop, ListenerId, PAUSE_AFTER_ERROR, Senders, next_number,
};
use crate::node::{
    Command, EthernetRequest, EthernetRequests, Intake, LinkEnd, ListenError, ListenerEntry,
    NewFace, Node, NodeError, Query,
};
use crate::supervision::ListenerState;
use crate::{FaceOptions, FaceUri, MacAddress};
use frame::Received;
use peers::Peers;
use socket::{EthernetSocket, ReceiveBuffer};

/// How often peers are looked through for those that have ended.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// Requests for faces that wait; those who make them wait when there are more.
const REQUEST_QUEUE: usize = 16;

/// How an interface is used for Ethernet faces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EthernetConfig {
    /// The interface's name.
    pub interface: String,
    /// Whether there is a face to all that listen to NDN's group.
    pub multicast: bool,
    /// Faces that frames from unknown addresses may make.
    pub max_peers: usize,
    /// Longest link packet, in octets, if that is less than the interface takes.
    pub mtu: Option<usize>,
}

impl EthernetConfig {
    /// The usual use of `interface`.
    pub fn on(interface: impl Into<String>) -> Self {
        Self {
            interface: interface.into(),
            multicast: true,
            max_peers: 256,
            mtu: None,
        }
    }
}

impl Node {
    /// Sends and receives Ethernet frames on one interface; each peer becomes a face when it first sends to this
    /// interface's address, and ends when it is silent for [`UdpConfig::idle_timeout`](crate::UdpConfig::idle_timeout).
    ///
    /// # Errors
    /// If the interface cannot be had: on Linux that takes the capability `CAP_NET_RAW`.
    pub async fn open_ethernet(
        &self,
        config: &EthernetConfig,
    ) -> Result<EthernetPort, ListenError> {
        let uri = FaceUri::Device(config.interface.clone());
        let error = || ListenError::bind(uri.clone());
        let interface = Interface::find(&config.interface).map_err(|source| error()(source))?;
        let socket = EthernetSocket::open(&interface, config.multicast);
        let socket = socket.map_err(|source| error()(source))?;
        let limit = config.mtu.unwrap_or(usize::MAX);
        let mut port = Port {
            node: self.clone(),
            uri: uri.clone(),
            id: ListenerId(next_number()),
            mtu: socket.mtu.min(limit),
            socket: Arc::new(socket),
            counters: Arc::new(LinkCounters::default()),
            senders: Senders::new(),
            multicast: None,
            peers: Peers::new(config.max_peers),
        };
        if config.multicast {
            let group = MacAddress::NDN_MULTICAST;
            let new = port.new_face(group).multi_access();
            let added = self.add_face(new).await.map_err(ListenError::refused)?;
            port.multicast = Some(port.start(group, added));
        }
        let (requests, queue) = mpsc::channel(REQUEST_QUEUE);
        let requests = EthernetRequests::new(requests);
        let state = ListenerState::new(uri.to_string());
        let entry = ListenerEntry {
            id: port.id,
            uri: uri.clone(),
            counters: Arc::clone(&port.counters),
            accepted: 0,
            state: Some(Arc::clone(&state)),
            socket: None,
            ethernet: Some(requests.clone()),
        };
        let added = self.add_listener(entry).await;
        added.map_err(ListenError::refused)?;
        let stop = self.stopping().child_token();
        let handle = EthernetPort {
            uri,
            address: port.socket.address,
            multicast: port.multicast.as_ref().map(|face| face.id),
            requests,
            _stop: stop.clone().drop_guard(),
        };
        self.spawn(port.serve(queue, state, stop));
        Ok(handle)
    }

    /// The same as [`EthernetPort::connect`], for those who know the interface by name only.
    ///
    /// # Errors
    /// Also if the interface carries no Ethernet faces.
    pub async fn connect_ethernet(
        &self,
        interface: &str,
        peer: MacAddress,
        options: &FaceOptions,
    ) -> Result<FaceId, NodeError> {
        let uri = FaceUri::Device(interface.to_owned());
        let port = self.query(|reply| Query::Ethernet(uri.clone(), reply));
        let port = port.await?.ok_or(NodeError::NoEthernet(uri))?;
        port.connect(peer, options).await
    }
}

/// An interface that carries Ethernet faces. Dropping it ends them.
#[derive(Debug)]
#[must_use = "dropping a port ends its faces"]
pub struct EthernetPort {
    uri: FaceUri,
    address: MacAddress,
    multicast: Option<FaceId>,
    requests: EthernetRequests,
    _stop: DropGuard,
}

impl EthernetPort {
    /// The interface.
    pub const fn uri(&self) -> &FaceUri {
        &self.uri
    }

    /// The interface's own address.
    pub const fn address(&self) -> MacAddress {
        self.address
    }

    /// The face to all that listen to NDN's group, if it was wanted.
    pub const fn multicast(&self) -> Option<FaceId> {
        self.multicast
    }

    /// Adds a face to one peer, which stays until it is removed. It takes the place of one that the peer's frames made.
    ///
    /// # Errors
    /// If the node has stopped or has too many faces, the address is a group's, or there can be no such face.
    pub async fn connect(
        &self,
        peer: MacAddress,
        options: &FaceOptions,
    ) -> Result<FaceId, NodeError> {
        self.requests.connect(peer, options).await
    }
}

/// A face on the interface.
#[derive(Debug)]
struct PortFace {
    id: FaceId,
    intake: Intake,
    /// Set once nobody sends its frames any more.
    ended: CancellationToken,
}

/// What the task behind an interface has.
#[derive(Debug)]
struct Port {
    node: Node,
    uri: FaceUri,
    id: ListenerId,
    mtu: usize,
    socket: Arc<EthernetSocket>,
    counters: Arc<LinkCounters>,
    senders: Senders,
    multicast: Option<PortFace>,
    peers: Peers<PortFace>,
}

impl Port {
    /// Serves the interface until it is stopped, also after a panic, and ends its faces.
    async fn serve(
        mut self,
        mut requests: mpsc::Receiver<EthernetRequest>,
        state: Arc<ListenerState>,
        stop: CancellationToken,
    ) {
        let serving = async {
            loop {
                let listening = async {
                    state.set_up();
                    self.serve_requests(&mut requests).await
                };
                state.run(listening).await;
            }
        };
        stop.run_until_cancelled(serving).await;
        for face in self.peers.values().chain(&self.multicast) {
            // If the node has stopped, the face is gone already.
            let _ = self.node.remove_face(face.id).await;
        }
        self.node.try_command(Command::RemoveListener(self.id));
    }

    async fn serve_requests(&mut self, requests: &mut mpsc::Receiver<EthernetRequest>) -> ! {
        let socket = Arc::clone(&self.socket);
        let counters = Arc::clone(&self.counters);
        let mut buffer = ReceiveBuffer::default();
        let mut sweep = tokio::time::interval(SWEEP_INTERVAL);
        sweep.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                Some(request) = requests.recv() => self.connect(request).await,
                _ = sweep.tick() => self.sweep().await,
                received = socket.receive(&mut buffer, &counters) => {
                    if let Err(error) = received {
                        tracing::debug!(%error, interface = %self.uri, "cannot receive over Ethernet");
                        tokio::time::sleep(PAUSE_AFTER_ERROR).await;
                    }
                    self.deliver(&mut buffer.frames).await;
                }
            }
        }
    }

    fn new_face(&self, peer: MacAddress) -> NewFace {
        let remote = FaceUri::Ethernet(peer);
        NewFace::on_demand(remote, Scope::NonLocal, Some(self.mtu)).at(self.uri.clone())
    }

    /// Starts the task that sends a face's frames.
    fn start(&self, peer: MacAddress, mut link: LinkEnd) -> PortFace {
        let ended = CancellationToken::new();
        let face = PortFace {
            id: link.face,
            intake: link.split().0,
            ended: ended.clone(),
        };
        let (socket, guard) = (Arc::clone(&self.socket), ended.drop_guard());
        self.node.spawn(async move {
            let (mut batch, mut buffer) = (Vec::with_capacity(BATCH_FRAMES), Vec::new());
            let (intake, queue) = link.split();
            while queue.recv_many(&mut batch, BATCH_FRAMES).await {
                socket
                    .send(peer, &batch, &mut buffer, &intake.counters)
                    .await;
                batch.clear();
            }
            drop(guard);
        });
        face
    }

    /// Hands frames to their faces, those of one sender together.
    async fn deliver(&mut self, frames: &mut Vec<Received>) {
        let mut frames = frames.drain(..).peekable();
        while let Some(first) = frames.next() {
            let (source, destination) = (first.source, first.destination);
            let mut packets = vec![first.packet];
            let is_of_both =
                |next: &Received| (next.source, next.destination) == (source, destination);
            while let Some(next) = frames.next_if(is_of_both) {
                packets.push(next.packet);
            }
            if source == self.socket.address || source.is_group() {
                continue;
            }
            if destination == self.socket.address {
                self.deliver_from(source, packets).await;
            } else if destination == MacAddress::NDN_MULTICAST
                && let Some(face) = &self.multicast
            {
                let apart = |packet| self.senders.move_apart(&source.0, packet);
                let packets = packets.into_iter().map(apart).collect();
                // A face that was removed hears no more.
                if face.intake.deliver(packets).is_err() {
                    self.multicast = None;
                }
            }
        }
    }

    /// Hands packets to the face of their sender, which is made if there is none and room for it.
    async fn deliver_from(&mut self, source: MacAddress, packets: Vec<Bytes>) {
        let now = self.node.clock().now();
        if let Some(face) = self.peers.heard(now, source)
            && !face.ended.is_cancelled()
        {
            if face.intake.deliver(packets).is_err() {
                self.peers.remove(source);
            }
            return;
        }
        self.peers.remove(source);
        let added = match self.peers.has_room() {
            true => {
                let new = self.new_face(source).accepted_by(self.id);
                self.node.add_face(new).await
            }
            false => Err(NodeError::Stopped),
        };
        let Ok(link) = added else {
            self.counters.dropped(LinkDrop::TooManyFaces, 1);
            return;
        };
        let face = self.start(source, link);
        // Had the face ended already, the next frame would show it.
        let _ = face.intake.deliver(packets);
        self.peers.insert(now, source, face, false);
    }

    /// Makes a face that stays.
    async fn connect(&mut self, request: EthernetRequest) {
        let EthernetRequest {
            peer,
            options,
            reply,
        } = request;
        let new = self.new_face(peer).persistent().with_options(&options);
        let added = match new {
            Ok(new) => self.node.add_face(new).await,
            Err(error) => Err(error),
        };
        let connected = match added {
            Ok(link) => {
                let face = self.start(peer, link);
                let id = face.id;
                let now = self.node.clock().now();
                if let Some(before) = self.peers.insert(now, peer, face, true) {
                    let _ = self.node.remove_face(before.id).await;
                }
                Ok(id)
            }
            Err(error) => Err(error),
        };
        // Whoever asked may have gone away; then the face stays all the same.
        let _ = reply.send(connected);
    }

    async fn sweep(&mut self) {
        let now = self.node.clock().now();
        let timeout = self.node.config().udp.idle_timeout;
        let has_ended = |face: &PortFace| face.ended.is_cancelled();
        for face in self.peers.take_ended(now, timeout, has_ended) {
            let _ = self.node.remove_face(face.id).await;
        }
    }
}
