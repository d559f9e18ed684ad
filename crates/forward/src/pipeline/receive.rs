//! From a whole packet to its pipeline.

use bytes::Bytes;
use namecast_packet::{Data, Interest, LpPacket, MAX_PACKET_SIZE, tlv};
use namecast_units::ByteSize;

use crate::counters::DropReason;
use crate::extension::Hook;
use crate::face::FaceId;
use crate::fields::{LinkFields, PacketKind};
use crate::forwarder::Forwarder;
use crate::link::without_frame;

/// First octets of network packets: their types, which are below 253 and so stand as they are.
const BARE_INTEREST: u8 = tlv::INTEREST as u8;
const BARE_DATA: u8 = tlv::DATA as u8;

impl Forwarder {
    pub(crate) fn receive(&mut self, face: FaceId, frame: Bytes) {
        if let Err(reason) = self.receive_frame(face, frame) {
            self.count_drop(face, reason);
        }
    }

    fn receive_frame(&mut self, id: FaceId, frame: Bytes) -> Result<(), DropReason> {
        // Most frames are a network packet without a link header.
        if let [BARE_INTEREST | BARE_DATA, ..] = frame[..]
            && frame.len() <= MAX_PACKET_SIZE
        {
            self.count_frame(id, &frame)?;
            let kind = kind_of(&frame);
            return self.receive_network_packet(id, kind, frame, &mut LinkFields::default());
        }
        self.count_frame(id, &frame)?;
        let size = ByteSize::of(&frame);
        let mut packet = LpPacket::decode(frame).map_err(|_| DropReason::Malformed)?;
        without_frame(&mut packet, size);
        self.receive_packet(id, packet)
    }

    fn count_frame(&mut self, id: FaceId, frame: &Bytes) -> Result<(), DropReason> {
        let face = self.faces.get_mut(id).ok_or(DropReason::UnknownFace)?;
        for traffic in [&mut face.counters.incoming, &mut self.counters.incoming] {
            traffic.frames += 1;
            traffic.octets += ByteSize::of(frame);
        }
        Ok(())
    }

    /// Takes a link packet that carries a network packet whole.
    pub(crate) fn receive_packet(
        &mut self,
        id: FaceId,
        mut packet: LpPacket,
    ) -> Result<(), DropReason> {
        let Some(wire) = packet.fragment.take() else {
            // Nothing but header fields.
            if let Some(face) = self.faces.get_mut(id)
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
        let face = self.faces.get(id).ok_or(DropReason::UnknownFace)?;
        let mut fields = LinkFields::received(packet, kind, &face.config)?;
        self.receive_network_packet(id, kind, wire, &mut fields)
    }

    /// Takes a network packet, and the fields that came in front of it.
    ///
    /// Packets are large values, so they stay where decoding left them.
    fn receive_network_packet(
        &mut self,
        id: FaceId,
        kind: PacketKind,
        wire: Bytes,
        fields: &mut LinkFields,
    ) -> Result<(), DropReason> {
        if wire.first() == Some(&BARE_INTEREST) {
            if kind == PacketKind::Interest && !self.is_within_rate(id) {
                return Err(DropReason::InterestRate);
            }
            let mut decoded = Interest::decode(wire);
            let Ok(interest) = &mut decoded else {
                return Err(DropReason::Malformed);
            };
            self.admit(id, kind, interest.wire(), fields)?;
            return match kind {
                PacketKind::Nack(reason) => self.incoming_nack(id, interest, reason),
                _ => self.incoming_interest(id, interest, fields),
            };
        }
        let decoded = Data::decode(wire);
        let Ok(data) = &decoded else {
            return Err(DropReason::Malformed);
        };
        if kind != PacketKind::Data {
            return Err(DropReason::MisplacedField);
        }
        self.admit(id, kind, data.wire(), fields)?;
        self.incoming_data(id, data, fields)
    }

    /// Whether a face may send an Interest now.
    fn is_within_rate(&mut self, id: FaceId) -> bool {
        let Some(rate) = self.config.face_interest_rate else {
            return true;
        };
        let face = self.faces.get_mut(id);
        face.is_none_or(|face| rate.admit(self.now, &mut face.interests_full_at))
    }

    /// Counts a network packet, if no extension is against it.
    fn admit(
        &mut self,
        id: FaceId,
        kind: PacketKind,
        wire: &Bytes,
        fields: &mut LinkFields,
    ) -> Result<(), DropReason> {
        let face = self.faces.get_mut(id).ok_or(DropReason::UnknownFace)?;
        face.counters.incoming.count(kind);
        self.counters.incoming.count(kind);
        if !self.extensions.is_empty() {
            let hook = match kind {
                PacketKind::Interest => Hook::IncomingInterest,
                PacketKind::Data => Hook::IncomingData,
                PacketKind::Nack(_) => Hook::IncomingNack,
            };
            let mut packet = fields.clone().into_packet(kind, Some(wire.clone()));
            self.run_extensions(hook, id, &mut packet)?;
            *fields = packet.into();
        }
        Ok(())
    }
}

/// What a network packet is that nobody returned.
fn kind_of(wire: &[u8]) -> PacketKind {
    match wire.first() {
        Some(&BARE_INTEREST) => PacketKind::Interest,
        _ => PacketKind::Data,
    }
}
