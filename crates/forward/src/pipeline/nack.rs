//! Incoming and outgoing Nacks.

use bytes::Bytes;
use namecast_packet::Interest;
use namecast_packet::lp::NackReason;

use crate::counters::DropReason;
use crate::face::{Face, FaceId};
use crate::fields::{LinkFields, PacketKind};
use crate::forwarder::Forwarder;
use crate::strategy::NackDecision;
use crate::table::pit::EntryId;

impl Forwarder {
    pub(super) fn incoming_nack(
        &mut self,
        face: FaceId,
        interest: &Interest,
        reason: NackReason,
    ) -> Result<(), DropReason> {
        let ingress = self.faces.get(face).ok_or(DropReason::UnknownFace)?;
        if !ingress.is_point_to_point() {
            return Err(DropReason::UnexpectedNack);
        }
        let hashes = self
            .hasher
            .hashes(interest.name(), self.config.max_name_components)
            .ok_or(DropReason::NameTooLong)?;
        let id = self
            .pit
            .find(interest, &hashes)
            .ok_or(DropReason::UnexpectedNack)?;
        let entry = self.pit.get_mut(id);
        let mut records = entry.out_records.iter_mut();
        let record = records
            .find(|record| record.face == face && Some(record.nonce) == interest.nonce())
            .ok_or(DropReason::UnexpectedNack)?;
        record.nack = Some(reason);
        let has_followed_route = record.non_discovery;
        // Without a reason, as from a producer that has no such Data, it says nothing of the path.
        if self.measurements.is_some() && reason != NackReason::None {
            self.measure_nack(face, interest.name(), &hashes);
        }
        let (choice, kind) = self.strategies.find(interest.name(), &hashes);
        let kind = *kind;
        self.strategies.count(choice, |choice| choice.nacks += 1);
        if kind.learns() && has_followed_route && reason == NackReason::NoRoute {
            self.unlearn(interest.name(), &hashes, face);
        }
        let entry = self.pit.get(id);
        match kind.strategy().after_nack(self.now, entry) {
            NackDecision::Wait => {}
            NackDecision::ReturnTo(downstream, reason) => {
                self.outgoing_nack(id, downstream, reason)
            }
            NackDecision::ReturnToAll(reason) => {
                let records = self.pit.get(id).in_records.iter();
                let downstreams: Vec<_> = records.map(|record| record.face).collect();
                for downstream in downstreams {
                    self.outgoing_nack(id, downstream, reason);
                }
            }
        }
        let entry = self.pit.get(id);
        if entry.in_records.is_empty() || !entry.has_pending_out_record(self.now) {
            self.refuse(id);
        }
        Ok(())
    }

    /// Tells a downstream that its Interest failed; it waits no longer.
    pub(super) fn outgoing_nack(&mut self, id: EntryId, to: FaceId, reason: NackReason) {
        // The others on a shared link may have heard the Interest and still answer.
        if !self.faces.get(to).is_some_and(Face::is_point_to_point) {
            return;
        }
        self.send_back(id, to, reason);
    }

    /// Forgets that a downstream waits, and tells it if its link carries Nacks.
    pub(super) fn send_back(&mut self, id: EntryId, to: FaceId, reason: NackReason) {
        if let Some(record) = self.take_in_record(id, to) {
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
        if !self.faces.get(to).is_some_and(Face::is_point_to_point) {
            return;
        }
        let fields = LinkFields::for_nack(pit_token);
        self.send(PacketKind::Nack(reason), to, to, wire, fields);
    }
}
