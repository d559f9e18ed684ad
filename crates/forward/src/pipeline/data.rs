//! Incoming and outgoing Data.

use std::borrow::Cow;

use namecast_packet::{Data, Extensions};
use namecast_units::Instant;
use smallvec::SmallVec;

use super::Forwarder;
use super::bundle::{Seat, Seats};
use crate::counters::{DropReason, PacketKind};
use crate::face::FaceId;
use crate::fields::{KeptFields, LinkFields};
use crate::hop::{Actions, Copied, Decision, Event, Extras, Hops};
use crate::name_hash::NameHashes;
use crate::table::{EntryId, Face, Outcome, Tables, is_localhost};

/// Data on their way through the node.
struct Arrival<'a> {
    /// Where they came from.
    face: FaceId,
    data: &'a Data,
    hashes: &'a NameHashes,
    fields: &'a LinkFields,
}

/// Who gets a Data packet, and what its Interest said.
struct Downstream {
    face: FaceId,
    fields: KeptFields,
    /// Whether it has a use for a prefix announcement.
    looks_for_route: bool,
    /// Whether it has a use for a path label.
    asks_for_path: bool,
}

impl Downstream {
    /// One that did not ask.
    fn unasked(face: FaceId, fields: KeptFields) -> Self {
        Self {
            face,
            fields,
            looks_for_route: false,
            asks_for_path: false,
        }
    }
}

#[derive(Default)]
struct Downstreams(SmallVec<[Downstream; 4]>);

impl Downstreams {
    /// Adds the faces that wait in an entry, but not the one that the Data came from unless its link is ad hoc.
    ///
    /// A face that waits in several entries gets the Data once per PIT token, since it may tell its own entries apart by
    /// nothing else; without tokens, once.
    fn add(&mut self, now: Instant, tables: &Tables, id: EntryId, ingress: FaceId) {
        let may_return = tables.faces.get(ingress).is_some_and(Face::is_ad_hoc);
        for record in &tables.pit.get(id).in_records {
            let waits = record.expiry > now && (record.face != ingress || may_return);
            if !waits {
                continue;
            }
            let looks_for_route = !record.fields.non_discovery();
            let asks_for_path = record.fields.asks_for_path();
            let is_it = |other: &&mut Downstream| {
                other.face == record.face && other.fields.pit_token() == record.fields.pit_token()
            };
            match self.0.iter_mut().find(is_it) {
                Some(known) => {
                    known.looks_for_route |= looks_for_route;
                    known.asks_for_path |= asks_for_path;
                }
                None => self.0.push(Downstream {
                    face: record.face,
                    fields: record.fields.clone(),
                    looks_for_route,
                    asks_for_path,
                }),
            }
        }
    }

    /// Adds a face that did not ask, unless it is there.
    fn add_unasked(&mut self, face: FaceId) {
        if self.0.iter().all(|other| other.face != face) {
            self.0
                .push(Downstream::unasked(face, KeptFields::default()));
        }
    }

    /// Takes those out that get a copy of their own with the same PIT token.
    #[cold]
    fn leave_out(&mut self, copies: &[Copied]) {
        let has_copy = |it: &Downstream| {
            copies.iter().any(|copy| {
                let token = copy.fields.pit_token.as_deref().unwrap_or_default();
                copy.face == it.face && token == it.fields.pit_token()
            })
        };
        self.0.retain(|it| !has_copy(it));
    }
}

impl Forwarder {
    pub(super) fn incoming_data(
        &mut self,
        face: FaceId,
        data: &Data,
        fields: &LinkFields,
        seats: Option<&mut Seats>,
    ) -> Result<(), DropReason> {
        let ingress = self.tables.faces.get(face);
        let ingress = ingress.ok_or(DropReason::UnknownFace)?;
        if is_localhost(data.name()) && !ingress.is_local() {
            return Err(DropReason::Scope);
        }
        let hashes = self.tables.hashes(data.name());
        let hashes = &hashes.ok_or(DropReason::NameTooLong)?;
        if hashes.has_digest() {
            return Err(DropReason::DigestInDataName);
        }
        let arrival = Arrival {
            face,
            data,
            hashes,
            fields,
        };
        let entries = self.tables.pit.matches(data, hashes);
        let actions = match self.hops.see_data(fields) {
            true => {
                let event = Event {
                    data: Some(data),
                    entries: &entries,
                    ..Event::about(data.name(), hashes, (face, fields))
                };
                self.ask_hops(event, Hops::on_data)
            }
            false => Actions::default(),
        };
        if let Decision::Drop(reason) = actions.decision {
            self.originate(actions);
            return Err(reason);
        }
        // Even to nobody: a hop has a use for it.
        let is_forwarded = matches!(actions.decision, Decision::Forward(_));
        if entries.is_empty() && !is_forwarded {
            self.originate(actions);
            return self.unsolicited_data(&arrival);
        }
        if !fields.no_cache {
            let store = &mut self.tables.content_store;
            store.insert_for(self.now, (data, hashes), actions.freshness(data));
        }
        self.deliver(&arrival, &entries, &actions, seats);
        self.originate(actions);
        Ok(())
    }

