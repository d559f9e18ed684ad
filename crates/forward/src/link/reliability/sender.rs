//! The sending half: what waits for an Ack, and what is lost.

use std::collections::{BTreeMap, VecDeque};

use namecast_packet::LpPacket;
use namecast_units::{ByteSize, Instant};

use super::rtt::RttEstimator;
use super::{ReliabilityConfig, ReliabilityCounters};

/// Sends fragments until they are acknowledged or hopeless.
#[derive(Debug)]
pub(super) struct Sender {
    config: ReliabilityConfig,
    rtt: RttEstimator,
    /// Fragments without Ack, by Sequence.
    fragments: BTreeMap<u64, Fragment>,
    /// Octets of them.
    held: ByteSize,
    /// Transmissions by TxSequence, which is consecutive: from the oldest one of a fragment without Ack on.
    transmissions: VecDeque<Transmission>,
    /// TxSequence of the first of them.
    first: u64,
    /// Place of the first of them that waits for its Ack.
    oldest_waiting: usize,
    /// Sequences of fragments to send again.
    lost: VecDeque<u64>,
    /// Whether the peer is known to acknowledge.
    peer_answers: bool,
    given_up: u64,
    counters: ReliabilityCounters,
}

/// A fragment that the peer may not have.
#[derive(Debug)]
struct Fragment {
    piece: LpPacket,
    retransmissions: u32,
}

/// A frame that was sent.
#[derive(Debug)]
struct Transmission {
    sequence: u64,
    sent_at: Instant,
    /// Acks that came for later ones.
    later_acks: u32,
    fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Waiting,
    Acknowledged,
    Lost,
}

impl Sender {
    pub(super) fn new(config: ReliabilityConfig) -> Self {
        Self {
            config,
            rtt: RttEstimator::default(),
            fragments: BTreeMap::new(),
            held: ByteSize::ZERO,
            transmissions: VecDeque::new(),
            first: 0,
            oldest_waiting: 0,
            lost: VecDeque::new(),
            peer_answers: false,
            given_up: 0,
            counters: ReliabilityCounters::default(),
        }
    }

    /// The peer acknowledges, as is seen by what it sent.
    pub(super) const fn hear_peer(&mut self) {
        self.peer_answers = true;
    }

    /// Numbers the first transmission of a fragment.
    pub(super) fn send(&mut self, now: Instant, piece: LpPacket) -> LpPacket {
        self.held += size(&piece);
        let fragment = Fragment {
            piece: piece.clone(),
            retransmissions: 0,
        };
        self.fragments.insert(sequence(&piece), fragment);
        self.transmit(now, piece)
    }

    /// The next transmission of a fragment that is lost.
    pub(super) fn retransmit(&mut self, now: Instant) -> Option<LpPacket> {
        let fragments = &mut self.fragments;
        let piece = core::iter::from_fn(|| self.lost.pop_front()).find_map(|sequence| {
            let fragment = fragments.get_mut(&sequence)?;
            fragment.retransmissions += 1;
            Some(fragment.piece.clone())
        })?;
        self.counters.retransmitted += 1;
        Some(self.transmit(now, piece))
    }

    /// Takes a packet's Acks. Those that were here before, or for nothing that was sent, tell nothing.
    pub(super) fn handle_acks(&mut self, now: Instant, acks: &[u64]) {
        self.peer_answers |= !acks.is_empty();
        let places = acks.iter().filter_map(|&ack| self.acknowledge(ack));
        let mut learnt: Vec<usize> = places.collect();
        learnt.sort_unstable();
        let Some(&newest) = learnt.last() else {
            return;
        };
        // The others may have been said before, in frames that were lost: RFC 9002, section 5.1.
        self.rtt
            .on_ack(now.since(self.transmissions[newest].sent_at));
        for earlier in self.oldest_waiting..newest {
            let later = learnt.len() - learnt.partition_point(|&place| place <= earlier);
            let transmission = &mut self.transmissions[earlier];
            transmission.later_acks += later as u32;
            if transmission.later_acks >= self.config.loss_threshold {
                self.lose(earlier);
            }
        }
        self.forget_past();
    }

    /// Notes that a transmission arrived; its place, if that is news.
    fn acknowledge(&mut self, tx_sequence: u64) -> Option<usize> {
        let place = usize::try_from(tx_sequence.wrapping_sub(self.first)).ok()?;
        let transmission = self.transmissions.get_mut(place)?;
        if transmission.fate == Fate::Acknowledged {
            return None;
        }
        transmission.fate = Fate::Acknowledged;
        let sequence = transmission.sequence;
        self.counters.acknowledged += u64::from(self.remove(sequence));
        Some(place)
    }

