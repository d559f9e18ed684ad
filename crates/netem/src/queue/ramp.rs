//! A shallow threshold.

use namecast_units::{Duration, Instant, Random};

use super::{Departure, Verdict};

/// Marks by the time that a frame waited: never below `min`, always from `max` on, and with a probability that rises evenly in
/// between. The `laqm` of [RFC9332], appendix A.
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
