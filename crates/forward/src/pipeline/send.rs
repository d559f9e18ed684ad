//! From a network packet to the link packet that carries it.

use bytes::Bytes;
use namecast_packet::LpPacket;
use namecast_units::ByteSize;

use crate::counters::{DropReason, Traffic};
use crate::extension::{Hook, Verdict};
use crate::face::FaceId;
use crate::fields::{LinkFields, PacketKind};
use crate::forwarder::{Forwarder, Transmit};

impl Traffic {
    /// Counts one packet.
    pub(super) const fn count(&mut self, kind: PacketKind) {
        match kind {
            PacketKind::Interest => self.interests += 1,
            PacketKind::Data => self.data += 1,
            PacketKind::Nack(_) => self.nacks += 1,
        }
    }
}

impl Forwarder {
    /// Queues a network packet, which came from `from`, on the face `to`, with what may be said to that.
    pub(super) fn send(
        &mut self,
        kind: PacketKind,
        from: FaceId,
        to: FaceId,
        wire: Bytes,
        fields: LinkFields,
    ) {
        if let Err(reason) = self.try_send(kind, (from, to), wire, fields) {
            self.count_drop(to, reason);
        }
    }

    fn try_send(
        &mut self,
        kind: PacketKind,
        (from, to): (FaceId, FaceId),
        wire: Bytes,
        mut fields: LinkFields,
    ) -> Result<(), DropReason> {
        let face = self.faces.get(to).ok_or(DropReason::UnknownFace)?;
        fields.address(kind, from, &face.config);
        let is_bare = fields.is_empty() && !matches!(kind, PacketKind::Nack(_));
        if is_bare && self.extensions.is_empty() {
            return self.enqueue(kind, to, wire);
        }
        let mut packet = fields.into_packet(kind, Some(wire));
        if !self.extensions.is_empty() {
            let hook = match kind {
                PacketKind::Interest => Hook::OutgoingInterest,
                PacketKind::Data => Hook::OutgoingData,
                PacketKind::Nack(_) => Hook::OutgoingNack,
            };
            self.run_extensions(hook, to, &mut packet)?;
        }
        self.enqueue(kind, to, packet.encode())
    }

    /// Queues a link packet on a face. Its frame counts, unless it is for the link to count what it makes of it.
    fn enqueue(&mut self, kind: PacketKind, to: FaceId, packet: Bytes) -> Result<(), DropReason> {
        let face = self.faces.get_mut(to).ok_or(DropReason::UnknownFace)?;
        if face.queued as usize >= self.config.max_output_queue {
            return Err(DropReason::OutputQueueFull);
        }
        face.queued += 1;
        let is_frame = face.config.takes_whole(packet.len());
        for traffic in [&mut face.counters.outgoing, &mut self.counters.outgoing] {
            traffic.count(kind);
            if is_frame {
                traffic.frames += 1;
                traffic.octets += ByteSize::of(&packet);
            }
        }
        let transmit = Transmit {
            face: to,
            frame: packet,
        };
        self.output.push_back(transmit);
        Ok(())
    }

    /// Shows a packet to the extensions, each of which may refuse it.
    pub(super) fn run_extensions(
        &mut self,
        hook: Hook,
        face: FaceId,
        header: &mut LpPacket,
    ) -> Result<(), DropReason> {
        for extension in &mut self.extensions {
            if extension.at(hook, self.now, face, header) == Verdict::Drop {
                return Err(DropReason::Extension);
            }
        }
        Ok(())
    }
}
