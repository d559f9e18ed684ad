//! When samples are published that nobody has seen yet: the stream's own clock.
//!
//! Key and delta samples count on their own, so a sequence number alone says nothing of time. The position does: it
//! counts frames, and every `key_interval`-th of them is a key sample.
//!
//! ```text
//! position    60     61     62   …   89     90     91
//!            key 7  d 203  d 204  …  d 231  key 8  d 232
//! ```

use core::time::Duration;

use namecast_units::Timestamp;

use crate::names::SampleClass;
use crate::sample::SampleHeader;

/// A sample's number in its class, and its position.
type Place = (u64, u64);

/// Tells when samples are published from the newest lead seen. An encoder that puts in a key frame out of turn, or
/// leaves a frame out, is off by as many periods until its next lead comes.
#[derive(Clone, Copy, Debug)]
pub(super) struct SampleClock {
    period: Duration,
    key_interval: u64,
    /// The newest sample of each class.
    places: [Option<Place>; 2],
    /// Position and time of the newest sample of either.
    newest: Option<(u64, Timestamp)>,
    /// Added to positions, so that they go on where the encoder's jumped.
    shift: i128,
}

/// An encoder's position that is further from both what numbers and what times say has jumped.
const JUMP: u64 = 2;

impl SampleClock {
    /// A clock of samples every `period`, each `key_interval`-th of them a key sample.
    pub(super) fn new(period: Duration, key_interval: u32) -> Self {
        Self {
            period,
            key_interval: u64::from(key_interval.max(1)),
            places: [None; 2],
            newest: None,
            shift: 0,
        }
    }

    /// Records a lead.
    pub(super) fn on_lead(&mut self, class: SampleClass, sequence: u64, header: &SampleHeader) {
        let position = self.steady_position(class, sequence, header);
        let place = &mut self.places[class.index()];
        if place.is_none_or(|(known, _)| sequence >= known) {
            *place = Some((sequence, position));
        }
        if self.newest.is_none_or(|(known, _)| position >= known) {
            self.newest = Some((position, header.published_at()));
        }
        if class == SampleClass::Key && self.key_interval > 1 {
            // The delta sample that follows is as good as seen.
            let follower = (header.other_sequence, position.saturating_add(1));
            let delta = &mut self.places[SampleClass::Delta.index()];
            if delta.is_none_or(|(known, _)| follower.0 > known) {
                *delta = Some(follower);
            }
        }
    }

    /// Takes the place of a key sample that is not here yet from elsewhere, and the time at which a position is published.
    pub(super) fn seed(&mut self, key: Place, newest: (u64, Timestamp)) {
        self.places[SampleClass::Key.index()] = Some(key);
        self.newest = Some(newest);
    }

    /// The same for a delta sample.
    pub(super) fn seed_delta(&mut self, delta: Place) {
        self.places[SampleClass::Delta.index()] = Some(delta);
    }

    /// Returns the position in `header` as if the encoder had never jumped: an encoder that was reset counts from anew, and time goes
    /// on all the same.
    fn steady_position(&mut self, class: SampleClass, sequence: u64, header: &SampleHeader) -> u64 {
        let told = i128::from(header.position);
        let position = u64::try_from(told + self.shift).ok();
        let by_number = self.position(class, sequence);
        let by_time = self.position_at(header.published_at());
        let is_far = |known: u64| position.is_none_or(|at| at.abs_diff(known) > JUMP);
        match by_number.zip(by_time) {
            Some((by_number, by_time)) if is_far(by_number) && is_far(by_time) => {
                self.shift = i128::from(by_number) - told;
                by_number
            }
            _ => position.unwrap_or(header.position),
        }
    }

    /// Returns the position of the frame published at `time`.
    fn position_at(&self, time: Timestamp) -> Option<u64> {
        let (position, at) = self.newest?;
        let period = i128::try_from(self.period.as_micros()).ok()?.max(1);
        let frames = (i128::from(time.micros_since(at)) + period / 2).div_euclid(period);
        u64::try_from(i128::from(position) + frames).ok()
    }

    /// Returns the position of sample `sequence` of `class`; `None` while nothing is known, or if it is out of reach.
    pub(super) fn position(&self, class: SampleClass, sequence: u64) -> Option<u64> {
        let (known, at) = self.places[class.index()]?;
        let (known, at) = (i128::from(known), i128::from(at));
        let ahead = i128::from(sequence) - known;
        let interval = i128::from(self.key_interval);
        let position = match class {
            SampleClass::Key => at + ahead * interval,
            SampleClass::Delta => {
                let since_key = self.frames_since_key(at).filter(|&frames| frames > 0);
                // Counted from the first delta sample of its group; a group has one less than frames.
                let within = since_key.unwrap_or(1) - 1;
                let deltas = (interval - 1).max(1);
                let groups = (within + ahead).div_euclid(deltas);
                let keys = if since_key.is_some() { groups } else { 0 };
                at + ahead + keys
            }
        };
        u64::try_from(position).ok()
    }

