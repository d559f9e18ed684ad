//! All tables of a node together: what happens to several of them at once.

use std::sync::Arc;

use bytes::Bytes;
use namecast_packet::{Data, Interest, Name, Nonce};
use namecast_units::{ByteSize, Duration, Instant};

use super::pit::{InRecord, PendingInterest};
use super::{
    ChoiceId, ContentStore, DeadNonceList, EntryId, ExpiryQueue, Face, FaceTable, Fib, NextHop,
    Pit, scope_allows,
};
use crate::config::Config;
use crate::counters::{BundleCounters, Counters, DropReason, FaceCounters, PacketKind};
use crate::face::FaceId;
use crate::name_hash::{NameHasher, NameHashes};

/// What became of a pending Interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Data answered it, which stay fresh for so long.
    Satisfied(Duration),
    /// Its time ran out.
    Expired,
    /// It ended before its time.
    Refused,
}

/// The tables of a node, and what it has counted.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Tables {
    // First what each packet touches: a simulation has more nodes than the processor's caches hold.
    pub(crate) config: Arc<Config>,
    pub(crate) hasher: NameHasher,
    pub(crate) expiries: ExpiryQueue,
    pub(crate) faces: FaceTable,
    dead_nonces: DeadNonceList,
    pub(crate) pit: Pit,
    pub(crate) content_store: ContentStore,
    pub(crate) fib: Fib,
    pub(crate) counters: Counters,
}

impl Tables {
    pub(crate) fn new(config: Arc<Config>) -> Self {
        let hasher = NameHasher::new(config.hash_key);
        Self {
            hasher,
            expiries: ExpiryQueue::default(),
            faces: FaceTable::default(),
            dead_nonces: DeadNonceList::new(
                config.dead_nonces.lifetime,
                config.dead_nonces.capacity,
            ),
            pit: Pit::new(config.pit.capacity, config.pit.max_size),
            content_store: ContentStore::new(config.keep, config.content_store),
            fib: Fib::new(hasher, config.max_prefixes),
            counters: Counters::default(),
            config,
        }
    }

    /// The hashes of a name; `None` if it has more components than it may.
    #[inline]
    pub(crate) fn hashes(&self, name: &Name) -> Option<NameHashes> {
        self.hasher.hashes(name, self.config.max_name_components)
    }

    /// The next hops that an Interest has by its name or its ForwardingHint.
    #[inline]
    pub(crate) fn next_hops(&self, interest: &Interest, hashes: &NameHashes) -> &[NextHop] {
        self.fib.next_hops_for(interest, hashes, &self.config)
    }

    /// Whether a face is there and leads to an application.
    pub(crate) fn is_local(&self, face: FaceId) -> bool {
        self.faces.get(face).is_some_and(Face::is_local)
    }

    /// Counts a dropped packet, for the node and for the face if there is one.
    pub(crate) fn count_drop(&mut self, face: FaceId, reason: DropReason) {
        self.counters.drops.add(reason);
        if let Some(face) = self.faces.get_mut(face) {
            face.counters.drops.add(reason);
        }
    }

    /// Counts a received frame.
    pub(crate) fn count_frame(&mut self, id: FaceId, frame: &Bytes) -> Result<(), DropReason> {
        let face = self.faces.get_mut(id).ok_or(DropReason::UnknownFace)?;
        for traffic in [&mut face.counters.incoming, &mut self.counters.incoming] {
            traffic.frames += 1;
            traffic.octets += ByteSize::of(frame);
        }
        Ok(())
    }

    /// Counts a received packet.
    pub(crate) fn count_packet(&mut self, id: FaceId, kind: PacketKind) -> Result<(), DropReason> {
        let face = self.faces.get_mut(id).ok_or(DropReason::UnknownFace)?;
        face.counters.incoming.count(kind);
        self.counters.incoming.count(kind);
        Ok(())
    }

    /// Counts a packet that is put into the output queue of a face, if there is room.
    #[inline]
    pub(crate) fn count_sent(
        &mut self,
        id: FaceId,
        kind: PacketKind,
        packet: &Bytes,
    ) -> Result<(), DropReason> {
        let face = self.faces.get_mut(id).ok_or(DropReason::UnknownFace)?;
        if face.queued as usize >= self.config.link.max_output_queue {
            return Err(DropReason::OutputQueueFull);
        }
        face.queued += 1;
        // Its frame counts, unless it is for the link to count what it makes of it.
        let is_frame = face.config.takes_whole(packet.len());
        for traffic in [&mut face.counters.outgoing, &mut self.counters.outgoing] {
            traffic.count(kind);
            if is_frame {
                traffic.frames += 1;
                traffic.octets += ByteSize::of(packet);
            }
        }
        Ok(())
    }

