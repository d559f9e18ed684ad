//! UDP multicast between nodes of one process.

use std::net::UdpSocket;

use crate::common::{fetch, interest, name, produce, start, status_with, unique};
use namecast_net::{FaceOptions, Node, NodeError, UdpMulticast};
use namecast_packet::LpPacket;

/// NDN's group on the loopback interface, with a port of its own so that tests do not hear each other.
fn group() -> UdpMulticast {
    let free = UdpSocket::bind("0.0.0.0:0").unwrap();
    let mut group = UdpMulticast::on("lo");
    group.group.set_port(free.local_addr().unwrap().port());
    group
}

async fn nacks_and_frames(node: &Node, remote: &str) -> (u64, u64) {
    let status = node.status().await.unwrap();
    let face = status.faces.iter().find(|face| face.remote == remote);
    let sent = face.unwrap().outgoing;
    (sent.nacks, sent.frames)
}

/// Data comes back by the group, packets longer than a frame too; a third node of the group hears both and is no worse
/// off.
#[tokio::test]
#[cfg(target_os = "linux")]
async fn two_nodes_exchange_packets_through_a_group() {
    let group = UdpMulticast {
        mtu: 1_400,
        ..group()
    };
    let (near, far, third) = (start(), start(), start());
    let face = near.join_udp_multicast(&group).await.unwrap();
    far.join_udp_multicast(&group).await.unwrap();
    third.join_udp_multicast(&group).await.unwrap();
    near.add_route(name("/far"), face, 0).await.unwrap();
    produce(&far, "/far", 8_000).await;
    let mut consumer = near.application_face().await.unwrap();
    for index in 0..20 {
        let data = fetch(&mut consumer, &name(&format!("/far/{index}"))).await;
        assert_eq!(data.content().map(|content| content.len()), Some(8_000));
    }
    let remote = format!("udp4://{}", group.group);
    // An Interest a packet at least, and no answers of its own.
    let (nacks, frames) = nacks_and_frames(&near, &remote).await;
    assert!(nacks == 0 && frames >= 20, "{nacks} {frames}");
    // 8000 octets and what is around them take 6 frames of 1400.
    let (_, frames) = nacks_and_frames(&far, &remote).await;
    assert!(frames >= 120, "{frames}");
    status_with(&third, "the third node hears", |status| {
        let heard = status.faces.iter().find(|face| face.remote == remote);
        let heard = heard.unwrap();
        heard.incoming.interests >= 20 && heard.incoming.data >= 20 && !heard.is_local
    })
    .await;
    // Nobody has /elsewhere, and nobody says so.
    near.add_route(name("/elsewhere"), face, 0).await.unwrap();
    let lost = interest(name("/elsewhere"), std::time::Duration::from_secs(60));
    consumer.send(lost).await.unwrap();
    status_with(&far, "no route", |status| {
        status.drops.contains_key("no_route")
    })
    .await;
    assert_eq!(nacks_and_frames(&far, &remote).await.0, 0);
}

/// Two nodes send fragments that carry the same numbers at the same time; both packets arrive.
#[tokio::test]
#[cfg(target_os = "linux")]
async fn fragments_of_two_senders_do_not_mix() {
    let group = group();
    let node = start();
    let face = node.join_udp_multicast(&group).await.unwrap();
    let consumer = node.application_face().await.unwrap();
    let senders = [(); 2].map(|()| {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None);
        let socket: UdpSocket = socket.unwrap().into();
        let on_loopback = socket2::SockRef::from(&socket);
        let loopback = std::net::Ipv4Addr::LOCALHOST;
        on_loopback.set_multicast_if_v4(&loopback).unwrap();
        socket
    });
    let names = [(); 2].map(|()| name(&format!("/two/{}", unique())));
    let pieces = names.clone().map(|name| {
        let wire = crate::common::data(name, 1_000).wire().clone();
        let half = wire.len() / 2;
        [wire.slice(..half), wire.slice(half..)]
    });
    for name in &names {
        node.add_route(name.clone(), face, 0).await.unwrap();
        let asked = interest(name.clone(), std::time::Duration::from_secs(60));
        consumer.send(asked).await.unwrap();
    }
    status_with(&node, "both are wanted", |status| {
        status.pending_interests == 2
    })
    .await;
    for index in 0..2 {
        for (socket, pieces) in senders.iter().zip(&pieces) {
            let fragment = LpPacket {
                sequence: Some(index),
                fragment_index: index,
                fragment_count: Some(2),
                ..LpPacket::carrying(pieces[index as usize].clone())
            };
            socket.send_to(&fragment.encode(), group.group).unwrap();
        }
    }
    let status = status_with(&node, "both came", |status| status.satisfied == 2).await;
    assert_eq!(status.drops.get("duplicate_fragment"), None);
}

#[tokio::test]
async fn what_cannot_be_joined_is_refused_with_the_reason() {
    let node = start();
    let nowhere = UdpMulticast::on("nowhere0");
    let error = node.join_udp_multicast(&nowhere).await.unwrap_err();
    assert!(error.to_string().contains("no such interface"), "{error}");
    let unicast = UdpMulticast {
        group: "127.0.0.1:5".parse().unwrap(),
        ..nowhere
    };
    let error = node.join_udp_multicast(&unicast).await.unwrap_err();
    assert!(
        error.to_string().contains("not a multicast group"),
        "{error}"
    );
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn frames_to_a_group_cannot_be_acknowledged() {
    let node = start();
    let face = node.join_udp_multicast(&group()).await.unwrap();
    let wanted = FaceOptions {
        reliability: Some(true),
        ..FaceOptions::default()
    };
    let updated = node.update_face(face, wanted).await;
    assert_eq!(updated, Err(NodeError::ImpossibleOptions(wanted)));
}
