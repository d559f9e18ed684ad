//! One direction of an emulated link, as a plain value: frames and the time go in, frames come out later, or not at all.
//!
//! ```text
//!  handle_frame ─▶ loss ─▶ queue discipline ─▶ serialisation at the rate ─▶ delay and jitter ─▶ poll_output
//!                           (drops, marks)                                  (copies, damage)
//! ```
//!
//! Nothing happens between calls: whatever was due since the last one is worked off at the next, in order. A link that
//! keeps the order of frames therefore needs one timer for each frame, its arrival.
//!
//! ```
//! use namecast_netem::{Bytes, Config, Link, Output};
//! use namecast_units::{Bitrate, Duration, Instant};
//!
//! let config = Config { rate: Some(Bitrate::mbps(1).into()), delay: Duration::from_millis(5), ..Config::default() };
//! let mut link = Link::new(config, 1);
//! // 1250 octets take 10 ms at 1 Mbit/s, and another 5 ms to the far end.
//! link.handle_frame(Instant::ZERO, Bytes::from(vec![0; 1250]));
//! let at = link.poll_timeout().unwrap();
//! assert_eq!(at, Instant::ZERO + Duration::from_millis(15));
//! link.handle_timeout(at);
//! assert!(matches!(link.poll_output(), Some(Output::Delivered { .. })));
//! ```

mod config;
mod fate;
mod flight;
mod frame;
mod jitter;
mod link;
mod loss;
mod model;
mod output;
mod profile;
mod queue;
mod rate;
mod schedule;
#[cfg(test)]
mod twin;
mod validate;

pub use bytes::Bytes;
pub use config::{Config, Outage, Queue, Step};
pub use frame::Frame;
pub use jitter::{Jitter, JitterShape, standard_normal};
pub use link::Link;
pub use loss::Loss;
pub use model::{Model, ModelKind};
pub use output::{Counters, DropReason, Output};
pub use rate::{Rate, TraceFile};
pub use schedule::{
    MAX_ENTRIES, MAX_PERIOD, MAX_RATE, OPPORTUNITY, Schedule, ScheduleError, TraceError,
    TraceFormat,
};
pub use validate::ConfigError;
