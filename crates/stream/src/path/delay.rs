//! How long Data takes that exists already: the Data Retrieval Delay, and the timeout that follows from it.
//!
//! An Interest for live Data waits at the producer until the sample exists, so Interest-to-Data time says nothing by
//! itself. The producer states how long the oldest Interest had waited, and its Nonce: only the consumer that finds its own
//! Nonce may subtract (RTSD §3.3, DRD = DRD′ − d_gen).

use core::time::Duration;

use namecast_units::{Instant, WindowedMinimum};
use smart_default::SmartDefault;

/// Constants of the estimator.
#[derive(Clone, Copy, Debug, SmartDefault)]
pub struct DelayConfig {
    /// DRD before anything was measured (150 ms in NDN-RTC 3.0.2).
    #[default(Duration::from_millis(150))]
    pub initial: Duration,
    /// Timeout before anything was measured. [RFC 6298] starts at 1 s, a join cannot afford that.
    #[default(Duration::from_millis(500))]
    pub initial_timeout: Duration,
    /// Least timeout: forwarders suppress faster retransmissions anyway (NFD: 10 ms doubling to 250 ms).
    #[default(Duration::from_millis(30))]
    pub min_timeout: Duration,
    /// Greatest timeout, backed off or not.
    #[default(Duration::from_secs(2))]
    pub greatest_timeout: Duration,
    /// How long a measurement of our own stands for, before plain answers replace it.
    #[default(Duration::from_secs(5))]
    pub own_valid: Duration,
}

/// Clock granularity G of [RFC 6298]: what timers of browsers resolve.
const GRANULARITY: Duration = Duration::from_millis(5);

/// So long without an unambiguous answer means that every Interest is sent again too early.
const ONLY_AMBIGUOUS: Duration = Duration::from_millis(500);

/// Retransmission timeout, doubled for each transmission after the first ([RFC 6298] §2, §5.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    first: Duration,
    most: Duration,
}

impl Timer {
    /// Timeout of a transmission before which there were `attempts`.
    pub fn after(self, attempts: u32) -> Duration {
        (self.first * (1 << attempts.min(6))).min(self.most)
    }
}

/// What an answer tells of the delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelaySample {
    /// It answers our own Interest, which took `rtt` and of that waited `waited` for the Data to exist.
    Own {
        /// From Interest to Data.
        rtt: Duration,
        /// At the producer.
        waited: Duration,
    },
    /// The same, but the Interest was sent again before.
    Ambiguous {
        /// From the first Interest to Data.
        rtt: Duration,
        /// At the producer.
        waited: Duration,
    },
    /// How long it waited is not known.
    Plain {
        /// From Interest to Data.
        rtt: Duration,
    },
}

/// What a consumer sees of the path that its requests take.
#[derive(Clone, Debug)]
pub struct PathView {
    /// How long Data takes.
    pub delay: DelayEstimator,
    /// What else is known.
    pub outlook: PathOutlook,
}

impl PathView {
    /// A view of a path of which nothing is known.
    pub fn new(config: DelayConfig) -> Self {
        Self {
            delay: DelayEstimator::new(config),
            outlook: PathOutlook::default(),
        }
    }

    /// Takes over what `other` knows of delays on the same path.
    pub fn learn_from(&mut self, other: &Self) {
        self.delay = other.delay.clone();
    }
}

/// How packets queue on a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathOutlook {
    /// The longest that a packet has queued lately.
    pub queueing: Duration,
    /// By how much delays of neighbouring packets differ.
    pub jitter: Duration,
}

/// Estimates DRD and retransmission timeout.
#[derive(Clone, Debug)]
pub struct DelayEstimator {
    config: DelayConfig,
    /// Smoothed DRD and its variation, from answers to Interests of ours: SRTT and RTTVAR of [RFC 6298].
    smoothed: Option<(Duration, Duration)>,
    own_at: Instant,
    /// What is known comes from ambiguous answers: the next clear one replaces it.
    is_guess: bool,
    /// Answers to the first of several transmissions. Each may have come from a cache after a loss, so each is at least the
    /// delay.
    ambiguous: WindowedMinimum<Duration>,
    /// Answers to somebody else's Interest, or from a cache: each is at least the delay, some are it.
    plain: WindowedMinimum<Duration>,
    /// The least seen of either, over 10 s.
    least: WindowedMinimum<Duration>,
    /// The least of our own, over 10 s.
    own_least: WindowedMinimum<Duration>,
}

impl DelayEstimator {
    /// An estimator that has seen nothing.
    pub fn new(config: DelayConfig) -> Self {
        Self {
            config,
            smoothed: None,
            own_at: Instant::ZERO,
            is_guess: false,
            ambiguous: WindowedMinimum::new(Duration::from_millis(250), 4),
            plain: WindowedMinimum::new(Duration::from_millis(500), 4),
            least: WindowedMinimum::new(Duration::from_secs(1), 10),
            own_least: WindowedMinimum::new(Duration::from_secs(1), 10),
        }
    }

