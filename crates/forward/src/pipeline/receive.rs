//! From a whole packet to its pipeline.

use bytes::Bytes;
use namecast_packet::lp::NackReason;
use namecast_packet::{
    AnyNextRequest, ChunksHad, Data, Extensions, Interest, LpPacket, MAX_PACKET_SIZE, tlv,
};
use namecast_units::ByteSize;

use super::Forwarder;
use super::bundle::incoming_bundle;
use crate::counters::{BundleCounters, DropReason, PacketKind};
use crate::face::FaceId;
use crate::fields::LinkFields;
use crate::hop::{Event, Hops};
use crate::link::without_frame;
use crate::table::Face;

/// First octets of network packets: their types, which are below 253 and so stand as they are.
const BARE_INTEREST: u8 = tlv::INTEREST as u8;
const BARE_DATA: u8 = tlv::DATA as u8;

impl Forwarder {
    pub(super) fn receive_frame(&mut self, id: FaceId, frame: Bytes) -> Result<(), DropReason> {
        // Most frames are a network packet without a link header.
        if let [BARE_INTEREST | BARE_DATA, ..] = frame[..]
            && frame.len() <= MAX_PACKET_SIZE
        {
            self.tables.count_frame(id, &frame)?;
            let kind = kind_of(&frame);
            return self.receive_network_packet(id, kind, frame, &LinkFields::none());
        }
        self.tables.count_frame(id, &frame)?;
        if self.bundling.is_some()
            && frame.len() <= MAX_PACKET_SIZE
            && let Some((value, wire)) = LpPacket::split_bundle(&frame)
            && !value.is_empty()
        {
            let speaks = self
                .tables
                .faces
                .get(id)
                .is_some_and(Face::speaks_extensions);
            let interest = (value, speaks, Some(frame));
            return receive_bundle(
                self,
                id,
                (PacketKind::Data, wire),
                &LinkFields::none(),
                interest,
            );
        }
        let size = ByteSize::of(&frame);
        let mut packet = LpPacket::decode(frame).map_err(|_| DropReason::Malformed)?;
        without_frame(&mut packet, size);
        self.receive_packet(id, packet)
    }

    /// Takes a link packet that carries a network packet whole.
    pub(crate) fn receive_packet(
        &mut self,
        id: FaceId,
        mut packet: LpPacket,
    ) -> Result<(), DropReason> {
        let Some(wire) = packet.fragment.take() else {
            // Nothing but header fields.
            if self.hops.see_arrivals
                && let Some(value) = packet.extensions.get(Extensions::CHUNKS_HAD)
            {
                return receive_announcement(self, id, value);
            }
            if let Some(face) = self.tables.faces.get_mut(id)
                && packet.acks.is_empty()
            {
                face.counters.keep_alives += 1;
            }
            return Ok(());
        };
        if wire.len() > MAX_PACKET_SIZE {
            return Err(DropReason::PacketTooLarge);
        }
        let kind = match packet.nack {
            Some(reason) => PacketKind::Nack(reason),
            None => kind_of(&wire),
        };
        let face = self.tables.faces.get(id).ok_or(DropReason::UnknownFace)?;
        let speaks = face.speaks_extensions();
        let interest = packet.piggybacked_interest.take();
        let is_unoffered = !speaks
            && self.hops.see_arrivals
            && kind == PacketKind::Interest
            && packet.extensions.get(Extensions::ANY_NEXT).is_some();
        if is_unoffered {
            return refuse_unoffered(self, id, wire, packet.pit_token);
        }
        let fields = LinkFields::received(packet, kind, &face.config, speaks)?;
        match interest.filter(|value| !value.is_empty()) {
            Some(value) => receive_bundle(self, id, (kind, wire), &fields, (value, speaks, None)),
            None => self.receive_network_packet(id, kind, wire, &fields),
        }
    }

