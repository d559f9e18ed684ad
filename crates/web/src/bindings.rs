//! The tab as JavaScript sees it: numbers, text and octets. `web/src/worker/tab-port.ts` describes the same.

use bytes::Bytes;
use namecast_packet::Data;
use namecast_packet::signature::PublicKey;
use namecast_stream::StreamKind;
use namecast_units::{Duration, Instant, Timestamp};
use wasm_bindgen::prelude::{JsError, wasm_bindgen};

use crate::config::{LiveFrame, PublicationConfig, WatchConfig};
use crate::outbox::{face_id, from_ms, seek_to, to_ms};
use crate::room::RoomConfig;
use crate::transports::Transport;

/// Returns whether the Data packet `wire` is signed by the key of the SubjectPublicKeyInfo `key`, in DER. For tests: what a
/// browser calculates is not what other machines do.
///
/// # Errors
/// Either is malformed.
#[wasm_bindgen(js_name = isSignedBy)]
pub fn is_signed_by(wire: Vec<u8>, key: &[u8]) -> Result<bool, JsError> {
    let (data, key) = (Data::decode(Bytes::from(wire))?, PublicKey::from_spki(key)?);
    Ok(data.verify(&key).is_ok())
}

/// A node with watchers and publishers. Times are milliseconds of one monotonic clock, streams are 0 for video, 1 for audio and 2
/// for data. Watches and publications are numbers that `watch` and `publish` return.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Tab(crate::Tab);

#[wasm_bindgen]
impl Tab {
    /// A tab without transports. `wall_at_zero` is the wall clock at time zero, in milliseconds since 1970; `seed` is of its Nonces.
    #[wasm_bindgen(constructor)]
    pub fn new(wall_at_zero: f64, seed: u32) -> Self {
        let wall_at_zero = Timestamp::from_micros((1e3 * wall_at_zero.max(0.0)) as u64);
        Self(crate::Tab::new(wall_at_zero, seed))
    }

    /// A transport is up that carries frames of at most `mtu` octets; 0: any. `is_local`: the node at its other end takes
    /// commands from this page. Returns its number.
    ///
    /// # Errors
    /// There are too many.
    #[wasm_bindgen(js_name = faceUp)]
    pub fn face_up(
        &mut self,
        transport: &str,
        mtu: u32,
        is_local: bool,
        now: f64,
    ) -> Result<u32, JsError> {
        let transport = Transport::new(transport, mtu, is_local);
        let face = self.0.face_up(from_ms(now), &transport)?;
        Ok(u32::try_from(face.number())?)
    }

    /// A transport is gone.
    #[wasm_bindgen(js_name = faceDown)]
    pub fn face_down(&mut self, face: u32, now: f64) {
        self.0.face_down(from_ms(now), face_id(face));
    }

    /// A transport delivered a frame.
    #[wasm_bindgen(js_name = handleFrame)]
    pub fn handle_frame(&mut self, face: u32, octets: Vec<u8>, now: f64) {
        self.0.handle_frame(from_ms(now), face_id(face), octets);
    }

    /// Measures the path to the node. Returns how long what is sent now waits for what was sent before it, in milliseconds; less
    /// than 0: that is not known yet.
    pub fn probe(&mut self, now: f64) -> f64 {
        let waits = self.0.probe(from_ms(now));
        waits.map_or(-1.0, |waits| 1e3 * waits.as_secs_f64())
    }

    /// Does what is due.
    #[wasm_bindgen(js_name = handleTimeout)]
    pub fn handle_timeout(&mut self, now: f64) {
        self.0.handle_timeout(from_ms(now));
    }

    /// When to call `handleTimeout` next; infinite: never.
    #[wasm_bindgen(js_name = pollTimeout)]
    pub fn poll_timeout(&self) -> f64 {
        self.0.poll_timeout().map_or(f64::INFINITY, to_ms)
    }

    /// What happened since the last call, as records.
    pub fn drain(&mut self) -> Vec<u8> {
        self.0.drain()
    }

