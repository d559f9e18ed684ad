//! One track: takes raw frames from a source when they are due, and keeps an encoder running for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use namecast_units::Duration;

use super::encoder::{Encoder, Stamp};
use super::source::Source;
use super::{AudioConfig, IngestError, MediaEvent, Sink, StreamKind, VideoConfig};

/// Wait before a failed encoder is started again; doubles with each failure in a row.
const FIRST_BACKOFF: Duration = Duration::from_millis(100);
const LONGEST_BACKOFF: Duration = Duration::from_secs(5);
/// Frames after which an encoder counts as healthy.
const HEALTHY_AFTER: u64 = 90;

/// How a track is encoded.
pub(super) enum TrackEncoder {
    /// As pictures.
    Video(VideoConfig),
    /// As sound.
    Audio(AudioConfig),
}

impl TrackEncoder {
    const fn stream(&self) -> StreamKind {
        match self {
            Self::Video(_) => StreamKind::Video,
            Self::Audio(_) => StreamKind::Audio,
        }
    }

    fn start(&self, sink: &Sink) -> Result<Encoder, IngestError> {
        match self {
            Self::Video(config) => Encoder::video(config, sink),
            Self::Audio(config) => Encoder::audio(config, sink),
        }
    }

    /// How much earlier than the raw frame its encoded form begins.
    const fn delay(&self) -> Duration {
        match self {
            Self::Video(_) => Duration::ZERO,
            Self::Audio(_) => Duration::from_micros(AudioConfig::ENCODER_DELAY_MICROS),
        }
    }
}

/// A source, its encoder, and what to do when the encoder fails.
pub(super) struct Track {
    source: Box<dyn Source>,
    encoder: TrackEncoder,
    sink: Sink,
    stop: Arc<AtomicBool>,
    running: Option<Encoder>,
    /// Frames since the encoder was started.
    healthy_for: u64,
    backoff: Duration,
    retry_at: Instant,
}

impl Track {
    /// A track that runs until `stop` is set or its source ends.
    pub(super) fn new(
        source: Box<dyn Source>,
        encoder: TrackEncoder,
        sink: Sink,
        stop: Arc<AtomicBool>,
    ) -> Self {
        Self {
            source,
            encoder,
            sink,
            stop,
            running: None,
            healthy_for: 0,
            backoff: FIRST_BACKOFF,
            retry_at: Instant::now(),
        }
    }

    /// Runs the track on a thread of its own.
    pub(super) fn start(mut self) {
        thread::spawn(move || {
            let error = self.run().err();
            let stream = self.encoder.stream();
            // The encoder ends first, so that its last frames come before the end.
            drop(self.running.take());
            self.sink.tell(MediaEvent::Ended { stream, error });
        });
    }

    fn run(&mut self) -> Result<(), IngestError> {
        let mut raw = Vec::new();
        let mut position = 0;
        while !self.stop.load(Ordering::Relaxed) {
            let Some(captured_at) = self.source.next(&mut raw)? else {
                return Ok(());
            };
            self.sink.counters.captured.fetch_add(1, Ordering::Relaxed);
            let delay = u64::try_from(self.encoder.delay().as_micros()).unwrap_or(0);
            let captured_at = namecast_units::Timestamp::from_micros(
                captured_at.as_micros().saturating_sub(delay),
            );
            self.encode(
                &raw,
                Stamp {
                    position,
                    captured_at,
                    // The encoder counts what it is given.
                    number: 0,
                },
            );
            position += 1;
        }
        Ok(())
    }

    fn encode(&mut self, raw: &[u8], stamp: Stamp) {
        let result = self.encoder().and_then(|encoder| match encoder {
            Some(encoder) => encoder.submit(raw, stamp).map(|()| true),
            None => Ok(false),
        });
        match result {
            Ok(true) => {
                self.healthy_for += 1;
                if self.healthy_for == HEALTHY_AFTER {
                    self.backoff = FIRST_BACKOFF;
                }
                return;
            }
            Ok(false) => {}
            Err(error) => self.failed(&error),
        }
        self.sink.counters.lost.fetch_add(1, Ordering::Relaxed);
    }

    /// The running encoder, started if it is time to; `None` while a failed one rests.
    fn encoder(&mut self) -> Result<Option<&mut Encoder>, IngestError> {
        if self.running.is_none() {
            if Instant::now() < self.retry_at {
                return Ok(None);
            }
            self.running = Some(self.encoder.start(&self.sink)?);
            self.healthy_for = 0;
        }
        Ok(self.running.as_mut())
    }

    fn failed(&mut self, error: &IngestError) {
        self.running = None;
        self.retry_at = Instant::now() + self.backoff;
        let wait = self.backoff;
        self.backoff = (self.backoff * 2).min(LONGEST_BACKOFF);
        self.sink
            .counters
            .encoder_restarts
            .fetch_add(1, Ordering::Relaxed);
        let text = format!("{error}; starting it again in {} ms", wait.as_millis());
        self.sink.tell(MediaEvent::Trouble(text));
    }
}
