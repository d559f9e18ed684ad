//! An input as its packets: one ffmpeg opens it, once, and hands over what is inside without decoding it.
//!
//! ```text
//!  file, pipe, address ─▶ ffmpeg, copying ┬─ NUT: octets, presentation times ─────┬─ Joiner ─▶ Packet, with the time it came
//!                                         └─ framecrc: decoding times, marks ─────┘
//!                         a pipe that is NUT ─────────────────────────────────────▶
//! ```

use std::io::{self, Read};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use bytes::Bytes;
use namecast_units::{Duration, LogLimit, Timestamp};

use super::super::description::Description;
use super::super::ffmpeg::{OutputReader, Process};
use super::super::source::{Container, Input};
use super::super::{AudioConfig, IngestConfig, IngestError, Wish};
use super::captions::{Track, TrackCodec};
use super::continuity::{Continuity, Gaps, states_presentation};
use super::framecrc;
use super::joiner::Joiner;
use super::merge::Merge;
use super::opener::{Attempt, Opening, Plan, is_fetched, listening};
use super::refusal::reason;
use super::tap::Tap;
use super::unpacked::Unpacked;
use super::{MAX_CHANNELS, Reading, sound};
use crate::clock;
use crate::nut::{NutClass, NutError, NutReader, NutStream};

/// Packets read ahead: a second of pictures and sound.
const AHEAD: usize = 96;
/// Octets that an ffmpeg may take which opens what strangers send: the largest picture that ffmpeg takes has 400 MB.
const MAX_MEMORY: u64 = 1 << 30;
/// Octets read from the pipe at once.
pub(super) const READ_SIZE: usize = 1 << 16;
/// How long a live input is listened to before it is known, once its first packet is here.
const LISTEN: Duration = Duration::from_millis(500);
/// Of a live input, nothing for so long is said.
pub(super) const SILENCE: Duration = Duration::from_secs(5);
/// Longest wait for the description of a file.
const OPENED: Duration = Duration::from_secs(4);
/// Longest wait for the first key frame of a live input that is joined between two.
const KEY_WAIT: Duration = Duration::from_secs(12);
/// Most packets that are listened to before an input is known: of a film, ten seconds.
const MAX_FIRST: usize = 1_024;
/// No film is so long that its first packets are so far apart.
const MAX_SPAN: Duration = Duration::from_secs(24 * 3_600);
/// Octets of a film that are read to find its second key frame.
const MAX_FIRST_OCTETS: usize = 8 << 20;
/// Names of MPEG-4 in AVI.
const PACKED: [&[u8]; 5] = [b"FMP4", b"XVID", b"DIVX", b"DX50", b"MP4V"];
/// Pictures that are listened to at least, and at most.
const MIN_PICTURES: usize = 2;
const MAX_PICTURES: usize = 16;
/// Longest wait for the stream of a film that its reader hands over later than the other.
const BEHIND: Duration = Duration::from_millis(200);
/// Time between two packets of which the second had not come yet when the first did.
const WAITED: Duration = Duration::from_millis(10);
/// Longest wait for the description that ffmpeg prints, and the polling interval.
const DESCRIBED: Duration = Duration::from_millis(300);
const LOOK: Duration = Duration::from_millis(5);

/// Pictures or sound of an input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Packet {
    /// Which stream of the input it is of.
    pub(super) stream: usize,
    /// When it is decoded and when it is presented, by the source's clock, in microseconds.
    pub(super) dts: u64,
    pub(super) pts: u64,
    /// Duration in microseconds; 0: unknown.
    pub(super) duration: u64,
    /// Whether it decodes by itself.
    pub(super) key: bool,
    /// Whether an edit list cuts it away: it only serves to decode what follows.
    pub(super) is_cut: bool,
    /// Whether something goes along with it: new parameters, or how it is encrypted.
    pub(super) has_side_data: bool,
    pub(super) payload: Bytes,
    pub(super) arrived_at: Timestamp,
}

