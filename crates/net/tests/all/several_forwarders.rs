//! A node whose work several forwarders share does what a node with one does.

use std::time::Duration;

use crate::common::{
    answer, data, data_of, fetch, interest, loopback, name, produce, soon, status_with,
};
use bytes::Bytes;
use namecast_net::{ApplicationFace, FaceId, Node, NodeConfig, NodeStatus, UdpConfig};
use namecast_packet::lp::NackReason;
use namecast_packet::{Interest, LpPacket, Name, Nonce};

/// Enough that each of three forwarders has some.
const NAMES: u64 = 60;

fn start(config: NodeConfig) -> Node {
    Node::start(NodeConfig {
        forwarders: 3,
        ..config
    })
}

/// Two such nodes, joined over UDP, of which the second produces Data of `size` octets at `/here`.
async fn pair(config: &NodeConfig, size: usize) -> (Node, Node, FaceId) {
    let (near, far) = (start(config.clone()), start(config.clone()));
    produce(&far, "/here", size).await;
    let listener = far.listen_udp(loopback()).await.unwrap();
    let face = near.connect(listener.uri().clone()).await.unwrap();
    near.add_route(name("/here"), face, 0).await.unwrap();
    soon("connection", near.connected(face)).await.unwrap();
    // Dropping it would end it.
    std::mem::forget(listener);
    (near, far, face)
}

async fn fetch_all(application: &mut ApplicationFace, size: usize) {
    for number in 0..NAMES {
        let wanted = name(&format!("/here/{number}"));
        let fetched = fetch(application, &wanted).await;
        assert_eq!(fetched, data(wanted, size));
    }
}

fn sent(status: &NodeStatus, face: FaceId) -> (u64, u64) {
    let face = status.faces.iter().find(|it| it.id == face.number());
    let outgoing = face.unwrap().outgoing;
    (outgoing.interests, outgoing.frames)
}

/// Each Interest is counted once, though several forwarders add up, and a second consumer is answered by their caches.
#[tokio::test]
async fn data_come_back_and_are_cached() {
    let (near, _far, face) = pair(&NodeConfig::default(), 1_000).await;
    let mut first = near.application_face().await.unwrap();
    fetch_all(&mut first, 1_000).await;
    let (interests, frames) = sent(&near.status().await.unwrap(), face);
    assert!((NAMES..NAMES + 5).contains(&interests), "{interests}");
    assert_eq!(frames, interests);
    let mut second = near.application_face().await.unwrap();
    fetch_all(&mut second, 1_000).await;
    let status = near.status().await.unwrap();
    assert_eq!(status.content_store_hits, NAMES);
    assert_eq!(status.cached_packets as u64, NAMES);
    assert_eq!(status.pending_interests, 0);
    assert_eq!(sent(&status, face).0, interests);
}

/// 3000 octets at 1000 a frame are four fragments; with acknowledgements there are further frames.
#[tokio::test]
async fn pieces_and_acknowledgements_meet_in_one_forwarder() {
    for udp_reliability in [false, true] {
        let config = NodeConfig {
            udp: UdpConfig {
                loopback_mtu: 1_000,
                reliability: udp_reliability,
                ..UdpConfig::default()
            },
            ..NodeConfig::default()
        };
        let (near, far, face) = pair(&config, 3_000).await;
        let mut application = near.application_face().await.unwrap();
        fetch_all(&mut application, 3_000).await;
        let status = near.status().await.unwrap();
        let interests = sent(&status, face).0;
        assert!((NAMES..NAMES + 5).contains(&interests), "{interests}");
        let received = status.faces.iter().find(|it| it.id == face.number());
        let received = received.unwrap().incoming;
        assert!((NAMES..NAMES + 5).contains(&received.data));
        assert!(received.frames >= 4 * NAMES, "{}", received.frames);
        let mut quiet = vec!["malformed", "unsolicited", "unknown_face"];
        // What is acknowledged late is sent again.
        quiet.extend((!udp_reliability).then_some("duplicate_fragment"));
        assert!(
            quiet
                .iter()
                .all(|reason| !status.drops.contains_key(reason)),
            "{:?}",
            status.drops
        );
        near.shutdown().await;
        far.shutdown().await;
    }
}

