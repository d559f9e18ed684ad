//! How many segments the next sample will have: key and delta samples, data and parity each on their own (RTSD §3.3).

use crate::names::{SampleClass, SegmentKind};
use crate::sample::Lead;

/// Share of a new sample in the averages. 1/8 follows a scene change within a dozen frames.
const GAIN: f64 = 1.0 / 8.0;
/// Deviations added to the mean: too many Interests cost some bytes upstream, too few cost a round trip.
const DEVIATIONS: f64 = 2.0;
/// A catalogue that says so many times as much as there is lies, and is not accepted any more.
const WILD: f64 = 4.0;

/// Running mean and mean deviation of one count.
#[derive(Clone, Copy, Debug)]
struct Estimator {
    mean: f64,
    deviation: f64,
    /// Nothing was observed yet.
    is_guess: bool,
}

impl Estimator {
    const fn new(initial: u32) -> Self {
        Self {
            mean: initial as f64,
            deviation: 0.0,
            is_guess: true,
        }
    }

    fn observe(&mut self, count: u32) {
        let is_wild = f64::from(count) * WILD < self.mean;
        if core::mem::take(&mut self.is_guess) && is_wild {
            // As RFC 6298 begins.
            self.mean = f64::from(count);
            self.deviation = self.mean / 2.0;
            return;
        }
        let error = f64::from(count) - self.mean;
        self.mean += GAIN * error;
        self.deviation += GAIN * (error.abs() - self.deviation);
    }

    fn estimate(&self) -> u32 {
        // A mean that only just misses a whole number by rounding must not cost an Interest for each sample.
        let count = self.mean + DEVIATIONS * self.deviation - 1e-6;
        count.ceil().max(0.0) as u32
    }
}

/// Estimators of segments per sample, by class and kind.
#[derive(Clone, Copy, Debug)]
pub(in crate::consumer) struct SegmentEstimators {
    /// Data and parity of key samples, then of delta samples.
    key: [Estimator; 2],
    delta: [Estimator; 2],
    /// Octets of payload in a segment of key samples, and of delta samples.
    sizes: [f64; 2],
    most: u32,
}

/// Data and parity segments of one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::consumer) struct SegmentCounts {
    /// Data segments, the lead included: N.
    pub data: u32,
    /// Parity segments: P.
    pub parity: u32,
}

impl SegmentCounts {
    /// What `lead` says that its sample has.
    pub(in crate::consumer) fn of(lead: &Lead) -> Self {
        Self {
            data: u32::try_from(lead.data_count()).unwrap_or(u32::MAX),
            parity: u32::try_from(lead.parity_count()).unwrap_or(u32::MAX),
        }
    }
}

impl SegmentEstimators {
    /// Starts from what is known beforehand, of `sizes` for those of key samples first; no count will exceed `most`.
    pub(in crate::consumer) const fn new(
        key: SegmentCounts,
        delta: SegmentCounts,
        sizes: [f64; 2],
        most: u32,
    ) -> Self {
        Self {
            key: [Estimator::new(key.data), Estimator::new(key.parity)],
            delta: [Estimator::new(delta.data), Estimator::new(delta.parity)],
            sizes,
            most,
        }
    }

    /// Records how much of its payload each data segment of one sample had.
    pub(in crate::consumer) fn observe_size(&mut self, class: SampleClass, octets: usize) {
        let size = &mut self.sizes[class.index()];
        *size += GAIN * (octets as f64 - *size);
    }

    /// Returns the octets of payload that a segment of the next sample of `class` will have, on average.
    pub(in crate::consumer) fn size(&self, class: SampleClass) -> f64 {
        self.sizes[class.index()]
    }

    /// Records what one sample had.
    pub(in crate::consumer) fn observe(&mut self, class: SampleClass, counts: SegmentCounts) {
        let [data, parity] = match class {
            SampleClass::Key => &mut self.key,
            SampleClass::Delta => &mut self.delta,
        };
        data.observe(counts.data.min(self.most));
        parity.observe(counts.parity.min(self.most));
    }

    /// Returns how many Interests to send for the next sample of `class`: M.
    pub(in crate::consumer) fn estimate(&self, class: SampleClass) -> SegmentCounts {
        SegmentCounts {
            data: self.count(class, SegmentKind::Data).max(1),
            parity: self.count(class, SegmentKind::Parity),
        }
    }

