//! Which frames of one watcher could be shown in time, by the laboratory's clock and not by the watcher's.

use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};

use namecast_units::{Bitrate, Duration, Instant};

use super::path::BaseDelay;
use crate::live::{FrameRecord, Media};

/// Frames that are captured later than this before the end do not count.
const SETTLES: Duration = Duration::from_millis(1_500);

/// Frames of one stream of one watcher.
///
/// A frame is *in time* if it can be decoded at or before capture + base delay of the path + target. It can be decoded when it is
/// complete, and so are all frames of its rung since the key frame. Late frames serve as references.
pub(super) struct InTime<'a> {
    watched: Watched<'a>,
    /// Frames that are in time, by position; of several rungs the highest.
    shown: BTreeMap<u64, Shown>,
    /// Frames that were complete in time in some rung, whether or not they could be decoded.
    complete: BTreeSet<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Shown {
    rung: Bitrate,
    size: usize,
}

/// Who watched what, and when.
#[derive(Clone, Copy)]
pub(super) struct Watched<'a> {
    pub(super) media: &'a Media,
    /// When the frame at position 0 was captured.
    pub(super) origin: Instant,
    pub(super) base: &'a BaseDelay,
    pub(super) target: Duration,
    pub(super) joined_at: Instant,
    pub(super) ends_at: Instant,
}

/// Figures of the frames that were captured within a window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct InTimeFigures {
    pub(super) frames: u64,
    pub(super) in_time: u64,
    pub(super) complete: u64,
    pub(super) bits: u64,
    pub(super) span: Duration,
    /// Longest time without a frame in time, less a frame.
    pub(super) freeze: Duration,
    pub(super) switches: u64,
    /// From the window's start to the first frame in time of at least the old rung, after the first that is not; zero if all are.
    pub(super) back: Option<Duration>,
    /// From joining to the first frame in time of at least the rung asked about.
    pub(super) goal: Option<Duration>,
}

impl<'a> InTime<'a> {
    pub(super) fn new(
        watched: Watched<'a>,
        records: impl Iterator<Item = &'a FrameRecord>,
    ) -> Self {
        let mut frames = Self {
            watched,
            shown: BTreeMap::new(),
            complete: BTreeSet::new(),
        };
        let mut rungs: BTreeMap<&str, BTreeMap<u64, &FrameRecord>> = BTreeMap::new();
        for record in records.filter(|record| record.stream == watched.media.kind) {
            let rung = rungs.entry(&record.rung).or_default();
            let known = rung.entry(record.position).or_insert(record);
            if record.complete_at < known.complete_at {
                *known = record;
            }
        }
        for (name, records) in rungs {
            frames.add_rung(name, &records);
        }
        frames
    }

    fn add_rung(&mut self, name: &str, records: &BTreeMap<u64, &FrameRecord>) {
        let rung = self
            .watched
            .media
            .rungs
            .iter()
            .find(|rung| rung.name == name);
        let rung = rung.map_or(Bitrate::ZERO, |rung| rung.bitrate);
        // Position of the last frame that could be decoded, and when.
        let mut decoded: Option<(u64, Instant)> = None;
        for (&position, record) in records {
            let due = self.due(position);
            if record.complete_at <= due {
                self.complete.insert(position);
            }
            let before = decoded.filter(|(before, _)| before + 1 == position);
            decoded = match before {
                _ if record.key => Some((position, record.complete_at)),
                Some((_, at)) => Some((position, at.max(record.complete_at))),
                None => None,
            };
            if decoded.is_some_and(|(_, at)| at <= due) {
                let size = record.size;
                let shown = self.shown.entry(position).or_insert(Shown { rung, size });
                if rung > shown.rung {
                    *shown = Shown { rung, size };
                }
            }
        }
    }

    /// Position of the first frame captured at `at` or after it.
    fn position_at(&self, at: Instant) -> u64 {
        let Watched { media, origin, .. } = self.watched;
        media.position_after(at.since(origin))
    }

    fn captured_at(&self, position: u64) -> Instant {
        self.watched.origin + self.watched.media.captured_after(position)
    }

    /// When the frame is to be shown.
    fn due(&self, position: u64) -> Instant {
        let captured_at = self.captured_at(position);
        captured_at + self.watched.base.at(captured_at) + self.watched.target
    }

