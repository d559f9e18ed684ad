//! From a camera, a file or a drawn picture to encoded frames, each with the times when it was captured and encoded.
//!
//! ```text
//!  drawn test picture ─ raw ─▶ Encoder (ffmpeg) ─────────▶ MediaEvent::Frame
//!  file, pipe, address, camera ─ packets ─▶ external ────▶ MediaEvent::Frame: copied, or encoded anew
//! ```
//!
//! Each drawn track has one thread that waits for the source and feeds the encoder. A full encoder holds the thread up, and
//! frames are skipped then: delay never builds up. [`clip`] encodes the test picture ahead of time instead, and
//! [`Ingest::copy`] takes a whole ladder that is encoded already from files.

#[expect(
    clippy::indexing_slicing,
    reason = "pictures of our own, of a known size"
)]
pub mod burned_clock;
pub mod clip;
pub mod codec;
mod description;
mod encoded;
mod encoder;
mod external;
#[cfg(any(test, feature = "hostile"))]
pub(crate) use external::hostile as external_hostile;
pub(crate) mod ffmpeg;
pub mod ladder;
mod limits;
#[expect(
    clippy::indexing_slicing,
    reason = "pictures of our own, of a known size"
)]
pub mod picture;
pub mod quality;
pub mod source;
pub mod tone;
mod track;

use core::task::{Context, Poll};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use namecast_stream::SampleRate;
pub use namecast_stream::StreamKind;
use namecast_units::{Bitrate, Duration, Timestamp};
use smart_default::SmartDefault;
use tokio::sync::mpsc;

use codec::VideoCodec;
use encoded::Encoded;
use external::External;
pub use limits::{Exceeded, Limits, Meter};

use ladder::{Ladder, LadderWish, PictureSize, Rung};
use source::{DrawnSound, DrawnVideo, Input};
use track::{Track, TrackEncoder};

/// Frames that may wait to be published; more are dropped and counted, as nobody wants them late.
const QUEUED_EVENTS: usize = 256;

/// Most changes of captions a second: roll-up captions grow by two characters per frame.
pub const CAPTIONS_PER_SECOND: u32 = 10;

/// What to encode, and how.
#[derive(Clone, Debug, SmartDefault)]
pub struct IngestConfig {
    /// Where pictures and sound come from.
    #[default(Input::Test)]
    pub input: Input,
    /// Bounds of an input that strangers send; `None`: it is ours.
    pub limits: Option<Limits>,
    /// Start a file again at its end.
    pub looped: bool,
    /// How pictures are encoded.
    pub video: VideoConfig,
    /// What is made of an input that is encoded already; `video` has what is made of a drawn one.
    pub wish: Wish,
    /// How sound is encoded; `None`: not at all.
    #[default(Some(AudioConfig::default()))]
    pub audio: Option<AudioConfig>,
}

/// What people wish of an input that is encoded already; what they do not say is left as it is.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// Rungs.
    pub ladder: LadderWish,
    /// Codec of the pictures.
    pub codec: Option<VideoCodec>,
    /// Pictures that come in another order than that in which they are shown are encoded.
    pub refuses_b_frames: bool,
    /// Frames a second.
    pub rate: Option<u32>,
    /// Frames from one key frame to the next.
    pub key_interval: Option<u32>,
    /// Size of the largest picture, and shape of all.
    pub size: Option<PictureSize>,
    /// Channels of the sound.
    pub channels: Option<u32>,
    /// The sound is encoded though it could be published as it is.
    pub encodes_sound: bool,
}

impl Wish {
    /// Whether the pictures have to be encoded for it.
    pub const fn encodes_pictures(&self) -> bool {
        self.rate.is_some() || self.key_interval.is_some() || self.size.is_some()
    }
}

/// How pictures are encoded.
#[derive(Clone, Debug, SmartDefault)]
pub struct VideoConfig {
    /// Codec of all rungs.
    pub codec: VideoCodec,
    /// Encoder of ffmpeg that makes it; `None`: the usual one.
    pub encoder: Option<String>,
    /// Bitrates and picture sizes.
    pub ladder: Ladder,
    /// Frames a second.
    #[default(SampleRate::new(30, 1))]
    pub rate: SampleRate,
    /// Frames from one key frame to the next.
    #[default(30)]
    pub key_interval: u32,
    /// Longest wait of a picture for pictures that are decoded before it and shown after it.
    pub reorder_delay: Duration,
    /// Octets of the largest frame to expect; 0: what encoders make fits.
    pub max_frame: usize,
}