    /// Takes what an answer tells. Returns the round trip if it shows that.
    pub fn on_sample(&mut self, now: Instant, sample: DelaySample) -> Option<Duration> {
        match sample {
            DelaySample::Own { rtt, waited } => {
                self.on_own(now, rtt, waited);
                return Some(rtt.saturating_sub(waited));
            }
            DelaySample::Ambiguous { rtt, waited } => self.on_ambiguous(now, rtt, waited),
            DelaySample::Plain { rtt } => self.on_plain(now, rtt),
        }
        None
    }

    /// Takes an answer to our own Interest, which took `rtt` and of that waited `waited` for the Data to exist.
    ///
    /// Only for Interests that were sent once (Karn).
    pub fn on_own(&mut self, now: Instant, rtt: Duration, waited: Duration) {
        let delay = rtt.saturating_sub(waited);
        if self.is_absurd(delay) {
            return;
        }
        self.least.push(now, delay);
        self.own_least.push(now, delay);
        self.own_at = now;
        let was_guess = core::mem::take(&mut self.is_guess);
        self.smoothed = Some(match self.smoothed.filter(|_| !was_guess) {
            None => (delay, delay / 2),
            Some((smoothed, variation)) => (
                smoothed * 7 / 8 + delay / 8,
                variation * 3 / 4 + smoothed.abs_diff(delay) / 4,
            ),
        });
    }

    /// Takes an answer to an Interest of ours that reached the producer first, but was sent again before the answer came.
    ///
    /// Karn's rule leaves these out; but where the path delay increased than the timeout, there is nothing else. Once
    /// nothing better came for half a second, the least of them replaces what was known.
    pub fn on_ambiguous(&mut self, now: Instant, rtt: Duration, waited: Duration) {
        let delay = rtt.saturating_sub(waited);
        if self.is_absurd(delay) {
            return;
        }
        self.ambiguous.push(now, delay);
        let is_all_there_is = now.since(self.own_at) >= ONLY_AMBIGUOUS;
        if let Some(least) = self.ambiguous.minimum(now).filter(|_| is_all_there_is) {
            self.smoothed = Some((least, least / 2));
            self.is_guess = true;
        }
    }

    /// Returns whether nothing passed for so long, as while a host sleeps: that is no delay.
    fn is_absurd(&self, delay: Duration) -> bool {
        delay > self.config.greatest_timeout
    }

    /// Takes an answer whose wait is unknown: it bounds the delay from above.
    pub fn on_plain(&mut self, now: Instant, rtt: Duration) {
        if self.is_absurd(rtt) {
            return;
        }
        self.plain.push(now, rtt);
        self.least.push(now, rtt);
    }

    /// DRD: smoothed over our own measurements while they are recent, else the least of recent plain answers.
    pub fn estimate(&self, now: Instant) -> Duration {
        let own = self.smoothed.map(|(smoothed, _)| smoothed);
        let own_is_recent = now.since(self.own_at) <= self.config.own_valid;
        match (own, self.plain.minimum(now)) {
            (Some(own), _) if own_is_recent => own,
            (_, Some(plain)) => plain,
            (Some(own), None) => own,
            (None, None) => self.config.initial,
        }
    }

    /// Jitter: by how much our own measurements vary about DRD, RTTVAR of [RFC 6298].
    pub fn variation(&self) -> Duration {
        let variation = self.smoothed.map(|(_, variation)| variation);
        variation.unwrap_or_default()
    }

    /// Every arrival is later by `shift` from now on. How much longer round trips are is to be measured anew.
    pub fn raise(&mut self, shift: Duration) {
        let smoothed = self.smoothed;
        let smoothed = smoothed.map(|(smoothed, variation)| (smoothed + shift, variation));
        *self = Self {
            smoothed,
            own_at: self.own_at,
            is_guess: self.is_guess,
            ..Self::new(self.config)
        };
    }

    /// DRD without queues: the least of our own measurements in 10 s, else of recent plain answers.
    pub fn floor(&self, now: Instant) -> Duration {
        let known = self
            .own_least
            .minimum(now)
            .or_else(|| self.plain.minimum(now));
        known.unwrap_or_else(|| self.estimate(now))
    }

    /// Returns the least delay of the last 10 s.
    pub fn least(&self, now: Instant) -> Option<Duration> {
        self.least.minimum(now)
    }

    /// RTO = SRTT + max(G, 4·RTTVAR), as [`timer`](Self::timer) has it, after `attempts` transmissions.
    pub fn timeout(&self, now: Instant, attempts: u32) -> Duration {
        self.timer(now).after(attempts)
    }

