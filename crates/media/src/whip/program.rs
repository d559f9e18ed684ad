//! Frames as they were pushed, as a NUT file that grows.

use bytes::Bytes;
use str0m::media::{MediaKind, MediaTime};
use str0m::rtp::rtcp::SenderInfo;

use super::track_clock::TrackClock;
use crate::annex_b::picture_size;
use crate::nut::writer::{file_header, h264_parameters, opus_head, put_frame};
use crate::nut::{NutClass, NutStream};

/// Largest frame that is taken on: below what the reader accepts.
const MAX_FRAME: usize = 4 << 20;
/// Opus is always decoded to this rate (RFC 7587, section 4.1), and its RTP clock counts in two channels.
const SOUND: (u32, u32) = (48_000, 2);

/// One frame of a track.
#[derive(Debug)]
pub(super) struct Frame<'a> {
    pub(super) kind: MediaKind,
    pub(super) key: bool,
    /// Whether none is missing before it.
    pub(super) is_next: bool,
    pub(super) rtp: MediaTime,
    /// When its first packet came, in microseconds on the session's clock.
    pub(super) arrived: i64,
    pub(super) report: Option<SenderInfo>,
    pub(super) payload: &'a [u8],
}

/// What becomes of a frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Octets of the file, in which it is.
    Written(Bytes),
    /// It cannot be decoded without a key frame, which has to be asked for.
    NeedsKey,
    /// It is before the first picture.
    Early,
    /// It is too large, or a key frame without parameters.
    Malformed,
}

/// Puts the tracks of a session into one file.
#[derive(Debug)]
pub(super) struct Program {
    has_audio: bool,
    /// Number of the stream of sound, and so whether there are pictures.
    audio: usize,
    has_begun: bool,
    /// Set while pictures need a key frame.
    waits_for_key: bool,
    pictures: TrackClock,
    sound: TrackClock,
}

impl Program {
    pub(super) fn new(has_video: bool, has_audio: bool) -> Self {
        Self {
            has_audio,
            audio: usize::from(has_video),
            has_begun: false,
            waits_for_key: true,
            pictures: TrackClock::default(),
            sound: TrackClock::default(),
        }
    }

    /// Takes a frame. The file begins with the first key frame, or with sound where that is all.
    pub(super) fn take(&mut self, frame: &Frame<'_>) -> Fate {
        let is_video = frame.kind.is_video();
        let clock = if is_video {
            &mut self.pictures
        } else {
            &mut self.sound
        };
        if let Some(report) = &frame.report {
            clock.report(frame.rtp, report);
        }
        let at = clock.at(frame.rtp, frame.arrived);
        self.sound.follow(&self.pictures);
        if is_video {
            self.waits_for_key = !frame.key && (self.waits_for_key || !frame.is_next);
        }
        if frame.payload.is_empty() || frame.payload.len() > MAX_FRAME {
            self.waits_for_key |= is_video;
            return Fate::Malformed;
        }
        if is_video && self.waits_for_key {
            return Fate::NeedsKey;
        }
        let mut octets = Vec::new();
        if !self.has_begun {
            let picture = match (is_video, self.audio) {
                (true, _) => match picture(frame.payload) {
                    Some(stream) => Some(stream),
                    None => return Fate::Malformed,
                },
                (false, 0) => None,
                (false, _) => return Fate::Early,
            };
            self.has_begun = true;
            let sound = self.has_audio.then(sound);
            octets = file_header(&picture.into_iter().chain(sound).collect::<Vec<_>>());
        }
        let stream = if is_video { 0 } else { self.audio };
        put_frame(
            &mut octets,
            stream,
            at,
            frame.key || !is_video,
            frame.payload,
        );
        Fate::Written(octets.into())
    }
}

/// The stream of pictures that starts with this key frame, if that says what follows.
fn picture(key_frame: &[u8]) -> Option<NutStream> {
    let parameters = h264_parameters(key_frame);
    let (width, height) = picture_size(parameters)?;
    Some(NutStream {
        class: NutClass::Video(width, height),
        codec: Bytes::from_static(b"H264"),
        parameters: Bytes::copy_from_slice(parameters),
        decode_delay: 0,
    })
}

fn sound() -> NutStream {
    let (sample_rate, channels) = SOUND;
    NutStream {
        class: NutClass::Audio(sample_rate, channels),
        codec: Bytes::from_static(b"Opus"),
        parameters: opus_head(channels, sample_rate).into(),
        decode_delay: 0,
    }
}