    /// Sets by how many milliseconds packets are handled after they arrive, as this machine is busy.
    #[wasm_bindgen(js_name = setWakeDelay)]
    pub fn set_wake_delay(&mut self, milliseconds: f64) {
        self.0.set_wake_delay(span(milliseconds));
    }

    /// Damages frames that carry media until `count` were found out: for tests.
    pub fn corrupt(&mut self, count: u32) {
        self.0.corrupt(count);
    }
}

/// The tab's room.
#[wasm_bindgen]
impl Tab {
    /// Enters a room, as JSON describes it: joins it with the link's token, unless the page has kept a certificate. Watches begin once its rules are
    /// here.
    ///
    /// # Errors
    /// `config` is malformed, or the tab is in a room.
    pub fn enter(&mut self, config: &str, now: f64) -> Result<(), JsError> {
        let config = RoomConfig::decode(config)?;
        Ok(self.0.enter(from_ms(now), &config)?)
    }
}

/// Watches.
#[wasm_bindgen]
impl Tab {
    /// Watches a stream, as JSON describes it. It joins as soon as a transport is up.
    ///
    /// # Errors
    /// `config` is malformed, or the tab watches as much as it can.
    pub fn watch(&mut self, config: &str, now: f64) -> Result<u32, JsError> {
        let config = WatchConfig::decode(config)?;
        Ok(self.0.watch(from_ms(now), &config)?)
    }

    /// Ends a watch.
    pub fn unwatch(&mut self, watch: u32, now: f64) {
        self.0.unwatch(from_ms(now), watch);
    }

    /// Fetches the object named by `uri`, under the watched name; it is known as `object` from now on.
    ///
    /// # Errors
    /// It is no such name, too many objects are being fetched, or the signer is not known yet.
    pub fn fetch(&mut self, watch: u32, object: u32, uri: &str, now: f64) -> Result<(), JsError> {
        Ok((self.0).fetch(from_ms(now), watch, u64::from(object), uri)?)
    }

    /// Fetches an object no more.
    #[wasm_bindgen(js_name = giveUp)]
    pub fn give_up(&mut self, watch: u32, object: u32) {
        self.0.give_up(watch, u64::from(object));
    }

    /// Moves the playout target.
    ///
    /// # Errors
    /// It is negative, above ten seconds, or no number.
    #[wasm_bindgen(js_name = setTarget)]
    pub fn set_target(&mut self, watch: u32, milliseconds: f64, now: f64) -> Result<(), JsError> {
        Ok(self.0.set_target(from_ms(now), watch, milliseconds)?)
    }

    /// Sets how many milliseconds before they are shown frames of video are given to the page.
    #[wasm_bindgen(js_name = setDecodeLead)]
    pub fn set_decode_lead(&mut self, watch: u32, milliseconds: f64, now: f64) {
        (self.0).set_decode_lead(from_ms(now), watch, span(milliseconds));
    }

    /// Chooses another rung.
    #[wasm_bindgen(js_name = setRung)]
    pub fn set_rung(&mut self, watch: u32, name: &str, now: f64) {
        self.0.set_rung(from_ms(now), watch, name);
    }

    /// Chooses whether video and audio are requested.
    #[wasm_bindgen(js_name = setWanted)]
    pub fn set_wanted(&mut self, watch: u32, video: bool, audio: bool, now: f64) {
        self.0.set_wanted(from_ms(now), watch, video, audio);
    }

    /// Sets the weight of its pictures beside those of other watches, 1 to 255.
    #[wasm_bindgen(js_name = setWeight)]
    pub fn set_weight(&mut self, watch: u32, weight: u8, now: f64) {
        self.0.set_weight(from_ms(now), watch, weight);
    }

    /// Goes to what was captured at `time`, the publisher's clock in milliseconds since 1970; infinite: to live.
    pub fn seek(&mut self, watch: u32, time: f64, now: f64) {
        self.0.seek(from_ms(now), watch, seek_to(time));
    }