    /// Counts a frame without a packet that is put into the output queue of a face, if there is room.
    pub(crate) fn count_own_frame(&mut self, id: FaceId, frame: &Bytes) -> Result<(), DropReason> {
        let face = self.faces.get_mut(id).ok_or(DropReason::UnknownFace)?;
        if face.queued as usize >= self.config.link.max_output_queue {
            return Err(DropReason::OutputQueueFull);
        }
        face.queued += 1;
        for traffic in [&mut face.counters.outgoing, &mut self.counters.outgoing] {
            traffic.frames += 1;
            traffic.octets += ByteSize::of(frame);
        }
        Ok(())
    }

    /// Counts a packet that leaves with another, whose frame it made longer.
    pub(crate) fn count_on_board(
        &mut self,
        id: FaceId,
        kind: PacketKind,
        (before, after): (usize, usize),
    ) {
        let Some(face) = self.faces.get_mut(id) else {
            return;
        };
        let is_frame = face.config.takes_whole(after);
        for traffic in [&mut face.counters.outgoing, &mut self.counters.outgoing] {
            traffic.count(kind);
            if is_frame {
                traffic.octets += ByteSize::bytes(after.saturating_sub(before) as u64);
            }
        }
    }

    /// Counts two packets, which were counted before, as the one frame that carries them.
    pub(crate) fn count_joined(
        &mut self,
        id: FaceId,
        (data, interest): (&Bytes, &Bytes),
        joint: &Bytes,
    ) {
        let Some(face) = self.faces.get_mut(id) else {
            return;
        };
        face.queued -= 1;
        let config = &face.config;
        let is_frame = |packet: &Bytes| config.takes_whole(packet.len());
        let (mut frames, mut octets) = (0, ByteSize::ZERO);
        for packet in [data, interest].into_iter().filter(|it| is_frame(it)) {
            frames += 1;
            octets += ByteSize::of(packet);
        }
        let is_joint_frame = is_frame(joint);
        for traffic in [&mut face.counters.outgoing, &mut self.counters.outgoing] {
            traffic.frames -= frames;
            traffic.octets -= octets;
            if is_joint_frame {
                traffic.frames += 1;
                traffic.octets += ByteSize::of(joint);
            }
        }
    }

    /// Counts what became of a bundle, for the node and for the face if there is one.
    pub(crate) fn count_bundle(&mut self, face: FaceId, count: impl Fn(&mut BundleCounters)) {
        count(&mut self.counters.bundles);
        if let Some(face) = self.faces.get_mut(face) {
            count(&mut face.bundles().counters);
        }
    }

    /// Whether a face may send an Interest now.
    pub(crate) fn is_within_rate(&mut self, now: Instant, id: FaceId) -> bool {
        let Some(rate) = self.config.pit.face_interest_rate else {
            return true;
        };
        let face = self.faces.get_mut(id);
        face.is_none_or(|face| rate.admit(now, &mut face.interests_full_at))
    }

    /// Whether a face has as many pending Interests as one may have.
    pub(crate) fn has_used_quota(&self, face: FaceId) -> bool {
        let face = self.faces.get(face);
        face.is_some_and(|face| self.pit.records_of(face.share) >= self.config.pit.face_capacity)
    }

    /// Wire and name of an Interest as tables keep them.
    pub(crate) fn kept(&mut self, interest: &Interest) -> (Bytes, Name) {
        match self.config.keep.copies(interest.wire().len()) {
            true => interest.detached(|octets| self.pit.copy(octets)),
            false => (interest.wire().clone(), interest.name().clone()),
        }
    }

    /// Notes that a downstream waits.
    pub(crate) fn record_received(&mut self, id: EntryId, record: InRecord) {
        if let Some(face) = self.faces.get(record.face) {
            self.pit.record_received(id, record, face.share);
        }
        self.expiries.set(id, self.pit.get(id).expiry);
    }

    /// Forgets that a downstream waits; returns its record. An entry for which nobody waits any more is to be
    /// [ended](Self::end).
    pub(crate) fn take_in_record(&mut self, id: EntryId, from: FaceId) -> Option<InRecord> {
        let is_first = self.pit.get(id).in_records.first()?.face == from;
        let record = self.pit.take_in_record(id, from)?;
        if let Some(face) = self.faces.get(from) {
            self.pit.leave(id, &record, is_first, face.share);
        }
        let entry = self.pit.get(id);
        let next = entry.in_records.first().map(|next| next.face);
        if let Some(next) = next {
            self.expiries.set(id, entry.expiry);
            if is_first && let Some(face) = self.faces.get(next) {
                self.pit.take_over(id, face.share);
            }
        }
        Some(record)
    }

    /// Removes a face, and ends what only it waits for, which nobody can be told of any more.
    pub(crate) fn remove_face(&mut self, now: Instant, face: FaceId) {
        for id in self.pit.awaited_by(face) {
            self.take_in_record(id, face);
            if self.pit.get(id).in_records.is_empty() {
                self.end(now, id, Outcome::Refused);
            }
        }
        if let Some(removed) = self.faces.remove(face) {
            self.fib.remove_face(face);
            self.pit.remove_face(face, removed.share);
        }
    }

