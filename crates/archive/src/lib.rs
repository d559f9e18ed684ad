//! Keeps the packets of a stream exactly as they were signed, and finds them by name and by time.
//!
//! ```text
//!                 append            sync                maintain
//!  recorder ──▶ Writer ──▶ open chunk ──▶ readable ──▶ sealed chunk + index ──▶ deleted by age and size
//!                          local file                  directory or bucket
//!                               ▲                              ▲
//!                               └────────── Archive ───────────┘  sample, object, find
//! ```
//!
//! Nothing is readable before it is synced, so what was served once is never lost to a crash.

mod chunk;
#[cfg(test)]
mod hostile;
mod index;
mod location;
mod positional;
mod record;
mod retention;
mod store;

pub use chunk::ChunkId;
pub use index::{Place, SampleEntry};
pub use location::{Location, LocationError, sync_directory};
pub use record::RecordError;
pub use retention::{Moment, RetentionConfig};
pub use store::{
    Archive, Config, Counters, Damage, Error, Figures, FoundRung, FoundSample, Writer,
};
