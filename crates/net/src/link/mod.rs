//! Links: what carries a face's frames to a peer and back.
//!
//! ```text
//!   socket ── link task ── Intake ──▶ Plane (the forwarder) ──▶ LinkSender ─┬─▶ socket, if it is UDP and has room
//!                                                                            └─▶ queue (bounded) ── link task ──▶ socket
//! ```

mod counters;
mod keep_alive;
mod kernel_drops;
mod queue;
mod senders;
mod strangers;
mod udp;

pub(crate) use counters::LinkCounters;
pub use counters::LinkDrop;
pub(crate) use keep_alive::{Counted, KeepAlive};
pub(crate) use kernel_drops::kernel_drops;
pub(crate) use queue::{Account, Arrival, LinkReceiver, LinkSender, link_queue, next_number};
pub(crate) use senders::Senders;
pub(crate) use strangers::{Admission, Challenge, Strangers};
pub(crate) use udp::{PAUSE_AFTER_ERROR, Received, UdpLink, UdpPath, is_too_large};

/// Frames a link task takes from its queue, or hands to the forwarder, in one go.
pub(crate) const BATCH_FRAMES: usize = 64;
/// Longest frame that any link takes: a network packet with a PIT token and other link headers around it.
pub(crate) const MAX_FRAME_SIZE: usize = namecast_packet::MAX_PACKET_SIZE + 128;

/// Tells one UDP listener from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ListenerId(pub(crate) u64);
