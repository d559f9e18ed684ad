//! The clock by which pictures are captured: the machine's wall clock when it was first read, and monotonic time from then on, so
//! that what is captured stays in order when the machine's clock is set.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use namecast_units::{Duration, Timestamp};

/// Returns the time by the clock of capture. It starts at 1970 if the machine's clock stands before that.
pub fn wall() -> Timestamp {
    static BEGUN: OnceLock<(Instant, Duration)> = OnceLock::new();
    let (since, begun) = BEGUN.get_or_init(|| {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        (Instant::now(), since_1970.unwrap_or(Duration::ZERO))
    });
    let since_1970 = *begun + since.elapsed();
    Timestamp::from_micros(u64::try_from(since_1970.as_micros()).unwrap_or(u64::MAX))
}
