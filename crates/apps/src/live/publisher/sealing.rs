//! Seals the samples of a publisher, and publishes the key boxes of their readers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use namecast_packet::lp::NackReason;
use namecast_packet::{Interest, Name};
use namecast_stream::producer::{Arrival, RungId};
use namecast_stream::{Producer, SampleClass};
use namecast_units::Instant;
use serde::Serialize;

use crate::face;
use crate::sealed::{
    BoxServer, BoxServerConfig, Requested, Sealed, Sealer, SealerConfig, SealerEvent, Unsealed,
};

/// Counters of a publisher of sealed samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SealingCounters {
    /// Samples sealed.
    pub samples: u64,
    /// Key boxes published.
    pub boxes: u64,
    /// Generations of keys that came into force after the first one.
    pub generations: u64,
    /// Readers whose X25519 key cannot be used.
    pub bad_keys: u64,
    /// Interests for key boxes.
    pub interests: u64,
    /// Of those, refused: the box will not exist, or is not kept any more.
    pub refused: u64,
    /// Of those, and of answers to them, dropped: no room.
    pub dropped_full: u64,
}

/// Sealer, boxes, and packets to send.
pub(super) struct Sealing {
    sealer: Sealer,
    boxes: BoxServer,
    /// Names up to the number, by rung.
    sequences: BTreeMap<RungId, [Name; 2]>,
    outputs: VecDeque<Bytes>,
    max_outputs: usize,
    readers: usize,
    /// Whether encoders are to make a key picture, as a generation is in force since its last one.
    pub(super) needs_key: bool,
    counters: SealingCounters,
}

impl core::fmt::Debug for Sealing {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Sealing")
            .field("readers", &self.readers)
            .field("boxes", &self.boxes)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

impl Sealing {
    /// Seals what is published under `root`. `seed` is drawn anew for each start.
    pub(super) fn new(root: &Name, seed: [u8; 32], max_outputs: usize) -> Self {
        let sealer = Sealer::new(SealerConfig::new(root.clone()), seed);
        let boxes = BoxServer::new(root.clone(), sealer.start(), BoxServerConfig::default());
        Self {
            sealer,
            boxes,
            sequences: BTreeMap::new(),
            outputs: VecDeque::new(),
            max_outputs,
            readers: 0,
            needs_key: false,
            counters: SealingCounters::default(),
        }
    }

    /// Records the name of a rung: root, stream, rung.
    pub(super) fn add_rung(&mut self, id: RungId, rung: &Name) {
        let names = SampleClass::ALL.map(|class| rung.builder().generic(class.word()).finish());
        self.sequences.insert(id, names);
    }

    /// Forgets a rung that has ended.
    pub(super) fn end_rung(&mut self, id: RungId) {
        self.sequences.remove(&id);
    }

    /// Lets these readers open the next sample, and nobody else soon.
    pub(super) fn set_readers(&mut self, now: Instant, readers: &BTreeSet<[u8; 32]>) {
        self.readers = readers.len();
        self.sealer.set_readers(now, readers);
    }

    /// Seals sample `number`.
    pub(super) fn seal(
        &mut self,
        now: Instant,
        (rung, class): (RungId, SampleClass),
        sample: (u64, &[u8]),
    ) -> Result<Sealed, Unsealed> {
        let sequence = &self.sequences[&rung][class.index()];
        let sealed = self.sealer.seal(now, sequence, sample)?;
        self.counters.samples += 1;
        Ok(sealed)
    }

    /// Publishes the boxes that were made, signed by the key of `producer`.
    pub(super) fn publish_boxes(&mut self, producer: &Producer) {
        while let Some(event) = self.sealer.poll_event() {
            match event {
                SealerEvent::Box(key_box) => {
                    self.counters.boxes += 1;
                    let replies = self.boxes.publish(&key_box, |data| producer.sign(data));
                    for reply in replies {
                        self.push(face::answer(reply.data.wire().clone(), reply.pit_token));
                    }
                }
                SealerEvent::Changed(_) => {
                    self.counters.generations += 1;
                    self.needs_key = true;
                }
                SealerEvent::BadKey(_) => self.counters.bad_keys += 1,
            }
        }
    }

    /// Takes an Interest. Returns whether it is one for a box.
    pub(super) fn handle_interest(
        &mut self,
        now: Instant,
        interest: &Interest,
        arrival: &Arrival,
    ) -> bool {
        let requested = self.boxes.handle_interest(now, interest, arrival.clone());
        let Some(requested) = requested else {
            return false;
        };
        self.counters.interests += 1;
        let pit_token = arrival.pit_token.clone();
        match requested {
            Requested::Answer(data) => self.push(face::answer(data.wire().clone(), pit_token)),
            Requested::Refused => {
                self.counters.refused += 1;
                self.push(face::refusal(interest, pit_token, NackReason::None));
            }
            Requested::Dropped => self.counters.dropped_full += 1,
            Requested::Held => {}
        }
        true
    }

    /// Does what is due.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.sealer.handle_timeout(now);
        self.boxes.handle_timeout(now);
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let all = [self.sealer.poll_timeout(), self.boxes.poll_timeout()];
        all.into_iter().flatten().min()
    }

    /// Returns the next packet to send, until `None`.
    pub(super) fn poll_output(&mut self) -> Option<Bytes> {
        self.outputs.pop_front()
    }

    /// Returns what it counted.
    pub(super) const fn counters(&self) -> &SealingCounters {
        &self.counters
    }

    /// Returns the number of readers.
    pub(super) const fn readers(&self) -> usize {
        self.readers
    }

    fn push(&mut self, packet: Bytes) {
        match self.outputs.len() < self.max_outputs {
            true => self.outputs.push_back(packet),
            false => self.counters.dropped_full += 1,
        }
    }
}
