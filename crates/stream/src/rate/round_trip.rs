//! Smoothed round-trip time, its variation, and the timeout that follows: \[RFC6298\].

use core::time::Duration;

use super::Estimates;

/// Bounds of the timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTripConfig {
    /// Timeout before anything was measured (1 s in \[RFC6298\] §2.1).
    pub initial: Duration,
    /// Least timeout (1 s in \[RFC6298\] §2.4, which all implementations undercut).
    pub least: Duration,
    /// Greatest timeout, backed off or not.
    pub greatest: Duration,
    /// G: what the timeout is longer than SRTT, at least. On a path without noise the variation goes to zero, and every
    /// packet would be late once a queue grows. 200 ms in Linux.
    pub granularity: Duration,
}

impl RoundTripConfig {
    /// The bounds that nearly all implementations have in common, and those in which they differ.
    pub const fn new(least: Duration, granularity: Duration) -> Self {
        Self {
            initial: Duration::from_secs(1),
            least,
            greatest: Duration::from_secs(60),
            granularity,
        }
    }
}

/// Smooths round-trip times.
///
/// ```text
/// RTTVAR ← ¾·RTTVAR + ¼·|SRTT − R|        SRTT ← ⅞·SRTT + ⅛·R        RTO = SRTT + max(G, 4·RTTVAR)
/// ```
///
/// with RTTVAR = R/2 at first. RTO is doubled at each timeout until the next sample.
#[derive(Clone, Copy, Debug)]
pub struct RoundTrip {
    config: RoundTripConfig,
    /// SRTT and RTTVAR in nanoseconds.
    smoothed: Option<(u64, u64)>,
    doublings: u32,
}

/// Most doublings of the timeout: 2⁶, as ndnSIM bounds its multiplier too.
const MAX_DOUBLINGS: u32 = 6;

impl RoundTrip {
    /// An estimator that has seen nothing.
    pub const fn new(config: RoundTripConfig) -> Self {
        Self {
            config,
            smoothed: None,
            doublings: 0,
        }
    }

    /// Takes the round-trip time of an Interest that was sent once (Karn).
    pub fn on_sample(&mut self, rtt: Duration) {
        let rtt = u64::try_from(rtt.as_nanos()).unwrap_or(u64::MAX / 8);
        self.doublings = 0;
        self.smoothed = Some(match self.smoothed {
            None => (rtt, rtt / 2),
            Some((smoothed, variation)) => (
                smoothed - smoothed / 8 + rtt / 8,
                variation - variation / 4 + smoothed.abs_diff(rtt) / 4,
            ),
        });
    }

    /// Doubles the timeout, until the next sample.
    pub fn back_off(&mut self) {
        self.doublings = (self.doublings + 1).min(MAX_DOUBLINGS);
    }

    /// SRTT.
    pub fn smoothed(&self) -> Option<Duration> {
        self.smoothed
            .map(|(smoothed, _)| Duration::from_nanos(smoothed))
    }

    /// Returns what a controller has found out that measures nothing else.
    pub(super) fn estimates(&self) -> Estimates {
        Estimates {
            average_rtt: self.smoothed(),
            ..Estimates::default()
        }
    }

    /// RTO.
    pub fn timeout(&self) -> Duration {
        let timeout = match self.smoothed {
            None => self.config.initial,
            Some((smoothed, variation)) => {
                let margin = Duration::from_nanos(variation.saturating_mul(4));
                let margin = margin.max(self.config.granularity);
                Duration::from_nanos(smoothed).saturating_add(margin)
            }
        };
        let doubled = timeout
            .max(self.config.least)
            .saturating_mul(1 << self.doublings);
        doubled.min(self.config.greatest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// R = 160: SRTT 160, RTTVAR 80, RTO 480. R = 80: RTTVAR ¾·80 + ¼·80 = 80, SRTT 140 + 10 = 150, RTO 470.
    #[test]
    fn the_timeout_is_that_of_the_standard() {
        let mut rtt = RoundTrip::new(RoundTripConfig::new(ms(200), ms(1)));
        assert_eq!((rtt.timeout(), rtt.smoothed()), (ms(1_000), None));
        rtt.on_sample(ms(160));
        assert_eq!((rtt.timeout(), rtt.smoothed()), (ms(480), Some(ms(160))));
        rtt.on_sample(ms(80));
        assert_eq!((rtt.timeout(), rtt.smoothed()), (ms(470), Some(ms(150))));
    }

    /// 300 ms each time: 4·RTTVAR goes from 600 ms to below 50 ms, where G stands in.
    #[test]
    fn without_noise_the_timeout_stays_above_the_round_trip() {
        let mut rtt = RoundTrip::new(RoundTripConfig::new(ms(200), ms(50)));
        for _ in 0..50 {
            rtt.on_sample(ms(300));
        }
        assert_eq!(rtt.timeout(), ms(350));
    }

    #[test]
    fn the_timeout_doubles_until_the_next_sample_within_its_bounds() {
        let mut rtt = RoundTrip::new(RoundTripConfig::new(ms(200), ms(1)));
        rtt.on_sample(ms(10));
        let mut timeouts = Vec::new();
        for _ in 0..8 {
            timeouts.push(rtt.timeout().as_millis());
            rtt.back_off();
        }
        assert_eq!(
            timeouts,
            [200, 400, 800, 1_600, 3_200, 6_400, 12_800, 12_800]
        );
        rtt.on_sample(ms(10));
        assert_eq!(rtt.timeout(), ms(200));
        rtt.on_sample(Duration::MAX);
        rtt.back_off();
        assert_eq!(rtt.timeout(), Duration::from_secs(60));
    }
}
