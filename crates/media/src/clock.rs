//! The machine's wall clock, by which pictures are captured.

use std::time::{SystemTime, UNIX_EPOCH};

use namecast_units::{Duration, Timestamp};

/// Returns the wall-clock time; 1970 if the machine's clock stands before that.
pub(crate) fn wall() -> Timestamp {
    let since_1970 = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    Timestamp::from_micros(u64::try_from(since_1970.as_micros()).unwrap_or(u64::MAX))
}
