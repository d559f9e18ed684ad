//! The time index of what a producer still has.

use namecast_packet::Name;
use namecast_units::Timestamp;

use super::Producer;
use super::rung::RungState;
use crate::index::{IndexedSample, RungIndex, TimeIndex};
use crate::names::SampleClass;
use crate::sample::Lead;
use crate::segmenter::Segments;

impl Producer {
    /// Returns what the rungs of `stream` had at `time`; none where the cache does not reach back so far.
    pub(super) fn index(&self, stream: &Name, time: Timestamp) -> TimeIndex {
        let rungs = || {
            let is_in = |rung: &&RungState| {
                !rung.is_member && rung.segmenter.names().prefix().parent() == *stream
            };
            self.rungs.values().filter(is_in)
        };
        TimeIndex {
            rungs: rungs().filter_map(|rung| rung.index(time)).collect(),
            delegation: None,
            since: rungs().filter_map(RungState::since).min(),
        }
    }
}

impl RungState {
    /// Returns when the oldest key sample in the cache was captured.
    fn since(&self) -> Option<Timestamp> {
        let (sequence, segments) = self.cache.of_class(SampleClass::Key).next()?;
        Some(indexed(SampleClass::Key, sequence, segments)?.captured_at)
    }

    fn index(&self, time: Timestamp) -> Option<RungIndex> {
        let [(key, next_key), (delta, _)] = SampleClass::ALL.map(|class| {
            let of_class: Vec<_> = self.cache.of_class(class).collect();
            // Samples of a class are published in the order of their capture.
            let after = of_class.partition_point(|(sequence, segments)| {
                indexed(class, *sequence, segments).is_some_and(|s| s.captured_at <= time)
            });
            let at = |index: usize| {
                let (sequence, segments) = of_class.get(index)?;
                indexed(class, *sequence, segments)
            };
            (after.checked_sub(1).and_then(at), at(after))
        });
        let key = key?;
        let latest = [Some(key), delta].into_iter().flatten();
        Some(RungIndex {
            rung: self.segmenter.names().prefix().clone(),
            key,
            sample: latest.max_by_key(|s| (s.captured_at, s.position))?,
            next_key,
            newest: self.newest,
        })
    }
}

fn indexed(class: SampleClass, sequence: u64, segments: &Segments) -> Option<IndexedSample> {
    let lead = Lead::decode(segments.data.first()?).ok()?;
    let header = lead.header();
    Some(IndexedSample {
        class,
        sequence,
        other_sequence: header.other_sequence,
        position: header.position,
        captured_at: header.captured_at,
        published_at: header.published_at(),
    })
}
