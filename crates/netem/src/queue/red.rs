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

/// RED of \[RED\], with marks instead of drops.
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

    /// Records a frame that comes; true if it is marked.
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

    /// Returns the probability p_b of a mark; none below the minimum.
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

#[cfg(test)]
mod tests {
    use super::*;
    use namecast_units::Duration;

    fn red(weight: f64, gentle: bool) -> Red {
        let thresholds = Thresholds {
            min: 1.0,
            max: 3.0,
            max_probability: 0.5,
            gentle,
        };
        Red::new(thresholds, weight, Random::from_seed(1))
    }

    fn arrival(waiting: usize) -> Arrival {
        Arrival {
            now: Instant::ZERO + Duration::from_millis(10),
            waiting,
            serialisation: Duration::from_millis(2),
        }
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    /// w = 1/2, two waiting each time: 1, 3/2, 7/4; p_b = 0.5 · (avg − 1)/2.
    #[test]
    fn the_average_follows_the_queue() {
        let mut red = red(0.5, false);
        for (average, probability) in [(1.0, 0.0), (1.5, 0.125), (1.75, 0.1875)] {
            red.on_arrival(&arrival(2));
            assert!(close(red.average, average), "{red:?}");
            assert!(close(red.probability().unwrap(), probability), "{red:?}");
        }
    }

    /// Empty since 6 ms, it is 10 ms: two frames of 2 ms could have passed, so 1.75 · (1/2)². An infinite rate forgets all.
    #[test]
    fn an_idle_queue_is_forgotten_by_the_frames_it_could_have_sent() {
        let mut red = red(0.5, false);
        red.average = 1.75;
        red.on_empty(Instant::ZERO + Duration::from_millis(6));
        red.on_arrival(&arrival(0));
        assert!(close(red.average, 0.4375), "{red:?}");
        assert_eq!(red.unmarked, None);
        let at_once = Arrival {
            serialisation: Duration::ZERO,
            ..arrival(0)
        };
        red.on_arrival(&at_once);
        assert!(close(red.average, 0.0), "{red:?}");
    }

    #[test]
    fn probability_has_its_corners() {
        let at = |average: f64, gentle| {
            let mut red = red(0.5, gentle);
            red.average = average;
            red.probability()
        };
        assert_eq!(at(0.999, false), None);
        assert_eq!(at(1.0, false), Some(0.0));
        assert_eq!(at(2.0, false), Some(0.25));
        assert_eq!(at(3.0, false), Some(1.0));
        assert_eq!(at(3.0, true), Some(0.5));
        assert_eq!(at(4.5, true), Some(0.75));
        assert_eq!(at(6.0, true), Some(1.0));
    }

    /// p_b = 0.1 held: count goes 1, 2, … and p_a = 0.1/(1 − 0.1·count) reaches 1 at 9, so gaps are uniform on 1…9: mean 5,
    /// σ √(80/12) = 2.582, of 10 000 within 0.103. Each length comes 1111 times, σ 31.4.
    #[test]
    fn marks_are_spread_evenly() {
        let mut red = red(1.0, false);
        red.thresholds.max_probability = 0.2;
        while !red.on_arrival(&arrival(2)) {}
        let mut gaps = [0_u32; 10];
        for _ in 0..10_000 {
            let mut gap = 1;
            while !red.on_arrival(&arrival(2)) {
                gap += 1;
            }
            gaps[gap] += 1;
        }
        assert!(
            gaps[1..].iter().all(|count| (986..=1_236).contains(count)),
            "{gaps:?}"
        );
    }

    #[test]
    fn above_the_maximum_everything_is_marked() {
        let mut red = red(1.0, false);
        assert!((0..100).all(|_| red.on_arrival(&arrival(3))));
        assert!((0..100).all(|_| !red.on_arrival(&arrival(0))));
    }
}
