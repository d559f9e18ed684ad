//! Frames as they were pushed, as a NUT file that grows.

use bytes::Bytes;
use str0m::format::Codec;
use str0m::media::{MediaKind, MediaTime};
use str0m::rtp::rtcp::SenderInfo;

use super::track_clock::TrackClock;
use crate::annex_b::{SEQUENCE_PARAMETERS, is_of, units};
use crate::found::{FoundAudio, FoundVideo, Received};
use crate::headers;
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
    pub(super) codec: Codec,
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
    received: Received,
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
            received: Received::default(),
        }
    }

    /// Returns the media received.
    pub(super) const fn received(&self) -> &Received {
        &self.received
    }

    /// Takes a frame. The file begins with the first key frame, or with sound where that is all.
    pub(super) fn take(&mut self, frame: &Frame<'_>) -> Fate {
        let is_video = frame.kind.is_video();
        self.count(frame);
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
                (true, _) => match picture(frame.codec, frame.payload) {
                    Some((stream, found)) => {
                        self.received.video = Some(found);
                        Some(stream)
                    }
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

    fn count(&mut self, frame: &Frame<'_>) {
        let received = &mut self.received;
        if frame.kind.is_video() {
            received.pictures += 1;
            received.key_frames += u64::from(frame.key);
            return;
        }
        received.sounds += 1;
        received.audio.get_or_insert_with(|| {
            let (sample_rate, channels) = SOUND;
            FoundAudio {
                codec: "Opus".to_owned(),
                sample_rate,
                channels,
            }
        });
    }
}

/// The stream of pictures that starts with this key frame, if that says what follows, and its description.
fn picture(codec: Codec, key_frame: &[u8]) -> Option<(NutStream, FoundVideo)> {
    let (name, tag, parameters, picture) = match codec {
        Codec::H264 => {
            let mut units = units(key_frame);
            let set = units.find(|unit| is_of(unit, SEQUENCE_PARAMETERS))?;
            let parameters = Bytes::copy_from_slice(h264_parameters(key_frame));
            ("H.264", b"H264", parameters, headers::h264(set)?)
        }
        Codec::Vp8 => ("VP8", b"VP80", Bytes::new(), headers::vp8(key_frame)?),
        Codec::Vp9 => ("VP9", b"VP90", Bytes::new(), headers::vp9(key_frame)?),
        Codec::Av1 => {
            let (picture, record) = headers::av1(key_frame)?;
            let sequence = headers::av1_sequence_header(key_frame)?;
            (
                "AV1",
                b"AV01",
                [&record[..], sequence].concat().into(),
                picture,
            )
        }
        _ => return None,
    };
    let stream = NutStream {
        class: NutClass::Video(picture.width, picture.height),
        codec: Bytes::from_static(tag),
        parameters,
        decode_delay: picture.reorder.unwrap_or(0),
    };
    Some((stream, picture.found(name)))
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
