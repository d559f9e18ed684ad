//! The size of pictures as their key frames tell it: a source may change it in mid-stream.

use bytes::Bytes;

use super::super::codec::VideoCodec;
use super::super::ladder::PictureSize;
use super::form;
use super::h264::AnnexB;
use crate::annex_b;
use crate::headers;
use crate::nut::NutStream;

/// Follows the size of a stream's pictures. AV1 tells it too deep inside.
#[derive(Debug)]
pub(super) struct SizeWatch {
    format: Option<Format>,
    known: Option<PictureSize>,
}

#[derive(Debug)]
enum Format {
    H264(AnnexB),
    Vp9,
}

impl SizeWatch {
    /// Creates it for a stream, of which the catalogue gives the size of this key frame.
    pub(super) fn new(stream: &NutStream, first_key: &Bytes) -> Self {
        let format = match form::codec(stream) {
            Some(VideoCodec::H264) => AnnexB::new(&stream.parameters).map(Format::H264),
            Some(VideoCodec::Vp9) => Some(Format::Vp9),
            _ => None,
        };
        let mut sizes = Self {
            format,
            known: None,
        };
        sizes.known = sizes.size(first_key);
        sizes
    }

    fn size(&self, key_frame: &Bytes) -> Option<PictureSize> {
        let picture = match self.format.as_ref()? {
            Format::H264(form) => annex_b::picture(&form.convert(key_frame, true)?)?,
            Format::Vp9 => headers::vp9(key_frame)?,
        };
        Some(PictureSize {
            width: picture.width,
            height: picture.height,
        })
    }

    /// Takes a key frame. Gives the size before and from now on, if they differ.
    pub(super) fn change(&mut self, key_frame: &Bytes) -> Option<(PictureSize, PictureSize)> {
        let size = self.size(key_frame)?;
        let before = self.known.replace(size)?;
        (before != size).then_some((before, size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nut::NutClass;

    fn watch(codec: &'static [u8]) -> SizeWatch {
        let stream = NutStream {
            class: NutClass::Video(640, 360),
            codec: Bytes::from_static(codec),
            parameters: Bytes::new(),
            decode_delay: 0,
        };
        SizeWatch::new(&stream, &vp9(640, 360).into())
    }

    /// As libvpx writes it: colour 0010, then 639 and 359 (0x27f, 0x167).
    fn vp9(width: u64, height: u64) -> Vec<u8> {
        let bits = 0b0010 << 36 | (width - 1) << 20 | (height - 1) << 4;
        [&[0x82, 0x49, 0x83, 0x42][..], &bits.to_be_bytes()[3..]].concat()
    }

    #[test]
    fn a_change_is_told_once() {
        let mut sizes = watch(b"VP90");
        let large = PictureSize {
            width: 1_280,
            height: 720,
        };
        let small = PictureSize {
            width: 640,
            height: 360,
        };
        assert_eq!(
            vp9(640, 360),
            [0x82, 0x49, 0x83, 0x42, 0x20, 0x27, 0xf0, 0x16, 0x70]
        );
        assert_eq!(sizes.change(&vp9(1_280, 720).into()), Some((small, large)));
        assert_eq!(sizes.change(&vp9(1_280, 720).into()), None);
        assert_eq!(sizes.change(&vp9(640, 360).into()), Some((large, small)));
    }

    #[test]
    fn what_tells_no_size_changes_nothing() {
        let mut sizes = watch(b"VP90");
        for frame in [&[][..], &[0x82], &vp9(9, 9)[..8], &[0x86; 9], &[0; 9]] {
            assert_eq!(
                sizes.change(&Bytes::copy_from_slice(frame)),
                None,
                "{frame:?}"
            );
        }
        assert_eq!(
            watch(b"H264").change(&Bytes::from_static(&[0, 0, 0, 1, 0x65, 1])),
            None
        );
        assert_eq!(watch(b"AV01").change(&Bytes::from_static(&[1, 2, 3])), None);
    }
}
