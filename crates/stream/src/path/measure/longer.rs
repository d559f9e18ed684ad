//! Whether the path became longer: a delay that is no queue of ours.
//!
//! ```text
//!  a longer path:  ▁▁▁▁▁█████████   from one packet to the next, and even from then on
//!  a queue:        ▁▁▂▃▄▅▆▇▆▅▄▃▂▁   packet by packet, and gone once nothing is added
//! ```

use core::time::Duration;

use namecast_units::{Bitrate, Instant};

use super::{Path, STILL};

/// Within so long the least queue is looked for while hardly anything is requested.
const HOLD_SLICE: Duration = Duration::from_millis(50);
/// The same of two delays.
const EVEN: f64 = 0.004;
/// A path that became longer showed it so long ago at most.
const ROSE_WITHIN: Duration = Duration::from_secs(4);
/// Packets in each third of a second, at least, for a standing delay to be one.
const MIN_ARRIVALS: u32 = 6;

/// What comes while hardly anything is requested for the sake of a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hold {
    since: Instant,
    /// The longest queue since then: after as long again it is gone, if it was one.
    queue: f64,
    /// Capacity before.
    capacity: f64,
    /// The present slice of time, and the least that a packet took longer in it and in those before, the last first.
    slice: u64,
    least: [f64; 3],
}

impl Hold {
    pub(super) const fn new(since: Instant, queue: f64, capacity: f64) -> Self {
        Self {
            since,
            queue,
            capacity,
            slice: 0,
            least: [f64::INFINITY; 3],
        }
    }

    /// Takes a packet, and whether it should have found nothing.
    pub(super) fn on_arrival(&mut self, ideal: Instant, queue: f64) {
        let empty_at = self.since + Duration::from_secs_f64(self.queue);
        if ideal < empty_at {
            return;
        }
        let slice = (ideal.since(empty_at).as_nanos() / HOLD_SLICE.as_nanos()) as u64 + 1;
        if slice > self.slice {
            self.slice = slice;
            self.least.rotate_right(1);
            self.least[0] = f64::INFINITY;
        }
        self.least[0] = self.least[0].min(queue);
    }

    /// Returns the delay that waiting does not shorten.
    pub(super) fn standing(&self) -> Option<f64> {
        let least = self.least.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.least.iter().copied().fold(0.0, f64::max);
        // A queue that does not shrink while nothing is added would be another's.
        let is_even = most - least < EVEN.max(0.05 * least);
        (least > STILL && most.is_finite() && is_even).then_some(least)
    }
}

impl Path {
    /// Takes whether hardly anything is requested for the sake of a queue.
    pub(in crate::path) fn on_caution(&mut self, now: Instant, is_cautious: bool) {
        let queue = self.queue_now();
        let was_long = self.hold.is_some_and(|hold| queue > 0.5 * hold.queue);
        if !is_cautious && !was_long {
            self.hold = None;
            return;
        }
        let hold = self
            .hold
            .get_or_insert(Hold::new(now, queue, self.carried()));
        hold.queue = hold.queue.max(queue);
    }

    /// Finds a standing delay that is not ours: a longer path. Gives its length, which every delay is longer by from now on.
    pub(in crate::path) fn rebase(&mut self, now: Instant, need: Bitrate) -> Option<Duration> {
        if now.since(self.rebased_at) < Duration::from_secs(1) || !self.is_flowing(now) {
            return None;
        }
        let held = self.hold.and_then(|hold| hold.standing());
        let least = held.or_else(|| self.standing(now, need))?;
        if !self.rose_at_once(now, least) {
            return None;
        }
        self.rebased_at = now;
        if let Some(hold) = self.hold.take() {
            self.capacity.restore(hold.since, hold.capacity);
        }
        let shift = Duration::from_secs_f64(least);
        self.round_trips.raise(now, shift);
        self.history.rebase(least);
        self.newest_ideal += shift;
        if let Some(last) = &mut self.last {
            last.queue = (last.queue - least).max(0.0);
        }
        self.queueing.rebase(least);
        self.cross.restart();
        Some(shift)
    }

    /// Returns whether one packet waited longer than the one before it by about `delay`: queues grow packet by packet, and paths become
    /// longer from one packet to the next.
    fn rose_at_once(&self, now: Instant, delay: f64) -> bool {
        let rise = self.history.rise(now, ROSE_WITHIN);
        let usual = self.history.step_mean(now, ROSE_WITHIN, u32::MAX);
        rise > 0.8 * delay && rise > 3.0 * usual
    }

    /// Returns what every packet of the last second took longer, if it is no queue of ours.
    fn standing(&self, now: Instant, need: Bitrate) -> Option<f64> {
        let third = Duration::from_millis(300);
        let ends = [0, 1, 2].map(|back| now.saturating_sub(third * back));
        if ends
            .iter()
            .any(|end| self.history.arrivals(*end, third) < MIN_ARRIVALS)
        {
            return None;
        }
        let thirds = ends.map(|end| self.history.queue_min(end, third).unwrap_or(0.0));
        let least = thirds.iter().copied().fold(f64::INFINITY, f64::min);
        if least < STILL {
            return None;
        }
        let even = |a: f64, b: f64| (a - b).abs() < EVEN;
        let is_flat = even(thirds[0], thirds[1]) && even(thirds[1], thirds[2]);
        // A queue of ours that stands for so long would be of a rung that the link hardly carries.
        let has_room = (need.as_bps() as f64) < 0.95 * self.quantile(0.75);
        // No queue stands quite still for seconds.
        let long = Duration::from_secs(2);
        let is_still = self.queue_max(now, long) - self.queue_min(now, long) < STILL;
        (is_flat && has_room || is_still).then_some(least)
    }
}