    /// Finds those whose time is up.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        let timeout = self.rtt.timeout(&self.config);
        let mut is_silent = false;
        while let Some(oldest) = self.transmissions.get(self.oldest_waiting)
            && oldest.sent_at + timeout <= now
        {
            is_silent = true;
            self.lose(self.oldest_waiting);
            self.forget_past();
        }
        if is_silent {
            self.rtt.on_timeout();
            // The peer is gone, or was replaced by one that does not acknowledge.
            self.peer_answers &= self.rtt.timeouts() <= self.config.max_retransmissions;
        }
    }

    /// When the next one's time is up.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let oldest = self.transmissions.get(self.oldest_waiting)?;
        Some(oldest.sent_at + self.rtt.timeout(&self.config))
    }

    /// Packets given up since the last call.
    pub(super) const fn take_given_up(&mut self) -> u64 {
        core::mem::replace(&mut self.given_up, 0)
    }

    pub(super) const fn counters(&self) -> ReliabilityCounters {
        self.counters
    }

    /// Fragments without Ack, transmissions that are remembered, octets held.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> (usize, usize, ByteSize) {
        (self.fragments.len(), self.transmissions.len(), self.held)
    }

    fn transmit(&mut self, now: Instant, mut piece: LpPacket) -> LpPacket {
        let place = self.transmissions.len() as u64;
        piece.tx_sequence = Some(self.first.wrapping_add(place));
        self.transmissions.push_back(Transmission {
            sequence: sequence(&piece),
            sent_at: now,
            later_acks: 0,
            fate: Fate::Waiting,
        });
        while self.transmissions.len() > self.config.max_frames
            || self.held > self.config.max_octets
        {
            // The oldest transmission is always one of a fragment without Ack.
            let Some(oldest) = self.transmissions.front() else {
                break;
            };
            self.remove_packet(oldest.sequence);
            self.counters.unwatched += 1;
            self.forget_past();
        }
        piece
    }

    /// Sends the fragment of a transmission again, unless that is of no use.
    fn lose(&mut self, place: usize) {
        let transmission = &mut self.transmissions[place];
        if transmission.fate != Fate::Waiting {
            return;
        }
        transmission.fate = Fate::Lost;
        let sequence = transmission.sequence;
        let Some(fragment) = self.fragments.get(&sequence) else {
            return;
        };
        if !self.peer_answers {
            self.counters.unwatched += 1;
            self.remove_packet(sequence);
        } else if fragment.retransmissions >= self.config.max_retransmissions {
            self.given_up += 1;
            self.remove_packet(sequence);
        } else {
            self.lost.push_back(sequence);
        }
    }

    /// Removes a fragment and the others of its packet, which are of no use without it.
    fn remove_packet(&mut self, sequence: u64) {
        let Some(fragment) = self.fragments.get(&sequence) else {
            return;
        };
        let first = sequence.wrapping_sub(fragment.piece.fragment_index);
        for index in 0..fragment.piece.fragment_count.unwrap_or(1) {
            self.remove(first.wrapping_add(index));
        }
    }

    fn remove(&mut self, sequence: u64) -> bool {
        let removed = self.fragments.remove(&sequence);
        if let Some(fragment) = &removed {
            self.held -= size(&fragment.piece);
        }
        removed.is_some()
    }

    /// Drops transmissions at the front whose fragments are done with, and finds the first that waits.
    fn forget_past(&mut self) {
        let fragments = &self.fragments;
        while self
            .transmissions
            .pop_front_if(|oldest| !fragments.contains_key(&oldest.sequence))
            .is_some()
        {
            self.first = self.first.wrapping_add(1);
            self.oldest_waiting = self.oldest_waiting.saturating_sub(1);
        }
        while let Some(next) = self.transmissions.get(self.oldest_waiting)
            && !(next.fate == Fate::Waiting && fragments.contains_key(&next.sequence))
        {
            self.oldest_waiting += 1;
        }
    }
}

fn sequence(piece: &LpPacket) -> u64 {
    piece
        .sequence
        .expect("fragments are numbered when they are cut")
}

/// Octets that a fragment keeps in memory.
fn size(piece: &LpPacket) -> ByteSize {
    piece
        .fragment
        .as_ref()
        .map_or(ByteSize::ZERO, |fragment| ByteSize::of(fragment))
}
