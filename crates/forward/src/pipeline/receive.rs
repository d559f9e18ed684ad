//! From a whole packet to its pipeline.

use bytes::Bytes;
use namecast_packet::{Data, Interest, LpPacket, MAX_PACKET_SIZE, tlv};
use namecast_units::ByteSize;

use crate::counters::DropReason;
use crate::extension::Hook;
use crate::face::{Face, FaceId};
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
            return self.receive_network_packet(id, frame, &mut LpPacket::default());
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
        mut header: LpPacket,
    ) -> Result<(), DropReason> {
        let Some(wire) = header.fragment.take() else {
            // Nothing but header fields.
            if let Some(face) = self.faces.get_mut(id)
                && header.acks.is_empty()
            {
                face.counters.keep_alives += 1;
            }
            return Ok(());
        };
        if wire.len() > MAX_PACKET_SIZE {
            return Err(DropReason::PacketTooLarge);
        }
        self.receive_network_packet(id, wire, &mut header)
    }

    /// Takes a network packet, and the fields that came in front of it.
    ///
    /// Packets are large values, so they stay where decoding left them.
    fn receive_network_packet(
        &mut self,
        id: FaceId,
        wire: Bytes,
        header: &mut LpPacket,
    ) -> Result<(), DropReason> {
        if wire.first() == Some(&BARE_INTEREST) {
            if header.nack.is_none() && !self.is_within_rate(id) {
                return Err(DropReason::InterestRate);
            }
            let mut decoded = Interest::decode(wire);
            let Ok(interest) = &mut decoded else {
                return Err(DropReason::Malformed);
            };
            let hook = match header.nack {
                None => Hook::IncomingInterest,
                Some(_) => Hook::IncomingNack,
            };
            self.admit(id, hook, interest.wire(), header)?;
            return match header.nack {
                Some(reason) => self.incoming_nack(id, interest, reason),
                None => self.incoming_interest(id, interest, header),
            };
        }
        let decoded = Data::decode(wire);
        let Ok(data) = &decoded else {
            return Err(DropReason::Malformed);
        };
        if header.nack.is_some() {
            return Err(DropReason::MisplacedField);
        }
        self.admit(id, Hook::IncomingData, data.wire(), header)?;
        self.incoming_data(id, data, header)
    }

    /// Whether a face may send an Interest now.
    fn is_within_rate(&mut self, id: FaceId) -> bool {
        let Some(rate) = self.config.face_interest_rate else {
            return true;
        };
        let face = self.faces.get_mut(id);
        face.is_none_or(|face| rate.admit(self.now, &mut face.interests_full_at))
    }

    /// Counts a network packet, if neither its link header nor an extension is against it.
    fn admit(
        &mut self,
        id: FaceId,
        hook: Hook,
        wire: &Bytes,
        header: &mut LpPacket,
    ) -> Result<(), DropReason> {
        let face = self.faces.get_mut(id).ok_or(DropReason::UnknownFace)?;
        check_fields(hook, header, face)?;
        face.counters.incoming.count(hook);
        self.counters.incoming.count(hook);
        if !self.extensions.is_empty() {
            header.fragment = Some(wire.clone());
            self.run_extensions(hook, id, header)?;
        }
        Ok(())
    }
}

/// Refuses link header fields that make no sense with the kind of packet, or that the face may not use: NFD's rules.
fn check_fields(hook: Hook, header: &LpPacket, face: &Face) -> Result<(), DropReason> {
    let is_for_interests = header.next_hop_face.is_some() || header.non_discovery;
    let is_for_data = header.no_cache || header.prefix_announcement.is_some();
    let misplaced = match hook {
        Hook::IncomingInterest => is_for_data,
        Hook::IncomingData => is_for_interests,
        _ => is_for_data || is_for_interests,
    };
    if misplaced {
        return Err(DropReason::MisplacedField);
    }
    if header.next_hop_face.is_some() && !face.has_local_fields() {
        return Err(DropReason::LocalFieldsOff);
    }
    Ok(())
}
