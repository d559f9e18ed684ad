//! From a network packet to frames: the sending half of the link service.

use bytes::Bytes;
use namecast_packet::LpPacket;
use namecast_units::ByteSize;

use crate::counters::{DropReason, Traffic};
use crate::extension::{Hook, Verdict};
use crate::face::FaceId;
use crate::forwarder::{Forwarder, Transmit};
use crate::link::{Reliability, cut, fragment};

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
            && self.faces.get(to).is_some_and(|face| {
                let mtu = face.config.mtu.unwrap_or(usize::MAX);
                wire.len() <= mtu && !face.has_local_fields() && face.reliability.is_none()
            });
        if !may_stay_bare {
            return self.send(hook, from, to, LpPacket::carrying(wire));
        }
        if let Err(reason) = self.enqueue(Some(hook), to, [wire]) {
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
        self.send_through_link(Some(hook), to, packet)
    }

    /// Queues a packet on a face in as many frames as its link wants; counts it as what `hook` says, if it does.
    pub(crate) fn send_through_link(
        &mut self,
        hook: Option<Hook>,
        to: FaceId,
        packet: LpPacket,
    ) -> Result<(), DropReason> {
        let face = self.faces.get_mut(to).ok_or(DropReason::UnknownFace)?;
        if face.reliability.is_some() {
            return self.send_reliably(hook, to, packet);
        }
        let mtu = face.config.mtu.unwrap_or(usize::MAX);
        let whole = packet.encode();
        if whole.len() <= mtu {
            return self.enqueue(hook, to, [whole]);
        }
        let sequence = face.next_sequence | self.config.shard.first_sequence();
        let frames = fragment(&packet, sequence, mtu, self.config.max_fragments);
        let frames = frames.ok_or(DropReason::CannotFragment)?;
        let count = frames.len() as u64;
        self.enqueue(hook, to, frames)?;
        if let Some(face) = self.faces.get_mut(to) {
            face.next_sequence += count;
        }
        Ok(())
    }

    /// Queues a packet on a face with link reliability, each of whose frames is numbered.
    fn send_reliably(
        &mut self,
        hook: Option<Hook>,
        to: FaceId,
        mut packet: LpPacket,
    ) -> Result<(), DropReason> {
        let max_queued = self.config.max_output_queue;
        packet.fragment = packet.fragment.map(|wire| self.config.keep.own(wire));
        let face = self.faces.get_mut(to).ok_or(DropReason::UnknownFace)?;
        let Some(reliability) = &mut face.reliability else {
            return Ok(());
        };
        let mtu = Reliability::room(face.config.mtu.unwrap_or(usize::MAX));
        let first = match face.next_sequence {
            // The peer must not take the first ones for repetitions from this node's last life.
            0 => self.random.next_u64().wrapping_add(self.now.as_nanos()),
            next => next,
        };
        packet.sequence = Some(first);
        let pieces = if packet.encode_whole().len() <= mtu {
            vec![packet]
        } else {
            packet.sequence = None;
            let pieces = cut(&packet, first, mtu, self.config.max_fragments);
            pieces.ok_or(DropReason::CannotFragment)?
        };
        if face.queued as usize + pieces.len() > max_queued {
            return Err(DropReason::OutputQueueFull);
        }
        face.next_sequence = first.wrapping_add(pieces.len() as u64);
        let pieces = pieces.into_iter();
        let frames: Vec<_> = pieces
            .map(|piece| reliability.send(self.now, piece))
            .collect();
        face.counters.reliability = reliability.counters();
        self.enqueue(hook, to, frames)?;
        self.reset_link_timer(to);
        Ok(())
    }

    /// Sends what a face's link reliability wants to send by itself, and counts what it gave up.
    pub(super) fn serve_reliability(&mut self, id: FaceId) {
        let max_queued = self.config.max_output_queue;
        let Some(face) = self.faces.get_mut(id) else {
            return;
        };
        let Some(reliability) = &mut face.reliability else {
            return;
        };
        let mut unsent = 0;
        while let Some(frame) = reliability.poll_output(self.now) {
            if face.queued as usize >= max_queued {
                unsent += 1;
                continue;
            }
            face.queued += 1;
            for traffic in [&mut face.counters.outgoing, &mut self.counters.outgoing] {
                traffic.frames += 1;
                traffic.octets += ByteSize::of(&frame);
            }
            self.output.push_back(Transmit { face: id, frame });
        }
        face.counters.reliability = reliability.counters();
        let given_up = reliability.take_given_up();
        for (count, reason) in [
            (unsent, DropReason::OutputQueueFull),
            (given_up, DropReason::Unacknowledged),
        ] {
            (0..count).for_each(|_| self.count_drop(id, reason));
        }
    }

    /// Queues the frames of one packet: all or none, as a packet that lacks a fragment is of no use.
    fn enqueue(
        &mut self,
        hook: Option<Hook>,
        to: FaceId,
        frames: impl AsRef<[Bytes]> + IntoIterator<Item = Bytes>,
    ) -> Result<(), DropReason> {
        let face = self.faces.get_mut(to).ok_or(DropReason::UnknownFace)?;
        let count = frames.as_ref().len();
        if face.queued as usize + count > self.config.max_output_queue {
            return Err(DropReason::OutputQueueFull);
        }
        face.queued += count as u32;
        let octets = frames.as_ref().iter().map(|frame| ByteSize::of(frame));
        let octets: ByteSize = octets.sum();
        for traffic in [&mut face.counters.outgoing, &mut self.counters.outgoing] {
            if let Some(hook) = hook {
                traffic.count(hook);
            }
            if !face.config.is_relayed {
                traffic.frames += count as u64;
                traffic.octets += octets;
            }
        }
        for frame in frames {
            self.output.push_back(Transmit { face: to, frame });
        }
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
