//! Faces come, go and misbehave without harm to others.

use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::time::Duration;

use crate::common::{
    eventually, fetch, interest, loopback, name, produce, soon, start, status_with, unique,
};
use futures_util::{SinkExt, StreamExt};
use namecast_net::{
    CongestionMarking, FaceOptions, FaceUri, LinkState, Listener, Node, NodeConfig, NodeError,
    NodeStatus, StrategyKind, UdpConfig, webtransport,
};
use namecast_packet::LpPacket;
use namecast_packet::tlv::Writer;
use namecast_units::{ByteSize, Random};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio_tungstenite::tungstenite::Message;

fn faces_of(status: &NodeStatus, scheme: &str) -> usize {
    let of_scheme = |uri: &String| uri.starts_with(scheme);
    status
        .faces
        .iter()
        .filter(|face| of_scheme(&face.remote))
        .count()
}

fn routes_to(status: &NodeStatus, prefix: &str) -> usize {
    status
        .routes
        .iter()
        .filter(|route| route.prefix == prefix)
        .count()
}

#[tokio::test]
async fn the_end_of_a_connection_ends_its_face_and_routes() {
    let node = start();
    let listener = node.listen_tcp(loopback()).await.unwrap();
    let peer = TcpStream::connect(listener.address()).await.unwrap();
    let status = status_with(&node, "a TCP face", |status| {
        faces_of(status, "tcp4://") == 1
    })
    .await;
    let face = status
        .faces
        .iter()
        .find(|face| face.remote.starts_with("tcp4://"))
        .unwrap();
    let face = namecast_net::FaceId::from_number(face.id);
    node.add_route(name("/a"), face, 5).await.unwrap();
    assert_eq!(routes_to(&node.status().await.unwrap(), "/a"), 1);
    drop(peer);
    let status = status_with(&node, "no TCP face", |status| {
        faces_of(status, "tcp4://") == 0
    })
    .await;
    assert_eq!(routes_to(&status, "/a"), 0);
    let gone = node.add_route(name("/a"), face, 5).await;
    assert_eq!(gone, Err(NodeError::NoSuchFace(face)));
}

#[tokio::test]
async fn an_application_that_is_dropped_takes_its_face_along() {
    let node = start();
    let application = node.application_face().await.unwrap();
    node.add_route(name("/a"), application.id(), 0)
        .await
        .unwrap();
    drop(application);
    status_with(&node, "no route", |status| routes_to(status, "/a") == 0).await;
}

/// A node that stops takes its registrations back, also over UDP, where its face lives on at the neighbour.
#[tokio::test]
async fn a_node_that_stops_is_asked_for_nothing_any_more() {
    let far = start();
    let listener = far
        .listen_udp("127.0.0.1:0".parse().unwrap())
        .await
        .unwrap();
    for _ in 0..20 {
        let near = start();
        let face = near.connect(listener.uri().clone()).await.unwrap();
        let registration = near.register_prefix(face, name("/a"), 0);
        assert!(registration.registered().await);
        near.shutdown().await;
        assert_eq!(routes_to(&far.status().await.unwrap(), "/a"), 0);
    }
}

#[tokio::test]
async fn routes_and_strategies_come_and_go() {
    let node = start();
    let first = produce(&node, "/a", 10).await;
    let mut consumer = node.application_face().await.unwrap();
    fetch(&mut consumer, &name("/a/1")).await;
    node.set_strategy(&name("/a"), StrategyKind::Multicast)
        .unwrap();
    fetch(&mut consumer, &name("/a/2")).await;
    node.set_strategy(&name("/a"), StrategyKind::BestRoute)
        .unwrap();
    node.remove_route(name("/a"), first).await.unwrap();
    consumer
        .send(interest(name("/a/3"), Duration::from_secs(60)))
        .await
        .unwrap();
    let status = status_with(&node, "no route", |status| {
        status.drops.contains_key("no_route")
    })
    .await;
    assert_eq!(routes_to(&status, "/a"), 0);
}

