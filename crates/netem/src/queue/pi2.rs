//! A proportional-integral controller, squared.

use namecast_units::{Duration, Instant, Random};

use super::{Departure, Verdict};

/// PI² of \[RFC9332\], appendix A, for traffic that answers a mark as it answers a loss.
///
/// ```text
/// p' ← p' + α·(q − target) + β·(q − q_prev)      every `update`, within [0, 1]
/// p  = p'²
/// ```
///
/// | RFC     | here          | meaning                                                   |
/// |---------|---------------|-----------------------------------------------------------|
/// | p'      | `base`        | what the controller moves                                 |
/// | curq    | `delay`       | time that the frame at the head has waited; 0 if there is none |
/// | prevq   | `last_delay`  | the same at the last update                               |
/// | Tupdate | `update`      | time between two updates                                  |
///
/// Nothing is dropped in overload but what does not fit into the queue.
#[derive(Clone, Debug)]
pub(crate) struct Pi2 {
    target: f64,
    update: Duration,
    gains: (f64, f64),
    base: f64,
    last_delay: f64,
    next_update: Instant,
    random: Random,
}

impl Pi2 {
    /// `gains` are α and β, in hertz.
    pub(crate) fn new(
        target: Duration,
        update: Duration,
        gains: (f64, f64),
        random: Random,
    ) -> Self {
        // A configuration that was not validated must not make the loop below endless.
        let update = update.max(Duration::from_micros(1));
        Self {
            target: target.as_secs_f64(),
            update,
            gains,
            base: 0.0,
            last_delay: 0.0,
            next_update: Instant::ZERO + update,
            random,
        }
    }

    pub(crate) fn on_departure(&mut self, departure: &Departure) -> Verdict {
        self.catch_up(departure.now, departure.since);
        // Both of two draws below p' have probability p'².
        let is_marked = self.base > 0.0 && self.random.unit().max(self.random.unit()) < self.base;
        match is_marked {
            true => Verdict::Mark,
            false => Verdict::Pass,
        }
    }

    /// Makes up for the updates until `now`. The frame that came at `head_since` has been at the head ever since the last
    /// call, or the queue was empty until it came.
    fn catch_up(&mut self, now: Instant, head_since: Instant) {
        if self.next_update <= head_since && self.next_update <= now {
            self.step(0.0);
            self.skip_idle(head_since.min(now));
        }
        while self.next_update <= now {
            let delay = self.next_update.since(head_since);
            self.step(delay.as_secs_f64());
        }
    }

    /// Makes up for the updates well before `until`, with an empty queue before them too: p' falls in equal steps.
    fn skip_idle(&mut self, until: Instant) {
        let nanos = self.update.as_nanos().max(1);
        let missed = until.since(self.next_update).as_nanos() / nanos;
        let missed = u64::try_from(missed).unwrap_or(u64::MAX);
        let fall = self.gains.0 * self.target * missed as f64;
        self.base = (self.base - fall).clamp(0.0, 1.0);
        let span = u64::try_from(nanos)
            .unwrap_or(u64::MAX)
            .saturating_mul(missed);
        self.next_update += Duration::from_nanos(span);
    }

    fn step(&mut self, delay: f64) {
        let (alpha, beta) = self.gains;
        let change = alpha * (delay - self.target) + beta * (delay - self.last_delay);
        self.base = (self.base + change).clamp(0.0, 1.0);
        self.last_delay = delay;
        self.next_update += self.update;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pi2() -> Pi2 {
        let span = Duration::from_millis;
        Pi2::new(span(15), span(16), (0.16, 3.2), Random::from_seed(1))
    }

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    /// One frame at the head since 0. At 16 ms: 0.16 · (16 − 15) ms + 3.2 · 16 ms = 0.05136. At 32 ms: + 0.16 · 17 ms +
    /// 3.2 · 16 ms = 0.10528.
    #[test]
    fn the_controller_adds_error_and_growth() {
        let mut pi2 = pi2();
        pi2.catch_up(at(15_999), at(0));
        assert!(close(pi2.base, 0.0));
        pi2.catch_up(at(16_000), at(0));
        assert!(close(pi2.base, 0.05136), "{pi2:?}");
        pi2.catch_up(at(47_999), at(0));
        assert!(close(pi2.base, 0.10528), "{pi2:?}");
    }

    /// p' = 0.10528, delay 32 ms; then empty. At 48 ms: − 0.16 · 15 ms − 3.2 · 32 ms = −0.1048, so 0.00048; then zero.
    #[test]
    fn an_empty_queue_lets_it_fall() {
        let mut pi2 = pi2();
        pi2.catch_up(at(32_000), at(0));
        pi2.catch_up(at(50_000), at(50_000));
        assert!(close(pi2.base, 0.00048), "{pi2:?}");
        pi2.catch_up(at(70_000), at(70_000));
        assert!(close(pi2.base, 0.0), "{pi2:?}");
    }

    /// Skipping an idle time comes to the same as a step for each update.
    #[test]
    fn idle_times_are_skipped_exactly() {
        for idle in [0, 1, 15, 16, 17, 160, 1_000, 3_600_000] {
            let (mut skips, mut steps) = (pi2(), pi2());
            skips.base = 0.9;
            steps.base = 0.9;
            skips.last_delay = 0.02;
            steps.last_delay = 0.02;
            let come = at(idle * 1_000 + 500);
            let leave = come + Duration::from_millis(100);
            skips.catch_up(leave, come);
            while steps.next_update <= leave {
                let delay = steps.next_update.since(come);
                steps.step(delay.as_secs_f64());
            }
            assert_eq!(skips.next_update, steps.next_update, "{idle}");
            assert!((skips.base - steps.base).abs() < 1e-9, "{idle}");
        }
    }

    /// p' = 0.3 and all gains zero: marks have p = 0.09. Of 10 000: 900, σ 28.6.
    #[test]
    fn the_probability_is_the_square() {
        let mut pi2 = pi2();
        pi2.gains = (0.0, 0.0);
        pi2.base = 0.3;
        let departure = Departure {
            now: at(0),
            since: at(0),
            octets: 1,
            bytes_left: 0,
            waiting: 0,
        };
        let marks = (0..10_000)
            .filter(|_| pi2.on_departure(&departure) == Verdict::Mark)
            .count();
        assert!((786..=1_014).contains(&marks), "{marks}");
    }
}
