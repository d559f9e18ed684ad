//! Incoming and outgoing Interests.

use std::borrow::Cow;

use bytes::Bytes;
use namecast_packet::lp::NackReason;
use namecast_packet::{Data, Interest, Name, Nonce};
use namecast_units::Instant;

use super::Forwarder;
use super::bundle::{Bundle, Ride, ride, send_on_board};
use crate::counters::{DropReason, PacketKind};
use crate::face::FaceId;
use crate::fields::{KeptFields, LinkFields};
use crate::hop::{Actions, Decision, Event, Extras, Faces, Hops, StrategyKind};
use crate::name_hash::NameHashes;
use crate::table::pit::{InRecord, OutRecord, Shortage};
use crate::table::{EntryId, NextHops, Outcome, is_localhost};

/// An Interest on its way through the node.
#[derive(Clone, Copy)]
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
    /// Whether its face waits for an equal one already.
    is_retransmission: bool,
    /// What hops want of what leaves.
    extras: Option<&'a Extras>,
    /// The Data that it rides on.
    ride: Option<Ride<'a>>,
}

impl Forwarder {
    pub(super) fn incoming_interest(
        &mut self,
        face: FaceId,
        interest: &mut Interest,
        fields: &LinkFields,
        bundle: Option<&Bundle<'_>>,
    ) -> Result<(), DropReason> {
        if interest.nonce().is_none() {
            // Other nodes drop Interests without a Nonce.
            interest.set_nonce(Nonce::draw(&mut self.random));
        }
        if let Some(hops) = interest.hop_limit() {
            let left = hops.checked_sub(1).ok_or(DropReason::HopLimit)?;
            interest.set_hop_limit(left);
        }
        let is_local = self.tables.is_local(face);
        if is_localhost(interest.name()) && !is_local {
            return Err(DropReason::Scope);
        }
        let computed;
        let hashes = match bundle.and_then(|bundle| bundle.hashes.as_ref()) {
            Some(known) => known,
            None => {
                computed = self.tables.hashes(interest.name());
                computed.as_ref().ok_or(DropReason::NameTooLong)?
            }
        };
        if self.hops.see_arrivals
            && !fields.extensions.is_empty()
            && let Some(done) = offer_arrival(self, (interest, None), hashes, (face, fields))
        {
            return done;
        }
        let ride = bundle.and_then(|bundle| ride(self, bundle, (interest, hashes), face));
        let arrival = Arrival {
            face,
            nonce: interest.nonce().expect("added if it was missing"),
            expiry: self.now
                + self
                    .tables
                    .config
                    .lifetime_of(interest.lifetime(), is_local),
            interest,
            hashes,
            fields,
            non_discovery: fields.non_discovery,
            is_retransmission: false,
            extras: None,
            ride,
        };
        let transmission = self
            .tables
            .hasher
            .transmission(hashes.whole(), arrival.nonce);
        let known = self.tables.pit.find(arrival.interest, arrival.hashes);
        if let Some(id) = known
            && self.came_another_way(id, &arrival)
        {
            wait_as_well(self, id, &arrival);
            return Ok(());
        }
        if self.tables.was_here(self.now, transmission)
            || known.is_some_and(|id| self.tables.is_loop(id, face, arrival.nonce))
        {
            self.send_nack(
                arrival.face,
                arrival.interest.wire().clone(),
                arrival.fields.pit_token.clone(),
                NackReason::Duplicate,
            );
            return Err(DropReason::Loop);
        }
        let is_pending = known.is_some_and(|id| !self.tables.pit.get(id).in_records.is_empty());
        if !is_pending && self.answer_from_content_store(&arrival) {
            return Ok(());
        }
        self.content_store_miss(known, &arrival)
    }

    /// Whether this copy of a pending Interest came by another way than the one that is pending, from a neighbour who asks
    /// all ways at once. Data then goes back by each, so that one of them may fail and nothing is lost. Only for
    /// multicast: elsewhere, as in NFD, a second copy is a loop. If it is one here, an Interest is still never sent on
    /// twice, and what comes back is one unsolicited Data more.
    fn came_another_way(&self, id: EntryId, arrival: &Arrival<'_>) -> bool {
        let entry = self.tables.pit.get(id);
        let mut waiting = entry.in_records.iter();
        entry.in_record(arrival.face).is_none()
            && entry.out_record(arrival.face).is_none()
            && waiting.any(|record| record.nonce == arrival.nonce)
            && !self.tables.has_used_quota(arrival.face)
            && self
                .tables
                .pit
                .shortage(false, arrival.interest.wire().len(), false)
                .is_none()
            && self
                .strategies
                .find(arrival.interest.name(), arrival.hashes)
                .1
                == &StrategyKind::Multicast
    }