/// The stalled peer requests more than all buffers on the way hold, and reads nothing.
#[tokio::test]
async fn a_reader_that_stalls_loses_its_own_packets_only() {
    let node = Node::start(NodeConfig {
        link_queue_size: ByteSize::bytes(200_000),
        ..NodeConfig::default()
    });
    produce(&node, "/big", 8_000).await;
    let listener = node.listen_tcp(loopback()).await.unwrap();
    let mut stalled = TcpStream::connect(listener.address()).await.unwrap();
    let lossy = |status: &NodeStatus| {
        status.faces.iter().any(|face| {
            face.remote.starts_with("tcp4://") && face.link_drops.contains_key("queue_full")
        })
    };
    eventually("the stalled peer's queue is full", async || {
        for _ in 0..200 {
            let wanted = name(&format!("/big/stalled/{}", unique()));
            let interest = interest(wanted, Duration::from_secs(4));
            stalled.write_all(&interest).await.unwrap();
        }
        lossy(&node.status().await.unwrap()).then_some(())
    })
    .await;

    let other = start();
    let face = other.connect(listener.uri().clone()).await.unwrap();
    other.add_route(name("/big"), face, 0).await.unwrap();
    soon("connection", other.connected(face)).await.unwrap();
    let mut consumer = other.application_face().await.unwrap();
    for index in 0..50 {
        fetch(&mut consumer, &name(&format!("/big/other/{index}"))).await;
    }
    let status = node.status().await.unwrap();
    assert_eq!(faces_of(&status, "tcp4://"), 2);
    let unharmed = status
        .faces
        .iter()
        .filter(|face| face.link_drops.is_empty());
    assert!(unharmed.into_iter().any(|face| face.outgoing.data >= 50));
    other.shutdown().await;
    // Also the one that does not read must not keep the node from stopping.
    soon("stop", node.shutdown()).await;
}

/// Ten Data of 500 octets, some 560 with all around them, for an application that does not read yet: the first finds nothing queued, the
/// second one packet and the third two, which is above the threshold of 1000; from there on each is marked, as the
/// interval is none.
#[tokio::test]
async fn packets_behind_a_long_queue_are_marked() {
    let node = Node::start(NodeConfig {
        congestion_marking: Some(CongestionMarking {
            interval: Duration::ZERO,
            threshold: ByteSize::bytes(1_000),
            ..CongestionMarking::default()
        }),
        ..NodeConfig::default()
    });
    produce(&node, "/p", 500).await;
    let mut slow = node.application_face().await.unwrap();
    for number in 0..10 {
        let interest = interest(name(&format!("/p/{number}")), Duration::from_secs(60));
        slow.send(interest).await.unwrap();
    }
    status_with(&node, "all Data queued", |status| status.satisfied == 10).await;
    let mut marks = Vec::new();
    for _ in 0..10 {
        let packet = LpPacket::decode(soon("Data", slow.recv()).await.unwrap()).unwrap();
        assert!(packet.fragment.is_some());
        marks.push(packet.congestion_mark);
    }
    assert_eq!(marks, [0, 0, 1, 1, 1, 1, 1, 1, 1, 1]);
    node.shutdown().await;
}

fn garbage(random: &mut Random, length: usize) -> Vec<u8> {
    let mut octets = vec![0; length];
    random.fill(&mut octets);
    octets
}

/// A node that produces `/here` and listens on everything.
struct Everywhere {
    node: Node,
    udp: Listener<SocketAddr>,
    tcp: Listener<SocketAddr>,
    unix: Listener<PathBuf>,
    websocket: FaceUri,
    webtransport: webtransport::WebTransportListener,
    _directory: tempfile::TempDir,
}

impl Everywhere {
    async fn start() -> Self {
        let node = start();
        produce(&node, "/here", 100).await;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("node.sock");
        let web = crate::common::serve_websocket(&node).await;
        Self {
            udp: node.listen_udp(loopback()).await.unwrap(),
            tcp: node.listen_tcp(loopback()).await.unwrap(),
            unix: node.listen_unix(&path).await.unwrap(),
            websocket: format!("ws://{web}/ws").parse().unwrap(),
            webtransport: webtransport::listen(&node, loopback(), &[]).await.unwrap(),
            node,
            _directory: directory,
        }
    }

    /// Fetches through every listener that takes connections by address.
    async fn serves_everywhere(&self) {
        let consumer = start();
        for uri in [
            self.udp.uri(),
            self.tcp.uri(),
            self.unix.uri(),
            &self.websocket,
        ] {
            let face = consumer.connect(uri.clone()).await.unwrap();
            consumer.add_route(name("/here"), face, 0).await.unwrap();
            soon("connection", consumer.connected(face)).await.unwrap();
            let mut application = consumer.application_face().await.unwrap();
            fetch(&mut application, &name(&format!("/here/{}", unique()))).await;
            consumer.remove_face(face).await.unwrap();
        }
    }
}

