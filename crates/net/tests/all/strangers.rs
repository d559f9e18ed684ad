//! UDP peers that are not where they say they are, beside those that are. Loopback addresses prove themselves, so these tests
//! have a network namespace whose only interface has other ones.
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use crate::common::{eventually, fetch, interest, name, produce, soon, start, status_with};
use namecast_net::management::ControlParameters;
use namecast_net::{
    Clock, FaceId, FaceUri, KeyStore, Listener, ManagementConfig, Node, NodeConfig,
    StrangersConfig, UdpConfig,
};
use namecast_packet::{Certificate, Component, Interest};
use namecast_units::Bitrate;

/// Every address of 10.0.0.0/8 is this machine's.
const SET_UP: &str = "ip link set lo up && ip route add local 10.0.0.0/8 dev lo";
const PLACES: usize = 64;

fn victim() -> Node {
    Node::start(NodeConfig {
        udp: UdpConfig {
            max_faces: PLACES,
            ..UdpConfig::default()
        },
        management: ManagementConfig {
            allow_localhop: true,
            ..ManagementConfig::default()
        },
        ..NodeConfig::default()
    })
}

async fn listen(node: &Node) -> Listener<SocketAddr> {
    let listener = node.listen_udp("10.0.0.1:0".parse().unwrap()).await;
    listener.unwrap()
}

/// One Interest from each of so many made-up addresses.
fn flood(sources: u32, to: SocketAddr) {
    for number in 0..sources {
        let [_, a, b, c] = (number * 331 + 512).to_be_bytes();
        let from = SocketAddr::from((Ipv4Addr::new(10, a, b, c), 0));
        let socket = UdpSocket::bind(from).unwrap();
        // What the system has no room for is lost, as in any flood.
        let _ = socket.send_to(&interest(name("/nobody"), Duration::from_secs(4)), to);
    }
}

fn datagram_faces(status: &namecast_net::NodeStatus) -> usize {
    let faces = status.faces.iter();
    faces
        .filter(|face| face.remote.starts_with("udp4://"))
        .count()
}

/// 50 000 made-up sources as fast as they can be sent: a peer that comes meanwhile registers a prefix and fetches, and the faces
/// stay within their bound.
#[tokio::test(flavor = "multi_thread")]
async fn a_peer_registers_in_a_flood_of_made_up_sources() {
    if !crate::namespace::is_inside("a_peer_registers_in_a_flood_of_made_up_sources", SET_UP) {
        return;
    }
    let node = victim();
    produce(&node, "/here", 1_000).await;
    let listener = listen(&node).await;
    let to = *listener.address();
    // Before it comes, all places are taken.
    flood(PLACES as u32 * 2, to);
    status_with(&node, "all places are taken", |status| {
        datagram_faces(status) == PLACES
    })
    .await;
    let flooding = std::thread::spawn(move || flood(50_000, to));
    let honest = start();
    let began = Clock::new().now();
    let face = honest.connect(FaceUri::Udp(to)).await.unwrap();
    let registration = honest.register_prefix(face, name("/honest"), 0);
    assert!(soon("the registration", registration.registered()).await);
    eprintln!(
        "registered after {:?}; flood over: {}",
        Clock::new().now().since(began),
        flooding.is_finished()
    );
    let status = node.status().await.unwrap();
    assert!(
        datagram_faces(&status) <= PLACES,
        "{}",
        datagram_faces(&status)
    );
    flooding.join().unwrap();
    honest.add_route(name("/here"), face, 0).await.unwrap();
    let mut application = honest.application_face().await.unwrap();
    fetch(&mut application, &name("/here/1")).await;
    // Those that were made up end by themselves; who is proven stays.
    let status = status_with(&node, "one face is left", |status| {
        datagram_faces(status) == 1
    })
    .await;
    assert!(status.routes.iter().any(|route| route.prefix == "/honest"));
}

/// Sockets of one address that return what they are sent, and so show where they are, until `node` has no place left.
async fn occupy(node: &Node, from: Ipv4Addr, to: SocketAddr) -> Vec<UdpSocket> {
    let sockets = [(); PLACES * 2].map(|()| UdpSocket::bind((from, 0)).unwrap());
    for socket in &sockets {
        socket.connect(to).unwrap();
        socket.set_nonblocking(true).unwrap();
    }
    eventually("all places are taken by proven peers", async || {
        send_and_return(&sockets).await;
        let status = node.status().await.unwrap();
        let refused = status.link_drops.get("too_many_faces").copied();
        (datagram_faces(&status) == PLACES && refused.unwrap_or_default() > 0).then_some(())
    })
    .await;
    sockets.into()
}

/// Each sends an Interest for what nobody has, waits for what comes of it, and returns that: a round takes what the node takes for it.
/// Nothing comes back to a peer that has to pause, so the wait is short.
async fn send_and_return(sockets: &[UdpSocket]) {
    let wanted = interest(name("/nobody"), Duration::from_secs(4));
    let mut buffer = [0; 9_000];
    for socket in sockets {
        let _ = socket.send(&wanted);
        let mut yields = 0..300;
        while yields.next().is_some() && socket.peek(&mut buffer).is_err() {
            tokio::task::yield_now().await;
        }
        while let Ok(length) = socket.recv(&mut buffer) {
            let _ = socket.send(&buffer[..length]);
        }
    }
}

