//! Incoming and outgoing Interests.

use bytes::Bytes;
use namecast_packet::lp::NackReason;
use namecast_packet::{Interest, Name, Nonce};
use namecast_units::Instant;

use crate::counters::DropReason;
use crate::face::{Face, FaceId};
use crate::fields::{KeptFields, LinkFields, PacketKind};
use crate::forwarder::Forwarder;
use crate::strategy::{Decision, InterestContext, StrategyKind, is_localhost};
use crate::table::NameHashes;
use crate::table::pit::{EntryId, InRecord, OutRecord, Shortage};

/// An Interest on its way through the node.
struct Arrival<'a> {
    face: FaceId,
    /// With a Nonce, and a HopLimit that is counted down.
    interest: &'a Interest,
    nonce: Nonce,
    /// When its lifetime ends, if it arrived now.
    expiry: Instant,
    hashes: &'a NameHashes,
    fields: &'a LinkFields,
    /// Whether it goes on with the word that nobody may look for a route.
    non_discovery: bool,
}

impl Forwarder {
    pub(super) fn incoming_interest(
        &mut self,
        face: FaceId,
        interest: &mut Interest,
        fields: &LinkFields,
    ) -> Result<(), DropReason> {
        if interest.nonce().is_none() {
            interest.set_nonce(self.new_nonce());
        }
        if let Some(hops) = interest.hop_limit() {
            let left = hops.checked_sub(1).ok_or(DropReason::HopLimit)?;
            interest.set_hop_limit(left);
        }
        let is_local = self.faces.get(face).is_some_and(Face::is_local);
        if is_localhost(interest.name()) && !is_local {
            return Err(DropReason::Scope);
        }
        let hashes = self
            .hasher
            .hashes(interest.name(), self.config.max_name_components)
            .ok_or(DropReason::NameTooLong)?;
        let arrival = Arrival {
            face,
            nonce: interest.nonce().expect("added if it was missing"),
            expiry: self.expiry_of(interest, is_local),
            interest,
            hashes: &hashes,
            fields,
            non_discovery: fields.non_discovery,
        };
        let transmission = self.hasher.transmission(hashes.whole(), arrival.nonce);
        let known = self.pit.find(arrival.interest, arrival.hashes);
        if let Some(id) = known
            && self.came_another_way(id, &arrival)
        {
            let (wire, _) = self.kept(arrival.interest);
            self.record_received(id, &arrival, wire);
            self.counters.aggregated += 1;
            let choice = self.pit.get(id).choice;
            self.strategies.count(choice, |choice| {
                choice.interests += 1;
                choice.suppressed += 1;
            });
            return Ok(());
        }
        if self.dead_nonces.contains(self.now, transmission) || self.is_loop(known, &arrival) {
            self.return_nack(&arrival, NackReason::Duplicate);
            return Err(DropReason::Loop);
        }
        let is_pending = known.is_some_and(|id| !self.pit.get(id).in_records.is_empty());
        if !is_pending && self.answer_from_content_store(&arrival) {
            return Ok(());
        }
        self.content_store_miss(known, &arrival)
    }

    /// Other nodes drop Interests without a Nonce.
    fn new_nonce(&mut self) -> Nonce {
        let mut nonce = [0; 4];
        self.random.fill(&mut nonce);
        Nonce(nonce)
    }

    /// Whether the Interest's Nonce is in the entry already. The same Nonce from the same neighbour is a retransmission,
    /// not a loop, on a link where nobody else can have sent it.
    fn is_loop(&self, entry: Option<EntryId>, arrival: &Arrival<'_>) -> bool {
        let Some(id) = entry else { return false };
        let entry = self.pit.get(id);
        let face = self.faces.get(arrival.face);
        let is_repeat = face.is_some_and(Face::is_point_to_point)
            && entry
                .in_record(arrival.face)
                .is_some_and(|record| record.nonce == arrival.nonce);
        !is_repeat && entry.has_nonce(arrival.nonce)
    }

