//! From a network packet to the link packet that carries it.

use bytes::Bytes;
use namecast_units::{ByteSize, Duration};

use super::{Forwarder, Transmit};
use crate::counters::{DropReason, PacketKind};
use crate::face::FaceId;
use crate::fields::LinkFields;

/// What a packet is, where it came from, and where it goes.
pub(super) type Passage = (PacketKind, FaceId, FaceId);

impl Forwarder {
    /// Queues a network packet, with what may be said to the face that it goes to.
    #[inline]
    pub(super) fn send(&mut self, passage: Passage, wire: Bytes, fields: LinkFields) {
        self.send_later(Duration::ZERO, passage, wire, fields);
    }

    /// Queues a network packet that is to leave after a while.
    pub(super) fn send_later(
        &mut self,
        delay: Duration,
        passage: Passage,
        wire: Bytes,
        fields: LinkFields,
    ) {
        if let Err(reason) = self.try_send(delay, passage, wire, fields) {
            self.tables.count_drop(passage.2, reason);
        }
    }

    fn try_send(
        &mut self,
        delay: Duration,
        (kind, from, to): Passage,
        wire: Bytes,
        mut fields: LinkFields,
    ) -> Result<(), DropReason> {
        let (faces, counters) = (&mut self.tables.faces, &mut self.tables.counters);
        let face = faces.get_mut(to).ok_or(DropReason::UnknownFace)?;
        fields.address(kind, from, (&face.config, wire.len()));
        let packet = match fields.is_empty() && !matches!(kind, PacketKind::Nack(_)) {
            true => wire,
            false => fields.into_packet(kind, Some(wire)).encode(),
        };
        if face.queued as usize >= self.tables.config.max_output_queue {
            return Err(DropReason::OutputQueueFull);
        }
        face.queued += 1;
        // Its frame counts, unless it is for the link to count what it makes of it.
        let is_frame = face.config.takes_whole(packet.len());
        for traffic in [&mut face.counters.outgoing, &mut counters.outgoing] {
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
        match delay {
            Duration::ZERO => self.output.push(transmit),
            _ => self.output.push_delayed(self.now + delay, transmit),
        }
        Ok(())
    }
}
