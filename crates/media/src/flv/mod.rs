//! Converts RTMP pushes to a container that ffmpeg reads.
//!
//! ```text
//!  tags ─▶ Push ─┬ codecs of FLV's first specification ─▶ FLV, tag by tag, with times from ten seconds on
//!                └ HEVC, AV1, VP9, Opus, FLAC, AC-3 of Enhanced RTMP ─▶ NUT, from the first key frame on
//! ```
//!
//! ffmpeg reads enhanced tags from version 6.1 on, and not all of them. New parameter sets in mid-stream are put into the key frames, in
//! both containers: what ffmpeg makes of a new header in mid-stream is lost on its way through NUT. Another codec, other sound, and a
//! track that begins later need a container of their own: [`FlvError::Changed`].
//!
//! No socket and no RTMP here: whoever has them hands over what came.

mod clock;
mod tag;
mod track;

use core::fmt::Display;

use bytes::Bytes;

use crate::found::Received;
use crate::ingest::ladder::PictureSize;
use crate::ingest::source::Container;
use crate::ingest::{Exceeded, Limits};
use crate::nut::writer::{file_header, put_frame};
use clock::Clock;
use tag::{Body, Codec, MAX_CONFIG, NUMBERED_HEVC, Tag, put_tag};
use track::{AudioTrack, Follow, VideoTrack};

/// Signature, version 1, sound and pictures, length of this, and of the tag before the first.
const FLV_HEADER: [u8; 13] = [b'F', b'L', b'V', 1, 5, 0, 0, 0, 9, 0, 0, 0, 0];
/// Kinds of tags.
const AUDIO: u8 = 8;
const VIDEO: u8 = 9;
/// Milliseconds that a track is waited for which nobody has announced.
const MAX_WAIT: i64 = 500;
/// Octets and tags that are held back meanwhile.
const MAX_HELD_OCTETS: usize = 4 << 20;
const MAX_HELD: usize = 512;
/// Octets of headers and of what is no frame that may stand before the first key frame.
const MAX_EARLY: usize = 4 * MAX_CONFIG;
/// Largest frame that is put into NUT: below what its reader accepts.
const MAX_FRAME: usize = 7 << 20;

/// Why a push cannot go on. The texts are for its pusher as well.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlvError {
    /// Nothing here reads this codec of pictures.
    #[error(
        "the video codec {0} is not accepted: choose H.264, HEVC, AV1 or VP9 in the encoder's settings"
    )]
    Video(String),
    /// Nothing here reads this codec of sound.
    #[error(
        "the audio codec {0} is not accepted: choose AAC, Opus, FLAC or AC-3 in the encoder's settings"
    )]
    Audio(String),
    /// The push costs more than a stranger's may.
    #[error(transparent)]
    Exceeded(#[from] Exceeded),
    /// Another codec, other sound, or a track that begins later: [`Push::successor`] takes what follows, beginning with this tag.
    #[error("{0}")]
    Changed(String),
}

/// Container of a push.
#[derive(Debug, PartialEq, Eq)]
enum Stage {
    /// Not chosen yet.
    Opening,
    Flv,
    /// Before the first key frame, or in pushes of sound alone the first packet.
    NutHead,
    /// Number of the stream of pictures, and of that of sound.
    Nut(Option<usize>, Option<usize>),
}

/// One push.
#[derive(Debug)]
pub struct Push {
    limits: Option<Limits>,
    stage: Stage,
    clock: Clock,
    /// Whether pictures and sound are announced.
    announced: Option<[bool; 2]>,
    video: Option<VideoTrack>,
    audio: Option<AudioTrack>,
    headers: Headers,
    /// Whether tags are passed over until a key frame comes, as after a change in mid-stream.
    awaits_key: bool,
    held: Vec<Held>,
    received: Received,
    /// Sentences that wait to be said, and those that were.
    notes: Vec<&'static str>,
    said: Vec<&'static str>,
    octets: Vec<u8>,
}

/// The newest tags with what decoders need first.
#[derive(Clone, Debug, Default)]
struct Headers {
    video: Option<Bytes>,
    audio: Option<Bytes>,
}

impl Headers {
    /// Records a tag of a track; `is_other`: its codec is not the header's.
    fn note(&mut self, kind: u8, payload: &Bytes, is_config: bool, is_other: bool) {
        let header = match kind {
            VIDEO => &mut self.video,
            _ => &mut self.audio,
        };
        if is_config {
            *header = Some(payload.clone());
        } else if is_other {
            *header = None;
        }
    }
}

/// A tag that waits until it is known what becomes of it.
#[derive(Debug)]
struct Held {
    kind: u8,
    time: i64,
    payload: Bytes,
    tag: Option<Tag>,
}

