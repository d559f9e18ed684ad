//! The node of a tab that goes live.

use bytes::Bytes;
use namecast_apps::Output;
use namecast_apps::live::publisher::{EncodedFrame, FrameError};
use namecast_apps::registration::RegistrationEvent;
use namecast_forward::{FaceId, Node, Transmit};
use namecast_units::{ByteSize, Duration, Instant, Random, Timestamp};
use serde::Serialize;

use crate::config::{LiveConfig, LiveFrame};
use crate::echo::Echoes;
use crate::outbox::{Outbox, from_ms, hex};
use crate::publication::{Publication, PublishError};
use crate::transports::{
    self, FaceError, MAX_OUTBOX, MAX_ROUNDS, MAX_TRANSPORTS, Transport, Transports, both,
};

/// A face for each transport, and those of the publication.
const MAX_FACES: usize = MAX_TRANSPORTS + Publication::FACES;
/// The publisher keeps what it published itself.
const CONTENT_STORE: ByteSize = ByteSize::ZERO;

/// A forwarder with a publisher of video and sound on it.
///
/// After each call the page takes what happened from [`drain`](Self::drain), and calls
/// [`handle_timeout`](Self::handle_timeout) when [`poll_timeout`](Self::poll_timeout) says so.
#[derive(Debug)]
pub struct LiveTab {
    node: Node,
    publication: Publication,
    transports: Transports,
    echoes: Echoes,
    wall_at_zero: Timestamp,
    /// SHA-256 of the public key that signs.
    key_digest: [u8; 32],
    outbox: Outbox,
    bytes_out: u64,
    outbox_full: u64,
}

/// What a tab that is live counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct LiveFigures {
    /// Frames published, at all bitrates.
    frames: u64,
    /// Frames that the publisher refused.
    frames_refused: u64,
    /// Interests of those who watch.
    interests: u64,
    /// Of these, answered when they came, as what they request was there; others wait for it.
    answered_at_once: u64,
    /// Data packets that answered them.
    data_sent: u64,
    /// Octets for transports.
    bytes_out: u64,
    /// Frames for transports that were lost because the page took nothing for too long.
    outbox_full: u64,
}

impl LiveTab {
    /// A tab without transports that publishes what `config` says.
    ///
    /// # Errors
    /// If a field of `config` makes no sense, or the streams cannot be published.
    pub fn new(now: Instant, config: &LiveConfig) -> Result<Self, PublishError> {
        let mut node = transports::node(config.seed, MAX_FACES, CONTENT_STORE);
        let wall_at_zero = config.wall_at_zero();
        let seed = Random::from_seed(u64::from(config.seed)).next_u64();
        let both = both(wall_at_zero, now);
        let setup = config.setup()?;
        let key_digest = setup.key_digest();
        let publication = Publication::start(&mut node, both, setup, seed)?;
        Ok(Self {
            node,
            publication,
            transports: Transports::default(),
            echoes: Echoes::new(now, seed),
            wall_at_zero,
            key_digest,
            outbox: Outbox::default(),
            bytes_out: 0,
            outbox_full: 0,
        })
    }

    /// A transport is up: the name is registered there.
    ///
    /// # Errors
    /// There are too many transports, or the MTU is too small.
    pub fn face_up(
        &mut self,
        now: Instant,
        transport: &Transport<'_>,
    ) -> Result<FaceId, FaceError> {
        let face = self.transports.add(&mut self.node, transport)?;
        self.echoes.restart(now);
        self.register(now);
        Ok(face)
    }

    /// A transport is gone.
    pub fn face_down(&mut self, now: Instant, face: FaceId) {
        if self.transports.remove(now, &mut self.node, face) {
            self.register(now);
        }
    }

    /// Has the name registered at the newest transport.
    fn register(&mut self, now: Instant) {
        let neighbour = self.transports.newest();
        let both = both(self.wall_at_zero, now);
        self.publication.set_neighbour(both, neighbour);
        self.turn(now);
    }

