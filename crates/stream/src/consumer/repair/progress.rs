//! Tells what still waits in a queue from what is lost.
//!
//! A link that is full delivers segments one after the other, in the order in which they set out. While it does, those behind
//! them are not lost, however late they are.

use core::time::Duration;

use namecast_units::Instant;

use super::super::order::SampleKey;

/// Interests that leave within so long of each other leave together: the resolution of timers. Measured: half and double stay within the
/// noise, 0.3 % of frames.
const TOGETHER: Duration = Duration::from_millis(1);
/// Segments that may be in a queue where all is well: those of a sample that leave together, `AT_ONCE`, and two of another stream.
/// A bound alone: half and double change no run that was measured.
const ORDINARY: u32 = 8;
/// Times between segments for which a queue may stand still. Measured: half and double deliver 3.5 and 0.6 % more frames in time behind
/// a full link, by two seeds, and stay within the noise elsewhere.
const STANDSTILL: u32 = 8;
/// Time for which it may stand still besides: what timers and other traffic cost, at most, as for `MIN_MARGIN`. Measured: half and
/// double stay within the noise.
const MAX_SLACK: Duration = Duration::from_millis(3);
/// On a link that is faster than that, a sample is never long in a queue: 1000 octets at 16 Mbit/s. Measured: half and double stay
/// within the noise, 0.3 % of frames.
const MIN_GAP: Duration = Duration::from_micros(500);
/// Pauses longer than this are no time between segments: 1000 octets at 800 kbit/s, the slowest link that carries a stream of
/// several segments a frame. Measured: half and double stay within the noise.
const MAX_GAP: Duration = Duration::from_millis(10);
/// One over the weight of a new gap in their average: \[RFC6298\]'s α, 1/8. Measured: half and double stay within the noise.
const GAIN: u32 = 8;

/// A segment's place in the order in which segments set out: when it could be here without queues, and the number of
/// its Interest.
pub(super) type Place = (Instant, u64);

/// The last segment that came in answer to a first Interest.
#[derive(Clone, Copy, Debug)]
struct Newest {
    key: SampleKey,
    place: Place,
    /// When its Interest left, and when it came.
    sent_at: Instant,
    at: Instant,
}

/// How a queue on the path moves on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    newest: Option<Newest>,
    gap: Duration,
}

impl Progress {
    /// What holds of links on which a queue is to be reckoned with.
    pub(super) fn of_slow_links(self) -> Self {
        let is_slow = self.gap >= MIN_GAP;
        let gap = if is_slow { self.gap } else { Duration::ZERO };
        Self { gap, ..self }
    }

    /// Records a segment that came now in answer to an Interest that left at `sent_at`.
    pub(super) fn note(&mut self, now: Instant, key: SampleKey, place: Place, sent_at: Instant) {
        // Of Interests that left one right after the other; others may come when they like.
        let follows = |before: &Newest| {
            let is_next = before.key == key && before.place.1 + 1 == place.1;
            is_next && sent_at.since(before.sent_at) <= TOGETHER
        };
        if let Some(before) = self.newest.filter(follows) {
            let gap = now.since(before.at);
            if gap <= MAX_GAP {
                self.gap = match self.gap.is_zero() {
                    true => gap,
                    false => self.gap - self.gap / GAIN + gap / GAIN,
                };
            }
        }
        let at = now;
        self.newest = Some(Newest {
            key,
            place,
            sent_at,
            at,
        });
    }

    /// Returns how long a queue of a few segments takes that is none to speak of.
    pub(super) fn ordinary(&self) -> Duration {
        self.gap * ORDINARY
    }

    /// Records that something came that has no place.
    pub(super) const fn still_moves(&mut self, now: Instant) {
        if let Some(newest) = &mut self.newest {
            newest.at = now;
        }
    }

    /// Returns until when what is on its way of sample `key`, expected at `expected_at`, or of those before it, may be on its way still.
    pub(super) fn of_sample(&self, key: SampleKey, expected_at: Instant) -> Option<Instant> {
        let newest = self
            .newest
            .filter(|newest| newest.key == key || newest.place.0 <= expected_at)?;
        Some(newest.at + self.standstill())
    }

    fn standstill(&self) -> Duration {
        // On a link that is never busy for long, nothing is waited for.
        self.gap * STANDSTILL + self.gap.min(MAX_SLACK)
    }

    /// Returns until when a segment at `place` may be behind the one that came last; `None` if that one set out later.
    pub(super) fn until(&self, place: Place) -> Option<Instant> {
        match self.newest {
            // The delay is known from a packet that was smaller, or from another path.
            None => Some(place.0 + MAX_GAP),
            Some(newest) => (newest.place <= place).then(|| newest.at + self.standstill()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consumer::fixtures::at;
    use crate::names::SampleClass;

    const KEY: SampleKey = (SampleClass::Key, 1);

    /// One segment every 2 ms: what is behind the last one may take 8 · 2 + 2 ms more; what was before it is overdue.
    #[test]
    fn what_is_behind_a_moving_queue_is_not_overdue() {
        let mut progress = Progress::default();
        assert_eq!(progress.until((at(5), 0)), Some(at(15)));
        for index in 0..200 {
            progress.note(at(100 + 2 * index), KEY, (at(100), index), at(0));
        }
        let until = progress.until((at(100), 200)).unwrap();
        let expected = at(100 + 2 * 199 + 16 + 2);
        assert!(
            expected.since(until) < Duration::from_micros(10),
            "{until:?}"
        );
        assert_eq!(progress.until((at(133), 0)), Some(until));
        assert_eq!(progress.until((at(100), 150)), None);
        assert_eq!(progress.until((at(99), 300)), None);
    }

    /// A pause between samples says nothing of the link.
    #[test]
    fn pauses_are_no_gaps() {
        let mut progress = Progress::default();
        for sample in 0..50 {
            let key = (SampleClass::Delta, sample);
            progress.note(at(sample * 40), key, (at(sample * 40), 0), at(0));
            progress.note(at(sample * 40 + 1), key, (at(sample * 40), 1), at(0));
        }
        assert!(progress.gap <= Duration::from_millis(1));
    }
}
