//! When what comes from outside was captured: as far as anybody can tell, when it arrived.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::thread;

use namecast_units::{Duration, Timestamp};

use crate::clock;

/// How far back the least delay of a live source is looked for: a source whose clock is slower or faster is followed this late.
const WINDOW: Duration = Duration::from_secs(2);
/// A source whose times jump, or that was held up, by more than this begins anew.
const MAX_LAG: i64 = 1_000_000;
/// A file that falls behind by more than this has a new beginning of time, rather than a growing delay.
const MAX_BEHIND: Duration = Duration::from_millis(100);

/// The wall clock at a source's time zero, in microseconds; shared by whoever needs times of what left an encoder.
#[derive(Debug, Default)]
pub(super) struct Origin(AtomicI64);

impl Origin {
    /// The wall clock at `media` microseconds of the source.
    pub(super) fn at(&self, media: u64) -> Timestamp {
        let micros = media.saturating_add_signed(self.0.load(Ordering::Relaxed));
        Timestamp::from_micros(micros)
    }

    fn set(&self, micros: i64) {
        self.0.store(micros, Ordering::Relaxed);
    }
}

/// Follows the clock of a live source.
///
/// A frame's delay on the way here varies; the least of the last two seconds tells where the source's clock is, so that frames
/// that were held up keep their distances.
#[derive(Debug, Default)]
pub(super) struct LiveClock {
    /// Arrivals with what the wall clock was ahead of the source's, growing both ways: the first is the least.
    least: VecDeque<(u64, i64)>,
}

impl LiveClock {
    /// When what the source calls `media` microseconds was captured, if it arrived at `arrived`: never later than that.
    pub(super) fn captured(
        &mut self,
        media: u64,
        arrived: Timestamp,
        origin: &Origin,
    ) -> Timestamp {
        let arrived = arrived.as_micros();
        let ahead = difference(arrived, media);
        if self
            .least
            .front()
            .is_some_and(|&(_, least)| ahead - least > MAX_LAG)
        {
            self.least.clear();
        }
        while self.least.back().is_some_and(|&(_, last)| last >= ahead) {
            self.least.pop_back();
        }
        self.least.push_back((arrived, ahead));
        let window = u64::try_from(WINDOW.as_micros()).unwrap_or(u64::MAX);
        while self
            .least
            .front()
            .is_some_and(|&(at, _)| at.saturating_add(window) < arrived)
        {
            self.least.pop_front();
        }
        let least = self.least.front().map_or(ahead, |&(_, least)| least);
        origin.set(least);
        origin.at(media)
    }
}

fn difference(a: u64, b: u64) -> i64 {
    i64::try_from(i128::from(a) - i128::from(b)).unwrap_or(i64::MAX)
}

/// Makes all tracks of a file play by one clock.
#[derive(Debug, Default)]
pub(in super::super) struct Playback {
    /// Wall-clock time of the input's beginning, in microseconds; zero: not begun.
    began: AtomicU64,
}

impl Playback {
    /// Waits until `offset` from the beginning is due; begins at the first call.
    pub(in super::super) fn wait(&self, offset: Duration) -> Timestamp {
        let now = clock::wall().as_micros();
        let offset = u64::try_from(offset.as_micros()).unwrap_or(u64::MAX);
        let fresh = now.saturating_sub(offset);
        let began =
            match self
                .began
                .compare_exchange(0, fresh, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => fresh,
                Err(began) => began,
            };
        let due = began.saturating_add(offset);
        match due.checked_sub(now) {
            Some(left) => {
                thread::sleep(Duration::from_micros(left.min(1_000_000)));
                Timestamp::from_micros(due)
            }
            None if Duration::from_micros(now - due) > MAX_BEHIND => {
                self.began.store(fresh, Ordering::Relaxed);
                Timestamp::from_micros(now)
            }
            None => Timestamp::from_micros(due),
        }
    }

    /// Waits until `media` microseconds of what began at `began` are due, and sets `origin` by it.
    pub(super) fn play(&self, media: u64, began: u64, origin: &Origin) -> Timestamp {
        let due = self.wait(Duration::from_micros(media.saturating_sub(began)));
        origin.set(difference(due.as_micros(), media));
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WALL: u64 = 1_790_000_000_000_000;

    /// Captured times of frames that take `delays` ms on their way, 40 ms apart; relative to the first one's capture.
    fn captured(clock: &mut LiveClock, delays: &[u64]) -> Vec<i64> {
        let origin = Origin::default();
        let times = (0..).zip(delays).map(|(number, delay)| {
            let media = 7_000_000 + number * 40_000;
            let arrived = Timestamp::from_micros(WALL + number * 40_000 + delay * 1_000);
            let at = clock.captured(media, arrived, &origin);
            assert!(at <= arrived);
            difference(at.as_micros(), WALL) / 1_000
        });
        times.collect()
    }

    /// Held up by 30, 0, 50 and 10 ms: from the second on, they keep their distances of 40 ms.
    #[test]
    fn frames_that_were_held_up_keep_their_distances() {
        let mut clock = LiveClock::default();
        assert_eq!(captured(&mut clock, &[30, 0, 50, 10]), [30, 40, 80, 120]);
    }

    /// One in a thousand slow, as from a clock that is 1000 ppm slow: after 100 s the delay seen is that of two seconds, 2 ms, not 100.
    #[test]
    fn a_source_whose_clock_is_slow_is_followed() {
        let (mut clock, origin) = (LiveClock::default(), Origin::default());
        for number in 0..2_500_u64 {
            let media = number * 40_000;
            let arrived = Timestamp::from_micros(WALL + number * 40_040);
            let at = clock.captured(media, arrived, &origin);
            let behind = difference(arrived.as_micros(), at.as_micros());
            assert!((0..=2_100).contains(&behind), "{number}: {behind}");
        }
    }

    /// Times that jump back by a minute, and a stall of two seconds: captured when it arrives.
    #[test]
    fn a_source_whose_times_jump_begins_anew() {
        let (mut clock, origin) = (LiveClock::default(), Origin::default());
        let mut at = |media, millis: u64| {
            let arrived = Timestamp::from_micros(WALL + millis * 1_000);
            let captured = clock.captured(media, arrived, &origin);
            difference(arrived.as_micros(), captured.as_micros())
        };
        assert_eq!(at(90_000_000, 0), 0);
        assert_eq!(at(30_040_000, 40), 0);
        assert_eq!(at(30_080_000, 80), 0);
        assert_eq!(at(30_120_000, 2_200), 0);
        assert_eq!(at(99_000_000, 2_240), 0);
    }
}
