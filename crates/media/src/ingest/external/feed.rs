//! Times an input's packets, publishes them unchanged, and hands them to the encoders.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Instant;

use namecast_units::{Duration, Timestamp};

use super::super::description::Description;
use super::super::encoder::Stamp;
use super::super::ladder::PictureSize;
use super::super::source::Input;
use super::super::{
    AudioConfig, Exceeded, IngestError, Limits, MediaEvent, MediaFrame, Meter, Sink, StreamKind,
    VideoConfig,
};
use super::captions::Captions;
use super::clock::{CaptureClock, Origin, Playback};
use super::demuxer::{self, Demuxer, Opened, Packet, SILENCE};
use super::form::{self, Form};
use super::opener::{self, Attempt};
use super::refusal;
use super::size::SizeWatch;
use super::transcoder::{PictureClock, Preparation, SoundClock, Transcoder};
use super::{After, External, PAUSE, one_line, sound};
use crate::clock::wall;
use crate::nut::{NutClass, NutStream};

/// Key frames further apart than this are complained of: whoever joins waits for one.
const MAX_GROUP: Duration = Duration::from_secs(2);
const NO_KEY: &str = "it has no key frame to begin with";
const TOO_SLOW: &str = "The encoders do not keep up: frames are left out up to the next key frame, counted as frames_lost in --stats. Choose \
                        fewer or smaller rungs with --ladder";

/// By which clock packets are published.
#[derive(Debug)]
enum Pace {
    /// Ours, from the file's first decoding time on.
    File(Playback, Option<u64>),
    /// The source's.
    Live,
}

/// Formats of addresses whose segments come in bursts.
const IN_SEGMENTS: [&str; 2] = ["hls", "dash"];

impl Pace {
    fn of(input: &Input, opened: &Opened) -> Self {
        let Description {
            format, duration, ..
        } = &opened.description;
        let has_end = duration.is_some();
        let is_file = match input {
            Input::File(_) => true,
            Input::Address(address) if opener::is_fetched(address) => {
                has_end || IN_SEGMENTS.contains(&format.as_str())
            }
            Input::StandardInput => has_end || demuxer::is_faster(&opened.first),
            _ => false,
        };
        match is_file {
            true => Self::File(Playback::default(), None),
            false => Self::Live,
        }
    }
}

/// Formats without times: frames are counted by a rate that is stated or taken for granted.
const RAW: [&str; 8] = [
    "h264",
    "hevc",
    "m4v",
    "mjpeg",
    "mpjpeg",
    "mpegvideo",
    "obu",
    "vc1",
];

fn is_raw(description: &Description) -> bool {
    let mut names = description.format.split(',');
    names.any(|name| RAW.contains(&name))
}

/// Carries packets to where they are published.
pub(super) struct Feed {
    input: Input,
    pace: Pace,
    /// Whether times count frames, whenever they come.
    is_raw: bool,
    clock: CaptureClock,
    picture_origin: Arc<Origin>,
    sound_origin: Arc<Origin>,
    copied: Option<Form>,
    video: Option<VideoConfig>,
    audio: Option<AudioConfig>,
    preparation: Preparation,
    sink: Sink,
    order: Order,
    sounds: Arc<AtomicU64>,
    /// Whether captions are published.
    has_captions: bool,
    captions: Option<Captions>,
    /// Position of the next caption.
    next_caption: u64,
    /// Whether something may follow its end.
    comes_again: bool,
    /// Whether sound comes encoded as it is published, though not by its source.
    sound_is_ready: bool,
    /// Frames a second that were asked for, and position of the next one, by all encoders of these pictures.
    resampled: Option<(u32, Arc<AtomicU64>)>,
    /// Bounds of what strangers send, and what has come.
    bounds: Option<(Limits, Meter)>,
}

/// An encoder, or when to start it again.
struct Kept {
    running: Option<Transcoder>,
    retry_at: Instant,
    /// Whether it was said that it does not keep up.
    has_told_overload: bool,
    /// What one that failed said last.
    failure: Option<String>,
}

impl Kept {
    fn new() -> Self {
        Self {
            running: None,
            retry_at: Instant::now(),
            has_told_overload: false,
            failure: None,
        }
    }

    /// Starts the encoder if there is none, and if the next packet is one to begin with.
    fn begin(
        &mut self,
        key: bool,
        sink: &Sink,
        start: impl FnOnce() -> Result<Transcoder, IngestError>,
    ) {
        if self.running.is_none() && key && Instant::now() >= self.retry_at {
            match start() {
                Ok(transcoder) => self.running = Some(transcoder),
                Err(error) => self.failed(&error, sink),
            }
        }
    }

