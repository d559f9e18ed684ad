//! UDP: one frame per datagram, batched both ways.

mod multicast;
mod socket;
mod statistics;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use namecast_forward::FaceId;
use tokio_util::sync::CancellationToken;

use crate::FaceUri;
use crate::node::{Command, ListenError, Listener, ListenerEntry, Node, NodeError};

use super::{Intake, LinkCounters, LinkEnd, LinkReceiver, ListenerId, SessionEnd, next_number};
pub(crate) use multicast::NDN_GROUP_V4;
pub use multicast::UdpMulticast;
use socket::Received;
pub(crate) use socket::UdpLink;
pub(crate) use statistics::kernel_drops;

/// Receives at `address`; faces are made as peers turn up.
pub(crate) async fn listen(
    node: &Node,
    address: SocketAddr,
) -> Result<Listener<SocketAddr>, ListenError> {
    let error = || ListenError::bind(FaceUri::Udp(address));
    let socket = UdpLink::bind(address).map_err(|source| error()(source))?;
    let address = socket.local_address().map_err(|source| error()(source))?;
    let socket = Arc::new(socket);
    let id = ListenerId(next_number());
    let uri = FaceUri::Udp(address);
    let counters = Arc::new(LinkCounters::default());
    let entry = ListenerEntry {
        id,
        uri: uri.clone(),
        counters: Arc::clone(&counters),
        socket: Some(Arc::clone(&socket)),
        ethernet: None,
    };
    node.add_listener(entry)
        .await
        .map_err(|_| ListenError::Stopped)?;
    let stop = node.stopping().child_token();
    let door = Door {
        node: node.clone(),
        id,
        socket,
        counters,
        known: BTreeMap::new(),
    };
    node.spawn(door.receive(stop.clone()));
    Ok(Listener::new(address, uri, stop))
}

/// A socket that all peers send to who have none of their own yet.
#[derive(Debug)]
struct Door {
    node: Node,
    id: ListenerId,
    socket: Arc<UdpLink>,
    counters: Arc<LinkCounters>,
    /// Faces by peer, some of which may have ended.
    known: BTreeMap<SocketAddr, FaceId>,
}

impl Door {
    /// Receives until the listener is stopped.
    async fn receive(mut self, stop: CancellationToken) {
        let (node, id) = (self.node.clone(), self.id);
        let receiving = async {
            while let Ok(batches) = receive(&self.socket, &self.counters).await {
                for (remote, frames) in batches {
                    if let Err(NodeError::Stopped) = self.admit(remote, frames).await {
                        return;
                    }
                }
            }
        };
        stop.run_until_cancelled(receiving).await;
        node.try_command(Command::RemoveListener(id));
    }

    /// Hands the forwarder what a peer sent, for whom a face is made if there is none and room for it.
    async fn admit(&mut self, remote: SocketAddr, frames: Vec<Bytes>) -> Result<(), NodeError> {
        let plane = self.node.plane();
        if let Some(&face) = self.known.get(&remote)
            && plane.has_face(face)
        {
            return plane.deliver(face, frames);
        }
        let challenge = &plane.challenge;
        let echo = challenge.echo(remote);
        let is_proven = frames.iter().any(|frame| echo.is_in(frame));
        let made = self.node.datagram_face(self.id, remote, is_proven).await?;
        let Some(face) = made else {
            let octets = frames.iter().map(Bytes::len).sum();
            if let Some(frame) = challenge.frame_for(remote, octets) {
                self.socket.try_send(remote, &[frame], &self.counters);
            }
            return Ok(());
        };
        if self.known.len() >= self.node.config().udp.max_faces {
            self.known.clear();
        }
        self.known.insert(remote, face);
        plane.deliver(face, frames)?;
        plane.challenge_peer(face, remote);
        Ok(())
    }
}

/// Waits for datagrams, and lets other tasks have their turn while there are more.
async fn receive(
    socket: &UdpLink,
    counters: &LinkCounters,
) -> io::Result<Vec<(SocketAddr, Vec<Bytes>)>> {
    loop {
        socket.readable().await?;
        match socket.try_receive(counters) {
            Ok(Received { batches, more }) => {
                if more {
                    tokio::task::yield_now().await;
                }
                if !batches.is_empty() {
                    return Ok(batches);
                }
            }
            Err(error) if socket.is_connected() => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "cannot receive over UDP");
                tokio::time::sleep(socket::PAUSE_AFTER_ERROR).await;
            }
        }
    }
}

/// Carries the frames of a face that a datagram made: over `own`, a socket for this peer alone, or over the one that peers
/// share, whose listener receives for them.
pub(crate) async fn serve_peer(
    shared: Arc<UdpLink>,
    own: Option<UdpLink>,
    remote: SocketAddr,
    mut link: LinkEnd,
) {
    let own = own.map(Arc::new);
    let socket = own.clone().unwrap_or(shared);
    link.set_socket(Some((Arc::clone(&socket), remote)));
    let (intake, queue) = link.split();
    let receiving = async {
        match own {
            None => core::future::pending().await,
            Some(own) => carry_in_whatever_happens(&own, &intake).await,
        }
    };
    tokio::select! {
        () = receiving => {}
        // What a socket reports ends no face that lives by being heard: the frame counts as lost, no more.
        () = async { while carry_out(&socket, remote, queue).await.is_err() {} } => {}
    }
}

/// Receives until the face ends, as a peer that cannot be reached at present may come back.
async fn carry_in_whatever_happens(socket: &UdpLink, intake: &Intake) {
    while let Err(end) = carry_in(socket, intake).await {
        if let SessionEnd::Stopped = end {
            return;
        }
        tokio::time::sleep(socket::PAUSE_AFTER_ERROR).await;
    }
}

/// Carries frames both ways over a socket of its own, until the face ends or the peer's machine says that nobody
/// listens.
pub(super) async fn run(socket: UdpLink, remote: SocketAddr, link: &mut LinkEnd) -> SessionEnd {
    let socket = Arc::new(socket);
    link.set_socket(Some((Arc::clone(&socket), remote)));
    let (intake, queue) = link.split();
    let end = tokio::select! {
        end = carry_in(&socket, &intake) => end.err(),
        end = carry_out(&socket, remote, queue) => end.err().map(SessionEnd::Io),
        error = socket.refused() => Some(SessionEnd::Io(error)),
    };
    link.set_socket(None);
    end.unwrap_or(SessionEnd::Stopped)
}

/// Hands the forwarder what a socket with one peer receives.
async fn carry_in(socket: &UdpLink, intake: &Intake) -> Result<(), SessionEnd> {
    loop {
        for (_, frames) in receive(socket, &intake.counters).await? {
            intake.deliver(frames)?;
        }
    }
}

/// Sends what is queued until the face ends.
async fn carry_out(
    socket: &UdpLink,
    remote: SocketAddr,
    queue: &mut LinkReceiver,
) -> io::Result<()> {
    while queue.send_over(socket, remote).await? {}
    Ok(())
}