/// Nine datagrams: one is empty, two are too long, and six are no packets.
#[tokio::test]
async fn garbage_in_datagrams_does_no_harm() {
    let target = Everywhere::start().await;
    let mut random = Random::from_seed(1);
    let socket = UdpSocket::bind(loopback()).unwrap();
    for length in [0, 1, 2, 10, 100, 1_000, 8_928, 8_929, 65_000] {
        let octets = garbage(&mut random, length);
        socket.send_to(&octets, target.udp.address()).unwrap();
        socket
            .send_to(&octets, target.webtransport.address())
            .unwrap();
    }
    let session = wt_session(&target.webtransport).await;
    for length in [1, 10, 1_000] {
        session.send_datagram(garbage(&mut random, length)).unwrap();
    }
    status_with(&target.node, "losses are counted", |status| {
        status.link_drops.get("too_large") == Some(&2) && status.drops.get("malformed") >= Some(&9)
    })
    .await;
    target.serves_everywhere().await;
}

#[tokio::test]
async fn garbage_in_streams_ends_those_and_no_other() {
    let target = Everywhere::start().await;
    let mut random = Random::from_seed(2);
    for _ in 0..20 {
        // The first octet is no type at all, so that the node need not wait for more.
        let octets = [vec![0], garbage(&mut random, 300)].concat();
        let mut peer = TcpStream::connect(target.tcp.address()).await.unwrap();
        peer.write_all(&octets).await.unwrap();
        hung_up(&mut peer).await;
        let mut peer = UnixStream::connect(target.unix.address()).await.unwrap();
        peer.write_all(&octets).await.unwrap();
        hung_up(&mut peer).await;
    }
    status_with(&target.node, "losses are counted", |status| {
        status.link_drops.get("framing") == Some(&40)
    })
    .await;
    target.serves_everywhere().await;
}

/// Messages that are no frames cost a packet each, and not the face: the same peer is served afterwards.
#[tokio::test]
async fn garbage_in_messages_does_not_end_a_face() {
    let target = Everywhere::start().await;
    let mut random = Random::from_seed(3);
    let url = target.websocket.to_string();
    let (mut peer, _) = tokio_tungstenite::connect_async(url).await.unwrap();
    for length in [0, 1, 10, 1_000, 10_000] {
        let octets = garbage(&mut random, length);
        peer.send(Message::binary(octets)).await.unwrap();
    }
    peer.send(Message::text("hello")).await.unwrap();
    let wanted = interest(name("/here/ws"), Duration::from_secs(60));
    peer.send(Message::binary(wanted)).await.unwrap();
    let answer = async {
        loop {
            if let Message::Binary(frame) = peer.next().await.unwrap().unwrap() {
                return frame;
            }
        }
    };
    assert!(crate::common::data_of(soon("Data", answer).await).is_some());
    let status = target.node.status().await.unwrap();
    assert_eq!(status.link_drops.get("framing"), Some(&1));
    assert_eq!(status.link_drops.get("too_large"), Some(&1));
    assert_eq!(status.drops.get("malformed"), Some(&4));
    target.serves_everywhere().await;
}

/// Waits until the node has closed the connection.
async fn hung_up(peer: &mut (impl tokio::io::AsyncRead + Unpin)) {
    let mut octets = [0; 16];
    // The end, or a reset as the node did not read everything.
    soon("hang-up", async {
        while peer.read(&mut octets).await.is_ok_and(|count| count > 0) {}
    })
    .await;
}

async fn wt_session(listener: &webtransport::WebTransportListener) -> wtransport::Connection {
    let config = wtransport::ClientConfig::builder()
        .with_bind_address(loopback())
        .with_server_certificate_hashes([listener.certificate_hash().into()])
        .build();
    let endpoint = wtransport::Endpoint::client(config).unwrap();
    let url = format!("https://{}/", listener.address());
    soon("session", endpoint.connect(url)).await.unwrap()
}

