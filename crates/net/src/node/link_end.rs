//! The end of a link that the task behind its socket holds.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use namecast_forward::{FaceId, Link};
use namecast_packet::MAX_PACKET_SIZE;

use super::Plane;
use crate::link::{LinkCounters, LinkDrop, LinkReceiver, LinkSender, UdpLink, UdpPath};

/// What the task that drives a link's socket holds.
#[derive(Debug)]
pub(crate) struct LinkEnd {
    /// The face that the link belongs to.
    pub(crate) face: FaceId,
    /// Frames to send.
    pub(crate) queue: LinkReceiver,
    /// Where received frames go.
    pub(crate) plane: Arc<Plane>,
    /// The node's end, which lives as long as the face.
    pub(crate) sender: Weak<LinkSender>,
    /// What got lost.
    pub(crate) counters: Arc<LinkCounters>,
}

impl LinkEnd {
    /// Lets the node send over `socket` by a path past the queue, while that is empty; none: only through the queue.
    pub(crate) fn set_socket(&self, socket: Option<(Arc<UdpLink>, UdpPath)>) {
        if let Some(sender) = self.sender.upgrade() {
            sender.set_socket(socket);
        }
    }

    /// Forgets what the neighbour speaks: the connection is new.
    pub(crate) fn forget_neighbour(&self) {
        if let Some(sender) = self.sender.upgrade() {
            sender.with_link(Link::forget_neighbour);
        }
    }

    /// Splits off what a reader needs, so that reading and writing can go on side by side.
    pub(crate) fn split(&mut self) -> (Intake, &mut LinkReceiver) {
        let intake = Intake {
            face: self.face,
            plane: Arc::clone(&self.plane),
            counters: Arc::clone(&self.counters),
        };
        (intake, &mut self.queue)
    }
}

/// Where a link's reader puts what it read.
#[derive(Clone, Debug)]
pub(crate) struct Intake {
    face: FaceId,
    plane: Arc<Plane>,
    /// What got lost.
    pub(crate) counters: Arc<LinkCounters>,
}

impl Intake {
    /// Hands frames to the forwarder, and sends what comes of it.
    ///
    /// # Errors
    /// [`SessionEnd::Stopped`] if the face has ended or the node has stopped.
    pub(crate) fn deliver(&self, frames: Vec<Bytes>) -> Result<(), SessionEnd> {
        let delivered = self.plane.deliver(self.face, frames);
        delivered.map_err(|_| SessionEnd::Stopped)
    }

    /// A router reported that a datagram was too large for the path, after which the system's limit is `limit`.
    pub(crate) fn on_path_report(&self, limit: Option<usize>) {
        self.plane.on_path_report(self.face, limit);
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
    /// A packet is longer than any may be.
    #[error("{0} is longer than the {MAX_PACKET_SIZE} octets of a packet: use smaller segments")]
    Oversized(String),
    /// The system reported an error.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The WebSocket or WebTransport layer reported an error.
    #[error("{0}")]
    Transport(String),
}