    fn answer_from_content_store(&mut self, arrival: &Arrival<'_>) -> bool {
        let tables = &mut self.tables;
        let found = (tables.content_store).find(self.now, arrival.interest, arrival.hashes);
        let Some(wire) = found else {
            tables.counters.content_store_misses += 1;
            return false;
        };
        let actions = match self.hops.see_all() {
            true => {
                let data = Data::decode(wire.clone()).expect("it was decoded when it came");
                let event = Event {
                    data: Some(&data),
                    ..arrival.event()
                };
                self.ask_hops(event, Hops::on_cache_hit)
            }
            false => Actions::default(),
        };
        let is_answered = matches!(actions.decision, Decision::Continue | Decision::Drop(_));
        if let Decision::Drop(reason) = actions.decision {
            self.tables.count_drop(arrival.face, reason);
        } else if is_answered {
            self.tables.counters.content_store_hits += 1;
            let extras = actions.extras.as_deref();
            let announcement = extras.and_then(|extras| extras.prefix_announcement.as_ref());
            let mut fields = arrival.fields.for_answer_from_cache(announcement);
            Actions::apply(extras, &mut fields);
            let passage = (PacketKind::Data, FaceId::CONTENT_STORE, arrival.face);
            self.send(extras, passage, wire, fields);
        } else {
            self.tables.counters.content_store_misses += 1;
        }
        self.originate(actions);
        is_answered
    }

    fn content_store_miss(
        &mut self,
        mut known: Option<EntryId>,
        arrival: &Arrival<'_>,
    ) -> Result<(), DropReason> {
        let interest = arrival.interest;
        let waits =
            known.is_some_and(|id| self.tables.pit.get(id).in_record(arrival.face).is_some());
        if !waits && self.tables.has_used_quota(arrival.face) {
            self.send_nack(
                arrival.face,
                arrival.interest.wire().clone(),
                arrival.fields.pit_token.clone(),
                NackReason::Congestion,
            );
            return Err(DropReason::FaceQuota);
        }
        let (octets, is_local) = (interest.wire().len(), is_localhost(interest.name()));
        while let Some(shortage) = self.tables.pit.shortage(known.is_none(), octets, is_local) {
            if !self.evict(shortage) {
                self.send_nack(
                    arrival.face,
                    arrival.interest.wire().clone(),
                    arrival.fields.pit_token.clone(),
                    NackReason::Congestion,
                );
                return Err(DropReason::PitFull);
            }
            // What gave way may be just this entry.
            known = self.tables.pit.find(interest, arrival.hashes);
        }
        if known.is_none()
            && self.tables.pit.count_alike(arrival.hashes.whole())
                >= self.tables.config.max_same_hash
        {
            self.send_nack(
                arrival.face,
                arrival.interest.wire().clone(),
                arrival.fields.pit_token.clone(),
                NackReason::Congestion,
            );
            return Err(DropReason::PitFull);
        }
        let (wire, name) = self.tables.kept(interest);
        let id = known.unwrap_or_else(|| {
            let suppression = self.tables.config.pit.suppression.initial;
            self.tables
                .pit
                .insert(interest, name, arrival.hashes, suppression)
        });
        self.tables.record_received(id, arrival.record(wire));
        if let Some(chosen) = arrival.fields.next_hop_face {
            self.outgoing_interest(id, arrival, chosen);
            return Ok(());
        }
        let is_retransmission = waits;
        self.carry_out(
            id,
            &Arrival {
                is_retransmission,
                ..*arrival
            },
        )
    }

    /// Takes the longest-waiting Interest from the face that has most of the full table, and tells it so. Returns whether there
    /// was one.
    fn evict(&mut self, shortage: Shortage) -> bool {
        let Some((face, longest)) = self.tables.pit.largest_share(shortage) else {
            return false;
        };
        self.tables.count_drop(face, DropReason::PitFull);
        if let Some(record) = self.tables.take_in_record(longest, face) {
            let token = record.fields.token_to_send();
            self.send_nack(face, record.wire, token, NackReason::Congestion);
        }
        if self.tables.pit.get(longest).in_records.is_empty() {
            self.tables.end(self.now, longest, Outcome::Refused);
        }
        true
    }