/// Proven peers of one address have all places: one from elsewhere registers a prefix all the same. Once nobody may come from there,
/// their faces end.
#[tokio::test(flavor = "multi_thread")]
async fn one_source_with_all_places_locks_nobody_out() {
    if !crate::namespace::is_inside("one_source_with_all_places_locks_nobody_out", SET_UP) {
        return;
    }
    let node = victim();
    let listener = listen(&node).await;
    let to = *listener.address();
    let attackers = occupy(&node, Ipv4Addr::new(10, 1, 1, 1), to).await;
    let honest = start();
    let face = honest.connect(FaceUri::Udp(to)).await.unwrap();
    let registration = honest.register_prefix(face, name("/honest"), 0);
    assert!(soon("the registration", registration.registered()).await);
    let status = node.status().await.unwrap();
    let most = &status.sources[0];
    assert_eq!(most.source, "10.1.1.0/24");
    assert_eq!(most.faces, datagram_faces(&status) - 1);

    node.deny(vec!["10.1.0.0/16".parse().unwrap()])
        .await
        .unwrap();
    status_with(&node, "one face is left", |status| {
        datagram_faces(status) == 1
    })
    .await;
    // For a moment the peers of this source are still refused for lack of room.
    let status = eventually("a datagram is refused", async || {
        let wanted = interest(name("/nobody"), Duration::from_secs(4));
        attackers[0].send(&wanted).unwrap();
        let status = node.status().await.unwrap();
        let is_denied = status.link_drops.contains_key("denied");
        is_denied.then_some(status)
    })
    .await;
    assert_eq!(datagram_faces(&status), 1);
}

/// A newcomer to a node without a free place that sends one Interest, and then only returns what it is sent, gets its Data.
#[tokio::test(flavor = "multi_thread")]
async fn a_newcomer_has_to_send_nothing_again() {
    if !crate::namespace::is_inside("a_newcomer_has_to_send_nothing_again", SET_UP) {
        return;
    }
    let node = victim();
    produce(&node, "/here", 1_000).await;
    let listener = listen(&node).await;
    let to = *listener.address();
    let _attackers = occupy(&node, Ipv4Addr::new(10, 1, 1, 1), to).await;
    let newcomer = UdpSocket::bind("10.9.9.9:0").unwrap();
    newcomer.connect(to).unwrap();
    newcomer.set_nonblocking(true).unwrap();
    let wanted = interest(name("/here/1"), Duration::from_secs(4));
    newcomer.send(&wanted).unwrap();
    eventually("the Data", async || {
        let mut buffer = [0; 9_000];
        while let Ok(length) = newcomer.recv(&mut buffer) {
            if length > 1_000 {
                return Some(());
            }
            let _ = newcomer.send(&buffer[..length]);
        }
        None
    })
    .await;
}

/// Proven peers of one address have all places and go on sending, none of use to anybody: one from beside them registers a prefix and
/// fetches all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_peer_registers_beside_busy_ones_of_its_own_source() {
    if !crate::namespace::is_inside(
        "a_peer_registers_beside_busy_ones_of_its_own_source",
        SET_UP,
    ) {
        return;
    }
    let node = victim();
    produce(&node, "/here", 1_000).await;
    let listener = listen(&node).await;
    let to = *listener.address();
    let attackers = occupy(&node, Ipv4Addr::new(10, 0, 0, 9), to).await;
    let honest = start();
    let registered = async {
        let face = honest.connect(FaceUri::Udp(to)).await.unwrap();
        let registration = honest.register_prefix(face, name("/honest"), 0);
        assert!(soon("the registration", registration.registered()).await);
        honest.add_route(name("/here"), face, 0).await.unwrap();
        let mut application = honest.application_face().await.unwrap();
        fetch(&mut application, &name("/here/1")).await;
    };
    tokio::select! {
        () = registered => {}
        () = async { loop { send_and_return(&attackers).await } } => {}
    }
    for _ in 0..200 {
        send_and_return(&attackers).await;
    }
    let status = node.status().await.unwrap();
    assert_eq!(datagram_faces(&status), PLACES);
    // 128 peers, each of which waits before it comes again.
    let accepted = status.listeners.iter().map(|it| it.accepted).sum::<u64>();
    assert!(accepted < 1_000, "{accepted}");
    assert!(status.routes.iter().any(|route| route.prefix == "/honest"));
    assert_eq!(status.sources[0].source, "10.0.0.0/24");
}