#[tokio::test]
async fn malformed_packets_in_good_frames_do_not_end_a_stream() {
    let node = start();
    produce(&node, "/here", 100).await;
    let listener = node.listen_tcp(loopback()).await.unwrap();
    let mut peer = TcpStream::connect(listener.address()).await.unwrap();
    let mut octets = Writer::default();
    octets
        .element(5, &[1, 2, 3])
        .element(240, &[0; 300])
        .element(6, &[]);
    peer.write_all(octets.as_slice()).await.unwrap();
    let wanted = interest(name("/here/x"), Duration::from_secs(60));
    peer.write_all(&wanted).await.unwrap();
    let mut first = [0];
    soon("Data", peer.read_exact(&mut first)).await.unwrap();
    assert_eq!(first, [6]);
    let status = node.status().await.unwrap();
    assert_eq!(status.drops.get("malformed"), Some(&3));
}

#[tokio::test]
async fn silent_datagram_peers_are_forgotten() {
    let node = Node::start(NodeConfig {
        udp: UdpConfig {
            idle_timeout: Duration::from_millis(1),
            ..UdpConfig::default()
        },
        ..NodeConfig::default()
    });
    let listener = node.listen_udp(loopback()).await.unwrap();
    let socket = UdpSocket::bind(loopback()).unwrap();
    let seen = |status: &NodeStatus| status.incoming.interests > 0;
    eventually("an Interest arrives", async || {
        let interest = interest(name("/x"), Duration::from_secs(4));
        socket.send_to(&interest, listener.address()).unwrap();
        seen(&node.status().await.unwrap()).then_some(())
    })
    .await;
    status_with(&node, "no UDP face", |status| {
        faces_of(status, "udp4://") == 0
    })
    .await;
}

/// Two peers that get Data stay, so the third gets no face; and of peers that are of no use, the oldest gives way.
#[tokio::test]
async fn datagrams_make_no_more_faces_than_allowed() {
    let node = Node::start(NodeConfig {
        udp: UdpConfig {
            max_faces: 2,
            ..UdpConfig::default()
        },
        ..NodeConfig::default()
    });
    let listener = node.listen_udp(loopback()).await.unwrap();
    produce(&node, "/here", 10).await;
    let sockets = [(); 3].map(|()| UdpSocket::bind(loopback()).unwrap());
    for useless in [(); 4].map(|()| UdpSocket::bind(loopback()).unwrap()) {
        let interest = interest(name("/x"), Duration::from_secs(4));
        useless.send_to(&interest, listener.address()).unwrap();
    }
    for socket in &sockets[..2] {
        let interest = interest(name("/here/x"), Duration::from_secs(4));
        socket.send_to(&interest, listener.address()).unwrap();
        socket.set_nonblocking(true).unwrap();
        let received = async || socket.recv(&mut [0; 9_000]).ok();
        eventually("Data", received).await;
    }
    let full = |status: &NodeStatus| {
        let drops = &status.listeners[0].drops;
        drops.get("too_many_faces").is_some_and(|&count| count > 0)
    };
    let status = eventually("a peer is refused", async || {
        for socket in &sockets {
            let interest = interest(name("/x"), Duration::from_secs(4));
            socket.send_to(&interest, listener.address()).unwrap();
        }
        let status = node.status().await.unwrap();
        full(&status).then_some(status)
    })
    .await;
    assert_eq!(faces_of(&status, "udp4://"), 2);
    let counted = &status.listeners[0];
    assert_eq!((counted.accepted, counted.open), (6, 2));
    drop(listener);
    let status = status_with(&node, "no listener", |status| status.listeners.is_empty()).await;
    assert_eq!(faces_of(&status, "udp4://"), 0);
}

