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
}

impl SampleClock {
    /// A clock of samples every `period`, each `key_interval`-th of them a key sample.
    pub(super) fn new(period: Duration, key_interval: u32) -> Self {
        Self {
            period,
            key_interval: u64::from(key_interval.max(1)),
            places: [None; 2],
            newest: None,
        }
    }

    /// Takes note of a lead.
    pub(super) fn on_lead(&mut self, class: SampleClass, sequence: u64, header: &SampleHeader) {
        let place = &mut self.places[class.index()];
        if place.is_none_or(|(known, _)| sequence >= known) {
            *place = Some((sequence, header.position));
        }
        if self
            .newest
            .is_none_or(|(known, _)| header.position >= known)
        {
            self.newest = Some((header.position, header.published_at()));
        }
        if class == SampleClass::Key && self.key_interval > 1 {
            // The delta sample that follows is as good as seen.
            let follower = (header.other_sequence, header.position.saturating_add(1));
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

    /// Position of sample `sequence` of `class`; `None` while nothing is known, or if it is out of reach.
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

    /// When sample `sequence` of `class` is published.
    pub(super) fn published_at(&self, class: SampleClass, sequence: u64) -> Option<Timestamp> {
        self.time_of(self.position(class, sequence)?)
    }

    /// When the sample at position `wanted` is published.
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
    use super::*;

    const PERIOD: Duration = Duration::from_millis(40);
    const START: Timestamp = Timestamp::from_micros(1_760_000_000_000_000);

    fn header(position: u64, other_sequence: u64) -> SampleHeader {
        SampleHeader {
            captured_at: START + PERIOD * u32::try_from(position).unwrap(),
            encoded_after: Duration::ZERO,
            published_after: Duration::ZERO,
            position,
            other_sequence,
            payload_size: 1,
            shard_size: None,
            parity_count: 0,
            asked: None,
        }
    }

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
                let at = START + PERIOD * u32::try_from(wanted).unwrap();
                assert_eq!(clock.position(class, sequence), Some(wanted), "{newest}");
                assert_eq!(clock.published_at(class, sequence), Some(at));
            }
        }
    }

    #[test]
    fn a_stream_of_key_samples_alone_counts_them() {
        let mut clock = SampleClock::new(PERIOD, 1);
        assert_eq!(clock.published_at(SampleClass::Key, 5), None);
        clock.on_lead(SampleClass::Key, 5, &header(2, 0));
        let at = START + PERIOD * 7;
        assert_eq!(clock.published_at(SampleClass::Key, 10), Some(at));
        assert_eq!(clock.position(SampleClass::Key, 2), None);
        assert_eq!(clock.published_at(SampleClass::Key, u64::MAX), None);
        assert_eq!(clock.position(SampleClass::Delta, 3), None);
    }
}