impl Default for Push {
    fn default() -> Self {
        Self {
            limits: None,
            stage: Stage::Opening,
            clock: Clock::default(),
            announced: None,
            video: None,
            audio: None,
            headers: Headers::default(),
            awaits_key: false,
            held: Vec::new(),
            received: Received::default(),
            notes: Vec::new(),
            said: Vec::new(),
            octets: Vec::new(),
        }
    }
}

impl Push {
    /// A push within `limits`. Its bitrate and frame rate are not measured here.
    pub fn limited(limits: Limits) -> Self {
        Self {
            limits: Some(limits),
            ..Self::default()
        }
    }

    /// Records which tracks the pusher's metadata announce.
    pub fn announce(&mut self, video: bool, audio: bool) {
        self.announced = Some([video, audio]);
    }

    /// Returns the media received so far.
    pub const fn received(&self) -> &Received {
        &self.received
    }

    /// The container, once it is known and, after a change in mid-stream, has begun.
    pub const fn container(&self) -> Option<Container> {
        match self.stage {
            _ if self.awaits_key => None,
            Stage::Opening => None,
            Stage::Flv => Some(Container::Flv),
            Stage::NutHead | Stage::Nut(..) => Some(Container::Nut),
        }
    }

    /// Returns the push that follows this one after [`FlvError::Changed`] of a tag of this kind. It has the newest headers, and begins
    /// with a key frame.
    pub fn successor(&self, kind: u8) -> Self {
        let has_video = self.video.is_some() || kind == VIDEO;
        let has_audio = self.audio.is_some() || kind == AUDIO;
        let mut next = Self {
            limits: self.limits,
            announced: Some([has_video, has_audio]),
            awaits_key: has_video,
            ..Self::default()
        };
        for (kind, header) in [(VIDEO, &self.headers.video), (AUDIO, &self.headers.audio)] {
            if let Some(header) = header {
                // Headers were taken before: none of them is refused now, and of a track's one header none differs.
                let _ = next.take(kind, 0, header);
            }
        }
        next
    }

