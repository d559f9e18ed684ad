//! UDP: one frame per datagram, batched both ways.

mod socket;
mod statistics;

use std::net::SocketAddr;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::FaceUri;
use crate::node::{Command, ListenError, Listener, ListenerEntry, Node, Spawner};

use super::{BATCH_FRAMES, Inbound, LinkCounters, LinkEnd, ListenerId, SessionEnd, next_number};
pub(crate) use socket::UdpLink;
use socket::{ReceiveBuffers, SendBuffer};
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
    };
    node.add_listener(entry)
        .await
        .map_err(|_| ListenError::Stopped)?;
    let stop = node.stopping().child_token();
    node.spawn(receive(node.clone(), id, socket, counters, stop.clone()));
    Ok(Listener::new(address, uri, stop))
}

async fn receive(
    node: Node,
    listener: ListenerId,
    socket: Arc<UdpLink>,
    counters: Arc<LinkCounters>,
    stop: CancellationToken,
) {
    let inbound = node.inbound();
    let receiving = async {
        let mut buffers = ReceiveBuffers::default();
        loop {
            if let Err(error) = socket.receive(&mut buffers, &counters).await {
                tracing::warn!(%error, "cannot receive over UDP");
                tokio::time::sleep(socket::PAUSE_AFTER_ERROR).await;
            }
            for (remote, frames) in buffers.received.drain(..) {
                let batch = Inbound::Datagrams {
                    listener,
                    remote,
                    frames,
                };
                if inbound.send(batch).await.is_err() {
                    return;
                }
            }
        }
    };
    stop.run_until_cancelled(receiving).await;
    node.try_command(Command::RemoveListener(listener));
}

/// Sends the frames of a face that a datagram made.
pub(crate) fn spawn_on_demand_sender(
    spawner: &Spawner,
    socket: Arc<UdpLink>,
    remote: SocketAddr,
    mut link: LinkEnd,
) {
    spawner.spawn(async move {
        let mut batch = Vec::with_capacity(BATCH_FRAMES);
        let mut buffer = SendBuffer::default();
        while link.queue.recv_many(&mut batch, BATCH_FRAMES).await {
            // What a socket shared by many peers reports need not be about this one: the frame counts as lost, no more.
            let _ = socket
                .send(remote, &batch, &mut buffer, &link.counters)
                .await;
            batch.clear();
        }
    });
}

/// Carries frames both ways over a socket of its own, until the face ends or the peer's machine says that nobody
/// listens.
pub(super) async fn run(socket: &UdpLink, remote: SocketAddr, link: &mut LinkEnd) -> SessionEnd {
    let (intake, queue) = link.split();
    let receive = async {
        let mut buffers = ReceiveBuffers::default();
        loop {
            socket.receive(&mut buffers, &intake.counters).await?;
            for (_, frames) in buffers.received.drain(..) {
                intake.deliver(frames).await?;
            }
        }
    };
    let send = async {
        let mut batch = Vec::with_capacity(BATCH_FRAMES);
        let mut buffer = SendBuffer::default();
        while queue.recv_many(&mut batch, BATCH_FRAMES).await {
            let sent = socket
                .send(remote, &batch, &mut buffer, &intake.counters)
                .await;
            batch.clear();
            sent?;
        }
        Err(SessionEnd::Stopped)
    };
    let end: Result<core::convert::Infallible, SessionEnd> = tokio::select! {
        end = receive => end,
        end = send => end,
    };
    let Err(end) = end;
    end
}
