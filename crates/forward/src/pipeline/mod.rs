//! What happens to a packet, step by step, in NFD's order: one function per pipeline.
//!
//! ```text
//!  frame ─▶ receive ─┬─▶ incoming Interest ─┬─ content store hit ─▶ outgoing Data
//!                    │                      └─ miss ─▶ strategy ──▶ outgoing Interest
//!                    ├─▶ incoming Data ──▶ outgoing Data, to all who wait
//!                    └─▶ incoming Nack ──▶ strategy ──▶ outgoing Nack
//! ```

mod data;
mod interest;
mod learn;
mod measure;
mod nack;
mod receive;
mod send;
mod share;

pub use learn::LEARNED_COST;
pub use share::LearnedNews;

use crate::counters::FaceCounters;
use crate::face::FaceId;
use crate::forwarder::Forwarder;
use crate::table::pit::{EntryId, InRecord, PendingInterest};

impl Forwarder {
    /// A pending Interest's time is over.
    pub(crate) fn expire(&mut self, id: EntryId) {
        self.counters.unsatisfied += 1;
        self.counters.expired += 1;
        let entry = self.pit.remove(id);
        self.strategies
            .count(entry.choice, |choice| choice.timeouts += 1);
        if self.learned.is_some() {
            self.routes_timed_out(&entry);
        }
        self.release(
            id,
            &entry,
            |face| face.expired_in += 1,
            |face| face.expired_out += 1,
        );
        self.remember_nonces(&entry);
        self.pit.take_back(entry, self.config.keep);
    }

    /// Ends a pending Interest before its time, unsatisfied.
    fn refuse(&mut self, id: EntryId) {
        self.counters.unsatisfied += 1;
        self.expiries.clear(id);
        let entry = self.pit.remove(id);
        self.release(id, &entry, |_| {}, |_| {});
        self.remember_nonces(&entry);
        self.pit.take_back(entry, self.config.keep);
    }

    /// Forgets that a downstream waits; returns its record. An entry for which nobody waits any more is to be
    /// [refused](Self::refuse).
    fn take_in_record(&mut self, id: EntryId, from: FaceId) -> Option<InRecord> {
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

    /// Ends what only `face` waits for, which nobody can be told of any more.
    pub(crate) fn forget_downstream(&mut self, face: FaceId) {
        for id in self.pit.awaited_by(face) {
            self.take_in_record(id, face);
            if self.pit.get(id).in_records.is_empty() {
                self.refuse(id);
            }
        }
    }

    /// Counts the end of entry `id` at the faces that waited, which have one pending Interest less, and at those that were
    /// asked.
    fn release(
        &mut self,
        id: EntryId,
        entry: &PendingInterest,
        count_in: fn(&mut FaceCounters),
        count_out: fn(&mut FaceCounters),
    ) {
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
    fn remember_nonces(&mut self, entry: &PendingInterest) {
        for record in &entry.out_records {
            let transmission = self.hasher.transmission(entry.hash, record.nonce);
            self.dead_nonces.insert(self.now, transmission);
        }
    }
}
