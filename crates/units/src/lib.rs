//! Quantities the whole stack speaks in: points in time, rates, sizes, seeded randomness.

mod random;
mod rate;
mod time;

pub use core::time::Duration;
pub use random::Random;
pub use rate::{Bitrate, ByteSize};
pub use time::{Instant, Timestamp};