impl VideoConfig {
    /// Size of raw frames: the largest rung's.
    pub fn source_size(&self) -> PictureSize {
        self.ladder.largest()
    }

    /// ffmpeg's name of the encoder.
    pub fn encoder(&self) -> &str {
        self.encoder.as_deref().unwrap_or(self.codec.encoder())
    }

    /// The codec of a rung as WebCodecs names it.
    pub fn codec_string(&self, rung: &Rung) -> String {
        let ours = || (self.codec).codec_string(rung.size, self.frames_per_second());
        match (&rung.copied, &self.encoder) {
            (Some(codec), _) => codec.clone(),
            (None, None) => ours(),
            // Another encoder chooses its profile: High is the most that players take, and includes the others.
            (None, Some(_)) => ours().replace("avc1.42C0", "avc1.6400"),
        }
    }

    /// ffmpeg's options for one rung, so that each frame leaves the encoder before the next one enters.
    fn options(&self, rung: &Rung, key_interval: u32) -> String {
        match &self.encoder {
            Some(encoder) => codec::options_of(encoder, self.codec, rung, key_interval),
            None => (self.codec).options(rung, self.frames_per_second(), key_interval),
        }
    }

    /// Checks that ffmpeg has what encodes the rungs that are not copied.
    ///
    /// # Errors
    /// If it lacks the encoder, or one that was chosen does not work on this machine.
    fn check(&self) -> Result<(), IngestError> {
        let mut rungs = self.ladder.rungs().iter();
        let Some(rung) = rungs.find(|rung| !rung.is_copied()) else {
            return Ok(());
        };
        ffmpeg::check(&[self.encoder()])?;
        let Some(encoder) = &self.encoder else {
            return Ok(());
        };
        let (size, options) = (rung.size, self.options(rung, 1));
        let upload = codec::upload_filter(encoder);
        let line = format!(
            "{} -f lavfi -i color=size={size}:rate=30 -frames:v 1 -vf format=yuv420p{upload} {options} -f null -",
            codec::device(encoder)
        );
        ffmpeg::run(&line).map_err(|said| {
            let encoder = encoder.clone();
            IngestError::EncoderUnusable { encoder, said }
        })
    }

    /// Frames a second, rounded up.
    pub const fn frames_per_second(&self) -> u32 {
        self.rate.num.div_ceil(self.rate.den)
    }
}

/// How sound is published: encoded with Opus, or as it came.
#[derive(Clone, Debug, SmartDefault, PartialEq, Eq)]
pub struct AudioConfig {
    /// Mean rate of the encoded sound.
    #[default(Bitrate::kbps(64))]
    pub bitrate: Bitrate,
    /// One or two channels.
    #[default(1)]
    pub channels: u32,
    /// Sound that is published as it came; `None`: it is encoded.
    pub copied: Option<CopiedAudio>,
}

/// Sound that is published as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedAudio {
    /// [`AAC`](Self::AAC) or [`OPUS`](Self::OPUS).
    pub codec: &'static str,
    /// The codec as WebCodecs names it.
    pub codec_string: String,
    /// Samples a second and channel.
    pub sample_rate: u32,
    /// Packets a second.
    pub rate: SampleRate,
    /// What a decoder needs first: of AAC the AudioSpecificConfig, of Opus nothing.
    pub description: Bytes,
}

impl CopiedAudio {
    /// AAC as the catalogue names it.
    pub const AAC: &str = "aac";
    /// Opus as the catalogue names it.
    pub const OPUS: &str = "opus";
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

    /// ffmpeg's options for the encoder, so that each packet leaves it before the next one enters.
    fn options(&self) -> String {
        format!(
            "-c:a libopus -application lowdelay -frame_duration {} -b:a {}",
            Self::PACKET_MILLIS,
            self.bitrate.as_bps()
        )
    }

    /// Octets of a raw packet: two a sample and channel.
    pub const fn packet_len(&self) -> usize {
        Self::SAMPLES_PER_PACKET * 2 * self.channels as usize
    }
}