    /// Returns how likely the next sample of `class` is to have data segment `index`, as far as samples before it tell.
    pub(in crate::consumer) fn likelihood(&self, class: SampleClass, index: u64) -> f64 {
        let [data, _] = match class {
            SampleClass::Key => &self.key,
            SampleClass::Delta => &self.delta,
        };
        let spread = (2.0 * data.deviation).max(0.5);
        let surplus = data.mean + spread - index as f64;
        (surplus / (2.0 * spread)).clamp(0.0, 1.0)
    }

    fn count(&self, class: SampleClass, kind: SegmentKind) -> u32 {
        let [data, parity] = match class {
            SampleClass::Key => &self.key,
            SampleClass::Delta => &self.delta,
        };
        match kind {
            SegmentKind::Data => data.estimate().min(self.most),
            SegmentKind::Parity => parity.estimate().min(self.most),
            SegmentKind::LeadCopy | SegmentKind::InterFrame => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 announced, 5 there: as many as if nothing had been said. 20 announced: the average moves by an eighth.
    #[test]
    fn what_lies_wildly_is_not_accepted() {
        let after = |announced| {
            let mut estimator = Estimator::new(announced);
            estimator.observe(5);
            let first = estimator.estimate();
            (0..20).for_each(|_| estimator.observe(5));
            (first, estimator.estimate())
        };
        assert_eq!(after(100), (10, 6));
        assert_eq!(after(20).0, 22);
    }

    const fn counts(data: u32, parity: u32) -> SegmentCounts {
        SegmentCounts { data, parity }
    }

    fn estimators() -> SegmentEstimators {
        SegmentEstimators::new(counts(25, 5), counts(8, 2), [1_000.0, 800.0], 100)
    }

    #[test]
    fn before_any_sample_the_initial_counts_hold() {
        assert_eq!(estimators().estimate(SampleClass::Key), counts(25, 5));
        assert_eq!(estimators().estimate(SampleClass::Delta), counts(8, 2));
    }

    /// From 8, one sample of 16: mean 8 + 8/8 = 9, deviation 8/8 = 1, so ⌈9 + 2·1⌉ = 11.
    #[test]
    fn one_sample_moves_its_own_estimator_only() {
        let mut estimators = estimators();
        estimators.observe(SampleClass::Delta, counts(16, 2));
        assert_eq!(estimators.estimate(SampleClass::Delta), counts(11, 2));
        assert_eq!(estimators.estimate(SampleClass::Key), counts(25, 5));
    }

    /// From 800 octets, one sample with 80 in its only segment: 800 − 720/8 = 710. After many it is 80.
    #[test]
    fn sizes_follow_what_segments_have() {
        let mut estimators = estimators();
        estimators.observe_size(SampleClass::Delta, 80);
        assert!((estimators.size(SampleClass::Delta) - 710.0).abs() < 1e-9);
        assert!((estimators.size(SampleClass::Key) - 1_000.0).abs() < 1e-9);
        (0..200).for_each(|_| estimators.observe_size(SampleClass::Delta, 80));
        assert!((estimators.size(SampleClass::Delta) - 80.0).abs() < 1e-3);
    }

    #[test]
    fn steady_samples_are_asked_for_exactly() {
        let mut estimators = estimators();
        for _ in 0..200 {
            estimators.observe(SampleClass::Delta, counts(5, 1));
        }
        assert_eq!(estimators.estimate(SampleClass::Delta), counts(5, 1));
    }

    /// Uniform 4…6 has a mean of 5 and a mean deviation of 2/3: ⌈5 + 4/3⌉ = 7 covers all without requesting twice as many.
    #[test]
    fn varying_samples_are_covered() {
        let mut estimators = estimators();
        for step in 0..300 {
            estimators.observe(SampleClass::Delta, counts(4 + step % 3, 1));
        }
        let data = estimators.estimate(SampleClass::Delta).data;
        assert!((6..=8).contains(&data), "{data}");
    }

    #[test]
    fn a_lying_lead_cannot_raise_the_estimate_over_the_bound() {
        let mut estimators = estimators();
        for _ in 0..50 {
            estimators.observe(SampleClass::Key, counts(u32::MAX, u32::MAX));
        }
        let estimate = estimators.estimate(SampleClass::Key);
        assert_eq!(estimate, counts(100, 100));
        for _ in 0..500 {
            estimators.observe(SampleClass::Key, counts(0, 0));
        }
        assert_eq!(estimators.estimate(SampleClass::Key), counts(1, 0));
    }
}
