//! Inputs that come from outside: files, pipes and addresses, whose pictures and sound are encoded already.
//!
//! ```text
//!             ┌─ copied, as it is: pictures and sound ───────────▶ ┐
//!  Demuxer ─▶ ┼─ Transcoder: low rungs, key frames where they are ─┼─▶ MediaEvent
//!   Packet    └─ Transcoder: Opus, of sound that is not copied ──▶ ┘
//! ```
//!
//! A file is played by our clock. Everything else is live: what was captured when is told by when it came, what had gathered
//! before it was opened is passed over up to the newest key frame, and what encoders do not keep up with is left out.

mod captions;
mod clock;
mod continuity;
mod demuxer;
mod feed;
mod form;
mod framecrc;
mod h264;
#[cfg(any(test, feature = "hostile"))]
pub(crate) mod hostile;
mod joiner;
mod merge;
mod opener;
mod refusal;
mod resolve;
mod size;
mod sound;
mod tap;
mod transcoder;
mod turn;
mod unpacked;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use namecast_units::Duration;

use super::description::Description;
use super::ffmpeg::{self, Process};
use super::ladder::PictureSize;
use super::source::{Input, display_matrix};
use super::{AudioConfig, IngestConfig, IngestError, MediaEvent, Sink, StreamKind, VideoConfig};
use crate::nut::NutClass;
use demuxer::{Demuxer, Opened};
use feed::Feed;
use form::Form;
use resolve::Pictures;
use transcoder::Preparation;

pub(super) use clock::{Origin, Playback};
pub(super) use turn::Turn;

/// Pause before an encoder that failed is started again.
const PAUSE: Duration = Duration::from_secs(1);
const LEFT: &str = "The pusher left. Waiting for the next one.";
/// Longest pause before a camera that is gone is tried again; the first is [`PAUSE`], each next one twice as long.
const MAX_PAUSE: Duration = Duration::from_secs(5);
const LOST: &str = "The connection ended. Connecting again.";
/// Channels that sound keeps; more are mixed to two.
const MAX_CHANNELS: u32 = 2;

/// The process that reads an input, to be ended when nobody wants it any more.
#[derive(Debug, Default)]
pub(super) struct Reading {
    process: Mutex<Option<Process>>,
    has_ended: AtomicBool,
}

impl Reading {
    /// Keeps `process`, unless nobody wants it any more.
    fn hold(&self, process: Process) {
        let mut held = self.lock();
        *held = Some(process).filter(|_| !self.has_ended.load(Ordering::Relaxed));
    }

    fn take(&self) -> Option<Process> {
        self.lock().take()
    }

    /// How many lines the process has said so far.
    fn lines_said(&self) -> u64 {
        self.lock().as_ref().map_or(0, Process::lines_said)
    }

    /// How many of them it said before it began to hand over the input.
    fn lines_before_output(&self) -> u64 {
        self.lock().as_ref().map_or(0, Process::lines_before_output)
    }

    /// Waits for the end of the process, which has closed its pipes, and returns the last it said.
    fn said_until_end(&self) -> String {
        let said = self.lock().as_mut().map(|process| process.finish().1);
        said.unwrap_or_default()
    }

    /// Description of the input printed by the process; `None`: no process.
    fn description(&self) -> Option<Description> {
        self.lock().as_ref().map(Process::description)
    }

    /// The last line it said.
    fn last_said(&self) -> Option<String> {
        self.lock().as_ref().and_then(Process::last_said)
    }

    fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    /// Ends the process, and those that come.
    pub(super) fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
        drop(self.take());
    }

    fn lock(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An input that is open, with what will be published of it.
#[derive(Debug)]
pub(super) struct External {
    config: IngestConfig,
    opened: Opened,
    pub(super) video: Option<VideoConfig>,
    pub(super) audio: Option<AudioConfig>,
    copied: Option<Form>,
    preparation: Preparation,
    /// Whether it has captions: a track of subtitles, or closed captions within the pictures.
    pub(super) has_captions: bool,
    note: Option<String>,
}

impl External {
    /// Opens the input of `config`, and decides what is published of it.
    ///
    /// # Errors
    /// If it cannot be opened, holds nothing that could be published, or ffmpeg lacks an encoder.
    pub(super) fn open(config: &IngestConfig, reading: &Arc<Reading>) -> Result<Self, IngestError> {
        match &config.input {
            Input::File(path) if !path.exists() => return Err(IngestError::NoFile(path.clone())),
            Input::File(path) if path.is_dir() => return Err(IngestError::Folder(path.clone())),
            Input::Device("v4l2", path) if !std::path::Path::new(path).exists() => {
                return Err(IngestError::NoCamera(path.clone()));
            }
            _ => {}
        }
        let opened = Demuxer::open(config, config.looped, reading)?;
        let (mut video, mut copied, mut note) = (None, None, None);
        let mut preparation = Preparation::default();
        if let Some((number, stream)) = opened.stream(true) {
            if let (Some(limits), NutClass::Video(width, height)) = (config.limits, stream.class) {
                limits.check(PictureSize { width, height })?;
            }
            let first = opened.first.iter().filter(|it| it.stream == number);
            let pictures = Pictures {
                stream,
                first: first.collect(),
                described: opened.description.picture.clone().unwrap_or_default(),
                turn: turn(&config.input, &opened.description),
            };
            let input = config.input.to_string();
            if opened.description.format.contains("mp4") && pictures.are_encrypted() {
                return Err(IngestError::Encrypted(input));
            }
            let encoder = config.video.encoder.as_deref();
            let resolved = pictures.resolve(&input, &config.wish, encoder)?;
            (video, copied, note) = (Some(resolved.video), resolved.copied, resolved.note);
            preparation = pictures.preparation();
            preparation.is_live = !matches!(config.input, Input::File(_));
            preparation.is_confined = config.limits.is_some();
        }
        let wanted = config.audio.as_ref();
        let audio = wanted.and_then(|audio| opened.sound(audio, &config.wish));
        if video.is_none() && audio.is_none() {
            return Err(IngestError::Nothing(config.input.to_string()));
        }
        if let Some(video) = &video {
            video.check()?;
        }
        if audio.as_ref().is_some_and(|audio| audio.copied.is_none()) {
            ffmpeg::check(&["libopus"])?;
        }
        let has_captions = opened.track.is_some() || opened.first.iter().any(captions::has_closed);
        Ok(Self {
            config: config.clone(),
            has_captions,
            opened,
            video,
            audio,
            copied,
            preparation,
            note,
        })
    }

    /// Publishes it until it ends or `stop` is set, on a thread of its own.
    pub(super) fn start(self, sink: Sink, stop: Arc<AtomicBool>, reading: Arc<Reading>) {
        thread::spawn(move || {
            if let Some(note) = &self.note {
                sink.tell(MediaEvent::Trouble(format!(
                    "Transcoding: the input cannot be passed through, as {note}"
                )));
            }
            let kinds = [
                self.video.as_ref().map(|_| StreamKind::Video),
                self.audio.as_ref().map(|_| StreamKind::Audio),
            ];
            let error = self.run(&sink, &stop, &reading).err();
            for stream in kinds.into_iter().flatten() {
                let error = error.as_ref().map(|error| match error {
                    IngestError::Exceeded(exceeded) => (*exceeded).into(),
                    error => IngestError::Ended(error.to_string()),
                });
                sink.tell(MediaEvent::Ended { stream, error });
            }
        });
    }

    fn run(
        self,
        sink: &Sink,
        stop: &AtomicBool,
        reading: &Arc<Reading>,
    ) -> Result<(), IngestError> {
        let mut feed = Feed::new(&self, sink);
        let Self {
            config, mut opened, ..
        } = self;
        let after = After::of(&config.input);
        loop {
            // A pusher that dies leaves as one that stops.
            let sentence = match (feed.play(opened, stop), after) {
                (outcome, After::Nothing) => return outcome,
                _ if stop.load(Ordering::Relaxed) => return Ok(()),
                (_, After::Listen) => LEFT,
                (_, After::Connect) => LOST,
            };
            sink.tell(MediaEvent::Trouble(sentence.to_owned()));
            let mut pause = PAUSE;
            opened = loop {
                let next = Demuxer::open(&config, false, reading);
                match next.and_then(|opened| feed.take_over(&opened).map(|()| opened)) {
                    Ok(opened) => break opened,
                    Err(_) if stop.load(Ordering::Relaxed) => return Ok(()),
                    Err(error) => {
                        drop(reading.take());
                        sink.tell(MediaEvent::Trouble(one_line(&error)));
                        thread::sleep(pause);
                        if after == After::Connect {
                            pause = MAX_PAUSE.min(pause * 2);
                        }
                    }
                }
            };
        }
    }
}

/// An error as a sentence in one line: ffmpeg's words have several.
fn one_line(error: &IngestError) -> String {
    error.to_string().replace('\n', "; ")
}

/// What follows the end of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// It was all.
    Nothing,
    /// The next pusher.
    Listen,
    /// The same camera, when it is back.
    Connect,
}

