//! Two nodes that learn their routes, as management tells.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod common;

use std::time::Duration;

use common::{fetch, loopback, name, status_with};
use namecast_net::management::{Client, FibEntry, RibEntry, StrategyChoice};
use namecast_net::{Node, NodeConfig, StrategyKind};
use namecast_packet::signature::DigestSigner;
use namecast_packet::{LpPacket, PrefixAnnouncement};

/// A node that learns, and to which other processes of this machine are other hosts.
async fn learning() -> Node {
    let node = Node::start(NodeConfig {
        udp_loopback_is_local: false,
        ..NodeConfig::default()
    });
    node.set_strategy(&name("/"), StrategyKind::SelfLearning)
        .unwrap();
    node
}

/// Answers under `/p`, and announces that beside each packet.
async fn produce(node: &Node) {
    let mut face = node.application_face().await.unwrap();
    node.add_route(name("/p"), face.id(), 0).await.unwrap();
    let hour = Duration::from_secs(3_600);
    let announcement = PrefixAnnouncement::sign(&name("/p"), 1, hour, None, &DigestSigner);
    tokio::spawn(async move {
        while let Some(frame) = face.recv().await {
            let Some(answer) = common::answer(frame, 10) else {
                continue;
            };
            let mut answer = LpPacket::decode(answer).unwrap();
            answer.prefix_announcement = Some(announcement.data().wire().clone());
            if face.send(answer.encode()).await.is_err() {
                return;
            }
        }
    });
}

/// No route is configured, and yet the second Data come by one.
#[tokio::test]
async fn a_learned_route_is_told_with_its_origin_and_its_end() {
    let [near, far] = [learning().await, learning().await];
    produce(&far).await;
    let listener = far.listen_udp(loopback()).await.unwrap();
    let uri = listener.uri().clone();
    let link = near.connect(uri).await.unwrap().number();
    let mut consumer = near.application_face().await.unwrap();
    fetch(&mut consumer, &name("/p/1")).await;
    let status = status_with(&near, "a learned route", |status| {
        status.routes_learned == 1
    })
    .await;
    assert!(
        status
            .routes
            .iter()
            .any(|it| (it.prefix.as_str(), it.face) == ("/p", link))
    );
    fetch(&mut consumer, &name("/p/2")).await;

    let mut client = Client::of_node(&near).await.unwrap();
    let fib: Vec<FibEntry> = client.list("fib/list").await.unwrap();
    let hops = &fib
        .iter()
        .find(|it| it.prefix == name("/p"))
        .unwrap()
        .next_hops;
    assert_eq!((hops.len(), hops[0].face, hops[0].cost), (1, link, 2_048));
    let rib: Vec<RibEntry> = client.list("rib/list").await.unwrap();
    assert_eq!((rib.len(), &rib[0].prefix), (1, &name("/p")));
    let [route] = rib[0].routes[..] else {
        panic!("{rib:?}");
    };
    assert_eq!((route.face, route.origin, route.cost), (link, 129, 2_048));
    assert!((500_000..=600_000).contains(&route.expiration_millis.unwrap()));
    let choices: Vec<StrategyChoice> = client.list("strategy-choice/list").await.unwrap();
    let counts = choices[0].counts.unwrap();
    assert!(counts.interests >= 2 && counts.satisfied >= 2, "{counts:?}");
}
