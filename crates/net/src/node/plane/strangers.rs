//! Frames from and to peers that have not shown yet that they are where they say they are.

use std::net::SocketAddr;
use std::sync::{Arc, MutexGuard, PoisonError};

use bytes::Bytes;
use namecast_forward::FaceId;
use namecast_units::Instant;

use super::Plane;
use crate::link::{LinkDrop, LinkSender, Strangers};

impl Plane {
    /// The accounts of strangers, for a moment.
    pub(crate) fn strangers(&self) -> MutexGuard<'_, Strangers> {
        let strangers = self.strangers.lock();
        strangers.unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the peer of a face a stranger, and asks him to show that he receives what is sent to him.
    pub(crate) fn add_stranger(&self, face: FaceId, sender: &Arc<LinkSender>, remote: SocketAddr) {
        let now = self.clock.now();
        let echo = self.challenge.echo(remote);
        self.strangers().add(now, face, remote, echo);
        sender.set_stranger(true);
    }

    /// Asks the peer of a face to return what shows where he is, if he is a stranger and as far as he may be sent anything.
    pub(crate) fn challenge_peer(&self, face: FaceId, remote: SocketAddr) {
        if let Some(exits) = &*self.exits.load()
            && let Some(exit) = exits.get(&face)
            && exit.sender.is_stranger()
        {
            let frames = vec![self.challenge.frame(remote)];
            self.send_within_bounds(face, &exit.sender, frames);
        }
    }

    /// Takes note of what a stranger sent.
    pub(super) fn hear_stranger(&self, now: Instant, face: FaceId, frames: &[Bytes]) {
        if self.strangers().hear(now, face, frames) {
            self.end_strangeness(face);
        }
    }

    /// Takes it as shown that the peer of a face is where it says it is.
    pub(crate) fn end_strangeness(&self, face: FaceId) {
        self.strangers().remove(face);
        if let Some(exits) = &*self.exits.load()
            && let Some(exit) = exits.get(&face)
            && exit.sender.is_stranger()
        {
            tracing::debug!(%face, "the peer is where it says it is");
            exit.sender.set_stranger(false);
        }
    }

    /// Sends frames, to a stranger as many as he may get.
    pub(super) fn send_within_bounds(
        &self,
        face: FaceId,
        sender: &LinkSender,
        mut frames: Vec<Bytes>,
    ) {
        if sender.is_stranger() {
            let (now, count) = (self.clock.now(), frames.len());
            let mut strangers = self.strangers();
            frames.retain(|frame| strangers.may_send(now, face, frame.len() as u64));
            drop(strangers);
            if frames.len() < count {
                sender.dropped(LinkDrop::Unproven, count - frames.len());
            }
        }
        sender.send(self.clock, frames);
    }
}
