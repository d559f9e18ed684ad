//! The command `namecast`, as a library so that its parts can be tested.
//!
//! ```text
//!  arguments ─▶ commands ─▶ ingest ─ frames ─▶ pump ─ Publisher ─ face ─┐
//!                    │                                               Node (namecast-net) ─ listeners, page_server
//!                    └────▶ recorder ◀ frames ─ pump ─ Watcher ─── face ─┘
//! ```

mod archiving;
pub mod arguments;
mod bench;
mod certificate_file;
pub mod commands;
pub mod experiment;
pub mod forwarder_config;
pub mod impair;
pub mod ingest;
mod key_check;
mod known_keys;
pub mod manage;
mod metrics;
pub mod page_server;
mod places;
mod priority;
pub mod pump;
pub mod record;
mod report;
mod source;
mod streams;
mod web_listener;

pub use report::printable_lines;