/// Arrival pattern of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// All of it is there, or is fetched as it is wanted.
    File,
    /// A file or a live stream: its speed tells.
    Pipe,
    Live,
}

impl Kind {
    fn of(input: &Input) -> Self {
        match input {
            Input::File(_) => Self::File,
            Input::Address(address) if is_fetched(address) => Self::File,
            Input::StandardInput => Self::Pipe,
            _ => Self::Live,
        }
    }
}

/// Speed, relative to its own time, above which a pipe carries a file; and the least span measured, in microseconds.
const FASTER: u64 = 4;
const MIN_FASTER: u64 = 2_000_000;

/// Returns whether packets come much faster than they are played.
pub(super) fn is_faster(packets: &[Packet]) -> bool {
    let span = |time: fn(&Packet) -> u64| {
        let times = packets.iter().map(time);
        let (first, last) = (times.clone().min(), times.max());
        last.unwrap_or(0) - first.unwrap_or(0)
    };
    let (played, came) = (span(|it| it.dts), span(|it| it.arrived_at.as_micros()));
    played >= MIN_FASTER && came * FASTER < played
}

/// Whether the last packet had to be waited for. What gathered while ffmpeg opened a live input comes at once, and says little of when
/// it was captured.
fn has_caught_up(packets: &[Packet]) -> bool {
    let mut latest = packets.iter().rev().map(|packet| packet.arrived_at);
    let pair = latest.next().zip(latest.next());
    pair.is_some_and(|(last, before)| last.since(before) >= WAITED)
}

/// An input that is open.
#[derive(Debug)]
pub(super) struct Demuxer {
    reading: Arc<Reading>,
    packets: Receiver<Packet>,
    headers: Receiver<Vec<NutStream>>,
    continuity: Continuity,
    kind: Kind,
    label: String,
    /// Lines of ffmpeg that are known.
    heard: u64,
    unpacked: Option<Unpacked>,
    merge: Option<Merge>,
}

/// What an input turned out to be.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) demuxer: Demuxer,
    pub(super) streams: Vec<NutStream>,
    /// The first packets.
    pub(super) first: Vec<Packet>,
    /// Whether they are all.
    pub(super) has_ended: bool,
    pub(super) attempt: Attempt,
    /// Its subtitles.
    pub(super) track: Option<Track>,
    /// ffmpeg's description of the input.
    pub(super) description: Description,
}

impl Plan {
    /// Returns the next plan after this result: other options, or the track of subtitles that was found; `None`: the result stands.
    fn after(self, opened: &Result<Opened, IngestError>, config: &IngestConfig) -> Option<Self> {
        let attempt = match opened {
            _ if !self.attempt.is_early() => None,
            Ok(opened) if opened.is_packed() => Some(Attempt::PackedPictures),
            Ok(opened) => opened.lacks_sound().then(|| {
                let channels = opened.stream(false).map_or(0, |(_, it)| it.channels());
                // Sound that has not come says nothing yet.
                let channels = if channels == 1 { 1 } else { MAX_CHANNELS };
                Attempt::EncodedSound(config.wish.channels.unwrap_or(channels))
            }),
            Err(IngestError::Unreadable { said, .. }) => self.attempt.after(said),
            Err(_) => None,
        };
        // Opening a live input twice loses packets.
        let can_repeat = Kind::of(&config.input) != Kind::Live;
        let track = match opened {
            Ok(opened) if can_repeat && self.track.is_none() => {
                let tracks = opened.description.subtitles.iter().enumerate();
                let mut tracks = tracks.map(|(number, codec)| (number, TrackCodec::of(codec)));
                tracks.find_map(|(number, codec)| Some((number, codec?)))
            }
            _ => None,
        };
        (attempt.is_some() || track.is_some()).then_some(Self {
            attempt: attempt.unwrap_or(self.attempt),
            track: track.or(self.track),
        })
    }
}

