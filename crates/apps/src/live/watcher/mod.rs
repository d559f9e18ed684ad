//! Watches one published root: finds out what there is, who signs it, and pulls video and audio in step.

mod config;
mod output;

use core::time::Duration;

use bytes::Bytes;
use namecast_stream::StreamKind;
use namecast_units::Instant;

pub use config::{Pin, RungChoice, Trust, WatcherConfig};
pub use output::{Event, Frame, Output, Refusal, RejoinReason, Signer, Stages, Verdict};

use super::stats::Stats;

/// Watches one published root.
///
/// Give it what arrives ([`handle_packet`](Self::handle_packet)) and the time ([`handle_timeout`](Self::handle_timeout)
/// whenever [`poll_timeout`](Self::poll_timeout) says so), and after each call take everything from
/// [`poll_output`](Self::poll_output). The first call of `handle_timeout` starts the join.
#[derive(Debug)]
pub struct Watcher {
    config: WatcherConfig,
}

impl Watcher {
    /// A watcher that will join at the first [`handle_timeout`](Self::handle_timeout).
    pub fn new(config: WatcherConfig) -> Self {
        Self { config }
    }

    /// What it was told, with later changes.
    pub const fn config(&self) -> &WatcherConfig {
        &self.config
    }

    /// Takes what the application face delivered: Data or a Nack, bare or in an LpPacket.
    pub fn handle_packet(&mut self, _now: Instant, _packet: Bytes) {}

    /// Does what is due. Early and repeated calls do nothing.
    pub fn handle_timeout(&mut self, _now: Instant) {}

    /// When to call [`handle_timeout`](Self::handle_timeout) next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// The next thing to do or to know, until `None`.
    pub fn poll_output(&mut self) -> Option<Output> {
        None
    }

    /// Moves the playout target. Frames that were not handed out yet are re-timed at once; none is lost or repeated.
    pub fn set_target(&mut self, _now: Instant, target: Duration) {
        self.config.target = target;
    }

    /// Chooses another bitrate of the video; playback changes over at a key frame.
    pub fn set_rung(&mut self, _now: Instant, rung: RungChoice) {
        self.config.rung = rung;
    }

    /// Takes note that the front-end decoded a frame, which took `took`.
    pub fn handle_decoded(
        &mut self,
        _now: Instant,
        _stream: StreamKind,
        _position: u64,
        _took: Duration,
    ) {
    }

    /// Takes note that the front-end showed a frame.
    pub fn handle_rendered(&mut self, _now: Instant, _stream: StreamKind, _position: u64) {}

    /// Takes note that the decoder failed: the next frame handed out is a key frame, after a
    /// [`Output::Discontinuity`].
    pub fn handle_decoder_error(&mut self, _now: Instant, _stream: StreamKind) {}

    /// Takes note that the transport came back: everything that is pending is asked for again at once.
    pub fn handle_link_change(&mut self, _now: Instant) {}

    /// Figures for people.
    pub fn stats(&self, _now: Instant) -> Stats {
        Stats::default()
    }
}
