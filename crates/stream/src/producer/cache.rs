//! Samples that were published, bounded in size and age: newest kept, oldest dropped.

use std::collections::{BTreeMap, VecDeque};

use core::time::Duration;

use namecast_packet::Data;
use namecast_units::{ByteSize, Instant};
use smart_default::SmartDefault;

use crate::names::{SampleClass, SegmentId};
use crate::segmenter::Segments;

/// How much of a rung is kept.
///
/// The defaults hold half a minute of 3 Mbit/s with parity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SmartDefault)]
pub struct CacheConfig {
    /// Most memory for packets, and for what is needed to find them.
    #[default(ByteSize::mebibytes(16))]
    pub size: ByteSize,
    /// Age at which a sample is dropped, the next time that one is published.
    #[default(Duration::from_secs(30))]
    pub age: Duration,
}

/// What the cache knows of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup<'a> {
    /// It is there.
    Found(&'a Data),
    /// Its sample is there, and has no such segment.
    NoSuchSegment,
    /// Its sample is not there.
    Absent,
}

/// Published samples of one rung.
#[derive(Debug)]
pub struct SegmentCache {
    samples: BTreeMap<(SampleClass, u64), Segments>,
    /// In order of publication.
    order: VecDeque<(Instant, (SampleClass, u64))>,
    size: ByteSize,
    config: CacheConfig,
}

impl SegmentCache {
    /// An empty cache.
    pub const fn new(config: CacheConfig) -> Self {
        Self {
            samples: BTreeMap::new(),
            order: VecDeque::new(),
            size: ByteSize::ZERO,
            config,
        }
    }

    /// Memory in use.
    pub const fn size(&self) -> ByteSize {
        self.size
    }

    /// Returns the samples kept.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Returns whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Returns the segment `id`.
    pub fn get(&self, id: &SegmentId) -> Lookup<'_> {
        match self.samples.get(&(id.class, id.sequence)) {
            None => Lookup::Absent,
            Some(segments) => match segments.get(id.kind, id.index) {
                Some(data) => Lookup::Found(data),
                None => Lookup::NoSuchSegment,
            },
        }
    }

    /// Returns the samples of `class` by number.
    pub fn of_class(&self, class: SampleClass) -> impl Iterator<Item = (u64, &Segments)> {
        let samples = self.samples.range((class, 0)..=(class, u64::MAX));
        samples.map(|((_, sequence), segments)| (*sequence, segments))
    }

    /// Keeps what was made on request of a sample that is there: a copy of its lead, or parity of the group it ends.
    pub fn keep(&mut self, id: &SegmentId, data: Data) {
        let Some(segments) = self.samples.get_mut(&(id.class, id.sequence)) else {
            return;
        };
        self.size += packet_memory(&data);
        if let Some(before) = segments.insert(id, data) {
            self.size -= packet_memory(&before);
        }
    }

    /// Keeps the sample that was published as `sequence` of `class`, and drops what has become too old or too much.
    ///
    /// Not even the new sample is kept if it alone is too much. One that is there already stays as it is.
    pub fn insert(&mut self, now: Instant, sample: (SampleClass, u64), segments: Segments) {
        if self.samples.contains_key(&sample) {
            return;
        }
        self.size += memory(&segments);
        self.samples.insert(sample, segments);
        self.order.push_back((now, sample));
        while let Some((published_at, oldest)) = self.order.front() {
            if self.size <= self.config.size && now.since(*published_at) <= self.config.age {
                break;
            }
            let segments = self.samples.remove(oldest);
            self.size -= memory(&segments.expect("what is in order is in samples"));
            self.order.pop_front();
        }
    }
}

/// Memory that a sample takes: its packets, and per packet its name and bookkeeping.
fn memory(segments: &Segments) -> ByteSize {
    segments.iter().map(packet_memory).sum()
}

fn packet_memory(data: &Data) -> ByteSize {
    let octets = data.wire().len() + data.name().value().len() + size_of::<Data>();
    ByteSize::bytes(octets as u64)
}

#[cfg(test)]
mod tests;
