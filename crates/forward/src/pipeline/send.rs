//! From a network packet to the link packet that carries it.

use bytes::Bytes;
use namecast_packet::LpPacket;
use namecast_units::ByteSize;

use crate::counters::{DropReason, Traffic};
use crate::extension::{Hook, Verdict};
use crate::face::FaceId;
use crate::forwarder::{Forwarder, Transmit};

impl Traffic {
    /// Counts one packet of the kind that the hook is for.
    pub(super) const fn count(&mut self, hook: Hook) {
        match hook {
            Hook::IncomingInterest | Hook::OutgoingInterest => self.interests += 1,
            Hook::IncomingData | Hook::OutgoingData => self.data += 1,
            Hook::IncomingNack | Hook::OutgoingNack => self.nacks += 1,
        }
    }
}

impl Forwarder {
    /// Queues a network packet that has nothing said in front of it, and came from `from`, on the face `to`.
    pub(super) fn send_bare(&mut self, hook: Hook, from: FaceId, to: FaceId, wire: Bytes) {
        let may_stay_bare = self.extensions.is_empty()
            && (self.faces.get(to)).is_some_and(|face| !face.has_local_fields());
        if !may_stay_bare {
            return self.send(hook, from, to, LpPacket::carrying(wire));
        }
        if let Err(reason) = self.enqueue(hook, to, wire) {
            self.count_drop(to, reason);
        }
    }

    /// Queues a packet, which came from `from`, on the face `to`.
    pub(super) fn send(&mut self, hook: Hook, from: FaceId, to: FaceId, packet: LpPacket) {
        if let Err(reason) = self.try_send(hook, from, to, packet) {
            self.count_drop(to, reason);
        }
    }

    fn try_send(
        &mut self,
        hook: Hook,
        from: FaceId,
        to: FaceId,
        mut packet: LpPacket,
    ) -> Result<(), DropReason> {
        self.run_extensions(hook, to, &mut packet)?;
        let face = self.faces.get_mut(to).ok_or(DropReason::UnknownFace)?;
        let is_nack = hook == Hook::OutgoingNack;
        if face.has_local_fields() && !is_nack {
            packet.incoming_face = Some(from.number());
        }
        self.enqueue(hook, to, packet.encode())
    }

    /// Queues a link packet on a face. Its frame counts, unless it is for the link to count what it makes of it.
    fn enqueue(&mut self, hook: Hook, to: FaceId, packet: Bytes) -> Result<(), DropReason> {
        let face = self.faces.get_mut(to).ok_or(DropReason::UnknownFace)?;
        if face.queued as usize >= self.config.max_output_queue {
            return Err(DropReason::OutputQueueFull);
        }
        face.queued += 1;
        let is_frame = face.config.takes_whole(packet.len());
        for traffic in [&mut face.counters.outgoing, &mut self.counters.outgoing] {
            traffic.count(hook);
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
