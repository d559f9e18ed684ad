//! H.264 with start codes (ITU-T H.264, Annex B).

/// Type of a sequence parameter set (table 7-1).
pub(crate) const SEQUENCE_PARAMETERS: u8 = 7;

/// The units of a frame, without their start codes and the zeros after them.
pub(crate) fn units(frame: &[u8]) -> impl Iterator<Item = &[u8]> {
    let starts = frame.windows(3).enumerate();
    let mut starts = starts
        .filter_map(|(at, window)| (window == [0, 0, 1]).then_some(at))
        .peekable();
    core::iter::from_fn(move || {
        let start = starts.next()? + 3;
        let end = starts.peek().copied().unwrap_or(frame.len());
        let unit = &frame[start..end];
        let length = unit.iter().rposition(|&octet| octet != 0);
        Some(&unit[..length.map_or(0, |last| last + 1)])
    })
}

/// Returns whether a unit is of this type.
pub(crate) fn is_of(unit: &[u8], kind: u8) -> bool {
    unit.first().is_some_and(|octet| octet & 0x1f == kind)
}

#[cfg(test)]
mod tests {
    use super::*;

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