    /// The next octets of the container; empty if there are none. To be taken once the [`container`](Self::container) is known.
    pub fn take_octets(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.octets)
    }

    /// Sentences that have not been said, each of them once.
    pub fn take_notes(&mut self) -> Vec<String> {
        self.notes.drain(..).map(str::to_owned).collect()
    }

    /// Takes a tag: its kind, 8 for sound and 9 for pictures, its time in milliseconds, and its body.
    ///
    /// # Errors
    /// If the push cannot go on.
    pub fn take(&mut self, kind: u8, time: u32, payload: &Bytes) -> Result<(), FlvError> {
        self.take_tag(kind, time, payload)?;
        if let (Some(limits), Some(video)) = (self.limits, &self.received.video) {
            let (width, height) = (video.width, video.height);
            limits.check(PictureSize { width, height })?;
        }
        Ok(())
    }

    fn take_tag(&mut self, kind: u8, time: u32, payload: &Bytes) -> Result<(), FlvError> {
        let tag = match kind {
            AUDIO => tag::audio(payload),
            VIDEO => tag::video(payload),
            _ => return Ok(()),
        };
        // Bodies of no octets are how some say that a track pauses.
        self.received.malformed += u64::from(tag.is_none() && !payload.is_empty());
        if let Some(tag) = &tag {
            self.note_tag(kind, tag, payload)?;
        }
        let frame = tag.as_ref().and_then(|tag| match tag.body {
            Body::Frame { key, .. } => Some(key && kind == VIDEO),
            Body::Config(_) | Body::Nothing => None,
        });
        if self.awaits_key && frame.is_some() {
            self.awaits_key = frame == Some(false);
            if self.awaits_key {
                return Ok(());
            }
        }
        let time = self.clock.at(time, frame.is_some());
        let payload = payload.clone();
        let held = Held {
            kind,
            time,
            payload,
            tag,
        };
        if self.stage != Stage::Opening {
            return self.put(held);
        }
        self.held.push(held);
        if self.is_known(time) {
            self.begin()?;
            for held in core::mem::take(&mut self.held) {
                self.put(held)?;
            }
        }
        Ok(())
    }

    /// Learns from a tag which codec its track has.
    fn note_tag(&mut self, kind: u8, tag: &Tag, payload: &Bytes) -> Result<(), FlvError> {
        if tag.has_tracks {
            self.note("The push has several tracks of a kind: the first is published, the others are left out.");
        }
        if tag.body == Body::Nothing {
            return Ok(());
        }
        let before = match kind {
            VIDEO => self.video.as_ref().map(|it| it.codec),
            _ => self.audio.as_ref().map(|it| it.codec),
        };
        let is_config = matches!(tag.body, Body::Config(_));
        let is_other = before.is_some_and(|before| before != tag.codec);
        self.headers.note(kind, payload, is_config, is_other);
        match kind {
            _ if self.is_left_out(kind) => self.join(kind, tag),
            VIDEO => self.note_video(tag),
            _ => self.note_audio(tag),
        }
    }

    fn note_video(&mut self, tag: &Tag) -> Result<(), FlvError> {
        let track = self.video.get_or_insert_with(|| VideoTrack::new(tag.codec));
        if track.codec != tag.codec {
            let (before, now) = (
                track.found().codec,
                VideoTrack::new(tag.codec).found().codec,
            );
            return Err(changed("pictures", before, now));
        }
        match &tag.body {
            // Later ones are taken when they are put.
            Body::Config(config) if self.stage == Stage::Opening => {
                track.configure(config);
            }
            Body::Frame { key, .. } => {
                self.received.pictures += 1;
                self.received.key_frames += u64::from(*key);
            }
            Body::Config(_) | Body::Nothing => {}
        }
        self.received.video = Some(track.found());
        Ok(())
    }

    fn note_audio(&mut self, tag: &Tag) -> Result<(), FlvError> {
        let track = self.audio.get_or_insert_with(|| AudioTrack::new(tag.codec));
        let before = track.found();
        if track.codec != tag.codec {
            let now = AudioTrack::new(tag.codec).found();
            return Err(changed("sound", before.codec, now.codec));
        }
        match &tag.body {
            Body::Config(config) => {
                if track.configure(config) {
                    return Err(changed("sound", before, track.found()));
                }
            }
            Body::Frame { data, .. } => {
                self.received.sounds += 1;
                track.look(data);
            }
            Body::Nothing => {}
        }
        self.received.audio = Some(track.found());
        Ok(())
    }

    /// Whether the container has begun without a track of this kind.
    const fn is_left_out(&self, kind: u8) -> bool {
        match (&self.stage, kind) {
            (Stage::Opening | Stage::NutHead, _) => false,
            (Stage::Flv, VIDEO) => self.video.is_none(),
            (Stage::Flv, _) => self.audio.is_none(),
            (Stage::Nut(video, _), VIDEO) => video.is_none(),
            (Stage::Nut(_, audio), _) => audio.is_none(),
        }
    }

    /// Has a track that the container lacks begin, once a decoder could.
    fn join(&self, kind: u8, tag: &Tag) -> Result<(), FlvError> {
        let Body::Frame { key, data, .. } = &tag.body else {
            return Ok(());
        };
        let header = match kind {
            VIDEO => self.headers.video.as_ref().and_then(tag::video),
            _ => self.headers.audio.as_ref().and_then(tag::audio),
        };
        let config = match header.map(|header| header.body) {
            Some(Body::Config(config)) => Some(config),
            _ => None,
        };
        let sentence = if kind == VIDEO {
            let track = VideoTrack::new(tag.codec).with(config.as_ref());
            let begins = *key && track.is_ready();
            begins.then(|| format!("the pictures have begun, {}", track.found()))
        } else {
            let track = AudioTrack::new(tag.codec).with(config.as_ref(), data);
            let begins = track.is_ready();
            begins.then(|| format!("the sound has begun, {}", track.found()))
        };
        sentence.map_or(Ok(()), |sentence| Err(FlvError::Changed(sentence)))
    }

    /// Whether it is known which tracks there are, or has been waited for long enough.
    fn is_known(&self, time: i64) -> bool {
        let seen = [self.video.is_some(), self.audio.is_some()];
        let is_whole = match self.announced {
            Some(announced) => seen.iter().zip(announced).all(|(seen, it)| *seen || !it),
            None => seen == [true; 2],
        };
        let since = self.held.first().map_or(0, |it| time - it.time);
        let octets: usize = self.held.iter().map(|it| it.payload.len()).sum();
        let is_late = since >= MAX_WAIT || self.held.len() >= MAX_HELD || octets > MAX_HELD_OCTETS;
        seen != [false; 2] && (is_whole || is_late)
    }

    fn begin(&mut self) -> Result<(), FlvError> {
        let is_new = |codec: Codec| matches!(codec, Codec::FourCc(_) | NUMBERED_HEVC);
        let video = self.video.as_ref().is_some_and(|it| is_new(it.codec));
        let audio = self.audio.as_ref().is_some_and(|it| is_new(it.codec));
        if !video && !audio {
            self.stage = Stage::Flv;
            self.octets.extend(FLV_HEADER);
            return Ok(());
        }
        self.video.as_ref().map_or(Ok(()), VideoTrack::check)?;
        self.audio.as_ref().map_or(Ok(()), AudioTrack::check)?;
        self.stage = Stage::NutHead;
        Ok(())
    }

    fn put(&mut self, held: Held) -> Result<(), FlvError> {
        if self.stage == Stage::Flv {
            return self.put_flv(&held);
        }
        match held.tag {
            Some(tag) if held.kind == VIDEO => self.put_video(tag, held.time),
            Some(tag) => self.put_audio(&tag, held.time),
            None => {}
        }
        Ok(())
    }

    /// Puts a tag as it came, except that ffmpeg gets the first header of AVC alone, and what others say within the key frames.
    fn put_flv(&mut self, held: &Held) -> Result<(), FlvError> {
        if self.awaits_key && self.octets.len() + held.payload.len() > MAX_EARLY {
            self.received.malformed += 1;
            return Ok(());
        }
        let body = held.tag.as_ref().map(|tag| &tag.body);
        let track = self.video.as_mut().filter(|_| held.kind == VIDEO);
        let mut payload = held.payload.clone();
        match (body, track) {
            (Some(Body::Config(config)), Some(track)) => match track.follow(config) {
                Follow::HandOn => {}
                Follow::InFrames => {
                    self.received.video = Some(track.found());
                    return Ok(());
                }
                Follow::Malformed => {
                    self.received.malformed += 1;
                    return Ok(());
                }
                Follow::Anew => {
                    let sentence = "the pictures are cut into packets in another way";
                    return Err(FlvError::Changed(sentence.to_owned()));
                }
            },
            (
                Some(Body::Frame {
                    key: true, data, ..
                }),
                Some(track),
            ) => {
                if let Some(frame) = track.with_new_parameters(data) {
                    let head = payload.strip_suffix(&data[..]).unwrap_or_default();
                    payload = [head, &frame].concat().into();
                }
            }
            _ => {}
        }
        put_tag(&mut self.octets, held.kind, held.time, &payload);
        Ok(())
    }

    fn put_video(&mut self, tag: Tag, time: i64) {
        let Some(track) = &mut self.video else { return };
        let (key, offset, data) = match tag.body {
            Body::Config(config) => {
                self.received.malformed += u64::from(!track.configure(&config));
                self.received.video = Some(track.found());
                return;
            }
            Body::Frame { key, offset, data } => (key, offset, data),
            Body::Nothing => return,
        };
        let frame = track.convert(&data, key);
        let Some(frame) = frame.filter(|frame| frame.len() <= MAX_FRAME) else {
            self.received.malformed += 1;
            return;
        };
        self.received.video = Some(track.found());
        if self.stage == Stage::NutHead && key {
            let Some(video) = track.stream(&frame, offset > 0) else {
                self.received.malformed += 1;
                return;
            };
            let audio = self.audio.as_ref().and_then(AudioTrack::stream);
            self.stage = Stage::Nut(Some(0), audio.as_ref().map(|_| 1));
            let streams: Vec<_> = [video].into_iter().chain(audio).collect();
            self.octets.extend(file_header(&streams));
        }
        if let Stage::Nut(Some(stream), _) = self.stage {
            let shown = micros(time + i64::from(offset));
            put_frame(&mut self.octets, stream, shown, key, &frame);
        }
    }

    fn put_audio(&mut self, tag: &Tag, time: i64) {
        let Body::Frame { data, .. } = &tag.body else {
            return;
        };
        if data.len() > MAX_FRAME {
            self.received.malformed += 1;
            return;
        }
        if self.stage == Stage::NutHead && self.video.is_none() {
            let audio = self.audio.as_ref().and_then(AudioTrack::stream);
            let Some(audio) = audio else { return };
            self.stage = Stage::Nut(None, Some(0));
            self.octets.extend(file_header(&[audio]));
        }
        if let Stage::Nut(_, Some(stream)) = self.stage {
            put_frame(&mut self.octets, stream, micros(time), true, data);
        }
    }

    /// Says a sentence, once.
    fn note(&mut self, sentence: &'static str) {
        if !self.said.contains(&sentence) {
            self.said.push(sentence);
            self.notes.push(sentence);
        }
    }
}

fn changed(what: &str, before: impl Display, now: impl Display) -> FlvError {
    FlvError::Changed(format!("the {what} changed from {before} to {now}"))
}

fn micros(millis: i64) -> u64 {
    u64::try_from(millis.saturating_mul(1_000)).unwrap_or(0)
}

#[cfg(test)]
mod tests;
