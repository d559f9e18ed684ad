//! H.264 in the two forms in which it comes: with start codes (ITU-T H.264, Annex B), or with lengths (ISO 14496-15), which
//! leaves the parameter sets out of the frames.

use bytes::Bytes;

use crate::annex_b::{SEQUENCE_PARAMETERS, is_of, units};
use crate::parameters::Parameters;

/// Brings frames into Annex B form, each key frame with its parameter sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AnnexB {
    /// Frames have start codes; these are the parameter sets.
    StartCodes(Bytes),
    /// Frames have lengths.
    Lengths(Parameters),
}

impl AnnexB {
    /// By the parameters of the stream; `None` if they are no valid ones.
    pub(super) fn new(parameters: &Bytes) -> Option<Self> {
        match parameters.first() {
            Some(1) => Parameters::avc(parameters).map(Self::Lengths),
            _ => Some(Self::StartCodes(parameters.clone())),
        }
    }

    /// The parameter sets, with start codes.
    const fn sets(&self) -> &Bytes {
        match self {
            Self::StartCodes(sets) => sets,
            Self::Lengths(parameters) => &parameters.sets,
        }
    }

    /// The frame with start codes, and with its parameter sets if it is a key frame that has none; `None` if it is malformed.
    pub(super) fn convert(&self, frame: &Bytes, key: bool) -> Option<Bytes> {
        let sets = match self {
            Self::Lengths(parameters) => return parameters.convert(frame, key),
            Self::StartCodes(sets) => sets,
        };
        let is_whole = !key || units(frame).any(|unit| is_of(unit, SEQUENCE_PARAMETERS));
        Some(match is_whole {
            true => frame.clone(),
            false => [&sets[..], frame].concat().into(),
        })
    }

    /// The codec as WebCodecs names it: profile, constraints and level of the sequence parameter set, here or in a key frame.
    pub(super) fn codec_string(&self, key_frame: &[u8]) -> Option<String> {
        let sets = units(self.sets()).chain(units(key_frame));
        let set = sets
            .into_iter()
            .find(|unit| is_of(unit, SEQUENCE_PARAMETERS))?;
        let &[_, profile, constraints, level, ..] = set else {
            return None;
        };
        Some(format!("avc1.{profile:02X}{constraints:02X}{level:02X}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START_CODE: &[u8] = &[0, 0, 0, 1];
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
