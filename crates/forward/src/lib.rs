//! One NDN node's forwarding plane, as a plain value.
//!
//! ```text
//!  handle_frame ──▶ link ──▶ pipeline ──▶   hops   ──▶ pipeline ──▶ link ──▶ poll_output
//!                 reassembly    │  ▲      (decides)        │     fragmentation
//!                               ▼  │                       ▼
//!                     FIB · PIT · content store · dead nonces
//! ```
//!
//! Frames and the time go in, frames and a deadline come out; the value knows no clock and no socket. The rules are those
//! of NFD, the reference forwarder.

mod config;
mod counters;
mod face;
mod fields;
mod hop;
mod link;
mod name_hash;
mod node;
mod pipeline;
mod shard;
mod table;

pub use config::{
    CachePolicy, Config, ContentStoreConfig, DeadNonceConfig, InterestRate, Keep, LearningConfig,
    LinkConfig, PitConfig, ReassemblyConfig, ReliabilityConfig, Suppression, UnsolicitedData,
};
pub use counters::{
    AnyNextCounters, BundleCounters, Counters, DropReason, Drops, FaceCounters, FeedbackCounters,
    ReliabilityCounters, StrategyCounters, Traffic,
};
pub use face::{
    AddFaceError, ExtensionFields, FaceConfig, FaceId, FaceInfo, LinkType, MIN_MTU, Scope,
};
pub use fields::LinkFields;
pub use hop::{
    Actions, AnyNext, AnyNextConfig, AsfConfig, Context, Decision, Event, Hop, HopCount,
    HopNameError, LEARNED_COST, LearnedNews, Learning, NamedHop, OwnStrategy, PathLabels,
    PathLabelsConfig, PconProfile, Piggyback, PiggybackConfig, RateEstimator, RateFeedback,
    RateFeedbackConfig, RateFeedbackError, RelayFeedback, StrategyKind, StrategyNameError,
};
pub use link::{
    CongestionLaw, CongestionMarker, CongestionMarking, FrameCount, Link, LinkCounters, LinkMeter,
    PathMtuConfig, SendQueueConfig, fragment,
};
pub use name_hash::HashKey;
pub use node::Node;
pub use pipeline::{Forwarder, LearnedRoute, StrategyChoice, Transmit};
pub use shard::{Destination, Dispatcher, Shard};
pub use table::{AddRouteError, CacheOptions, ContentStore, EntryId, Erased, NextHop};