    /// Whether this copy of a pending Interest came by another way than the one that is pending, from a neighbour who asks
    /// all ways at once. Data then goes back by each, so that one of them may fail and nothing is lost. Only for
    /// multicast: elsewhere, as in NFD, a second copy is a loop. If it is one here, an Interest is still never sent on
    /// twice, and what comes back is one unsolicited Data more.
    fn came_another_way(&self, id: EntryId, arrival: &Arrival<'_>) -> bool {
        let entry = self.pit.get(id);
        let mut waiting = entry.in_records.iter();
        entry.in_record(arrival.face).is_none()
            && entry.out_record(arrival.face).is_none()
            && waiting.any(|record| record.nonce == arrival.nonce)
            && !self.has_used_quota(arrival.face)
            && self
                .pit
                .shortage(false, arrival.interest.wire().len(), false)
                .is_none()
            && self.strategy_for(arrival.interest.name(), arrival.hashes)
                == &StrategyKind::Multicast
    }

    fn answer_from_content_store(&mut self, arrival: &Arrival<'_>) -> bool {
        let found = self
            .content_store
            .find(self.now, arrival.interest, arrival.hashes);
        let Some(data) = found else {
            self.counters.content_store_misses += 1;
            return false;
        };
        self.counters.content_store_hits += 1;
        let announcement = match self.learned.is_some() && !arrival.fields.non_discovery {
            true => self.announcement_for_cached(arrival.interest.name(), arrival.hashes),
            false => None,
        };
        let fields = arrival.fields.for_answer_from_cache(announcement);
        self.outgoing_data(FaceId::CONTENT_STORE, arrival.face, data, fields);
        true
    }

    fn content_store_miss(
        &mut self,
        mut known: Option<EntryId>,
        arrival: &Arrival<'_>,
    ) -> Result<(), DropReason> {
        let interest = arrival.interest;
        let waits = known.is_some_and(|id| self.pit.get(id).in_record(arrival.face).is_some());
        if !waits && self.has_used_quota(arrival.face) {
            self.return_nack(arrival, NackReason::Congestion);
            return Err(DropReason::FaceQuota);
        }
        let (octets, is_local) = (interest.wire().len(), is_localhost(interest.name()));
        while let Some(shortage) = self.pit.shortage(known.is_none(), octets, is_local) {
            if !self.evict(shortage) {
                self.return_nack(arrival, NackReason::Congestion);
                return Err(DropReason::PitFull);
            }
            // What gave way may be just this entry.
            known = self.pit.find(interest, arrival.hashes);
        }
        if known.is_none()
            && self.pit.count_alike(arrival.hashes.whole()) >= self.config.max_same_hash
        {
            self.return_nack(arrival, NackReason::Congestion);
            return Err(DropReason::PitFull);
        }
        let (wire, name) = self.kept(interest);
        let id = known.unwrap_or_else(|| {
            let suppression = self.config.suppression.initial;
            self.pit.insert(interest, name, arrival.hashes, suppression)
        });
        self.record_received(id, arrival, wire);
        if let Some(chosen) = arrival.fields.next_hop_face {
            self.outgoing_interest(id, arrival, chosen);
            return Ok(());
        }
        self.carry_out(id, arrival)
    }

    /// Whether a face has as many pending Interests as one may have.
    fn has_used_quota(&self, face: FaceId) -> bool {
        let face = self.faces.get(face);
        face.is_some_and(|face| self.pit.records_of(face.share) >= self.config.face_pit_capacity)
    }

    /// Takes the longest-waiting Interest from the face that has most of the full table, and tells it so. Returns whether there
    /// was one.
    fn evict(&mut self, shortage: Shortage) -> bool {
        let Some((face, longest)) = self.pit.largest_share(shortage) else {
            return false;
        };
        self.count_drop(face, DropReason::PitFull);
        self.send_back(longest, face, NackReason::Congestion);
        if self.pit.get(longest).in_records.is_empty() {
            self.refuse(longest);
        }
        true
    }

