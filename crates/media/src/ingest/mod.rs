//! From a camera, a file or a drawn picture to encoded frames, each with the times when it was captured and encoded.
//!
//! ```text
//!  Source (drawn, or ffmpeg decoding) ─ raw ─▶ Encoder (ffmpeg) ─▶ MediaEvent::Frame
//! ```
//!
//! Each track has one thread that waits for the source and feeds the encoder. A full encoder holds the thread up, and a
//! live source then skips frames: delay never builds up. [`clip`] encodes the test picture ahead of time instead, and
//! [`Ingest::copy`] takes what is encoded already from files.

pub mod burned_clock;
pub mod clip;
pub mod codec;
mod encoded;
mod encoder;
pub(crate) mod ffmpeg;
pub mod ladder;
pub mod nut;
pub mod picture;
pub mod source;
pub mod tone;
mod track;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
pub use namecast_stream::StreamKind;
use namecast_units::{Bitrate, Timestamp};
use smart_default::SmartDefault;
use tokio::sync::mpsc;

use codec::VideoCodec;
use encoded::Encoded;
use ladder::{Ladder, PictureSize};
use source::{Decoder, DrawnSound, DrawnVideo, Input, Source};
use track::{Track, TrackEncoder};

/// Frames that may wait to be published; more are dropped and counted, as nobody wants them late.
const QUEUED_EVENTS: usize = 256;

/// What to encode, and how.
#[derive(Clone, Debug, SmartDefault)]
pub struct IngestConfig {
    /// Where pictures and sound come from.
    #[default(Input::Test)]
    pub input: Input,
    /// Start a file again at its end.
    pub looped: bool,
    /// How pictures are encoded.
    pub video: VideoConfig,
    /// How sound is encoded; `None`: not at all.
    #[default(Some(AudioConfig::default()))]
    pub audio: Option<AudioConfig>,
}

/// How pictures are encoded.
#[derive(Clone, Debug, SmartDefault)]
pub struct VideoConfig {
    /// Codec of all rungs.
    pub codec: VideoCodec,
    /// Bitrates and picture sizes.
    pub ladder: Ladder,
    /// Frames a second.
    #[default(30)]
    pub frame_rate: u32,
    /// Frames from one key frame to the next.
    #[default(30)]
    pub key_interval: u32,
}

impl VideoConfig {
    /// Size of raw frames: the largest rung's.
    pub fn source_size(&self) -> PictureSize {
        self.ladder.largest()
    }
}

/// How sound is encoded: always with Opus.
#[derive(Clone, Debug, SmartDefault)]
pub struct AudioConfig {
    /// Mean rate of the encoded sound.
    #[default(Bitrate::kbps(64))]
    pub bitrate: Bitrate,
    /// One or two channels.
    #[default(1)]
    pub channels: u32,
}

impl AudioConfig {
    /// Samples a second and channel.
    pub const SAMPLE_RATE: u32 = 48_000;
    /// Length of a packet in milliseconds.
    pub const PACKET_MILLIS: u64 = 20;
    /// Packets a second.
    pub const PACKETS_PER_SECOND: u32 = 50;
    /// Samples a packet and channel.
    pub const SAMPLES_PER_PACKET: usize = 960;
    /// By how much the encoder's output lags its input: Opus at low delay looks 120 samples ahead, and decoders give these
    /// first. RFC 7845, section 4.2, calls it pre-skip.
    pub const ENCODER_DELAY_MICROS: u64 = 2_500;

    /// Octets of a raw packet: two a sample and channel.
    pub const fn packet_len(&self) -> usize {
        Self::SAMPLES_PER_PACKET * 2 * self.channels as usize
    }
}

