//! The time of a recording: it goes by capture, and goes on by playback where the publisher's clock jumps.
//!
//! ```text
//!   captured    10:00:01  10:00:02 │ 09:30:03  09:30:04      the clock is set back by half an hour
//!   rendered           7         8 │        9        10
//!   recorded           1         2 │        3         4
//! ```

use namecast_apps::live::watcher::Frame;
use namecast_stream::StreamKind;
use namecast_units::{Duration, Instant, Timestamp};

/// Capture and playback that drift apart by more than this from one frame to the next are of a clock that was set.
const JUMP: i64 = 2_000_000;
/// Where nobody plays, what comes so long after the frame before it is of a clock that was set, and follows after a step.
const LONGEST_GAP: i64 = 10_000_000;
const STEP: i64 = 40_000;
/// Streams whose clock was set by nearly the same, within this, stay in step.
const SAME_JUMP: i64 = 500_000;

/// Maps frames to microseconds of a recording.
#[derive(Debug)]
pub(super) struct Timeline {
    began: Timestamp,
    streams: Vec<(StreamKind, Clock)>,
}

/// One stream's clock. Times are in microseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    /// Capture less the recording's time, since the clock was set.
    ahead: i64,
    /// Capture less playback, of the last frame that was to be shown.
    apart: Option<i64>,
    /// Decoding time of the last frame.
    last: Option<i64>,
}

impl Timeline {
    /// A recording whose time starts at `began` by the publisher's clock.
    pub(super) const fn new(began: Timestamp) -> Self {
        Self {
            began,
            streams: Vec::new(),
        }
    }

    /// Returns the presentation time of the next frame of its stream in decoding order. Decoding times rise, whatever clocks do.
    pub(super) fn presented_at(&mut self, frame: &Frame) -> u64 {
        let others = self
            .streams
            .iter()
            .filter(|(kind, _)| *kind != frame.stream);
        let others: Vec<_> = others.map(|(_, clock)| clock.ahead).collect();
        let captured = frame.captured_at.micros_since(self.began);
        let clock = self.clock(frame.stream);
        // A frame that is not shown does not tell the clock.
        let set_by = if frame.decode_only {
            0
        } else {
            clock.set_by(frame, captured)
        };
        if set_by != 0 {
            let ahead = clock.ahead + set_by;
            let known = others.iter().find(|it| (*it - ahead).abs() < SAME_JUMP);
            clock.ahead = known.copied().unwrap_or(ahead);
        }
        let least = clock.last.map_or(0, |last| last + 1);
        let decoded = (captured - clock.ahead).max(least);
        clock.last = Some(decoded);
        let presented = decoded + micros(frame.composition_offset);
        u64::try_from(presented).unwrap_or(0)
    }

    /// Returns the recording's time at which something was captured that has no clock of its own.
    pub(super) fn time(&self, captured_at: Timestamp) -> u64 {
        let ahead = self.streams.first().map_or(0, |(_, clock)| clock.ahead);
        let time = captured_at.micros_since(self.began) - ahead;
        u64::try_from(time).unwrap_or(0)
    }

    fn clock(&mut self, kind: StreamKind) -> &mut Clock {
        let known = self.streams.iter().position(|(known, _)| *known == kind);
        let at = known.unwrap_or_else(|| {
            let first = self.streams.first().map(|(_, clock)| clock.ahead);
            let clock = Clock {
                ahead: first.unwrap_or(0),
                ..Clock::default()
            };
            self.streams.push((kind, clock));
            self.streams.len() - 1
        });
        let (_, clock) = self.streams.get_mut(at).expect("found or put there");
        clock
    }
}

impl Clock {
    /// Returns by how much the clock was set before `frame`, which was decoded `captured` after the beginning.
    fn set_by(&mut self, frame: &Frame, captured: i64) -> i64 {
        let step = self.last.map(|last| captured - self.ahead - last);
        let playback = micros(frame.render_at.since(Instant::ZERO));
        if playback == 0 {
            // Nobody plays it: what follows goes on where this stream was.
            let is_set = step.is_some_and(|step| !(-JUMP..LONGEST_GAP).contains(&step));
            return step.filter(|_| is_set).map_or(0, |step| step - STEP);
        }
        let apart = captured + micros(frame.composition_offset) - playback;
        let moved = self.apart.replace(apart).map_or(0, |before| apart - before);
        let goes_back = moved < 0 && step.is_some_and(|step| step <= 0);
        if moved.abs() > JUMP || goes_back {
            moved
        } else {
            0
        }
    }
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use namecast_apps::live::watcher::Stages;

    use super::*;

