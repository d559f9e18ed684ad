//! From a network packet to frames: the sending half of the link service.

use bytes::Bytes;
use namecast_packet::LpPacket;
use namecast_units::ByteSize;

use crate::counters::{DropReason, Traffic};
use crate::extension::{Hook, Verdict};
use crate::face::FaceId;
use crate::forwarder::{Forwarder, Transmit};
use crate::link::Sending;

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
                wire.len() <= mtu && !face.has_local_fields() && !face.config.reliability
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
        let is_reliable = face.config.reliability;
        let queued = face.queued as usize;
        let sending = Sending {
            now: self.now,
            mtu: face.config.mtu.unwrap_or(usize::MAX),
            room: self.config.max_output_queue.saturating_sub(queued),
            bounds: &self.config,
            random: &mut self.random,
        };
        let frames = face.link.send(packet, sending)?;
        self.enqueue(hook, to, frames)?;
        if is_reliable {
            self.count_reliability(to);
            self.reset_link_timer(to);
        }
        Ok(())
    }

    fn count_reliability(&mut self, id: FaceId) {
        if let Some(face) = self.faces.get_mut(id)
            && let Some(counters) = face.link.reliability_counters()
        {
            face.counters.reliability = counters;
        }
    }

    /// Sends what a face's link wants to send by itself, counts what it gave up, and looks after it again when it is due.
    pub(super) fn serve_link(&mut self, id: FaceId) {
        let max_queued = self.config.max_output_queue;
        let Some(face) = self.faces.get_mut(id) else {
            return;
        };
        let mut unsent = 0;
        while let Some(frame) = face.link.poll_frame(self.now) {
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
        let given_up = face.link.take_given_up();
        for (count, reason) in [
            (unsent, DropReason::OutputQueueFull),
            (given_up, DropReason::Unacknowledged),
        ] {
            (0..count).for_each(|_| self.count_drop(id, reason));
        }
        self.count_reliability(id);
        self.reset_link_timer(id);
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