    fn stamp(&self, stamp: Stamp) {
        if let Some(transcoder) = &self.running {
            transcoder.stamp(stamp);
        }
    }

    fn submit(&mut self, packet: Packet, sink: &Sink) {
        let submitted = self.running.as_mut().map(|it| it.submit(packet));
        match submitted {
            Some(Ok(true)) => {}
            Some(Ok(false)) => {
                sink.counters.lost.fetch_add(1, Ordering::Relaxed);
                if !self.has_told_overload {
                    self.has_told_overload = true;
                    sink.tell(MediaEvent::Trouble(TOO_SLOW.to_owned()));
                }
            }
            None => {
                sink.counters.lost.fetch_add(1, Ordering::Relaxed);
            }
            Some(Err(error)) => self.failed(&error, sink),
        }
    }

    fn failed(&mut self, error: &IngestError, sink: &Sink) {
        self.running = None;
        self.retry_at = Instant::now() + PAUSE;
        sink.counters
            .encoder_restarts
            .fetch_add(1, Ordering::Relaxed);
        let sentence = format!("{}; starting it again", one_line(error));
        sink.tell(MediaEvent::Trouble(sentence));
        if let IngestError::Encoder(said) = error {
            self.failure = Some(said.clone());
        }
    }

    /// Lets it end. Returns what one that failed said last.
    fn finish(self) -> Option<String> {
        let failure = self.running.and_then(Transcoder::finish);
        failure.or(self.failure)
    }
}

impl Feed {
    /// Creates the feed from `input` to `sink`.
    pub(super) fn new(input: &External, sink: &Sink) -> Self {
        let External {
            config,
            opened,
            video,
            audio,
            copied,
            preparation,
            ..
        } = input;
        let is_file = matches!(config.input, Input::File(_));
        Self {
            input: config.input.clone(),
            pace: Pace::of(&config.input, opened),
            is_raw: !is_file && is_raw(&opened.description),
            clock: CaptureClock::default(),
            picture_origin: Arc::default(),
            sound_origin: Arc::default(),
            copied: copied.clone(),
            video: video.clone(),
            audio: audio.clone(),
            preparation: preparation.clone(),
            sink: sink.clone(),
            order: Order::default(),
            sounds: Arc::default(),
            has_captions: input.has_captions,
            captions: None,
            next_caption: 0,
            comes_again: After::of(&config.input) != After::Nothing,
            sound_is_ready: false,
            resampled: (config.wish.rate).map(|rate| (rate, Arc::default())),
            bounds: config.limits.map(|limits| (limits, limits.pictures())),
        }
    }

    /// Goes on with the next pusher, if it can take the place of the one before.
    pub(super) fn take_over(&mut self, opened: &Opened) -> Result<(), IngestError> {
        if let Some(audio) = self.audio.as_ref().filter(|it| it.copied.is_some())
            && let Some((number, stream)) = opened.stream(false)
        {
            let next = sound::copied(number, stream, &opened.first);
            if next.is_none_or(|next| {
                (next.channels, next.copied) != (audio.channels, audio.copied.clone())
            }) {
                return Err(IngestError::OtherSound);
            }
        }
        let (Some(form), Some(video)) = (&mut self.copied, &self.video) else {
            return Ok(());
        };
        let copied = video.ladder.rungs().iter().find(|rung| rung.is_copied());
        let (Some(rung), Some((number, stream))) = (copied, opened.stream(true)) else {
            return Ok(());
        };
        let mut keys = opened
            .first
            .iter()
            .filter(|it| it.stream == number && it.key);
        let key = keys.next().map_or(&[][..], |packet| &packet.payload);
        let next = form::form(stream, key, rung.size, video.frames_per_second());
        let next = next.filter(|(_, codec_string)| Some(codec_string) == rung.copied.as_ref());
        let size = NutClass::Video(rung.size.width, rung.size.height);
        match next.filter(|_| stream.class == size) {
            Some((next, _)) => {
                *form = next;
                Ok(())
            }
            None => Err(IngestError::Other(rung.size)),
        }
    }

