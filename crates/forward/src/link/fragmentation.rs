//! Cutting packets to a link's MTU: NDNLPv2 indexed fragmentation.

use bytes::Bytes;
use namecast_packet::{LpPacket, MAX_PACKET_SIZE};

use super::Reliability;
use crate::face::FaceConfig;

/// Octets of a fragment besides its share of the packet and the packet's own header fields:
/// LpPacket and Fragment with type and length (4 each), Sequence (10), FragIndex and FragCount (4 each).
const FRAGMENT_OVERHEAD: usize = 26;

/// Cuts `packet` into frames of at most `mtu` octets, numbered from `sequence`.
///
/// The packet's header fields travel with the first frame. `None` if they leave it no room, or if it takes more than
/// `max_fragments`.
pub fn fragment(
    packet: &LpPacket,
    sequence: u64,
    mtu: usize,
    max_fragments: usize,
) -> Option<Vec<Bytes>> {
    let pieces = cut(packet, sequence, mtu, max_fragments)?;
    Some(pieces.iter().map(LpPacket::encode_whole).collect())
}

/// Returns how many frames a link packet of `whole` octets takes at most, of which the network packet has `body`, to a face
/// whose frames have at most `mtu`; `None` if it cannot be sent.
pub(crate) fn frame_count(
    (face, mtu): (&FaceConfig, usize),
    whole: usize,
    body: usize,
) -> Option<usize> {
    let (mtu, numbers) = match face.reliability {
        true => (Reliability::room(mtu), FRAGMENT_OVERHEAD),
        false => (mtu, 0),
    };
    if whole + numbers <= mtu && whole <= MAX_PACKET_SIZE {
        return Some(1);
    }
    let room = mtu.checked_sub(FRAGMENT_OVERHEAD)?;
    let first = room.checked_sub(whole - body).filter(|&room| room > 0)?;
    Some(1 + body.saturating_sub(first).div_ceil(room))
}

/// Cuts `packet` into pieces whose frames have at most `mtu` octets, numbered from `sequence`.
///
/// The packet's header fields travel with the first fragment. `None` if they leave it no room, or if it takes more than
/// `max_fragments`.
pub(crate) fn cut(
    packet: &LpPacket,
    sequence: u64,
    mtu: usize,
    max_fragments: usize,
) -> Option<Vec<LpPacket>> {
    let body = packet.fragment.as_ref()?;
    let header = LpPacket {
        fragment: None,
        ..packet.clone()
    };
    // An LpPacket without Fragment is its fields and at most 4 octets around them.
    let header_octets = match header.has_header() {
        true => header.encode_whole().len(),
        false => 0,
    };
    let room = mtu.checked_sub(FRAGMENT_OVERHEAD)?;
    let first = room.checked_sub(header_octets).filter(|&room| room > 0)?;
    let first = first.min(body.len());
    let count = 1 + (body.len() - first).div_ceil(room);
    if count > max_fragments {
        return None;
    }
    let mut pieces = Vec::with_capacity(count);
    let mut start = 0;
    for index in 0..count as u64 {
        let (fields, length) = match index {
            0 => (header.clone(), first),
            _ => (LpPacket::default(), room.min(body.len() - start)),
        };
        pieces.push(LpPacket {
            sequence: Some(sequence.wrapping_add(index)),
            fragment_index: index,
            fragment_count: Some(count as u64),
            fragment: Some(body.slice(start..start + length)),
            ..fields
        });
        start += length;
    }
    Some(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carrying(length: usize) -> LpPacket {
        LpPacket::carrying(Bytes::from(vec![7; length]))
    }

    /// MTU 126 leaves 100 octets for the packet: 250 octets are 100 + 100 + 50.
    #[test]
    fn pieces_fill_the_mtu_and_number_themselves() {
        let frames = fragment(&carrying(250), u64::MAX, 126, 400).unwrap();
        let pieces: Vec<_> = frames
            .iter()
            .map(|frame| LpPacket::decode(frame.clone()).unwrap())
            .collect();
        let shape: Vec<_> = pieces
            .iter()
            .map(|piece| {
                (
                    piece.sequence.unwrap(),
                    piece.fragment_index,
                    piece.fragment.as_ref().unwrap().len(),
                )
            })
            .collect();
        assert_eq!(shape, [(u64::MAX, 0, 100), (0, 1, 100), (1, 2, 50)]);
        assert!(pieces.iter().all(|piece| piece.fragment_count == Some(3)));
    }

    #[test]
    fn no_frame_exceeds_the_mtu_and_no_octet_is_lost() {
        for mtu in [64, 65, 100, 300, 1_200, 1_420, 8_000] {
            for length in [1, 39, 500, 1_200, 8_800] {
                let mut packet = carrying(length);
                packet.congestion_mark = 1;
                packet.pit_token = Some(Bytes::from_static(&[9; 6]));
                let frames = fragment(&packet, 5, mtu, 400).unwrap();
                assert!(
                    frames.iter().all(|frame| frame.len() <= mtu),
                    "{mtu} {length}"
                );
                let octets: usize = frames
                    .iter()
                    .map(|frame| {
                        LpPacket::decode(frame.clone())
                            .unwrap()
                            .fragment
                            .unwrap()
                            .len()
                    })
                    .sum();
                assert_eq!(octets, length);
            }
        }
    }

    #[test]
    fn header_fields_travel_first_and_once() {
        let mut packet = carrying(500);
        packet.congestion_mark = 1;
        let frames = fragment(&packet, 0, 200, 400).unwrap();
        let marks: Vec<_> = frames
            .iter()
            .map(|frame| LpPacket::decode(frame.clone()).unwrap().congestion_mark)
            .collect();
        assert_eq!(marks, [1, 0, 0]);
    }

    #[test]
    fn what_cannot_be_cut_is_refused() {
        assert!(fragment(&carrying(250), 0, 126, 2).is_none());
        assert!(fragment(&carrying(250), 0, FRAGMENT_OVERHEAD, 400).is_none());
        let mut packet = carrying(250);
        packet.pit_token = Some(Bytes::from_static(&[9; 32]));
        // Fields of 36 octets beside an overhead of 26.
        assert!(fragment(&packet, 0, 62, 400).is_none());
        assert!(fragment(&packet, 0, 63, 400).is_some());
    }
}
