//! The test picture and tone, encoded ahead of time: every run that publishes them publishes the same frames, and none waits
//! for an encoder.

use std::sync::Arc;

use namecast_units::{Duration, Timestamp};
use tokio::sync::mpsc;

use super::encoder::{Encoder, Stamp};
use super::picture::TestPicture;
use super::{AudioConfig, IngestError, MediaEvent, MediaFrame, Sink, VideoConfig, ffmpeg, tone};

const MICROS: u64 = 1_000_000;
/// Frames that may be inside an encoder, or on the way there and back.
const MAX_INSIDE: usize = 64;

/// Encodes the first `length` of test picture and tone, as fast as the encoders can, and gives all frames in the order of
/// capture, those of one instant by rung. Their times of capture count from the clip's beginning. Blocks.
///
/// # Errors
/// If ffmpeg is not there, lacks an encoder, or fails.
pub fn encode(
    video: &VideoConfig,
    audio: Option<&AudioConfig>,
    length: Duration,
) -> Result<Vec<MediaFrame>, IngestError> {
    let mut encoders = vec![video.encoder()];
    encoders.extend(audio.map(|_| "libopus"));
    ffmpeg::check(&encoders)?;
    let mut frames = encode_pictures(video, length)?;
    if let Some(audio) = audio {
        frames.extend(encode_sound(audio, length)?);
    }
    // Rungs are encoded side by side, so they come in any order.
    frames.sort_by_key(|frame| (frame.captured_at, frame.rung));
    Ok(frames)
}

fn encode_pictures(config: &VideoConfig, length: Duration) -> Result<Vec<MediaFrame>, IngestError> {
    let picture = TestPicture::new(config.source_size());
    let rungs = config.ladder.rungs().len();
    let (sink, events) = sink(rungs);
    let encoder = Encoder::video(config, &sink)?;
    drop(sink);
    let count = frames_in(length, config.frames_per_second());
    let mut job = Job::new(encoder, events, rungs);
    let mut raw = Vec::new();
    for stamp in stamps(count, config.frames_per_second()) {
        picture.draw(&mut raw, stamp.captured_at, stamp.position);
        job.submit(&raw, stamp)?;
    }
    job.finish()
}

fn encode_sound(config: &AudioConfig, length: Duration) -> Result<Vec<MediaFrame>, IngestError> {
    let rate = AudioConfig::PACKETS_PER_SECOND;
    let (sink, events) = sink(1);
    let encoder = Encoder::audio(config, &sink)?;
    drop(sink);
    let mut job = Job::new(encoder, events, 1);
    let mut samples = vec![0; AudioConfig::SAMPLES_PER_PACKET];
    for stamp in stamps(frames_in(length, rate), rate) {
        tone::fill(&mut samples, stamp.captured_at, AudioConfig::SAMPLE_RATE);
        let raw: Vec<u8> = samples
            .iter()
            .flat_map(|sample| sample.to_le_bytes().repeat(config.channels as usize))
            .collect();
        job.submit(&raw, stamp)?;
    }
    job.finish()
}

/// Whole frames within `length`.
fn frames_in(length: Duration, rate: u32) -> u64 {
    let count = length.as_micros() * u128::from(rate) / u128::from(MICROS);
    u64::try_from(count).unwrap_or(u64::MAX)
}

fn stamps(count: u64, rate: u32) -> impl Iterator<Item = Stamp> {
    (0..count).map(move |position| Stamp {
        number: position,
        position,
        captured_at: Timestamp::from_micros(position * MICROS / u64::from(rate)),
    })
}

/// Room for what one encoder may have given and nobody has taken.
fn sink(rungs: usize) -> (Sink, mpsc::Receiver<MediaEvent>) {
    let (events, receiver) = mpsc::channel((MAX_INSIDE + 1) * rungs);
    let counters = Arc::default();
    (Sink { events, counters }, receiver)
}

/// One encoder at work.
struct Job {
    encoder: Encoder,
    /// Ends with the encoder.
    events: mpsc::Receiver<MediaEvent>,
    rungs: usize,
    submitted: usize,
    frames: Vec<MediaFrame>,
}

impl Job {
    const fn new(encoder: Encoder, events: mpsc::Receiver<MediaEvent>, rungs: usize) -> Self {
        Self {
            encoder,
            events,
            rungs,
            submitted: 0,
            frames: Vec::new(),
        }
    }

    /// Hands one raw frame over, and waits while too many are inside.
    fn submit(&mut self, raw: &[u8], stamp: Stamp) -> Result<(), IngestError> {
        self.encoder.submit(raw, stamp)?;
        self.submitted += 1;
        while self.frames.len() + MAX_INSIDE * self.rungs < self.submitted * self.rungs {
            // If the encoder has ended, the next frame's submission tells why.
            let Some(event) = self.events.blocking_recv() else {
                break;
            };
            self.frames.extend(frame(event));
        }
        Ok(())
    }

    /// Waits for all frames.
    fn finish(mut self) -> Result<Vec<MediaFrame>, IngestError> {
        self.encoder.finish()?;
        while let Some(event) = self.events.blocking_recv() {
            self.frames.extend(frame(event));
        }
        let (found, expected) = (self.frames.len(), self.submitted * self.rungs);
        if found != expected {
            let text = format!("it gave {found} of {expected} frames");
            return Err(IngestError::Encoder(text));
        }
        Ok(self.frames)
    }
}

fn frame(event: MediaEvent) -> Option<MediaFrame> {
    match event {
        MediaEvent::Frame(frame) => Some(frame),
        MediaEvent::Trouble(_) | MediaEvent::Ended { .. } => None,
    }
}
