//! Link reliability: NDNLPv2 Ack and TxSequence, as in NFD's `LpReliability`.
//!
//! ```text
//!  piece ─▶ Sender ── TxSequence, Acks ──▶ link ──▶ Receiver ─▶ reassembly
//!              ▲ again if lost                         │ duplicates end here
//!              └───────────── Ack ◀── link ◀───────────┘ on other frames, or alone after a while
//! ```
//!
//! Every frame that carries a fragment has a TxSequence, new for each transmission, which the other end acknowledges. A
//! transmission is lost when Acks for some later ones have come, or when its time is up; then the fragment is sent again,
//! by itself. Both ends must do this. One that never heard a TxSequence or an Ack takes its peer for one that does not,
//! and sends nothing twice.
//!
//! A packet may carry any number of Acks. Where some are lost, those for large fragments are said again in the next few
//! frames, so that a burst of losses on the way back does not send again what has arrived.
//!
//! Differs from NFD: the timeout follows the link's round trip down to milliseconds, where NFD's is 200 ms at least; an Ack
//! that comes late still tells that the fragment arrived, and how long that took; Sequences are remembered for as long as
//! a retransmission may come, where NFD does so for one timeout.

mod receiver;
mod rtt;
mod sender;

use bytes::Bytes;
use namecast_packet::{LpPacket, MAX_PACKET_SIZE};
use namecast_units::Instant;

use crate::config::ReliabilityConfig;
use crate::counters::ReliabilityCounters;
use receiver::Receiver;
pub(crate) use rtt::RttEstimator;
use sender::Sender;

/// Octets of a TxSequence or an Ack: type (3), length (1), number (8).
const NUMBER_FIELD: usize = 12;
/// Octets of an LpPacket's own type and length, at most.
const LP_HEADER: usize = 4;

/// One face's link reliability, both halves.
#[derive(Debug)]
pub(crate) struct Reliability {
    /// Largest frame.
    mtu: usize,
    sender: Sender,
    receiver: Receiver,
    ack_frames: u64,
}

impl Reliability {
    /// For a link whose frames have at most `mtu` octets, if there is a bound.
    pub(crate) fn new(config: ReliabilityConfig, mtu: Option<usize>) -> Self {
        Self {
            mtu: mtu.unwrap_or(MAX_PACKET_SIZE),
            sender: Sender::new(config),
            receiver: Receiver::new(config),
            ack_frames: 0,
        }
    }

    /// Bounds the frames that are made from now on.
    pub(crate) const fn set_mtu(&mut self, mtu: Option<usize>) {
        self.mtu = match mtu {
            Some(mtu) => mtu,
            None => MAX_PACKET_SIZE,
        };
    }

    /// What a fragment's frame may have besides TxSequence, in octets, on a link whose frames have at most `mtu`.
    pub(crate) const fn room(mtu: usize) -> usize {
        mtu.saturating_sub(NUMBER_FIELD)
    }

    /// Makes a frame of a packet's fragment, which must have a Sequence, and keeps it until it is acknowledged.
    pub(crate) fn send(&mut self, now: Instant, piece: LpPacket) -> Bytes {
        let transmission = self.sender.send(now, piece);
        self.with_acks(transmission)
    }

    /// Takes note of a packet's Acks and TxSequence; says whether it is new, or was here before.
    pub(crate) fn handle_packet(&mut self, now: Instant, packet: &LpPacket) -> bool {
        if packet.tx_sequence.is_some() {
            self.sender.hear_peer();
        }
        self.sender.handle_acks(now, &packet.acks);
        self.receiver.handle_packet(now, packet)
    }

    /// Finds out what is lost by `now`. Early calls do nothing.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.sender.handle_timeout(now);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) and then [`poll_output`](Self::poll_output) next.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let times = [self.sender.poll_timeout(), self.receiver.poll_timeout()];
        times.into_iter().flatten().min()
    }

    /// The next frame to send now: a lost one, or Acks that waited long enough or fill a frame.
    pub(crate) fn poll_output(&mut self, now: Instant) -> Option<Bytes> {
        if let Some(transmission) = self.sender.retransmit(now) {
            return Some(self.with_acks(transmission));
        }
        let most = self.mtu.saturating_sub(LP_HEADER) / NUMBER_FIELD;
        if !self.receiver.must_answer(now, most) {
            return None;
        }
        self.ack_frames += 1;
        let packet = LpPacket {
            acks: self.receiver.take_acks(most),
            ..LpPacket::default()
        };
        Some(packet.encode_whole())
    }

    /// Packets given up since the last call.
    pub(crate) const fn take_given_up(&mut self) -> u64 {
        self.sender.take_given_up()
    }

    pub(crate) const fn counters(&self) -> ReliabilityCounters {
        ReliabilityCounters {
            ack_frames: self.ack_frames,
            ..self.sender.counters()
        }
    }

    /// The frame of a transmission, with as many Acks as it has room for.
    fn with_acks(&mut self, mut transmission: LpPacket) -> Bytes {
        let frame = transmission.encode_whole();
        // The packet's length may take two octets more.
        let room = self.mtu.saturating_sub(frame.len() + 2) / NUMBER_FIELD;
        transmission.acks = self.receiver.take_acks(room);
        match transmission.acks.is_empty() {
            true => frame,
            false => transmission.encode_whole(),
        }
    }
}

#[cfg(test)]
mod tests;
