//! The thread that writes a recording: one file for each form of the pictures and the sound.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use bytes::Bytes;
use namecast_apps::live::watcher::Frame;
use namecast_stream::{Rung, StreamInfo, StreamKind};
use namecast_units::{Duration, Timestamp};

use super::captions::{Captions, PICTURES};
use super::destination::{Destination, Place, Wrapping};
use super::output::{Output, Wrapper};
use super::timeline::Timeline;
use crate::nut::writer;
use crate::streams::is_captions;

/// The recording's time starts this long before its first frame, since sound may lie before it.
const HEAD_START: Duration = Duration::from_millis(500);
/// How much of one stream is waited for the first of the other. A container's header has to say which there are.
pub(super) const WAIT: Duration = Duration::from_secs(2);
/// AAC-LC as RFC 6381 names it.
const AAC_LC: &str = "mp4a.40.2";
/// Frames that may wait.
const MAX_WAITING: usize = 512;

/// A frame, with the streams of its catalogue.
#[derive(Debug)]
pub(super) struct Recorded {
    pub(super) frame: Frame,
    pub(super) streams: Arc<[StreamInfo]>,
}

/// What may not change within a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Form {
    codec: String,
    /// Width and height in pixels, or samples a second and channels.
    shape: (Option<u32>, Option<u32>),
}

impl Form {
    fn of(stream: &StreamInfo, rung: &Rung) -> Self {
        Self {
            codec: stream.codec.clone(),
            shape: match stream.kind {
                StreamKind::Audio => (rung.sample_rate, rung.channels),
                _ => (rung.width, rung.height),
            },
        }
    }

    fn size(&self) -> String {
        match self.shape {
            (Some(width), Some(height)) => format!("{width}×{height}"),
            _ => "of another size".to_owned(),
        }
    }
}

impl Recorded {
    /// The stream, with the rung, that the frame is of.
    fn source(&self) -> Option<(&StreamInfo, &Rung)> {
        let stream = self.stream(self.frame.stream)?;
        let rung = stream.rung(&self.frame.rung).or(stream.rungs.first())?;
        Some((stream, rung))
    }

    /// The stream of this kind.
    fn stream(&self, kind: StreamKind) -> Option<&StreamInfo> {
        self.streams.iter().find(|stream| stream.kind == kind)
    }

    /// Whether it was captured no more than `span` before `other`.
    pub(super) fn is_within(&self, span: Duration, other: &Self) -> bool {
        self.frame.captured_at + span >= other.frame.captured_at
    }

    /// Form of the sound that its catalogue names.
    fn sound(&self) -> Option<Form> {
        let stream = self.stream(StreamKind::Audio)?;
        Some(Form::of(stream, stream.rungs.first()?))
    }
}

/// One file, with the form of each of its streams.
#[derive(Debug)]
struct Part {
    output: Output,
    destination: Destination,
    streams: Vec<(StreamKind, Form)>,
    /// The sound that the catalogue named when it was opened.
    sound: Option<Form>,
}

impl Part {
    fn form(&self, kind: StreamKind) -> Option<&Form> {
        let mut streams = self.streams.iter();
        streams.find_map(|(known, form)| (*known == kind).then_some(form))
    }
}

#[derive(Debug)]
pub(super) struct Writer {
    pub(super) destination: Destination,
    pub(super) wrapper: Arc<Wrapper>,
    /// What people should know.
    pub(super) notes: Sender<String>,
    /// Kinds of streams that are recorded.
    pub(super) kinds: Vec<StreamKind>,
    pub(super) state: State,
}

/// How far a recording is.
#[derive(Debug, Default)]
pub(super) struct State {
    part: Option<Part>,
    parts: usize,
    /// Frames of the file that is to be opened.
    waiting: Vec<Recorded>,
    /// The recording's time, once it has begun.
    timeline: Option<Timeline>,
    captions: Option<Captions>,
    /// The last caption before the first file.
    early_caption: Option<Frame>,
}

impl State {
    /// A recording whose time starts at `began`; `None`: shortly before its first frame.
    pub(super) fn beginning(began: Option<Timestamp>) -> Self {
        Self {
            timeline: began.map(Timeline::new),
            ..Self::default()
        }
    }
}

impl Writer {
    pub(super) fn run(mut self, frames: &Receiver<Recorded>) -> anyhow::Result<()> {
        let written = self.write_all(frames);
        match (written, self.close()) {
            // Whoever reads has seen enough, or ffmpeg says why not.
            (Ok(()) | Err(WriteError::ReaderLeft), closed) => closed,
            (Err(WriteError::Other(error)), _) => Err(error),
        }
    }

