//! What happened in a network, event by event.

use bytes::Bytes;
use namecast_netem::DropReason;
use namecast_units::Instant;

use crate::application::Fetched;
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
    /// An application got Data that it had asked for.
    Fetched(Fetched),
}

/// Takes events as they happen.
pub trait Sink {
    /// One event; times never decrease.
    fn record(&mut self, event: &Event<'_>);
}