impl Opened {
    /// Number and description of the first stream of pictures, or of sound.
    pub(super) fn stream(&self, is_video: bool) -> Option<(usize, &NutStream)> {
        let is_it = |stream: &&NutStream| match stream.class {
            NutClass::Audio(..) => !is_video,
            NutClass::Video(..) => is_video,
            NutClass::Other => false,
        };
        let streams = self.streams.iter().enumerate();
        streams.clone().find(|(_, stream)| is_it(stream))
    }

    /// How its sound is published: as it is where players take it and nothing else is wished, else encoded as `wanted`.
    pub(super) fn sound(&self, wanted: &AudioConfig, wish: &Wish) -> Option<AudioConfig> {
        let (number, stream) = self.stream(false)?;
        let is_copied = !wish.encodes_sound && !matches!(self.attempt, Attempt::EncodedSound(_));
        let copied = sound::copied(number, stream, &self.first)
            .filter(|copied| is_copied && wish.channels.is_none_or(|it| it == copied.channels));
        let channels = stream.channels().clamp(1, MAX_CHANNELS);
        Some(copied.unwrap_or(AudioConfig {
            channels: wish.channels.unwrap_or(channels),
            ..wanted.clone()
        }))
    }

    /// Whether packets hold two pictures: of MPEG-4 with B-frames in AVI, which has one time for each.
    fn is_packed(&self) -> bool {
        let pictures = self.stream(true).map(|(_, stream)| stream);
        let is_packed = |stream: &NutStream| {
            let mut tags = PACKED.iter();
            tags.any(|tag| stream.codec.eq_ignore_ascii_case(tag))
        };
        self.description.format == "avi" && pictures.is_some_and(is_packed)
    }

    /// Whether there is sound that nobody could decode: it was announced and has not come, or NUT lacks what its decoder needs.
    fn lacks_sound(&self) -> bool {
        let is_vague = |(number, stream): (usize, &NutStream)| {
            let has_come = self.first.iter().any(|packet| packet.stream == number);
            let is_unknown = stream.parameters.is_empty() && !has_come;
            sound::is_aac(stream) && is_unknown || !sound::decodes_from_nut(stream)
        };
        self.stream(false).is_some_and(is_vague)
    }
}

impl Demuxer {
    /// Opens the input of `config`, and waits until it is known what it holds. Files begin again at their end if `looped`.
    ///
    /// # Errors
    /// If it cannot be opened or holds neither pictures nor sound, or ffmpeg is missing.
    pub(super) fn open(
        config: &IngestConfig,
        looped: bool,
        reading: &Arc<Reading>,
    ) -> Result<Opened, IngestError> {
        Self::open_somehow(config, looped, reading).map_err(|error| match error {
            IngestError::Unreadable { input, said } => IngestError::Unreadable {
                input,
                said: reason(&config.input, &said),
            },
            error => error,
        })
    }

    /// Opens the input in the usual way, and in another if ffmpeg's words or what came suggest one.
    fn open_somehow(
        config: &IngestConfig,
        looped: bool,
        reading: &Arc<Reading>,
    ) -> Result<Opened, IngestError> {
        let tap = match &config.input {
            Input::StandardInput => Some(Tap::new(io::stdin())),
            // As ffmpeg would hand it over.
            Input::Pipe(pipe) if pipe.container() == Container::Nut => {
                let pipes: Vec<_> = pipe.take().into_iter().collect();
                return Self::read_from(pipes, None, config, reading).listen(Attempt::First);
            }
            Input::Pipe(pipe) => pipe.take().map(Tap::new),
            _ => None,
        };
        let listens = matches!(&config.input, Input::Address(it) if listening(it).is_some());
        let mut plan = Plan::default();
        loop {
            let opened = Self::open_by(config, looped, reading, (plan, tap.as_ref()));
            let next = plan.after(&opened, config);
            let Some(next) = next.filter(|_| !listens && !reading.has_ended()) else {
                return opened;
            };
            drop((opened, reading.take()));
            plan = next;
        }
    }

