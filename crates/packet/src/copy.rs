//! Copies of short packets, in one allocation each.

use bytes::Bytes;

/// Octets up to [`INLINE`], in the allocation that counts their references.
struct Inline {
    octets: [u8; INLINE],
    length: usize,
}

/// Enough for nearly all Interests without parameters.
const INLINE: usize = 104;

impl AsRef<[u8]> for Inline {
    fn as_ref(&self) -> &[u8] {
        &self.octets[..self.length]
    }
}

/// Returns a copy of `octets`, changed by `patch`, that shares its memory with nothing.
pub(crate) fn patched(octets: &[u8], patch: impl FnOnce(&mut [u8])) -> Bytes {
    if octets.len() > INLINE {
        let mut copy = octets.to_vec();
        patch(&mut copy);
        return copy.into();
    }
    let mut copy = Inline {
        octets: [0; INLINE],
        length: octets.len(),
    };
    copy.octets[..octets.len()].copy_from_slice(octets);
    patch(&mut copy.octets[..octets.len()]);
    Bytes::from_owner(copy)
}
