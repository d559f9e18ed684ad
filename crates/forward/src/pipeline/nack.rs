//! Incoming and outgoing Nacks.

use bytes::Bytes;
use namecast_packet::Interest;
use namecast_packet::lp::NackReason;

use super::Forwarder;
use super::interest::offer_arrival;
use crate::counters::{DropReason, PacketKind};
use crate::face::FaceId;
use crate::fields::LinkFields;
use crate::hop::{Decision, Event};
use crate::table::{EntryId, Face, Outcome};

impl Forwarder {
    pub(super) fn incoming_nack(
        &mut self,
        face: FaceId,
        interest: &Interest,
        reason: NackReason,
        fields: &LinkFields,
    ) -> Result<(), DropReason> {
        let tables = &mut self.tables;
        let ingress = tables.faces.get(face).ok_or(DropReason::UnknownFace)?;
        if !ingress.is_point_to_point() {
            return Err(DropReason::UnexpectedNack);
        }
        let hashes = tables.hashes(interest.name());
        let hashes = hashes.ok_or(DropReason::NameTooLong)?;
        if self.hops.see_arrivals {
            let came_back = (interest, Some(reason));
            let taken = offer_arrival(self, came_back, &hashes, (face, fields));
            if let Some(done) = taken {
                return done;
            }
        }
        let tables = &mut self.tables;
        let id = tables.pit.find(interest, &hashes);
        let id = id.ok_or(DropReason::UnexpectedNack)?;
        let mut records = tables.pit.get_mut(id).out_records.iter_mut();
        let record = records
            .find(|record| record.face == face && Some(record.nonce) == interest.nonce())
            .ok_or(DropReason::UnexpectedNack)?;
        record.nack = Some(reason);
        let (choice, &kind) = self.strategies.find(interest.name(), &hashes);
        self.strategies.count(choice, |choice| choice.nacks += 1);
        let event = Event {
            interest: Some(interest),
            nack: Some(reason),
            entries: &[id],
            ..Event::about(interest.name(), &hashes, (face, fields))
        };
        let actions = self.ask_hops(event, |hops, now, context| hops.on_nack(kind, now, context));
        self.carry_out_nack(id, face, &actions.decision);
        let entry = self.tables.pit.get(id);
        if entry.in_records.is_empty() || !entry.has_pending_out_record(self.now) {
            self.tables.end(self.now, id, Outcome::Refused);
        }
        self.originate(actions);
        Ok(())
    }

    fn carry_out_nack(&mut self, id: EntryId, from: FaceId, decision: &Decision) {
        match decision {
            Decision::RejectTo(downstream, reason) => self.outgoing_nack(id, *downstream, *reason),
            Decision::Reject(reason) => {
                let records = self.tables.pit.get(id).in_records.iter();
                let downstreams: Vec<_> = records.map(|record| record.face).collect();
                for downstream in downstreams {
                    self.outgoing_nack(id, downstream, *reason);
                }
            }
            Decision::Forward(faces) | Decision::Retransmit(faces) | Decision::Follow(faces) => {
                self.send_pending(id, None, faces);
            }
            Decision::Drop(reason) => self.tables.count_drop(from, *reason),
            Decision::Continue
            | Decision::Wait
            | Decision::Suppress
            | Decision::Probe { .. }
            | Decision::Answer(_) => {}
        }
    }

    /// Tells a downstream that its Interest failed; it waits no longer.
    pub(super) fn outgoing_nack(&mut self, id: EntryId, to: FaceId, reason: NackReason) {
        // The others on a shared link may have heard the Interest and still answer.
        if !self
            .tables
            .faces
            .get(to)
            .is_some_and(Face::is_point_to_point)
        {
            return;
        }
        if let Some(record) = self.tables.take_in_record(id, to) {
            self.send_nack(to, record.wire, record.fields.token_to_send(), reason);
        }
    }

    /// Sends a Nack for the Interest `wire`, if the face's link carries Nacks.
    pub(super) fn send_nack(
        &mut self,
        to: FaceId,
        wire: Bytes,
        pit_token: Option<Bytes>,
        reason: NackReason,
    ) {
        if !self
            .tables
            .faces
            .get(to)
            .is_some_and(Face::is_point_to_point)
        {
            return;
        }
        let fields = LinkFields::for_nack(pit_token);
        self.send(None, (PacketKind::Nack(reason), to, to), wire, fields);
    }
}