    fn open_by(
        config: &IngestConfig,
        looped: bool,
        reading: &Arc<Reading>,
        (plan, tap): (Plan, Option<&Tap>),
    ) -> Result<Opened, IngestError> {
        let opening = Opening::new(config, looped, plan);
        let stdin = match tap {
            Some(_) => Stdio::piped(),
            None => Stdio::null(),
        };
        let (mut process, mut pipes) =
            Process::start_with(&opening.arguments, opening.pipes(), stdin)?;
        if config.limits.is_some() {
            process.confine(MAX_MEMORY);
        }
        if let Some(tap) = tap {
            tap.fill(process.stdin());
        }
        // The last two pipes.
        let track = plan.track.and_then(|(_, codec)| {
            let (lines, octets) = (pipes.pop()?, pipes.pop()?);
            Some(Track::read(codec, octets, lines))
        });
        let lines = pipes.split_off(opening.nuts).pop();
        let lines = lines.map(|pipe| (pipe, opening.lined));
        let reader = Self::read_from(pipes, lines, config, reading);
        reading.hold(process);
        let mut opened = reader.listen(plan.attempt)?;
        opened.track = track;
        Ok(opened)
    }

    /// Begins to read NUT from each of `pipes`, one thread for each, and lines of the first so many streams. What is inside is said
    /// by the first NUT alone: others may be quicker, and what they hold is known.
    fn read_from(
        pipes: Vec<impl Read + Send + 'static>,
        lines: Option<(OutputReader, usize)>,
        config: &IngestConfig,
        reading: &Arc<Reading>,
    ) -> Self {
        let kind = Kind::of(&config.input);
        let mut continuity = Continuity::default();
        if kind == Kind::File {
            continuity.gaps = Gaps::Meant;
        }
        let merge = (pipes.len() > 1).then(Merge::default);
        let (header_sender, headers) = sync_channel(1);
        let mut header_sender = Some(header_sender);
        let (sender, packets) = sync_channel(AHEAD);
        let mut joiner = match lines {
            None => Joiner::default(),
            Some((pipe, lined)) => {
                let (sender, lines) = sync_channel(AHEAD);
                thread::spawn(move || framecrc::read(pipe, |line| sender.send(line).is_ok()));
                Joiner::new(lines, lined)
            }
        };
        for (first_stream, pipe) in pipes.into_iter().enumerate() {
            let (headers, sender) = (header_sender.take(), sender.clone());
            // The streams with lines are in the first pipe.
            let joiner = core::mem::take(&mut joiner);
            thread::spawn(move || read(pipe, first_stream, (headers, joiner), &sender));
        }
        Self {
            reading: Arc::clone(reading),
            packets,
            headers,
            continuity,
            kind,
            label: config.input.to_string(),
            heard: 0,
            unpacked: None,
            merge,
        }
    }

