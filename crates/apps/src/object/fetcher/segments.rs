//! The segments of one version: which are here, and which are requested.

use std::collections::{BTreeMap, BTreeSet};

use bytes::{Bytes, BytesMut};
use namecast_packet::lp::NackReason;
use namecast_packet::{Component, Data, Name};
use namecast_units::ByteSize;

use super::config::Failure;

/// Segments are larger on average, or there are too many: memory for each is more than its content.
const MIN_MEAN_SEGMENT: u64 = 500;

/// The segments of one version. What is not verified must not come here.
#[derive(Debug)]
pub(super) struct Segments {
    name: Name,
    last: u64,
    max_size: ByteSize,
    parts: BTreeMap<u64, Bytes>,
    size: u64,
    /// Segments requested that are missing, and how often they were requested in vain.
    wanted: BTreeMap<u64, u32>,
    /// Of those, the ones whose Interests are out.
    out: BTreeSet<u64>,
    /// The first one not requested yet.
    next: u64,
    /// Octets of the packet that came last, which others are taken to have.
    packet_size: ByteSize,
}

impl Segments {
    /// Those of the version that `data` is of, which announces the last one. Whatever it announces takes no memory.
    pub(super) fn begin(data: &Data, max_size: ByteSize) -> Result<Self, Failure> {
        let number = data
            .name()
            .last()
            .and_then(|it| it.number_of(Component::SEGMENT));
        let (Some(number), Some(last)) = (number, last_of(data)) else {
            return Err(Failure::Malformed);
        };
        if last > max_size.as_bytes() / MIN_MEAN_SEGMENT {
            return Err(Failure::TooLarge(max_size));
        }
        let mut segments = Self {
            name: data.name().parent().detached(),
            last,
            max_size,
            parts: BTreeMap::new(),
            size: 0,
            wanted: BTreeMap::new(),
            out: BTreeSet::new(),
            next: 0,
            packet_size: ByteSize::ZERO,
        };
        segments.take(number, data)?;
        Ok(segments)
    }

    /// Keeps segment `number`.
    pub(super) fn take(&mut self, number: u64, data: &Data) -> Result<(), Failure> {
        let is_consistent = last_of(data).is_none_or(|last| last == self.last);
        if number > self.last || !is_consistent {
            return Err(Failure::Malformed);
        }
        let content = data.content().unwrap_or_default();
        self.size += content.len() as u64;
        if self.size > self.max_size.as_bytes() {
            return Err(Failure::TooLarge(self.max_size));
        }
        self.packet_size = ByteSize::of(data.wire());
        self.wanted.remove(&number);
        self.parts.insert(number, content);
        Ok(())
    }

    /// The next segment to request, unless `max_wanted` are requested and missing.
    pub(super) fn next(&mut self, max_wanted: usize) -> Option<u64> {
        while self.parts.contains_key(&self.next) {
            self.next += 1;
        }
        let number = self.next;
        if number > self.last || self.wanted.len() >= max_wanted {
            return None;
        }
        self.next += 1;
        self.wanted.insert(number, 0);
        Some(number)
    }

    /// Records that segment `number` was requested in vain. Returns how often; `None` if it is not missing.
    pub(super) fn on_vain(&mut self, number: u64) -> Option<u32> {
        let in_vain = self.wanted.get_mut(&number)?;
        *in_vain += 1;
        Some(*in_vain)
    }

    /// Records whether an Interest for segment `number` is out.
    pub(super) fn set_out(&mut self, number: u64, is_out: bool) {
        if is_out {
            self.out.insert(number);
        } else {
            self.out.remove(&number);
        }
    }

    /// The first segment that is missing and whose Interest is out.
    pub(super) fn first_out(&self) -> Option<u64> {
        self.out.iter().copied().find(|it| self.is_wanted(*it))
    }

    /// Whether segment `number` is requested and missing.
    pub(super) fn is_wanted(&self, number: u64) -> bool {
        self.wanted.contains_key(&number)
    }

    /// Segments that are here, and segments of the object.
    pub(super) fn progress(&self) -> (u64, u64) {
        (self.parts.len() as u64, self.last + 1)
    }

    /// Content of the segments that are here, in octets.
    pub(super) const fn size(&self) -> u64 {
        self.size
    }

    /// Name of the object with the version.
    pub(super) const fn name(&self) -> &Name {
        &self.name
    }

    /// What a packet is taken to have.
    pub(super) const fn packet_size(&self) -> ByteSize {
        self.packet_size
    }

    /// The content of all segments that are here.
    pub(super) fn content(&self) -> Bytes {
        let mut content = BytesMut::with_capacity(self.parts.values().map(Bytes::len).sum());
        let parts = self.parts.values();
        parts.for_each(|part| content.extend_from_slice(part));
        content.freeze()
    }
}

/// Why the last Interest for a segment was in vain.
#[derive(Clone, Copy, Debug)]
pub(super) enum Vain {
    Lost,
    /// Nothing comes any more.
    Silence,
    /// Its Data is not what was signed, and came from this face of the node.
    Forged(Option<u64>),
    Nacked(NackReason),
}

impl Vain {
    /// What to report if that was so too often.
    pub(super) const fn failure(self) -> Failure {
        match self {
            Self::Lost | Self::Silence => Failure::Unanswered,
            Self::Forged(_) => Failure::BadSignature,
            Self::Nacked(reason) => Failure::Refused(reason),
        }
    }
}

/// The number of the last segment, as `data` announces it.
fn last_of(data: &Data) -> Option<u64> {
    data.final_block()?.last()?.number_of(Component::SEGMENT)
}
