//! One direction of an emulated link, as a plain value: frames and the time go in, frames come out later, or not at all.
//!
//! ```text
//!  handle_frame ─▶ loss ─▶ queue discipline ─▶ serialisation at the rate ─▶ delay and jitter ─▶ poll_output
//!                           (drops, marks)                                  (copies, damage)
//! ```
//!
//! Nothing happens between calls: whatever was due since the last one is worked off at the next, in order. A link that
//! keeps the order of frames therefore needs one timer for each frame, its arrival.

mod config;
mod link;

pub use config::{Config, Jitter, JitterShape, Loss, Outage, Queue, Step};
pub use link::{Counters, DropReason, Link, Output};
