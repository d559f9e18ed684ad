//! Decoder configuration of H.264 and HEVC in MP4 and FLV: the records of ISO/IEC 14496-15 (avcC, hvcC), and frames with lengths instead of start
//! codes.

use bytes::{BufMut, Bytes, BytesMut};

const START_CODE: [u8; 4] = [0, 0, 0, 1];

/// Parameter sets, and how frames are cut into units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parameters {
    /// Octets of a length.
    pub(crate) length_size: usize,
    /// The parameter sets, with start codes.
    pub(crate) sets: Bytes,
    is_hevc: bool,
}

impl Parameters {
    /// Reads an AVCDecoderConfigurationRecord (section 5.3.3.1); `None` if it is malformed.
    pub(crate) fn avc(record: &[u8]) -> Option<Self> {
        if record.first() != Some(&1) {
            return None;
        }
        let mut sets = BytesMut::new();
        let mut rest = record.get(5..)?;
        for mask in [0x1f, 0xff] {
            let (&count, after) = rest.split_first()?;
            rest = put_sets(&mut sets, after, usize::from(count & mask))?;
        }
        Some(Self::of(*record.get(4)?, sets, false))
    }

    /// Reads an HEVCDecoderConfigurationRecord (section 8.3.3.1); `None` if it is malformed.
    pub(crate) fn hevc(record: &[u8]) -> Option<Self> {
        let mut sets = BytesMut::new();
        let (&arrays, mut rest) = record.get(22..)?.split_first()?;
        for _ in 0..arrays {
            let (&[kind, high, low], after) = rest.split_first_chunk()?;
            let count = usize::from(u16::from_be_bytes([high, low]));
            // Video, sequence and picture parameter sets; SEI messages stay in the frames.
            let mut passed_over = BytesMut::new();
            let into = match kind & 0x3f {
                32..=34 => &mut sets,
                _ => &mut passed_over,
            };
            rest = put_sets(into, after, count)?;
        }
        Some(Self::of(*record.get(21)?, sets, true))
    }

    fn of(lengths: u8, sets: BytesMut, is_hevc: bool) -> Self {
        Self {
            length_size: usize::from(lengths & 3) + 1,
            sets: sets.freeze(),
            is_hevc,
        }
    }

    /// The first sequence parameter set, without start code.
    pub(crate) fn sequence(&self) -> Option<&[u8]> {
        crate::annex_b::units(&self.sets).find(|unit| self.is_sequence(unit))
    }

    fn is_sequence(&self, unit: &[u8]) -> bool {
        let kind = |first: &u8| match self.is_hevc {
            true => first >> 1 & 0x3f == 33,
            false => first & 0x1f == 7,
        };
        unit.first().is_some_and(kind)
    }

    /// The frame with start codes, and with the parameter sets if it is a key frame without; `None` if it is malformed.
    pub(crate) fn convert(&self, frame: &[u8], key: bool) -> Option<Bytes> {
        let units = self.units(frame)?;
        let mut converted = BytesMut::with_capacity(frame.len() + self.sets.len() + 64);
        if key && !self.has_sequence(&units) {
            converted.put_slice(&self.sets);
        }
        for unit in units {
            converted.put_slice(&START_CODE);
            converted.put_slice(unit);
        }
        Some(converted.freeze())
    }

    /// The key frame with the parameter sets before it, with lengths all through; `None` if it has its own, or is malformed.
    pub(crate) fn prepend(&self, frame: &[u8]) -> Option<Bytes> {
        if self.has_sequence(&self.units(frame)?) {
            return None;
        }
        let mut octets = BytesMut::with_capacity(frame.len() + self.sets.len() + 64);
        for set in crate::annex_b::units(&self.sets) {
            let length = set.len().to_be_bytes();
            let (too_large, length) = length.split_at(length.len() - self.length_size);
            if too_large.iter().any(|it| *it != 0) {
                return None;
            }
            octets.put_slice(length);
            octets.put_slice(set);
        }
        octets.put_slice(frame);
        Some(octets.freeze())
    }

    /// The units of a frame; `None` if it is malformed.
    fn units<'a>(&self, frame: &'a [u8]) -> Option<Vec<&'a [u8]>> {
        let mut units = Vec::new();
        let mut rest = frame;
        while !rest.is_empty() {
            let (length, after) = rest.split_at_checked(self.length_size)?;
            let length = length.iter().fold(0, |sum, it| sum << 8 | usize::from(*it));
            let (unit, after) = after.split_at_checked(length)?;
            units.push(unit);
            rest = after;
        }
        Some(units)
    }

    fn has_sequence(&self, units: &[&[u8]]) -> bool {
        units.iter().any(|unit| self.is_sequence(unit))
    }
}

/// Appends `count` sets that have lengths of two octets, with start codes. Returns what follows them.
fn put_sets<'a>(sets: &mut BytesMut, mut rest: &'a [u8], count: usize) -> Option<&'a [u8]> {
    for _ in 0..count {
        let (length, after) = rest.split_first_chunk()?;
        let (set, after) = after.split_at_checked(u16::from_be_bytes(*length).into())?;
        sets.put_slice(&START_CODE);
        sets.put_slice(set);
        rest = after;
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lengths of four octets, one set of each kind.
    const AVC: &[u8] = b"\x01\x64\0\x1f\xff\xe1\0\x02\x67\x64\x01\0\x01\x68";

    #[test]
    fn lengths_become_start_codes_and_key_frames_get_their_parameters() {
        let avc = Parameters::avc(AVC).unwrap();
        assert_eq!(avc.sequence(), Some(&b"\x67\x64"[..]));
        let key = avc.convert(b"\0\0\0\x02\x65\x09", true).unwrap();
        assert_eq!(
            key,
            &b"\0\0\0\x01\x67\x64\0\0\0\x01\x68\0\0\0\x01\x65\x09"[..]
        );
        let own = avc.convert(b"\0\0\0\x01\x67\0\0\0\x01\x65", true).unwrap();
        assert_eq!(own, &b"\0\0\0\x01\x67\0\0\0\x01\x65"[..]);
        assert_eq!(avc.convert(b"\0\0\0\x09\x65", false), None);
        let key = avc.prepend(b"\0\0\0\x02\x65\x09").unwrap();
        assert_eq!(
            key,
            &b"\0\0\0\x02\x67\x64\0\0\0\x01\x68\0\0\0\x02\x65\x09"[..]
        );
        assert_eq!(avc.prepend(b"\0\0\0\x01\x67\0\0\0\x01\x65"), None);
        assert_eq!(avc.prepend(b"\0\0\0\x09\x65"), None);

        // Lengths of two octets; a video and a sequence parameter set, and a message, which is left out.
        let mut record = vec![1; 21];
        record.extend(
            b"\xfd\x03\x20\0\x01\0\x02\x40\x01\x27\0\x01\0\x01\x4e\x21\0\x01\0\x02\x42\x01",
        );
        let hevc = Parameters::hevc(&record).unwrap();
        assert_eq!(hevc.sequence(), Some(&b"\x42\x01"[..]));
        let key = hevc.convert(b"\0\x02\x26\x01", true).unwrap();
        assert_eq!(
            key,
            &b"\0\0\0\x01\x40\x01\0\0\0\x01\x42\x01\0\0\0\x01\x26\x01"[..]
        );
        for at in 0..record.len() {
            assert_eq!(Parameters::hevc(&record[..at]), None);
        }
        for at in 0..AVC.len() {
            assert_eq!(Parameters::avc(&AVC[..at]), None);
        }
    }
}
