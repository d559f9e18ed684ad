//! What is pushed by RTMP, as a container that ffmpeg reads.
//!
//! ```text
//!  tags ─▶ Push ─┬ codecs of FLV's first specification ─▶ FLV, tag by tag, with times from zero on
//!                └ HEVC, AV1, VP9, Opus, FLAC, AC-3 of Enhanced RTMP ─▶ NUT, from the first key frame on
//! ```
//!
//! ffmpeg reads enhanced tags from version 6.1 on, and not all of them. In NUT, parameter sets are in the key frames, so that new ones
//! in mid-stream are followed.
//!
//! No socket and no RTMP here: whoever has them hands over what came.

mod parameters;
mod tag;
mod track;

use bytes::Bytes;

use crate::found::Received;
use crate::ingest::source::Container;
use crate::nut::writer::{file_header, put_frame};
use tag::{Body, Codec, NUMBERED_HEVC, Tag};
use track::{AudioTrack, VideoTrack};

/// Signature, version 1, sound and pictures, length of this, and of the tag before the first.
const FLV_HEADER: [u8; 13] = [b'F', b'L', b'V', 1, 5, 0, 0, 0, 9, 0, 0, 0, 0];
const FLV_TAG_HEADER: usize = 11;
/// Kinds of tags.
const AUDIO: u8 = 8;
const VIDEO: u8 = 9;
/// The first frame is shown so many milliseconds after the beginning, so that one of before has a time, too.
const START: i64 = 10_000;
/// Milliseconds that a track is waited for which nobody has announced.
const MAX_WAIT: i64 = 500;
/// Octets and tags that are held back meanwhile.
const MAX_HELD_OCTETS: usize = 4 << 20;
const MAX_HELD: usize = 512;
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
    /// Another codec, or other sound, in mid-stream.
    #[error("{0} changed in mid-stream to {1}: connect again")]
    Changed(&'static str, String),
}

/// What a push becomes.
#[derive(Debug, PartialEq, Eq)]
enum Stage {
    /// It is not known yet what it holds.
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
    stage: Stage,
    clock: Clock,
    /// Whether pictures and sound are announced.
    announced: Option<[bool; 2]>,
    video: Option<VideoTrack>,
    audio: Option<AudioTrack>,
    held: Vec<Held>,
    received: Received,
    /// Sentences that wait to be said, and those that were.
    notes: Vec<&'static str>,
    said: Vec<&'static str>,
    octets: Vec<u8>,
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
            stage: Stage::Opening,
            clock: Clock::default(),
            announced: None,
            video: None,
            audio: None,
            held: Vec::new(),
            received: Received::default(),
            notes: Vec::new(),
            said: Vec::new(),
            octets: Vec::new(),
        }
    }
}

impl Push {
    /// Records which tracks the pusher's metadata announce.
    pub fn announce(&mut self, video: bool, audio: bool) {
        self.announced = Some([video, audio]);
    }

    /// What has come so far.
    pub const fn received(&self) -> &Received {
        &self.received
    }

    /// The container, once it is known.
    pub const fn container(&self) -> Option<Container> {
        match self.stage {
            Stage::Opening => None,
            Stage::Flv => Some(Container::Flv),
            Stage::NutHead | Stage::Nut(..) => Some(Container::Nut),
        }
    }

    /// The next octets of the container; empty if there are none.
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
        let tag = match kind {
            AUDIO => tag::audio(payload),
            VIDEO => tag::video(payload),
            _ => return Ok(()),
        };
        // Bodies of no octets are how some say that a track pauses.
        self.received.malformed += u64::from(tag.is_none() && !payload.is_empty());
        let is_frame = matches!(&tag, Some(tag) if matches!(tag.body, Body::Frame { .. }));
        let time = self.clock.at(time, is_frame);
        if let Some(tag) = &tag {
            self.note_tag(kind, tag)?;
        }
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
    fn note_tag(&mut self, kind: u8, tag: &Tag) -> Result<(), FlvError> {
        if tag.has_tracks {
            self.note("The push has several tracks of a kind: the first is published, the others are left out.");
        }
        let received = &mut self.received;
        let (is_config, is_key) = match &tag.body {
            Body::Nothing => return Ok(()),
            Body::Config(_) => (true, false),
            Body::Frame { key, .. } => (false, *key),
        };
        if kind == VIDEO {
            received.pictures += u64::from(!is_config);
            received.key_frames += u64::from(is_key);
            let track = self.video.get_or_insert_with(|| VideoTrack::new(tag.codec));
            if track.codec != tag.codec {
                let next = VideoTrack::new(tag.codec).found().codec;
                return Err(FlvError::Changed("the video codec", next));
            }
            // In FLV, ffmpeg has to make of it what it can.
            if let (Body::Config(config), Stage::Opening | Stage::Flv) = (&tag.body, &self.stage) {
                track.configure(config);
            }
            received.video = Some(track.found());
        } else {
            received.sounds += u64::from(!is_config);
            let track = self.audio.get_or_insert_with(|| AudioTrack::new(tag.codec));
            if track.codec != tag.codec {
                let next = AudioTrack::new(tag.codec).found().codec;
                return Err(FlvError::Changed("the audio codec", next));
            }
            match &tag.body {
                Body::Config(config) => {
                    if track.configure(config) && matches!(self.stage, Stage::Nut(_, Some(_))) {
                        let next = track.found().to_string();
                        return Err(FlvError::Changed("the sound", next));
                    }
                }
                Body::Frame { data, .. } => track.look(data),
                Body::Nothing => {}
            }
            received.audio = Some(track.found());
        }
        Ok(())
    }

