//! Whether samples arrive as evenly as they are produced: then they are the newest.

use std::collections::VecDeque;

use core::time::Duration;

use namecast_units::Instant;

use super::config::StabilityClass;

/// Constants of the stability estimator: θ₁, θ₂, N and K of \[RTSD\] Eq. 3.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stability {
    /// θ₁: by how much the means of both windows may differ, as a share.
    pub attenuation: f64,
    /// θ₂: how close to the sample period the mean must be; 1 is equal.
    pub similarity: f64,
    /// N: gaps in each of the two windows.
    pub window: usize,
    /// K: hits that make it stable, and misses in a row that end it.
    pub hits: u32,
    /// Misses in a row that begin the count of hits anew: 1 where they must be consecutive, as \[RTSD\] says; K in NDN-RTC.
    ///
    /// It matters: three older samples each round trip of 3·T come one a period on average, and meet Eq. 3 two times of
    /// three.
    pub misses: u32,
}

impl Stability {
    /// The sets of \[RTSD\] §5.2.1, with consecutive hits.
    pub const fn paper(class: StabilityClass) -> Self {
        let (attenuation, similarity, window) = match class {
            StabilityClass::Low => (0.6, 0.5, 3),
            StabilityClass::Medium => (0.3, 0.7, 10),
            StabilityClass::High => (0.1, 0.95, 30),
        };
        Self {
            attenuation,
            similarity,
            window,
            hits: 4,
            misses: 1,
        }
    }

    /// The same with hits counted as NDN-RTC does.
    pub const fn code(class: StabilityClass) -> Self {
        let paper = Self::paper(class);
        Self {
            misses: paper.hits,
            ..paper
        }
    }

    /// Eq. 3 of \[RTSD\] as its authors' code has it:
    ///
    /// ```text
    /// |m₂/m₁ − 1| ≤ θ₁  and  1 − |m₁ − T|/T ≥ θ₂
    /// ```
    ///
    /// | paper  | here             | meaning                         |
    /// |--------|------------------|---------------------------------|
    /// | m₁, m₂ | `newer`, `older` | mean gap of the last N, and of the N before, in seconds |
    /// | T      | `period`         | the producer's sample period, in seconds |
    pub fn is_met(&self, newer: f64, older: f64, period: f64) -> bool {
        newer > 0.0
            && older > 0.0
            && (older / newer - 1.0).abs() <= self.attenuation
            && 1.0 - (newer - period).abs() / period >= self.similarity
    }

    /// Eq. 3 to the letter: m₁/m₂ ≤ θ₁ and 1 − |m₁ − T|/T ≤ θ₂.
    ///
    /// With gaps of exactly T both terms are 1, above every published θ: as printed the test fails just when the stream is
    /// even. For comparison only; nothing uses it.
    pub fn is_met_as_printed(&self, newer: f64, older: f64, period: f64) -> bool {
        newer / older <= self.attenuation
            && 1.0 - (newer - period).abs() / period <= self.similarity
    }
}

/// Tells newest samples, which come one a period, from older ones, which come in bursts.
#[derive(Clone, Debug)]
pub struct StabilityEstimator {
    constants: Stability,
    period: Duration,
    last: Option<Instant>,
    /// The last 2·N gaps, oldest first.
    gaps: VecDeque<Duration>,
    hits: u32,
    misses: u32,
}

impl StabilityEstimator {
    /// An estimator for samples every `period` that has seen nothing.
    pub fn new(constants: Stability, period: Duration) -> Self {
        Self {
            constants,
            period: period.max(Duration::from_nanos(1)),
            last: None,
            gaps: VecDeque::new(),
            hits: 0,
            misses: 0,
        }
    }

    /// Takes the arrival of a sample's first segment: D_arr is the gap since the one before.
    pub fn on_arrival(&mut self, now: Instant) {
        let Some(last) = self.last.replace(now) else {
            return;
        };
        let gap = now.since(last);
        self.gaps.push_back(gap);
        let window = self.constants.window;
        if self.gaps.len() > 2 * window {
            self.gaps.pop_front();
        }
        if self.gaps.len() == 2 * window {
            self.judge();
        }
    }

    fn judge(&mut self) {
        let window = self.constants.window;
        let mean = |sum: Duration| sum.as_secs_f64() / window as f64;
        let older = mean(self.gaps.iter().take(window).sum());
        let newer = mean(self.gaps.iter().skip(window).sum());
        if self
            .constants
            .is_met(newer, older, self.period.as_secs_f64())
        {
            self.misses = 0;
            self.hits = self.hits.saturating_add(1);
        } else {
            self.misses += 1;
            let most = if self.is_stable() {
                self.constants.hits
            } else {
                self.constants.misses
            };
            if self.misses >= most {
                (self.hits, self.misses) = (0, 0);
            }
        }
    }

