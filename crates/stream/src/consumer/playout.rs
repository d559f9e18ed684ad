//! When to show a sample: one clock for all streams of a publisher.
//!
//! ```text
//!   captured     published                arrives (at best)               shown
//!      ├──────────────┼───────── base ───────────┼────────── target ────────┤
//! ```
//!
//! *base* is the least (arrival − PublishedAt) of the last seconds: the shortest way through the network plus whatever
//! the two clocks differ by, which therefore cancels. A changed target takes effect on every sample not yet delivered.

use core::time::Duration;

use namecast_units::{Instant, Timestamp, WindowedMinimum};
use smart_default::SmartDefault;

use crate::path::DelayEstimator;

/// Maps publication times to times of showing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Playout {
    /// Wall clock here at [`Instant::ZERO`].
    pub wall_at_zero: Timestamp,
    /// Least time from publication to arrival, in microseconds, clocks' difference included; `None`: not known yet.
    pub base: Option<i64>,
    /// Time from the earliest possible arrival to showing.
    pub target: Duration,
}

impl Playout {
    /// Microseconds from `published_at`, by the publisher's clock, to `now`, by ours.
    pub fn delay(&self, now: Instant, published_at: Timestamp) -> i64 {
        let elapsed = i64::try_from(now.as_nanos() / 1_000).unwrap_or(i64::MAX);
        self.wall_at_zero
            .micros_since(published_at)
            .saturating_add(elapsed)
    }

    /// Returns when to show what was published at `published_at`. Without a base, `now` is taken for the earliest arrival.
    pub fn render_at(&self, now: Instant, published_at: Timestamp) -> Instant {
        let base = self.base.unwrap_or_else(|| self.delay(now, published_at));
        self.arrival(published_at, base) + self.target
    }

    /// Returns when what is published at `published_at` arrives if it takes `base`, clocks' difference included.
    pub fn arrival(&self, published_at: Timestamp, base: i64) -> Instant {
        let since_zero = published_at
            .micros_since(self.wall_at_zero)
            .saturating_add(base);
        Instant::ZERO + Duration::from_micros(u64::try_from(since_zero).unwrap_or(0))
    }
}

/// A playout target that goes by the path: α·jitter + β·DRD (\[RTSD\] §3.4).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaptiveTarget {
    /// α.
    pub jitter: f64,
    /// β.
    pub delay: f64,
    /// The least there is.
    pub min: Duration,
}

impl AdaptiveTarget {
    /// A target that moved with each packet would re-time every sample with it.
    const STEP: Duration = Duration::from_millis(10);

    /// Returns the target, rounded up to whole steps.
    pub fn over(&self, now: Instant, path: &DelayEstimator) -> Duration {
        let jitter = path.variation().mul_f64(self.jitter);
        let target = path.estimate(now).mul_f64(self.delay) + jitter;
        let steps = target.as_nanos().div_ceil(Self::STEP.as_nanos());
        (Self::STEP * u32::try_from(steps).unwrap_or(u32::MAX)).max(self.min)
    }
}

/// Every sample later than the target for so long means that the path delay increased, not that packets are late.
const PATH_CHANGE_AFTER: Duration = Duration::from_millis(500);
/// The same while packets queue, which may be why they are late.
const LONGER_QUEUE: Duration = Duration::from_millis(3_000);
/// Fewer late samples than this prove nothing.
const PATH_CHANGE_SAMPLES: u32 = 3;
const BUCKET: Duration = Duration::from_millis(250);
/// Window of the minimum: 10 s of buckets. Clocks that drift apart by 100 ppm move by 1 ms in it.
const BUCKETS: u64 = 40;
/// No live sample is so late.
const CLOCK_WAS_SET: Duration = Duration::from_secs(10);
/// After silence, what was known before counts for so long.
const AFTER_SILENCE: Duration = Duration::from_secs(3);
/// The same over a minute.
const LONG_BUCKET: Duration = Duration::from_millis(1_500);

