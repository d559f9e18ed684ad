//! What became of the frames of one watcher.

use std::collections::BTreeMap;

use namecast_units::{Bitrate, Duration, Instant};

use crate::live::{FrameRecord, Media};

/// Frames this much older than the least old are stale.
const STALE: Duration = Duration::from_secs(1);

/// Frames of one watcher: when they were captured, and what it says of them.
pub(super) struct Frames<'a> {
    media: &'a Media,
    /// When the frame at position 0 was captured.
    origin: Instant,
    joined_at: Instant,
    /// By position. Of several records of one frame, one that was shown.
    records: BTreeMap<u64, Judged<'a>>,
    first_shown: Option<u64>,
    min_age: Duration,
}

/// A frame that was delivered.
#[derive(Clone, Copy)]
struct Judged<'a> {
    record: &'a FrameRecord,
    /// Whether it could be decoded when it was to be shown: it and all frames delivered before it, from its key frame on, were complete.
    is_shown: bool,
}

/// Figures of the frames that were captured within a window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct FrameFigures {
    pub(super) frames: u64,
    pub(super) rendered: u64,
    pub(super) late: u64,
    pub(super) lost: u64,
    pub(super) gaps: u64,
    pub(super) longest_gap: Duration,
    pub(super) stale: Duration,
    pub(super) age_sum: Duration,
    pub(super) max_age: Duration,
    /// Bits of payload of frames shown.
    pub(super) shown_bits: u64,
    /// Sum of the bitrates of the rungs of frames shown, in bits per second.
    pub(super) rung_sum: u64,
    /// Frames shown of the rung asked about.
    pub(super) goal: u64,
    /// From the first frame to the last.
    pub(super) span: Duration,
}

impl<'a> Frames<'a> {
    pub(super) fn new(
        media: &'a Media,
        origin: Instant,
        joined_at: Instant,
        records: impl Iterator<Item = &'a FrameRecord>,
    ) -> Self {
        let mut frames = Self {
            media,
            origin,
            joined_at,
            records: BTreeMap::new(),
            first_shown: None,
            min_age: Duration::MAX,
        };
        let mut decodable_at = Instant::ZERO;
        for record in records.filter(|record| record.stream == media.kind) {
            decodable_at = match record.key {
                true => record.complete_at,
                false => decodable_at.max(record.complete_at),
            };
            let is_shown = decodable_at <= record.render_at;
            let judged = Judged { record, is_shown };
            let known = frames.records.entry(record.position).or_insert(judged);
            if is_shown {
                *known = judged;
                let first = frames.first_shown.get_or_insert(record.position);
                *first = record.position.min(*first);
                frames.min_age = frames.min_age.min(frames.age(record));
            }
        }
        frames
    }

    /// From capture to display.
    fn age(&self, record: &FrameRecord) -> Duration {
        record.render_at.since(self.captured_at(record.position))
    }

    fn captured_at(&self, position: u64) -> Instant {
        self.origin + self.media.captured_after(position)
    }

    /// From joining to the first frame shown; of `rung`, if one is given.
    pub(super) fn first_shown(&self, rung: Option<&str>) -> Option<Duration> {
        let shown = self.records.values().filter(|judged| judged.is_shown);
        let of_rung = shown.filter(|judged| rung.is_none_or(|rung| judged.record.rung == rung));
        let first = of_rung.map(|judged| judged.record.render_at).min()?;
        Some(first.since(self.joined_at))
    }

    /// Figures of the frames captured from `from` on and before `until`; `goal` is the rung asked about.
    pub(super) fn within(&self, from: Instant, until: Instant, goal: Option<&str>) -> FrameFigures {
        let begin = match self.first_shown {
            Some(first) => from.max(self.captured_at(first)),
            None => from.max(self.joined_at),
        };
        let position = |at: Instant| self.media.position_after(at.since(self.origin));
        let positions = position(begin)..position(until.max(begin));
        let mut figures = FrameFigures {
            frames: positions.end - positions.start,
            span: self.media.rate.period() * (positions.end - positions.start) as u32,
            ..FrameFigures::default()
        };
        let mut before: Option<&FrameRecord> = None;
        for position in positions {
            let Some(&Judged { record, is_shown }) = self.records.get(&position) else {
                figures.lost += 1;
                continue;
            };
            if !is_shown {
                figures.late += 1;
                continue;
            }
            if let Some(before) = before {
                let gap = record.render_at.since(before.render_at);
                figures.longest_gap = figures.longest_gap.max(gap);
                figures.gaps += u64::from(record.position > before.position + 1);
            }
            before = Some(record);
            self.count(record, goal, &mut figures);
        }
        figures
    }

