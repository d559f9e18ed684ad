//! Links: what carries a face's frames to a peer and back.
//!
//! ```text
//!              inbound (bounded; links wait)
//!   socket ──────────────────────────────────▶ event loop ── Forwarder
//!   socket ◀── link task ◀── LinkSender (bounded per link; frames lost when full) ──┘
//! ```

mod accept;
mod congestion;
mod connect;
mod counters;
mod queue;
mod stream;
mod tcp;
mod udp;
mod unix;

pub mod websocket;
pub mod webtransport;

pub use congestion::CongestionMarking;
pub(crate) use congestion::{CongestionMarker, marked};
pub(crate) use connect::{Backoff, connect};
pub(crate) use counters::LinkCounters;
pub use counters::LinkDrop;
pub(crate) use queue::{LinkReceiver, LinkSender, link_queue, next_number};
pub(crate) use tcp::listen as listen_tcp;
pub(crate) use udp::{UdpLink, kernel_drops, listen as listen_udp, spawn_on_demand_sender};
pub(crate) use unix::listen as listen_unix;

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use namecast_forward::FaceId;
use tokio::sync::mpsc;

/// Frames a link task takes from its queue, or hands to the event loop, in one go.
pub(crate) const BATCH_FRAMES: usize = 64;
/// Longest frame that any link takes: a network packet with a PIT token and other link headers around it.
pub(crate) const MAX_FRAME_SIZE: usize = namecast_packet::MAX_PACKET_SIZE + 128;

/// Tells one UDP listener from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ListenerId(pub(crate) u64);

/// Frames on their way to the event loop.
#[derive(Debug)]
pub(crate) enum Inbound {
    /// From a face.
    Frames {
        /// Face they came in on.
        face: FaceId,
        /// The frames, each in an allocation of its own.
        frames: Vec<Bytes>,
    },
    /// From an address that may have no face yet.
    Datagrams {
        /// Socket they came in on.
        listener: ListenerId,
        /// Who sent them.
        remote: SocketAddr,
        /// The frames, each in an allocation of its own.
        frames: Vec<Bytes>,
    },
}

/// What the task that drives a link's socket holds.
#[derive(Debug)]
pub(crate) struct LinkEnd {
    /// The face that the link belongs to.
    pub(crate) face: FaceId,
    /// Frames to send.
    pub(crate) queue: LinkReceiver,
    /// Where received frames go.
    pub(crate) inbound: mpsc::Sender<Inbound>,
    /// What got lost.
    pub(crate) counters: Arc<LinkCounters>,
}

impl LinkEnd {
    /// Splits off what a reader needs, so that reading and writing can go on side by side.
    pub(crate) fn split(&mut self) -> (Intake, &mut LinkReceiver) {
        let intake = Intake {
            face: self.face,
            inbound: self.inbound.clone(),
            counters: Arc::clone(&self.counters),
        };
        (intake, &mut self.queue)
    }
}

/// Where a link's reader puts what it read.
#[derive(Clone, Debug)]
pub(crate) struct Intake {
    face: FaceId,
    inbound: mpsc::Sender<Inbound>,
    counters: Arc<LinkCounters>,
}

impl Intake {
    /// Hands frames to the event loop, waiting if it is busy.
    ///
    /// # Errors
    /// [`SessionEnd::Stopped`] if the node has stopped.
    pub(crate) async fn deliver(&self, frames: Vec<Bytes>) -> Result<(), SessionEnd> {
        let face = self.face;
        self.inbound
            .send(Inbound::Frames { face, frames })
            .await
            .map_err(|_| SessionEnd::Stopped)
    }

    /// Counts a loss.
    pub(crate) fn dropped(&self, reason: LinkDrop) {
        self.counters.dropped(reason, 1);
    }
}

/// Why a connection came to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionEnd {
    /// The face or the node ended; everything queued is out.
    #[error("the face has ended")]
    Stopped,
    /// The peer closed it.
    #[error("the peer closed the connection")]
    Closed,
    /// Nothing was heard from the peer for too long.
    #[error("the peer is silent")]
    Silent,
    /// The stream is no sequence of elements.
    #[error("malformed framing: {0}")]
    Framing(&'static str),
    /// The system reported an error.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The WebSocket or WebTransport layer reported an error.
    #[error("{0}")]
    Transport(String),
}
