//! Spreads Interests so that the Data they ask for comes at the allowed rate.

use core::time::Duration;

use namecast_units::{Bitrate, ByteSize, Instant};

/// Says when the next Interest may leave.
///
/// ```text
/// debt ← max(0, debt − R·(t − t_last)) + size      at each Interest
/// next = t_last + debt / R − burst
/// ```
///
/// | here  | meaning                                                             |
/// |-------|---------------------------------------------------------------------|
/// | debt  | octets requested up to `t_last`, in excess of what the rate had given |
/// | R     | rate allowed now: a change counts from the last Interest on         |
/// | burst | time's worth of the rate that may leave at once                     |
///
/// With a burst of zero that is ARC's rule: whenever the interval I changes, the next Interest leaves at `t_last + I`.
#[derive(Clone, Copy, Debug)]
pub struct Pacer {
    burst: Duration,
    /// Octets.
    debt: f64,
    last: Instant,
}

impl Pacer {
    /// Burst of a pacer that a machine's timers serve: below it, they fire more often than they are worth.
    pub const DEFAULT_BURST: Duration = Duration::from_millis(5);

    /// A pacer that lets `burst` worth of the rate leave at once.
    pub const fn new(burst: Duration) -> Self {
        Self {
            burst,
            debt: 0.0,
            last: Instant::ZERO,
        }
    }

    /// Returns when an Interest may leave under `rate`; `now` or earlier means at once.
    pub fn next_send(&self, rate: Option<Bitrate>) -> Instant {
        match rate {
            None => Instant::ZERO,
            Some(_) if self.debt <= 0.0 => Instant::ZERO,
            Some(rate) => {
                let nanos = self.debt * NANOS / bytes_per_second(rate);
                // Saturates: at a rate of zero the next Interest leaves practically never.
                let wait = Duration::from_nanos(nanos as u64);
                (self.last + wait).saturating_sub(self.burst)
            }
        }
    }

    /// Records an Interest, sent `now`, for about `size` of Data.
    pub fn on_sent(&mut self, now: Instant, size: ByteSize, rate: Option<Bitrate>) {
        let paid = match rate {
            None => self.debt,
            Some(rate) => bytes_per_second(rate) * now.since(self.last).as_nanos() as f64 / NANOS,
        };
        self.debt = (self.debt - paid).max(0.0) + size.as_bytes() as f64;
        self.last = now;
    }
}

impl Default for Pacer {
    fn default() -> Self {
        Self::new(Self::DEFAULT_BURST)
    }
}

const NANOS: f64 = 1e9;

/// Returns a rate of at least one bit per second, so that it divides.
fn bytes_per_second(rate: Bitrate) -> f64 {
    rate.as_bps().max(1) as f64 / 8.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: ByteSize = ByteSize::bytes(1_250);

    /// 1250 bytes at 1 Mbit/s take 10 ms, and 5 ms may be owed: sends at 0, 5, 15, 25, … ms.
    #[test]
    fn interests_leave_at_the_rate_of_the_data_they_ask_for() {
        let rate = Some(Bitrate::mbps(1));
        let mut pacer = Pacer::default();
        let mut now = Instant::ZERO;
        let mut sent = Vec::new();
        for _ in 0..4 {
            now = now.max(pacer.next_send(rate));
            sent.push(now.as_nanos() / 1_000_000);
            pacer.on_sent(now, SIZE, rate);
        }
        assert_eq!(sent, [0, 5, 15, 25]);
    }

    #[test]
    fn silence_earns_no_more_than_the_burst() {
        let rate = Some(Bitrate::mbps(1));
        let mut pacer = Pacer::default();
        pacer.on_sent(Instant::ZERO, SIZE, rate);
        let late = Instant::ZERO + Duration::from_secs(10);
        pacer.on_sent(late, SIZE, rate);
        assert_eq!(pacer.next_send(rate), late + Duration::from_millis(5));
    }

    #[test]
    fn no_rate_is_no_limit() {
        let mut pacer = Pacer::default();
        pacer.on_sent(Instant::ZERO, SIZE, None);
        assert_eq!(pacer.next_send(None), Instant::ZERO);
    }

    /// The last Interest left at 3 ms. At 1 Mbit/s the next may follow 10 ms later, at 2 Mbit/s 5 ms, at 0.5 Mbit/s 20 ms,
    /// whenever the rate changes.
    #[test]
    fn without_a_burst_the_new_interval_counts_from_the_last_interest() {
        let mut pacer = Pacer::new(Duration::ZERO);
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        pacer.on_sent(at(3), SIZE, Some(Bitrate::mbps(1)));
        for (kbps, next) in [(1_000, 13), (2_000, 8), (500, 23)] {
            assert_eq!(pacer.next_send(Some(Bitrate::kbps(kbps))), at(next));
        }
        // Nothing is owed for the time before, whatever the rate was then.
        pacer.on_sent(at(23), SIZE, Some(Bitrate::kbps(500)));
        assert_eq!(pacer.next_send(Some(Bitrate::mbps(1))), at(33));
    }

    /// 1 Gbit/s with 1237 octets is 9.896 µs apart, and 10 000 of them 98.96 ms: no rounding may add up.
    #[test]
    fn rounding_to_nanoseconds_does_not_add_up() {
        let rate = Some(Bitrate::bps(999_999_937));
        let mut pacer = Pacer::new(Duration::ZERO);
        let mut now = Instant::ZERO;
        for _ in 0..10_000 {
            now = now.max(pacer.next_send(rate));
            pacer.on_sent(now, ByteSize::bytes(1_237), rate);
        }
        let exact = 9_999.0 * 1_237.0 * 8.0 / 0.999_999_937;
        assert!((now.as_nanos() as f64 - exact).abs() <= 2.0);
    }

    #[test]
    fn a_rate_of_zero_lets_nothing_leave_and_overflows_nothing() {
        let mut pacer = Pacer::new(Duration::ZERO);
        pacer.on_sent(Instant::ZERO, SIZE, Some(Bitrate::ZERO));
        let hours = Instant::ZERO + Duration::from_secs(9_000);
        assert!(pacer.next_send(Some(Bitrate::ZERO)) > hours);
    }
}
