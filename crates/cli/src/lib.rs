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
pub mod commands;
pub mod experiment;
pub mod impair;
pub mod ingest;
mod metrics;
pub mod page_server;
pub mod pump;
pub mod record;
mod report;
mod streams;