    /// The page decoded a frame, which took `took` milliseconds.
    pub fn decoded(&mut self, watch: u32, stream: u8, position: f64, took: f64) {
        let position = position as u64;
        self.0.decoded(watch, kind(stream), position, span(took));
    }

    /// The page showed a frame.
    pub fn rendered(&mut self, watch: u32, stream: u8, position: f64, now: f64) {
        (self.0).rendered(from_ms(now), watch, kind(stream), position as u64);
    }

    /// The page's decoder failed.
    #[wasm_bindgen(js_name = decoderError)]
    pub fn decoder_error(&mut self, watch: u32, stream: u8, now: f64) {
        self.0.decoder_error(from_ms(now), watch, kind(stream));
    }

    /// All figures of a watch, as JSON.
    pub fn stats(&self, watch: u32, now: f64) -> String {
        self.0.stats(from_ms(now), watch)
    }
}

/// Publications.
#[wasm_bindgen]
impl Tab {
    /// Publishes streams, as JSON describes them.
    ///
    /// # Errors
    /// `config` is malformed, its streams cannot be published, or the tab publishes as much as it can.
    pub fn publish(&mut self, config: &str, now: f64) -> Result<u32, JsError> {
        let config = PublicationConfig::decode(config)?;
        Ok(self.0.publish(from_ms(now), &config)?)
    }

    /// Publishes other streams in place of those before, as JSON describes them.
    ///
    /// # Errors
    /// `streams` is malformed, or there is no such publication.
    #[wasm_bindgen(js_name = setStreams)]
    pub fn set_streams(
        &mut self,
        publication: u32,
        streams: &str,
        now: f64,
    ) -> Result<(), JsError> {
        let streams = serde_json::from_str(streams)?;
        Ok(self.0.set_streams(from_ms(now), publication, streams)?)
    }

    /// Ends a publication.
    pub fn unpublish(&mut self, publication: u32, now: f64) {
        self.0.unpublish(from_ms(now), publication);
    }

    /// Publishes a sample of the first stream, captured now.
    ///
    /// # Errors
    /// There is no such publication, or the sample is too large.
    pub fn send(&mut self, publication: u32, sample: Vec<u8>, now: f64) -> Result<(), JsError> {
        Ok(self.0.send(from_ms(now), publication, sample)?)
    }

    /// Publishes a frame that `frame` describes, as JSON. Its encoding ended now. Returns whether encoders are to make a key frame next.
    ///
    /// # Errors
    /// `frame` is malformed, there is no such rung, or the frame cannot be published.
    #[wasm_bindgen(js_name = publishFrame)]
    pub fn publish_frame(
        &mut self,
        publication: u32,
        frame: &str,
        payload: Vec<u8>,
        now: f64,
    ) -> Result<bool, JsError> {
        let frame = LiveFrame::decode(frame)?;
        Ok((self.0).publish_frame(from_ms(now), publication, &frame, payload)?)
    }

    /// Digest of the key that signs, in hexadecimal: viewers who have it know the publisher.
    ///
    /// # Errors
    /// There is no such publication.
    #[wasm_bindgen(js_name = keyDigest)]
    pub fn key_digest(&mut self, publication: u32) -> Result<String, JsError> {
        Ok(self.0.key_digest(publication)?)
    }

    /// All figures of a publication, as JSON.
    ///
    /// # Errors
    /// There is no such publication.
    #[wasm_bindgen(js_name = publicationStats)]
    pub fn publication_stats(&mut self, publication: u32) -> Result<String, JsError> {
        Ok(self.0.publication_stats(publication)?)
    }
}

fn span(milliseconds: f64) -> Duration {
    from_ms(milliseconds).since(Instant::ZERO)
}

const fn kind(stream: u8) -> StreamKind {
    match stream {
        0 => StreamKind::Video,
        1 => StreamKind::Audio,
        _ => StreamKind::Data,
    }
}
