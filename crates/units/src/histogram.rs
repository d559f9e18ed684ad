//! How long things take, in a form that monitoring systems add up over time and over machines.

use core::ops::AddAssign;
use core::time::Duration;

use serde::Serialize;

/// Counts of durations, by size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Histogram {
    /// Durations up to each of [`BOUNDS`](Self::BOUNDS) that exceed the bound before it, and those beyond the last.
    buckets: [u64; Self::BOUNDS.len() + 1],
    /// Sum of all, in nanoseconds.
    sum_ns: u64,
}

impl Histogram {
    /// Inclusive upper bounds of the buckets but the last: 1, 2, 5, as from a link on this machine to an Interest's lifetime.
    pub const BOUNDS: [Duration; 16] = [
        Duration::from_micros(100),
        Duration::from_micros(200),
        Duration::from_micros(500),
        Duration::from_millis(1),
        Duration::from_millis(2),
        Duration::from_millis(5),
        Duration::from_millis(10),
        Duration::from_millis(20),
        Duration::from_millis(50),
        Duration::from_millis(100),
        Duration::from_millis(200),
        Duration::from_millis(500),
        Duration::from_secs(1),
        Duration::from_secs(2),
        Duration::from_secs(5),
        Duration::from_secs(10),
    ];

    /// Counts a duration.
    pub fn record(&mut self, duration: Duration) {
        let bucket = Self::BOUNDS.partition_point(|bound| *bound < duration);
        self.buckets[bucket] += 1;
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.sum_ns = self.sum_ns.saturating_add(nanos);
    }

    /// Durations of each bucket; the last has those beyond all bounds.
    pub const fn buckets(&self) -> &[u64] {
        &self.buckets
    }
}

impl AddAssign for Histogram {
    fn add_assign(&mut self, other: Self) {
        for (count, more) in self.buckets.iter_mut().zip(other.buckets) {
            *count += more;
        }
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_its_bucket_and_what_is_beyond_all_to_the_last() {
        let mut histogram = Histogram::default();
        histogram.record(Duration::from_millis(5));
        histogram.record(Duration::from_nanos(5_000_001));
        histogram.record(Duration::from_secs(11));
        let mut twice = histogram;
        twice += histogram;
        let mut expected = [0; 17];
        (expected[5], expected[6], expected[16]) = (2, 2, 2);
        assert_eq!(twice.buckets(), expected);
        assert_eq!(twice.sum_ns, 2 * (5_000_000 + 5_000_001 + 11_000_000_000));
    }
}
