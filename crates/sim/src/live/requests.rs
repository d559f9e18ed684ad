//! When an application sends Interests, and how often for the same segment.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use namecast_packet::Name;
use namecast_stream::RungNames;
use namecast_units::{Duration, Instant};

use crate::trace::{Frame, PacketKind};

/// Resolution of the counts over time.
const SLOT: Duration = Duration::from_millis(100);
/// Slots that are kept: more than a day.
const MAX_SLOTS: usize = 1 << 20;
/// Segments whose Interests are counted, the most recent ones.
const MAX_SEGMENTS: usize = 1 << 14;

/// Interests that an application has sent.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    slots: Vec<u32>,
    /// Interests by name, and the names in the order of their first Interest.
    by_segment: BTreeMap<Name, u32>,
    order: VecDeque<Name>,
    max_per_segment: u32,
}

impl Requests {
    /// Length of one of [`slots`](Self::slots).
    pub const SLOT: Duration = SLOT;

    /// None yet.
    pub(super) const fn new() -> Self {
        Self {
            slots: Vec::new(),
            by_segment: BTreeMap::new(),
            order: VecDeque::new(),
            max_per_segment: 0,
        }
    }

    /// Returns the number of Interests sent in each slot since [`Instant::ZERO`]; slots after the last Interest are left out.
    pub fn slots(&self) -> &[u32] {
        &self.slots
    }

    /// Returns the largest number of Interests for the same segment.
    pub const fn max_per_segment(&self) -> u32 {
        self.max_per_segment
    }

    /// Counts `frame` if it is an Interest.
    pub(super) fn record(&mut self, now: Instant, frame: &Bytes) {
        let frame = Frame::read(frame);
        if frame.packet != PacketKind::Interest {
            return;
        }
        let slot = now.since(Instant::ZERO).as_nanos() / SLOT.as_nanos();
        let slot = usize::try_from(slot).unwrap_or(MAX_SLOTS);
        if slot < MAX_SLOTS {
            if self.slots.len() <= slot {
                self.slots.resize(slot + 1, 0);
            }
            self.slots[slot] += 1;
        }
        if let Some(name) = frame
            .name()
            .filter(|name| RungNames::of_segment(name).is_some())
        {
            self.record_segment(name);
        }
    }

    fn record_segment(&mut self, name: Name) {
        if !self.by_segment.contains_key(&name) {
            if self.order.len() >= MAX_SEGMENTS
                && let Some(oldest) = self.order.pop_front()
            {
                self.by_segment.remove(&oldest);
            }
            self.order.push_back(name.clone());
        }
        let count = self.by_segment.entry(name).or_default();
        *count += 1;
        self.max_per_segment = self.max_per_segment.max(*count);
    }
}
