//! Ethernet frames around link packets.

use bytes::Bytes;

use crate::MacAddress;
use crate::link::MAX_FRAME_SIZE;
use crate::transport::stream;

/// Octets of destination, source and EtherType.
pub(super) const HEADER_SIZE: usize = 14;
/// Least payload (IEEE 802.3); network cards fill it up, virtual links do not, and NFD drops what is shorter.
const MIN_PAYLOAD: usize = 46;
/// EtherType of NDN.
pub(super) const ETHERTYPE: u16 = 0x8624;

/// A frame that came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Received {
    pub(super) destination: MacAddress,
    pub(super) source: MacAddress,
    /// The link packet, in an allocation of its own.
    pub(super) packet: Bytes,
}

/// Why a frame is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unusable {
    /// It is not for NDN.
    Foreign,
    /// It holds no whole element.
    Malformed,
}

/// Takes a frame apart. Short frames are padded, so the link packet is as long as its TLV-LENGTH says.
pub(super) fn parse(frame: &[u8]) -> Result<Received, Unusable> {
    let (header, payload) = frame
        .split_at_checked(HEADER_SIZE)
        .ok_or(Unusable::Foreign)?;
    let address = |at: usize| {
        let octets = header[at..at + 6].try_into();
        MacAddress(octets.expect("six octets"))
    };
    if header[12..] != ETHERTYPE.to_be_bytes() {
        return Err(Unusable::Foreign);
    }
    let length = stream::frame_length(payload).ok().flatten();
    let packet = length.and_then(|length| payload.get(..length));
    Ok(Received {
        destination: address(0),
        source: address(6),
        packet: Bytes::copy_from_slice(packet.ok_or(Unusable::Malformed)?),
    })
}

/// Puts a link packet into a frame, in place of what is in `buffer`.
pub(super) fn build(
    buffer: &mut Vec<u8>,
    destination: MacAddress,
    source: MacAddress,
    packet: &[u8],
) {
    buffer.clear();
    buffer.extend_from_slice(&destination.0);
    buffer.extend_from_slice(&source.0);
    buffer.extend_from_slice(&ETHERTYPE.to_be_bytes());
    buffer.extend_from_slice(packet);
    buffer.resize(buffer.len().max(HEADER_SIZE + MIN_PAYLOAD), 0);
}

/// Longest payload that is any use.
pub(super) const MAX_PAYLOAD: usize = MAX_FRAME_SIZE;

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    const THERE: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
    const HEADER: [u8; HEADER_SIZE] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0x24];

    fn frame(packet: &[u8]) -> Vec<u8> {
        let mut buffer = vec![9; 300];
        build(&mut buffer, THERE, HERE, packet);
        buffer
    }

    /// The least frame has 60 octets, 46 after the header.
    #[test]
    fn a_frame_is_laid_out_and_padded_as_ethernet_has_it() {
        let expected = [&HEADER[..], &[0x64, 0], &[0; 44]].concat();
        assert_eq!(frame(&[0x64, 0]), expected);
        for (length, padded) in [(45, 60), (46, 60), (47, 61)] {
            assert_eq!(frame(&vec![1; length]).len(), padded);
        }
    }

    /// Of an element of 5 octets, 41 are padding.
    #[test]
    fn padding_is_cut_off() {
        let padded = frame(&[6, 3, 1, 2, 3]);
        assert_eq!(padded.len(), 60);
        let received = parse(&padded).unwrap();
        assert_eq!(received.packet, &[6, 3, 1, 2, 3][..]);
        assert_eq!((received.destination, received.source), (THERE, HERE));
    }

    #[test]
    fn what_holds_no_whole_element_is_malformed() {
        for payload in [
            &[][..],
            &[6],
            &[6, 3, 1, 2],
            &[0; 46],
            &[6, 253, 0, 1, 0],
            &[6, 254, 0, 1, 0, 0],
        ] {
            let frame = [&HEADER[..], payload].concat();
            assert_eq!(parse(&frame), Err(Unusable::Malformed));
        }
    }

    #[test]
    fn what_is_not_for_ndn_is_foreign() {
        let mut arp = frame(&[6, 0]);
        arp[12..14].copy_from_slice(&[0x08, 0x06]);
        assert_eq!(parse(&arp), Err(Unusable::Foreign));
        for length in 0..HEADER_SIZE {
            assert_eq!(parse(&frame(&[6, 0])[..length]), Err(Unusable::Foreign));
        }
    }
}
