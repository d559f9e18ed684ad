//! Random early detection.

use namecast_units::{Instant, Random};

use super::Arrival;

/// Where marking begins and ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thresholds {
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) max_probability: f64,
    pub(crate) gentle: bool,
}

/// RED of [RED], with marks instead of drops.
///
/// ```text
/// avg ← (1 − w)·avg + w·q                  if frames wait
/// avg ← (1 − w)^m·avg,  m = idle / s       if none does
/// p_b = max_p·(avg − min)/(max − min)      for min ≤ avg < max
/// p_a = p_b / (1 − count·p_b)
/// ```
///
/// | paper | here             | meaning                                           |
/// |-------|------------------|---------------------------------------------------|
/// | w     | `weight`         | weight of the newest observation                  |
/// | q     | `waiting`        | frames that wait when one comes                   |
/// | idle  | now − `empty_at` | time since the last waiting frame left            |
/// | s     | `serialisation`  | time a frame takes; here, that of the one that comes |
/// | count | `unmarked`       | frames since the last mark                        |
#[derive(Clone, Debug)]
pub(crate) struct Red {
    thresholds: Thresholds,
    weight: f64,
    average: f64,
    /// None while the average is below the minimum: the paper's −1.
    unmarked: Option<u32>,
    empty_at: Instant,
    random: Random,
}

impl Red {
    pub(crate) const fn new(thresholds: Thresholds, weight: f64, random: Random) -> Self {
        Self {
            thresholds,
            weight,
            average: 0.0,
            unmarked: None,
            empty_at: Instant::ZERO,
            random,
        }
    }

    /// The last waiting frame has left.
    pub(crate) const fn on_empty(&mut self, now: Instant) {
        self.empty_at = now;
    }

    /// Takes note of a frame that comes; true if it is marked.
    pub(crate) fn on_arrival(&mut self, arrival: &Arrival) -> bool {
        self.observe(arrival);
        let Some(probability) = self.probability() else {
            self.unmarked = None;
            return false;
        };
        let unmarked = self.unmarked.map_or(0, |count| count.saturating_add(1));
        let is_marked = probability >= 1.0 || {
            let spread = probability / (1.0 - f64::from(unmarked) * probability).max(0.0);
            spread >= 1.0 || self.random.chance(spread)
        };
        self.unmarked = Some(if is_marked { 0 } else { unmarked });
        is_marked
    }

    fn observe(&mut self, arrival: &Arrival) {
        if arrival.waiting > 0 {
            self.average += self.weight * (arrival.waiting as f64 - self.average);
            return;
        }
        let idle = arrival.now.since(self.empty_at).as_nanos() as f64;
        let frames = idle / arrival.serialisation.as_nanos() as f64;
        // An infinite rate could have sent infinitely many frames; 0/0 is no time at all.
        if frames > 0.0 {
            self.average *= libm::pow(1.0 - self.weight, frames);
        }
    }

    /// The probability p_b of a mark; none below the minimum.
    fn probability(&self) -> Option<f64> {
        let Thresholds {
            min,
            max,
            max_probability,
            gentle,
        } = self.thresholds;
        let average = self.average;
        if average < min {
            None
        } else if average < max {
            Some(max_probability * (average - min) / (max - min))
        } else if gentle && average < 2.0 * max {
            Some(max_probability + (1.0 - max_probability) * (average - max) / max)
        } else {
            Some(1.0)
        }
    }
}
