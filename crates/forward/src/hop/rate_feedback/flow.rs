//! One flow: how fast its Data come, and the rate that the path behind it could last carry.

use std::collections::VecDeque;

use namecast_units::{Bitrate, ByteSize, Instant};

use super::{RateEstimator, RateFeedbackConfig};

/// Interests and Data of one prefix that one neighbour answers: the equations (1) to (4) of \[RFCC\].
///
/// ```text
/// c_raw = octets / (t_last − t_first)         over the last N Data
/// c     = α·c_raw + (1 − α)·c_last
/// B_c   = c   if Cv(A) < 1 and Cv(D) < 1,     else what it was
/// Cv    = standard deviation / mean
/// ```
///
/// | paper | here                  | meaning                                              |
/// |-------|-----------------------|------------------------------------------------------|
/// | N     | `config.window`       | packets that are looked at                           |
/// | α     | `config.weight`       | weight of the newest measurement                     |
/// | A, D  | `interests`, `data`   | times between Interests, and between Data            |
/// | c     | `rate`                | rate at which Data come                              |
/// | B_c   | `capacity`            | the rate when both streams were last steady          |
///
/// Differs from the paper, which counts packets: rates are of octets, as packets of a stream are not of one size. The Interests
/// are those that the N Data answer.
#[derive(Debug)]
pub(super) struct Flow {
    interests: Intervals,
    data: Intervals,
    /// Octets of the last N Data, the oldest first.
    sizes: VecDeque<u32>,
    octets: u64,
    /// In bit/s.
    rate: Option<f64>,
    capacity: Option<Bitrate>,
    last_data: Instant,
}

impl Flow {
    /// A flow of which nothing is known.
    pub(super) fn new(config: &RateFeedbackConfig) -> Self {
        Self {
            interests: Intervals::new(config.window - 1),
            data: Intervals::new(config.window - 1),
            sizes: VecDeque::with_capacity(config.window),
            octets: 0,
            rate: None,
            capacity: None,
            last_data: Instant::ZERO,
        }
    }

    /// Records that Data of `size` came now, for an Interest that was sent at `asked_at`.
    pub(super) fn on_data(
        &mut self,
        now: Instant,
        asked_at: Instant,
        size: ByteSize,
        config: &RateFeedbackConfig,
    ) {
        self.interests.push(asked_at);
        self.data.push(now);
        self.last_data = now;
        if self.sizes.len() == config.window {
            self.octets -= u64::from(self.sizes.pop_front().unwrap_or(0));
        }
        let size = u32::try_from(size.as_bytes()).unwrap_or(u32::MAX);
        self.sizes.push_back(size);
        self.octets += u64::from(size);
        if let Some(sample) = self.sample(config) {
            let weight = config.weight;
            let rate = match self.rate {
                Some(last) => weight * sample + (1.0 - weight) * last,
                None => sample,
            };
            self.rate = Some(rate);
            if self.interests.are_steady() && self.data.are_steady() {
                self.capacity = Some(Bitrate::bps(rate.round() as u64));
            }
        }
    }

    /// Returns the newest measurement, in bit/s; `None` while less than N Data have come, or if all came at once.
    fn sample(&self, config: &RateFeedbackConfig) -> Option<f64> {
        if self.sizes.len() < config.window || self.data.sum == 0 {
            return None;
        }
        let first = self.sizes.front().copied().unwrap_or(0);
        let octets = match config.estimator {
            RateEstimator::Intervals => self.octets - u64::from(first),
            RateEstimator::Packets => self.octets,
        };
        let nanos = self.data.sum as f64;
        Some((octets * 8) as f64 * 1e9 / nanos)
    }

    /// Returns the rate that the path behind the flow could last carry, if it was ever seen.
    pub(super) const fn capacity(&self) -> Option<Bitrate> {
        self.capacity
    }

    /// Returns when Data came last.
    pub(super) const fn last_data(&self) -> Instant {
        self.last_data
    }
}

/// The times between packets, the latest ones, and whether they are about the same.
#[derive(Debug)]
struct Intervals {
    last: Option<Instant>,
    /// In nanoseconds, the oldest first.
    recent: VecDeque<u64>,
    count: usize,
    sum: u64,
    squares: u128,
}

/// Longer intervals count as this, 18 minutes, so that no sum overflows.
const MAX_INTERVAL: u64 = 1 << 40;

impl Intervals {
    fn new(count: usize) -> Self {
        Self {
            last: None,
            recent: VecDeque::with_capacity(count),
            count,
            sum: 0,
            squares: 0,
        }
    }

    /// Records a packet. One that is earlier than the last was overtaken: nothing lies between them.
    fn push(&mut self, at: Instant) {
        let Some(last) = self.last.replace(at) else {
            return;
        };
        let interval = at.as_nanos().saturating_sub(last.as_nanos());
        let interval = interval.min(MAX_INTERVAL);
        if self.recent.len() == self.count {
            let oldest = self.recent.pop_front().unwrap_or(0);
            self.sum -= oldest;
            self.squares -= square(oldest);
        }
        self.recent.push_back(interval);
        self.sum += interval;
        self.squares += square(interval);
    }

    /// Returns whether the coefficient of variation is below 1. With n intervals d, S = Σd and Q = Σd², that is
    ///
    /// ```text
    /// (Q − S²/n) / (n − 1) < (S/n)²   ⇔   n²·Q < (2n − 1)·S²
    /// ```
    fn are_steady(&self) -> bool {
        let n = self.count as u128;
        let sum = u128::from(self.sum);
        self.recent.len() == self.count && n * n * self.squares < (2 * n - 1) * sum * sum
    }
}

fn square(interval: u64) -> u128 {
    u128::from(interval) * u128::from(interval)
}

#[cfg(test)]
#[path = "flow_tests.rs"]
mod tests;
