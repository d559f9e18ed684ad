//! Incoming and outgoing Data.

use bytes::Bytes;
use namecast_packet::{Data, LpPacket};

use crate::counters::DropReason;
use crate::extension::Hook;
use crate::face::{Face, FaceId};
use crate::forwarder::Forwarder;
use crate::strategy::is_localhost;
use crate::table::NameHashes;
use crate::table::pit::{EntryId, PitToken};
use smallvec::SmallVec;

/// Who gets a Data packet, and with which PIT token.
type Downstreams = SmallVec<[(FaceId, Option<PitToken>); 4]>;

impl Forwarder {
    pub(super) fn incoming_data(
        &mut self,
        face: FaceId,
        data: &Data,
        header: &LpPacket,
    ) -> Result<(), DropReason> {
        let ingress = self.faces.get(face).ok_or(DropReason::UnknownFace)?;
        if is_localhost(data.name()) && !ingress.is_local() {
            return Err(DropReason::Scope);
        }
        let hashes = self
            .hasher
            .hashes(data.name(), self.config.max_name_components)
            .ok_or(DropReason::NameTooLong)?;
        if hashes.has_digest() {
            return Err(DropReason::DigestInDataName);
        }
        let entries = self.pit.matches(data, &hashes);
        if self.measurements.is_some() {
            self.measure_data(face, (data.name(), &hashes), &entries);
        }
        if entries.is_empty() {
            return self.unsolicited_data(face, data, &hashes);
        }
        if !header.no_cache {
            self.content_store.insert(self.now, data, &hashes);
        }
        let mut downstreams = Downstreams::new();
        for id in entries {
            self.collect_downstreams(id, face, &mut downstreams);
            self.satisfy(id, data);
        }
        for (to, token) in downstreams {
            let mark = header.congestion_mark;
            self.outgoing_data(face, to, data.wire().clone(), (token.as_deref(), mark));
        }
        Ok(())
    }

    /// Caches Data that nobody asked for, if the policy is so.
    fn unsolicited_data(
        &mut self,
        face: FaceId,
        data: &Data,
        hashes: &NameHashes,
    ) -> Result<(), DropReason> {
        let is_local = self.faces.get(face).is_some_and(Face::is_local);
        if !self.config.unsolicited.admits(is_local) {
            return Err(DropReason::Unsolicited);
        }
        self.counters.unsolicited_cached += 1;
        self.content_store.insert(self.now, data, hashes);
        Ok(())
    }

    /// Adds the faces that wait in an entry, but not the one that the Data came from unless its link is ad hoc.
    ///
    /// A face that waits in several entries gets the Data once per PIT token, since it may tell its own entries apart by
    /// nothing else; without tokens, once.
    fn collect_downstreams(&self, id: EntryId, ingress: FaceId, downstreams: &mut Downstreams) {
        let may_return = self.faces.get(ingress).is_some_and(Face::is_ad_hoc);
        for record in &self.pit.get(id).in_records {
            let downstream = (record.face, record.token.clone());
            let waits = record.expiry > self.now && (record.face != ingress || may_return);
            if waits && !downstreams.contains(&downstream) {
                downstreams.push(downstream);
            }
        }
    }

    /// Ends a pending Interest that Data answered.
    fn satisfy(&mut self, id: EntryId, data: &Data) {
        self.counters.satisfied += 1;
        let entry = self.pit.remove(id);
        self.expiries.clear(id);
        for record in &entry.in_records {
            if let Some(face) = self.faces.get_mut(record.face) {
                face.counters.satisfied_in += 1;
                face.pending -= 1;
            }
        }
        for record in &entry.out_records {
            if let Some(face) = self.faces.get_mut(record.face) {
                face.counters.satisfied_out += 1;
            }
        }
        // Otherwise the content store stops an Interest that comes back.
        if entry.must_be_fresh && data.freshness() < self.dead_nonces.lifetime() {
            self.remember_nonces(&entry);
        }
    }

    /// Sends Data to a face that waits, with the PIT token that it wants back and the congestion so far.
    pub(super) fn outgoing_data(
        &mut self,
        from: FaceId,
        to: FaceId,
        wire: Bytes,
        (token, congestion_mark): (Option<&[u8]>, u64),
    ) {
        if token.is_none() && congestion_mark == 0 {
            return self.send_bare(Hook::OutgoingData, from, to, wire);
        }
        let packet = LpPacket {
            pit_token: token.map(Bytes::copy_from_slice),
            congestion_mark,
            fragment: Some(wire),
            ..LpPacket::default()
        };
        self.send(Hook::OutgoingData, from, to, packet);
    }
}
