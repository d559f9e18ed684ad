//! How long an Ack takes.

use core::time::Duration;

use super::ReliabilityConfig;

/// A link's round-trip time and the time to wait for an Ack: \[RFC6298\], with α = 1/8, β = 1/4 and K = 4.
///
/// ```text
/// RTTVAR ← (1 − β) · RTTVAR + β · |SRTT − R|
/// SRTT   ← (1 − α) · SRTT + α · R
/// RTO    ← SRTT + max(G, K · RTTVAR)
/// ```
///
/// G is the time that the peer may let an Ack wait. Differs from the RFC: the least RTO is a parameter, not 1 s.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RttEstimator {
    /// SRTT and RTTVAR.
    measured: Option<(Duration, Duration)>,
    /// Timeouts since an Ack came; each doubles the time.
    timeouts: u32,
}

impl RttEstimator {
    /// An Ack came `sample` after its frame was sent. Each transmission has a number of its own, so unlike in TCP none is
    /// ambiguous.
    pub(crate) fn on_ack(&mut self, sample: Duration) {
        self.timeouts = 0;
        self.measured = Some(match self.measured {
            None => (sample, sample / 2),
            Some((smoothed, variation)) => {
                let variation = (variation * 3 + smoothed.abs_diff(sample)) / 4;
                ((smoothed * 7 + sample) / 8, variation)
            }
        });
    }

    /// A time was up.
    pub(super) const fn on_timeout(&mut self) {
        self.timeouts = self.timeouts.saturating_add(1);
    }

    /// Timeouts since an Ack came.
    pub(super) const fn timeouts(&self) -> u32 {
        self.timeouts
    }

    /// SRTT, once there was a sample.
    pub(crate) fn smoothed(&self) -> Option<Duration> {
        self.measured.map(|(smoothed, _)| smoothed)
    }

    /// RTO without bounds, once there was a sample; `granularity` is G.
    pub(crate) fn expected(&self, granularity: Duration) -> Option<Duration> {
        let (smoothed, variation) = self.measured?;
        Some(smoothed + (variation * 4).max(granularity))
    }

    /// Time after which a transmission without Ack is lost.
    pub(super) fn timeout(&self, config: &ReliabilityConfig) -> Duration {
        let base = self
            .expected(config.ack_delay)
            .unwrap_or(config.initial_rto);
        let base = base.max(config.min_rto);
        let doubled = base.saturating_mul(1_u32.checked_shl(self.timeouts).unwrap_or(u32::MAX));
        doubled.min(config.max_rto).max(base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// By hand: 40 ms give SRTT 40, RTTVAR 20, RTO 120; then 48 ms give RTTVAR (3·20 + 8)/4 = 17, SRTT (7·40 + 48)/8 = 41,
    /// RTO 41 + 68 = 109.
    #[test]
    fn the_timeout_is_that_of_the_rfc() {
        let config = ReliabilityConfig::default();
        let mut rtt = RttEstimator::default();
        assert_eq!(rtt.timeout(&config), ms(250));
        rtt.on_ack(ms(40));
        assert_eq!(rtt.timeout(&config), ms(120));
        rtt.on_ack(ms(48));
        assert_eq!(rtt.timeout(&config), ms(109));
    }

    #[test]
    fn a_steady_link_is_given_its_round_trip_and_the_peers_delay() {
        let config = ReliabilityConfig::default();
        for (round_trip, timeout) in [(ms(50), ms(55)), (ms(2), ms(10)), (ms(1_500), ms(1_505))] {
            let mut rtt = RttEstimator::default();
            (0..100).for_each(|_| rtt.on_ack(round_trip));
            assert_eq!(rtt.timeout(&config), timeout);
        }
    }

    #[test]
    fn silence_doubles_the_timeout_up_to_its_bound_and_an_ack_ends_that() {
        let config = ReliabilityConfig::default();
        let mut rtt = RttEstimator::default();
        (0..100).for_each(|_| rtt.on_ack(ms(115)));
        let mut timeouts = Vec::new();
        for _ in 0..40 {
            timeouts.push(rtt.timeout(&config).as_millis());
            rtt.on_timeout();
        }
        assert_eq!(timeouts[..5], [120, 240, 480, 960, 1_000]);
        assert_eq!(timeouts[39], 1_000);
        rtt.on_ack(ms(115));
        assert_eq!((rtt.timeout(&config), rtt.timeouts()), (ms(120), 0));
    }
}
