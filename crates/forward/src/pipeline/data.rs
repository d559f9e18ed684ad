//! Incoming and outgoing Data.

use bytes::Bytes;
use namecast_packet::{Data, MAX_PACKET_SIZE};

use crate::counters::DropReason;
use crate::face::{Face, FaceId};
use crate::fields::{KeptFields, LinkFields, PacketKind};
use crate::forwarder::Forwarder;
use crate::strategy::is_localhost;
use crate::table::NameHashes;
use crate::table::pit::EntryId;
use smallvec::SmallVec;

/// Octets that a frame may have beside an announcement and what it carries: LpPacket, PitToken, CongestionMark, the numbers of
/// fragments and transmissions, and types and lengths.
const ANNOUNCEMENT_OVERHEAD: usize = 120;

/// Who gets a Data packet, and what its Interest said.
struct Downstream {
    face: FaceId,
    fields: KeptFields,
    /// Whether it has a use for a prefix announcement.
    looks_for_route: bool,
}

type Downstreams = SmallVec<[Downstream; 4]>;

impl Forwarder {
    pub(super) fn incoming_data(
        &mut self,
        face: FaceId,
        data: &Data,
        fields: &LinkFields,
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
            return self.unsolicited_data(face, data, fields, &hashes);
        }
        if !fields.no_cache {
            self.content_store.insert(self.now, data, &hashes);
        }
        let mut announcement = None;
        if self.learned.is_some() || fields.prefix_announcement.is_some() {
            let announced = fields.prefix_announcement.as_ref();
            announcement = self.learn_from_data(face, (data, &hashes), announced, &entries);
        }
        let mut downstreams = Downstreams::new();
        for id in entries {
            self.collect_downstreams(id, face, &mut downstreams);
            self.satisfy(id, data);
        }
        for downstream in downstreams {
            let announcement = announcement.as_ref();
            let announcement = announcement.filter(|_| downstream.looks_for_route);
            let said = fields.for_downstream(downstream.fields.token_to_send(), announcement);
            self.outgoing_data(face, downstream.face, data.wire().clone(), said);
        }
        Ok(())
    }

    /// Caches Data that nobody asked for, if the policy is so and the Data may be cached at all.
    fn unsolicited_data(
        &mut self,
        face: FaceId,
        data: &Data,
        fields: &LinkFields,
        hashes: &NameHashes,
    ) -> Result<(), DropReason> {
        let is_local = self.faces.get(face).is_some_and(Face::is_local);
        if fields.no_cache || !self.config.unsolicited.admits(is_local) {
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
            let waits = record.expiry > self.now && (record.face != ingress || may_return);
            if !waits {
                continue;
            }
            let looks_for_route = !record.fields.non_discovery();
            let is_it = |other: &&mut Downstream| {
                other.face == record.face && other.fields.pit_token() == record.fields.pit_token()
            };
            match downstreams.iter_mut().find(is_it) {
                Some(known) => known.looks_for_route |= looks_for_route,
                None => downstreams.push(Downstream {
                    face: record.face,
                    fields: record.fields.clone(),
                    looks_for_route,
                }),
            }
        }
    }

    /// Ends a pending Interest that Data answered.
    fn satisfy(&mut self, id: EntryId, data: &Data) {
        self.counters.satisfied += 1;
        let entry = self.pit.remove(id);
        self.strategies
            .count(entry.choice, |choice| choice.satisfied += 1);
        self.expiries.clear(id);
        self.release(
            id,
            &entry,
            |face| face.satisfied_in += 1,
            |face| face.satisfied_out += 1,
        );
        // Otherwise the content store stops an Interest that comes back.
        if entry.must_be_fresh && data.freshness() < self.dead_nonces.lifetime() {
            self.remember_nonces(&entry);
        }
        self.pit.take_back(entry, self.config.keep);
    }

    /// Whether an announcement goes with Data to a face: to other hosts, if both fit the largest frame that peers read, and
    /// the announcement a fragment, as Data must not get lost for what only helps to find more.
    fn takes_announcement(&self, to: FaceId, announcement: &Bytes, data: &Bytes) -> bool {
        let size = announcement.len() + ANNOUNCEMENT_OVERHEAD;
        let fits = |face: &Face| {
            let mtu = face.config.mtu.unwrap_or(usize::MAX);
            size <= mtu && size + data.len() <= MAX_PACKET_SIZE
        };
        let face = self.faces.get(to).filter(|face| !face.is_local());
        face.is_some_and(fits)
    }

    /// Sends Data to a face that waits.
    pub(super) fn outgoing_data(
        &mut self,
        from: FaceId,
        to: FaceId,
        wire: Bytes,
        mut fields: LinkFields,
    ) {
        let announcement = fields.prefix_announcement.take();
        fields.prefix_announcement =
            announcement.filter(|it| self.takes_announcement(to, it, &wire));
        self.send(PacketKind::Data, from, to, wire, fields);
    }
}
