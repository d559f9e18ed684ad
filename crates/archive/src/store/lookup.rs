//! Which chunks may hold a sample or a time, found without looking at each.

use std::collections::BTreeMap;

use namecast_stream::SampleClass;
use namecast_units::Timestamp;

use crate::chunk::ChunkId;
use crate::index::Span;

/// Chunks considered for one thing: those of several archives overlap, and a publisher's clock may have gone back.
pub(super) const MAX_CONSIDERED: usize = 64;
/// Of these, indexes that are read for a time.
pub(super) const MAX_READ: usize = 8;

/// What is known of a chunk that may hold what is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) id: ChunkId,
    /// First and last time of capture.
    pub(super) first: Timestamp,
    pub(super) last: Timestamp,
    /// Whether it holds key samples.
    pub(super) has_keys: bool,
}

/// Chooses candidates whose indexes are worth reading. Where several chunks of one archive hold the same times, as a publisher's clock
/// went back, one of them is enough.
#[derive(Debug, Default)]
pub(super) struct Choice {
    /// Archives of the chunks that were read.
    writers: Vec<u32>,
}

impl Choice {
    /// Returns whether to read the index of a candidate. `is_found`: what is looked for was found, and a better one may exist.
    pub(super) fn wants(&mut self, candidate: &Candidate, is_found: bool) -> bool {
        let writer = candidate.id.writer;
        let is_repeated = is_found && self.writers.contains(&writer);
        let wants = !is_repeated && self.writers.len() < MAX_READ;
        if wants {
            self.writers.push(writer);
        }
        wants
    }
}

/// The least name of a chunk.
const LEAST: ChunkId = ChunkId {
    begun_at: Timestamp::from_micros(0),
    writer: 0,
};
/// The greatest name of a chunk.
const GREATEST: ChunkId = ChunkId {
    begun_at: Timestamp::from_micros(u64::MAX),
    writer: u32::MAX,
};

/// The sealed chunks that hold something of one rung.
#[derive(Debug, Default)]
pub(super) struct RungChunks {
    /// By the first time of capture, with the last.
    by_first: BTreeMap<(Timestamp, ChunkId), Timestamp>,
    /// By the last time of capture, with the first.
    by_last: BTreeMap<(Timestamp, ChunkId), Timestamp>,
    /// By the last number of key samples, and of delta samples, with the first.
    by_sequence: [BTreeMap<(u64, ChunkId), u64>; 2],
    /// The last number of key samples, and of delta samples, of each chunk that has any.
    newest: [BTreeMap<ChunkId, u64>; 2],
}

impl RungChunks {
    pub(super) fn insert(&mut self, id: ChunkId, span: &Span) {
        let (first, last) = (*span.captured.start(), *span.captured.end());
        self.by_first.insert((first, id), last);
        self.by_last.insert((last, id), first);
        for (class, range) in span.sequences.iter().enumerate() {
            if let Some(range) = range {
                self.by_sequence[class].insert((*range.end(), id), *range.start());
                self.newest[class].insert(id, *range.end());
            }
        }
    }

    pub(super) fn remove(&mut self, id: ChunkId, span: &Span) {
        self.by_first.remove(&(*span.captured.start(), id));
        self.by_last.remove(&(*span.captured.end(), id));
        for (class, range) in span.sequences.iter().enumerate() {
            if let Some(range) = range {
                self.by_sequence[class].remove(&(*range.end(), id));
                self.newest[class].remove(&id);
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_first.is_empty()
    }

    /// Chunks that may hold sample `sequence`, the one begun last first.
    pub(super) fn with_sample(&self, class: SampleClass, sequence: u64) -> Vec<ChunkId> {
        let ending = self.by_sequence[class.index()].range((sequence, LEAST)..);
        let ending = ending.take(MAX_CONSIDERED);
        let holding = ending.filter(|(_, first)| **first <= sequence);
        let mut found: Vec<ChunkId> = holding.map(|((_, id), _)| *id).collect();
        found.sort_unstable_by(|a, b| b.cmp(a));
        found
    }

    /// Chunks with samples at or before `time`, the latest first.
    pub(super) fn before(&self, time: Timestamp) -> Vec<Candidate> {
        let chunks = self.by_first.range(..=(time, GREATEST)).rev();
        let chunks = chunks.map(|((first, id), last)| self.candidate(*id, *first, *last));
        chunks.take(MAX_CONSIDERED).collect()
    }

    /// Chunks with samples after `time`, those that end first.
    pub(super) fn after(&self, time: Timestamp) -> Vec<Candidate> {
        let later = core::ops::Bound::Excluded((time, GREATEST));
        let chunks = self.by_last.range((later, core::ops::Bound::Unbounded));
        let chunks = chunks.map(|((last, id), first)| self.candidate(*id, *first, *last));
        chunks.take(MAX_CONSIDERED).collect()
    }

    fn candidate(&self, id: ChunkId, first: Timestamp, last: Timestamp) -> Candidate {
        Candidate {
            id,
            first,
            last,
            has_keys: self.newest[SampleClass::Key.index()].contains_key(&id),
        }
    }

    /// Returns the last number of `class` in the chunk that was begun last and has any.
    pub(super) fn newest(&self, class: SampleClass) -> Option<(ChunkId, u64)> {
        let newest = self.newest[class.index()].last_key_value()?;
        Some((*newest.0, *newest.1))
    }
}
