//! Brings packets of two pipes into the order of their times.

use std::collections::{BTreeMap, VecDeque};

use super::demuxer::Packet;

/// Most packets that wait, and most octets of them.
const MAX_WAITING: usize = 256;
const MAX_OCTETS: usize = 8 << 20;

/// Packets of streams that come by pipes of their own. Of those that are here, the one that is decoded first is the next: a pipe of sound
/// holds seconds, and whichever thread was quicker would put one stream so far behind the other that both count as late.
#[derive(Debug, Default)]
pub(super) struct Merge {
    streams: BTreeMap<usize, VecDeque<Packet>>,
    waiting: usize,
    octets: usize,
    /// Whether one of the streams was waited for in vain since it last came.
    has_given_up: bool,
}

/// Streams that are merged: pictures and sound.
const STREAMS: usize = 2;

impl Merge {
    const fn has_room(&self) -> bool {
        self.waiting < MAX_WAITING && self.octets < MAX_OCTETS
    }

    /// Takes packets as long as there is room.
    pub(super) fn fill(&mut self, mut packets: impl Iterator<Item = Packet>) {
        while self.has_room()
            && let Some(packet) = packets.next()
        {
            self.push(packet);
        }
    }

    /// Returns whether a stream is behind, and is worth waiting for.
    pub(super) fn lacks_one(&self) -> bool {
        !self.has_given_up && self.has_room() && self.streams_here() < STREAMS
    }

    fn streams_here(&self) -> usize {
        self.streams.values().filter(|it| !it.is_empty()).count()
    }

    /// Waits no longer for the stream that is behind, until it comes.
    pub(super) const fn give_up(&mut self) {
        self.has_given_up = true;
    }

    pub(super) fn push(&mut self, packet: Packet) {
        self.waiting += 1;
        self.octets += packet.payload.len();
        let stream = self.streams.entry(packet.stream).or_default();
        stream.push_back(packet);
        self.has_given_up &= self.streams_here() < STREAMS;
    }

    /// Returns the packet that is decoded first. Those of one stream keep their order.
    pub(super) fn pop(&mut self) -> Option<Packet> {
        let fronts = self.streams.values_mut();
        let fronts = fronts.filter(|packets| !packets.is_empty());
        let first = fronts.min_by_key(|packets| packets.front().map(|packet| packet.dts))?;
        let packet = first.pop_front()?;
        self.waiting -= 1;
        self.octets -= packet.payload.len();
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(stream: usize, dts: u64) -> Packet {
        Packet {
            stream,
            dts,
            ..Packet::default()
        }
    }

    /// All pictures come before any sound; a time that goes back does not change the order within the sound.
    #[test]
    fn streams_are_interleaved_by_their_times() {
        let mut merge = Merge::default();
        for dts in [0, 40, 80] {
            merge.push(packet(0, dts));
        }
        for dts in [0, 60, 50, 90] {
            merge.push(packet(1, dts));
        }
        let found = core::iter::from_fn(|| merge.pop());
        let found: Vec<_> = found.map(|it| (it.stream, it.dts)).collect();
        let expected = [(0, 0), (1, 0), (0, 40), (1, 60), (1, 50), (0, 80), (1, 90)];
        assert_eq!(found, expected);
        assert_eq!((merge.waiting, merge.octets), (0, 0));
    }

    /// Sound is behind, and waited for once: then not until it has come again.
    #[test]
    fn a_stream_that_is_behind_is_waited_for_once() {
        let mut merge = Merge::default();
        merge.push(packet(0, 0));
        assert!(merge.lacks_one());
        merge.give_up();
        assert!(merge.pop().is_some());
        merge.push(packet(0, 0));
        assert!(!merge.lacks_one());
        merge.push(packet(1, 20));
        assert!(!merge.lacks_one());
        assert_eq!(
            [0, 20].map(|_| merge.pop().map(|it| it.dts)),
            [Some(0), Some(20)]
        );
        assert!(merge.lacks_one());
        (1..=MAX_WAITING as u64).for_each(|number| merge.push(packet(0, number * 40)));
        assert!(!merge.lacks_one());
    }

    #[test]
    fn waiting_packets_are_bounded() {
        let mut merge = Merge::default();
        (0..MAX_WAITING as u64).for_each(|dts| merge.push(packet(0, dts)));
        assert!(!merge.has_room());
        merge.pop();
        assert!(merge.has_room());
    }
}
