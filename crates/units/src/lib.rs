//! Quantities the whole stack speaks in: points in time, rates, sizes, seeded randomness; and CoDel, by which links and
//! emulated links find their queues too long.

mod codel;
mod histogram;
mod log_limit;
mod pauses;
mod random;
mod rate;
mod text;
mod time;
mod windowed;

pub use codel::CoDel;
pub use core::time::Duration;
pub use histogram::Histogram;
pub use log_limit::LogLimit;
pub use pauses::Pauses;
pub use random::Random;
pub use rate::{Bitrate, ByteSize};
pub use text::{ParseQuantityError, duration, optional_duration, parse_count, parse_duration};
pub use time::{Instant, Timestamp};
pub use windowed::WindowedMinimum;
