//! Spreads Interests so that the Data they ask for comes at the allowed rate.

use core::time::Duration;

use namecast_units::{Bitrate, ByteSize, Instant};

/// Time's worth of the rate that may leave at once: below it, timers fire more often than they are worth.
const BURST: Duration = Duration::from_millis(5);

/// Says when the next Interest may leave.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pacer {
    /// When all that has been asked for so far would have arrived at the allowed rate.
    drained_at: Instant,
}

impl Pacer {
    /// When an Interest may leave under `rate`; `now` or earlier means at once.
    pub fn next_send(&self, rate: Option<Bitrate>) -> Instant {
        match rate {
            None => Instant::ZERO,
            Some(_) => self.drained_at.saturating_sub(BURST),
        }
    }

    /// Takes note of an Interest, sent `now`, for about `size` of Data.
    pub fn on_sent(&mut self, now: Instant, size: ByteSize, rate: Option<Bitrate>) {
        if let Some(rate) = rate {
            self.drained_at = self.drained_at.max(now) + size / rate;
        }
    }
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
}
