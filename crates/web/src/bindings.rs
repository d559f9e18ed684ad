//! The tab as JavaScript sees it: numbers, text and octets. `web/src/worker/tab-port.ts` describes the same.

use bytes::Bytes;
use namecast_packet::Data;
use namecast_packet::signature::PublicKey;
use namecast_stream::StreamKind;
use namecast_units::Duration;
use wasm_bindgen::prelude::{JsError, wasm_bindgen};

use crate::config::{PublicationConfig, TabConfig};
use crate::outbox::{face_id, from_ms, seek_to, to_ms};
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

/// A node with a watcher, and whatever the page publishes. Times are milliseconds of one monotonic clock, streams are 0 for
/// video, 1 for audio and 2 for data.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Tab(crate::Tab);

#[wasm_bindgen]
impl Tab {
    /// A tab without transports; it joins as soon as the first is up.
    ///
    /// # Errors
    /// `config` is malformed.
    #[wasm_bindgen(constructor)]
    pub fn new(config: &str) -> Result<Self, JsError> {
        Ok(Self(crate::Tab::new(&TabConfig::decode(config)?)?))
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

    /// Publishes a data stream. Returns its number.
    ///
    /// # Errors
    /// `config` is malformed, or the tab publishes as much as it can.
    pub fn publish(&mut self, config: &str, now: f64) -> Result<u32, JsError> {
        let config = PublicationConfig::decode(config)?;
        let number = self.0.publish(from_ms(now), &config)?;
        Ok(u32::try_from(number)?)
    }

    /// Publishes a sample of the data stream `number`, captured now.
    ///
    /// # Errors
    /// There is no such stream, or the sample is too large.
    pub fn send(&mut self, number: u32, sample: Vec<u8>, now: f64) -> Result<(), JsError> {
        Ok(self.0.send(from_ms(now), number as usize, sample)?)
    }

    /// Fetches the object named by `uri`, under the stream's name; it is known as `number` from now on.
    ///
    /// # Errors
    /// It is no such name, too many objects are being fetched, or the signer is not known yet.
    pub fn fetch(&mut self, number: u32, uri: &str, now: f64) -> Result<(), JsError> {
        Ok(self.0.fetch(from_ms(now), u64::from(number), uri)?)
    }

    /// Fetches object `number` no more.
    #[wasm_bindgen(js_name = giveUp)]
    pub fn give_up(&mut self, number: u32) {
        self.0.give_up(u64::from(number));
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

    /// Moves the playout target.
    ///
    /// # Errors
    /// It is negative, above ten seconds, or no number.
    #[wasm_bindgen(js_name = setTarget)]
    pub fn set_target(&mut self, milliseconds: f64, now: f64) -> Result<(), JsError> {
        Ok(self.0.set_target(from_ms(now), milliseconds)?)
    }

    /// Sets by how many milliseconds packets are handled after they arrive, as this machine is busy.
    #[wasm_bindgen(js_name = setWakeDelay)]
    pub fn set_wake_delay(&mut self, milliseconds: f64) {
        self.0
            .set_wake_delay(Duration::from_nanos(from_ms(milliseconds).as_nanos()));
    }

    /// Chooses another rung.
    #[wasm_bindgen(js_name = setRung)]
    pub fn set_rung(&mut self, name: &str, now: f64) {
        self.0.set_rung(from_ms(now), name);
    }

    /// Chooses whether video and audio are requested.
    #[wasm_bindgen(js_name = setWanted)]
    pub fn set_wanted(&mut self, video: bool, audio: bool, now: f64) {
        self.0.set_wanted(from_ms(now), video, audio);
    }

    /// Goes to what was captured at `time`, the publisher's clock in milliseconds since 1970; infinite: to live.
    pub fn seek(&mut self, time: f64, now: f64) {
        self.0.seek(from_ms(now), seek_to(time));
    }

    /// The page decoded a frame, which took `took` milliseconds.
    pub fn decoded(&mut self, stream: u8, position: f64, took: f64, now: f64) {
        let took = Duration::from_nanos(from_ms(took).as_nanos());
        self.0
            .decoded(from_ms(now), kind(stream), position as u64, took);
    }

    /// The page showed a frame.
    pub fn rendered(&mut self, stream: u8, position: f64, now: f64) {
        self.0.rendered(from_ms(now), kind(stream), position as u64);
    }

    /// The page's decoder failed.
    #[wasm_bindgen(js_name = decoderError)]
    pub fn decoder_error(&mut self, stream: u8, now: f64) {
        self.0.decoder_error(from_ms(now), kind(stream));
    }

    /// All figures, as JSON.
    pub fn stats(&self, now: f64) -> String {
        self.0.stats(from_ms(now))
    }

    /// Damages frames that carry media until `count` were found out: for tests.
    pub fn corrupt(&mut self, count: u32) {
        self.0.corrupt(count);
    }
}

const fn kind(stream: u8) -> StreamKind {
    match stream {
        0 => StreamKind::Video,
        1 => StreamKind::Audio,
        _ => StreamKind::Data,
    }
}
