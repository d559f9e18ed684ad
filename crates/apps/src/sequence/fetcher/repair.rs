//! What is missing of a flow that ends: from neighbours who have it, and from its provider.
//!
//! ```text
//!  any next Data ──▶ which numbers have come ──▶ holes ─┬─ in chunks that neighbours have ──▶ window of the neighbours
//!                         │                             └─ once it has ended, or inline ────▶ window of the own path
//!                         └─▶ chunks that are whole ──▶ ChunksHad, which neighbours hear
//! ```
//!
//! After \[SAID\]. A number is out on one path at a time. An Interest goes to a neighbour that has announced its chunk, by the node's
//! hop `any-next`; one for the own path leaves with the word to avoid the face from which neighbours answer.

use std::collections::VecDeque;

use bytes::Bytes;
use namecast_packet::Name;
use namecast_stream::path::{AnyNext, RepairWindow};
use namecast_units::{Bitrate, ByteSize, Duration, Instant};

use crate::neighbours::Neighbours;

/// Numbers before the newest that may come yet, overtaken.
const OVERTAKEN: u64 = 2;
/// Silence after which a flow of any next Data has ended, though its last number has not come.
const SILENCE: Duration = Duration::from_secs(1);
/// Content that is played once that much of it is here.
const START: Duration = Duration::from_secs(1);

/// How what is missing is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// It is not: any Data are of use, until there are enough. The provider sends parity without end.
    Coded,
    /// From the provider, once the flow has ended.
    AtEnd,
    /// From the provider, as soon as it is missing.
    Inline,
    /// From neighbours as soon as it is missing and they have it, and from the provider once the flow has ended.
    FromPeers,
}

/// The end of a flow, and what is missing by then.
#[derive(Clone, Copy, Debug)]
pub struct Ending {
    /// Numbers of the flow, or with [`Repair::Coded`] how many are enough.
    pub count: u64,
    /// How the rest is requested.
    pub repair: Repair,
    /// Numbers in a chunk.
    pub chunk_size: u32,
    /// Rate of content at which it is played.
    pub playout: Bitrate,
}

/// What became of a flow that ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Time from the start until everything had come.
    pub completed_after: Option<Duration>,
    /// Time that who plays it waits: until the first second is here, and where later content is not here in time.
    pub stalled: Duration,
    /// Numbers that came as repair.
    pub repaired: u64,
    /// Of those, from neighbours.
    pub from_peers: u64,
}

/// What to do.
#[derive(Debug)]
pub(super) enum RepairOutput {
    /// Request a number; not from that face.
    Request(u64, Option<u64>),
    /// Send a frame.
    Frame(Bytes),
}

/// Requests what is missing.
#[derive(Debug)]
pub(super) struct Repairs {
    ending: Ending,
    own: RepairWindow,
    neighbours: Neighbours,
    /// Face from which neighbours answer.
    peer_face: Option<u64>,
    started_at: Instant,
    heard_at: Option<Instant>,
    /// Numbers before this one are here.
    front: u64,
    has_started: bool,
    settled_at: Instant,
    ended: Ended,
    outputs: VecDeque<RepairOutput>,
}

impl Repairs {
    pub(super) fn new(now: Instant, flow: Name, ending: Ending) -> Self {
        Self {
            own: RepairWindow::default(),
            neighbours: Neighbours::new(flow, ending.count, ending.chunk_size),
            ending,
            peer_face: None,
            started_at: now,
            heard_at: None,
            front: 0,
            has_started: false,
            settled_at: now,
            ended: Ended::default(),
            outputs: VecDeque::new(),
        }
    }

    pub(super) const fn ended(&self) -> &Ended {
        &self.ended
    }

    fn takes_from_peers(&self) -> bool {
        self.ending.repair == Repair::FromPeers
    }

    /// Takes the chunks that neighbours have.
    pub(super) fn on_announcement(&mut self, now: Instant, value: &[u8]) {
        if self.takes_from_peers() {
            self.neighbours.on_announcement(now, value);
        }
    }

    /// Takes Data for `number`. `any_next`: it answers a request for any next ones. Returns whether it was requested by name.
    pub(super) fn on_data(
        &mut self,
        now: Instant,
        number: u64,
        (is_marked, face): (bool, Option<u64>),
        any_next: bool,
    ) -> bool {
        if any_next {
            self.heard_at = Some(now);
        }
        let is_own = self.own.on_data(now, number, is_marked);
        let is_of_peers = self.neighbours.on_data(now, number, is_marked);
        if is_of_peers && !any_next {
            self.peer_face = face;
            self.ended.from_peers += 1;
        }
        self.ended.repaired += u64::from(!any_next && (is_own || is_of_peers));
        is_own || is_of_peers
    }