    /// Answers pending Interests with Data of a hop. Returns whether entry `id` is among them.
    pub(super) fn answer_by_hop(&mut self, id: EntryId, data: &Data, actions: &Actions) -> bool {
        let Some(hashes) = self.tables.hashes(data.name()) else {
            return false;
        };
        let entries = self.tables.pit.matches(data, &hashes);
        let is_answer = entries.contains(&id);
        if is_answer {
            let arrival = Arrival {
                face: FaceId::CONTENT_STORE,
                data,
                hashes: &hashes,
                fields: &LinkFields::none(),
            };
            self.deliver(&arrival, &entries, actions, None);
        }
        is_answer
    }

    /// Sends Data to all who wait in these entries, which end so, and to those whom hops choose besides. `seats` are those of the
    /// former.
    fn deliver(
        &mut self,
        arrival: &Arrival<'_>,
        entries: &[EntryId],
        actions: &Actions,
        mut seats: Option<&mut Seats>,
    ) {
        let mut downstreams = Downstreams::default();
        let outcome = Outcome::Satisfied(arrival.data.freshness());
        for &id in entries {
            downstreams.add(self.now, &self.tables, id, arrival.face);
            let choice = self.tables.end(self.now, id, outcome);
            self.strategies
                .count(choice, |choice| choice.satisfied += 1);
        }
        let copies = actions.extras.as_deref().map_or(&[][..], |it| &it.copies);
        if !copies.is_empty() {
            downstreams.leave_out(copies);
        }
        let waiting = downstreams.0.len();
        if let Decision::Forward(faces) = &actions.decision {
            faces.iter().for_each(|&face| downstreams.add_unasked(face));
        }
        let extras = actions.extras.as_deref();
        let announcement = extras.and_then(|extras| extras.prefix_announcement.as_ref());
        let quiet = extras.and_then(Extras::without_path);
        for (number, downstream) in downstreams.0.iter().enumerate() {
            let extras = match &quiet {
                Some(quiet) if !downstream.asks_for_path => Some(quiet),
                _ => extras,
            };
            let announcement = announcement.filter(|_| downstream.looks_for_route);
            let kept = &downstream.fields;
            let mut fields = arrival.fields.for_downstream(kept, announcement);
            Actions::apply(extras, &mut fields);
            let passage = (PacketKind::Data, arrival.face, downstream.face);
            let wire = arrival.data.wire().clone();
            let place = self.output.ready();
            self.send(extras, passage, wire, fields);
            if let Some(seats) = seats.as_deref_mut()
                && number < waiting
                && self.output.ready() > place
            {
                let face = downstream.face;
                seats.push(Seat { face, place });
            }
        }
        for copy in copies {
            send_copy(self, arrival, copy, extras);
        }
    }

    /// Caches Data that nobody asked for, if the policy is so and the Data may be cached at all.
    fn unsolicited_data(&mut self, arrival: &Arrival<'_>) -> Result<(), DropReason> {
        let tables = &mut self.tables;
        let is_local = tables.is_local(arrival.face);
        if arrival.fields.no_cache || !tables.config.content_store.unsolicited.admits(is_local) {
            return Err(DropReason::Unsolicited);
        }
        tables.counters.unsolicited_cached += 1;
        let store = &mut tables.content_store;
        store.insert(self.now, arrival.data, arrival.hashes);
        Ok(())
    }
}

/// Sends Data to a face that a hop has fields of its own for; others that hops set go with them.
#[inline(never)]
fn send_copy(
    forwarder: &mut Forwarder,
    arrival: &Arrival<'_>,
    copy: &Copied,
    extras: Option<&Extras>,
) {
    let mut fields = copy.fields.clone();
    fields.congestion_mark = arrival.fields.congestion_mark;
    for (number, octets) in extras.into_iter().flat_map(|it| it.extensions().iter()) {
        if number != Extensions::PATH_LABEL && fields.extensions.get(number).is_none() {
            fields.extensions.set(number, octets);
        }
    }
    let mut fields = Cow::Owned(fields);
    Actions::apply(extras, &mut fields);
    let passage = (PacketKind::Data, arrival.face, copy.face);
    forwarder.send(extras, passage, arrival.data.wire().clone(), fields);
}
