//! Putting fragmented packets together again: NDNLPv2 indexed reassembly, bounded in number, octets and time.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use namecast_packet::{LpPacket, MAX_PACKET_SIZE};
use namecast_units::{ByteSize, Instant};

use crate::config::ReassemblyConfig;
use crate::counters::DropReason;

/// A packet of which fragments are missing.
#[derive(Debug)]
struct Partial {
    count: u64,
    /// What arrived, by index.
    pieces: BTreeMap<u64, Bytes>,
    /// The first fragment's header fields, which are the packet's.
    header: LpPacket,
    /// The highest of any fragment: a queue on the way may mark each.
    congestion_mark: u64,
    /// Octets of the packet so far.
    length: usize,
    /// Octets of the frames that the pieces keep in memory.
    held: ByteSize,
    deadline: Instant,
}

/// One face's incomplete packets.
#[derive(Debug)]
pub(crate) struct Reassembler {
    config: ReassemblyConfig,
    max_fragments: u64,
    /// By the Sequence of the packet's first fragment.
    partials: BTreeMap<u64, Partial>,
    held: ByteSize,
}

impl Reassembler {
    pub(crate) fn new(config: ReassemblyConfig, max_fragments: usize) -> Self {
        Self {
            config,
            max_fragments: max_fragments as u64,
            partials: BTreeMap::new(),
            held: ByteSize::ZERO,
        }
    }

    /// Takes a fragment that came in a frame of size `frame`; returns the packet if that makes it whole.
    ///
    /// `evicted` counts older packets that gave way.
    ///
    /// # Errors
    /// Why the fragment was of no use.
    pub(crate) fn handle_fragment(
        &mut self,
        now: Instant,
        mut packet: LpPacket,
        frame: ByteSize,
        evicted: &mut u64,
    ) -> Result<Option<LpPacket>, DropReason> {
        let count = packet.fragment_count.unwrap_or(1);
        let index = packet.fragment_index;
        let (Some(sequence), Some(piece)) = (packet.sequence, packet.fragment.take()) else {
            return Err(DropReason::BadFragment);
        };
        if index >= count || count > self.max_fragments {
            return Err(DropReason::BadFragment);
        }
        let key = sequence.wrapping_sub(index);
        let partial = self.partials.entry(key).or_insert_with(|| Partial {
            count,
            pieces: BTreeMap::new(),
            header: LpPacket::default(),
            congestion_mark: 0,
            length: 0,
            held: ByteSize::ZERO,
            deadline: now,
        });
        if partial.count != count {
            return Err(DropReason::BadFragment);
        }
        if partial.pieces.contains_key(&index) {
            return Err(DropReason::DuplicateFragment);
        }
        partial.length += piece.len();
        if partial.length > MAX_PACKET_SIZE {
            self.remove(key);
            return Err(DropReason::PacketTooLarge);
        }
        partial.congestion_mark = partial.congestion_mark.max(packet.congestion_mark);
        if index == 0 {
            partial.header = packet;
        }
        partial.pieces.insert(index, piece);
        partial.held += frame;
        partial.deadline = now + self.config.timeout;
        self.held += frame;
        if partial.pieces.len() as u64 == count {
            let whole = self.remove(key).expect("it was there a moment ago");
            return Ok(Some(whole.join()));
        }
        *evicted += self.make_room();
        Ok(None)
    }

    /// Gives up the packets whose time is over; returns how many.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> u64 {
        let mut expired = 0;
        while let Some((deadline, key)) = self.oldest() {
            if deadline > now {
                break;
            }
            self.remove(key);
            expired += 1;
        }
        expired
    }

    /// When the next incomplete packet is given up.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.oldest().map(|(deadline, _)| deadline)
    }

    fn make_room(&mut self) -> u64 {
        let mut evicted = 0;
        while self.partials.len() > self.config.max_packets || self.held > self.config.max_octets {
            let Some((_, key)) = self.oldest() else { break };
            self.remove(key);
            evicted += 1;
        }
        evicted
    }

    /// A scan, of at most as many packets as the configuration allows.
    fn oldest(&self) -> Option<(Instant, u64)> {
        self.partials
            .iter()
            .map(|(&key, partial)| (partial.deadline, key))
            .min()
    }

    fn remove(&mut self, key: u64) -> Option<Partial> {
        let partial = self.partials.remove(&key)?;
        self.held -= partial.held;
        Some(partial)
    }
}

impl Partial {
    /// The network packet, in memory of its own, with the first fragment's header fields.
    fn join(self) -> LpPacket {
        let mut whole = BytesMut::with_capacity(self.length);
        for piece in self.pieces.values() {
            whole.extend_from_slice(piece);
        }
        LpPacket {
            sequence: None,
            fragment_index: 0,
            fragment_count: None,
            congestion_mark: self.congestion_mark,
            fragment: Some(whole.freeze()),
            ..self.header
        }
    }
}

#[cfg(test)]
#[path = "reassembly_tests.rs"]
mod tests;
