//! One decrease for all that was under way: what ndnSIM's windows remember of losses.

use namecast_units::Instant;

use super::RoundTrip;

/// When congestion counts, and when a timeout doubles the timer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recovery {
    /// How much longer than what is under way a decrease counts for, in round trips.
    suppression: f64,
    /// When the newest Interest that was answered left.
    highest: Instant,
    /// When it must have left for the next decrease.
    point: Option<Instant>,
    backed_off_at: Option<Instant>,
}

impl Recovery {
    pub(super) fn new(suppression: f64) -> Self {
        Self {
            suppression: suppression.clamp(0.0, 10.0),
            highest: Instant::ZERO,
            point: None,
            backed_off_at: None,
        }
    }

    /// Takes Data that were requested at `asked_at`.
    pub(super) fn on_data(&mut self, asked_at: Instant) {
        self.highest = self.highest.max(asked_at);
    }

    /// Returns whether a sign of congestion counts, as the first of those under way; the others then do not.
    pub(super) fn begins(&mut self, now: Instant, round_trip: &RoundTrip) -> bool {
        if self.point.is_some_and(|at| self.highest <= at) {
            return false;
        }
        let under_way = round_trip.smoothed().unwrap_or_default();
        self.point = Some(now + under_way.mul_f64(self.suppression));
        true
    }

    /// Doubles the timer, unless what ran out was requested before it doubled last.
    pub(super) fn back_off(&mut self, now: Instant, asked_at: Instant, round_trip: &mut RoundTrip) {
        if self.backed_off_at.is_none_or(|at| asked_at > at) {
            round_trip.back_off();
            self.backed_off_at = Some(now);
        }
    }
}