    fn listen(mut self, attempt: Attempt) -> Result<Opened, IngestError> {
        let headers = match self.kind {
            Kind::File => self.headers.recv_timeout(OPENED),
            Kind::Pipe | Kind::Live => self.headers.recv().map_err(Into::into),
        };
        let mut streams = match headers {
            Ok(streams) => streams,
            Err(RecvTimeoutError::Disconnected) => return Err(self.unreadable()),
            Err(RecvTimeoutError::Timeout) => {
                self.cut();
                return Err(IngestError::Endless(self.label.clone()));
            }
        };
        if let Attempt::EncodedSound(channels) = attempt {
            streams.truncate(1);
            streams.push(encoded_sound(channels));
        }
        if attempt == Attempt::PackedPictures {
            let is_video = |stream: &NutStream| matches!(stream.class, NutClass::Video(..));
            self.unpacked = streams.iter().position(is_video).map(Unpacked::new);
        }
        let (mut first, has_ended) = self.first_packets(&streams);
        if first.is_empty() {
            return Err(self.unreadable());
        }
        let description = self.described();
        // Sound may come before ffmpeg fails at the pictures.
        if has_ended
            && self.kind == Kind::Live
            && attempt.after(&self.reading.said_until_end()).is_some()
        {
            return Err(self.unreadable());
        }
        // Messages of the opening are not reported: it went well.
        self.heard = self.reading.lines_before_output();
        let times = || first.iter().map(|packet| packet.dts);
        let span = times().max().unwrap_or(0) - times().min().unwrap_or(0);
        if self.kind == Kind::File && Duration::from_micros(span) > MAX_SPAN {
            self.cut();
            return Err(IngestError::Times(self.label.clone()));
        }
        for (number, stream) in streams.iter_mut().enumerate() {
            if matches!(stream.class, NutClass::Video(..)) {
                let pictures = first.iter().filter(|packet| packet.stream == number);
                stream.decode_delay = stream.decode_delay.max(reorder_depth(pictures));
            }
        }
        if self.kind == Kind::File {
            self.continuity.gaps = Gaps::of_file(&description.format);
        }
        self.continuity.in_order = streams.iter().position(|stream| {
            let is_video = matches!(stream.class, NutClass::Video(..));
            is_video && !states_presentation(&description.format, stream.decode_delay)
        });
        (first.iter_mut()).for_each(|packet| self.continuity.present(packet));
        Ok(Opened {
            demuxer: self,
            streams,
            first,
            has_ended,
            attempt,
            track: None,
            description,
        })
    }

