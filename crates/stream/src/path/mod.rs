//! The path from one watcher to whoever answers it, and everything that is requested over it.
//!
//! ```text
//!  clients ──Request──▶ Uplink ─────────────Interests────────────▶ network
//!      ▲                 │  who wants which name · queue by urgency     │
//!      │                 │  in flight · objects · budget                │
//!      │                 ▼                                              │
//!      └──Answer, Event─ Path: queueing, capacity, cross traffic, loss ◀──Data, Nacks
//!                        ▲
//!                        └── ladder reads it
//! ```
//!
//! [`Uplinks`] are one such uplink for each bottleneck that the Data of several owners passes.
//!
//! A client has a number that the uplink drew, tells its wants apart by its own [`Token`]s, and knows nothing of the uplink: whoever
//! has both passes requests and answers on. Clients that want one name share one Interest.
//!
//! Withholding Interests is the only actuator of a consumer: what is not requested yet waits here, where it can be withdrawn, and
//! the queue of the network stays short.
//!
//! [`NumberedPaths`] requests numbered Data in bulk, without urgency: no other module but this one arms timers of
//! retransmissions. [`AnyNext`] requests whatever comes next of them, and [`RepairWindow`] bounds requests for what is missing then.

mod any_next;
mod bottleneck;
mod budget;
mod credit;
mod delay;
mod history;
mod in_flight;
mod measure;
mod names;
mod numbered;
mod objects;
mod queue;
mod repair;
#[cfg(test)]
mod tests;
mod uplink;
mod uplinks;
mod want;

pub use crate::feedback::{Feedback, Received, Source};
pub use any_next::{AnyNext, AnyNextOutput};
pub use budget::{Budget, Control, LiveConfig, PACKET, ParseControlError};
pub use delay::{DelayConfig, DelayEstimator, DelaySample, PathOutlook, PathView, Timer};
pub use measure::Path;
pub use numbered::{
    NumberedAnswer, NumberedConfig, NumberedCounters, NumberedPaths, NumberedRequest, PathChoice,
    SegmentProgress, Unanswered,
};
pub use objects::{Object, Retry};
pub use repair::RepairWindow;
pub use uplink::{Uplink, UplinkConfig, UplinkCounters};
pub use uplinks::Uplinks;
pub use want::{
    Answer, ClientId, Clients, Event, Kind, Limit, Nacked, Request, Token, Tokens, Want, Weight,
};
