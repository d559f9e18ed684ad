//! What the link carries.

use std::collections::VecDeque;

use core::time::Duration;

use namecast_units::Instant;
use smart_default::SmartDefault;

use super::{History, PairSum};

/// Capacity before anything was measured.
const FIRST_CAPACITY: f64 = 1e6;
/// The least that a path is taken to carry.
const MIN_CAPACITY: f64 = 20e3;
/// Faster than that, gaps between packets are the clock's.
const MAX_CAPACITY: f64 = 1e9;
/// Share of a new measurement in the capacity.
const CAPACITY_GAIN: f64 = 0.1;
/// Pairs that make a measurement: so many over so long, or many.
const MIN_PAIRS: u32 = 8;
const MIN_PAIR_GAP: f64 = 0.008;
const MANY_PAIRS: u32 = 30;
/// Samples of capacity are taken so often, and kept so long.
const SAMPLE: Duration = Duration::from_millis(250);
const SAMPLES_KEPT: Duration = Duration::from_secs(5);
/// A rate that came through is looked for so often.
const PROOF: Duration = Duration::from_millis(50);
/// How long a fade must last until it counts in full.
const FADE: f64 = 0.3;

/// What the link carries, in bits per second, as packets that were queued back to back show it.
#[derive(Clone, Debug, SmartDefault)]
pub(super) struct Capacity {
    #[default(FIRST_CAPACITY)]
    smoothed: f64,
    is_measured: bool,
    /// Of the last seconds.
    samples: VecDeque<(Instant, f64)>,
    /// The sample that is being taken, and since when.
    open: PairSum,
    open_since: Instant,
    /// A rate that came through while nothing queued, and when it was looked for last.
    proven: f64,
    proved_at: Instant,
    /// At this moment.
    #[default(FIRST_CAPACITY)]
    fast: f64,
}

impl Capacity {
    /// Records a packet of `bits` that came `gap` seconds after one which it was queued behind.
    pub(super) fn on_pair(&mut self, bits: f64, gap: f64) {
        self.open.count += 1;
        self.open.bits += bits;
        self.open.gap += gap;
    }

    /// Ends a sample if it is time to.
    pub(super) fn close_sample(&mut self, now: Instant) {
        if now.since(self.open_since) < SAMPLE {
            return;
        }
        if let Some(rate) = rate_of(self.open, MIN_PAIRS) {
            self.samples.push_back((now, rate));
        }
        self.open = PairSum::default();
        self.open_since = now;
        let kept = |(at, _): &(Instant, f64)| now.since(*at) <= SAMPLES_KEPT;
        while self.samples.front().is_some_and(|sample| !kept(sample)) {
            self.samples.pop_front();
        }
    }

    /// Measures by `pairs`, those of the last second.
    pub(super) fn measure(&mut self, pairs: PairSum) {
        if !self.is_measured && pairs.count >= MIN_PAIRS {
            // Anything is better than a guess.
            self.is_measured = true;
            self.smoothed =
                (pairs.bits / pairs.gap.max(pairs.bits / MAX_CAPACITY)).min(MAX_CAPACITY);
        } else if let Some(rate) = rate_of(pairs, MIN_PAIRS) {
            self.smoothed += CAPACITY_GAIN * (rate - self.smoothed);
        }
    }

    /// A rate that came through while nothing queued is carried, whatever jitter makes of pairs. `overdue`: by how much the oldest in
    /// flight is late, in seconds.
    pub(super) fn prove(
        &mut self,
        now: Instant,
        history: &History,
        is_flowing: bool,
        overdue: f64,
    ) {
        if now.since(self.proved_at) < PROOF {
            return;
        }
        self.proved_at = now;
        let queue_min = |millis| {
            let span = Duration::from_millis(millis);
            history.queue_min(now, span).unwrap_or(0.0)
        };
        if is_flowing && queue_min(100) < 0.010 {
            let span = Duration::from_millis(500);
            let delivered = 0.97 * (history.delivered(now, span) / span.as_secs_f64());
            self.proven = (self.proven * 0.99).max(delivered);
        }
        if queue_min(150) > 0.03 || overdue > 0.06 {
            self.proven = 0.0;
        }
    }

    /// Measures what is carried at this moment, while something waits on the path since `backlogged_since`.
    pub(super) fn measure_fast(
        &mut self,
        now: Instant,
        history: &History,
        backlogged_since: Option<Instant>,
    ) {
        let mut base = self.carried();
        let pairs = history.pairs(now, Duration::from_millis(300));
        if let Some(rate) = rate_of(pairs, 10) {
            base = 0.5 * (rate + self.smoothed);
        }
        if let Some(since) = backlogged_since {
            let span = now.since(since).min(Duration::from_millis(500));
            let seconds = span.as_secs_f64();
            if seconds > 0.04 {
                let came = history.delivered(now, span);
                let prior = base.min(self.quantile(0.25).max(0.3 * base));
                base = (came + prior * FADE) / (seconds + FADE);
            }
        }
        self.fast = base.max(MIN_CAPACITY);
    }

    /// What came after `since` was no queue, and showed nothing of the link, which carried `before`.
    pub(super) fn restore(&mut self, since: Instant, before: f64) {
        self.smoothed = self.smoothed.max(before);
        self.samples.retain(|(at, _)| *at < since);
    }

    /// Returns what the link carries.
    pub(super) const fn smoothed(&self) -> f64 {
        self.smoothed
    }