    /// Publishes an input from where it is to its end.
    pub(super) fn play(&mut self, opened: Opened, stop: &AtomicBool) -> Result<(), IngestError> {
        let video = opened.stream(true).map(|(at, it)| (at, it.clone()));
        let audio = opened.stream(false).map(|(at, it)| (at, it.clone()));
        let video = video.filter(|_| self.video.is_some());
        let audio = audio.filter(|_| self.audio.is_some());
        let Opened {
            mut demuxer,
            first,
            has_ended,
            attempt,
            track,
            ..
        } = opened;
        self.captions = self.has_captions.then(|| Captions::new(track));
        self.sound_is_ready = matches!(attempt, Attempt::EncodedSound(_));
        let is_video = |packet: &Packet| video.as_ref().is_some_and(|it| it.0 == packet.stream);
        let newest = first.iter().rposition(|it| it.key && is_video(it));
        let newest = newest.filter(|_| matches!(self.pace, Pace::Live) && !has_ended);
        let skipped = newest.unwrap_or(0);
        let numbers = [&video, &audio].map(|it| it.as_ref().map(|&(number, _)| number));
        self.expect(&first, skipped, numbers);
        let (mut pictures, mut sound) = (Kept::new(), Kept::new());
        let mut group = Group::new(video.as_ref(), &first);
        let mut is_silent = false;
        let mut first = first.into_iter().skip(skipped);
        while !stop.load(Ordering::Relaxed) {
            let packet = match first.next().map_or_else(|| demuxer.next(), Ok) {
                Ok(packet) => packet,
                Err(RecvTimeoutError::Disconnected) => break,
                // A pusher whose network fell silent would hold the place of the next one.
                Err(RecvTimeoutError::Timeout) if self.comes_again => {
                    demuxer.cut();
                    break;
                }
                Err(RecvTimeoutError::Timeout) => {
                    if !is_silent {
                        self.fell_silent();
                    }
                    is_silent = true;
                    continue;
                }
            };
            is_silent = false;
            self.report_damage(&mut demuxer);
            if let Some((number, stream)) = &video
                && *number == packet.stream
            {
                let packet = self.timed(packet, true, stop);
                let looked = self.look_at(&packet, &mut group);
                looked.inspect_err(|_| demuxer.cut())?;
                self.caption(&packet);
                if group.has_begun() {
                    self.picture(packet, stream, &mut pictures);
                }
            } else if let Some((number, stream)) = &audio
                && *number == packet.stream
            {
                let packet = self.timed(packet, false, stop);
                self.sound(packet, stream, &mut sound);
            }
            let has_failed = pictures.failure.is_some() || sound.failure.is_some();
            if has_failed && self.is_hopeless() {
                demuxer.cut();
                break;
            }
        }
        let lacks_key = video.is_some() && !group.has_begun();
        let finished = self.finish(pictures, sound, lacks_key);
        match stop.load(Ordering::Relaxed) {
            true => Ok(()),
            false => finished.and_then(|()| demuxer.end()),
        }
    }

    /// Lets the encoders end.
    ///
    /// # Errors
    /// If nothing could be decoded of a film.
    fn finish(&mut self, pictures: Kept, sound: Kept, lacks_key: bool) -> Result<(), IngestError> {
        self.order.flush();
        while let Some(stamp) = self.order.next() {
            pictures.stamp(stamp);
        }
        let failure = pictures.finish().or(sound.finish());
        let failure = failure.or(lacks_key.then(|| NO_KEY.to_owned()));
        match failure.filter(|_| self.is_hopeless()) {
            None => Ok(()),
            Some(said) => Err(IngestError::Unreadable {
                said: refusal::reason(&self.input, &said),
                input: self.input.to_string(),
            }),
        }
    }

    /// Returns whether an encoder that failed would fail again: it is fed by a film, of which nothing could be decoded so far.
    fn is_hopeless(&self) -> bool {
        matches!(self.pace, Pace::File(..))
            && self.sink.counters.encoded.load(Ordering::Relaxed) == 0
    }

    /// Has the clock learn from the first packets, of which so many are skipped; numbers are those of the streams of pictures and sound.
    fn expect(&mut self, first: &[Packet], skipped: usize, [video, audio]: [Option<usize>; 2]) {
        let pictures = first.iter().filter(|it| Some(it.stream) == video);
        let taken = (0..).map(|at| at >= skipped);
        let known = first.iter().zip(taken).filter_map(|(packet, is_taken)| {
            let is_video = Some(packet.stream) == video;
            (is_video || Some(packet.stream) == audio).then_some((is_video, packet, is_taken))
        });
        match self.pace {
            Pace::File(..) => self.clock.expect(pictures),
            // Its times are corrected by its arrivals.
            Pace::Live if self.is_raw => {}
            Pace::Live => self.clock.learn(known),
        }
    }

