//! Probes of the path MTU on the wire: link packets without a fragment, with the field PathProbe or PathAnswer.

use bytes::Bytes;
use namecast_packet::{Extensions, LpPacket};

/// Octets of a probe that asks only whether the neighbour answers.
pub(super) const SMALL: usize = 14;
/// Octets of a large probe besides its value: LpPacket with its length (4), the field's type and length (3 each).
const OVERHEAD: usize = 10;
/// Octets of a probe that its answer repeats.
pub(super) const NONCE: usize = 8;
/// Smallest padded probe: with fewer octets, lengths are shorter.
pub(super) const MIN_PADDED: usize = 300;

/// Returns a probe of `size` octets; of [`SMALL`] if `size` is below [`MIN_PADDED`].
pub(super) fn probe(nonce: [u8; NONCE], size: usize) -> Bytes {
    let mut value = nonce.to_vec();
    if size >= MIN_PADDED {
        value.resize(size - OVERHEAD, 0);
    }
    of_field(Extensions::PATH_PROBE, &value)
}

/// Returns the answer to a probe with this value; `None` if it is too short.
pub(super) fn answer(probe: &[u8]) -> Option<Bytes> {
    let nonce = probe.get(..NONCE)?;
    Some(of_field(Extensions::PATH_ANSWER, nonce))
}

fn of_field(number: u32, value: &[u8]) -> Bytes {
    let mut packet = LpPacket::default();
    packet.extensions.set(number, value);
    packet.encode()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_have_the_size_they_ask_about() {
        for size in MIN_PADDED..=1_400 {
            assert_eq!(probe([9; NONCE], size).len(), size);
        }
        assert_eq!(probe([9; NONCE], SMALL).len(), SMALL);
        assert!(answer(&[9; NONCE]).unwrap().len() <= SMALL);
        assert_eq!(answer(&[9; NONCE - 1]), None);
    }
}
