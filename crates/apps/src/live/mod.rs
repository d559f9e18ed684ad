//! Live video and audio: one publisher, any number of watchers.

mod liveness;
mod measure;
mod past;
mod player;
pub mod publisher;
pub mod stats;
mod stream_clock;
pub mod watcher;

pub use player::{Player, Screen};
pub use publisher::{
    EncodedFrame, FrameError, Publisher, PublisherConfig, PublisherCounters, SealingCounters,
    SetupError,
};
pub use stats::Stats;
pub use watcher::{Watcher, WatcherConfig};