/// Neither the prefix that is asked for nor its hash are those of the Data, and the producer gives no PIT token back.
#[tokio::test]
async fn data_without_a_token_find_the_forwarder_that_waits() {
    let node = start(NodeConfig::default());
    let mut producer = node.application_face().await.unwrap();
    node.add_route(name("/here"), producer.id(), 0)
        .await
        .unwrap();
    tokio::spawn(async move {
        while let Some(frame) = producer.recv().await {
            let asked = asked_for(frame);
            let answer = data(name(&format!("{asked}/v=1/seg=0")), 10);
            producer.send(answer.wire().clone()).await.unwrap();
        }
    });
    let mut consumer = node.application_face().await.unwrap();
    for number in 0..NAMES {
        let prefix = name(&format!("/here/{number}"));
        let asked = Interest::builder(prefix.clone()).can_be_prefix();
        let asked = asked.build(Nonce::from(crate::common::unique()));
        consumer.send(asked.wire().clone()).await.unwrap();
        let answer = soon("Data", consumer.recv()).await.unwrap();
        assert!(prefix.is_prefix_of(data_of(answer).unwrap().name()));
    }
    let status = node.status().await.unwrap();
    assert_eq!(status.satisfied, NAMES);
    assert_eq!(status.drops.get("unsolicited"), None);
    // What nobody asked for is dropped once, not by each forwarder.
    let unasked = data(name("/unasked"), 10).wire().clone();
    consumer.send(unasked).await.unwrap();
    let status = node.status().await.unwrap();
    assert_eq!(status.drops.get("unsolicited"), Some(&1));
}

fn asked_for(frame: Bytes) -> Name {
    let packet = LpPacket::decode(frame).unwrap();
    let interest = Interest::decode(packet.fragment.unwrap()).unwrap();
    interest.name().clone()
}

#[tokio::test]
async fn nacks_come_back_and_faces_go_from_all() {
    let (near, far, face) = pair(&NodeConfig::default(), 10).await;
    near.add_route(name("/nowhere"), face, 0).await.unwrap();
    let mut consumer = near.application_face().await.unwrap();
    for number in 0..NAMES {
        let asked = name(&format!("/nowhere/{number}"));
        consumer
            .send(interest(asked, Duration::from_secs(60)))
            .await
            .unwrap();
        let answer = soon("a Nack", consumer.recv()).await.unwrap();
        assert_eq!(
            LpPacket::decode(answer).unwrap().nack,
            Some(NackReason::NoRoute)
        );
    }
    near.remove_face(face).await.unwrap();
    status_with(&near, "no route", |status| {
        status.routes.iter().all(|route| route.prefix != "/here")
    })
    .await;
    let asked = name("/here/1");
    consumer
        .send(interest(asked, Duration::from_secs(60)))
        .await
        .unwrap();
    let answer = soon("a Nack", consumer.recv()).await.unwrap();
    assert!(LpPacket::decode(answer).unwrap().nack.is_some());
    far.shutdown().await;
}

/// A neighbour's commands, signed questions and repeated registrations pass through whichever forwarder they fall to.
#[tokio::test]
async fn prefixes_are_registered_through_management() {
    let (near, far) = (start(NodeConfig::default()), start(NodeConfig::default()));
    let listener = far.listen_udp(loopback()).await.unwrap();
    let face = near.connect(listener.uri().clone()).await.unwrap();
    let mut producer = near.application_face().await.unwrap();
    near.add_route(name("/mine"), producer.id(), 0)
        .await
        .unwrap();
    let _registration = near.register_prefix(face, name("/mine"), 0);
    status_with(&far, "the route", |status| {
        status.routes.iter().any(|route| route.prefix == "/mine")
    })
    .await;
    tokio::spawn(async move {
        while let Some(frame) = producer.recv().await {
            if let Some(answer) = answer(frame, 10) {
                producer.send(answer).await.unwrap();
            }
        }
    });
    let mut consumer = far.application_face().await.unwrap();
    for number in 0..NAMES {
        fetch(&mut consumer, &name(&format!("/mine/{number}"))).await;
    }
}
