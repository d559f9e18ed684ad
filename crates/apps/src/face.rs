//! What goes over an application face: network packets, bare or in a link packet.

use bytes::Bytes;
use namecast_packet::lp::NackReason;
use namecast_packet::{DecodeError, Interest, LpPacket, Packet};
use namecast_stream::consumer::Delivery;
use namecast_stream::path::Feedback;

/// The network packet in `octets`, with the link packet around it; `None` if there is none, or only a fragment of one.
///
/// # Errors
/// If either packet violates its format.
pub(crate) fn open(octets: Bytes) -> Result<Option<(Packet, LpPacket)>, DecodeError> {
    let mut link = LpPacket::decode(octets)?;
    let is_whole = link.fragment_count.unwrap_or(1) == 1;
    let Some(wire) = link.fragment.take().filter(|_| is_whole) else {
        return Ok(None);
    };
    Ok(Some((Packet::decode(wire)?, link)))
}

/// What the link packet around Data says of how they came.
pub(crate) fn delivery(link: &LpPacket) -> Delivery {
    Delivery {
        congestion_marked: link.congestion_mark > 0,
        face: link.incoming_face,
        feedback: Feedback::read(&link.extensions),
    }
}

/// Octets that carry an Interest, and the face that it had a bad answer from.
pub(crate) fn request(interest: &Interest, avoid_face: Option<u64>) -> Bytes {
    let packet = LpPacket {
        avoid_face,
        ..LpPacket::carrying(interest.wire().clone())
    };
    packet.encode()
}

/// Octets that send an Interest back.
pub(crate) fn refusal(interest: &Interest, pit_token: Option<Bytes>, reason: NackReason) -> Bytes {
    let packet = LpPacket {
        nack: Some(reason),
        pit_token,
        ..LpPacket::carrying(interest.wire().clone())
    };
    packet.encode()
}

/// Octets that carry an answer: bare, unless the Interest's PIT token goes with it.
pub(crate) fn answer(data: Bytes, pit_token: Option<Bytes>) -> Bytes {
    let packet = LpPacket {
        pit_token,
        ..LpPacket::carrying(data)
    };
    packet.encode()
}
