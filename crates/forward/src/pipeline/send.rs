//! From a network packet to frames: the sending half of the link service.

use bytes::Bytes;
use namecast_packet::LpPacket;
use namecast_units::ByteSize;
use smallvec::{SmallVec, smallvec};

use crate::counters::{DropReason, Traffic};
use crate::extension::{Hook, Verdict};
use crate::face::FaceId;
use crate::forwarder::{Forwarder, Transmit};
use crate::link::fragment;

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
        let face = self.faces.get_mut(&to).ok_or(DropReason::UnknownFace)?;
        let is_nack = hook == Hook::OutgoingNack;
        if face.has_local_fields() && !is_nack {
            packet.incoming_face = Some(from.number());
        }
        let mtu = face.config.mtu.unwrap_or(usize::MAX);
        let whole = packet.encode();
        let frames: SmallVec<[Bytes; 1]> = if whole.len() <= mtu {
            smallvec![whole]
        } else {
            let frames = fragment(&packet, face.next_sequence, mtu, self.config.max_fragments);
            frames.ok_or(DropReason::CannotFragment)?.into()
        };
        // All or nothing: a packet that lacks a fragment is of no use.
        if face.queued + frames.len() > self.config.max_output_queue {
            return Err(DropReason::OutputQueueFull);
        }
        if frames.len() > 1 {
            face.next_sequence = face.next_sequence.wrapping_add(frames.len() as u64);
        }
        face.queued += frames.len();
        for traffic in [&mut face.counters.outgoing, &mut self.counters.outgoing] {
            traffic.count(hook);
            traffic.frames += frames.len() as u64;
            traffic.octets += frames.iter().map(|frame| ByteSize::of(frame)).sum();
        }
        let transmits = frames.into_iter().map(|frame| Transmit { face: to, frame });
        self.output.extend(transmits);
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