    /// Asks the hops and does as they say.
    fn carry_out(&mut self, id: EntryId, arrival: &Arrival<'_>) -> Result<(), DropReason> {
        let actions = self.decide(id, arrival);
        let with_extras;
        let arrival = match actions.extras.as_deref() {
            None => arrival,
            extras => {
                with_extras = Arrival { extras, ..*arrival };
                &with_extras
            }
        };
        let done = match &actions.decision {
            Decision::Forward(faces) => {
                self.send_to_all(id, arrival, faces);
                Ok(())
            }
            Decision::Follow(faces) => {
                let arrival = &Arrival {
                    non_discovery: true,
                    ..*arrival
                };
                self.send_to_all(id, arrival, faces);
                Ok(())
            }
            Decision::Probe { best, probe } => {
                self.outgoing_interest(id, arrival, *best);
                self.send_probe(id, arrival, *probe);
                Ok(())
            }
            Decision::Retransmit(faces) => {
                let suppression = self.tables.config.pit.suppression;
                let entry = self.tables.pit.get_mut(id);
                entry.suppression = suppression.next(entry.suppression);
                self.send_to_all(id, arrival, faces);
                Ok(())
            }
            Decision::Suppress => {
                self.tables.counters.aggregated += 1;
                Ok(())
            }
            Decision::Continue | Decision::Wait => Ok(()),
            Decision::Reject(reason) | Decision::RejectTo(_, reason) => {
                self.outgoing_nack(id, arrival.face, *reason);
                // Others may wait for what an upstream was asked.
                let entry = self.tables.pit.get(id);
                if entry.in_records.is_empty() || !entry.has_pending_out_record(self.now) {
                    self.tables.end(self.now, id, Outcome::Refused);
                }
                Err(DropReason::NoRoute)
            }
            Decision::Answer(data) => match self.answer_by_hop(id, data, &actions) {
                true => Ok(()),
                false => Err(DropReason::Unsolicited),
            },
            Decision::Drop(reason) => {
                self.tables.take_in_record(id, arrival.face);
                if self.tables.pit.get(id).in_records.is_empty() {
                    self.tables.end(self.now, id, Outcome::Refused);
                }
                Err(*reason)
            }
        };
        self.originate(actions);
        done
    }

    #[inline]
    fn decide(&mut self, id: EntryId, arrival: &Arrival<'_>) -> Actions {
        let tables = &self.tables;
        let was_sent = !tables.pit.get(id).out_records.is_empty();
        let next_hops = match &arrival.ride {
            Some(ride) => core::slice::from_ref(&ride.hop),
            None => tables.next_hops(arrival.interest, arrival.hashes),
        };
        let event = Event {
            entries: &[id],
            next_hops: NextHops::from_slice(next_hops),
            ..arrival.event()
        };
        let (choice, actions) = self.ask_hops(event, Hops::on_interest);
        self.tables.pit.get_mut(id).choice = choice;
        self.strategies.count(choice, |counters| {
            actions.decision.count(was_sent, counters)
        });
        actions
    }

    fn send_to_all(&mut self, id: EntryId, arrival: &Arrival<'_>, faces: &Faces) {
        for &face in faces {
            self.outgoing_interest(id, arrival, face);
        }
    }

    /// Sends an Interest to one face more, as a transmission of its own, since its ways may meet again.
    fn send_probe(&mut self, id: EntryId, arrival: &Arrival<'_>, to: FaceId) {
        let nonce = Nonce::draw(&mut self.random);
        let probe = Arrival {
            nonce,
            interest: &arrival.interest.with_nonce(nonce),
            ride: None,
            ..*arrival
        };
        self.outgoing_interest(id, &probe, to);
    }

    /// Sends an Interest and keeps record of it, unless it must not go there.
    fn outgoing_interest(&mut self, id: EntryId, arrival: &Arrival<'_>, to: FaceId) {
        let Some(egress) = self.tables.faces.get(to) else {
            return self.tables.count_drop(to, DropReason::UnknownFace);
        };
        if arrival.interest.hop_limit() == Some(0) && !egress.is_local() {
            return self.tables.count_drop(to, DropReason::HopLimit);
        }
        let suppression = self.tables.config.pit.suppression;
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
        self.tables.pit.record_sent(id, record, next);
        let token = self.token.as_ref();
        let mut fields = arrival.fields.for_next_hop(token, arrival.non_discovery);
        Actions::apply(arrival.extras, &mut fields);
        if let Some(ride) = arrival.ride.filter(|ride| ride.hop.face == to) {
            let has_fields = matches!(fields, Cow::Owned(_)) || arrival.extras.is_some();
            if send_on_board(self, &ride, arrival.interest, has_fields) {
                return;
            }
        }
        let passage = (PacketKind::Interest, arrival.face, to);
        let wire = arrival.interest.wire().clone();
        self.send(arrival.extras, passage, wire, fields);
    }