/// Interests of the second peer that reach the node while the first fills every buffer it can: with a test's single thread,
/// the node does not run while they send.
async fn interests_beside_a_flood(udp_peer_sockets: usize) -> u64 {
    let node = Node::start(NodeConfig {
        udp: UdpConfig {
            peer_sockets: udp_peer_sockets,
            ..UdpConfig::default()
        },
        ..NodeConfig::default()
    });
    let listener = node.listen_udp(loopback()).await.unwrap();
    let [flooding, quiet] = [(); 2].map(|()| UdpSocket::bind(loopback()).unwrap());
    let ask = |socket: &UdpSocket, number: usize| {
        let asked = interest(name(&format!("/x/{number}")), Duration::from_secs(60));
        socket.send_to(&asked, listener.address()).unwrap();
    };
    for (known, socket) in [&flooding, &quiet].into_iter().enumerate() {
        ask(socket, known);
        status_with(&node, "a face", |it| faces_of(it, "udp4://") > known).await;
    }
    let flood = [0; 8_000];
    for _ in 0..4_000 {
        flooding.send_to(&flood, listener.address()).unwrap();
    }
    (0..50).for_each(|number| ask(&quiet, number));
    status_with(&node, "the end of the flood", |status| {
        let dropped = status.listeners[0].kernel_drops.unwrap_or_default();
        let read = status.drops.get("malformed").copied().unwrap_or_default();
        read + dropped >= 4_000
    })
    .await;
    let status = node.status().await.unwrap();
    let remote = format!("udp4://{}", quiet.local_addr().unwrap());
    let face = status.faces.iter().find(|face| face.remote == remote);
    face.unwrap().incoming.interests
}

/// 32 MB are more than any socket buffers here. The peer's own buffer takes them, where it has one.
#[tokio::test]
async fn a_peer_that_floods_costs_the_others_nothing() {
    assert_eq!(interests_beside_a_flood(64).await, 51);
    // A full buffer may still have room for a packet as small as these.
    assert!(interests_beside_a_flood(0).await < 10);
}

#[tokio::test]
async fn connections_beyond_the_bound_are_closed() {
    let node = Node::start(NodeConfig {
        max_connections: 1,
        ..NodeConfig::default()
    });
    let listener = node.listen_tcp(loopback()).await.unwrap();
    produce(&node, "/here", 10).await;
    let mut first = TcpStream::connect(listener.address()).await.unwrap();
    let wanted = interest(name("/here/first"), Duration::from_secs(60));
    first.write_all(&wanted).await.unwrap();
    soon("Data", first.read_u8()).await.unwrap();
    let mut second = TcpStream::connect(listener.address()).await.unwrap();
    hung_up(&mut second).await;
    drop(first);
    status_with(&node, "no face", |status| faces_of(status, "tcp4://") == 0).await;
    eventually("room for another", async || {
        let mut third = TcpStream::connect(listener.address()).await.unwrap();
        let wanted = interest(name("/here/x"), Duration::from_secs(60));
        third.write_all(&wanted).await.ok()?;
        third.read_u8().await.ok()
    })
    .await;
}

/// Of three connections, the one that got Data and the one with a route stay; the one that did nothing makes room.
#[tokio::test]
async fn a_connection_of_no_use_makes_room_for_another() {
    let node = Node::start(NodeConfig {
        max_connections: 3,
        ..NodeConfig::default()
    });
    let listener = node.listen_tcp(loopback()).await.unwrap();
    produce(&node, "/here", 10).await;
    let mut consumer = TcpStream::connect(listener.address()).await.unwrap();
    let wanted = interest(name("/here/x"), Duration::from_secs(60));
    consumer.write_all(&wanted).await.unwrap();
    soon("Data", consumer.read_u8()).await.unwrap();
    let _producer = TcpStream::connect(listener.address()).await.unwrap();
    let status = status_with(&node, "two", |status| faces_of(status, "tcp4://") == 2).await;
    let of_tcp = status
        .faces
        .iter()
        .filter(|face| face.remote.starts_with("tcp4://"));
    let newest = of_tcp.map(|face| face.id).max().unwrap();
    let newest = namecast_net::FaceId::from_number(newest);
    node.add_route(name("/there"), newest, 0).await.unwrap();
    let mut useless = TcpStream::connect(listener.address()).await.unwrap();
    status_with(&node, "three", |status| faces_of(status, "tcp4://") == 3).await;
    let mut another = TcpStream::connect(listener.address()).await.unwrap();
    hung_up(&mut useless).await;
    let wanted = interest(name("/here/y"), Duration::from_secs(60));
    another.write_all(&wanted).await.unwrap();
    soon("Data", another.read_u8()).await.unwrap();
    let status = node.status().await.unwrap();
    assert_eq!(faces_of(&status, "tcp4://"), 3);
    assert_eq!(routes_to(&status, "/there"), 1);
}