    /// Takes packets until it is known what the input holds. Returns them, and whether it has ended.
    fn first_packets(&mut self, streams: &[NutStream]) -> (Vec<Packet>, bool) {
        let is_video = |packet: &Packet| {
            let class = streams.get(packet.stream).map(|stream| stream.class);
            matches!(class, Some(NutClass::Video(..)))
        };
        let mut first: Vec<Packet> = Vec::new();
        let (mut pictures, mut keys, mut octets) = (0, 0, 0);
        let (mut until, mut keyless_until) = (None, None);
        let has_video = (streams.iter()).any(|it| matches!(it.class, NutClass::Video(..)));
        loop {
            let left = until.map_or(LISTEN, |until: Instant| {
                until.saturating_duration_since(Instant::now())
            });
            let has_enough = pictures >= MIN_PICTURES || !has_video;
            let is_known = pictures >= MAX_PICTURES
                && match self.kind {
                    // The catalogue says how far key frames are apart.
                    Kind::File => keys > 1 || octets > MAX_FIRST_OCTETS,
                    // Its speed is known by then.
                    Kind::Pipe => is_faster(&first),
                    Kind::Live => has_caught_up(&first),
                };
            if is_known || first.len() == MAX_FIRST || has_enough && left.is_zero() {
                return (first, false);
            }
            let wait = if has_enough || until.is_none() {
                left
            } else {
                LISTEN
            };
            match self.receive(wait) {
                Ok(mut packet) => {
                    self.continuity.place(&mut packet);
                    let is_video = is_video(&packet);
                    if is_video && !packet.key && keys == 0 && self.kind == Kind::Live {
                        let now = Instant::now();
                        if now < *keyless_until.get_or_insert(now + KEY_WAIT) {
                            continue;
                        }
                    }
                    if is_video && pictures == 0 {
                        until = None;
                    }
                    until.get_or_insert_with(|| Instant::now() + LISTEN);
                    pictures += usize::from(is_video);
                    keys += usize::from(is_video && packet.key);
                    octets += packet.payload.len();
                    first.push(packet);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return (first, true),
            }
        }
    }

    /// Returns what ffmpeg says of the input, which it prints about when the first packet comes.
    fn described(&self) -> Description {
        let until = Instant::now() + DESCRIBED;
        loop {
            let description = self.reading.description();
            let is_whole = description.as_ref().is_none_or(Description::is_whole);
            if is_whole || Instant::now() > until {
                return description.unwrap_or_default();
            }
            thread::sleep(LOOK);
        }
    }

    /// Returns the next packet in decoding order across pipes, with the presentation times of packed pictures corrected.
    fn receive(&mut self, wait: Duration) -> Result<Packet, RecvTimeoutError> {
        if let Some(merge) = &mut self.merge {
            merge.fill(self.packets.try_iter());
            // All of a film is there, or is being encoded.
            if self.kind == Kind::File {
                let until = Instant::now() + BEHIND;
                while merge.lacks_one() {
                    let left = until.saturating_duration_since(Instant::now());
                    match self.packets.recv_timeout(left) {
                        Ok(packet) => merge.push(packet),
                        Err(_) => merge.give_up(),
                    }
                }
            }
            if let Some(packet) = merge.pop() {
                return Ok(packet);
            }
        }
        let Some(unpacked) = &mut self.unpacked else {
            return self.packets.recv_timeout(wait);
        };
        loop {
            if let Some(packet) = unpacked.pop() {
                return Ok(packet);
            }
            match self.packets.recv_timeout(wait) {
                Ok(packet) => unpacked.push(packet),
                Err(RecvTimeoutError::Disconnected) => {
                    unpacked.finish();
                    return unpacked.pop().ok_or(RecvTimeoutError::Disconnected);
                }
                Err(timeout) => return Err(timeout),
            }
        }
    }

    /// The next packet.
    ///
    /// # Errors
    /// [`Timeout`](RecvTimeoutError::Timeout) if none came in [`SILENCE`], [`Disconnected`](RecvTimeoutError::Disconnected) at
    /// the end.
    pub(super) fn next(&mut self) -> Result<Packet, RecvTimeoutError> {
        let mut packet = self.receive(SILENCE)?;
        self.continuity.place(&mut packet);
        Ok(packet)
    }

    /// How many lines ffmpeg has complained in since the last call, and the last of them.
    pub(super) fn complaint(&mut self) -> Option<(u64, String)> {
        let before = core::mem::replace(&mut self.heard, self.reading.lines_said());
        let lines = self.heard.saturating_sub(before);
        let last = (lines > 0).then(|| self.reading.last_said())?;
        Some((lines, last?))
    }

    /// Ends ffmpeg, which waits for what does not come.
    pub(super) fn cut(&self) {
        drop(self.reading.take());
    }

    /// Waits until ffmpeg has ended.
    ///
    /// # Errors
    /// If it failed; what it said last is in the error.
    pub(super) fn end(self) -> Result<(), IngestError> {
        let process = self.reading.take();
        match process.map(|mut process| process.finish()) {
            Some((false, said)) => Err(IngestError::Broken(said)),
            _ => Ok(()),
        }
    }

    /// Why there is nothing.
    fn unreadable(&mut self) -> IngestError {
        let process = self.reading.take();
        let said = process.map(|mut process| process.end()).unwrap_or_default();
        let input = self.label.clone();
        IngestError::Unreadable { input, said }
    }
}

/// Returns how many of these pictures at most are decoded before one that is shown before them.
fn reorder_depth<'a>(pictures: impl Iterator<Item = &'a Packet>) -> u64 {
    let (mut times, mut depth) = (Vec::new(), 0);
    for picture in pictures {
        let later = times.iter().filter(|&&pts| pts > picture.pts).count();
        depth = depth.max(later as u64);
        times.push(picture.pts);
    }
    depth
}

/// Sound that the ffmpeg which opens the input encodes.
fn encoded_sound(channels: u32) -> NutStream {
    NutStream {
        class: NutClass::Audio(AudioConfig::SAMPLE_RATE, channels),
        codec: Bytes::from_static(b"Opus"),
        parameters: Bytes::new(),
        decode_delay: 0,
    }
}

