//! What waits to be taken by the driver.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use namecast_units::Instant;

use super::Transmit;
use crate::counters::{DropReason, PacketKind};
use crate::face::FaceId;
use crate::fields::{LinkFields, Said};
use crate::table::Tables;

/// Packets to be sent, in the order in which they came about, and those that hops delay. Bounds are those of the faces.
#[derive(Debug, Default)]
pub(super) struct Output {
    ready: VecDeque<Transmit>,
    /// By when they are to be sent, and then in the order in which they came.
    delayed: BTreeMap<(Instant, u64), Transmit>,
    /// Packets that were ever delayed.
    count: u64,
}

/// What a packet is, where it came from, and where it goes.
pub(super) type Passage = (PacketKind, FaceId, FaceId);

impl Output {
    /// Adds a network packet, with what may be said to the face that it goes to. It waits until `at`, if that is not over.
    /// What cannot be sent is dropped and counted.
    #[inline]
    pub(super) fn send(
        &mut self,
        tables: &mut Tables,
        at: Option<Instant>,
        (kind, from, to): Passage,
        (wire, said): (Bytes, Said),
    ) {
        let Some(face) = tables.faces.get(to) else {
            return tables.count_drop(to, DropReason::UnknownFace);
        };
        let frame = LinkFields::frame(said, (kind, from), &face.config, wire);
        if let Err(reason) = tables.count_sent(to, kind, &frame) {
            return tables.count_drop(to, reason);
        }
        let transmit = Transmit { face: to, frame };
        match at {
            None => self.ready.push_back(transmit),
            Some(at) => {
                self.count += 1;
                self.delayed.insert((at, self.count), transmit);
            }
        }
    }

    /// Makes ready what was delayed until `now`.
    #[inline]
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if !self.delayed.is_empty() {
            self.release(now);
        }
    }

    #[cold]
    fn release(&mut self, now: Instant) {
        while let Some(first) = self.delayed.first_entry()
            && first.key().0 <= now
        {
            self.ready.push_back(first.remove());
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.delayed.first_key_value().map(|(&(at, _), _)| at)
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<Transmit> {
        self.ready.pop_front()
    }

    /// Forgets what was for a face.
    pub(super) fn remove_face(&mut self, face: FaceId) {
        self.ready.retain(|transmit| transmit.face != face);
        self.delayed.retain(|_, transmit| transmit.face != face);
    }
}
