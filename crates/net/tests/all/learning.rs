//! Two nodes that learn their routes, as management tells.

use std::time::Duration;

use crate::common::{eventually, fetch, loopback, name, status_with};
use namecast_net::management::{Client, FibEntry, RibEntry, StrategyChoice};
use namecast_net::{
    Announcer, Announcing, FaceId, Node, NodeConfig, RegistrationConfig, StrategyKind, UdpConfig,
};
use namecast_packet::signature::DigestSigner;
use namecast_packet::{LpPacket, PrefixAnnouncement};

const HOUR: Duration = Duration::from_secs(3_600);

/// A node that learns, and to which other processes of this machine are other hosts.
async fn learning() -> Node {
    let node = Node::start(NodeConfig {
        udp: UdpConfig {
            loopback_is_local: false,
            ..UdpConfig::default()
        },
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
    let announcement = PrefixAnnouncement::sign(&name("/p"), 1, HOUR, None, &DigestSigner);
    tokio::spawn(async move {
        while let Some(frame) = face.recv().await {
            let Some(answer) = crate::common::answer(frame, 10) else {
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

/// Forty names in nodes with one and with eight forwarders: either way the neighbour who has nothing is asked once, by who
/// looks for the route, and never again.
#[tokio::test]
async fn several_forwarders_learn_as_one_does() {
    for forwarders in [1, 8] {
        let near = Node::start(NodeConfig {
            udp: UdpConfig {
                loopback_is_local: false,
                ..UdpConfig::default()
            },
            forwarders,
            ..NodeConfig::default()
        });
        near.set_strategy(&name("/"), StrategyKind::SelfLearning)
            .unwrap();
        let [far, other] = [learning().await, learning().await];
        produce(&far).await;
        let mut listeners = Vec::new();
        let mut links = Vec::new();
        for neighbour in [&far, &other] {
            let listener = neighbour.listen_udp(loopback()).await.unwrap();
            let link = near.connect(listener.uri().clone()).await.unwrap();
            near.connected(link).await.unwrap();
            links.push(link.number());
            listeners.push(listener);
        }
        let mut consumer = near.application_face().await.unwrap();
        for number in 0..40 {
            fetch(&mut consumer, &name(&format!("/p/{number}"))).await;
        }
        let status = near.status().await.unwrap();
        let sent = |link| {
            let face = status.faces.iter().find(|face| face.id == link);
            face.unwrap().outgoing.interests
        };
        // On a busy machine some may be sent twice.
        assert!((40..45).contains(&sent(links[0])), "{forwarders}");
        assert!((1..4).contains(&sent(links[1])), "{forwarders}");
        assert_eq!(status.routes_learned, 1, "{forwarders}");
    }
}

/// An application's node that asks again every few milliseconds, and its face to `forwarder`.
async fn application(forwarder: &Node) -> (Node, FaceId) {
    let node = Node::start(NodeConfig {
        registration: RegistrationConfig {
            announcement_refresh: Duration::from_millis(5),
            ..RegistrationConfig::default()
        },
        ..NodeConfig::default()
    });
    crate::common::produce(&node, "/p", 10).await;
    let listener = forwarder.listen_tcp(loopback()).await.unwrap();
    let face = node.connect(listener.uri().clone()).await.unwrap();
    node.connected(face).await.unwrap();
    (node, face)
}

fn announcer() -> Announcer {
    Announcer::new(name("/p"), Box::new(DigestSigner))
}

/// Who made the routes of /p: 65 is a client's registration, 129 an announcement.
async fn origins(client: &mut Client) -> Vec<u64> {
    let rib: Vec<RibEntry> = client.list("rib/list").await.unwrap();
    let of_p = rib.iter().filter(|entry| entry.prefix == name("/p"));
    of_p.flat_map(|entry| entry.routes.iter().map(|route| route.origin))
        .collect()
}

/// No route is added by command anywhere: the registration brings the announcement with it.
#[tokio::test]
async fn what_is_announced_with_its_registration_is_found_through_a_network_that_learns() {
    let [near, far] = [learning().await, learning().await];
    let (application, face) = application(&far).await;
    let registration =
        application.register_and_announce(face, 0, announcer(), Announcing::WhereLearned);
    let mut client = Client::of_node(&far).await.unwrap();
    eventually("both routes", async || {
        (origins(&mut client).await == [65, 129]).then_some(())
    })
    .await;
    let listener = far.listen_udp(loopback()).await.unwrap();
    let link = near.connect(listener.uri().clone()).await.unwrap().number();
    let mut consumer = near.application_face().await.unwrap();
    fetch(&mut consumer, &name("/p/1")).await;
    let status = status_with(&near, "a learned route", |status| {
        status.routes_learned == 1
    })
    .await;
    let leads = status.routes.iter().find(|route| route.prefix == "/p");
    assert_eq!(leads.unwrap().face, link);
    registration.cancel();
    eventually("no route is left", async || {
        origins(&mut client).await.is_empty().then_some(())
    })
    .await;
}

/// Twenty repetitions announce nothing where the forwarder does not learn; once it does, the next ones do. Who insists
/// announces in any case.
#[tokio::test]
async fn announcements_begin_when_the_forwarder_begins_to_learn() {
    let far = crate::common::start();
    let (node, face) = application(&far).await;
    let _registration = node.register_and_announce(face, 0, announcer(), Announcing::WhereLearned);
    status_with(&far, "repetitions", |status| {
        let peer = status
            .faces
            .iter()
            .find(|face| face.remote.starts_with("tcp4://"));
        peer.is_some_and(|peer| peer.incoming.interests >= 40)
    })
    .await;
    let mut client = Client::of_node(&far).await.unwrap();
    assert_eq!(origins(&mut client).await, [65]);
    far.set_strategy(&name("/p"), StrategyKind::SelfLearning)
        .unwrap();
    eventually("the announcement", async || {
        (origins(&mut client).await == [65, 129]).then_some(())
    })
    .await;

    let other = crate::common::start();
    let (node, face) = application(&other).await;
    let _registration = node.register_and_announce(face, 0, announcer(), Announcing::Always);
    let mut client = Client::of_node(&other).await.unwrap();
    eventually("the announcement in any case", async || {
        (origins(&mut client).await == [65, 129]).then_some(())
    })
    .await;
}