    /// Returns the timer of retransmissions that is set now.
    ///
    /// Without measurements of our own, plain answers stand in with a variation of half.
    pub fn timer(&self, now: Instant) -> Timer {
        let measured = self.smoothed.or_else(|| {
            let plain = self.plain.minimum(now)?;
            Some((plain, plain / 2))
        });
        let timeout = match measured {
            Some((smoothed, variation)) => smoothed + (variation * 4).max(GRANULARITY),
            None => self.config.initial_timeout,
        };
        Timer {
            first: timeout.max(self.config.min_timeout),
            most: self.config.greatest_timeout,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + ms(millis)
    }

    /// First R = 100 ms: SRTT 100, RTTVAR 50, RTO 100 + 4·50 = 300 ms. Then R = 120 ms: RTTVAR = ¾·50 + ¼·20 = 42.5,
    /// SRTT = ⅞·100 + ⅛·120 = 102.5, RTO = 102.5 + 170 = 272.5 ms.
    #[test]
    fn the_timeout_follows_rfc_6298() {
        let mut drd = DelayEstimator::new(DelayConfig::default());
        assert_eq!(drd.timeout(at(0), 0), ms(500));
        drd.on_own(at(0), ms(100), ms(0));
        assert_eq!(drd.timeout(at(0), 0), ms(300));
        drd.on_own(at(1), ms(120), ms(0));
        assert_eq!(drd.estimate(at(1)), Duration::from_micros(102_500));
        assert_eq!(drd.timeout(at(1), 0), Duration::from_micros(272_500));
        assert_eq!(drd.timeout(at(1), 1), ms(545));
        assert_eq!(drd.timeout(at(1), 9), ms(2_000));
    }

    /// A path without any variation: RTO = 40 + max(5, 4·RTTVAR → 0) = 45 ms in the end, and never below 30 ms.
    #[test]
    fn a_steady_path_has_a_short_timeout_but_not_too_short() {
        let mut drd = DelayEstimator::new(DelayConfig::default());
        (0..60).for_each(|step| drd.on_own(at(step), ms(40), ms(0)));
        let timeout = drd.timeout(at(60), 0);
        assert!((ms(45)..=ms(46)).contains(&timeout), "{timeout:?}");
        let mut local = DelayEstimator::new(DelayConfig::default());
        (0..60).for_each(|step| local.on_own(at(step), ms(1), ms(0)));
        assert_eq!(local.timeout(at(60), 0), ms(30));
    }

    /// 130 ms from Interest to Data, of which the Interest waited 90 ms at the producer.
    #[test]
    fn waiting_for_the_sample_to_exist_is_no_delay_of_the_network() {
        let mut drd = DelayEstimator::new(DelayConfig::default());
        drd.on_own(at(0), ms(130), ms(90));
        assert_eq!(drd.estimate(at(0)), ms(40));
        drd.on_own(at(1), ms(30), ms(90));
        assert!(
            drd.estimate(at(1)) <= ms(40),
            "a lying wait stops at no delay"
        );
    }

    /// The path delay grows from 50 to 450 ms, and every Interest is sent again after 100 ms.
    #[test]
    fn a_way_longer_than_the_timeout_is_learnt() {
        let mut drd = DelayEstimator::new(DelayConfig::default());
        (0..50).for_each(|step| drd.on_own(at(step * 20), ms(50), ms(0)));
        drd.on_ambiguous(at(1_400), ms(480), ms(30));
        assert_eq!(drd.estimate(at(1_400)), ms(50));
        drd.on_ambiguous(at(1_500), ms(470), ms(10));
        assert_eq!(drd.estimate(at(1_500)), ms(450));
        assert_eq!(drd.timeout(at(1_500), 0), ms(1_350));
        // The first clear answer counts whole, not by an eighth.
        drd.on_own(at(1_600), ms(440), ms(0));
        assert_eq!(drd.estimate(at(1_600)), ms(440));
        drd.on_ambiguous(at(9_000), ms(2_001), ms(0));
        assert_eq!(drd.estimate(at(9_000)), ms(440));
    }

    #[test]
    fn plain_answers_count_only_while_there_are_none_of_our_own() {
        let mut drd = DelayEstimator::new(DelayConfig::default());
        assert_eq!(drd.estimate(at(0)), ms(150));
        drd.on_plain(at(0), ms(80));
        drd.on_plain(at(10), ms(60));
        drd.on_plain(at(20), ms(95));
        drd.on_plain(at(20), ms(3_600_000));
        drd.on_own(at(20), ms(3_600_000), ms(0));
        assert_eq!(drd.estimate(at(20)), ms(60));
        drd.on_own(at(30), ms(70), ms(0));
        assert_eq!(drd.estimate(at(30)), ms(70));
        drd.on_plain(at(5_029), ms(65));
        assert_eq!(drd.estimate(at(5_030)), ms(70));
        assert_eq!(drd.estimate(at(5_031)), ms(65));
        assert_eq!(drd.least(at(5_031)), Some(ms(60)));
    }
}