    /// Figures of the frames captured from `from` on and before `until`; `goal` is the rung asked about.
    pub(super) fn within(
        &self,
        from: Instant,
        until: Instant,
        goal: Option<&str>,
    ) -> InTimeFigures {
        let positions = self.positions(from, until);
        let period = self.watched.media.rate.period();
        let mut figures = InTimeFigures {
            frames: positions.end - positions.start,
            span: period * (positions.end - positions.start) as u32,
            complete: self.complete.range(positions.clone()).count() as u64,
            goal: self.first_of(goal),
            back: self.back(positions.clone()),
            ..InTimeFigures::default()
        };
        let mut last = self.due(positions.start);
        let mut rung = None;
        for (&position, shown) in self.shown.range(positions.clone()) {
            figures.in_time += 1;
            figures.bits += shown.size as u64 * 8;
            let due = self.due(position);
            figures.freeze = figures.freeze.max(due.since(last).saturating_sub(period));
            last = due;
            figures.switches += u64::from(rung.is_some_and(|rung| rung != shown.rung));
            rung = Some(shown.rung);
        }
        let rest = self.due(positions.end).since(last);
        figures.freeze = figures.freeze.max(rest.saturating_sub(period));
        figures
    }

    /// Figures of the rungs' pictures, by measure.
    pub(super) fn measures(&self) -> impl Iterator<Item = (&'a str, &'a [f64])> {
        let quality = self.watched.media.quality.iter();
        quality.map(|(measure, figures)| (measure.as_str(), figures.as_slice()))
    }

    /// Positions of the frames captured from `from` on and before `until` that count.
    fn positions(&self, from: Instant, until: Instant) -> Range<u64> {
        let begin = from.max(self.watched.joined_at).max(self.watched.origin);
        let settled = Instant::ZERO + self.watched.ends_at.since(Instant::ZERO + SETTLES);
        let end = until.min(settled).max(begin);
        self.position_at(begin)..self.position_at(end)
    }

    /// Mean over the frames captured from `from` on and before `until` of a figure that each rung has, in the order of the rungs.
    /// A frame that is not in time counts as the last one that was, which stays on the screen; before the first there is nothing.
    /// NaN if that is all.
    pub(super) fn quality(&self, from: Instant, until: Instant, figures: &[f64]) -> f64 {
        let rungs = || self.watched.media.rungs.iter().zip(figures);
        let of = |shown: &Shown| rungs().find(|(rung, _)| rung.bitrate == shown.rung);
        let positions = self.positions(from, until);
        let before = self.shown.range(..positions.start).next_back();
        let mut on_screen = before.and_then(|(_, shown)| of(shown));
        let (mut sum, mut frames) = (0.0, 0_u64);
        for position in positions {
            on_screen = self.shown.get(&position).and_then(of).or(on_screen);
            if let Some((_, figure)) = on_screen {
                sum += figure;
                frames += 1;
            }
        }
        sum / frames as f64
    }

    /// Returns the bitrate of each frame from joining on, at its capture, in Mbit/s; zero if it is not in time.
    pub(super) fn curve(&self) -> Vec<(f64, f64)> {
        let begin = self.watched.joined_at.max(self.watched.origin);
        let positions = self.position_at(begin)..self.position_at(self.watched.ends_at);
        let point = |position| {
            let rung = self.shown.get(&position).map(|shown| shown.rung);
            let at = self.captured_at(position).since(Instant::ZERO);
            let rung = rung.unwrap_or(Bitrate::ZERO);
            (at.as_secs_f64(), rung.as_bps() as f64 / 1e6)
        };
        positions.map(point).collect()
    }

    fn first_of(&self, goal: Option<&str>) -> Option<Duration> {
        let mut rungs = self.watched.media.rungs.iter();
        let goal = rungs.find(|rung| Some(&*rung.name) == goal)?.bitrate;
        let mut shown = self.shown.iter();
        let (&first, _) = shown.find(|(_, shown)| shown.rung >= goal)?;
        Some(self.due(first).since(self.watched.joined_at))
    }

    /// See [`InTimeFigures::back`]; none if the old rung does not come back.
    fn back(&self, positions: Range<u64>) -> Option<Duration> {
        let (_, before) = self.shown.range(..positions.start).next_back()?;
        let is_back = |position: &u64| {
            let shown = self.shown.get(position);
            shown.is_some_and(|shown| shown.rung >= before.rung)
        };
        let start = positions.start;
        let mut positions = positions;
        if positions.all(|position| is_back(&position)) {
            return Some(Duration::ZERO);
        }
        let first = positions.find(is_back)?;
        Some(self.captured_at(first).since(self.captured_at(start)))
    }
}

#[cfg(test)]
mod tests {
    use namecast_stream::{SampleRate, StreamKind};
    use namecast_units::Timestamp;

