//! Frames that wait until the link takes them, and the marks that they get for it.

use core::time::Duration;
use std::collections::VecDeque;

use bytes::Bytes;
use namecast_packet::LpPacket;
use namecast_units::{ByteSize, Instant};
use smart_default::SmartDefault;

use super::{CongestionMarker, CongestionMarking, SojournMarker};

/// Bounds of a link's send queue, and when its frames are marked.
///
/// The default has no bounds and no marks, for drivers whose link takes every frame at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SmartDefault)]
pub struct SendQueueConfig {
    /// Most frames that wait; packets beyond are dropped, the newest first.
    #[default(usize::MAX)]
    pub max_frames: usize,
    /// Most octets that wait.
    #[default(ByteSize::bytes(u64::MAX))]
    pub max_size: ByteSize,
    /// When packets are marked; `None`: not until marks are turned on.
    pub marking: Option<CongestionMarking>,
}

/// A frame that waits.
#[derive(Debug)]
struct Waiting {
    frame: Bytes,
    since: Instant,
    /// Whether it was taken before, and so marked or not.
    is_judged: bool,
}

/// The frames that wait for one link, in order.
#[derive(Debug)]
pub(super) struct SendQueue {
    max_frames: usize,
    max_size: ByteSize,
    waiting: VecDeque<Waiting>,
    size: ByteSize,
    marker: CongestionMarker,
    sojourn: SojournMarker,
    marked: u64,
}

impl SendQueue {
    pub(super) fn new(config: SendQueueConfig) -> Self {
        let marker = CongestionMarker::new(config.marking);
        Self {
            max_frames: config.max_frames,
            max_size: config.max_size,
            waiting: VecDeque::new(),
            size: ByteSize::ZERO,
            sojourn: SojournMarker::new(marker.rule.interval),
            marker,
            marked: 0,
        }
    }

    /// Returns whether so many frames of so many octets together fit in.
    pub(super) fn has_room(&self, frames: usize, size: ByteSize) -> bool {
        let free = self.max_frames.saturating_sub(self.waiting.len());
        frames <= free && self.size + size <= self.max_size
    }

    /// Appends a frame, marked if the queue before it has been too long for too long.
    pub(super) fn push(&mut self, now: Instant, frame: Bytes) {
        let is_congested = self.marker.marks(now, self.size);
        let frame = self.marked_if(is_congested, frame);
        self.size += ByteSize::of(&frame);
        self.waiting.push_back(Waiting {
            frame,
            since: now,
            is_judged: false,
        });
    }

    /// Takes the next frame if it has no more than `room` octets, marked if it has waited for too long.
    pub(super) fn pop(&mut self, now: Instant, room: ByteSize) -> Option<Bytes> {
        let size = ByteSize::of(&self.waiting.front()?.frame);
        if size > room {
            return None;
        }
        let Waiting {
            frame,
            since,
            is_judged,
        } = self.waiting.pop_front()?;
        self.size -= size;
        let (law, sizes) = (self.marker.rule.law, (frame.len(), self.size.as_bytes()));
        let is_judging = self.marker.is_on && !is_judged;
        let is_late = is_judging && self.sojourn.marks(law, (now, since), sizes);
        Some(self.marked_if(is_late, frame))
    }

    /// Puts back frames that the link did not take after all, in front of the others. They are not marked when they are taken
    /// again.
    pub(super) fn put_back(
        &mut self,
        now: Instant,
        frames: impl DoubleEndedIterator<Item = Bytes>,
    ) {
        for frame in frames.rev() {
            self.size += ByteSize::of(&frame);
            self.waiting.push_front(Waiting {
                frame,
                since: now,
                is_judged: true,
            });
        }
    }

    pub(super) const fn size(&self) -> ByteSize {
        self.size
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns since when the next frame has waited.
    pub(super) fn waits_since(&self) -> Option<Instant> {
        self.waiting.front().map(|next| next.since)
    }

    /// Returns for how long the next frame has waited.
    pub(super) fn delay(&self, now: Instant) -> Duration {
        self.waits_since()
            .map_or(Duration::ZERO, |since| now.since(since))
    }

    pub(super) const fn marked(&self) -> u64 {
        self.marked
    }

    pub(super) const fn marker(&self) -> &CongestionMarker {
        &self.marker
    }

    pub(super) const fn marker_mut(&mut self) -> &mut CongestionMarker {
        &mut self.marker
    }

    fn marked_if(&mut self, is_marked: bool, frame: Bytes) -> Bytes {
        if !is_marked {
            return frame;
        }
        self.marked += 1;
        LpPacket::marked(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::CongestionLaw;

    /// A frame each millisecond that leaves after ten, each taken twice: the marks are those of RFC 8289 for frames that are taken
    /// once, at 110 ms and then 100/√1, 100/√2 and 100/√3 ms later.
    #[test]
    fn a_frame_that_was_put_back_is_judged_once() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let any = ByteSize::bytes(u64::MAX);
        let mut queue = SendQueue::new(SendQueueConfig {
            marking: Some(CongestionMarking {
                law: CongestionLaw::CoDel,
                ..CongestionMarking::default()
            }),
            ..SendQueueConfig::default()
        });
        let packet = LpPacket::carrying(Bytes::from(vec![0; 1_000])).encode();
        let mut marked = Vec::new();
        for millis in 0..350 {
            queue.push(at(millis), packet.clone());
            if millis < 10 {
                continue;
            }
            let before = queue.marked();
            let taken = queue.pop(at(millis), any);
            queue.put_back(at(millis), taken.into_iter());
            assert!(queue.pop(at(millis), any).is_some());
            marked.extend((queue.marked() > before).then_some(millis));
        }
        assert_eq!(marked, [110, 210, 281, 339]);
    }
}