    /// Takes a network packet, and the fields that came in front of it.
    ///
    /// Packets are large values, so they stay where decoding left them.
    fn receive_network_packet(
        &mut self,
        id: FaceId,
        kind: PacketKind,
        wire: Bytes,
        fields: &LinkFields,
    ) -> Result<(), DropReason> {
        if wire.first() == Some(&BARE_INTEREST) {
            if kind == PacketKind::Interest && !self.tables.is_within_rate(self.now, id) {
                return Err(DropReason::InterestRate);
            }
            let mut decoded = Interest::decode(wire);
            let Ok(interest) = &mut decoded else {
                return Err(DropReason::Malformed);
            };
            self.tables.count_packet(id, kind)?;
            return match kind {
                PacketKind::Nack(reason) => self.incoming_nack(id, interest, reason, fields),
                _ => self.incoming_interest(id, interest, fields, None),
            };
        }
        let decoded = Data::decode(wire);
        let Ok(data) = &decoded else {
            return Err(DropReason::Malformed);
        };
        if kind != PacketKind::Data {
            return Err(DropReason::MisplacedField);
        }
        self.tables.count_packet(id, kind)?;
        self.incoming_data(id, data, fields, None)
    }
}

/// Takes the chunks that a neighbour has, which came without a packet.
fn receive_announcement(
    forwarder: &mut Forwarder,
    id: FaceId,
    value: &[u8],
) -> Result<(), DropReason> {
    let had = ChunksHad::decode(&Bytes::copy_from_slice(value));
    let had = had.ok_or(DropReason::Malformed)?;
    let hashes = forwarder.tables.hashes(&had.flow);
    let hashes = hashes.as_ref().ok_or(DropReason::NameTooLong)?;
    let fields = LinkFields::none();
    let event = Event {
        chunks_had: Some(&had),
        ..Event::about(&had.flow, hashes, (id, &fields))
    };
    let actions = forwarder.ask_hops(event, Hops::on_arrival);
    forwarder.originate(actions);
    Ok(())
}

/// Takes a network packet in front of which came an Interest, if it may have come; with the frame if there was nothing else in it.
fn receive_bundle(
    forwarder: &mut Forwarder,
    id: FaceId,
    (kind, wire): (PacketKind, Bytes),
    fields: &LinkFields,
    (value, speaks, frame): (Bytes, bool, Option<Bytes>),
) -> Result<(), DropReason> {
    let refuse: fn(&mut BundleCounters) = if forwarder.bundling.is_none() || !speaks {
        |count| count.refused_unannounced += 1
    } else if kind != PacketKind::Data {
        |count| count.refused_misplaced += 1
    } else {
        let data = Data::decode(wire).map_err(|_| DropReason::Malformed)?;
        forwarder.tables.count_packet(id, kind)?;
        return incoming_bundle(forwarder, id, &data, fields, (value, frame));
    };
    forwarder.tables.count_bundle(id, refuse);
    forwarder.receive_network_packet(id, kind, wire, fields)
}

/// What a network packet is that nobody returned.
pub(super) fn kind_of(wire: &[u8]) -> PacketKind {
    match wire.first() {
        Some(&BARE_INTEREST) => PacketKind::Interest,
        _ => PacketKind::Data,
    }
}

/// Sends back a request for any next packets of a neighbour that said of no extension field that it speaks it, and asks whether it does.
#[cold]
fn refuse_unoffered(
    forwarder: &mut Forwarder,
    id: FaceId,
    wire: Bytes,
    token: Option<Bytes>,
) -> Result<(), DropReason> {
    forwarder.tables.counters.any_next.refused_unoffered += 1;
    let mut fields = LinkFields::for_nack(token);
    let refusal = AnyNextRequest::NOT_HERE_FIELD;
    fields
        .to_mut()
        .extensions
        .set(Extensions::ANY_NEXT, refusal);
    let kind = PacketKind::Nack(NackReason::NoRoute);
    let is_interest = wire.first() == Some(&BARE_INTEREST);
    let has_nacks = (forwarder.tables.faces.get(id)).is_some_and(Face::is_point_to_point);
    if is_interest && has_nacks {
        forwarder.send(None, (kind, id, id), wire, fields);
    }
    Err(DropReason::AnyNext)
}
