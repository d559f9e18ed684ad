//! Datagrams between sockets and faces, one frame each.

use std::io;
use std::sync::Arc;

use bytes::Bytes;

use super::{Intake, LinkEnd, SessionEnd};
use crate::link::{
    LinkCounters, LinkReceiver, PAUSE_AFTER_ERROR, Received, UdpLink, UdpPath, is_too_large,
};
use crate::log_limit;
use crate::supervision::ListenerState;

/// Waits for datagrams, and lets other tasks have their turn while there are more.
pub(crate) async fn receive_datagrams(
    socket: &UdpLink,
    counters: &LinkCounters,
) -> io::Result<Vec<(UdpPath, Vec<Bytes>)>> {
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
            // Windows reports that no socket received an earlier datagram.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
            Err(error) => {
                if let Some(left_out) = log_limit::admit("UDP") {
                    tracing::warn!(%error, "cannot receive over UDP{left_out}");
                }
                tokio::time::sleep(PAUSE_AFTER_ERROR).await;
            }
        }
    }
}

/// Carries the frames of a face that a datagram made: over `own`, a socket for this peer alone, or over the one that peers
/// share, whose listener receives for them. The face outlives a panic.
pub(super) async fn serve_peer(
    shared: Arc<UdpLink>,
    own: Option<UdpLink>,
    path: UdpPath,
    mut link: LinkEnd,
    state: Arc<ListenerState>,
) {
    let own = own.map(Arc::new);
    let socket = own.clone().unwrap_or(shared);
    link.set_socket(Some((Arc::clone(&socket), path)));
    let (intake, queue) = link.split();
    loop {
        let receiving = async {
            match &own {
                None => core::future::pending().await,
                Some(own) => carry_in_whatever_happens(own, &intake).await,
            }
        };
        let carrying = async {
            tokio::select! {
                () = receiving => {}
                // What a socket reports ends no face that lives by being heard: the frame counts as lost, no more.
                () = async { while carry_out(&socket, path, queue).await.is_err() {} } => {}
            }
        };
        if state.serve(carrying).await.is_some() {
            return;
        }
    }
}

/// Receives until the face ends, as a peer that cannot be reached at present may come back.
async fn carry_in_whatever_happens(socket: &UdpLink, intake: &Intake) {
    while let Err(end) = carry_in(socket, intake).await {
        if let SessionEnd::Stopped = end {
            return;
        }
        tokio::time::sleep(PAUSE_AFTER_ERROR).await;
    }
}

/// Carries frames both ways over a socket of its own, until the face ends or the peer's machine says that nobody
/// listens.
pub(crate) async fn carry_datagrams(
    socket: UdpLink,
    path: UdpPath,
    link: &mut LinkEnd,
) -> SessionEnd {
    let socket = Arc::new(socket);
    link.set_socket(Some((Arc::clone(&socket), path)));
    let (intake, queue) = link.split();
    let end = tokio::select! {
        end = carry_in(&socket, &intake) => end.err(),
        end = carry_out(&socket, path, queue) => end.err().map(SessionEnd::Io),
        error = socket.refused() => Some(SessionEnd::Io(error)),
    };
    link.set_socket(None);
    end.unwrap_or(SessionEnd::Stopped)
}

/// Hands the forwarder what a socket with one peer receives.
async fn carry_in(socket: &UdpLink, intake: &Intake) -> Result<(), SessionEnd> {
    loop {
        match receive_datagrams(socket, &intake.counters).await {
            Ok(batches) => {
                for (_, frames) in batches {
                    intake.deliver(frames)?;
                }
            }
            Err(error) if is_too_large(&error) => intake.on_path_report(socket.limit()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Sends what is queued until the face ends.
async fn carry_out(socket: &UdpLink, path: UdpPath, queue: &mut LinkReceiver) -> io::Result<()> {
    while queue.send_over(socket, path).await? {}
    Ok(())
}
