//! The smallest value of the last seconds, in constant memory.

use std::collections::VecDeque;

use core::time::Duration;

use crate::Instant;

/// The minimum over a sliding window, kept as one minimum per bucket of time.
///
/// The window is between `buckets − 1` and `buckets` spans long: values leave a whole bucket at a time.
#[derive(Clone, Debug)]
pub struct WindowedMinimum<T> {
    buckets: VecDeque<(u64, T)>,
    span: Duration,
    count: u64,
}

impl<T: Copy + Ord> WindowedMinimum<T> {
    /// A window of `count` buckets, each `span` long.
    pub fn new(span: Duration, count: u64) -> Self {
        Self {
            buckets: VecDeque::new(),
            span: span.max(Duration::from_nanos(1)),
            count: count.max(1),
        }
    }

    /// Adds `value`, observed `now`. Time must not run backwards by more than the window.
    pub fn push(&mut self, now: Instant, value: T) {
        let bucket = self.bucket(now);
        match self.buckets.back_mut() {
            Some((last, least)) if *last >= bucket => *least = value.min(*least),
            _ => self.buckets.push_back((bucket, value)),
        }
        self.expire(now);
    }

    /// Returns the smallest value in the window that ends `now`.
    pub fn minimum(&self, now: Instant) -> Option<T> {
        let oldest = self.oldest(now);
        self.buckets
            .iter()
            .filter(|(bucket, _)| *bucket >= oldest)
            .map(|(_, value)| *value)
            .min()
    }

    /// Adds `by` to every value in the window.
    pub fn raise(&mut self, by: T)
    where
        T: core::ops::Add<Output = T>,
    {
        for (_, value) in &mut self.buckets {
            *value = *value + by;
        }
    }

    /// Returns the smallest value of the newest bucket, however old it is.
    pub fn last(&self) -> Option<T> {
        self.buckets.back().map(|(_, value)| *value)
    }

    /// Forgets all but the newest `keep` buckets: what was before no longer holds.
    pub fn forget_all_but(&mut self, keep: usize) {
        while self.buckets.len() > keep {
            self.buckets.pop_front();
        }
    }

    fn expire(&mut self, now: Instant) {
        let oldest = self.oldest(now);
        while self.buckets.front().is_some_and(|(at, _)| *at < oldest) {
            self.buckets.pop_front();
        }
    }

    fn oldest(&self, now: Instant) -> u64 {
        self.bucket(now).saturating_sub(self.count - 1)
    }

    fn bucket(&self, now: Instant) -> u64 {
        let span = u64::try_from(self.span.as_nanos()).unwrap_or(u64::MAX);
        now.as_nanos() / span
    }
}

#[cfg(test)]
mod tests {
    use crate::Random;

    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_value_counts_until_its_bucket_leaves_the_window() {
        let mut window = WindowedMinimum::new(Duration::from_millis(100), 3);
        window.push(at(50), 5);
        window.push(at(150), 9);
        assert_eq!(window.minimum(at(299)), Some(5));
        assert_eq!(window.minimum(at(300)), Some(9));
        assert_eq!(window.minimum(at(400)), None);
    }

    #[test]
    fn after_forgetting_only_the_newest_count() {
        let mut window = WindowedMinimum::new(Duration::from_millis(100), 10);
        for step in 0..5 {
            window.push(at(step * 100), step);
        }
        window.forget_all_but(2);
        assert_eq!(window.minimum(at(450)), Some(3));
    }

    #[test]
    fn agrees_with_a_twin_that_keeps_everything() {
        let mut random = Random::from_seed(4);
        let mut window = WindowedMinimum::new(Duration::from_millis(10), 5);
        let mut all = Vec::new();
        let mut now = 0;
        for _ in 0..2_000 {
            now += random.below(8);
            let value = random.below(1_000);
            window.push(at(now), value);
            all.push((now / 10, value));
            let expected = all
                .iter()
                .filter(|(bucket, _)| bucket + 5 > now / 10)
                .map(|(_, value)| *value)
                .min();
            assert_eq!(window.minimum(at(now)), expected);
            assert!(window.buckets.len() <= 5);
        }
    }
}