/// One encoded frame or sound packet.
#[derive(Clone, Debug)]
pub struct MediaFrame {
    /// Pictures or sound.
    pub stream: StreamKind,
    /// Index of the rung in the ladder; zero for sound.
    pub rung: usize,
    /// Place in playback order; the same frame has the same in every rung.
    pub position: u64,
    /// Can be decoded without others.
    pub key: bool,
    /// When the picture was taken, or the packet's first sample heard.
    pub captured_at: Timestamp,
    /// When the encoder had finished it.
    pub encoded_at: Timestamp,
    /// The encoded frame.
    pub payload: Bytes,
}

/// What ingest has to say.
#[derive(Debug)]
pub enum MediaEvent {
    /// A frame was encoded.
    Frame(MediaFrame),
    /// Something broke and is being mended; for people.
    Trouble(String),
    /// A track ended: the input is over, or broke for good.
    Ended {
        /// Which.
        stream: StreamKind,
        /// Why, unless the input was simply over.
        error: Option<IngestError>,
    },
}

/// Why there is nothing to publish. The texts say what to do next.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// ffmpeg or ffprobe could not be started.
    #[error(
        "ffmpeg could not be started ({0}): install it (Debian: apt-get install ffmpeg), or name it in NAMECAST_FFMPEG"
    )]
    NoFfmpeg(#[source] io::Error),
    /// This ffmpeg was built without an encoder.
    #[error(
        "this ffmpeg has no encoder {0}: install a full build, choose another --codec, or leave sound out with --no-audio"
    )]
    NoEncoder(&'static str),
    /// The file does not exist.
    #[error("there is no file {}: check the path, or use --input test for a test picture", .0.display())]
    NoFile(PathBuf),
    /// The camera does not exist.
    #[error(
        "there is no camera {}: plug one in, name another with --input /dev/videoN, or use --input test", .0.display()
    )]
    NoCamera(PathBuf),
    /// ffmpeg cannot read the input.
    #[error("ffmpeg cannot read {input}: {said}")]
    Unreadable {
        /// The input.
        input: String,
        /// What ffmpeg said.
        said: String,
    },
    /// The input has no pictures.
    #[error("{0} has no pictures: choose an input with a video track")]
    NoPictures(String),
    /// A file is no rung of the ladder that the files are to make.
    #[error("{} cannot be published as it is: {why}", file.display())]
    NoRung {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The encoder died or hangs.
    #[error("the encoder failed: {0}")]
    Encoder(String),
    /// The system gave no pipe.
    #[error("no pipe to ffmpeg: {0}")]
    Pipe(#[source] io::Error),
}

/// What happened so far; read while it runs.
#[derive(Debug, Default)]
pub struct IngestCounters {
    /// Raw frames and sound packets that the sources gave.
    pub captured: AtomicU64,
    /// Encoded frames of all rungs, and sound packets.
    pub encoded: AtomicU64,
    /// Raw ones that were lost because an encoder was down.
    pub lost: AtomicU64,
    /// Encoded ones that were dropped because nobody took them in time.
    pub overflowed: AtomicU64,
    /// Times an encoder had to be started again.
    pub encoder_restarts: AtomicU64,
}

/// Where encoders put their frames.
#[derive(Clone, Debug)]
struct Sink {
    events: mpsc::Sender<MediaEvent>,
    counters: Arc<IngestCounters>,
}

impl Sink {
    /// A sink with room for [`QUEUED_EVENTS`], and its other end.
    fn new() -> (Self, mpsc::Receiver<MediaEvent>) {
        let (events, receiver) = mpsc::channel(QUEUED_EVENTS);
        let counters = Arc::default();
        (Self { events, counters }, receiver)
    }

    fn frame(&self, frame: MediaFrame) {
        match self.events.try_send(MediaEvent::Frame(frame)) {
            Ok(()) => self.counters.encoded.fetch_add(1, Ordering::Relaxed),
            Err(_) => self.counters.overflowed.fetch_add(1, Ordering::Relaxed),
        };
    }

    /// Tells of something rare; waits for room, unless the front-end has left.
    fn tell(&self, event: MediaEvent) {
        let _ = self.events.blocking_send(event);
    }
}

/// Encodes an input until it is dropped.
#[derive(Debug)]
pub struct Ingest {
    events: mpsc::Receiver<MediaEvent>,
    counters: Arc<IngestCounters>,
    stop: Arc<AtomicBool>,
    video: VideoConfig,
    audio: Option<AudioConfig>,
}

impl Ingest {
    /// Opens the input, and starts to encode it.
    ///
    /// # Errors
    /// If the input cannot be opened, or ffmpeg is not there or lacks an encoder.
    pub fn start(config: &IngestConfig) -> Result<Self, IngestError> {
        let mut encoders = vec![config.video.codec.encoder()];
        encoders.extend(config.audio.as_ref().map(|_| "libopus"));
        ffmpeg::check(&encoders)?;
        let (sink, events) = Sink::new();
        let counters = Arc::clone(&sink.counters);
        let stop = Arc::<AtomicBool>::default();
        let (video, sound) = open(config)?;
        let audio = config.audio.clone().filter(|_| sound.is_some());
        let start = |source, encoder| {
            Track::new(source, encoder, sink.clone(), Arc::clone(&stop)).start();
        };
        start(video, TrackEncoder::Video(config.video.clone()));
        if let (Some(sound), Some(audio)) = (sound, &audio) {
            start(sound, TrackEncoder::Audio(audio.clone()));
        }
        Ok(Self {
            events,
            counters,
            stop,
            video: config.video.clone(),
            audio,
        })
    }

    /// Starts to publish files that hold the rungs of one video, encoded already. Sound is that of the first file that has any,
    /// encoded as `audio` says; `None`: without.
    ///
    /// # Errors
    /// If the files are no ladder, or ffmpeg is not there or lacks an encoder.
    pub fn copy(
        files: &[PathBuf],
        looped: bool,
        audio: Option<&AudioConfig>,
    ) -> Result<Self, IngestError> {
        let encoded = Encoded::look(files, audio)?;
        let encoders: Vec<_> = encoded.audio.iter().map(|_| "libopus").collect();
        ffmpeg::check(&encoders)?;
        let (sink, events) = Sink::new();
        let stop = Arc::<AtomicBool>::default();
        encoded.start(looped, &sink, &stop)?;
        Ok(Self {
            events,
            counters: sink.counters,
            stop,
            video: encoded.video,
            audio: encoded.audio,
        })
    }

    /// The next thing that happened; `None` after all tracks have ended.
    pub async fn next(&mut self) -> Option<MediaEvent> {
        self.events.recv().await
    }

    /// How pictures are encoded.
    pub const fn video(&self) -> &VideoConfig {
        &self.video
    }

    /// How sound is encoded; `None` if the input has none or it was not wanted.
    pub const fn audio(&self) -> Option<&AudioConfig> {
        self.audio.as_ref()
    }

    /// Counts what happened so far.
    pub const fn counters(&self) -> &Arc<IngestCounters> {
        &self.counters
    }
}

impl Drop for Ingest {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

type Sources = (Box<dyn Source>, Option<Box<dyn Source>>);

fn open(config: &IngestConfig) -> Result<Sources, IngestError> {
    let VideoConfig { frame_rate, .. } = config.video;
    if config.input == Input::Test {
        let video = DrawnVideo::new(config.video.source_size(), frame_rate);
        let sound = config.audio.as_ref().map(|audio| {
            let sound: Box<dyn Source> = Box::new(DrawnSound::new(audio.channels));
            sound
        });
        return Ok((Box::new(video), sound));
    }
    let (video, sound) = Decoder::start(
        &config.input,
        config.looped,
        &config.video,
        config.audio.as_ref(),
    )?;
    let sound = sound.map(|sound| {
        let sound: Box<dyn Source> = Box::new(sound);
        sound
    });
    Ok((Box::new(video), sound))
}
