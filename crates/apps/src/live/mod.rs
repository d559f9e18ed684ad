//! Live video and audio: one publisher, any number of watchers.

pub mod stats;
pub mod watcher;

pub use stats::Stats;
pub use watcher::{Watcher, WatcherConfig};