    /// Says what whoever watches would wonder at.
    fn look_at(&mut self, packet: &Packet, group: &mut Group) -> Result<(), Exceeded> {
        if let Some((_, pictures)) = &mut self.bounds {
            pictures.take(Instant::now(), 1)?;
        }
        if let Some(complaint) = group.complaint(packet) {
            self.sink.tell(MediaEvent::Trouble(complaint));
        }
        if let Some((before, now)) = group.size_change(packet) {
            let bounds = self.bounds.as_ref();
            bounds.map_or(Ok(()), |(limits, _)| limits.check(now))?;
            let changes = &self.sink.counters.size_changes;
            if changes.fetch_add(1, Ordering::Relaxed) == 0 {
                self.sink.tell(MediaEvent::Trouble(format!(
                    "The input's pictures changed from {before} to {now} in mid-stream: what is passed through changes with them, what \
                     is encoded is scaled, and the catalogue keeps {before}. To have it say the new size, start again"
                )));
            }
        }
        Ok(())
    }

    /// Says what ffmpeg passed over in the input, and counts it from then on.
    fn report_damage(&self, demuxer: &mut Demuxer) {
        let Some((lines, last)) = demuxer.complaint() else {
            return;
        };
        let damages = &self.sink.counters.damages;
        if damages.fetch_add(lines, Ordering::Relaxed) == 0 {
            self.sink.tell(MediaEvent::Trouble(format!(
                "The input is damaged; what can be read of it goes on. ffmpeg says: {last}"
            )));
        }
    }

    fn fell_silent(&self) {
        self.sink.counters.silences.fetch_add(1, Ordering::Relaxed);
        let seconds = SILENCE.as_secs();
        let text = format!("Nothing has come from the input for {seconds} s; waiting for it");
        self.sink.tell(MediaEvent::Trouble(text));
    }

    /// Waits until a packet is due, where that is ours to decide, and finds out when it was captured.
    fn timed(&mut self, mut packet: Packet, is_video: bool, stop: &AtomicBool) -> Packet {
        let arrived = match &mut self.pace {
            Pace::Live => {
                if self.is_raw {
                    self.clock.follow_rate(&mut packet);
                }
                packet.arrived_at
            }
            Pace::File(playback, began) => {
                let began = *began.get_or_insert(packet.dts);
                let offset = Duration::from_micros(packet.dts.saturating_sub(began));
                playback.wait(offset, stop)
            }
        };
        let origin = match is_video {
            true => &self.picture_origin,
            false => &self.sound_origin,
        };
        self.clock.on_packet(is_video, &packet, arrived, origin);
        packet
    }

    /// Publishes a change of the captions that is due before the picture that follows this one.
    fn caption(&mut self, picture: &Packet) {
        let Some(captions) = &mut self.captions else {
            return;
        };
        captions.on_picture(picture);
        let Some(shown) = captions.at(picture.dts + picture.duration) else {
            return;
        };
        let origin = &self.picture_origin;
        let (captured_at, offset) = origin.timed(origin.at(shown.since), shown.since, wall());
        let encoded_at = wall();
        self.sink.frame(MediaFrame {
            stream: StreamKind::Data,
            rung: 0,
            position: self.next_caption,
            key: true,
            // A caption published late must not raise the measured path delay.
            captured_at: (captured_at + offset).max(encoded_at),
            composition_offset: Duration::ZERO,
            encoded_at,
            payload: shown.text.clone().into(),
        });
        self.next_caption += 1;
    }

    fn picture(&mut self, packet: Packet, stream: &NutStream, encoders: &mut Kept) {
        let Some(config) = &self.video else { return };
        self.sink.counters.captured.fetch_add(1, Ordering::Relaxed);
        let rungs = config.ladder.rungs();
        let captured_at = self.picture_origin.at(packet.pts);
        if let Some(form) = &self.copied
            && let Some(rung) = rungs.iter().position(|rung| rung.is_copied())
            && !packet.is_cut
            && let Some(payload) = form.convert(&packet.payload, packet.key)
        {
            let origin = &self.picture_origin;
            let handed_over = self.clock.decoded_by(&packet, origin, wall());
            let (captured_at, composition_offset) =
                origin.timed(captured_at, packet.pts, handed_over);
            self.sink.frame(MediaFrame {
                stream: StreamKind::Video,
                rung,
                position: self.order.decoded,
                key: packet.key,
                captured_at,
                composition_offset,
                encoded_at: wall(),
                payload,
            });
        }
        let is_encoded = rungs.iter().any(|rung| !rung.is_copied());
        if is_encoded {
            let clock = self.resampled.as_ref();
            let origin = &self.picture_origin;
            let clock = clock.map(|(rate, next)| PictureClock::new(*rate, origin, next));
            let (preparation, sink) = (&self.preparation, &self.sink);
            let start = || Transcoder::video(stream, config, preparation, sink, (clock, origin));
            encoders.begin(packet.key, sink, start);
        }
        if !packet.is_cut {
            self.order.add(packet.pts, captured_at, stream.decode_delay);
        }
        while let Some(stamp) = self.order.next() {
            encoders.stamp(stamp);
        }
        if is_encoded {
            encoders.submit(packet, &self.sink);
        }
    }

