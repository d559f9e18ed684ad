//! ndnSIM's annotated topologies, read and written.
//!
//! ```text
//! # comment
//! router
//! <name> [<comment> [<y> <x> [<partition>]]]
//! link
//! <from> <to> <bandwidth> <metric> [<delay> [<queue> [<loss>]]]
//! ```
//!
//! As in ndnSIM a link is the same in both directions, (a, b) and (b, a) are one link, a position of 0 0 is none, and what
//! is left out is ns-3's default: no delay, 100 packets of queue. The comment and the partition are not kept.
//!
//! | column | understood |
//! |---|---|
//! | bandwidth | `10Mbps`, `10Mb/s`, `61328158bps`; not bytes per second |
//! | metric | a whole number; becomes the cost |
//! | delay | `10ms`, `9049us`, `1.5ms` |
//! | queue | packets, or `ns3::DropTailQueue`, `ns3::RedQueue`, `ns3::CoDelQueue` with attributes, see below |
//! | loss | a share such as `0.01`, or `ns3::RateErrorModel,ErrorUnit=ERROR_UNIT_PACKET,ErrorRate=0.01` |
//!
//! Attributes of queues: drop-tail `MaxPackets`, `MaxSize` (`100p`, `20480B`), `MaxBytes`, `Mode`; RED `MinTh`, `MaxTh`,
//! `QueueLimit`, `QW`, `LInterm`, `Gentle`, `MeanPktSize`, `Mode` (in packets), with ns-3's defaults; CoDel `MaxPackets`,
//! `Target`, `Interval`. Anything else is refused rather than ignored.
//!
//! Differs from ns-3: its RED drops, ours marks; and `MeanPktSize`, which there only ages the average of an idle queue, has
//! no effect.

mod attributes;
mod read;
mod write;

pub use read::read;
pub use write::write;

#[cfg(test)]
mod tests;
