//! `faces/events`.

use std::time::Duration;

use namecast_packet::{Component, Data, Interest, LpPacket, Nonce, Packet};

use super::super::{FaceEventNotification, Item, decode_items};
use super::{fetch, name};
use crate::{ApplicationFace, Node, NodeConfig, key_store};

const STREAM: &str = "/localhost/nfd/faces/events";

fn newest() -> Interest {
    Interest::builder(name(STREAM))
        .can_be_prefix()
        .must_be_fresh()
        .build(Nonce(key_store::random()))
}

fn numbered(number: u64) -> Interest {
    let name = name(STREAM).builder().sequence(number).finish();
    Interest::builder(name)
        .lifetime(Duration::from_secs(60))
        .build(Nonce(key_store::random()))
}

fn number(data: &Data) -> u64 {
    let last = data.name().last().unwrap();
    last.number_of(Component::SEQUENCE).unwrap()
}

fn event(data: &Data) -> FaceEventNotification {
    let events = decode_items(&data.content().unwrap()).unwrap();
    let [event] = <[FaceEventNotification; 1]>::try_from(events).unwrap();
    event
}

async fn ask(face: &ApplicationFace, interest: &Interest) {
    let packet = LpPacket::carrying(interest.wire().clone());
    face.send(packet.encode()).await.unwrap();
}

async fn answer(face: &mut ApplicationFace) -> Data {
    let frame = tokio::time::timeout(Duration::from_secs(60), face.recv()).await;
    let packet = LpPacket::decode(frame.unwrap().unwrap()).unwrap();
    let Ok(Packet::Data(data)) = Packet::decode(packet.fragment.unwrap()) else {
        panic!("no Data");
    };
    data
}

/// Written by hand from ndn-cxx's numbers: face 257 is up.
#[test]
fn a_notification_is_encoded_as_ndn_cxx_does() {
    let event = FaceEventNotification {
        kind: 3,
        face: 257,
        uri: "fd://3".to_owned(),
        local_uri: "null://".to_owned(),
        scope: 1,
        persistency: 1,
        link_type: 0,
        flags: 2,
    };
    let fields = [
        &[193, 1, 3, 105, 2, 1, 1, 114, 6][..],
        b"fd://3",
        &[129, 7],
        b"null://",
        &[132, 1, 1, 133, 1, 1, 134, 1, 0, 108, 1, 2],
    ]
    .concat();
    // 3 + 4 + 8 + 9 + 12 octets.
    let wire = [&[192, 36][..], &fields].concat();
    assert_eq!(event.encode(), wire);
}

/// The node's own face and the client's make events 0 and 1.
#[tokio::test]
async fn who_asks_late_gets_the_newest_event_and_those_that_are_kept() {
    let node = Node::start(NodeConfig::default());
    let mut face = node.application_face().await.unwrap();
    let data = fetch(&mut face, &newest()).await;
    assert_eq!(number(&data), 1);
    let created = event(&data);
    assert_eq!((created.kind, created.face), (1, face.id().number()));
    assert_eq!(created.uri, "internal://application");
    let first = fetch(&mut face, &numbered(0)).await;
    assert_eq!(event(&first).uri, "internal://management");
}

/// Two clients wait for event 3, in two ways; one is told of its face's end.
#[tokio::test]
async fn who_waits_for_the_next_event_gets_it_when_it_happens() {
    let node = Node::start(NodeConfig::default());
    let mut face = node.application_face().await.unwrap();
    let other = node.application_face().await.unwrap();
    assert_eq!(number(&fetch(&mut face, &newest()).await), 2);
    ask(&face, &numbered(3)).await;
    // An answer to what was asked later shows that the question has arrived.
    fetch(&mut face, &numbered(0)).await;
    let ended = other.id();
    node.remove_face(ended).await.unwrap();
    let data = answer(&mut face).await;
    assert_eq!(number(&data), 3);
    let destroyed = event(&data);
    assert_eq!((destroyed.kind, destroyed.face), (2, ended.number()));
    assert_eq!(destroyed.uri, "internal://application");
}

/// A peer that listens, and does no more, makes created, up and down. 256 events are kept.
#[tokio::test]
async fn connections_go_up_and_down_and_old_events_are_forgotten() {
    let node = Node::start(NodeConfig::default());
    let mut face = node.application_face().await.unwrap();
    let peer = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("tcp4://{}", peer.local_addr().unwrap());
    let made = node.connect(uri.parse().unwrap()).await.unwrap();
    let (connection, _) = peer.accept().await.unwrap();
    ask(&face, &numbered(3)).await;
    assert_eq!(event(&answer(&mut face).await).kind, 3);
    drop((peer, connection));
    ask(&face, &numbered(4)).await;
    let down = event(&answer(&mut face).await);
    assert_eq!((down.kind, down.face, down.uri), (4, made.number(), uri));
    node.remove_face(made).await.unwrap();
    for _ in 0..125 {
        let other = node.application_face().await.unwrap();
        node.remove_face(other.id()).await.unwrap();
    }
    // 0 to 5, and twice 125 more: of 256 events none is lost. With the next two, 0 and 1 are.
    assert_eq!(number(&fetch(&mut face, &newest()).await), 255);
    assert_eq!(number(&fetch(&mut face, &numbered(0)).await), 0);
    let other = node.application_face().await.unwrap();
    node.remove_face(other.id()).await.unwrap();
    assert_eq!(number(&fetch(&mut face, &newest()).await), 257);
    assert_eq!(number(&fetch(&mut face, &numbered(2)).await), 2);
    assert_eq!(node.face_events(0).await.unwrap()[0].number, 2);
}
