//! `cs/config`, `cs/erase`.

use bytes::Bytes;
use namecast_packet::signature::DigestSigner;
use namecast_packet::{Data, Interest, LpPacket, Nonce};

use super::super::{ADMIT, ControlParameters, SERVE};
use super::{about, ask, assert_done, fetch, name, verdict};
use crate::{ApplicationFace, Node, NodeConfig, key_store};

async fn capacity(node: &Node) -> u64 {
    let store = node.content_store().unwrap();
    store.options.capacity.as_bytes()
}

/// A packet is reckoned as 8192 octets, so 64 MiB are 8192 packets.
#[tokio::test]
async fn the_content_store_is_configured_as_far_as_the_command_says() {
    let node = Node::start(NodeConfig::default());
    let mut face = node.application_face().await.unwrap();
    let state = |capacity, flags| ControlParameters {
        capacity: Some(capacity),
        flags: Some(flags),
        ..ControlParameters::default()
    };
    let flags = |flags, mask| ControlParameters {
        flags: Some(flags),
        mask: Some(mask),
        ..ControlParameters::default()
    };
    let room = |packets| ControlParameters {
        capacity: Some(packets),
        ..ControlParameters::default()
    };
    for (command, expected) in [
        (ControlParameters::default(), state(8_192, 3)),
        (room(100), state(100, 3)),
        (flags(3, SERVE), state(100, 3)),
        (flags(0, SERVE), state(100, ADMIT)),
        (flags(SERVE, 3), state(100, SERVE)),
        (room(0), state(0, SERVE)),
    ] {
        let response = ask(&mut face, "cs/config", &command).await;
        assert_done(&response, &expected);
    }
    assert_eq!(capacity(&node).await, 0);
    let response = ask(&mut face, "cs/config", &room(u64::MAX)).await;
    assert_eq!(verdict(&response), (200, "OK"));
    assert_eq!(capacity(&node).await, u64::MAX);
    let half = ControlParameters {
        flags: Some(1),
        ..ControlParameters::default()
    };
    let response = ask(&mut face, "cs/config", &half).await;
    assert_eq!(verdict(&response), (400, "failed in validating parameters"));
}

/// Has Data of these names pass the node.
async fn fill(node: &Node, asking: &mut ApplicationFace, names: impl Iterator<Item = String>) {
    let mut producer = node.application_face().await.unwrap();
    let prefix = name("/p");
    node.add_route(prefix, producer.id(), 0).await.unwrap();
    for uri in names {
        let interest = Interest::builder(name(&uri)).build(Nonce(key_store::random()));
        let asked = LpPacket {
            pit_token: Some(Bytes::from_static(b"token6")),
            ..LpPacket::carrying(interest.wire().clone())
        };
        asking.send(asked.encode()).await.unwrap();
        producer.recv().await.unwrap();
        let data = Data::builder(name(&uri)).sign(&DigestSigner);
        producer.send(data.wire().clone()).await.unwrap();
        asking.recv().await.unwrap();
    }
}

/// 300 packets below `/p/a` and one beside: 5 go as asked for, then 256 as one command takes, then the other 39.
#[tokio::test]
async fn erasing_tells_how_many_went_and_whether_there_are_more() {
    let node = Node::start(NodeConfig::default());
    let mut face = node.application_face().await.unwrap();
    let names = (0..300).map(|number| format!("/p/a/{number}"));
    let names = names.chain(["/p/b".to_owned()]);
    fill(&node, &mut face, names).await;
    let erase = |count| ControlParameters {
        count,
        ..about("/p/a")
    };
    let erased = |count, capacity| ControlParameters {
        capacity,
        ..erase(Some(count))
    };
    for (wanted, expected) in [
        (Some(5), erased(5, None)),
        (None, erased(256, Some(256))),
        (None, erased(39, None)),
        (None, erased(0, None)),
    ] {
        let response = ask(&mut face, "cs/erase", &erase(wanted)).await;
        assert_done(&response, &expected);
    }
    assert_eq!(node.status().await.unwrap().cached_packets, 1);
    let left = Interest::builder(name("/p/b")).build(Nonce(key_store::random()));
    assert_eq!(fetch(&mut face, &left).await.name(), &name("/p/b"));
    for refused in [erase(Some(0)), ControlParameters::default()] {
        let response = ask(&mut face, "cs/erase", &refused).await;
        assert_eq!(verdict(&response), (400, "failed in validating parameters"));
    }
}
