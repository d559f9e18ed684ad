//! One stream being played from the past: samples in decoding order.

use std::collections::{BTreeMap, VecDeque};

use core::ops::RangeInclusive;
use core::time::Duration;

use bytes::Bytes;
use namecast_packet::{Data, Verifier};
use namecast_stream::index::{IndexedSample, RungIndex};
use namecast_stream::metadata::Latest;
use namecast_stream::{Lead, Rung, RungNames, SampleClass, SampleHeader, SegmentId, StreamKind};
use namecast_units::{Instant, Timestamp};

use super::super::watcher::Label;
use super::plays_at;
use crate::samples::{self, Limits, News, Sequence, Taken};

/// Bounds of what is pulled at a time.
const LIMITS: Limits = Limits {
    max_samples: 256,
    max_behind: u64::MAX,
};
/// Samples between key sample and target that are accepted: a group of some 20 s.
const MAX_GROUP: u64 = 512;
/// How far the newest sample moves on at a time, at most.
const MAX_JUMP: u64 = 4_096;

/// A sample that is whole.
#[derive(Clone, Debug)]
pub(super) struct Whole {
    pub class: SampleClass,
    pub sequence: u64,
    pub header: SampleHeader,
    pub payload: Bytes,
    pub complete_at: Instant,
    /// It does not follow the one before.
    pub is_reset: bool,
}

/// Where decoding is.
#[derive(Clone, Copy, Debug)]
struct Place {
    key: u64,
    next_delta: u64,
}

/// One stream being played.
#[derive(Debug)]
pub(super) struct Track {
    pub label: Label,
    pub names: RungNames,
    is_standalone: bool,
    /// Samples, and key samples, that are pulled ahead of the one delivered last.
    ahead: [u64; 2],
    sequences: [Sequence; 2],
    ready: BTreeMap<(SampleClass, u64), Whole>,
    /// Last samples that could not be had.
    lost: [Option<u64>; 2],
    /// The key sample to begin with.
    first_key: u64,
    place: Option<Place>,
    /// In decoding order.
    queue: VecDeque<Whole>,
    /// What was delivered last allows to pull up to here.
    limits: [u64; 2],
}

impl Track {
    /// A track of `rung` that begins as `index` says, with `read_ahead` in hand.
    pub(super) fn new(
        label: Label,
        names: RungNames,
        rung: &Rung,
        index: &RungIndex,
        read_ahead: Duration,
    ) -> Self {
        let period = rung.rate.period().max(Duration::from_millis(1));
        let samples = (read_ahead.as_nanos() / period.as_nanos()) as u64 + 1;
        let is_standalone = rung.key_interval <= 1;
        let keys = match is_standalone {
            true => samples,
            false => samples.div_ceil(u64::from(rung.key_interval)) + 1,
        };
        let [key, sample] = [index.key, index.sample].map(|sample| numbered(&names, sample));
        let mut track = Self {
            label,
            is_standalone,
            ahead: [keys, samples],
            sequences: SampleClass::ALL.map(Sequence::without_parity),
            ready: BTreeMap::new(),
            lost: [None; 2],
            first_key: key.sequence,
            place: None,
            queue: VecDeque::new(),
            limits: [0; 2],
            names,
        };
        track.begin_at(&key, Some(&sample));
        track.on_newest(index.newest);
        track
    }

    /// Begins with `key`, pulling up to `target` and what is read ahead.
    fn begin_at(&mut self, key: &IndexedSample, target: Option<&IndexedSample>) {
        let first_delta = key.other_sequence;
        let last_delta = target
            .filter(|target| target.class == SampleClass::Delta)
            .map_or(first_delta, |target| target.sequence)
            .min(first_delta.saturating_add(MAX_GROUP));
        self.first_key = key.sequence;
        self.place = None;
        self.sequences = SampleClass::ALL.map(Sequence::without_parity);
        self.ready.clear();
        self.lost = [None; 2];
        self.sequences[0].start_at(key.sequence);
        if !self.is_standalone {
            self.sequences[1].start_at(first_delta);
        }
        self.limits = [
            key.sequence.saturating_add(self.ahead[0]),
            last_delta.saturating_add(self.ahead[1]),
        ];
    }

    /// Records the newest samples that exist, by their numbers in the rung.
    fn on_newest(&mut self, newest: [Option<u64>; 2]) {
        let newest = self.numbered(newest);
        for (sequence, newest) in self.sequences.iter_mut().zip(newest) {
            sequence.on_published(newest);
        }
    }