impl After {
    fn of(input: &Input) -> Self {
        match input {
            Input::Address(it) if opener::listening(it).is_some() => Self::Listen,
            Input::Address(it) if opener::pulling(it).is_some() => Self::Connect,
            _ => Self::Nothing,
        }
    }
}

/// Returns how the pictures of an input are turned before they are shown. ffmpeg states the angle, and ffprobe the mirror too.
fn turn(input: &Input, description: &Description) -> Turn {
    let rotation = description.picture.as_ref().and_then(|it| it.rotation);
    let Some(degrees) = rotation else {
        return Turn::default();
    };
    let matrix = match input {
        Input::File(path) => display_matrix(path),
        _ => None,
    };
    matrix.map_or_else(|| Turn::counterclockwise(degrees), Turn::of_matrix)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use bytes::Bytes;

    use super::*;
    use crate::ingest::source::{Container, Pipe};
    use crate::ingest::{Exceeded, Limits};
    use crate::nut::NutStream;
    use crate::nut::writer::{file_header, put_frame};

    /// Opens a push of pictures of this size as NUT, and plays it. Pictures come in no time, two more than the burst of a second.
    fn pushed(width: u32, height: u32, frame_rate: u32) -> Result<(), IngestError> {
        let limits = Limits {
            frame_rate,
            ..Limits::default()
        };
        let stream = NutStream {
            class: NutClass::Video(width, height),
            codec: Bytes::from_static(b"VP90"),
            parameters: Bytes::new(),
            decode_delay: 0,
        };
        // The header of a key frame of VP9 alone is looked at.
        let frame = b"\x82\x49\x83\x42\x20\x27\xf0\x16\x70";
        let mut octets = file_header(&[stream]);
        (0..1_000).for_each(|at| put_frame(&mut octets, 0, at * 1_000, true, frame));
        let (reader, mut writer) = std::io::pipe().unwrap();
        thread::spawn(move || writer.write_all(&octets));
        let config = IngestConfig {
            input: Input::Pipe(Pipe::new(reader, Container::Nut, "a push".to_owned())),
            limits: Some(limits),
            ..IngestConfig::default()
        };
        let external = External::open(&config, &Arc::default())?;
        let (sink, mut events) = Sink::new();
        thread::spawn(move || while events.blocking_recv().is_some() {});
        external.run(&sink, &AtomicBool::new(false), &Arc::default())
    }

    #[test]
    fn what_costs_too_much_is_refused() {
        let refused = |width, height, rate| match pushed(width, height, rate) {
            Err(IngestError::Exceeded(exceeded)) => Some(exceeded),
            _ => None,
        };
        let size = PictureSize {
            width: 16_384,
            height: 16_384,
        };
        let max = Limits::default().picture;
        assert_eq!(
            refused(16_384, 16_384, 120),
            Some(Exceeded::Picture(size, max))
        );
        assert_eq!(refused(640, 360, 120), Some(Exceeded::FrameRate(120)));
        assert_eq!(refused(640, 360, 1_000), None);
    }

    #[test]
    fn cameras_are_fetched_again_and_pushers_waited_for() {
        for (input, after) in [
            ("rtsp://camera/stream", After::Connect),
            ("rtmp://:1935/key", After::Listen),
            ("https://host/film.mp4", After::Nothing),
            ("film.mp4", After::Nothing),
            ("-", After::Nothing),
        ] {
            let input = input.parse().unwrap();
            assert_eq!(After::of(&input), after, "{input}");
        }
    }
}
