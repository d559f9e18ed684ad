//! H.264 with start codes (ITU-T H.264, Annex B).

use h264_reader::nal::sps::SeqParameterSet;
use h264_reader::rbsp::{BitReader, decode_nal};

use crate::headers::{self, Picture};

/// Type of a sequence parameter set (table 7-1).
pub(crate) const SEQUENCE_PARAMETERS: u8 = 7;

/// Type of a slice of a picture before which decoders need nothing.
pub(crate) const IDR: u8 = 5;

/// The units of a frame, without their start codes and the zeros after them.
pub(crate) fn units(frame: &[u8]) -> impl Iterator<Item = &[u8]> {
    let starts = frame.windows(3).enumerate();
    let mut starts = starts
        .filter_map(|(at, window)| (window == [0, 0, 1]).then_some(at))
        .peekable();
    core::iter::from_fn(move || {
        let start = starts.next()? + 3;
        let end = starts.peek().copied().unwrap_or(frame.len());
        let mut unit = frame.get(start..end)?;
        while let [shorter @ .., 0] = unit {
            unit = shorter;
        }
        Some(unit)
    })
}

/// Returns whether a unit is of this type.
pub(crate) fn is_of(unit: &[u8], kind: u8) -> bool {
    unit.first().is_some_and(|octet| octet & 0x1f == kind)
}

/// Parses the first sequence parameter set among these units.
pub(crate) fn picture(frame: &[u8]) -> Option<Picture> {
    headers::h264(sequence_parameters(frame)?)
}

/// Width of a pixel over its height, by the first sequence parameter set among these units, if that states it.
pub(crate) fn pixel_aspect(frame: &[u8]) -> Option<(u32, u32)> {
    let bits = decode_nal(sequence_parameters(frame)?).ok()?;
    let set = SeqParameterSet::from_bits(BitReader::new(&bits[..])).ok()?;
    let (width, height) = set.vui_parameters?.aspect_ratio_info?.get()?;
    Some((width.into(), height.into()))
}

fn sequence_parameters(frame: &[u8]) -> Option<&[u8]> {
    units(frame).find(|unit| is_of(unit, SEQUENCE_PARAMETERS))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As x264 writes it for 640 × 360, whose last row of macroblocks is cropped by 8 pixels.
    #[test]
    fn the_parameter_set_tells_the_size() {
        let set = b"\x67\x42\xc0\x1e\xd9\x00\xa0\x2f\xf9\x70\x11\x00\x00\x03\x00\x01\x00\x00\x03\x00\x3c\x0f\x16\x2e\x48";
        let frame = [
            b"\0\0\0\x01\x09\xf0\0\0\0\x01",
            &set[..],
            b"\0\0\x01\x65\x88",
        ]
        .concat();
        let size = |frame: &[u8]| picture(frame).map(|it| (it.width, it.height));
        assert_eq!(size(&frame), Some((640, 360)));
        assert_eq!(size(&frame[..14]), None);
        assert_eq!(size(b"\0\0\x01\x65"), None);
    }

    #[test]
    fn units_end_at_the_next_start_code_and_lose_its_zeros() {
        let found = |frame: &'static [u8]| units(frame).collect::<Vec<_>>();
        assert_eq!(
            found(b"\0\0\0\x01\x67\x64\0\0\0\x01\x68\0\0\x01\x65\x01"),
            [&b"\x67\x64"[..], b"\x68", b"\x65\x01"]
        );
        assert_eq!(found(b"\0\0\x01"), [b""]);
        assert_eq!(found(b"\x65"), [b""; 0]);
        assert!(is_of(b"\x67", SEQUENCE_PARAMETERS) && !is_of(b"", SEQUENCE_PARAMETERS));
    }
}