    fn write_all(&mut self, frames: &Receiver<Recorded>) -> Result<(), WriteError> {
        for recorded in frames {
            self.take(recorded)?;
        }
        self.open_waiting()
    }

    /// Writes a frame, or keeps it until it is known what to open.
    fn take(&mut self, recorded: Recorded) -> Result<(), WriteError> {
        let kind = recorded.frame.stream;
        if kind == StreamKind::Data {
            let mut streams = recorded.streams.iter();
            let stream = streams.find(|it| *it.name == *recorded.frame.name);
            if stream.is_some_and(is_captions) {
                self.caption(recorded.frame);
            }
            return Ok(());
        }
        let source = recorded.source().filter(|_| self.kinds.contains(&kind));
        let Some(form) = source.map(|(stream, rung)| Form::of(stream, rung)) else {
            return Ok(());
        };
        if let Some(part) = &self.state.part {
            let is_picture = kind == StreamKind::Video;
            let has_pictures = part.form(StreamKind::Video).is_some();
            match part.form(kind) {
                _ if is_picture && recorded.frame.key && self.is_sound_other(part, &recorded) => {
                    self.change(StreamKind::Audio, &form)?;
                }
                // The file has no such stream: it came too late.
                None => return Ok(()),
                Some(known) if *known == form => return self.write(&recorded),
                Some(known) if self.goes_on(known, &form) => return self.write(&recorded),
                // Other sound waits for the key frame with which the next file begins.
                Some(_) if !recorded.frame.key || (has_pictures && !is_picture) => return Ok(()),
                Some(_) => self.change(kind, &form)?,
            }
        }
        self.state.waiting.push(recorded);
        match self.is_complete() {
            true => self.open_waiting(),
            false => Ok(()),
        }
    }

    /// Shows a caption from its time on. The last one before the first file is shown when that begins.
    fn caption(&mut self, frame: Frame) {
        let Some(timeline) = &self.state.timeline else {
            self.state.early_caption = Some(frame);
            return;
        };
        if let Some(captions) = &mut self.state.captions {
            let text = String::from_utf8_lossy(&frame.payload).into_owned();
            let at = timeline.time(frame.captured_at);
            captions.subtitles.show(at, text);
        }
    }

    /// Whether the catalogue of `recorded` names other sound than the file has. What standard output lacks it goes on without.
    fn is_sound_other(&self, part: &Part, recorded: &Recorded) -> bool {
        let sound = recorded.sound();
        let is_recorded = self.kinds.contains(&StreamKind::Audio);
        let can_begin = part.sound.is_some() || self.destination.place != Place::Standard;
        is_recorded && can_begin && sound.is_some() && sound != part.sound
    }

    /// Whether pictures of another size may follow in one stream: players of a pipe and of bare H.264 go by the parameters within.
    fn goes_on(&self, known: &Form, next: &Form) -> bool {
        self.destination.place == Place::Standard && known.codec == next.codec
    }

    /// Ends the file, as its streams take another form.
    fn change(&mut self, kind: StreamKind, form: &Form) -> Result<(), WriteError> {
        if self.destination.place == Place::Standard {
            let what = match kind {
                StreamKind::Video => form.codec.as_str(),
                _ => "other sound",
            };
            let error = anyhow::anyhow!(
                "the publisher changed over to {what}, which standard output cannot take in mid-stream: start again"
            );
            return Err(WriteError::Other(error));
        }
        self.close().map_err(WriteError::Other)?;
        let next = self.destination.part(self.state.parts + 1);
        let what = match kind {
            StreamKind::Video => format!("The picture is {} from here on", form.size()),
            _ => "The sound changed".to_owned(),
        };
        self.note(match &self.destination.place {
            Place::File(_) => format!("{what}: going on in {next}"),
            _ => format!("{what}: beginning anew at {next}"),
        });
        Ok(())
    }

    /// Whether what waits says which streams a file gets.
    fn is_complete(&self) -> bool {
        let waiting = &self.state.waiting;
        let has = |kind: &StreamKind| {
            let is_published = waiting.first().is_some_and(|it| it.stream(*kind).is_some());
            !is_published || waiting.iter().any(|it| it.frame.stream == *kind)
        };
        let times = || waiting.iter().map(|it| it.frame.captured_at);
        let span = times().max().zip(times().min());
        let span = span.map_or(0, |(last, first)| last.micros_since(first));
        let is_known = match self.destination.container.wrapping {
            Wrapping::Bare => true,
            // Its header names the rung of the pictures, which may come after sound.
            Wrapping::Nut => has(&StreamKind::Video),
            Wrapping::Ffmpeg(_) => self.kinds.iter().all(has),
        };
        is_known || span > WAIT.as_micros() as i64 || waiting.len() >= MAX_WAITING
    }

