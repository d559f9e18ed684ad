//! What the page publishes.

use namecast_apps::live::publisher::{EncodedFrame, FrameError};
use namecast_stream::StreamInfo;
use namecast_units::{Duration, Instant};
use serde::Serialize;

use crate::config::{LiveFrame, PublicationConfig};
use crate::outbox::{from_ms, hex};
use crate::publication::{Publication, PublishError};
use crate::room::Room;
use crate::tab::{MAX_PUBLICATIONS, Tab};

/// What a publication counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct PublicationFigures {
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
    /// Octets of the tab for transports.
    bytes_out: u64,
}

/// Methods for what is published, by the number that [`publish`](Tab::publish) returned.
impl Tab {
    /// Publishes what `config` says. Returns the number of the publication.
    ///
    /// # Errors
    /// If `config` makes no sense, or the tab publishes under four names already.
    pub fn publish(
        &mut self,
        now: Instant,
        config: &PublicationConfig,
    ) -> Result<u32, PublishError> {
        if self.publications.len() == MAX_PUBLICATIONS {
            return Err(PublishError::Full);
        }
        let (both, seed) = (self.both(now), self.random.next_u64());
        let setup = config.setup(self.room.as_ref().and_then(Room::membership))?;
        let publication = Publication::start(&mut self.node, both, setup, seed)?;
        let number = self.draw_number();
        self.publications.insert(number, publication);
        self.register(now);
        self.turn(now);
        Ok(number)
    }

    fn publication(&mut self, number: u32) -> Result<&mut Publication, PublishError> {
        let publication = self.publications.get_mut(&number);
        publication.ok_or(PublishError::Unknown(number))
    }

    /// Publishes other streams in place of those before. Figures begin anew.
    ///
    /// # Errors
    /// If there is no such publication, or the streams cannot be published.
    pub fn set_streams(
        &mut self,
        now: Instant,
        number: u32,
        streams: Vec<StreamInfo>,
    ) -> Result<(), PublishError> {
        let both = self.both(now);
        self.publication(number)?.set_streams(both, streams)?;
        self.turn(now);
        Ok(())
    }

    /// Ends a publication, and unregisters its name at the neighbour.
    pub fn unpublish(&mut self, now: Instant, number: u32) {
        let both = self.both(now);
        if let Ok(publication) = self.publication(number) {
            publication.end(both);
            self.turn(now);
        }
    }

    pub(crate) fn remove_publication(&mut self, now: Instant, number: u32) {
        if let Some(publication) = self.publications.remove(&number) {
            publication.leave(now, &mut self.node);
        }
    }

    /// Publishes a sample of the first stream, captured now.
    ///
    /// # Errors
    /// If there is no such publication, or the sample is too large.
    pub fn send(&mut self, now: Instant, number: u32, sample: Vec<u8>) -> Result<(), PublishError> {
        let both = self.both(now);
        let publisher = self.publication(number)?.publisher();
        let stream = publisher.catalogue().streams.first();
        let stream = stream.ok_or(FrameError::NoSuchRung)?.name.clone();
        publisher.publish_sample(both, &stream, sample)?;
        self.turn(now);
        Ok(())
    }

    /// Publishes a frame whose encoding ended now. Returns whether encoders are to make a key frame next: samples are sealed with a new key.
    ///
    /// # Errors
    /// If there is no such rung, the frame needs a key frame that was not published, or it is too large.
    pub fn publish_frame(
        &mut self,
        now: Instant,
        number: u32,
        frame: &LiveFrame,
        payload: Vec<u8>,
    ) -> Result<bool, PublishError> {
        let wall = self.both(now).wall;
        let captured_at = self.both(from_ms(frame.captured_at)).wall.min(wall);
        let encoded = EncodedFrame {
            position: frame.position,
            key: frame.key,
            captured_at,
            composition_offset: Duration::ZERO,
            encoded_at: wall,
            payload: payload.into(),
        };
        let publisher = self.publication(number)?.publisher();
        let rung = publisher.rung(&frame.stream, &frame.rung);
        let rung = rung.ok_or(FrameError::NoSuchRung)?;
        publisher.publish_frame(now, wall, rung, encoded)?;
        let needs_key = publisher.take_key_request();
        self.turn(now);
        Ok(needs_key)
    }

    /// Digest of the key that signs, in hexadecimal.
    ///
    /// # Errors
    /// If there is no such publication.
    pub fn key_digest(&mut self, number: u32) -> Result<String, PublishError> {
        Ok(hex(&self.publication(number)?.key_digest()))
    }

    /// All figures of a publication, as JSON.
    ///
    /// # Errors
    /// If there is no such publication.
    pub fn publication_stats(&mut self, number: u32) -> Result<String, PublishError> {
        let bytes_out = self.counters.bytes_out;
        let publisher = self.publication(number)?.publisher();
        let (counters, produced) = (publisher.counters(), publisher.producer_counters());
        let figures = PublicationFigures {
            frames: counters.frames,
            frames_refused: counters.frames_refused,
            interests: produced.interests,
            answered_at_once: produced.answered_at_once,
            data_sent: produced.data_sent,
            bytes_out,
        };
        Ok(serde_json::to_string(&figures).expect("figures hold only numbers"))
    }
}

#[cfg(test)]
#[path = "publish_tests.rs"]
mod tests;
