//! Tells a longer way from a longer queue.

use core::time::Duration;

use namecast_units::Instant;

/// Length of one interval.
const INTERVAL: Duration = Duration::from_millis(200);
/// Fewer delays than this make no average.
const LEAST: u32 = 3;
/// A smaller step is none.
const LEAST_STEP: f64 = 10e-3;
/// How many times what delays differ by within intervals their averages must differ to be conspicuous.
const CONSPICUOUS: f64 = 3.0;

/// How many times what the largest sample took to come. Its first segment's time is not in that.
const BURSTS: f64 = 1.5;

/// Delays of one interval, in seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    count: u32,
    sum: f64,
    least: f64,
    greatest: f64,
    /// The longest that one sample took to come.
    burst: f64,
}

impl Interval {
    fn add(&mut self, delay: f64) {
        self.least = if self.count == 0 {
            delay
        } else {
            self.least.min(delay)
        };
        self.greatest = if self.count == 0 {
            delay
        } else {
            self.greatest.max(delay)
        };
        self.count += 1;
        self.sum += delay;
    }

    fn average(&self) -> Option<f64> {
        (self.count >= LEAST).then(|| self.sum / f64::from(self.count))
    }

    fn spread(&self) -> f64 {
        self.greatest - self.least
    }
}

/// Compares the average delays of adjacent intervals (\[RTSD\] §3.5.1).
///
/// A queue grows and shrinks: delays differ as much within an interval as from one to the next. One that grows by a step
/// grows by no more than one sample, a large key sample on a link that is full. Another source, a cache nearer by or farther
/// away, is a step between delays that are even:
///
/// ```text
/// |avg₂ − avg₁| > 3 · (max − min of either),   > 1.5 · time that any sample took to come,   > 10 ms
/// ```
///
/// Such a step is taken out of all delays after it. The paper says that the difference is "conspicuously larger"; the
/// numbers are ours. The step itself falls into one interval, which is left out: it is even with neither.
#[derive(Clone, Debug, Default)]
pub struct SourceChange {
    /// The last interval that was even, and the one before.
    before: Option<Interval>,
    current: Interval,
    /// The longest burst in intervals left out since.
    burst: f64,
    began: Instant,
    /// What all delays have become longer by, in seconds.
    offset: f64,
    has_changed: bool,
}

impl SourceChange {
    /// Takes note that the segments of a sample took `span` to come.
    pub fn on_sample(&mut self, span: Duration) {
        self.current.burst = self.current.burst.max(span.as_secs_f64());
    }

    /// Takes one delay; gives it without what it owes to another source.
    pub fn on_delay(&mut self, now: Instant, delay: Duration) -> Duration {
        self.has_changed = false;
        let delay = delay.as_secs_f64();
        if now.since(self.began) >= INTERVAL {
            self.end_interval();
            self.began = now;
        }
        self.current.add(delay);
        Duration::from_secs_f64((delay - self.offset).max(0.0))
    }

    /// Whether the last delay was the first that is known to come from another source.
    pub const fn has_changed(&self) -> bool {
        self.has_changed
    }

    fn end_interval(&mut self) {
        let ended = core::mem::take(&mut self.current);
        let Some(average) = ended.average() else {
            return;
        };
        let Some((before, usual)) = self.before.and_then(|i| Some((i, i.average()?))) else {
            self.before = Some(ended);
            return;
        };
        let step = average - usual;
        let spread = before.spread().max(ended.spread());
        let burst = before.burst.max(ended.burst).max(self.burst);
        if step.abs() > LEAST_STEP.max(CONSPICUOUS * spread).max(BURSTS * burst) {
            self.offset = (self.offset + step).max(0.0);
            self.has_changed = true;
        } else if ended.spread() > step.abs().max(LEAST_STEP) {
            // Uneven: the step may be in it, and what caused it.
            self.burst = burst;
            return;
        }
        self.before = Some(ended);
        self.burst = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Feeds a delay every 20 ms; gives what is left of the last, and how often the source changed.
    fn after(delays: impl IntoIterator<Item = u64>) -> (Duration, u32) {
        let mut change = SourceChange::default();
        let (mut left, mut changes) = (Duration::ZERO, 0);
        for (step, delay) in (0..).zip(delays) {
            left = change.on_delay(Instant::ZERO + ms(step * 20), ms(delay));
            changes += u32::from(change.has_changed());
        }
        (left, changes)
    }

    /// The way becomes 50 ms longer at once, in the middle of an interval, and everything jitters by 3 ms.
    #[test]
    fn a_step_between_even_delays_is_another_source() {
        let jitter = |step: u64| step * 7 % 4;
        let delays = (0..60).map(|step| if step < 24 { 0 } else { 50 } + jitter(step));
        let (left, changes) = after(delays);
        assert_eq!(changes, 1);
        assert!(left <= ms(3), "{left:?}");
        // And back.
        let delays =
            (0..90).map(|step| if (24..60).contains(&step) { 50 } else { 0 } + jitter(step));
        assert_eq!(after(delays).1, 2);
    }

    /// A queue that grows by 200 ms a second is none, however long it gets.
    #[test]
    fn a_growing_queue_is_no_other_source() {
        let (left, changes) = after((0..100).map(|step| step * 4));
        assert_eq!((left, changes), (ms(396), 0));
    }

    /// A key frame a second is 90 ms of work, which is done within 300 ms.
    #[test]
    fn a_burst_is_no_other_source() {
        let delays = (0..250).map(|step| 90_u64.saturating_sub(step % 50 * 6));
        assert_eq!(after(delays).1, 0);
    }

    /// On a link that is just full, a key frame of 60 ms makes everything after it 60 ms later.
    #[test]
    fn a_queue_that_stays_is_no_other_source() {
        let mut change = SourceChange::default();
        for step in 0..200 {
            if step % 50 == 25 {
                change.on_sample(ms(60));
            }
            let delay = ms((step + 24) / 50 * 60);
            let left = change.on_delay(Instant::ZERO + ms(step * 20), delay);
            assert_eq!((left, change.has_changed()), (delay, false));
        }
    }

    #[test]
    fn few_delays_tell_nothing() {
        let mut change = SourceChange::default();
        for step in 0..100 {
            let delay = ms(if step < 50 { 0 } else { 100 });
            change.on_delay(Instant::ZERO + ms(step * 100), delay);
            assert!(!change.has_changed());
        }
    }
}