    /// Returns the numbers, among those that are pulled, of these key and delta samples of the rung.
    fn numbered(&self, [key, delta]: [Option<u64>; 2]) -> [Option<u64>; 2] {
        let own = |class, number: Option<u64>| number.map(|it| self.names.numbered(class, it));
        [own(SampleClass::Key, key), own(SampleClass::Delta, delta)]
    }

    /// Returns the packets that were requested and are still missing.
    pub(super) fn outstanding(&self) -> usize {
        self.sequences.iter().map(Sequence::outstanding).sum()
    }

    /// The same, from metadata. Numbers that are far from those known belong to another publisher's life.
    pub(super) fn on_latest(&mut self, latest: &[Latest]) {
        let own = latest
            .iter()
            .find(|latest| latest.rung == *self.names.prefix());
        let Some(own) = own else {
            return;
        };
        let newest = self.numbered([own.key_sequence, own.delta_sequence]);
        for (sequence, newest) in self.sequences.iter_mut().zip(newest) {
            let known = sequence.newest().unwrap_or(0);
            sequence.on_published(newest.filter(|new| new.saturating_sub(known) <= MAX_JUMP));
        }
    }

    /// Goes on as `index` says: with samples that follow, or behind a gap. Returns whether it is a gap.
    pub(super) fn go_on(&mut self, index: &RungIndex) -> bool {
        let here = self.place.map_or(self.first_key, |place| place.key);
        match index.next_key.map(|key| numbered(&self.names, key)) {
            Some(key) if key.sequence > here.saturating_add(1) => {
                self.begin_at(&key, None);
                self.on_newest(index.newest);
                true
            }
            _ => {
                self.on_newest(index.newest);
                false
            }
        }
    }

    /// Packets to request now, at most `room`.
    pub(super) fn ask(&mut self, room: usize) -> Vec<SegmentId> {
        let mut asked = Vec::new();
        for (sequence, limit) in self.sequences.iter_mut().zip(self.limits) {
            sequence.begin(&LIMITS, limit);
            asked.extend(sequence.ask(room - asked.len()));
        }
        asked
    }

    /// Takes a packet. Returns whether it was asked for and good.
    pub(super) fn on_data(&mut self, id: SegmentId, data: &Data, verifier: &dyn Verifier) -> Taken {
        let (taken, _) = self.sequences[id.class.index()].on_data(id, data, verifier);
        taken
    }

    /// Does without a sample of which a packet did not come.
    pub(super) fn give_up(&mut self, id: SegmentId) {
        self.sequences[id.class.index()].give_up(id.sequence);
    }

    /// Returns whether everything that exists is here.
    pub(super) fn is_idle(&self) -> bool {
        self.sequences.iter().all(Sequence::is_idle)
    }

    /// Puts what came into decoding order.
    pub(super) fn sort(&mut self, now: Instant) {
        for class in SampleClass::ALL {
            while let Some(news) = self.sequences[class.index()].poll_news() {
                match news {
                    News::Sample(sequence, packets, _) => {
                        self.on_sample(now, (class, sequence), &packets);
                    }
                    News::Gap(range) => self.on_gap(class, &range),
                }
            }
        }
        while let Some((key, is_reset)) = self.next() {
            let Some(mut whole) = self.ready.remove(&key) else {
                return;
            };
            whole.is_reset = is_reset;
            let before = self.place;
            self.place = Some(match (whole.class, before) {
                (SampleClass::Delta, Some(place)) => Place {
                    next_delta: whole.sequence.saturating_add(1),
                    ..place
                },
                _ => Place {
                    key: whole.sequence,
                    next_delta: whole.header.other_sequence,
                },
            });
            self.queue.push_back(whole);
        }
    }

    fn on_sample(
        &mut self,
        now: Instant,
        (class, sequence): (SampleClass, u64),
        packets: &[(samples::Place, Data)],
    ) {
        let lead = packets
            .first()
            .and_then(|(_, data)| Lead::decode(data).ok());
        let Some(lead) = lead else {
            return;
        };
        let Some(payload) = samples::assemble(&lead, packets) else {
            self.on_gap(class, &(sequence..=sequence));
            return;
        };
        let whole = Whole {
            class,
            sequence,
            header: lead.header().clone(),
            payload,
            complete_at: now,
            is_reset: false,
        };
        self.ready.insert((class, sequence), whole);
    }

