//! A shallow threshold.

use namecast_units::{Duration, Instant, Random};

use super::{Departure, Verdict};

/// Marks by the time that a frame waited: never below `min`, always from `max` on, and with a probability that rises evenly in
/// between. The `laqm` of \[RFC9332\], appendix A.
#[derive(Clone, Debug)]
pub(crate) struct Ramp {
    min: Duration,
    max: Duration,
    random: Random,
}

impl Ramp {
    pub(crate) const fn new(min: Duration, max: Duration, random: Random) -> Self {
        Self { min, max, random }
    }

    pub(crate) fn on_departure(&mut self, departure: &Departure) -> Verdict {
        let probability = self.probability(departure.now, departure.since);
        let is_marked = probability >= 1.0 || probability > 0.0 && self.random.chance(probability);
        match is_marked {
            true => Verdict::Mark,
            false => Verdict::Pass,
        }
    }

    fn probability(&self, now: Instant, since: Instant) -> f64 {
        let waited = now.since(since);
        if waited < self.min {
            0.0
        } else if waited >= self.max {
            1.0
        } else {
            (waited - self.min).as_nanos() as f64 / (self.max - self.min).as_nanos() as f64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Exact at the corners and in the middle, in double precision.
    #[test]
    fn the_ramp_goes_from_nothing_to_all() {
        let micros = Duration::from_micros;
        let ramp = Ramp::new(micros(800), micros(1_200), Random::from_seed(1));
        let after = |waited| {
            let now = Instant::ZERO + micros(10_000) + Duration::from_nanos(waited);
            ramp.probability(now, Instant::ZERO + micros(10_000))
        };
        for (waited, expected) in [
            (0, 0.0),
            (799_999, 0.0),
            (800_000, 0.0),
            (900_000, 0.25),
            (1_000_000, 0.5),
            (1_200_000, 1.0),
            (9_000_000, 1.0),
        ] {
            assert!((after(waited) - expected).abs() < 1e-15, "{waited}");
        }
        assert!(after(1_199_999) < 1.0 && after(800_001) > 0.0);
    }
}