/// The peer answers no pings, as nobody drives its socket.
#[tokio::test]
async fn a_dead_websocket_peer_is_found_out() {
    let node = Node::start(NodeConfig {
        dead_peer_timeout: Duration::from_millis(300),
        ..NodeConfig::default()
    });
    let web = crate::common::serve_websocket(&node).await;
    let peer = tokio_tungstenite::connect_async(format!("ws://{web}/ws"))
        .await
        .unwrap();
    status_with(&node, "a face", |status| {
        faces_of(status, "wsclient://") == 1
    })
    .await;
    status_with(&node, "no face", |status| {
        faces_of(status, "wsclient://") == 0
    })
    .await;
    drop(peer);
}

#[tokio::test]
async fn a_peer_that_is_not_there_shows_as_down() {
    let node = start();
    let refused = std::net::TcpListener::bind(loopback())
        .unwrap()
        .local_addr()
        .unwrap();
    let face = node.connect(FaceUri::Tcp(refused)).await.unwrap();
    let mut state = node.link_state(face).await.unwrap();
    let down =
        |state: &LinkState| matches!(state, LinkState::Down(reason) if reason.contains("refused"));
    soon("down", state.wait_for(down)).await.unwrap();
    node.remove_face(face).await.unwrap();
    soon("removed", node.connected(face)).await.unwrap_err();
    let accepted = FaceUri::Accepted(1);
    let error = node.connect(accepted.clone()).await.unwrap_err();
    assert_eq!(error, NodeError::NotConnectable(accepted));
}

/// The peer is told every time that the face is looked at. It was heard to keep alive, so its silence means that it is
/// gone, until it is heard again.
#[tokio::test]
async fn a_peer_over_udp_is_kept_alive_and_its_silence_is_noticed() {
    const EMPTY: [u8; 2] = [0x64, 0x00];
    let node = Node::start(NodeConfig {
        udp: UdpConfig {
            keep_alive: Some(Duration::from_millis(10)),
            ..UdpConfig::default()
        },
        ..NodeConfig::default()
    });
    let peer = tokio::net::UdpSocket::bind(loopback()).await.unwrap();
    let uri = FaceUri::Udp(peer.local_addr().unwrap());
    let face = node.connect(uri).await.unwrap();
    let mut state = node.link_state(face).await.unwrap();
    let mut buffer = [0; 100];
    let (length, from) = soon("a frame", peer.recv_from(&mut buffer)).await.unwrap();
    assert_eq!(buffer[..length], EMPTY);
    assert_eq!(*state.borrow_and_update(), LinkState::Up);
    peer.send_to(&EMPTY, from).await.unwrap();
    let is_down = |state: &LinkState| matches!(state, LinkState::Down(_));
    soon("down", state.wait_for(is_down)).await.unwrap();
    // Frames still go out, or two nodes that both lost some would never meet again.
    soon("a frame", peer.recv_from(&mut buffer)).await.unwrap();
    peer.send_to(&EMPTY, from).await.unwrap();
    soon("up", state.wait_for(|state| *state == LinkState::Up))
        .await
        .unwrap();
}

/// Of two faces of one node each is kept alive as it was made, whatever the node does with others; and as it is changed.
#[tokio::test]
async fn each_face_is_kept_alive_as_it_was_told() {
    let often = Duration::from_millis(10);
    for of_node in [None, Some(often)] {
        let node = Node::start(NodeConfig {
            udp: UdpConfig {
                keep_alive: of_node,
                ..UdpConfig::default()
            },
            ..NodeConfig::default()
        });
        let with = |keep_alive| FaceOptions {
            keep_alive: Some(keep_alive),
            ..FaceOptions::default()
        };
        let mut faces = Vec::new();
        for keep_alive in [often, Duration::ZERO] {
            let peer = tokio::net::UdpSocket::bind(loopback()).await.unwrap();
            let uri = FaceUri::Udp(peer.local_addr().unwrap());
            let face = node.connect_with(uri, &with(keep_alive)).await.unwrap();
            faces.push((face, peer));
        }
        let [(_, kept), (silent, other)] = &faces[..] else {
            panic!("two");
        };
        let mut buffer = [0; 100];
        // All faces are looked at together, so what is due twice at one was not due at the other.
        for _ in 0..2 {
            soon("a frame", kept.recv_from(&mut buffer)).await.unwrap();
        }
        assert!(other.try_recv_from(&mut buffer).is_err());
        node.update_face(*silent, with(often)).await.unwrap();
        soon("a frame", other.recv_from(&mut buffer)).await.unwrap();
    }
}
