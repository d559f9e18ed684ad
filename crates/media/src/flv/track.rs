//! One track of a push: its codec, what decoders need first, and its frames as NUT has them.

use bytes::Bytes;

use super::FlvError;
use super::tag::{AAC, AVC, Codec, NUMBERED_HEVC};
use crate::found::{FoundAudio, FoundVideo};
use crate::headers::{self, Picture, Sound};
use crate::nut::{NutClass, NutStream};
use crate::parameters::Parameters;

/// Names of codecs in FLV's first specification, appendix E.4.2.1 and E.4.3.1.
const SOUNDS: [&str; 16] = [
    "PCM",
    "ADPCM",
    "MP3",
    "PCM",
    "Nellymoser",
    "Nellymoser",
    "Nellymoser",
    "G.711 A-law",
    "G.711 µ-law",
    "",
    "AAC",
    "Speex",
    "",
    "",
    "MP3",
    "",
];

/// Codecs of pictures that can be put into NUT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VideoCodec {
    Avc,
    Hevc,
    Av1,
    Vp9,
}

impl VideoCodec {
    const fn of(codec: Codec) -> Option<Self> {
        match codec {
            AVC => Some(Self::Avc),
            NUMBERED_HEVC => Some(Self::Hevc),
            Codec::FourCc(name) => match &name {
                b"avc1" => Some(Self::Avc),
                b"hvc1" => Some(Self::Hevc),
                b"av01" => Some(Self::Av1),
                b"vp09" => Some(Self::Vp9),
                _ => None,
            },
            Codec::Numbered(_) => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Avc => "H.264",
            Self::Hevc => "HEVC",
            Self::Av1 => "AV1",
            Self::Vp9 => "VP9",
        }
    }

    const fn tag(self) -> &'static [u8] {
        match self {
            Self::Avc => b"H264",
            Self::Hevc => b"HEVC",
            Self::Av1 => b"AV01",
            Self::Vp9 => b"VP90",
        }
    }
}

/// Treatment of a sequence header in FLV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Follow {
    /// ffmpeg gets it: it is the first.
    HandOn,
    /// The key frames get what it says.
    InFrames,
    /// Its frames cannot be read by what ffmpeg has.
    Anew,
    /// It cannot be parsed.
    Malformed,
}

/// A header that ffmpeg has.
#[derive(Clone, Debug)]
struct HandedOn {
    /// `None` if it is not understood.
    parameters: Option<Parameters>,
    /// Whether another one came since.
    is_old: bool,
}

/// The pictures.
#[derive(Debug)]
pub(super) struct VideoTrack {
    pub(super) codec: Codec,
    known: Option<VideoCodec>,
    parameters: Option<Parameters>,
    /// In FLV: what ffmpeg has from the header.
    handed_on: Option<HandedOn>,
    /// Sequence header of AV1, as a whole OBU.
    sequence: Bytes,
    /// Pictures as the newest header describes them.
    picture: Option<Picture>,
}

impl VideoTrack {
    pub(super) const fn new(codec: Codec) -> Self {
        Self {
            codec,
            known: VideoCodec::of(codec),
            parameters: None,
            handed_on: None,
            sequence: Bytes::new(),
            picture: None,
        }
    }

    /// Takes what decoders need first. Returns whether it is understood.
    pub(super) fn configure(&mut self, config: &Bytes) -> bool {
        match self.known {
            Some(VideoCodec::Avc) => self.set(Parameters::avc(config), headers::h264),
            Some(VideoCodec::Hevc) => self.set(Parameters::hevc(config), headers::hevc),
            Some(VideoCodec::Av1) => {
                let obus = config.get(4..).unwrap_or_default();
                let sequence = headers::av1_sequence_header(obus);
                self.sequence = Bytes::copy_from_slice(sequence.unwrap_or_default());
                self.look(&self.sequence.clone());
                true
            }
            _ => true,
        }
    }

    /// The same after `config`, if there is any.
    pub(super) fn with(mut self, config: Option<&Bytes>) -> Self {
        config.map(|config| self.configure(config));
        self
    }

    /// Whether a key frame could be decoded.
    pub(super) const fn is_ready(&self) -> bool {
        match self.known {
            Some(VideoCodec::Avc | VideoCodec::Hevc) => self.parameters.is_some(),
            Some(VideoCodec::Av1 | VideoCodec::Vp9) | None => true,
        }
    }

