//! Files as one object, from one sender to any number of receivers of every speed.
//!
//! ```text
//!  /NAME/32=table/v=…/seg=…   table of contents: paths, sizes, SHA-256, parity, the object's version
//!  /NAME/v=V/seg=0 … seg=S−1  content of the files, one after the other          also: ndncatchunks, ndnd cat
//!  /NAME/v=V/seg=S …          parity
//!  /NAME/32=metadata          the name with the version
//!  /NAME/v=V/32=report/…      what receivers report
//!  /NAME/v=V/32=ack/…         segments that came, of the one receiver that paces the sender
//!
//!  Sender ◀── any next of /NAME/v=V, counted by nodes ──── Receiver: while much is missing
//!    │    ◀── /NAME/v=V/seg=7, by exact name ───────────── Receiver: the rest; all, where nodes count nothing
//!    └─────── segments, each signed ─────────────────────▶ verified, in any order ──▶ whoever keeps them
//!                                                          │     ▲
//!                                                          └─────┴── chunks that receivers behind the same node have
//! ```
//!
//! Files are read and written by whoever runs this, a segment at a time: memory does not depend on their size.

mod coding;
mod contents;
mod order;
mod packets;
mod pull;
mod receiver;
mod seal;
mod segment_set;
mod sender;

pub use coding::{Block, Coding, Shards};
pub use contents::{Contents, ContentsError, FileEntry};
pub use packets::KeptSegments;
pub use receiver::{Receiver, ReceiverConfig, ReceiverCounters, ReceiverEvent, Refused};
pub use seal::{ContentKey, identity, version};
pub use segment_set::SegmentSet;
pub use sender::{
    Policy, SendError, Sender, SenderConfig, SenderCounters, SenderEvent, Source, SourceError,
};

pub use crate::receivers::{Heard, ReceiverId, Report};

use namecast_packet::Name;
use namecast_units::ByteSize;

/// Keyword of the table of contents.
const TABLE: &str = "table";

/// Content of a segment: a multiple of 64 octets, as the code wants it, that takes three datagrams of 1400 octets with its signature.
pub const SEGMENT_SIZE: u32 = 3_776;

/// Largest table of contents, sealed or not.
const MAX_TABLE_SIZE: ByteSize = ByteSize::bytes((contents::MAX_TABLE + 1 + seal::SEAL) as u64);

/// Name of the table of contents of `object`, without a version.
fn table_of(object: &Name) -> Name {
    object.builder().keyword(TABLE).finish()
}

#[cfg(test)]
mod tests;
