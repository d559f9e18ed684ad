//! Pictures that are published as they came: the form that players take, and how WebCodecs names it.

use bytes::Bytes;

use super::super::codec::VideoCodec;
use super::super::ladder::PictureSize;
use super::h264::AnnexB;
use crate::annex_b::pixel_aspect;
use crate::nut::NutStream;

/// Profiles of H.264 that every player decodes: Baseline, Main and High, with eight bits and half the colour.
const PROFILES: [&str; 3] = ["avc1.42", "avc1.4D", "avc1.64"];

/// What brings frames into the form in which they are published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// H.264 gets start codes and parameter sets.
    AnnexB(AnnexB),
    /// VP9 and AV1 have all that is needed in each key frame.
    AsItIs,
}

impl Form {
    /// Width of a pixel over its height, as the pictures themselves state it.
    pub(super) fn pixel_aspect(&self, key_frame: &Bytes) -> Option<(u32, u32)> {
        match self {
            Self::AnnexB(form) => pixel_aspect(&form.convert(key_frame, true)?),
            Self::AsItIs => None,
        }
    }

    /// The frame in that form; `None` if it is malformed.
    pub(super) fn convert(&self, frame: &Bytes, key: bool) -> Option<Bytes> {
        match self {
            Self::AnnexB(form) => form.convert(frame, key),
            Self::AsItIs => Some(frame.clone()),
        }
    }
}

/// The codec of a stream, if players take it.
pub(super) fn codec(stream: &NutStream) -> Option<VideoCodec> {
    match &stream.codec[..] {
        b"H264" | b"h264" | b"avc1" => Some(VideoCodec::H264),
        b"VP90" => Some(VideoCodec::Vp9),
        b"AV01" | b"av01" => Some(VideoCodec::Av1),
        _ => None,
    }
}

/// The form of a stream's frames, and the codec as WebCodecs names it; `None` if the stream does not say what it is, or is not
/// what players take.
pub(super) fn form(
    stream: &NutStream,
    key_frame: &[u8],
    size: PictureSize,
    rate: u32,
) -> Option<(Form, String)> {
    match codec(stream)? {
        VideoCodec::H264 => {
            let form = AnnexB::new(&stream.parameters)?;
            let codec_string = form.codec_string(key_frame)?;
            let is_taken = PROFILES.iter().any(|it| codec_string.starts_with(it));
            is_taken.then_some((Form::AnnexB(form), codec_string))
        }
        VideoCodec::Vp9 if is_plain_vp9(key_frame) => {
            Some((Form::AsItIs, VideoCodec::Vp9.codec_string(size, rate)))
        }
        VideoCodec::Av1 => {
            let codec_string = av1_codec_string(&stream.parameters)?;
            let is_taken = codec_string.starts_with("av01.0.") && codec_string.ends_with(".08");
            is_taken.then_some((Form::AsItIs, codec_string))
        }
        VideoCodec::Vp9 | VideoCodec::Vp8 => None,
    }
}

/// Whether a frame is of profile 0, which has eight bits a sample: the frame marker is 10, and then comes the profile.
fn is_plain_vp9(frame: &[u8]) -> bool {
    frame.first().is_some_and(|head| head >> 4 == 0b1000)
}

/// By the AV1CodecConfigurationRecord that containers have: AV1 Codec ISO Media File Format Binding, section 2.3.3.
fn av1_codec_string(record: &[u8]) -> Option<String> {
    let [0x81, profile_and_level, flags, ..] = *record else {
        return None;
    };
    let (profile, level) = (profile_and_level >> 5, profile_and_level & 0x1f);
    let tier = if flags >> 7 == 1 { 'H' } else { 'M' };
    let depth = match (flags >> 6 & 1, flags >> 5 & 1) {
        (0, _) => 8,
        (_, 0) => 10,
        _ => 12,
    };
    Some(format!("av01.{profile}.{level:02}{tier}.{depth:02}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As SVT-AV1 writes it for 640×360 at 30: main profile, level 2.1, 8 bits.
    #[test]
    fn av1_says_its_profile_in_the_record() {
        let record = [0x81, 0x01, 0x0c, 0x00, 0x0a, 0x0b];
        assert_eq!(av1_codec_string(&record).as_deref(), Some("av01.0.01M.08"));
        let high = [0x81, 0x2c, 0xc4, 0x00];
        assert_eq!(av1_codec_string(&high).as_deref(), Some("av01.1.12H.10"));
        assert_eq!(av1_codec_string(&[0x0a, 0x0b, 0, 0]), None);
        assert_eq!(av1_codec_string(&[]), None);
    }

    #[test]
    fn vp9_of_another_profile_is_not_plain() {
        assert!(is_plain_vp9(&[0x82, 0x49, 0x83]));
        assert!(!is_plain_vp9(&[0x92]));
        assert!(!is_plain_vp9(&[]));
    }
}