    /// Takes a header of FLV, and decides what becomes of it.
    pub(super) fn follow(&mut self, config: &Bytes) -> Follow {
        let is_understood = self.configure(config);
        let parameters = self.parameters.clone().filter(|_| is_understood);
        let Some(handed_on) = &mut self.handed_on else {
            let is_old = false;
            self.handed_on = Some(HandedOn { parameters, is_old });
            return Follow::HandOn;
        };
        let Some(now) = parameters else {
            return Follow::Malformed;
        };
        let first = handed_on.parameters.as_ref();
        if first.is_some_and(|first| first.length_size != now.length_size) {
            return Follow::Anew;
        }
        handed_on.is_old |= first != Some(&now);
        Follow::InFrames
    }

    /// A key frame of FLV with the parameter sets that ffmpeg has not from the header; `None` if it stays as it is.
    pub(super) fn with_new_parameters(&self, frame: &[u8]) -> Option<Bytes> {
        let is_old = self.handed_on.as_ref().is_some_and(|it| it.is_old);
        let parameters = self.parameters.as_ref().filter(|_| is_old)?;
        parameters.prepend(frame)
    }

    fn set(&mut self, parameters: Option<Parameters>, read: fn(&[u8]) -> Option<Picture>) -> bool {
        let parameters = parameters.filter(|it| !it.sets.is_empty());
        let is_understood = parameters.is_some();
        if let Some(parameters) = parameters {
            self.picture = parameters.sequence().and_then(read);
            self.parameters = Some(parameters);
        }
        is_understood
    }

    /// Learns size and profile from a key frame.
    fn look(&mut self, frame: &[u8]) {
        let picture = match self.known {
            Some(VideoCodec::Av1) => headers::av1(frame).map(|(picture, _)| picture),
            Some(VideoCodec::Vp9) => headers::vp9(frame),
            _ => None,
        };
        if picture.is_some() {
            self.picture = picture;
        }
    }

    /// A frame as NUT has it; `None` if it is malformed or nothing decodes it.
    pub(super) fn convert(&mut self, frame: &Bytes, key: bool) -> Option<Bytes> {
        match self.known? {
            VideoCodec::Avc | VideoCodec::Hevc => self.parameters.as_ref()?.convert(frame, key),
            VideoCodec::Av1 if key && !self.sequence.is_empty() => {
                self.look(frame);
                Some(headers::av1_whole(frame, &self.sequence))
            }
            VideoCodec::Av1 | VideoCodec::Vp9 => {
                if key {
                    self.look(frame);
                }
                Some(frame.clone())
            }
        }
    }

    /// The stream that begins with this key frame, once its size is known. `is_late`: it is shown later than it is decoded.
    pub(super) fn stream(&self, key_frame: &[u8], is_late: bool) -> Option<NutStream> {
        let codec = self.known?;
        let picture = self.picture.as_ref()?;
        let parameters = match codec {
            VideoCodec::Avc | VideoCodec::Hevc => self.parameters.as_ref()?.sets.clone(),
            VideoCodec::Av1 => {
                let (_, record) = headers::av1(key_frame)?;
                let sequence = headers::av1_sequence_header(key_frame)?;
                [&record[..], sequence].concat().into()
            }
            VideoCodec::Vp9 => Bytes::new(),
        };
        Some(NutStream {
            class: NutClass::Video(picture.width, picture.height),
            codec: Bytes::from_static(codec.tag()),
            parameters,
            decode_delay: picture.reorder.unwrap_or(is_late.into()),
        })
    }

    /// For people.
    pub(super) fn found(&self) -> FoundVideo {
        let name = match (self.known, self.codec) {
            (Some(known), _) => known.name().to_owned(),
            (None, Codec::FourCc(name)) => String::from_utf8_lossy(&name).into_owned(),
            (None, Codec::Numbered(2)) => "Sorenson H.263".to_owned(),
            (None, Codec::Numbered(4 | 5)) => "VP6".to_owned(),
            (None, Codec::Numbered(number)) => format!("FLV codec {number}"),
        };
        match &self.picture {
            Some(picture) => picture.found(&name),
            None => FoundVideo::of(&name),
        }
    }

    /// Whether it can be put into NUT.
    ///
    /// # Errors
    /// If not; the sentence names the codec.
    pub(super) fn check(&self) -> Result<(), FlvError> {
        let refused = || FlvError::Video(self.found().codec);
        self.known.map(|_| ()).ok_or_else(refused)
    }
}

