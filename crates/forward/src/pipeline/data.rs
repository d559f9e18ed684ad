//! Incoming and outgoing Data.

use bytes::Bytes;
use namecast_packet::{Data, LpPacket, MAX_PACKET_SIZE};

use crate::counters::DropReason;
use crate::extension::Hook;
use crate::face::{Face, FaceId};
use crate::forwarder::Forwarder;
use crate::strategy::is_localhost;
use crate::table::NameHashes;
use crate::table::pit::{EntryId, PitToken};
use smallvec::SmallVec;

/// Octets that a frame may have beside an announcement and what it carries: LpPacket, PitToken, CongestionMark, the numbers of
/// fragments and transmissions, and types and lengths.
const ANNOUNCEMENT_OVERHEAD: usize = 120;

/// Who gets a Data packet, and with which PIT token.
struct Downstream {
    face: FaceId,
    token: PitToken,
    /// Whether it has a use for a prefix announcement.
    looks_for_route: bool,
}

type Downstreams = SmallVec<[Downstream; 4]>;

/// What is said in front of Data.
#[derive(Default)]
pub(super) struct Beside<'a> {
    /// What the downstream wants back.
    pub(super) token: Option<&'a [u8]>,
    /// Congestion so far.
    pub(super) congestion_mark: u64,
    /// A route to who made the Data; sent to other hosts only.
    pub(super) announcement: Option<&'a Bytes>,
}

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
            return self.unsolicited_data(face, data, header, &hashes);
        }
        if !header.no_cache {
            self.content_store.insert(self.now, data, &hashes);
        }
        let mut announcement = None;
        if self.learned.is_some() || header.prefix_announcement.is_some() {
            let announced = header.prefix_announcement.as_ref();
            announcement = self.learn_from_data(face, (data, &hashes), announced, &entries);
        }
        let mut downstreams = Downstreams::new();
        for id in entries {
            self.collect_downstreams(id, face, &mut downstreams);
            self.satisfy(id, data);
        }
        for Downstream {
            face: to,
            token,
            looks_for_route,
        } in downstreams
        {
            let beside = Beside {
                token: (!token.is_empty()).then_some(&token),
                congestion_mark: header.congestion_mark,
                announcement: announcement.as_ref().filter(|_| looks_for_route),
            };
            self.outgoing_data(face, to, data.wire().clone(), beside);
        }
        Ok(())
    }

    /// Caches Data that nobody asked for, if the policy is so and the Data may be cached at all.
    fn unsolicited_data(
        &mut self,
        face: FaceId,
        data: &Data,
        header: &LpPacket,
        hashes: &NameHashes,
    ) -> Result<(), DropReason> {
        let is_local = self.faces.get(face).is_some_and(Face::is_local);
        if header.no_cache || !self.config.unsolicited.admits(is_local) {
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
            let looks_for_route = !record.non_discovery;
            let is_it =
                |other: &&mut Downstream| other.face == record.face && other.token == record.token;
            match downstreams.iter_mut().find(is_it) {
                Some(known) => known.looks_for_route |= looks_for_route,
                None => downstreams.push(Downstream {
                    face: record.face,
                    token: record.token.clone(),
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
        beside: Beside<'_>,
    ) {
        let says_something = beside.token.is_some() || beside.congestion_mark > 0;
        if !says_something && beside.announcement.is_none() {
            return self.send_bare(Hook::OutgoingData, from, to, wire);
        }
        let announcement = beside.announcement;
        let announcement = announcement.filter(|it| self.takes_announcement(to, it, &wire));
        let packet = LpPacket {
            pit_token: beside.token.map(Bytes::copy_from_slice),
            congestion_mark: beside.congestion_mark,
            prefix_announcement: announcement.cloned(),
            fragment: Some(wire),
            ..LpPacket::default()
        };
        self.send(Hook::OutgoingData, from, to, packet);
    }
}