    use super::*;
    use crate::live::MediaRung;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + ms(millis)
    }

    /// Ten frames a second, a key frame every five.
    fn media() -> Media {
        let rung = |mega| MediaRung::new(&format!("{mega}M"), Bitrate::mbps(mega));
        Media {
            rate: SampleRate::new(10, 1),
            key_interval: 5,
            rungs: vec![rung(1), rung(2)],
            ..Media::video()
        }
    }

    fn record(rung: &str, position: u64, complete_after: u64) -> FrameRecord {
        FrameRecord {
            stream: StreamKind::Video,
            rung: rung.to_owned(),
            position,
            key: position.is_multiple_of(5),
            size: 100,
            captured_at: Timestamp::default(),
            complete_at: at(position * 100 + complete_after),
            handed_out_at: at(position * 100 + complete_after),
            // Of no importance here.
            render_at: at(0),
            catching_up: false,
        }
    }

    fn figures(records: &[FrameRecord], from: u64, until: u64) -> InTimeFigures {
        judged(records, |frames| {
            frames.within(at(from), at(until), Some("2M"))
        })
    }

    fn judged<T>(records: &[FrameRecord], judge: impl Fn(&InTime<'_>) -> T) -> T {
        let media = media();
        let base = BaseDelay::default();
        let watched = Watched {
            media: &media,
            origin: at(0),
            base: &base,
            target: ms(250),
            joined_at: at(0),
            ends_at: at(3_500),
        };
        judge(&InTime::new(watched, records.iter()))
    }

    /// Frames 0 to 9: 2 is 200 ms late, so that 3 (complete at 310, shown at 550) can be decoded at 650 only, and 4 (due at 650)
    /// just in time. 6 is lost, so 7 to 9 cannot be decoded. 10 to 14 come at the higher rung, too; 12 and 13 in that only.
    #[test]
    fn figures_are_as_worked_by_hand() {
        let mut records: Vec<_> = [0, 1, 3, 4, 5, 7, 8, 9, 10, 11]
            .map(|position| record("1M", position, 10))
            .into();
        records.push(record("1M", 2, 450));
        records.extend([10, 11, 12, 13].map(|position| record("2M", position, 250)));
        let all = figures(&records, 0, 1_400);
        assert_eq!((all.frames, all.span), (14, ms(1_400)));
        // 0 1 4 5 10 11 12 13 of 0 1 3 4 5 7 8 9 10 11 12 13.
        assert_eq!((all.in_time, all.complete), (8, 12));
        assert_eq!((all.bits, all.switches), (6_400, 1));
        // From 5 to 10, less one frame.
        assert_eq!(all.freeze, ms(400));
        assert_eq!(all.goal, Some(ms(1_250)));
        // The old rung is that of frame 5, which is back with frame 10.
        assert_eq!(figures(&records, 600, 1_400).back, Some(ms(400)));
        assert_eq!(figures(&records, 500, 600).back, Some(ms(0)));
        assert_eq!(figures(&records, 600, 900).back, None);
        // Nothing at the end: from 13 to 20.
        assert_eq!(figures(&records, 1_000, 9_000).freeze, ms(600));
        assert_eq!(figures(&records, 1_000, 9_000).frames, 10);
    }

    /// Frame 0 is not in time, so there is no picture; 1 is of the low rung and stays for 2; 5 to 7 are of the high one, and 7 stays
    /// for 8 and 9.
    #[test]
    fn quality_is_that_of_the_picture_on_the_screen() {
        let mut records = vec![record("1M", 0, 300), record("1M", 1, 10)];
        records.extend([5, 6, 7].map(|position| record("2M", position, 10)));
        let quality = |from, until| {
            judged(&records, |it| {
                it.quality(at(from), at(until), &[30.0, 40.0])
            })
        };
        assert!((quality(0, 300) - 30.0).abs() < 1e-12);
        assert!((quality(0, 1_000) - (4.0 * 30.0 + 5.0 * 40.0) / 9.0).abs() < 1e-12);
        // From 2 on, what is on the screen is known from before.
        assert!((quality(200, 600) - (3.0 * 30.0 + 40.0) / 4.0).abs() < 1e-12);
        assert!(quality(0, 100).is_nan());
    }

    #[test]
    fn who_shows_nothing_freezes_all_the_time() {
        let none = figures(&[], 0, 1_000);
        assert_eq!((none.frames, none.in_time), (10, 0));
        assert_eq!((none.freeze, none.goal, none.back), (ms(900), None, None));
    }
}
