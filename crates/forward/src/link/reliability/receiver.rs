//! The receiving half: Acks to send, and Sequences that were here before.

use std::collections::{BTreeSet, VecDeque};

use namecast_packet::LpPacket;
use namecast_units::Instant;

use super::ReliabilityConfig;

/// Acknowledges what arrives.
#[derive(Debug)]
pub(super) struct Receiver {
    config: ReliabilityConfig,
    /// TxSequences to acknowledge. A frame of Acks is sent when they fill it, which bounds this.
    acks: VecDeque<u64>,
    /// When those that wait are sent alone.
    acks_due: Option<Instant>,
    /// Sequences that arrived, with the times at which they did, in that order.
    arrived: VecDeque<(Instant, u64)>,
    /// The same, to find one.
    known: BTreeSet<u64>,
}

impl Receiver {
    pub(super) const fn new(config: ReliabilityConfig) -> Self {
        Self {
            config,
            acks: VecDeque::new(),
            acks_due: None,
            arrived: VecDeque::new(),
            known: BTreeSet::new(),
        }
    }

    /// Notes that a packet is to be acknowledged; says whether it is new. One without fragment or TxSequence always is.
    pub(super) fn handle_packet(&mut self, now: Instant, packet: &LpPacket) -> bool {
        let Some(transmission) = packet.tx_sequence.filter(|_| packet.fragment.is_some()) else {
            return true;
        };
        self.acks.push_back(transmission);
        let due = now + self.config.ack_delay;
        self.acks_due.get_or_insert(due);
        packet
            .sequence
            .is_none_or(|sequence| self.remember(now, sequence))
    }

    /// Whether Acks are due, or fill a frame that takes `most`.
    pub(super) fn must_answer(&self, now: Instant, most: usize) -> bool {
        self.acks.len() >= most.max(1) || self.acks_due.is_some_and(|due| due <= now)
    }

    /// Takes at most so many Acks, the oldest ones.
    pub(super) fn take_acks(&mut self, most: usize) -> Vec<u64> {
        let taken = self.acks.drain(..most.min(self.acks.len())).collect();
        if self.acks.is_empty() {
            self.acks_due = None;
        }
        taken
    }

    /// When Acks are due.
    pub(super) const fn poll_timeout(&self) -> Option<Instant> {
        self.acks_due
    }

    /// Acks that wait, Sequences that are remembered.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> (usize, usize) {
        assert_eq!(self.arrived.len(), self.known.len());
        (self.acks.len(), self.known.len())
    }

    /// Remembers a Sequence; says whether it is new.
    fn remember(&mut self, now: Instant, sequence: u64) -> bool {
        let lifetime = self.config.lifetime();
        while let Some(&(at, oldest)) = self.arrived.front()
            && (at + lifetime < now || self.arrived.len() >= self.config.max_frames.max(1))
        {
            self.arrived.pop_front();
            self.known.remove(&oldest);
        }
        let is_new = self.known.insert(sequence);
        if is_new {
            self.arrived.push_back((now, sequence));
        }
        is_new
    }
}
