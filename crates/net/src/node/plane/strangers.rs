//! Frames from and to peers that have not shown yet that they are where they say they are.

use std::net::SocketAddr;
use std::sync::{Arc, MutexGuard, PoisonError};

use bytes::Bytes;
use namecast_forward::FaceId;
use namecast_units::Instant;

use super::Plane;
use crate::link::{Account, LinkSender, Strangers};

impl Plane {
    /// The accounts of strangers, for a moment.
    pub(crate) fn strangers(&self) -> MutexGuard<'_, Strangers> {
        let strangers = self.strangers.lock();
        strangers.unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the peer of a face a stranger, and asks him to show that he receives what is sent to him.
    pub(crate) fn add_stranger(&self, face: FaceId, sender: &LinkSender, remote: SocketAddr) {
        let now = self.clock.now();
        let echo = self.challenge.echo(remote);
        self.strangers().add(now, face, remote, echo);
        let strangers = Arc::clone(&self.strangers);
        sender.set_stranger(Some(Account { face, strangers }));
    }

    /// Asks the peer of a face to return what shows where he is, if he is a stranger and as far as he may be sent anything.
    pub(crate) fn challenge_peer(&self, face: FaceId, remote: SocketAddr) {
        self.with_sender(face, |sender| {
            if sender.is_stranger() {
                sender.send_frame(self.clock, self.challenge.frame(remote));
            }
        });
    }

    /// Records what a stranger sent.
    pub(super) fn hear_stranger(&self, now: Instant, face: FaceId, frames: &[Bytes]) {
        if self.strangers().hear(now, face, frames) {
            self.end_strangeness(face);
        }
    }

    /// Takes it as shown that the peer of a face is where it says it is.
    pub(crate) fn end_strangeness(&self, face: FaceId) {
        self.strangers().remove(face);
        self.with_sender(face, |sender| {
            if sender.is_stranger() {
                tracing::debug!(%face, "the peer is where it says it is");
                sender.set_stranger(None);
            }
        });
    }
}
