//! A node in a browser tab: a forwarder with watchers and publishers on it, as one plain value that JavaScript drives.
//!
//! ```text
//!   WebTransport ┐ handle_frame              drain  ┌▶ frames for the transports
//!   or WebSocket ┴────────────▶ Tab ────────────────┼▶ encoded video, audio and data, verified
//!   timer ──────────────────────┘ handle_timeout    └▶ objects that the page fetches by name, events
//! ```
//!
//! [`Tab`] knows neither JavaScript nor a clock, so it is tested like the rest of the core; [`bindings`] shows it to the page.

pub mod bindings;
mod config;
mod echo;
mod files;
mod outbox;
mod publication;
mod publish;
mod room;
mod tab;
mod transports;
mod watch;
mod watching;

pub use config::{ConfigError, DataStream, LiveFrame, PublicationConfig, WatchConfig};
pub use files::FetchError;
pub use outbox::Outbox;
pub use publication::PublishError;
pub use room::{RoomConfig, RoomError};
pub use tab::Tab;
pub use transports::{FaceError, Transport};
pub use watch::WatchError;
