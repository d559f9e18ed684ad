//! The command `namecast`, as a library so that its parts can be tested.
//!
//! ```text
//!  main ─▶ commands ─▶ ingest (namecast-media) ─ frames ─▶ drive ─ Publisher ─ face ─┐
//!             │                                                                Node (namecast-net) ─ listeners, page_server
//!             └────▶ recorder (namecast-media) ◀ frames ─ drive ─ Watcher ─── face ─┘
//! ```

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod archiving;
mod arguments;
mod asking;
mod certificate_file;
pub mod commands;
mod connect;
pub mod forwarder_config;
mod hexadecimal;
mod hls;
mod key_check;
mod known_keys;
pub mod manage;
mod network_namespace;
mod page_server;
mod places;
pub mod push;
mod readers;
mod rooms;
mod rules;
mod telemetry;
mod tls;
mod web_listener;