/// Codecs of sound that can be put into NUT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AudioCodec {
    Aac,
    Opus,
    Flac,
    Ac3,
}

impl AudioCodec {
    const fn of(codec: Codec) -> Option<Self> {
        match codec {
            AAC => Some(Self::Aac),
            Codec::FourCc(name) => match &name {
                b"mp4a" => Some(Self::Aac),
                b"Opus" => Some(Self::Opus),
                b"fLaC" => Some(Self::Flac),
                b"ac-3" => Some(Self::Ac3),
                _ => None,
            },
            Codec::Numbered(_) => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Aac => "AAC",
            Self::Opus => "Opus",
            Self::Flac => "FLAC",
            Self::Ac3 => "AC-3",
        }
    }

    /// The codec as NUT names it: those of WAV by their numbers, as ffmpeg writes them.
    const fn tag(self) -> &'static [u8] {
        match self {
            Self::Aac => b"\xff\0\0\0",
            Self::Opus => b"Opus",
            Self::Flac => b"\xac\xf1\0\0",
            Self::Ac3 => b"\0\x20\0\0",
        }
    }
}

/// The sound.
#[derive(Debug)]
pub(super) struct AudioTrack {
    pub(super) codec: Codec,
    known: Option<AudioCodec>,
    config: Bytes,
    sound: Option<Sound>,
}

impl AudioTrack {
    pub(super) const fn new(codec: Codec) -> Self {
        Self {
            codec,
            known: AudioCodec::of(codec),
            config: Bytes::new(),
            sound: None,
        }
    }

    /// Takes what decoders need first. Returns whether it differs from what there was.
    pub(super) fn configure(&mut self, config: &Bytes) -> bool {
        let (config, sound) = match self.known {
            Some(AudioCodec::Aac) => (config.clone(), headers::aac(config)),
            Some(AudioCodec::Opus) => (config.clone(), headers::opus(config)),
            Some(AudioCodec::Flac) => {
                let flac = headers::flac(config);
                let info = flac.map_or(&[][..], |(info, _)| info);
                (config.slice_ref(info), flac.map(|(_, sound)| sound))
            }
            Some(AudioCodec::Ac3) | None => return false,
        };
        if sound.is_none() {
            return false;
        }
        let differs = !self.config.is_empty() && self.config != config;
        (self.config, self.sound) = (config, sound);
        differs
    }

    /// The same after `config`, if there is any, and a frame.
    pub(super) fn with(mut self, config: Option<&Bytes>, frame: &[u8]) -> Self {
        config.map(|config| self.configure(config));
        self.look(frame);
        self
    }

    /// Whether a decoder could begin. What only ffmpeg knows, it is left to.
    pub(super) const fn is_ready(&self) -> bool {
        self.known.is_none() || self.sound.is_some()
    }

    /// Learns from a frame what no header said.
    pub(super) fn look(&mut self, frame: &[u8]) {
        if self.known == Some(AudioCodec::Ac3) {
            self.sound = self.sound.or_else(|| headers::ac3(frame));
        }
    }

    /// The stream, once it is known.
    pub(super) fn stream(&self) -> Option<NutStream> {
        let sound = self.sound?;
        Some(NutStream {
            // Some configurations leave the channels to the frames.
            class: NutClass::Audio(sound.sample_rate, sound.channels.max(1)),
            codec: Bytes::from_static(self.known?.tag()),
            parameters: self.config.clone(),
            decode_delay: 0,
        })
    }

    /// For people.
    pub(super) fn found(&self) -> FoundAudio {
        let name = match (self.known, self.codec) {
            (Some(known), _) => known.name().to_owned(),
            (None, Codec::FourCc(name)) => String::from_utf8_lossy(&name).into_owned(),
            (None, Codec::Numbered(number)) => {
                let name = SOUNDS.get(usize::from(number));
                (*name.unwrap_or(&"")).to_owned()
            }
        };
        let unknown = FoundAudio {
            codec: name.clone(),
            sample_rate: 0,
            channels: 0,
        };
        self.sound.map_or(unknown, |sound| sound.found(&name))
    }

    /// Whether it can be put into NUT.
    ///
    /// # Errors
    /// If not; the sentence names the codec.
    pub(super) fn check(&self) -> Result<(), FlvError> {
        let refused = || FlvError::Audio(self.found().codec);
        self.known.map(|_| ()).ok_or_else(refused)
    }
}
