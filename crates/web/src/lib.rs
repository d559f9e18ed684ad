//! A node in a browser tab: a forwarder with a watcher on it, as one plain value that JavaScript drives.
//!
//! ```text
//!   WebTransport ┐ handle_frame              drain  ┌▶ frames for the transports
//!   or WebSocket ┴────────────▶ Tab ────────────────┼▶ encoded video and audio, verified
//!   timer ──────────────────────┘ handle_timeout    └▶ events
//! ```
//!
//! [`Tab`] knows neither JavaScript nor a clock, so it is tested like the rest of the core; [`bindings`] shows it to the page.

pub mod bindings;
mod config;
mod outbox;
mod tab;

pub use config::{ConfigError, TabConfig};
pub use outbox::Outbox;
pub use tab::{FaceError, Tab};