    fn on_gap(&mut self, class: SampleClass, range: &RangeInclusive<u64>) {
        let lost = &mut self.lost[class.index()];
        *lost = (*lost).max(Some(*range.end()));
    }

    /// The sample to decode next if it is here, and whether it begins anew.
    fn next(&self) -> Option<((SampleClass, u64), bool)> {
        let Some(place) = self.place else {
            let first = (SampleClass::Key, self.first_key);
            if self.ready.contains_key(&first) {
                return Some((first, false));
            }
            let is_lost = self.lost[0].is_some_and(|lost| lost >= self.first_key);
            return is_lost.then(|| self.key_after(self.first_key)).flatten();
        };
        let key = (SampleClass::Key, place.key.saturating_add(1));
        let next_key = self.ready.get(&key);
        let key_is_lost = self.lost[0].is_some_and(|lost| lost >= key.1);
        if self.is_standalone {
            return match next_key {
                Some(_) => Some((key, false)),
                None if key_is_lost => self.key_after(place.key),
                None => None,
            };
        }
        let delta = (SampleClass::Delta, place.next_delta);
        let group = self.ready.get(&delta).map(|d| d.header.other_sequence);
        if group == Some(place.key) {
            return Some((delta, false));
        }
        if next_key.is_some_and(|key| key.header.other_sequence <= place.next_delta) {
            return Some((key, false));
        }
        let delta_is_lost = self.lost[1].is_some_and(|lost| lost >= place.next_delta);
        let is_over = group.is_some_and(|group| group > place.key);
        let is_broken = (delta_is_lost && group.is_none()) || (key_is_lost && is_over);
        is_broken.then(|| self.key_after(place.key)).flatten()
    }

    /// The first key sample behind `key` that is here.
    fn key_after(&self, key: u64) -> Option<((SampleClass, u64), bool)> {
        let keys = (SampleClass::Key, key.saturating_add(1))..=(SampleClass::Key, u64::MAX);
        let (found, _) = self.ready.range(keys).next()?;
        Some((*found, true))
    }

    /// Samples in decoding order that were not delivered.
    pub(super) const fn queue(&self) -> &VecDeque<Whole> {
        &self.queue
    }

    /// When the first sample of sound that was captured at `from` or later is heard, by the clock of publication times, if it is here.
    pub(super) fn heard_from(&self, from: Timestamp) -> Option<Timestamp> {
        let sound = (self.queue.iter()).filter(|_| self.label.kind == StreamKind::Audio);
        let mut headers = sound.map(|whole| &whole.header);
        let first = headers.find(|header| header.presented_at() >= from);
        first.map(plays_at)
    }

    /// Whether each sample stands alone, as those of sound.
    pub(super) const fn is_standalone(&self) -> bool {
        self.is_standalone
    }

    /// Drops samples that are presented before what was published at `time`: they cannot be heard any more.
    pub(super) fn drop_before(&mut self, time: Timestamp) {
        if self.is_standalone {
            // Sound beside reordered pictures is presented later than it is published, as they are.
            let is_early = |whole: &Whole| plays_at(&whole.header) < time;
            while self.queue.front().is_some_and(is_early) {
                self.pop();
            }
        }
    }

    /// Takes the next sample, and lets as much more be pulled.
    pub(super) fn pop(&mut self) -> Option<Whole> {
        let whole = self.queue.pop_front()?;
        let (key, delta) = match whole.class {
            SampleClass::Key => (whole.sequence, whole.header.other_sequence),
            SampleClass::Delta => (whole.header.other_sequence, whole.sequence),
        };
        let limits = [
            key.saturating_add(self.ahead[0]),
            delta.saturating_add(self.ahead[1]),
        ];
        for (limit, new) in self.limits.iter_mut().zip(limits) {
            *limit = new.max(*limit);
        }
        // What lies behind the place is of no use any more.
        if let Some(place) = self.place {
            let useless = |(class, sequence): (SampleClass, u64)| match class {
                SampleClass::Key => sequence <= place.key,
                SampleClass::Delta => sequence < place.next_delta,
            };
            self.ready.retain(|key, _| !useless(*key));
        }
        Some(whole)
    }
}

/// Returns `sample` with its number among those that are pulled.
fn numbered(names: &RungNames, sample: IndexedSample) -> IndexedSample {
    IndexedSample {
        sequence: names.numbered(sample.class, sample.sequence),
        ..sample
    }
}
