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
mod measure;
mod nack;
mod receive;
mod send;

use crate::face::FaceId;
use crate::forwarder::Forwarder;
use crate::table::name_hash;
use crate::table::pit::{EntryId, PendingInterest};

impl Forwarder {
    /// A pending Interest's time is over.
    pub(crate) fn expire(&mut self, id: EntryId) {
        self.counters.unsatisfied += 1;
        self.counters.expired += 1;
        let entry = self.pit.remove(id);
        for record in &entry.in_records {
            if let Some(face) = self.faces.get_mut(record.face) {
                face.counters.expired_in += 1;
                face.pending -= 1;
            }
        }
        for record in &entry.out_records {
            if let Some(face) = self.faces.get_mut(record.face) {
                face.counters.expired_out += 1;
            }
        }
        self.remember_nonces(&entry);
    }

    /// Ends a pending Interest before its time, unsatisfied.
    fn refuse(&mut self, id: EntryId) {
        self.counters.unsatisfied += 1;
        self.expiries.clear(id);
        let entry = self.pit.remove(id);
        for record in &entry.in_records {
            self.stop_waiting(record.face);
        }
        self.remember_nonces(&entry);
    }

    /// A face has one pending Interest less.
    fn stop_waiting(&mut self, face: FaceId) {
        if let Some(face) = self.faces.get_mut(face) {
            face.pending -= 1;
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
