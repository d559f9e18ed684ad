//! Live video and audio on simulated hosts: the publisher and the watcher that run on sockets, behind a synthetic encoder
//! and a player that shows nothing.
//!
//! ```text
//!  Media ─▶ frames ─▶ Publisher ─▶ network ─▶ Watcher ─▶ FrameRecord, Event
//!  └────── LivePublisher ─────┘            └────────── LiveWatcher ───────┘
//! ```

mod identity;
mod media;
mod publisher;
mod requests;
mod talk;
mod traffic;
mod watcher;

pub use identity::Signing;
pub use media::{Media, MediaRung, SizeShape};
pub use publisher::{LivePublisher, LivePublisherConfig};
pub use requests::Requests;
pub use talk::{Heard, LiveTalker, LiveTalkerConfig};
pub use traffic::Traffic;
pub use watcher::{FrameRecord, LiveWatcher, LiveWatcherConfig, Shown};
