//! The test picture and tone, encoded ahead of time: every run that publishes them publishes the same frames, and none waits
//! for an encoder.

use namecast_units::{Duration, Timestamp};
use tokio::sync::mpsc;

use super::encoder::{Encoder, Stamp};
use super::picture::TestPicture;
use super::{AudioConfig, IngestError, MediaEvent, MediaFrame, Sink, VideoConfig, ffmpeg, tone};

const MICROS: u64 = 1_000_000;

/// Encodes the first `length` of test picture and tone, as fast as the encoders can, and gives all frames in the order of
/// capture. Their times of capture count from the clip's beginning. Blocks.
///
/// # Errors
/// If ffmpeg is not there, lacks an encoder, or fails.
pub fn encode(
    video: &VideoConfig,
    audio: Option<&AudioConfig>,
    length: Duration,
) -> Result<Vec<MediaFrame>, IngestError> {
    let mut encoders = vec![video.codec.encoder()];
    encoders.extend(audio.map(|_| "libopus"));
    ffmpeg::check(&encoders)?;
    let mut frames = encode_pictures(video, length)?;
    if let Some(audio) = audio {
        frames.extend(encode_sound(audio, length)?);
    }
    frames.sort_by_key(|frame| frame.captured_at);
    Ok(frames)
}

fn encode_pictures(config: &VideoConfig, length: Duration) -> Result<Vec<MediaFrame>, IngestError> {
    let picture = TestPicture::new(config.source_size());
    let rungs = config.ladder.rungs().len();
    let job = Job::new(length, config.frame_rate, rungs);
    let encoder = Encoder::video(config, &job.sink)?;
    job.run(encoder, |raw, at, number| picture.draw(raw, at, number))
}

fn encode_sound(config: &AudioConfig, length: Duration) -> Result<Vec<MediaFrame>, IngestError> {
    let mut samples = vec![0; AudioConfig::SAMPLES_PER_PACKET];
    let job = Job::new(length, AudioConfig::PACKETS_PER_SECOND, 1);
    let encoder = Encoder::audio(config, &job.sink)?;
    job.run(encoder, |raw, at, _| {
        tone::fill(&mut samples, at, AudioConfig::SAMPLE_RATE);
        let octets = samples.iter().flat_map(|sample| {
            let channels = core::iter::repeat_n(sample.to_le_bytes(), config.channels as usize);
            channels.flatten()
        });
        raw.clear();
        raw.extend(octets);
    })
}

/// One track to be encoded.
struct Job {
    /// Raw frames.
    count: u64,
    /// Frames a second.
    rate: u64,
    rungs: usize,
    sink: Sink,
    events: mpsc::Receiver<MediaEvent>,
}

impl Job {
    fn new(length: Duration, rate: u32, rungs: usize) -> Self {
        let count = length.as_micros() * u128::from(rate) / u128::from(MICROS);
        let count = u64::try_from(count).unwrap_or(u64::MAX).max(1);
        // There is room for everything, so that the encoder need not wait, and nothing is dropped.
        let (events, receiver) = mpsc::channel(count as usize * rungs);
        Self {
            count,
            rate: u64::from(rate),
            rungs,
            sink: Sink {
                events,
                counters: Default::default(),
            },
            events: receiver,
        }
    }

    /// Feeds `encoder` with what `draw` puts into its buffer for a time and number, and gathers what comes out.
    fn run(
        mut self,
        mut encoder: Encoder,
        mut draw: impl FnMut(&mut Vec<u8>, Timestamp, u64),
    ) -> Result<Vec<MediaFrame>, IngestError> {
        let mut raw = Vec::new();
        for position in 0..self.count {
            let captured_at = Timestamp::from_micros(position * MICROS / self.rate);
            draw(&mut raw, captured_at, position);
            let stamp = Stamp {
                position,
                captured_at,
            };
            encoder.submit(&raw, stamp)?;
        }
        encoder.finish()?;
        // The encoder's outputs hold the other sinks, and end with it.
        drop(self.sink);
        let mut frames = Vec::new();
        while let Some(event) = self.events.blocking_recv() {
            if let MediaEvent::Frame(frame) = event {
                frames.push(frame);
            }
        }
        let expected = self.count as usize * self.rungs;
        if frames.len() != expected {
            let found = frames.len();
            let text = format!("it gave {found} of {expected} frames");
            return Err(IngestError::Encoder(text));
        }
        Ok(frames)
    }
}