    /// Ends a pending Interest; returns the choice of a strategy that it counts for.
    pub(crate) fn end(&mut self, now: Instant, id: EntryId, outcome: Outcome) -> ChoiceId {
        let entry = self.pit.remove(id);
        self.expiries.clear(id);
        match outcome {
            Outcome::Satisfied(_) => {
                self.counters.satisfied += 1;
                if let [record] = &entry.out_records[..] {
                    self.counters.retrieval.record(now.since(record.sent_at));
                }
            }
            Outcome::Expired => {
                self.counters.unsatisfied += 1;
                self.counters.expired += 1;
            }
            Outcome::Refused => self.counters.unsatisfied += 1,
        }
        self.release(id, &entry, outcome);
        // Otherwise the content store stops an Interest that comes back.
        let may_come_back = match outcome {
            Outcome::Satisfied(freshness) => {
                entry.must_be_fresh && freshness < self.dead_nonces.lifetime()
            }
            Outcome::Expired | Outcome::Refused => true,
        };
        if may_come_back {
            self.remember_nonces(now, &entry);
        }
        let choice = entry.choice;
        self.pit.take_back(entry, self.config.keep);
        choice
    }

    /// Counts the end of entry `id` at the faces that waited, which have one pending Interest less, and at those that were
    /// asked.
    fn release(&mut self, id: EntryId, entry: &PendingInterest, outcome: Outcome) {
        let count_in = |face: &mut FaceCounters| match outcome {
            Outcome::Satisfied(_) => face.satisfied_in += 1,
            Outcome::Expired => face.expired_in += 1,
            Outcome::Refused => {}
        };
        let count_out = |face: &mut FaceCounters| match outcome {
            Outcome::Satisfied(_) => face.satisfied_out += 1,
            Outcome::Expired => face.expired_out += 1,
            Outcome::Refused => {}
        };
        for (number, record) in entry.in_records.iter().enumerate() {
            if let Some(face) = self.faces.get_mut(record.face) {
                count_in(&mut face.counters);
                self.pit.leave(id, record, number == 0, face.share);
            }
        }
        for record in &entry.out_records {
            if let Some(face) = self.faces.get_mut(record.face) {
                count_out(&mut face.counters);
            }
        }
    }

    /// Remembers the Nonces that the entry's Interests went out with, as these may still come back in a loop.
    fn remember_nonces(&mut self, now: Instant, entry: &PendingInterest) {
        for record in &entry.out_records {
            let transmission = self.hasher.transmission(entry.hash, record.nonce);
            self.dead_nonces.insert(now, transmission);
        }
    }

    /// Whether an Interest of this transmission has left the PIT not long ago.
    #[inline]
    pub(crate) fn was_here(&self, now: Instant, transmission: u64) -> bool {
        self.dead_nonces.contains(now, transmission)
    }

    /// Whom the Interest of an entry came from that may go to a next hop which appeared.
    pub(crate) fn pending_for(
        &self,
        now: Instant,
        id: EntryId,
        hashes: &NameHashes,
        hop: FaceId,
    ) -> Option<FaceId> {
        let entry = self.pit.get(id);
        let wants = |record: &&InRecord| {
            let interest = Interest::decode(record.wire.clone());
            let leads_there = interest.is_ok_and(|interest| {
                let next_hops = self.next_hops(&interest, hashes);
                next_hops.iter().any(|next| next.face == hop)
            });
            record.expiry > now && leads_there && self.is_eligible(&entry.name, record.face, hop)
        };
        let found = entry.in_records.iter().find(wants);
        found.map(|record| record.face)
    }

    /// Whether an Interest may go from a face to another: not back to where it came from, unless the link is ad hoc, and not
    /// out of its scope.
    pub(crate) fn is_eligible(&self, name: &Name, ingress: FaceId, egress: FaceId) -> bool {
        let Some(face) = self.faces.get(egress) else {
            return false;
        };
        (egress != ingress || face.is_ad_hoc())
            && scope_allows(name, self.is_local(ingress), face.is_local())
    }

    /// Whether an Interest is in entry `id` already that came from `face` with `nonce`. The same Nonce from the same neighbour
    /// is a retransmission, not a loop, on a link where nobody else can have sent it.
    pub(crate) fn is_loop(&self, id: EntryId, face: FaceId, nonce: Nonce) -> bool {
        let entry = self.pit.get(id);
        let is_repeat = self.faces.get(face).is_some_and(Face::is_point_to_point)
            && entry
                .in_record(face)
                .is_some_and(|record| record.nonce == nonce);
        !is_repeat && entry.has_nonce(nonce)
    }

    /// Whether somebody waits for the Data.
    pub(crate) fn awaits(&self, data: &Data) -> bool {
        let hashes = self.hashes(data.name());
        hashes.is_some_and(|hashes| !self.pit.matches(data, &hashes).is_empty())
    }
}
