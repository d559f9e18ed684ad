//! Closed captions within coded pictures: in SEI messages of H.264 and HEVC, in metadata of AV1, and in user data of MPEG-2, as
//! ATSC A/53 part 4, section 6.2.3, has them.

/// Start of user data with captions: the identifier, and the type.
const IDENTIFIER: &[u8] = b"GA94\x03";
/// Octets before the identifier: country and provider of ITU-T T.35, or the start code of user data in MPEG-2.
const BEFORE: [&[u8]; 2] = [b"\xb5\x00\x31", b"\x00\x00\x01\xb2"];
/// Octets of a picture that are searched: user data stands before the slices.
const HEAD: usize = 4_096;
/// Flag that captions are to be processed, and mask of their number.
const PROCESSED: u8 = 0x40;
const COUNT: u8 = 0x1f;
/// Marker, flag and type of a valid pair of CEA-608 in the first field.
const FIRST_FIELD: u8 = 0xfc;
/// A pair without content, with parity.
const EMPTY: [u8; 2] = [0x80, 0x80];

/// Returns the pairs of CEA-608 for the first field of a picture, with parity and without empty ones; `None`: the picture has no
/// captions, not even empty ones.
///
/// The octets of captions need no emulation prevention: each third one is at least 0xf8.
pub(super) fn closed_captions(picture: &[u8]) -> Option<Vec<[u8; 2]>> {
    let head = picture.get(..HEAD).unwrap_or(picture);
    let mut found = None;
    for at in 0..head.len() {
        let Some((before, data)) = head.split_at_checked(at) else {
            break;
        };
        if let Some(data) = data.strip_prefix(IDENTIFIER)
            && BEFORE.iter().any(|it| before.ends_with(it))
        {
            found.get_or_insert_with(Vec::new).extend(pairs(data));
        }
    }
    found
}

/// Reads what follows the identifier.
fn pairs(octets: &[u8]) -> impl Iterator<Item = [u8; 2]> {
    let (flags, triplets) = match octets {
        [flags, _, triplets @ ..] if flags & PROCESSED != 0 => (*flags, triplets),
        _ => (0, &[][..]),
    };
    let triplets = triplets.chunks_exact(3).take((flags & COUNT).into());
    triplets.filter_map(|triplet| match *triplet {
        [FIRST_FIELD, first, second] => Some([first, second]).filter(|pair| *pair != EMPTY),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two triplets: one of the second field, and "HE" with parity. 0xc2 sets the flag and counts two.
    const CAPTIONS: &[u8] = b"GA94\x03\xc2\xff\xfd\x80\x80\xfc\xc8\x45\xff";

    fn picture(before: &[u8], captions: &[u8]) -> Vec<u8> {
        [b"\x00\x00\x00\x01\x06\x04\x11", before, captions, b"\x80"].concat()
    }

    #[test]
    fn pairs_of_the_first_field_are_found() {
        for before in BEFORE {
            let twice = [picture(before, CAPTIONS), picture(before, CAPTIONS)].concat();
            let expected = [[0xc8, 0x45]; 2].to_vec();
            assert_eq!(closed_captions(&twice), Some(expected));
        }
    }

    #[test]
    fn other_user_data_has_no_captions() {
        let t35 = BEFORE[0];
        assert_eq!(closed_captions(b""), None);
        assert_eq!(closed_captions(&picture(b"", CAPTIONS)), None);
        assert_eq!(closed_captions(&picture(t35, b"DTG1\x03\xc1\xff")), None);
        let empty = picture(t35, b"GA94\x03\xc1\xff\xfc\x80\x80\xff");
        assert_eq!(closed_captions(&empty), Some(Vec::new()));
        let unprocessed = picture(t35, b"GA94\x03\x81\xff\xfc\xc8\x45\xff");
        assert_eq!(closed_captions(&unprocessed), Some(Vec::new()));
        // Every length of what is cut off.
        let whole = picture(t35, CAPTIONS);
        for length in 0..whole.len() {
            closed_captions(&whole[..length]);
        }
        let far = [vec![0; HEAD], whole].concat();
        assert_eq!(closed_captions(&far), None);
    }
}