    /// Wire and name of an Interest as tables keep them.
    fn kept(&mut self, interest: &Interest) -> (Bytes, Name) {
        match self.config.keep.copies(interest.wire().len()) {
            true => interest.detached(|octets| self.pit.copy(octets)),
            false => (interest.wire().clone(), interest.name().clone()),
        }
    }

    /// Notes that the downstream of `arrival` waits.
    fn record_received(&mut self, id: EntryId, arrival: &Arrival<'_>, wire: Bytes) {
        let record = InRecord {
            face: arrival.face,
            nonce: arrival.nonce,
            expiry: arrival.expiry,
            fields: KeptFields::new(arrival.fields),
            wire,
        };
        if let Some(face) = self.faces.get(arrival.face) {
            self.pit.record_received(id, record, face.share);
        }
        self.expiries.set(id, self.pit.get(id).expiry);
    }

    /// Asks the strategy and does as it says.
    fn carry_out(&mut self, id: EntryId, arrival: &Arrival<'_>) -> Result<(), DropReason> {
        match self.decide(id, arrival) {
            Decision::Forward(faces) => {
                for face in faces {
                    self.outgoing_interest(id, arrival, face);
                }
            }
            Decision::Follow(faces) => {
                let arrival = &Arrival {
                    non_discovery: true,
                    ..*arrival
                };
                for face in faces {
                    self.outgoing_interest(id, arrival, face);
                }
            }
            Decision::Probe { best, probe } => {
                self.outgoing_interest(id, arrival, best);
                self.send_probe(id, arrival, probe);
            }
            Decision::Retransmit(faces) => {
                let suppression = self.config.suppression;
                let entry = self.pit.get_mut(id);
                entry.suppression = suppression.next(entry.suppression);
                for face in faces {
                    self.outgoing_interest(id, arrival, face);
                }
            }
            Decision::Suppress => self.counters.aggregated += 1,
            Decision::Wait => {}
            Decision::Reject(reason) => {
                self.outgoing_nack(id, arrival.face, reason);
                self.refuse(id);
                return Err(DropReason::NoRoute);
            }
        }
        Ok(())
    }

    fn decide(&mut self, id: EntryId, arrival: &Arrival<'_>) -> Decision {
        let name = arrival.interest.name();
        let measured = self.measurements.as_ref().and_then(|measurements| {
            let (namespace, _) = self.measured_namespace(name, arrival.hashes)?;
            measurements.namespace(namespace)
        });
        let (choice, kind) = self.strategies.find(name, arrival.hashes);
        let entry = self.pit.get(id);
        let context = InterestContext {
            now: self.now,
            name,
            ingress: arrival.face,
            entry,
            next_hops: self
                .fib
                .next_hops_for(arrival.interest, arrival.hashes, &self.config),
            faces: &self.faces,
            avoid: arrival.fields.avoid_face,
            non_discovery: arrival.fields.non_discovery,
            measured,
        };
        let decision = kind.strategy().after_interest(&context, &mut self.random);
        let was_sent = !entry.out_records.is_empty();
        self.pit.get_mut(id).choice = choice;
        self.strategies
            .count(choice, |counters| decision.count(was_sent, counters));
        decision
    }

    /// Sends an Interest to one face more, as a transmission of its own, since its ways may meet again.
    fn send_probe(&mut self, id: EntryId, arrival: &Arrival<'_>, to: FaceId) {
        let nonce = self.new_nonce();
        let probe = Arrival {
            nonce,
            interest: &arrival.interest.with_nonce(nonce),
            ..*arrival
        };
        if self.outgoing_interest(id, &probe, to) {
            self.measure_probe(to, arrival.interest.name(), arrival.hashes);
        }
    }

    /// The strategy in force for a name.
    pub(super) fn strategy_for(&self, name: &Name, hashes: &NameHashes) -> &StrategyKind {
        self.strategies.find(name, hashes).1
    }