    /// Opens the next file, and writes what waited for it.
    fn open_waiting(&mut self) -> Result<(), WriteError> {
        let waiting = core::mem::take(&mut self.state.waiting);
        let sources: Vec<_> = self
            .kinds
            .iter()
            .filter_map(|kind| self.source(*kind, &waiting))
            .collect();
        let Some(earliest) = waiting.iter().map(|it| it.frame.captured_at).min() else {
            return Ok(());
        };
        let has_come = |kind| waiting.iter().any(|it| it.frame.stream == kind);
        let missing = sources
            .iter()
            .filter(|(stream, ..)| self.is_wrapped() && !has_come(stream.kind));
        let silences: Vec<_> = missing
            .filter_map(|(stream, rung, _)| Some((stream.kind, silence(stream, rung)?)))
            .collect();
        self.describe_captions(&sources, &waiting);
        let mut part = self.open(&sources).map_err(WriteError::Other)?;
        part.sound = waiting.first().and_then(Recorded::sound);
        if self.destination.container.wrapping != Wrapping::Bare {
            part.output.write(&header(&sources))?;
        }
        self.state.part = Some(part);
        let head_start = HEAD_START.as_micros() as u64;
        let began = Timestamp::from_micros(earliest.as_micros().saturating_sub(head_start));
        self.state
            .timeline
            .get_or_insert_with(|| Timeline::new(began));
        if let Some(early) = self.state.early_caption.take() {
            self.caption(early);
        }
        for (kind, silence) in silences {
            self.write_silence(kind, &silence, &waiting)?;
        }
        waiting.iter().try_for_each(|recorded| self.write(recorded))
    }

    /// Has captions written beside the file that is to be opened, if the catalogue has any and the destination takes them.
    fn describe_captions(&mut self, sources: &[(&StreamInfo, &Rung, &[u8])], waiting: &[Recorded]) {
        let data = waiting.first().and_then(|it| it.stream(StreamKind::Data));
        let is_there = data.is_some_and(is_captions);
        let of = |kind| sources.iter().find(|(stream, ..)| stream.kind == kind);
        if let Some(directory) = self.destination.captions_directory()
            && let Some((_, rung, _)) = of(StreamKind::Video)
            && is_there
        {
            let audio = of(StreamKind::Audio).map(|(stream, ..)| *stream);
            let captions = &mut self.state.captions;
            let captions = captions.get_or_insert_with(|| Captions::new(directory));
            captions.describe(rung, audio);
            self.destination.playlist = PICTURES;
        }
    }

    /// Writes a moment of silence where the first picture is: a header cannot be written before each stream has begun.
    fn write_silence(
        &mut self,
        kind: StreamKind,
        silence: &[u8],
        waiting: &[Recorded],
    ) -> Result<(), WriteError> {
        let first = waiting.iter().min_by_key(|it| it.frame.presented_at());
        let Some(Recorded { frame, streams }) = first else {
            return Ok(());
        };
        let silence = Frame {
            stream: kind,
            key: true,
            payload: Bytes::copy_from_slice(silence),
            captured_at: frame.presented_at(),
            composition_offset: Duration::ZERO,
            ..frame.clone()
        };
        self.write(&Recorded {
            frame: silence,
            streams: Arc::clone(streams),
        })
    }