    /// ŝ: what arrives is the newest there is.
    pub fn is_stable(&self) -> bool {
        self.hits >= self.constants.hits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_nanos(33_333_333);

    /// Arrivals at even gaps until the estimator says so: the number of frames.
    fn frames_until_stable(class: StabilityClass, gap: Duration) -> Option<u32> {
        let mut estimator = StabilityEstimator::new(Stability::paper(class), PERIOD);
        (1..500).find(|&frame| {
            estimator.on_arrival(Instant::ZERO + gap * frame);
            estimator.is_stable()
        })
    }

    /// 2·N gaps fill both windows, and K − 1 more make K hits: 9, 23, 63 gaps, one arrival more than that. At 30 frames a
    /// second 0.30, 0.77, 2.10 s pass from the first to the last.
    #[test]
    fn detection_takes_two_windows_and_k_hits() {
        let frames = |class| frames_until_stable(class, PERIOD);
        assert_eq!(frames(StabilityClass::Low), Some(10));
        assert_eq!(frames(StabilityClass::Medium), Some(24));
        assert_eq!(frames(StabilityClass::High), Some(64));
    }

    /// A mean gap of 1.31 T misses θ₂ = 0.7 (1 − 0.31 = 0.69), one of 1.29 T does not; 1.06 T misses 0.95, 1.04 T does not.
    #[test]
    fn gaps_must_be_close_to_the_period() {
        let stable = |class, percent: u32| frames_until_stable(class, PERIOD * percent / 100);
        assert_eq!(stable(StabilityClass::Medium, 131), None);
        assert_eq!(stable(StabilityClass::Medium, 129), Some(24));
        assert_eq!(stable(StabilityClass::High, 106), None);
        assert_eq!(stable(StabilityClass::High, 104), Some(64));
        assert_eq!(stable(StabilityClass::Low, 49), None);
    }

    /// N = 3: two of three gaps in the older window are bursts (0): m₂ = T/3, m₁ = T, |1/3 − 1| = 0.67 > 0.6: no hit. One of
    /// three: |2/3 − 1| = 0.33: a hit.
    #[test]
    fn both_windows_must_agree() {
        let low = Stability::paper(StabilityClass::Low);
        assert!(!low.is_met(1.0, 1.0 / 3.0, 1.0));
        assert!(low.is_met(1.0, 2.0 / 3.0, 1.0));
        assert!(!low.is_met(1.0, 0.0, 1.0));
        assert!(!low.is_met(0.0, 1.0, 1.0));
    }

    /// Stable, then gaps of 2 T: m₁ of 10 passes 1.3 T at the fourth, θ₁ and θ₂ fail, and four misses make it unstable. Three
    /// misses between hits do not.
    #[test]
    fn stale_samples_are_noticed_after_k_misses_in_a_row() {
        let mut estimator =
            StabilityEstimator::new(Stability::paper(StabilityClass::Medium), PERIOD);
        let mut now = Instant::ZERO;
        for _ in 0..30 {
            now += PERIOD;
            estimator.on_arrival(now);
        }
        assert!(estimator.is_stable());
        let late = (1..20)
            .find(|_| {
                now += PERIOD * 2;
                estimator.on_arrival(now);
                !estimator.is_stable()
            })
            .unwrap();
        // 3 long gaps: m₁ = 1.3 T, 1 − 0.3 = 0.7 within rounding. The 4th to 7th miss.
        assert!((6..=7).contains(&late), "{late}");
    }

    /// Three older samples at once each 3·T: 10 gaps sum up to 9 or 12 T, so that m₂/m₁ is 1, 0.75 and 1.33 in turn. One of
    /// three misses θ₁ = 0.3, so four in a row never meet it, but four with single misses between do.
    #[test]
    fn bursts_at_the_right_mean_rate_are_told_by_consecutive_hits_only() {
        let medium = StabilityClass::Medium;
        for (constants, expected) in [
            (Stability::paper(medium), false),
            (Stability::code(medium), true),
        ] {
            let mut estimator = StabilityEstimator::new(constants, PERIOD);
            let ever = (0..300).any(|frame: u32| {
                estimator.on_arrival(Instant::ZERO + PERIOD * 3 * (frame / 3));
                estimator.is_stable()
            });
            assert_eq!(ever, expected);
        }
    }

    /// As printed, the perfectly even stream is what fails.
    #[test]
    fn equation_3_as_printed_is_inverted() {
        for class in [
            StabilityClass::Low,
            StabilityClass::Medium,
            StabilityClass::High,
        ] {
            let constants = Stability::paper(class);
            assert!(constants.is_met(1.0, 1.0, 1.0));
            assert!(!constants.is_met_as_printed(1.0, 1.0, 1.0));
        }
        // A burst after a pause: m₁ = T/20, m₂ = T.
        let medium = Stability::paper(StabilityClass::Medium);
        assert!(medium.is_met_as_printed(0.05, 1.0, 1.0));
        assert!(!medium.is_met(0.05, 1.0, 1.0));
    }
}