    /// Publishes a frame whose encoding ended now.
    ///
    /// # Errors
    /// If there is no such rung, the frame needs a key frame that was not published, or it is too large.
    pub fn publish_frame(
        &mut self,
        now: Instant,
        frame: &LiveFrame,
        payload: Vec<u8>,
    ) -> Result<(), PublishError> {
        let both = both(self.wall_at_zero, now);
        let captured_at = from_ms(frame.captured_at).since(Instant::ZERO);
        let encoded = EncodedFrame {
            position: frame.position,
            key: frame.key,
            captured_at: (self.wall_at_zero + captured_at).min(both.wall),
            composition_offset: Duration::ZERO,
            encoded_at: both.wall,
            payload: payload.into(),
        };
        let publisher = self.publication.publisher();
        let rung = publisher.rung(&frame.stream, &frame.rung);
        let rung = rung.ok_or(FrameError::NoSuchRung)?;
        publisher.publish_frame(now, both.wall, rung, encoded)?;
        self.turn(now);
        Ok(())
    }

    /// A transport delivered a frame.
    pub fn handle_frame(&mut self, now: Instant, face: FaceId, frame: Vec<u8>) {
        if self.transports.contains(face) && !self.echoes.handle_frame(now, &frame) {
            self.node.handle_frame(now, face, Bytes::from(frame));
            self.turn(now);
        }
    }

    /// Sends a small Interest that the neighbour returns. Returns how long what is sent now waits for what was sent before it, as
    /// those that came back show; `None` where none has.
    pub fn probe(&mut self, now: Instant) -> Option<Duration> {
        let neighbour = self.transports.newest()?;
        let frame = self.echoes.send(now);
        self.transmit(FaceId::from_number(neighbour.face), &frame);
        self.echoes.queueing(now)
    }

    /// Does what is due. Early and repeated calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.node.handle_timeout(now);
        let both = both(self.wall_at_zero, now);
        self.publication.handle_timeout(both);
        self.turn(now);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let due = [self.node.poll_timeout(), self.publication.poll_timeout()];
        due.into_iter().flatten().min()
    }

    /// What happened since the last call, as [`Outbox`] lays it out.
    pub fn drain(&mut self) -> Vec<u8> {
        self.outbox.take()
    }

    /// Digest of the key that signs, in hexadecimal.
    pub fn key_digest(&self) -> String {
        hex(&self.key_digest)
    }

    /// All figures, as JSON.
    pub fn stats(&mut self) -> String {
        let publisher = self.publication.publisher();
        let (counters, produced) = (publisher.counters(), publisher.producer_counters());
        let figures = LiveFigures {
            frames: counters.frames,
            frames_refused: counters.frames_refused,
            interests: produced.interests,
            answered_at_once: produced.answered_at_once,
            data_sent: produced.data_sent,
            bytes_out: self.bytes_out,
            outbox_full: self.outbox_full,
        };
        serde_json::to_string(&figures).expect("figures hold only numbers")
    }

    /// Carries packets between forwarder, publication and outbox until nothing moves.
    fn turn(&mut self, now: Instant) {
        for _ in 0..MAX_ROUNDS {
            if let Some(transmit) = self.node.poll_output() {
                self.handle_transmit(now, transmit);
            } else if let Some((face, output)) = self.publication.poll_output() {
                self.handle_output(now, face, output);
            } else {
                return;
            }
        }
    }

    fn handle_transmit(&mut self, now: Instant, Transmit { face, frame }: Transmit) {
        if self.publication.has_face(face) {
            let both = both(self.wall_at_zero, now);
            self.publication.handle_frame(both, face, frame);
        } else {
            self.transmit(face, &frame);
        }
    }

    fn transmit(&mut self, face: FaceId, frame: &[u8]) {
        if self.outbox.len() + frame.len() > MAX_OUTBOX {
            self.outbox_full += 1;
        } else {
            self.bytes_out += frame.len() as u64;
            self.outbox.transmit(face, frame);
        }
    }

    fn handle_output(&mut self, now: Instant, face: FaceId, output: Output<RegistrationEvent>) {
        match output {
            Output::Send(wire) => self.node.handle_frame(now, face, wire),
            Output::Event(event) => {
                if let Some(event) = self.publication.describe(event) {
                    self.outbox.event(&event);
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "publish_tests.rs"]
mod tests;
