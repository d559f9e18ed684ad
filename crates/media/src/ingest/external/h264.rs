//! H.264 in the two forms in which it comes: with start codes (ITU-R H.264, Annex B), or with lengths (ISO 14496-15), which
//! leaves the parameter sets out of the frames.

use bytes::{BufMut, Bytes, BytesMut};

use crate::annex_b::{SEQUENCE_PARAMETERS, is_of, units};

const START_CODE: &[u8] = &[0, 0, 0, 1];

/// Brings frames into Annex B form, each key frame with its parameter sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AnnexB {
    /// Octets of a length; 0: frames have start codes.
    length_size: usize,
    /// The parameter sets, with start codes.
    parameters: Bytes,
}

impl AnnexB {
    /// By the parameters of the stream; `None` if they are no valid ones.
    pub(super) fn new(parameters: &Bytes) -> Option<Self> {
        if parameters.first() != Some(&1) {
            return Some(Self {
                length_size: 0,
                parameters: parameters.clone(),
            });
        }
        let length_size = usize::from(parameters.get(4)? & 3) + 1;
        let mut sets = BytesMut::new();
        let mut at = 5;
        for mask in [0x1f, 0xff] {
            let count = parameters.get(at)? & mask;
            at += 1;
            for _ in 0..count {
                let length = parameters.get(at..at + 2)?;
                let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
                sets.put_slice(START_CODE);
                sets.put_slice(parameters.get(at + 2..at + 2 + length)?);
                at += 2 + length;
            }
        }
        Some(Self {
            length_size,
            parameters: sets.freeze(),
        })
    }

    /// The frame with start codes, and with its parameter sets if it is a key frame that has none; `None` if it is malformed.
    pub(super) fn convert(&self, frame: &Bytes, key: bool) -> Option<Bytes> {
        let is_whole =
            |frame: &[u8]| !key || units(frame).any(|unit| is_of(unit, SEQUENCE_PARAMETERS));
        if self.length_size == 0 && is_whole(frame) {
            return Some(frame.clone());
        }
        let mut converted = BytesMut::with_capacity(frame.len() + self.parameters.len() + 64);
        if self.length_size == 0 {
            converted.put_slice(&self.parameters);
            converted.put_slice(frame);
            return Some(converted.freeze());
        }
        let mut rest = &frame[..];
        while !rest.is_empty() {
            let (length, after) = rest.split_at_checked(self.length_size)?;
            let length = length
                .iter()
                .fold(0, |sum, octet| sum << 8 | usize::from(*octet));
            let (unit, after) = after.split_at_checked(length)?;
            converted.put_slice(START_CODE);
            converted.put_slice(unit);
            rest = after;
        }
        if !is_whole(&converted) {
            let frame = converted;
            converted = BytesMut::from(&self.parameters[..]);
            converted.put_slice(&frame);
        }
        Some(converted.freeze())
    }

    /// The codec as WebCodecs names it: profile, constraints and level of the sequence parameter set, here or in a key frame.
    pub(super) fn codec_string(&self, key_frame: &[u8]) -> Option<String> {
        let sets = units(&self.parameters).chain(units(key_frame));
        let set = sets
            .into_iter()
            .find(|unit| is_of(unit, SEQUENCE_PARAMETERS))?;
        let profile = set.get(1..4)?;
        Some(format!(
            "avc1.{:02X}{:02X}{:02X}",
            profile[0], profile[1], profile[2]
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SET: &[u8] = &[0x67, 0x64, 0x00, 0x1f, 0xac];
    const PICTURE: &[u8] = &[0x68, 0xee];

    /// Version 1, High at level 3.1, lengths of four octets, one set of each kind.
    fn lengths() -> Bytes {
        let head = [1, 0x64, 0, 0x1f, 0xff, 0xe1, 0, 5];
        Bytes::from([&head[..], SET, &[1, 0, 2], PICTURE].concat())
    }

    fn with_start_codes(units: &[&[u8]]) -> Bytes {
        units
            .iter()
            .flat_map(|unit| [START_CODE, unit].concat())
            .collect()
    }

    #[test]
    fn lengths_become_start_codes_and_key_frames_get_their_parameters() {
        let form = AnnexB::new(&lengths()).unwrap();
        let frame = Bytes::from_static(&[0, 0, 0, 2, 0x65, 9, 0, 0, 0, 1, 0x65]);
        let expected = with_start_codes(&[SET, PICTURE, &[0x65, 9], &[0x65]]);
        assert_eq!(form.convert(&frame, true), Some(expected));
        let delta = Bytes::from_static(&[0, 0, 0, 2, 0x41, 9]);
        assert_eq!(
            form.convert(&delta, false),
            Some(with_start_codes(&[&[0x41, 9]]))
        );
        assert_eq!(form.codec_string(&[]).as_deref(), Some("avc1.64001F"));
        for bad in [&[0, 0, 0, 9, 1][..], &[0, 0][..]] {
            assert_eq!(form.convert(&Bytes::copy_from_slice(bad), false), None);
        }
        assert_eq!(AnnexB::new(&lengths().slice(..9)), None);
    }

    #[test]
    fn start_codes_stay_as_they_are() {
        let form = AnnexB::new(&with_start_codes(&[SET, PICTURE])).unwrap();
        let whole = with_start_codes(&[&[9, 0xf0], SET, PICTURE, &[0x65, 1]]);
        assert_eq!(form.convert(&whole, true), Some(whole.clone()));
        let bare = with_start_codes(&[&[0x65, 1]]);
        let expected = with_start_codes(&[SET, PICTURE, &[0x65, 1]]);
        assert_eq!(form.convert(&bare, true), Some(expected));
        let unknown = AnnexB::new(&Bytes::new()).unwrap();
        assert_eq!(unknown.codec_string(&whole).as_deref(), Some("avc1.64001F"));
        assert_eq!(unknown.codec_string(&bare), None);
    }
}