    /// Frames from the last key sample at or before position `at` to it, in a regular stream.
    fn frames_since_key(&self, at: i128) -> Option<i128> {
        let (_, key) = self.places[SampleClass::Key.index()]?;
        Some((at - i128::from(key)).rem_euclid(i128::from(self.key_interval)))
    }

    /// Returns when sample `sequence` of `class` is published.
    pub(super) fn published_at(&self, class: SampleClass, sequence: u64) -> Option<Timestamp> {
        self.time_of(self.position(class, sequence)?)
    }

    /// Returns when the sample at position `wanted` is published.
    pub(super) fn time_of(&self, wanted: u64) -> Option<Timestamp> {
        let (position, at) = self.newest?;
        let frames = u32::try_from(wanted.abs_diff(position)).ok()?;
        let span = self.period.checked_mul(frames)?;
        let micros = u64::try_from(span.as_micros()).ok()?;
        Some(if wanted >= position {
            at + span
        } else {
            Timestamp::from_micros(at.as_micros().saturating_sub(micros))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{PERIOD, WALL, header};
    use super::*;

    /// Every sample of a regular stream is told from any lead before it: against one frame after the other.
    #[test]
    fn a_regular_stream_is_told_from_any_lead() {
        const INTERVAL: u64 = 5;
        // Class, number, other number of each position.
        let frame = |position: u64| {
            let group = position / INTERVAL;
            let within = position % INTERVAL;
            let first = 100 + group * (INTERVAL - 1);
            match within {
                0 => (SampleClass::Key, 7 + group, first),
                _ => (SampleClass::Delta, first + within - 1, 7 + group),
            }
        };
        for newest in 0..23 {
            let mut clock = SampleClock::new(PERIOD, INTERVAL as u32);
            for position in 0..=newest {
                let (class, sequence, other) = frame(position);
                clock.on_lead(class, sequence, &header(position, other));
            }
            for wanted in 0..60 {
                let (class, sequence, _) = frame(wanted);
                let at = WALL + PERIOD * u32::try_from(wanted).unwrap();
                assert_eq!(clock.position(class, sequence), Some(wanted), "{newest}");
                assert_eq!(clock.published_at(class, sequence), Some(at));
            }
        }
    }

    /// Positions start again at 1000 with delta 103, and nothing else changes: what is to come is told as before. Frames
    /// that were left out, which positions and times both show, are no jump.
    #[test]
    fn positions_that_jump_do_not_move_time() {
        let mut clock = SampleClock::new(PERIOD, 30);
        clock.on_lead(SampleClass::Key, 7, &header(60, 100));
        clock.on_lead(SampleClass::Delta, 102, &header(63, 7));
        let at = |position: u32| WALL + PERIOD * position;
        for (sequence, told, is) in [(103, 1_000, 64), (104, 1_001, 65), (106, 3, 67)] {
            let jumped = SampleHeader {
                position: told,
                ..header(is, 7)
            };
            clock.on_lead(SampleClass::Delta, sequence, &jumped);
            let next = u32::try_from(is).unwrap() + 3;
            let told = clock.published_at(SampleClass::Delta, sequence + 3);
            assert_eq!(told, Some(at(next)));
            let told = clock.published_at(SampleClass::Key, 8);
            assert_eq!(told, Some(at(90)), "{sequence}");
        }
        let mut clock = SampleClock::new(PERIOD, 30);
        clock.on_lead(SampleClass::Key, 7, &header(60, 100));
        clock.on_lead(SampleClass::Delta, 101, &header(77, 7));
        assert_eq!(clock.published_at(SampleClass::Delta, 102), Some(at(78)));
        assert_eq!(clock.position(SampleClass::Delta, 102), Some(78));
    }

    #[test]
    fn a_stream_of_key_samples_alone_counts_them() {
        let mut clock = SampleClock::new(PERIOD, 1);
        assert_eq!(clock.published_at(SampleClass::Key, 5), None);
        clock.on_lead(SampleClass::Key, 5, &header(2, 0));
        let at = WALL + PERIOD * 7;
        assert_eq!(clock.published_at(SampleClass::Key, 10), Some(at));
        assert_eq!(clock.position(SampleClass::Key, 2), None);
        assert_eq!(clock.published_at(SampleClass::Key, u64::MAX), None);
        assert_eq!(clock.position(SampleClass::Delta, 3), None);
    }
}
