//! Named points of the pipelines where experiments look at, change or refuse a packet.
//!
//! With no extension added, the pipelines are those of plain NDN and pay one length check per hook.

use core::fmt::Debug;

use namecast_packet::LpPacket;
use namecast_units::Instant;

use crate::face::FaceId;

/// Where in the pipelines an extension is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hook {
    /// An Interest arrived; nothing has been looked up.
    IncomingInterest,
    /// Data arrived; nothing has been looked up.
    IncomingData,
    /// A Nack arrived; nothing has been looked up.
    IncomingNack,
    /// An Interest is about to leave.
    OutgoingInterest,
    /// Data is about to leave.
    OutgoingData,
    /// A Nack is about to leave.
    OutgoingNack,
}

/// What becomes of the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on.
    Continue,
    /// It is dropped and counted as [`DropReason::Extension`](crate::DropReason::Extension).
    Drop,
}

/// One extension of the forwarding plane.
///
/// Like all of the core it knows no clock and no randomness of its own.
pub trait Extension: Debug + Send {
    /// Called at `hook` for the packet that `header` carries on `face`.
    ///
    /// On the way in, the header is what the neighbour sent; on the way out, what it will be sent with.
    fn at(&mut self, hook: Hook, now: Instant, face: FaceId, header: &mut LpPacket) -> Verdict;
}
