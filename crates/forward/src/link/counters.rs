//! What a link counts.

use bytes::Bytes;
use derive_more::AddAssign;
use namecast_units::ByteSize;

use crate::counters::{Counters, DropReason, Drops, FaceCounters, ReliabilityCounters, Traffic};

/// Frames in one direction.
#[derive(AddAssign, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameCount {
    /// How many.
    pub frames: u64,
    /// Octets of all.
    pub octets: ByteSize,
}

impl FrameCount {
    pub(super) fn add(&mut self, frame: &Bytes) {
        self.frames += 1;
        self.octets += ByteSize::of(frame);
    }

    fn merge_into(self, traffic: &mut Traffic) {
        traffic.frames += self.frames;
        traffic.octets += self.octets;
    }
}

/// What a link has done.
#[derive(AddAssign, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Frames that it took.
    pub received: FrameCount,
    /// Frames that it made: fragments, numbered ones, and those that carry Acks only. Packets that pass as they are do not count.
    pub sent: FrameCount,
    /// Frames that it marked.
    pub marked: u64,
    /// Packets, or frames of its own, that found no room in the send queue.
    pub queue_full: u64,
    /// Packets that it dropped otherwise, on the way in or out.
    pub drops: Drops,
    /// Link reliability, if the link has it.
    pub reliability: ReliabilityCounters,
}

impl LinkCounters {
    /// Adds what the link did to what a forwarder has seen of its face.
    pub fn merge_into_face(&self, face: &mut FaceCounters) {
        self.received.merge_into(&mut face.incoming);
        self.sent.merge_into(&mut face.outgoing);
        self.merge_drops_into(&mut face.drops);
        face.reliability = self.reliability;
    }

    /// Adds what the link did to what the whole node has seen.
    pub fn merge_into_node(&self, node: &mut Counters) {
        self.received.merge_into(&mut node.incoming);
        self.sent.merge_into(&mut node.outgoing);
        self.merge_drops_into(&mut node.drops);
    }

    fn merge_drops_into(&self, drops: &mut Drops) {
        *drops += self.drops;
        drops.add_many(DropReason::OutputQueueFull, self.queue_full);
    }
}
