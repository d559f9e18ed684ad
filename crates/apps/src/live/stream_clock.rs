//! The time that a stream runs on: the wall clock when it began, and monotonic time from then on.
//!
//! A wall clock that is set, by hand or by the network, would have frames captured before those that they follow, or long after.

use core::time::Duration;

use namecast_units::{Instant, Timestamp};

/// A wall clock that stands otherwise than it did by more than this was set; less comes of reading both clocks one after the other.
const STEP: Duration = Duration::from_millis(100);

/// Time of one stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StreamClock {
    /// When the stream began, by both clocks.
    begun: Option<(Instant, Timestamp)>,
    /// Microseconds by which stream time is ahead of the clock that frames are captured by.
    ahead: i64,
}

impl StreamClock {
    /// Returns the stream's time at `now`. The first call begins it, at `wall`.
    pub(super) fn at(&mut self, now: Instant, wall: Timestamp) -> Timestamp {
        let (since, begun) = *self.begun.get_or_insert((now, wall));
        begun + now.since(since)
    }

    /// Returns the stream's time at `now`, and what turns times of a clock that shows `wall` now into those of the stream.
    pub(super) fn of(
        &mut self,
        now: Instant,
        wall: Timestamp,
    ) -> (Timestamp, impl Fn(Timestamp) -> Timestamp + use<>) {
        let time = self.at(now, wall);
        let ahead = time
            .as_micros()
            .wrapping_sub(wall.as_micros())
            .cast_signed();
        if u128::from(ahead.wrapping_sub(self.ahead).unsigned_abs()) > STEP.as_micros() {
            self.ahead = ahead;
        }
        let ahead = self.ahead;
        let turn = move |at: Timestamp| {
            Timestamp::from_micros(at.as_micros().saturating_add_signed(ahead))
        };
        (time, turn)
    }
}