    pub(super) fn on_nack(&mut self, now: Instant, number: u64) -> bool {
        self.neighbours.on_nack(now, number) | self.own.on_nack(now, number)
    }

    /// Takes a number that is here now, whoever brought it.
    pub(super) fn on_number(&mut self, number: u64, any_next: &AnyNext) {
        if self.takes_from_peers() {
            let missing = |from, end| any_next.next_missing(from, end);
            self.neighbours.on_number(number, missing);
        }
    }

    /// Does what is due after every event. `size`: content of a packet.
    pub(super) fn settle(&mut self, now: Instant, any_next: &AnyNext, size: ByteSize) {
        self.settled_at = now;
        if self.ended.completed_after.is_none() {
            self.play(now, any_next, size);
        }
        self.own.take_lost(now);
        self.neighbours.handle_timeout(now);
        if self.ended.completed_after.is_none() && self.ending.repair != Repair::Coded {
            self.request(now, any_next);
        }
        let announcement = self.neighbours.poll_announcement(now);
        self.outputs.extend(announcement.map(RepairOutput::Frame));
    }

    /// Takes whether all numbers have come that were requested one after the other.
    pub(super) fn end_numbered(&mut self, now: Instant, has_all: bool) {
        if has_all && self.ended.completed_after.is_none() {
            self.ended.completed_after = Some(now.since(self.started_at));
        }
    }

    /// Follows what could be played.
    fn play(&mut self, now: Instant, any_next: &AnyNext, size: ByteSize) {
        let count = self.ending.count;
        let since = now.since(self.started_at);
        let time_of = |number: u64| {
            let octets = size.as_bytes().saturating_mul(number);
            ByteSize::bytes(octets) / self.ending.playout
        };
        let front = any_next.next_missing(self.front, count).unwrap_or(count);
        let is_complete = match self.ending.repair {
            Repair::Coded => any_next.received() >= count,
            _ => front >= count,
        };
        if front > self.front {
            // What came was due when the content before it had been played.
            let late = since.saturating_sub(time_of(self.front));
            self.ended.stalled = self.ended.stalled.max(late);
            self.front = front;
        }
        if !self.has_started && (time_of(front) >= START || is_complete) {
            self.has_started = true;
            self.ended.stalled = self.ended.stalled.max(since);
        }
        if is_complete {
            self.ended.completed_after = Some(since);
        }
    }

    fn has_ended(&self, now: Instant, any_next: &AnyNext) -> bool {
        let is_silent = self.heard_at.is_some_and(|at| now.since(at) >= SILENCE);
        is_silent || any_next.is_done()
    }

    fn request(&mut self, now: Instant, any_next: &AnyNext) {
        let has_ended = self.has_ended(now, any_next);
        let end = match has_ended {
            true => self.ending.count,
            false => any_next.newest().saturating_sub(1 + OVERTAKEN),
        };
        let first = |from: u64| any_next.next_missing(from, end);
        let mut from = self.front;
        let (neighbours, own) = (&mut self.neighbours, &self.own);
        while let Some(number) = neighbours.poll_request(now, &mut from, first, |it| own.is_out(it))
        {
            self.outputs.push_back(RepairOutput::Request(number, None));
        }
        let takes_all = has_ended || self.ending.repair == Repair::Inline;
        let mut from = self.front;
        while self.own.has_room() {
            let number = match takes_all {
                true => first(from),
                false => self.neighbours.next_unanswered(from),
            };
            let Some(number) = number else {
                break;
            };
            from = number + 1;
            if !self.is_out(number) {
                self.own.on_sent(now, number);
                self.outputs
                    .push_back(RepairOutput::Request(number, self.peer_face));
            }
        }
    }

    fn is_out(&self, number: u64) -> bool {
        self.own.is_out(number) || self.neighbours.is_out(number)
    }

    pub(super) fn poll_output(&mut self) -> Option<RepairOutput> {
        self.outputs.pop_front()
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let silence = self.heard_at.map(|at| at + SILENCE);
        let is_open = self.ended.completed_after.is_none();
        let silence = silence.filter(|at| is_open && *at > self.settled_at);
        let neighbours = self.neighbours.poll_timeout();
        let all = [self.own.poll_timeout(), neighbours, silence];
        all.into_iter().flatten().min()
    }
}

#[cfg(test)]
#[path = "repair_tests.rs"]
mod tests;