    fn sound(&mut self, packet: Packet, stream: &NutStream, encoder: &mut Kept) {
        let Some(config) = &self.audio else { return };
        self.sink.counters.captured.fetch_add(1, Ordering::Relaxed);
        if config.copied.is_some() || self.sound_is_ready {
            if packet.is_cut {
                return;
            }
            let copied = config.copied.as_ref();
            let origin = &self.sound_origin;
            let (captured_at, composition_offset) =
                origin.timed(origin.at(packet.pts), packet.pts, wall());
            return self.sink.frame(MediaFrame {
                stream: StreamKind::Audio,
                rung: 0,
                position: self.sounds.fetch_add(1, Ordering::Relaxed),
                key: true,
                captured_at,
                composition_offset,
                encoded_at: wall(),
                payload: copied.map_or_else(
                    || packet.payload.clone(),
                    |copied| sound::bare(&packet.payload, copied),
                ),
            });
        }
        let clock = SoundClock {
            origin: Arc::clone(&self.sound_origin),
            count: Arc::clone(&self.sounds),
        };
        let clock = (clock, self.preparation.is_confined);
        let start = || Transcoder::audio(stream, config, clock, &self.sink);
        encoder.begin(packet.key, &self.sink, start);
        encoder.submit(packet, &self.sink);
    }
}

/// Brings pictures into the order in which they are shown.
#[derive(Debug, Default)]
struct Order {
    /// Pictures that an earlier one may still precede, by presentation time.
    waiting: BTreeMap<u64, Timestamp>,
    /// Longest length of `waiting`.
    decode_delay: u64,
    /// Position of the next picture in the order in which they are shown.
    position: u64,
    /// Position of the next packet in the order in which they are decoded. A key frame has the same in both, unless pictures that
    /// are decoded after it are shown before it.
    decoded: u64,
}

impl Order {
    fn add(&mut self, pts: u64, captured_at: Timestamp, decode_delay: u64) {
        self.decode_delay = decode_delay;
        self.decoded += 1;
        self.waiting.insert(pts, captured_at);
    }

    fn flush(&mut self) {
        self.decode_delay = 0;
    }

    fn next(&mut self) -> Option<Stamp> {
        if self.waiting.len() as u64 <= self.decode_delay {
            return None;
        }
        let (number, captured_at) = self.waiting.pop_first()?;
        let position = self.position;
        self.position += 1;
        Some(Stamp {
            position,
            captured_at,
            number,
        })
    }
}

/// Since when the source has had no key frame, and what the last one said.
#[derive(Debug)]
struct Group {
    key_at: Option<u64>,
    has_complained: bool,
    sizes: Option<SizeWatch>,
}

impl Group {
    /// Creates it for the stream of pictures and its number; the first packets may be skipped.
    fn new(pictures: Option<&(usize, NutStream)>, first: &[Packet]) -> Self {
        let sizes = pictures.and_then(|(number, stream)| {
            let key = first.iter().find(|it| it.key && it.stream == *number)?;
            Some(SizeWatch::new(stream, &key.payload))
        });
        Self {
            key_at: None,
            has_complained: false,
            sizes,
        }
    }

    const fn has_begun(&self) -> bool {
        self.key_at.is_some()
    }

    /// The size of pictures before and from now on, if this key frame changes it.
    fn size_change(&mut self, packet: &Packet) -> Option<(PictureSize, PictureSize)> {
        let sizes = self.sizes.as_mut().filter(|_| packet.key)?;
        sizes.change(&packet.payload)
    }

    /// Takes a picture. Gives what people should hear, once.
    fn complaint(&mut self, packet: &Packet) -> Option<String> {
        if packet.key {
            self.key_at = Some(packet.dts);
        }
        let since = packet.dts.saturating_sub(self.key_at?);
        let is_long = Duration::from_micros(since) > MAX_GROUP && !self.has_complained;
        self.has_complained |= is_long;
        is_long.then(|| {
            "The input has more than 2 s between key frames, so whoever joins waits as long: use -g 60 (ffmpeg at 30 frames a second), \
             or a key frame interval of 2 s (OBS)"
                .to_owned()
        })
    }
}
