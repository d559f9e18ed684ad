//! The receiving half: Acks to send, and Sequences that were here before.

use std::collections::{BTreeSet, VecDeque};

use namecast_packet::LpPacket;
use namecast_units::Instant;

use super::ReliabilityConfig;

/// Fragments after a copy of one for which Acks are said again.
const WARY: u32 = 1_000;

/// Acknowledges what arrives.
#[derive(Debug)]
pub(super) struct Receiver {
    config: ReliabilityConfig,
    /// Acks that wait. A frame of Acks is sent when they fill it, which bounds this.
    acks: VecDeque<Ack>,
    /// Acks to say again when a frame leaves, with the newest ones last.
    said: VecDeque<Ack>,
    /// For how many more fragments Acks are said again.
    wary: u32,
    /// When those that wait are sent alone.
    acks_due: Option<Instant>,
    /// Sequences that arrived, with the times at which they did, in that order.
    arrived: VecDeque<(Instant, u64)>,
    /// The same, to find one.
    known: BTreeSet<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Ack {
    transmission: u64,
    /// How often it is still to be said.
    sayings: usize,
}

impl Receiver {
    pub(super) const fn new(config: ReliabilityConfig) -> Self {
        Self {
            config,
            acks: VecDeque::new(),
            said: VecDeque::new(),
            wary: 0,
            acks_due: None,
            arrived: VecDeque::new(),
            known: BTreeSet::new(),
        }
    }

    /// Notes that a packet is to be acknowledged; says whether it is new. One without fragment or TxSequence always is.
    pub(super) fn handle_packet(&mut self, now: Instant, packet: &LpPacket) -> bool {
        let Some((transmission, fragment)) = packet.tx_sequence.zip(packet.fragment.as_ref())
        else {
            return true;
        };
        let again = fragment.len().checked_div(self.config.octets_for_ack);
        self.acks.push_back(Ack {
            transmission,
            sayings: 1 + again.unwrap_or(0),
        });
        let due = now + self.config.ack_delay;
        self.acks_due.get_or_insert(due);
        let is_new = packet
            .sequence
            .is_none_or(|sequence| self.remember(now, sequence));
        // An Ack of the first one did not arrive, or came late.
        self.wary = match is_new {
            true => self.wary.saturating_sub(1),
            false => WARY,
        };
        is_new
    }

    /// Whether Acks are due, or fill a frame that takes `most`.
    pub(super) fn must_answer(&self, now: Instant, most: usize) -> bool {
        self.acks.len() >= most.max(1) || self.acks_due.is_some_and(|due| due <= now)
    }

    /// Takes at most so many Acks: the oldest of those that wait and, if there is room, before them the newest of those to say
    /// again.
    pub(super) fn take_acks(&mut self, most: usize) -> Vec<u64> {
        let new = self.acks.len().min(most);
        let again = self.said.len().min(most - new);
        let again = self.said.drain(self.said.len() - again..);
        let taken: Vec<Ack> = again.chain(self.acks.drain(..new)).collect();
        if self.acks.is_empty() {
            self.acks_due = None;
        }
        if self.wary > 0 {
            let left = taken.iter().filter(|ack| ack.sayings > 1);
            self.said.extend(left.map(|ack| Ack {
                sayings: ack.sayings - 1,
                ..*ack
            }));
            let excess = self.said.len().saturating_sub(self.config.max_acks_again);
            self.said.drain(..excess);
        }
        taken.iter().map(|ack| ack.transmission).collect()
    }

    /// When Acks are due.
    pub(super) const fn poll_timeout(&self) -> Option<Instant> {
        self.acks_due
    }

    /// Acks that wait and those to say again, Sequences that are remembered.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> (usize, usize, usize) {
        assert_eq!(self.arrived.len(), self.known.len());
        (self.acks.len(), self.said.len(), self.known.len())
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
