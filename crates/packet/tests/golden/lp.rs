//! Link packets.

use bytes::Bytes;
use namecast_packet::lp::NackReason;
use namecast_packet::tlv::Reader;
use namecast_packet::{Data, LpPacket, Packet};

use crate::support::{Exception, Vector, assert_encodes, vectors};

const NOT_CANONICAL: [Exception; 1] = [("lp-nack-none", -5, "a Nack that does not say its reason")];

#[test]
fn link_packets_decode_to_the_stated_fields() {
    for vector in vectors("lp") {
        check_fields(&vector, &LpPacket::decode(vector.wire()).unwrap());
    }
}

fn check_fields(vector: &Vector, packet: &LpPacket) {
    let (id, stated) = (vector.id(), vector.get("decoded"));
    let fixed = |key| {
        let octets: Option<Bytes> = stated.octets(key);
        octets.map(|octets| u64::from_be_bytes(octets[..].try_into().unwrap()))
    };
    assert_eq!(packet.sequence, stated.number("sequence"), "{id}");
    assert_eq!(packet.tx_sequence, fixed("txSequence"), "{id}");
    let acks: Vec<_> = fixed("ack").into_iter().collect();
    assert_eq!(packet.acks, acks, "{id}");
    let index = stated.number("fragIndex").unwrap_or(0);
    assert_eq!(packet.fragment_index, index, "{id}");
    let count = stated.number("fragCount").unwrap_or(1);
    assert_eq!(packet.fragment_count.unwrap_or(1), count, "{id}");
    assert_eq!(packet.pit_token, stated.octets("pitToken"), "{id}");
    let reason = stated.get("nack").number("reason");
    assert_eq!(packet.nack.map(NackReason::number), reason, "{id}");
    let mark = stated.number("congestionMark").unwrap_or(0);
    assert_eq!(packet.congestion_mark, mark, "{id}");
    assert_eq!(
        packet.incoming_face,
        stated.number("incomingFaceId"),
        "{id}"
    );
    assert_eq!(packet.next_hop_face, stated.number("nextHopFaceId"), "{id}");
    assert_eq!(
        packet.no_cache,
        stated.number("cachePolicy") == Some(1),
        "{id}"
    );
    let non_discovery = !stated.get("nonDiscovery").is_null() && stated.flag("nonDiscovery");
    assert_eq!(packet.non_discovery, non_discovery, "{id}");
    let announcement = stated.octets("prefixAnnouncement");
    assert_eq!(packet.prefix_announcement, announcement, "{id}");
    assert_eq!(packet.fragment, stated.octets("fragment"), "{id}");
}

/// Where the vector lists its fields one by one, none is missing from what was checked above.
#[test]
fn fields_stand_as_listed() {
    let mut listed = 0;
    for vector in vectors("lp") {
        let stated = vector.get("decoded");
        if stated.get("fields_in_order").is_null() {
            continue;
        }
        let wire = vector.wire();
        let whole = Reader::new(&wire).only("LpPacket", 100).unwrap();
        let mut reader = Reader::within(&wire, whole.value);
        for field in stated.list("fields_in_order") {
            let element = reader.element("field").unwrap().unwrap();
            assert_eq!(Some(u64::from(element.element_type)), field.number("type"));
            assert_eq!(wire[element.value], field.octets("value").unwrap());
        }
        assert!(reader.is_empty(), "{}", vector.id());
        listed += 1;
    }
    assert_eq!(listed, 21);
}

#[test]
fn link_packets_encode_to_the_same_octets() {
    for vector in vectors("lp") {
        let packet = LpPacket::decode(vector.wire()).unwrap();
        let encoded = packet.encode_whole();
        assert_encodes(&vector, &encoded, &NOT_CANONICAL);
        assert_eq!(LpPacket::decode(encoded), Ok(packet), "{}", vector.id());
    }
}

#[test]
fn fragments_carry_what_is_stated() {
    let (mut whole, mut pieces) = (0, Vec::new());
    let mut reassembled = None;
    for vector in vectors("lp") {
        let packet = LpPacket::decode(vector.wire()).unwrap();
        let Some(fragment) = packet.fragment else {
            continue;
        };
        match vector.octets("reassembles_to") {
            Some(packet) => {
                pieces.extend_from_slice(&fragment);
                reassembled = Some(packet);
            }
            None => {
                assert!(Packet::decode(fragment).is_ok(), "{}", vector.id());
                whole += 1;
            }
        }
    }
    assert_eq!(
        whole,
        24 - 2 - 3,
        "all but two idle packets and three pieces"
    );
    assert_eq!(Some(&pieces[..]), reassembled.as_deref());
    assert!(Data::decode(pieces.into()).is_ok());
}