/// A consumer that never returns anything, asking for 8000 octets with each of some 40: it gets three times what it sent and the
/// budget of 10 000 octets for each second begun, and no less than one budget.
#[tokio::test]
async fn a_peer_that_proves_nothing_is_sent_no_more_than_its_part() {
    if !crate::namespace::is_inside(
        "a_peer_that_proves_nothing_is_sent_no_more_than_its_part",
        SET_UP,
    ) {
        return;
    }
    let node = Node::start(NodeConfig {
        udp: UdpConfig {
            strangers: StrangersConfig {
                budget: Bitrate::kbps(80),
                ..StrangersConfig::default()
            },
            ..UdpConfig::default()
        },
        ..NodeConfig::default()
    });
    produce(&node, "/here", 900).await;
    let listener = listen(&node).await;
    let socket = UdpSocket::bind("10.9.9.9:0").unwrap();
    socket.connect(*listener.address()).unwrap();
    socket.set_nonblocking(true).unwrap();
    let began = Clock::new().now();
    let mut sent = 0;
    for number in 0..300 {
        let wanted = interest(name(&format!("/here/{number}")), Duration::from_secs(1));
        sent += socket.send(&wanted).unwrap() as u64;
        tokio::task::yield_now().await;
    }
    eventually("what is too much is dropped", async || {
        let status = node.status().await.unwrap();
        let answered = status.satisfied >= 300;
        (answered && status.link_drops.contains_key("unproven")).then_some(())
    })
    .await;
    let (mut received, mut buffer) = (0, [0; 9_000]);
    while let Ok(size) = socket.recv(&mut buffer) {
        received += size as u64;
    }
    let windows = Clock::new().now().since(began).as_secs() + 2;
    eprintln!("{received} octets for {sent}");
    assert!(
        received <= 3 * sent + windows * 10_000,
        "{received} for {sent}"
    );
    assert!(received >= 9_000, "{received}");
}

/// Of two that return nothing and fall silent, the one that a route leads to keeps its face, although it was heard before the other.
#[tokio::test]
async fn a_stranger_that_serves_a_prefix_may_be_silent() {
    if !crate::namespace::is_inside("a_stranger_that_serves_a_prefix_may_be_silent", SET_UP) {
        return;
    }
    let node = Node::start(NodeConfig {
        udp: UdpConfig {
            strangers: StrangersConfig {
                idle_timeout: Duration::from_secs(2),
                ..StrangersConfig::default()
            },
            ..UdpConfig::default()
        },
        ..NodeConfig::default()
    });
    let listener = listen(&node).await;
    let hello = interest(name("/nobody"), Duration::from_secs(1));
    let producer = UdpSocket::bind("10.9.9.9:0").unwrap();
    producer.send_to(&hello, *listener.address()).unwrap();
    let status = status_with(&node, "it has a face", |status| datagram_faces(status) == 1).await;
    let of_datagrams = |face: &&namecast_net::FaceStatus| face.remote.starts_with("udp4://");
    let serving = status.faces.iter().find(of_datagrams).unwrap().id;
    let face = FaceId::from_number(serving);
    node.add_route(name("/silent"), face, 0).await.unwrap();
    flood(1, *listener.address());
    status_with(&node, "both have one", |status| datagram_faces(status) == 2).await;
    let status = status_with(&node, "one has gone", |status| datagram_faces(status) == 1).await;
    assert!(status.faces.iter().any(|face| face.id == serving));
}

/// Of two that return nothing and fall silent, the one that commanded with a key of the node keeps its face, although it was heard
/// before the other.
#[tokio::test]
async fn a_command_of_a_key_ends_strangeness() {
    if !crate::namespace::is_inside("a_command_of_a_key_ends_strangeness", SET_UP) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let keys = KeyStore::open(directory.path().join("keys")).unwrap();
    let operator = keys.identity(&name("/operator")).unwrap();
    let certificate = Certificate::decode(operator.certificate.clone()).unwrap();
    let node = Node::start(NodeConfig {
        udp: UdpConfig {
            strangers: StrangersConfig {
                idle_timeout: Duration::from_secs(2),
                ..StrangersConfig::default()
            },
            ..UdpConfig::default()
        },
        management: ManagementConfig {
            allow_localhop: true,
            keys: vec![certificate],
            ..ManagementConfig::default()
        },
        ..NodeConfig::default()
    });
    let listener = listen(&node).await;
    let parameters = ControlParameters {
        name: Some(name("/nothing")),
        ..ControlParameters::default()
    };
    let command = name("/localhop/nfd/rib/unregister").child(Component {
        kind: Component::GENERIC,
        value: &parameters.encode(),
    });
    let mut info = operator.signer.info();
    info.time = Some(Duration::from_micros(Clock::new().wall().as_micros()));
    info.nonce = Some(bytes::Bytes::from_static(b"12345678"));
    let signed = Interest::builder(command).sign(7.into(), &*operator.signer, &info);
    let commander = UdpSocket::bind("10.9.9.9:0").unwrap();
    let to = *listener.address();
    commander.send_to(signed.wire(), to).unwrap();
    let status = status_with(&node, "it has a face", |status| datagram_faces(status) == 1).await;
    let of_datagrams = |face: &&namecast_net::FaceStatus| face.remote.starts_with("udp4://");
    let commanding = status.faces.iter().find(of_datagrams).unwrap().id;
    flood(1, to);
    status_with(&node, "both have one", |status| datagram_faces(status) == 2).await;
    let status = status_with(&node, "one has gone", |status| datagram_faces(status) == 1).await;
    assert!(status.faces.iter().any(|face| face.id == commanding));
}