    /// Returns whether it was measured at all.
    pub(super) const fn is_measured(&self) -> bool {
        self.is_measured
    }

    /// Returns what the link carries, or what came through without queueing if that is more.
    pub(super) fn carried(&self) -> f64 {
        self.smoothed.max(self.proven)
    }

    /// Returns what is carried at this moment, as far as that is known within tenths of a second.
    pub(super) const fn fast(&self) -> f64 {
        self.fast
    }

    /// Returns a quantile of the samples.
    pub(super) fn quantile(&self, share: f64) -> f64 {
        if self.samples.len() < 3 {
            return self.smoothed;
        }
        let mut rates: Vec<f64> = self.samples.iter().map(|(_, rate)| *rate).collect();
        rates.sort_by(f64::total_cmp);
        rates[(share * (rates.len() - 1) as f64) as usize]
    }

    /// Returns the number of samples.
    pub(super) fn samples(&self) -> usize {
        self.samples.len()
    }
}

/// Returns what pairs show, if they are enough.
pub(super) fn rate_of(pairs: PairSum, min_count: u32) -> Option<f64> {
    let is_enough =
        pairs.count >= min_count && pairs.gap > MIN_PAIR_GAP || pairs.count >= MANY_PAIRS;
    is_enough.then(|| pairs.bits / pairs.gap.max(pairs.bits / MAX_CAPACITY))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    const fn pairs(count: u32, bits: f64, gap: f64) -> PairSum {
        PairSum { count, bits, gap }
    }

    #[test]
    fn few_pairs_or_short_ones_are_no_measurement() {
        assert_eq!(rate_of(pairs(7, 80e3, 0.02), 8), None);
        assert_eq!(rate_of(pairs(8, 80e3, 0.008), 8), None);
        assert_eq!(rate_of(pairs(8, 80e3, 0.02), 8), Some(80e3 / 0.02));
        assert_eq!(rate_of(pairs(30, 80e3, 0.002), 8), Some(80e3 / 0.002));
        let fastest = rate_of(pairs(30, 80e3, 0.0), 8).unwrap();
        assert!((fastest / MAX_CAPACITY - 1.0).abs() < 1e-9);
    }

    /// The first 8 pairs replace the guess, whatever gap they have; after that a tenth of each measurement counts: 4 + (2 − 4)/10.
    #[test]
    fn the_first_measurement_replaces_the_guess() {
        let mut capacity = Capacity::default();
        capacity.measure(pairs(7, 80e3, 0.02));
        assert!(!capacity.is_measured());
        capacity.measure(pairs(8, 16e3, 0.004));
        assert!(capacity.is_measured());
        assert!((capacity.smoothed() - 4e6).abs() < 1.0);
        capacity.measure(pairs(8, 40e3, 0.02));
        assert!((capacity.smoothed() - 3.8e6).abs() < 1.0);
    }

    /// A sample each 250 ms, of 1 to 21 Mbit/s: those of the last 5 s are kept, and of what shows no capacity none.
    #[test]
    fn samples_are_kept_for_five_seconds() {
        let mut capacity = Capacity::default();
        for index in 1..=30_u32 {
            let rate = f64::from(index) * 1e6;
            (0..8).for_each(|_| capacity.on_pair(rate * 0.002, 0.002));
            capacity.close_sample(at(u64::from(index) * 250));
            capacity.on_pair(1.0, 1.0);
            capacity.close_sample(at(u64::from(index) * 250 + 100));
            capacity.open = PairSum::default();
        }
        assert_eq!(capacity.samples(), 21);
        assert!((capacity.quantile(0.0) - 10e6).abs() < 1.0);
        assert!((capacity.quantile(1.0) - 30e6).abs() < 1.0);
        capacity.restore(at(11 * 250), 5e6);
        assert_eq!(capacity.samples(), 1);
        assert!((capacity.quantile(0.5) - 5e6).abs() < 1.0, "too few");
    }

    /// 20 kbit each 10 ms are 2 Mbit/s, of which 97 % are taken for proven while nothing queues.
    #[test]
    fn what_came_without_a_queue_is_carried() {
        let (mut capacity, mut history) = (Capacity::default(), History::default());
        (1..=60).for_each(|tick| history.on_arrival(at(tick * 10), 20e3, 0.0));
        capacity.prove(at(600), &history, false, 0.0);
        assert!((capacity.carried() - FIRST_CAPACITY).abs() < 1.0);
        capacity.prove(at(649), &history, true, 0.0);
        assert!((capacity.carried() - FIRST_CAPACITY).abs() < 1.0, "so soon");
        capacity.prove(at(650), &history, true, 0.0);
        assert!((1.7e6..=1.94e6).contains(&capacity.carried()));
        capacity.prove(at(700), &history, true, 0.07);
        assert!((capacity.carried() - FIRST_CAPACITY).abs() < 1.0);
    }

    /// Nothing comes for 500 ms while something waits: 1 Mbit/s counts for 0.3 s of 0.8.
    #[test]
    fn a_fade_counts_by_how_long_it_lasts() {
        let (mut capacity, history) = (Capacity::default(), History::default());
        capacity.measure_fast(at(1_000), &history, Some(at(980)));
        assert!((capacity.fast() - 1e6).abs() < 1.0, "so short");
        capacity.measure_fast(at(1_000), &history, Some(at(200)));
        assert!((capacity.fast() - 1e6 * 0.3 / 0.8).abs() < 1.0);
    }
}