    const WALL: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);
    const MS: u64 = 1_000;

    /// A frame captured `captured` ms after the beginning, shown `shown` ms after the watcher's.
    fn frame(stream: StreamKind, captured: i64, shown: u64) -> Frame {
        let micros = WALL.as_micros().saturating_add_signed(captured * 1_000);
        Frame {
            stream,
            name: "one".into(),
            rung: "1M".to_owned(),
            position: 0,
            key: false,
            payload: Bytes::new(),
            captured_at: Timestamp::from_micros(micros),
            composition_offset: Duration::ZERO,
            render_at: Instant::ZERO + Duration::from_millis(shown),
            complete_at: Instant::ZERO,
            late: false,
            catching_up: false,
            decode_only: false,
            stages: Stages::default(),
        }
    }

    fn times(timeline: &mut Timeline, frames: &[Frame]) -> Vec<u64> {
        let frames = frames.iter();
        frames.map(|it| timeline.presented_at(it) / MS).collect()
    }

    /// Pictures every 40 ms, sound 10 ms after each. The clock jumps by ± 3 s and ± 30 min: the recording goes on, and sound keeps
    /// its distance though it is played a little later from then on.
    #[test]
    fn a_clock_that_is_set_moves_nothing() {
        for jump in [3_000, -3_000, 1_800_000, -1_800_000] {
            let mut timeline = Timeline::new(WALL);
            let mut recorded = Vec::new();
            for number in 0..10_u64 {
                let set = if number < 5 { 0 } else { jump };
                let at = number * 40;
                let captured = at as i64 + set;
                let later = if number < 5 { 0 } else { 8 };
                let both = [
                    frame(StreamKind::Video, captured, 1_000 + at),
                    frame(StreamKind::Audio, captured + 10, 1_010 + at + later),
                ];
                recorded.extend(times(&mut timeline, &both));
            }
            let expected: Vec<_> = (0..10).flat_map(|n| [n * 40, n * 40 + 10]).collect();
            assert_eq!(recorded, expected, "{jump}");
        }
    }

    /// A clock set back by 100 ms is below the threshold of a jump.
    #[test]
    fn time_never_goes_back() {
        let mut timeline = Timeline::new(WALL);
        let video = |captured, shown| frame(StreamKind::Video, captured, shown);
        let frames = [
            video(0, 1_000),
            video(40, 1_040),
            video(-20, 1_080),
            video(20, 1_120),
        ];
        assert_eq!(times(&mut timeline, &frames), [0, 40, 80, 120]);
        // Without playback to go by, as of what is only decoded again, not either.
        let again = Frame {
            decode_only: true,
            ..video(-100, 1_000)
        };
        let again = [again.clone(), again].map(|it| timeline.presented_at(&it));
        assert_eq!(again, [120_001, 120_002]);
    }

    /// A gap of a minute in what is played from an archive is no gap of the recording. Gaps of live streams stay.
    #[test]
    fn gaps_stay_where_playback_has_them() {
        let mut timeline = Timeline::new(WALL);
        let video = |captured, shown| frame(StreamKind::Video, captured, shown);
        let live = [video(0, 1_000), video(5_000, 6_000)];
        assert_eq!(times(&mut timeline, &live), [0, 5_000]);
        assert_eq!(times(&mut timeline, &[video(65_040, 6_040)]), [5_040]);
    }

    /// A packager has no time of playback: half an hour to either side is passed over.
    #[test]
    fn a_clock_that_is_set_where_nobody_plays_is_followed() {
        for jump in [1_800_000, -1_800_000] {
            let mut timeline = Timeline::new(WALL);
            let frames = [0, 40, 9_040, jump + 9_080, jump + 9_120].map(|captured| Frame {
                render_at: Instant::ZERO,
                ..frame(StreamKind::Video, captured, 0)
            });
            let expected = [0, 40, 9_040, 9_080, 9_120];
            assert_eq!(times(&mut timeline, &frames), expected, "{jump}");
        }
    }

    /// I₀ P₃ B₁ B₂: decoded 40 ms apart, shown in their order.
    #[test]
    fn reordered_pictures_have_the_times_of_their_presentation() {
        let mut timeline = Timeline::new(WALL);
        let picture = |position: u64, number: u64| Frame {
            composition_offset: Duration::from_millis((number + 1 - position) * 40),
            ..frame(
                StreamKind::Video,
                position as i64 * 40,
                1_000 + (number + 1) * 40,
            )
        };
        let pictures = [(0, 0), (1, 3), (2, 1), (3, 2)].map(|(at, number)| picture(at, number));
        assert_eq!(times(&mut timeline, &pictures), [40, 160, 80, 120]);
    }
}