/// Reads what ffmpeg hands over, until it or whoever takes the packets ends.
fn read(
    mut pipe: impl Read,
    first_stream: usize,
    (mut headers, mut joiner): (Option<SyncSender<Vec<NutStream>>>, Joiner),
    packets: &SyncSender<Packet>,
) {
    let mut reader = NutReader::default();
    let mut octets = vec![0; READ_SIZE];
    loop {
        match pipe.read(&mut octets) {
            Ok(0) => return,
            Ok(count) => reader.push(octets.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        }
        let arrived_at = clock::wall();
        loop {
            let frame = match reader.frame() {
                Ok(frame) => frame,
                Err(error) => return complain(error),
            };
            if reader.is_known()
                && let Some(headers) = headers.take()
            {
                for (number, stream) in reader.streams().iter().enumerate() {
                    joiner.set_depth(first_stream + number, stream.decode_delay);
                }
                // There is room for it.
                let _ = headers.try_send(reader.streams().to_vec());
            }
            let Some(frame) = frame else { break };
            let pts = frame.time.ticks(1_000_000);
            let mut packet = Packet {
                stream: first_stream + frame.stream,
                dts: pts,
                pts,
                duration: 0,
                key: frame.key,
                is_cut: false,
                has_side_data: false,
                payload: frame.payload,
                arrived_at,
            };
            joiner.join(&mut packet);
            if packets.send(packet).is_err() {
                return;
            }
        }
    }
}

fn complain(error: NutError) {
    static LIMIT: Mutex<LogLimit<&str>> = Mutex::new(LogLimit::new());
    let mut limit = LIMIT.lock().unwrap_or_else(PoisonError::into_inner);
    let now = Duration::from_micros(clock::wall().as_micros());
    if let Some(left_out) = limit.admit(now, "NUT") {
        tracing::warn!(left_out, "what ffmpeg hands over: {error}");
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::nut::writer::{file_header, put_frame};

    /// I0 P4 B2 b1 b3: P4 and B2 are decoded before b1.
    #[test]
    fn order_of_decoding_tells_the_depth() {
        let depth = |order: &[u64]| {
            let picture = |&pts: &u64| Packet {
                pts,
                ..Packet::default()
            };
            let pictures: Vec<_> = order.iter().map(picture).collect();
            reorder_depth(pictures.iter())
        };
        assert_eq!(depth(&[0, 4, 2, 1, 3, 8, 6, 5, 7]), 2);
        assert_eq!(depth(&[0, 1, 2]), 0);
        assert_eq!(depth(&[]), 0);
    }

    /// Sound that is encoded comes by its own pipe, here before any picture.
    #[test]
    fn pictures_are_pictures_also_where_sound_comes_first() {
        let (pictures_end, mut pictures) = io::pipe().unwrap();
        let (sound_end, mut sound) = io::pipe().unwrap();
        let (config, reading) = (IngestConfig::default(), Arc::default());
        let pipes = vec![pictures_end, sound_end];
        let demuxer = Demuxer::read_from(pipes, None, &config, &reading);

        let mut octets = file_header(&[encoded_sound(2)]);
        put_frame(&mut octets, 0, 0, true, b"sound");
        sound.write_all(&octets).unwrap();
        assert_eq!(demuxer.packets.recv().unwrap().stream, 1);
        let mut octets = file_header(&[NutStream {
            class: NutClass::Video(320, 180),
            codec: Bytes::from_static(b"H264"),
            parameters: Bytes::new(),
            decode_delay: 0,
        }]);
        for number in 0..MAX_PICTURES as u64 {
            put_frame(&mut octets, 0, number * 40_000, number == 0, b"picture");
        }
        pictures.write_all(&octets).unwrap();

        let opened = demuxer.listen(Attempt::EncodedSound(2)).unwrap();
        assert_eq!(opened.first.len(), MAX_PICTURES);
        let (number, stream) = opened.stream(true).unwrap();
        assert_eq!((number, stream.class), (0, NutClass::Video(320, 180)));
        assert_eq!(opened.stream(false), Some((1, &encoded_sound(2))));
    }
}