    /// Sends an Interest and keeps record of it, unless it must not go there.
    fn outgoing_interest(&mut self, id: EntryId, arrival: &Arrival<'_>, to: FaceId) -> bool {
        let Some(egress) = self.faces.get(to) else {
            self.count_drop(to, DropReason::UnknownFace);
            return false;
        };
        let is_local = egress.is_local();
        if arrival.interest.hop_limit() == Some(0) && !is_local {
            self.count_drop(to, DropReason::HopLimit);
            return false;
        }
        let suppression = self.config.suppression;
        let record = OutRecord {
            face: to,
            nonce: arrival.nonce,
            non_discovery: arrival.non_discovery,
            sent_at: self.now,
            expiry: arrival.expiry,
            nack: None,
            suppression: suppression.initial,
        };
        let next = |interval| suppression.next(interval);
        self.pit.record_sent(id, record, next);
        if self.measurements.is_some() {
            self.measure_sent(to, arrival.interest.name(), arrival.hashes);
        }
        let fields = (arrival.fields).for_next_hop(self.token.as_ref(), arrival.non_discovery);
        let wire = arrival.interest.wire().clone();
        self.send(PacketKind::Interest, arrival.face, to, wire, fields);
        true
    }

    /// When an Interest that arrives now expires.
    fn expiry_of(&self, interest: &Interest, is_local: bool) -> Instant {
        let bound = match is_local {
            true => self.config.max_lifetime,
            false => self
                .config
                .max_lifetime
                .min(self.config.max_nonlocal_lifetime),
        };
        self.now + interest.lifetime().min(bound)
    }

    /// Sends an Interest back where it just came from, if that link carries Nacks.
    fn return_nack(&mut self, arrival: &Arrival<'_>, reason: NackReason) {
        let wire = arrival.interest.wire().clone();
        self.send_nack(arrival.face, wire, arrival.fields.pit_token.clone(), reason);
    }

    /// Sends what is pending under `prefix` to a next hop that it did not have before, where the strategy wants that.
    pub(crate) fn offer_new_next_hop(&mut self, prefix: &Name, face: FaceId) {
        let pending: Vec<_> = self
            .pit
            .iter()
            .filter(|(_, entry)| prefix.is_prefix_of(&entry.name))
            .filter_map(|(id, _)| self.pending_for_next_hop(id, face))
            .collect();
        for (id, ingress, interest, hashes) in pending {
            let arrival = Arrival {
                face: ingress,
                nonce: interest.nonce().expect("added when it arrived"),
                expiry: self.pit.get(id).expiry,
                interest: &interest,
                hashes: &hashes,
                fields: &LinkFields::default(),
                non_discovery: false,
            };
            self.outgoing_interest(id, &arrival, face);
        }
    }

    /// The Interest of an entry that may go to a new next hop, and where it came from.
    fn pending_for_next_hop(
        &self,
        id: EntryId,
        hop: FaceId,
    ) -> Option<(EntryId, FaceId, Interest, NameHashes)> {
        let entry = self.pit.get(id);
        let max_components = self.config.max_name_components;
        let hashes = self.hasher.hashes(&entry.name, max_components)?;
        let kind = self.strategy_for(&entry.name, &hashes);
        if !kind.strategy().wants_new_next_hops() {
            return None;
        }
        entry
            .in_records
            .iter()
            .filter(|record| record.expiry > self.now)
            .find_map(|record| {
                let interest = Interest::decode(record.wire.clone()).ok()?;
                let next_hops = self.fib.next_hops_for(&interest, &hashes, &self.config);
                let context = InterestContext {
                    now: self.now,
                    name: &entry.name,
                    ingress: record.face,
                    entry,
                    next_hops,
                    faces: &self.faces,
                    avoid: None,
                    non_discovery: record.fields.non_discovery(),
                    measured: None,
                };
                let leads_there = next_hops.iter().any(|next| next.face == hop);
                let is_wanted = leads_there && context.is_eligible(hop);
                is_wanted.then(|| (id, record.face, interest, hashes.clone()))
            })
    }
}