/// Estimates the base of one stream.
#[derive(Clone, Debug, SmartDefault)]
pub(super) struct BaseDelay {
    #[default(WindowedMinimum::new(BUCKET, BUCKETS))]
    least: WindowedMinimum<i64>,
    /// The least of a minute.
    #[default(WindowedMinimum::new(LONG_BUCKET, BUCKETS))]
    long: WindowedMinimum<i64>,
    /// What was known before nothing came for longer than the window: what comes first then has queued.
    before: Option<(i64, Instant)>,
    /// The base before the path was found to be longer.
    unraised: Option<i64>,
    /// Since when every live sample came later than its time, and how many did.
    late: Option<(Instant, u32)>,
}

impl BaseDelay {
    /// Takes the delay of any packet that states when it was published or served: an upper bound of the base.
    pub(super) fn on_packet(&mut self, now: Instant, delay: i64) {
        if self.least.minimum(now).is_none() {
            let known = self.least.last().or(self.before.map(|(known, _)| known));
            self.before = known.map(|known| (known, now + AFTER_SILENCE));
        }
        self.least.push(now, delay);
        self.long.push(now, delay);
    }

    /// Takes the delay of a sample whose Interest was waiting for it, so that nothing but the path delayed it.
    ///
    /// Once all such samples have been later than `target` for half a second, older minima are forgotten.
    pub(super) fn on_live_sample(
        &mut self,
        now: Instant,
        delay: i64,
        target: Duration,
        is_queued: bool,
    ) {
        let target = i64::try_from(target.as_micros()).unwrap_or(i64::MAX);
        let in_time = self
            .least
            .minimum(now)
            .is_none_or(|base| delay <= base.saturating_add(target));
        self.on_packet(now, delay);
        if in_time {
            self.late = None;
            return;
        }
        let (since, count) = self.late.unwrap_or((now, 0));
        self.late = Some((since, count + 1));
        let span = if is_queued {
            LONGER_QUEUE
        } else {
            PATH_CHANGE_AFTER
        };
        if now.since(since) >= span && count + 1 >= PATH_CHANGE_SAMPLES {
            self.least.forget_all_but(2);
            self.late = None;
        }
    }

    /// Delays are what they were before [`raise`](Self::raise) after all.
    pub(super) fn unraise(&mut self, now: Instant) {
        if let Some(before) = self.unraised.take() {
            self.least.push(now, before);
        }
    }

    /// Returns whether a live sample's delay is so far from the base that the publisher's clock must have been set.
    pub(super) fn is_of_another_clock(&self, now: Instant, delay: i64) -> bool {
        let limit = CLOCK_WAS_SET.as_micros();
        let base = self.estimate(now);
        base.is_some_and(|base| u128::from(delay.abs_diff(base)) > limit)
    }

    /// Returns by how much the base exceeds what it was within the last minute.
    pub(super) fn growth(&self, now: Instant) -> Duration {
        let now_and_before = self.estimate(now).zip(self.long.minimum(now));
        let growth = now_and_before.map_or(0, |(now, before)| now.saturating_sub(before));
        Duration::from_micros(u64::try_from(growth).unwrap_or(0))
    }

    /// Every delay is longer by `shift` from now on.
    pub(super) fn raise(&mut self, now: Instant, shift: Duration) {
        self.unraised = self.estimate(now);
        self.least
            .raise(i64::try_from(shift.as_micros()).unwrap_or(i64::MAX));
    }