    /// What the next file has of this kind: stream, rung, and the first frame.
    fn source<'a>(
        &self,
        kind: StreamKind,
        waiting: &'a [Recorded],
    ) -> Option<(&'a StreamInfo, &'a Rung, &'a [u8])> {
        if let Some(first) = waiting.iter().find(|it| it.frame.stream == kind) {
            let (stream, rung) = first.source()?;
            return Some((stream, rung, &first.frame.payload));
        }
        // NUT may name a stream that comes later, or never; other containers, one of which there is something.
        let stream = waiting.first()?.stream(kind)?;
        let rung = stream.rungs.first()?;
        let can_wait = self.destination.container.wrapping == Wrapping::Nut;
        (can_wait || silence(stream, rung).is_some()).then_some((stream, rung, &[]))
    }

    /// Whether an ffmpeg wraps.
    const fn is_wrapped(&self) -> bool {
        matches!(self.destination.container.wrapping, Wrapping::Ffmpeg(_))
    }

    fn open(&mut self, sources: &[(&StreamInfo, &Rung, &[u8])]) -> anyhow::Result<Part> {
        self.state.parts += 1;
        let destination = self.destination.part(self.state.parts);
        let container = destination.container;
        let mut sound = None;
        for (stream, ..) in sources {
            match stream.kind {
                StreamKind::Audio => sound = container.sound_instead(&stream.codec),
                _ => container.check_video(stream)?,
            }
        }
        if let (Some(codec), 1) = (sound, self.state.parts) {
            self.note(format!(
                "Sound is encoded as {}, which {} takes",
                codec.to_uppercase(),
                container.name
            ));
        }
        let output = Output::open(&destination, self.state.parts, sound, &self.wrapper)?;
        let streams = sources.iter();
        let streams = streams.map(|(stream, rung, _)| (stream.kind, Form::of(stream, rung)));
        Ok(Part {
            output,
            destination,
            streams: streams.collect(),
            sound: None,
        })
    }

    fn write(&mut self, recorded: &Recorded) -> Result<(), WriteError> {
        let (Some(part), Some(timeline)) = (&mut self.state.part, &mut self.state.timeline) else {
            return Ok(());
        };
        let Recorded { frame, .. } = recorded;
        if self.destination.container.wrapping == Wrapping::Bare {
            return Ok(part.output.write(&frame.payload)?);
        }
        let stream = part
            .streams
            .iter()
            .position(|(kind, _)| *kind == frame.stream);
        let Some(stream) = stream else {
            return Ok(());
        };
        let micros = timeline.presented_at(frame);
        if let Some(captions) = &mut self.state.captions
            && frame.stream == StreamKind::Video
        {
            captions.subtitles.begin(micros);
            captions.follow()?;
        }
        let mut octets = Vec::with_capacity(frame.payload.len() + 64);
        writer::put_frame(&mut octets, stream, micros, frame.key, &frame.payload);
        Ok(part.output.write(&octets)?)
    }

    fn close(&mut self) -> anyhow::Result<()> {
        let Some(part) = self.state.part.take() else {
            return Ok(());
        };
        part.output.close(&part.destination, &self.wrapper)?;
        let followed = self.state.captions.as_mut().map(Captions::follow);
        Ok(followed.transpose().map(drop)?)
    }

    fn note(&self, text: String) {
        // Whoever recorded may have gone.
        let _ = self.notes.send(text);
    }
}

/// The header of a file with these streams. The last picture of a fragment has a duration only where the frame rate is known.
fn header(sources: &[(&StreamInfo, &Rung, &[u8])]) -> Vec<u8> {
    let streams = sources.iter();
    let streams = streams.map(|(stream, rung, first)| writer::published(stream, rung, first));
    let mut octets = writer::file_header(&streams.collect::<Vec<_>>());
    for (index, (stream, rung, _)) in sources.iter().enumerate() {
        if stream.kind == StreamKind::Video {
            writer::put_rate(&mut octets, index, rung.rate);
        }
    }
    octets
}

/// Returns a packet of silence in the codec of `stream`, where there is one for every decoder.
fn silence(stream: &StreamInfo, rung: &Rung) -> Option<Vec<u8>> {
    // 20 ms; a decoder of two channels takes one as well: RFC 6716, section 3.1.
    const OPUS: [u8; 3] = [0xf8, 0xff, 0xfe];
    // 1024 samples of AAC-LC, of one channel and of two: all sections are zero.
    const AAC_MONO: &[u8] = &[0x00, 0xc8, 0x00, 0x80, 0x23, 0x80];
    const AAC_STEREO: &[u8] = &[0x21, 0x00, 0x49, 0x90, 0x02, 0x19, 0x00, 0x23, 0x80];
    match (stream.codec.as_str(), rung.channels) {
        ("opus", _) => Some(OPUS.to_vec()),
        ("aac", Some(1)) if rung.codec_string == AAC_LC => Some(AAC_MONO.to_vec()),
        ("aac", Some(2)) if rung.codec_string == AAC_LC => Some(AAC_STEREO.to_vec()),
        _ => None,
    }
}

/// Why nothing more is written.
#[derive(Debug)]
enum WriteError {
    ReaderLeft,
    Other(anyhow::Error),
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ReaderLeft,
            _ => Self::Other(anyhow::Error::new(error).context("cannot write the recording")),
        }
    }
}