    /// Sends what is pending under `prefix` to a next hop that it did not have before, where the strategy wants that.
    pub(crate) fn offer_new_next_hop(&mut self, prefix: &Name, face: FaceId) {
        let (tables, strategies) = (&self.tables, &self.strategies);
        let entries = tables.pit.iter();
        let of_prefix = entries.filter(|(_, entry)| prefix.is_prefix_of(&entry.name));
        let pending = of_prefix.filter_map(|(id, entry)| {
            let hashes = tables.hashes(&entry.name)?;
            let (_, kind) = strategies.find(&entry.name, &hashes);
            let wants = kind.wants_new_next_hops();
            let ingress = wants.then(|| tables.pending_for(self.now, id, &hashes, face));
            Some((id, ingress.flatten()?))
        });
        let pending: Vec<_> = pending.collect();
        for (id, ingress) in pending {
            self.send_pending(id, Some(ingress), &Faces::from_iter([face]));
        }
    }

    /// Sends an Interest that is pending to these faces, as the face sent it that it came from, or whoever was first.
    pub(super) fn send_pending(&mut self, id: EntryId, ingress: Option<FaceId>, faces: &Faces) {
        let entry = self.tables.pit.get(id);
        let mut records = entry.in_records.iter();
        let Some(record) = records.find(|it| ingress.is_none_or(|face| it.face == face)) else {
            return;
        };
        let Ok(interest) = Interest::decode(record.wire.clone()) else {
            return;
        };
        let Some(hashes) = self.tables.hashes(&entry.name) else {
            return;
        };
        let arrival = Arrival {
            face: record.face,
            nonce: interest.nonce().expect("added when it arrived"),
            expiry: entry.expiry,
            interest: &interest,
            hashes: &hashes,
            fields: &LinkFields::default(),
            non_discovery: false,
            is_retransmission: false,
            extras: None,
            ride: None,
        };
        self.send_to_all(id, &arrival, faces);
    }
}

/// Records a copy of a pending Interest that came another way.
fn wait_as_well(forwarder: &mut Forwarder, id: EntryId, arrival: &Arrival<'_>) {
    let (wire, _) = forwarder.tables.kept(arrival.interest);
    forwarder.tables.record_received(id, arrival.record(wire));
    forwarder.tables.counters.aggregated += 1;
    let choice = forwarder.tables.pit.get(id).choice;
    forwarder.strategies.count(choice, |choice| {
        choice.interests += 1;
        choice.suppressed += 1;
    });
}

/// Has hops take an Interest that arrived, or came back for a reason, before anything else is made of it. Returns what became of it
/// if one did.
#[cold]
pub(super) fn offer_arrival(
    forwarder: &mut Forwarder,
    (interest, nack): (&Interest, Option<NackReason>),
    hashes: &NameHashes,
    (face, fields): (FaceId, &LinkFields),
) -> Option<Result<(), DropReason>> {
    let next_hops = forwarder.tables.next_hops(interest, hashes);
    let event = Event {
        interest: Some(interest),
        nack,
        next_hops: NextHops::from_slice(next_hops),
        ..Event::about(interest.name(), hashes, (face, fields))
    };
    let actions = forwarder.ask_hops(event, Hops::on_arrival);
    let done = match actions.decision {
        Decision::Continue => None,
        Decision::Drop(reason) => Some(Err(reason)),
        _ => Some(Ok(())),
    };
    forwarder.originate(actions);
    done
}

impl<'a> Arrival<'a> {
    #[inline(always)]
    fn event(&self) -> Event<'a> {
        Event {
            interest: Some(self.interest),
            is_retransmission: self.is_retransmission,
            ..Event::about(self.interest.name(), self.hashes, (self.face, self.fields))
        }
    }

    /// That the downstream waits, as the PIT keeps it.
    fn record(&self, wire: Bytes) -> InRecord {
        InRecord {
            face: self.face,
            nonce: self.nonce,
            expiry: self.expiry,
            fields: KeptFields::new(self.fields),
            wire,
        }
    }
}