    /// Counts a frame that was shown.
    fn count(&self, record: &FrameRecord, goal: Option<&str>, figures: &mut FrameFigures) {
        let age = self.age(record);
        figures.rendered += 1;
        figures.age_sum += age;
        figures.max_age = figures.max_age.max(age);
        if age > self.min_age + STALE {
            figures.stale += self.media.rate.period();
        }
        figures.shown_bits += record.size as u64 * 8;
        let rung = self
            .media
            .rungs
            .iter()
            .find(|rung| rung.name == record.rung);
        figures.rung_sum += rung.map_or(Bitrate::ZERO, |rung| rung.bitrate).as_bps();
        figures.goal += u64::from(goal == Some(&*record.rung));
    }
}

#[cfg(test)]
mod tests {
    use namecast_stream::{SampleRate, StreamKind};
    use namecast_units::Timestamp;

    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + ms(millis)
    }

    /// A frame of ten a second that was complete so long after capture, and shown 300 ms after it unless it says else.
    fn record(position: u64, complete: u64, shown: u64) -> FrameRecord {
        FrameRecord {
            stream: StreamKind::Video,
            rung: "1M".to_owned(),
            position,
            key: true,
            size: 100,
            captured_at: Timestamp::default(),
            complete_at: at(position * 100 + complete),
            handed_out_at: at(position * 100 + complete),
            render_at: at(position * 100 + shown),
            catching_up: false,
        }
    }

    fn media() -> Media {
        Media {
            rate: SampleRate::new(10, 1),
            ..Media::video()
        }
    }

    /// Frames 2 to 11 of which 5 is late, 7 and 8 are lost, 10 is 1.1 s older than the others.
    #[test]
    fn figures_are_as_worked_by_hand() {
        let media = media();
        let mut records: Vec<_> = [2, 3, 4, 6, 9, 11]
            .into_iter()
            .map(|position| record(position, 200, 300))
            .collect();
        records.push(record(5, 400, 300));
        records.push(record(10, 200, 1_401));
        // Needed to catch up only, and shown by nobody.
        records.push(record(1, 400, 300));
        let frames = Frames::new(&media, at(0), at(150), records.iter());
        assert_eq!(frames.first_shown(None), Some(ms(350)));
        assert_eq!(frames.first_shown(Some("3M")), None);
        let figures = frames.within(at(0), at(1_200), Some("1M"));
        assert_eq!((figures.frames, figures.rendered), (10, 7));
        assert_eq!((figures.late, figures.lost), (1, 2));
        assert_eq!((figures.gaps, figures.longest_gap), (2, ms(1_201)));
        assert_eq!((figures.stale, figures.max_age), (ms(100), ms(1_401)));
        assert_eq!(figures.age_sum, ms(6 * 300 + 1_401));
        assert_eq!((figures.shown_bits, figures.goal), (5_600, 7));
        assert_eq!((figures.rung_sum, figures.span), (7_000_000, ms(1_000)));
        // The window decides by the time of capture: frames 4 and 5.
        let part = frames.within(at(400), at(600), None);
        assert_eq!(
            (part.frames, part.rendered, part.late, part.goal),
            (2, 1, 1, 0)
        );
    }

    /// Frame 2 is complete 100 ms after frame 3 is to be shown, and frame 4 comes just when frame 2 does: frames 2 and 3 are late. Frame 5
    /// stands alone.
    #[test]
    fn a_frame_waits_for_those_that_it_is_decoded_from() {
        let media = media();
        let mut records: Vec<_> = [(1, 200), (2, 500), (3, 200), (4, 300), (5, 200)]
            .into_iter()
            .map(|(position, complete)| record(position, complete, 300))
            .collect();
        for delta in &mut records[1..4] {
            delta.key = false;
        }
        let frames = Frames::new(&media, at(0), at(0), records.iter());
        let figures = frames.within(at(0), at(600), None);
        assert_eq!((figures.frames, figures.rendered, figures.late), (5, 3, 2));
    }

    /// A watcher that shows nothing has lost everything since it joined.
    #[test]
    fn who_shows_nothing_loses_all() {
        let media = media();
        let frames = Frames::new(&media, at(0), at(500), [].iter());
        let figures = frames.within(at(0), at(1_000), None);
        assert_eq!((figures.frames, figures.lost), (5, 5));
        assert_eq!(frames.first_shown(None), None);
    }
}
