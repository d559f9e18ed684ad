//! Whether the allowed rate is what holds a consumer back.

use core::time::Duration;

use namecast_units::{Bitrate, ByteSize, Instant};

/// Time over which use is judged: several samples of a live stream.
const WINDOW_BUCKETS: u64 = 5;
/// Length of one bucket of it.
const BUCKET: Duration = Duration::from_millis(50);
/// Less time than this shows nothing.
const MIN_TIME: Duration = Duration::from_millis(100);

/// Judges whether a consumer requests at least half of what it may.
///
/// A live stream requests its own bitrate and no more. If a controller took the absence of congestion then as leave to
/// raise its rate, it would rise without end, and hold nothing back on the day the network becomes narrow. TCP has the
/// same question; the half is the answer of \[RFC7661\].
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Octets requested in the buckets of the window, by number modulo their count.
    buckets: [u64; WINDOW_BUCKETS as usize],
    /// Number of the newest bucket.
    newest: u64,
    /// When the first Interest of the current activity left.
    since: Option<Instant>,
}

impl Usage {
    /// Records an Interest, sent `now`, for about `size` of Data.
    pub fn on_sent(&mut self, now: Instant, size: ByteSize) {
        self.advance(now);
        self.since.get_or_insert(now);
        let bucket = &mut self.buckets[(self.newest % WINDOW_BUCKETS) as usize];
        *bucket = bucket.saturating_add(size.as_bytes());
    }

    /// Returns whether what was requested in the last quarter of a second is at least half of `rate`.
    ///
    /// What was just started is taken to be held back.
    pub fn is_limited_by(&mut self, now: Instant, rate: Bitrate) -> bool {
        self.advance(now);
        let Some(since) = self.since else {
            return true;
        };
        let begin = (self.newest + 1).saturating_sub(WINDOW_BUCKETS) * BUCKET.as_nanos() as u64;
        let since = since.max(Instant::from_nanos(begin));
        let time = now.since(since).max(MIN_TIME);
        let asked = ByteSize::bytes(self.buckets.iter().sum());
        (asked + asked) / time >= rate
    }

    fn advance(&mut self, now: Instant) {
        let number = now.as_nanos() / BUCKET.as_nanos() as u64;
        let passed = number.saturating_sub(self.newest);
        for step in 1..=passed.min(WINDOW_BUCKETS) {
            self.buckets[((self.newest + step) % WINDOW_BUCKETS) as usize] = 0;
        }
        self.newest = self.newest.max(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// 1250 octets every 10 ms are 1 Mbit/s: held back by up to 2 Mbit/s.
    #[test]
    fn half_of_the_allowed_rate_must_be_used() {
        let mut usage = Usage::default();
        for step in 0..100 {
            usage.on_sent(at(step * 10), ByteSize::bytes(1_250));
        }
        assert!(usage.is_limited_by(at(1_000), Bitrate::kbps(1_900)));
        assert!(!usage.is_limited_by(at(1_000), Bitrate::kbps(2_100)));
        // Nothing was requested since.
        assert!(!usage.is_limited_by(at(1_500), Bitrate::kbps(1)));
        // And it starts again as it was.
        for step in 300..400 {
            usage.on_sent(at(step * 10), ByteSize::bytes(1_250));
        }
        assert!(usage.is_limited_by(at(4_000), Bitrate::kbps(1_900)));
        assert!(!usage.is_limited_by(at(4_000), Bitrate::kbps(2_100)));
    }

    #[test]
    fn what_was_just_started_is_held_back() {
        let mut usage = Usage::default();
        assert!(usage.is_limited_by(at(70_000), Bitrate::mbps(100)));
        usage.on_sent(at(70_000), ByteSize::bytes(10_240));
        // 10 240 octets in at least 100 ms: 819 kbit/s.
        assert!(usage.is_limited_by(at(70_000), Bitrate::kbps(1_638)));
        assert!(!usage.is_limited_by(at(70_000), Bitrate::kbps(1_639)));
    }
}
