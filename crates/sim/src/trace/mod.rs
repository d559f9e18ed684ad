//! What happened in a network, event by event.

use bytes::Bytes;
use namecast_netem::DropReason;
use namecast_units::{Duration, Instant};

use crate::topology::NodeIndex;

/// One event. `packet` is the frame as it was on the link: bare Interest or Data, or LpPacket.
#[derive(Clone, Debug)]
pub struct Event<'a> {
    /// When it happened, in the network's true time.
    pub at: Instant,
    /// The node it happened at.
    pub node: NodeIndex,
    /// The face it concerns.
    pub face: u64,
    /// What happened.
    pub kind: EventKind<'a>,
}

/// What happened to a frame.
#[derive(Clone, Debug)]
pub enum EventKind<'a> {
    /// The node's forwarder was handed a frame, from a link or an application.
    Received(&'a Bytes),
    /// The node's forwarder gave a frame to a link or an application.
    Sent(&'a Bytes),
    /// The link lost a frame that the node had sent.
    Dropped(&'a Bytes, DropReason),
    /// An application got the Data with this number, `delay` after it last asked for it and `full_delay` after it first did.
    Fetched {
        /// Number of the Data.
        sequence: u64,
        /// Since the last Interest for it.
        delay: Duration,
        /// Since the first Interest for it.
        full_delay: Duration,
        /// Interests sent for it.
        transmissions: u32,
    },
}

/// Takes events as they happen.
pub trait Sink {
    /// One event; times never decrease.
    fn record(&mut self, event: &Event<'_>);
}