/// One encoded frame or sound packet.
#[derive(Clone, Debug)]
pub struct MediaFrame {
    /// Pictures, sound, or captions ([`StreamKind::Data`]).
    pub stream: StreamKind,
    /// Index of the rung in the ladder; zero for sound and captions.
    pub rung: usize,
    /// Place in decoding order; the same key frame of a closed group has the same in every rung.
    pub position: u64,
    /// Can be decoded without others.
    pub key: bool,
    /// When the picture was taken, or the packet's first sample heard; of a picture that is decoded before one shown earlier: its
    /// decoding time.
    pub captured_at: Timestamp,
    /// Presentation time minus decoding time; zero where pictures are shown in decoding order.
    pub composition_offset: Duration,
    /// When the encoder had finished it.
    pub encoded_at: Timestamp,
    /// The encoded frame; of captions, the text that is shown from `captured_at` on.
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
        "this ffmpeg has no encoder {0}: install a full build, choose another --codec or --encoder (ffmpeg -encoders lists them), or leave sound out with --no-audio"
    )]
    NoEncoder(String),
    /// An encoder does not work on this machine.
    #[error(
        "ffmpeg's encoder {encoder} does not work here ({said}): name another with --encoder, or leave it out"
    )]
    EncoderUnusable {
        /// The encoder.
        encoder: String,
        /// What ffmpeg said.
        said: String,
    },
    /// The file does not exist.
    #[error("there is no file {}: check the path, or use --input test for a test picture", .0.display())]
    NoFile(PathBuf),
    /// There is nothing to listen to.
    #[error("{0} has no sound for a call: write --input microphone, or a file")]
    NoSound(String),
    /// The camera does not exist.
    #[error(
        "there is no camera {0}: plug one in, name another with --input /dev/videoN, or use --input test"
    )]
    NoCamera(String),
    /// ffmpeg cannot read the input.
    #[error("{input} cannot be read: {said}")]
    Unreadable {
        /// The input.
        input: String,
        /// What ffmpeg said.
        said: String,
    },
    /// The pictures are encrypted.
    #[error(
        "{0} is encrypted (DRM), and nobody could watch it: choose a file without, or decrypt it first with the key (ffmpeg -decryption_key)"
    )]
    Encrypted(String),
    /// A folder was named.
    #[error("{} is a folder: name a file in it", .0.display())]
    Folder(PathBuf),
    /// A file does not come to the point.
    #[error(
        "{0} could not be opened within 4 s: its header does not end, or nothing comes; check that it is a film, and that it can be read"
    )]
    Endless(String),
    /// The times in a file make no sense.
    #[error(
        "{0} cannot be played: its first frames are more than a day apart, so its times are damaged"
    )]
    Times(String),
    /// The file has no pictures.
    #[error("{0} has no pictures: choose a file with a video track")]
    NoPictures(String),
    /// The input has neither pictures nor sound that is wanted.
    #[error("{0} has neither pictures nor sound: choose another input")]
    Nothing(String),
    /// The input cannot be passed through as it is.
    #[error("{input} cannot be passed through: {why}. Or leave 'copy' out of --ladder")]
    NotCopied {
        /// The input.
        input: String,
        /// Why not, and what would help.
        why: String,
    },
    /// A pusher's pictures are not those that the catalogue describes.
    #[error(
        "a pusher was refused: its pictures are not as those before, {0} in the same profile and without B-frames; to publish them, start again"
    )]
    Other(PictureSize),
    /// A pusher's sound is not that which the catalogue describes.
    #[error(
        "a pusher was refused: its sound has another codec, rate or number of channels than before; to publish it, start again"
    )]
    OtherSound,
    /// The input costs more than a stranger's may.
    #[error(transparent)]
    Exceeded(#[from] Exceeded),
    /// The input failed after it was opened.
    #[error("the input failed: {0}")]
    Broken(String),
    /// The input failed; the text is that of the original error.
    #[error("{0}")]
    Ended(String),
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
    /// Times a live input fell silent.
    pub silences: AtomicU64,
    /// Things of an input that ffmpeg complained of while it was read.
    pub damages: AtomicU64,
    /// Times an input's pictures changed their size in mid-stream.
    pub size_changes: AtomicU64,
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

/// An input that is being opened.
#[derive(Clone, Debug, Default)]
pub struct Opening(Arc<external::Reading>);

impl Opening {
    /// Gives it up: the process that waits for it ends, and whoever opens it gets an error.
    pub fn cancel(&self) {
        self.0.end();
    }
}

/// Encodes an input until it is dropped.
#[derive(Debug)]
pub struct Ingest {
    events: mpsc::Receiver<MediaEvent>,
    counters: Arc<IngestCounters>,
    stop: Arc<AtomicBool>,
    /// The process that reads an input from outside.
    reading: Arc<external::Reading>,
    video: Option<VideoConfig>,
    audio: Option<AudioConfig>,
    has_captions: bool,
}

impl Ingest {
    /// Opens the input, and starts to encode it.
    ///
    /// # Errors
    /// If the input cannot be opened, or ffmpeg is not there or lacks an encoder.
    pub fn start(config: &IngestConfig) -> Result<Self, IngestError> {
        Self::start_by(config, &Opening::default())
    }

    /// Does the same; `opening` may be given up meanwhile, as a pusher may keep one waiting.
    ///
    /// # Errors
    /// As [`start`](Self::start), and if it was given up.
    pub fn start_by(config: &IngestConfig, opening: &Opening) -> Result<Self, IngestError> {
        match config.input {
            Input::Test => Self::draw(config),
            _ => Self::take(config, opening),
        }
    }

    /// Starts to publish an input that comes from outside.
    fn take(config: &IngestConfig, opening: &Opening) -> Result<Self, IngestError> {
        let (sink, events) = Sink::new();
        let counters = Arc::clone(&sink.counters);
        let (stop, reading) = (Arc::<AtomicBool>::default(), Arc::clone(&opening.0));
        let input = External::open(config, &reading)?;
        let (video, audio) = (input.video.clone(), input.audio.clone());
        let has_captions = input.has_captions;
        input.start(sink, Arc::clone(&stop), Arc::clone(&reading));
        Ok(Self {
            events,
            counters,
            stop,
            reading,
            video,
            audio,
            has_captions,
        })
    }

    /// Starts to draw the test picture, and to encode it.
    fn draw(config: &IngestConfig) -> Result<Self, IngestError> {
        config.video.check()?;
        if config.audio.is_some() {
            ffmpeg::check(&["libopus"])?;
        }
        let (sink, events) = Sink::new();
        let counters = Arc::clone(&sink.counters);
        let stop = Arc::<AtomicBool>::default();
        let start = |source, encoder| {
            Track::new(source, encoder, sink.clone(), Arc::clone(&stop)).start();
        };
        let picture = DrawnVideo::new(config.video.source_size(), config.video.frames_per_second());
        start(Box::new(picture), TrackEncoder::Video(config.video.clone()));
        if let Some(audio) = config.audio.clone() {
            start(
                Box::new(DrawnSound::new(audio.channels)),
                TrackEncoder::Audio(audio),
            );
        }
        Ok(Self {
            events,
            counters,
            stop,
            reading: Arc::default(),
            video: Some(config.video.clone()),
            audio: config.audio.clone(),
            has_captions: false,
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
            reading: Arc::default(),
            video: Some(encoded.video),
            audio: encoded.audio,
            has_captions: false,
        })
    }

    /// The next thing that happened; `None` after all tracks have ended.
    pub async fn next(&mut self) -> Option<MediaEvent> {
        self.events.recv().await
    }

    /// The same, for whoever waits for several at a time.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<MediaEvent>> {
        self.events.poll_recv(context)
    }

    /// How pictures are encoded; `None` if the input has none.
    pub const fn video(&self) -> Option<&VideoConfig> {
        self.video.as_ref()
    }

    /// How sound is encoded; `None` if the input has none or it was not wanted.
    pub const fn audio(&self) -> Option<&AudioConfig> {
        self.audio.as_ref()
    }

    /// Returns whether the input has captions, which come as frames of [`StreamKind::Data`].
    pub const fn has_captions(&self) -> bool {
        self.has_captions
    }

    /// Counts what happened so far.
    pub const fn counters(&self) -> &Arc<IngestCounters> {
        &self.counters
    }
}

impl Drop for Ingest {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.reading.end();
    }
}
