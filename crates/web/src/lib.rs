//! A node in a browser tab: a forwarder with a watcher and publishers on it, as one plain value that JavaScript drives.
//!
//! ```text
//!   WebTransport ┐ handle_frame              drain  ┌▶ frames for the transports
//!   or WebSocket ┴────────────▶ Tab ────────────────┼▶ encoded video, audio and data, verified
//!   timer ──────────────────────┘ handle_timeout    └▶ objects that the page fetches by name, events
//! ```
//!
//! [`LiveTab`] is the node of a page that goes live: a publisher of video and sound, and no watcher.
//!
//! [`Tab`] knows neither JavaScript nor a clock, so it is tested like the rest of the core; [`bindings`] shows it to the page.

pub mod bindings;
mod config;
mod echo;
mod files;
mod outbox;
mod publication;
mod publish;
mod publish_bindings;
mod tab;
mod transports;

pub use config::{ConfigError, LiveConfig, LiveFrame, PublicationConfig, TabConfig};
pub use files::FetchError;
pub use outbox::Outbox;
pub use publication::PublishError;
pub use publish::LiveTab;
pub use tab::Tab;
pub use transports::{FaceError, Transport};
