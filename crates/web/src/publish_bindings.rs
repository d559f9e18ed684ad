//! The node of a page that goes live, as JavaScript sees it. `web/src/worker/publish-port.ts` describes the same.

use wasm_bindgen::prelude::{JsError, wasm_bindgen};

use crate::config::{LiveConfig, LiveFrame};
use crate::outbox::{face_id, from_ms, to_ms};
use crate::transports::Transport;

/// A node with a publisher of video and sound. Times are milliseconds of one monotonic clock.
#[wasm_bindgen]
#[derive(Debug)]
pub struct LiveTab(crate::LiveTab);

#[wasm_bindgen]
impl LiveTab {
    /// A tab without transports.
    ///
    /// # Errors
    /// `config` is malformed, or its streams cannot be published.
    #[wasm_bindgen(constructor)]
    pub fn new(config: &str, now: f64) -> Result<Self, JsError> {
        let config = LiveConfig::decode(config)?;
        Ok(Self(crate::LiveTab::new(from_ms(now), &config)?))
    }

    /// A transport is up, as with `Tab`. Returns its number.
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

    /// Publishes a frame that `frame` describes, as JSON. Its encoding ended now.
    ///
    /// # Errors
    /// `frame` is malformed, there is no such rung, or the frame cannot be published.
    #[wasm_bindgen(js_name = publishFrame)]
    pub fn publish_frame(
        &mut self,
        frame: &str,
        payload: Vec<u8>,
        now: f64,
    ) -> Result<(), JsError> {
        let frame = LiveFrame::decode(frame)?;
        Ok(self.0.publish_frame(from_ms(now), &frame, payload)?)
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

    /// Digest of the key that signs, in hexadecimal: viewers who have it know the publisher.
    #[wasm_bindgen(js_name = keyDigest)]
    pub fn key_digest(&self) -> String {
        self.0.key_digest()
    }

    /// All figures, as JSON.
    pub fn stats(&mut self) -> String {
        self.0.stats()
    }
}
