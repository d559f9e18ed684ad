//! UDP: one frame per datagram, batched both ways.

mod multicast;
mod refusals;
mod unproven;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use namecast_forward::FaceId;
use namecast_units::Instant;

use crate::link::{LinkCounters, LinkDrop, ListenerId, UdpLink, UdpPath, next_number};
use crate::node::{
    Command, ListenError, Listener, ListenerEntry, Node, NodeError, receive_datagrams,
};
use crate::supervision::ListenerState;
use crate::{Clock, FaceUri};

#[cfg(target_os = "linux")]
pub(crate) use multicast::NDN_GROUP_V4;
pub use multicast::UdpMulticast;
use refusals::Refusals;
use unproven::Unproven;

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
    let state = ListenerState::new(uri.to_string());
    let entry = ListenerEntry {
        id,
        uri: uri.clone(),
        counters: Arc::clone(&counters),
        accepted: 0,
        state: Some(Arc::clone(&state)),
        socket: Some(Arc::clone(&socket)),
        ethernet: None,
    };
    node.add_listener(entry)
        .await
        .map_err(|_| ListenError::Stopped)?;
    let stop = node.stopping().child_token();
    let mut door = Door {
        node: node.clone(),
        id,
        socket,
        counters,
        known: BTreeMap::new(),
        unproven: Unproven::default(),
        refusals: Refusals::default(),
    };
    let (supervised, stopped) = (Arc::clone(&state), stop.clone());
    node.spawn(async move {
        let node = door.node.clone();
        let receiving = async {
            loop {
                supervised.run(door.receive(&supervised)).await;
            }
        };
        stopped.run_until_cancelled(receiving).await;
        node.try_command(Command::RemoveListener(id));
    });
    Ok(Listener::new(address, uri, state, stop))
}

/// A socket that all peers send to who have none of their own yet.
#[derive(Debug)]
struct Door {
    node: Node,
    id: ListenerId,
    socket: Arc<UdpLink>,
    counters: Arc<LinkCounters>,
    /// Faces by peer, some of which may have ended.
    known: BTreeMap<UdpPath, FaceId>,
    unproven: Unproven,
    refusals: Refusals,
}

impl Door {
    /// Receives until the socket fails; returns why it did.
    async fn receive(&mut self, state: &ListenerState) -> String {
        state.set_up();
        loop {
            let batches = match receive_datagrams(&self.socket, &self.counters).await {
                Ok(batches) => batches,
                Err(error) => return error.to_string(),
            };
            for (path, frames) in batches {
                if let Err(NodeError::Stopped) = self.admit(path, frames).await {
                    // A node that stops ends its listeners, which is no failure.
                    return core::future::pending().await;
                }
            }
        }
    }

    /// Hands the forwarder what a peer sent, for whom a face is made if there is none and room for it.
    async fn admit(&mut self, path: UdpPath, frames: Vec<Bytes>) -> Result<(), NodeError> {
        let node = self.node.clone();
        let plane = node.plane();
        if let Some(&face) = self.known.get(&path)
            && plane.has_face(face)
        {
            return plane.deliver(face, frames);
        }
        let now = Clock::new().now();
        if let Some(reason) = self.refusals.of_peer(now, path.remote) {
            self.counters.dropped(reason, 1);
            return Ok(());
        }
        let echo = plane.challenge.echo(path.remote);
        let is_proven = frames.iter().any(|frame| echo.is_in(frame));
        let face = match self.ask_for_face(now, path, is_proven).await? {
            Ok(face) => face,
            Err(reason) => {
                self.counters.dropped(reason, 1);
                if !is_proven && reason == LinkDrop::TooManyFaces {
                    self.challenge(now, path, &frames);
                }
                return Ok(());
            }
        };
        if self.known.len() >= self.node.config().udp.max_faces {
            self.known.clear();
        }
        self.known.insert(path, face);
        let mut all = self.unproven.take(path);
        all.extend(frames);
        plane.deliver(face, all)?;
        plane.challenge_peer(face, path.remote);
        Ok(())
    }

    /// Asks the event loop for a face, unless an unproven peer like this one was refused a moment ago. The error is the reason of the
    /// refusal.
    async fn ask_for_face(
        &mut self,
        now: Instant,
        path: UdpPath,
        is_proven: bool,
    ) -> Result<Result<FaceId, LinkDrop>, NodeError> {
        let held = self.refusals.of_source(now, path.remote);
        if let Some(reason) = held.filter(|_| !is_proven) {
            return Ok(Err(reason));
        }
        let made = self.node.datagram_face(self.id, path, is_proven).await?;
        if let Err(refusal) = made {
            self.refusals.record(now, path.remote, is_proven, refusal);
        }
        Ok(made.map_err(|refusal| refusal.reason))
    }

    /// Has a peer prove where it is, as room is short, and keeps what it sent until it has.
    fn challenge(&mut self, now: Instant, path: UdpPath, frames: &[Bytes]) {
        let octets = frames.iter().map(Bytes::len).sum();
        if self.refusals.challenges(now, path.remote)
            && let Some(frame) = (self.node.plane().challenge).frame_for(path.remote, octets)
        {
            self.socket.try_send(path, &[frame], &self.counters);
        }
        self.unproven.keep(path, frames);
    }
}
