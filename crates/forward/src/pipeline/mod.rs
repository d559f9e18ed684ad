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
use crate::forwarder::Forwarder;
use crate::table::name_hash;
use crate::table::pit::{EntryId, PendingInterest};

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
        self.release(&entry, |_| {}, |_| {});
        self.remember_nonces(&entry);
        self.pit.take_back(entry, self.config.keep);
    }

    /// Counts the end of an entry at the faces that waited, which have one pending Interest less, and at those that were
    /// asked.
    fn release(
        &mut self,
        entry: &PendingInterest,
        count_in: fn(&mut FaceCounters),
        count_out: fn(&mut FaceCounters),
    ) {
        for record in &entry.in_records {
            if let Some(face) = self.faces.get_mut(record.face) {
                count_in(&mut face.counters);
                face.pending -= 1;
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
            let transmission = name_hash::transmission(entry.hash, record.nonce);
            self.dead_nonces.insert(self.now, transmission);
        }
    }
}
