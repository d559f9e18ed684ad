//! Forwarders that share the work of one node.

use bytes::Bytes;
use namecast_forward::{Config, FaceConfig, FaceId, Forwarder, Shard};
use namecast_packet::signature::NullSigner;
use namecast_packet::{Data, LpPacket};
use namecast_units::Instant;

use crate::topology::{interest, name};

/// The frames that a forwarder has to send on a face.
fn frames(forwarder: &mut Forwarder, face: FaceId) -> Vec<Bytes> {
    let all = core::iter::from_fn(|| forwarder.poll_output());
    all.filter(|output| output.face == face)
        .map(|output| output.frame)
        .collect()
}

fn large(uri: &str) -> Data {
    Data::builder(name(uri))
        .content(vec![7; 3_000])
        .sign(&NullSigner)
}

/// The pieces of what one forwarder of two sends on a link of 1000 octets when it is asked for `uri`.
fn pieces(shard: Shard, uri: &str) -> Vec<Bytes> {
    let mut forwarder = Forwarder::new(Config::default().for_shard(shard));
    let producer = forwarder
        .add_face(FaceConfig::application("producer"))
        .unwrap();
    let link = FaceConfig {
        mtu: Some(1_000),
        ..FaceConfig::default()
    };
    let link = forwarder.add_face(link).unwrap();
    forwarder.add_route(name("/"), producer, 0).unwrap();
    forwarder.handle_frame(Instant::ZERO, link, interest(uri, 1).wire().clone());
    let asked = frames(&mut forwarder, producer).remove(0);
    let token = LpPacket::decode(asked).unwrap().pit_token;
    assert_eq!(token.unwrap()[..2], shard.index.to_be_bytes());
    forwarder.handle_frame(Instant::ZERO, producer, large(uri).wire().clone());
    frames(&mut forwarder, link)
}

/// Piece by piece in turns, as two threads may send them: the neighbour puts together what belongs together.
#[test]
fn pieces_of_two_forwarders_do_not_get_mixed_up() {
    let names = ["/p/1", "/p/2"];
    let of = |index: u16| pieces(Shard { index, count: 2 }, names[usize::from(index)]);
    let (first, second) = (of(0), of(1));
    assert_eq!((first.len(), second.len()), (4, 4));
    let mut neighbour = Forwarder::new(Config::default());
    let consumer = neighbour
        .add_face(FaceConfig::application("consumer"))
        .unwrap();
    let link = neighbour.add_face(FaceConfig::default()).unwrap();
    neighbour.add_route(name("/"), link, 0).unwrap();
    for uri in names {
        neighbour.handle_frame(Instant::ZERO, consumer, interest(uri, 1).wire().clone());
    }
    for piece in first.into_iter().zip(second).flat_map(<[Bytes; 2]>::from) {
        neighbour.handle_frame(Instant::ZERO, link, piece);
    }
    let expected = names.map(|uri| large(uri).wire().clone());
    assert_eq!(frames(&mut neighbour, consumer), expected);
}

/// Three forwarders keep together what one would: each a third of 65 536, rounded up.
#[test]
fn bounds_are_shared() {
    let part = Config::default().for_shard(Shard { index: 2, count: 3 });
    assert_eq!(part.pit_capacity, 21_846);
    assert_eq!(part.content_store.as_bytes(), (64 << 20) / 3);
    assert_eq!(Config::default().for_shard(Shard::ONLY), Config::default());
}