    /// Whether it is known which tracks there are, or has been waited for long enough.
    fn is_known(&self, time: i64) -> bool {
        let seen = [self.video.is_some(), self.audio.is_some()];
        let is_whole = match self.announced {
            Some(announced) => (0..2).all(|at| seen[at] || !announced[at]),
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
            let is_new = |tag: &Tag| matches!(tag.codec, Codec::FourCc(_));
            if let Some(tag) = held.tag.filter(is_new) {
                if tag.body == Body::Nothing {
                    return Ok(());
                }
                // A track that began after the other one, which ffmpeg reads already.
                let name = match held.kind {
                    VIDEO => VideoTrack::new(tag.codec).found().codec,
                    _ => AudioTrack::new(tag.codec).found().codec,
                };
                return Err(FlvError::Changed("the push", name));
            }
            put_tag(&mut self.octets, held.kind, held.time, &held.payload);
            return Ok(());
        }
        match held.tag {
            Some(tag) if held.kind == VIDEO => self.put_video(tag, held.time),
            Some(tag) => self.put_audio(&tag, held.time),
            None => {}
        }
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
            if audio.is_none() && self.audio.is_some() {
                self.note(
                    "The sound has not said what it is before the pictures began: it is left out.",
                );
            }
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
        match self.stage {
            Stage::Nut(_, Some(stream)) => {
                put_frame(&mut self.octets, stream, micros(time), true, data);
            }
            Stage::Nut(_, None) => {
                self.note("Sound began after the pictures: it is left out. Begin both at once.");
            }
            _ => {}
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

/// RTMP's times, which have 32 bits and begin anywhere, in milliseconds from [`START`] on.
#[derive(Debug, Default)]
struct Clock {
    /// Of the newest frame: as it was written, and from the beginning on.
    newest: Option<(u32, i64)>,
}

impl Clock {
    /// When a tag is shown. What is no frame, such as a header, has its time from the frames: encoders write zero into it, however
    /// long they have been on.
    fn at(&mut self, time: u32, is_frame: bool) -> i64 {
        let (written, from_start) = self.newest.unwrap_or((time, START));
        if !is_frame {
            return from_start;
        }
        // Differences are right across the wrap after 49.7 days.
        let since = i64::from(time.wrapping_sub(written).cast_signed());
        let now = (from_start + since).max(0);
        self.newest = Some((time, now));
        now
    }
}

fn micros(millis: i64) -> u64 {
    u64::try_from(millis.saturating_mul(1_000)).unwrap_or(0)
}

/// Appends a tag of FLV: header, payload, and the length of both.
fn put_tag(octets: &mut Vec<u8>, kind: u8, time: i64, payload: &[u8]) {
    // Messages are shorter than 2^24, and FLV's times wrap as RTMP's do.
    let len = payload.len() as u32;
    let [highest, time @ ..] = (time as u32).to_be_bytes();
    octets.reserve(payload.len() + FLV_TAG_HEADER + 4);
    octets.push(kind);
    octets.extend_from_slice(&len.to_be_bytes()[1..]);
    octets.extend(time);
    octets.push(highest);
    octets.extend([0, 0, 0]);
    octets.extend_from_slice(payload);
    octets.extend((len + FLV_TAG_HEADER as u32).to_be_bytes());
}

#[cfg(test)]
mod tests;