    /// Returns the base, in microseconds; `None` before the first packet.
    pub(super) fn estimate(&self, now: Instant) -> Option<i64> {
        let before = self.before.filter(|(_, until)| now < *until);
        let known = self
            .least
            .minimum(now)
            .into_iter()
            .chain(before.map(|(known, _)| known));
        known.min().or_else(|| self.least.last())
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{WALL, at, ms};
    use super::*;
    use crate::path::DelayConfig;

    /// A first round trip of 100 ms has a variation of half of it: 2 · 100 + 50. After many alike, that has gone.
    #[test]
    fn the_target_follows_the_path() {
        let mut path = DelayEstimator::new(DelayConfig::default());
        let adaptive = AdaptiveTarget {
            jitter: 1.0,
            delay: 2.0,
            min: ms(150),
        };
        path.on_own(at(0), ms(40), ms(0));
        assert_eq!(adaptive.over(at(0), &path), ms(150));
        let mut path = DelayEstimator::new(DelayConfig::default());
        path.on_own(at(0), ms(100), ms(0));
        assert_eq!(adaptive.over(at(0), &path), ms(250));
        (1..200).for_each(|step| path.on_own(at(step), ms(100), ms(0)));
        assert_eq!(adaptive.over(at(200), &path), ms(200));
        // 10.1 ms more, twice.
        (0..200)
            .for_each(|step| path.on_own(at(200 + step), Duration::from_micros(110_100), ms(0)));
        assert_eq!(adaptive.over(at(400), &path), ms(230));
    }

    /// Published at 1.000 s, 30 ms on the way, target 100 ms: shown at 1.130 s.
    #[test]
    fn shown_at_publication_plus_base_plus_target() {
        let mut playout = Playout {
            wall_at_zero: WALL,
            base: None,
            target: ms(100),
        };
        let published = WALL + ms(1_000);
        assert_eq!(playout.delay(at(1_030), published), 30_000);
        playout.base = Some(30_000);
        assert_eq!(playout.render_at(at(0), published), at(1_130));
        playout.target = ms(500);
        assert_eq!(playout.render_at(at(0), published), at(1_530));
    }

    /// The publisher's clock is an hour ahead: the delay is 30 ms − 1 h, and the result the same.
    #[test]
    fn a_wrong_clock_cancels() {
        let hour = Duration::from_secs(3_600);
        let mut playout = Playout {
            wall_at_zero: WALL,
            base: None,
            target: ms(100),
        };
        let published = WALL + hour + ms(1_000);
        let delay = playout.delay(at(1_030), published);
        assert_eq!(delay, 30_000 - 3_600_000_000);
        playout.base = Some(delay);
        assert_eq!(playout.render_at(at(1_030), published), at(1_130));
        let absurd = Timestamp::from_micros(u64::MAX);
        let _ = playout.render_at(at(1), absurd);
        let _ = playout.delay(at(1), absurd);
    }

    #[test]
    fn the_base_is_the_least_delay_of_ten_seconds() {
        let mut base = BaseDelay::default();
        assert_eq!(base.estimate(at(0)), None);
        base.on_packet(at(0), 900_000);
        base.on_live_sample(at(10), 30_000, ms(100), false);
        base.on_live_sample(at(5_000), 45_000, ms(100), false);
        assert_eq!(base.estimate(at(9_999)), Some(30_000));
        assert_eq!(base.estimate(at(10_250)), Some(45_000));
    }

    /// The path grows from 30 to 300 ms at 1 s, sample 50. The base follows once samples have been late for 0.5 s, 25 samples, or
    /// for 3 s, 150 samples, where packets queue.
    #[test]
    fn a_longer_path_is_followed_sooner_where_nothing_queues() {
        for (is_queued, samples) in [(false, 25), (true, 150)] {
            let mut base = BaseDelay::default();
            (0..50).for_each(|step| base.on_live_sample(at(step * 20), 30_000, ms(100), is_queued));
            for step in 50..50 + samples {
                base.on_live_sample(at(step * 20), 300_000, ms(100), is_queued);
                assert_eq!(base.estimate(at(step * 20)), Some(30_000));
            }
            for step in 50 + samples..60 + samples {
                base.on_live_sample(at(step * 20), 300_000, ms(100), is_queued);
            }
            let end = at((60 + samples) * 20);
            assert_eq!(base.estimate(end), Some(300_000));
        }
    }

    #[test]
    fn some_late_samples_do_not_move_the_base() {
        let mut base = BaseDelay::default();
        for step in 0..200 {
            let delay = if step % 5 == 0 { 40_000 } else { 300_000 };
            base.on_live_sample(at(step * 20), delay, ms(100), false);
        }
        assert_eq!(base.estimate(at(4_000)), Some(40_000));
    }
}
