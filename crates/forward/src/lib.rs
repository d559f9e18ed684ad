//! One NDN node's forwarding plane, as a plain value.
//!
//! ```text
//!  handle_frame ──▶ link ──▶ pipeline ──▶ strategy ──▶ pipeline ──▶ link ──▶ poll_output
//!                 reassembly    │  ▲      (decides)        │     fragmentation
//!                               ▼  │                       ▼
//!                     FIB · PIT · content store · dead nonces
//! ```
//!
//! Frames and the time go in, frames and a deadline come out; the value knows no clock and no socket. The rules are those
//! of NFD, the reference forwarder.

mod config;
mod counters;
mod extension;
mod face;
mod fields;
mod forwarder;
mod link;
mod node;
mod pipeline;
mod shard;
mod strategy;
mod table;

pub use config::{
    CachePolicy, Config, InterestRate, Keep, LearningConfig, Suppression, UnsolicitedData,
};
pub use counters::{Counters, DropReason, Drops, FaceCounters, StrategyCounters, Traffic};
pub use extension::{Extension, Hook, Verdict};
pub use face::{AddFaceError, FaceConfig, FaceId, FaceInfo, LinkType, MIN_MTU, Scope};
pub use fields::LinkFields;
pub use forwarder::{Forwarder, LearnedRoute, StrategyChoice, Transmit};
pub use link::{
    CongestionLaw, CongestionMarker, CongestionMarking, FrameCount, Link, LinkCounters,
    ReassemblyConfig, ReliabilityConfig, ReliabilityCounters, SendQueueConfig, fragment,
};
pub use node::Node;
pub use pipeline::{LEARNED_COST, LearnedNews};
pub use shard::{Destination, Dispatcher, Shard};
pub use strategy::{AsfConfig, StrategyKind, StrategyNameError};
pub use table::{AddRouteError, CacheOptions, Erased, HashKey};
