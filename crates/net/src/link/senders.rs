//! Several senders on one face.

use bytes::Bytes;
use namecast_packet::LpPacket;
use sha2::{Digest, Sha256};

use crate::key_store;

/// Keeps the fragments of several senders apart on a face that hears them all.
///
/// A face puts together what has consecutive numbers (NDNLPv2 Sequence), and every sender counts by itself, mostly from
/// 0. NFD has the sender's address in the key; here each sender's numbers are moved by an offset that nobody else knows.
#[derive(Clone, Debug)]
pub(crate) struct Senders {
    secret: [u8; 16],
}

impl Senders {
    /// With offsets of its own.
    pub(crate) fn new() -> Self {
        Self {
            secret: key_store::random(),
        }
    }

    /// The frame with its number moved to those of `sender`; one that is no fragment as it is.
    pub(crate) fn move_apart(&self, sender: &[u8], frame: Bytes) -> Bytes {
        // What cannot be read is for the forwarder to count.
        let Ok(packet) = LpPacket::decode(frame.clone()) else {
            return frame;
        };
        match packet.sequence {
            Some(sequence) if packet.fragment_count.unwrap_or(1) > 1 => LpPacket {
                sequence: Some(sequence.wrapping_add(self.offset(sender))),
                ..packet
            }
            .encode(),
            _ => frame,
        }
    }

    fn offset(&self, sender: &[u8]) -> u64 {
        let digest = Sha256::new()
            .chain_update(self.secret)
            .chain_update(sender)
            .finalize();
        let (first, _) = digest.split_at(8);
        u64::from_be_bytes(first.try_into().expect("eight octets"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(sequence: u64, index: u64) -> Bytes {
        LpPacket {
            sequence: Some(sequence),
            fragment_index: index,
            fragment_count: Some(2),
            ..LpPacket::carrying(Bytes::from_static(b"piece"))
        }
        .encode()
    }

    fn sequence(frame: Bytes) -> u64 {
        LpPacket::decode(frame).unwrap().sequence.unwrap()
    }

    /// Two senders that count from 0 get different numbers, each its own all the time and one after another, also where
    /// they begin anew.
    #[test]
    fn fragments_of_two_senders_have_different_numbers() {
        let senders = Senders::new();
        let moved = |sender: &[u8], number, index| {
            sequence(senders.move_apart(sender, fragment(number, index)))
        };
        let (a, b) = (moved(b"a", 0, 0), moved(b"b", 0, 0));
        assert!(a.abs_diff(b) > 1_000, "{a} {b}");
        assert_eq!(moved(b"a", 1, 1), a.wrapping_add(1));
        assert_eq!(moved(b"a", u64::MAX, 1), a.wrapping_sub(1));
        assert_ne!(Senders::new().offset(b"a"), senders.offset(b"a"));
    }

    #[test]
    fn everything_but_the_number_of_a_fragment_stays() {
        let senders = Senders::new();
        let moved = senders.move_apart(b"a", fragment(5, 1));
        let packet = LpPacket::decode(moved).unwrap();
        assert_eq!((packet.fragment_index, packet.fragment_count), (1, Some(2)));
        assert_eq!(packet.fragment.as_deref(), Some(&b"piece"[..]));
        let whole = LpPacket {
            sequence: Some(5),
            ..LpPacket::carrying(Bytes::from_static(b"piece"))
        };
        for frame in [
            whole.encode(),
            Bytes::from_static(b"\x64\x00"),
            Bytes::from_static(b"\x64\x05\x00"),
            Bytes::from_static(b"\x05\x00"),
            Bytes::new(),
        ] {
            assert_eq!(senders.move_apart(b"a", frame.clone()), frame);
        }
    }
}
