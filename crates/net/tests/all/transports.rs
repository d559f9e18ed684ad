//! Data comes through every transport, whole.

use std::time::Duration;

use crate::common::{
    answer, data, data_of, fetch, interest, loopback, name, produce, soon, start, status_with,
};
use namecast_net::web::Scheme;
use namecast_net::{FaceId, FaceUri, Node, NodeConfig, UdpConfig, webtransport};
use wtransport::endpoint::ConnectOptions;
use wtransport::tls::Sha256Digest;
use wtransport::{ClientConfig, Endpoint};

/// Fetches Data of `size` octets from a producer behind `face`, which leads to the node where `/here` is produced.
async fn fetch_through(consumer: &Node, face: FaceId, size: usize) {
    consumer.add_route(name("/here"), face, 0).await.unwrap();
    soon("connection", consumer.connected(face)).await.unwrap();
    let mut application = consumer.application_face().await.unwrap();
    for index in 0..3 {
        let wanted = name(&format!("/here/{size}/{index}"));
        let fetched = fetch(&mut application, &wanted).await;
        assert_eq!(fetched, data(wanted, size));
    }
}

/// A producer of `size` octets at `/here`, and a consumer without any.
async fn pair(size: usize) -> (Node, Node) {
    let producer = start();
    produce(&producer, "/here", size).await;
    (producer, start())
}

async fn connect(consumer: &Node, uri: impl ToString) -> FaceId {
    let uri: FaceUri = uri.to_string().parse().unwrap();
    consumer.connect(uri).await.unwrap()
}

#[tokio::test]
async fn udp() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let (producer, consumer) = pair(1_000).await;
        let listener = producer.listen_udp(address.parse().unwrap()).await.unwrap();
        let face = connect(&consumer, listener.uri()).await;
        fetch_through(&consumer, face, 1_000).await;
        producer.shutdown().await;
        consumer.shutdown().await;
    }
}

/// Where the name has an address at which nobody listens, the next is tried.
#[tokio::test]
async fn hosts_by_name() {
    let (producer, consumer) = pair(1_000).await;
    let udp = producer.listen_udp(loopback()).await.unwrap();
    let uri = format!("udp://localhost:{}", udp.address().port());
    let face = connect(&consumer, &uri).await;
    fetch_through(&consumer, face, 1_000).await;
    let is_local = |face: &namecast_net::FaceStatus| face.remote == uri && face.is_local;
    let status = consumer.status().await.unwrap();
    assert!(status.faces.iter().any(is_local), "{:?}", status.faces);
    let tcp = producer.listen_tcp(loopback()).await.unwrap();
    let uri = format!("tcp://localhost:{}", tcp.address().port());
    let consumer = start();
    let face = connect(&consumer, &uri).await;
    fetch_through(&consumer, face, 1_000).await;
}

#[tokio::test]
async fn tcp() {
    let (producer, consumer) = pair(1_000).await;
    let listener = producer.listen_tcp(loopback()).await.unwrap();
    let face = connect(&consumer, listener.uri()).await;
    fetch_through(&consumer, face, 1_000).await;
}

#[tokio::test]
async fn unix() {
    let (producer, consumer) = pair(8_000).await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("node.sock");
    let listener = producer.listen_unix(&path).await.unwrap();
    let face = connect(&consumer, listener.uri()).await;
    fetch_through(&consumer, face, 8_000).await;
}

#[tokio::test]
async fn websocket() {
    let (producer, consumer) = pair(8_000).await;
    let address = crate::common::serve_websocket(&producer).await;
    let face = connect(&consumer, format!("ws://{address}/ws")).await;
    fetch_through(&consumer, face, 8_000).await;
}

/// 8000 octets take seven datagrams or more, as QUIC's are at most about 1300 octets at first.
#[tokio::test]
async fn webtransport_in_one_datagram_and_in_several() {
    let (producer, consumer) = pair(8_000).await;
    let listener = webtransport::listen(&producer, loopback(), &[])
        .await
        .unwrap();
    let hashes = vec![listener.certificate_hash()];
    let face = webtransport::connect(&consumer, listener.address(), hashes)
        .await
        .unwrap();
    fetch_through(&consumer, face, 8_000).await;
    let status = producer.status().await.unwrap();
    let session = status
        .faces
        .iter()
        .find(|face| face.remote.starts_with("quic://"))
        .unwrap();
    assert!(session.outgoing.frames >= 3 * 7, "{session:?}");
    assert_eq!(session.outgoing.data, 3);
}

/// With datagrams of at most 1400 octets, 8000 octets take six.
#[tokio::test]
async fn udp_in_fragments() {
    let config = || NodeConfig {
        udp: UdpConfig {
            loopback_mtu: 1_400,
            ..UdpConfig::default()
        },
        ..NodeConfig::default()
    };
    let producer = Node::start(config());
    produce(&producer, "/here", 8_000).await;
    let consumer = Node::start(config());
    let listener = producer.listen_udp(loopback()).await.unwrap();
    let face = connect(&consumer, listener.uri()).await;
    fetch_through(&consumer, face, 8_000).await;
    let status = producer.status().await.unwrap();
    let peer = status
        .faces
        .iter()
        .find(|face| face.remote.starts_with("udp4://"))
        .unwrap();
    assert_eq!(peer.outgoing.frames, 6 * peer.outgoing.data, "{peer:?}");
}

fn client(
    hash: webtransport::CertificateHash,
) -> Endpoint<wtransport::endpoint::endpoint_side::Client> {
    let config = ClientConfig::builder()
        .with_bind_address(loopback())
        .with_server_certificate_hashes([Sha256Digest::new(hash)])
        .build();
    Endpoint::client(config).unwrap()
}

/// As a browser would do it: the hash is pinned, and each datagram is one bare packet.
#[tokio::test]
async fn a_foreign_webtransport_client_fetches_with_the_hash_pinned() {
    let producer = start();
    produce(&producer, "/here", 500).await;
    let listener = webtransport::listen(&producer, loopback(), &[])
        .await
        .unwrap();
    let endpoint = client(listener.certificate_hash());
    let url = format!("https://{}/ndn", listener.address());
    let session = soon("session", endpoint.connect(&url)).await.unwrap();
    let asking = async {
        loop {
            let wanted = interest(name("/here/x"), Duration::from_secs(1));
            session.send_datagram(wanted).unwrap();
            let waiting = session.receive_datagram();
            if let Ok(datagram) = tokio::time::timeout(Duration::from_secs(1), waiting).await {
                return datagram.unwrap().payload();
            }
        }
    };
    let frame = soon("Data", asking).await;
    assert_eq!(data_of(frame).unwrap(), data(name("/here/x"), 500));
}

#[tokio::test]
async fn another_certificate_than_the_pinned_one_is_refused() {
    let node = start();
    let listener = webtransport::listen(&node, loopback(), &[]).await.unwrap();
    let mut hash = listener.certificate_hash();
    hash[31] ^= 1;
    let endpoint = client(hash);
    let url = format!("https://{}/ndn", listener.address());
    assert!(soon("an answer", endpoint.connect(&url)).await.is_err());
}

/// Pages of this node come from its web server, and are local on its machine; a page of another site, or under another name of
/// this machine, gets no session.
#[tokio::test]
async fn a_foreign_page_gets_no_webtransport_session() {
    let node = start();
    let pages = [(Scheme::Http, 8080)];
    let listener = webtransport::listen(&node, loopback(), &pages)
        .await
        .unwrap();
    let endpoint = client(listener.certificate_hash());
    let url = format!("https://{}/ndn", listener.address());
    let session = async |origin: &str| {
        let options = ConnectOptions::builder(&url).add_header("origin", origin);
        soon("an answer", endpoint.connect(options.build())).await
    };
    for origin in ["https://evil.example", "http://127.0.0.1:3000", "null"] {
        assert!(session(origin).await.is_err(), "{origin}");
    }
    let _own = session("http://127.0.0.1:8080").await.unwrap();
    let is_session = |face: &&namecast_net::FaceStatus| face.remote.starts_with("quic://");
    let has_one =
        |status: &namecast_net::NodeStatus| status.faces.iter().any(|face| is_session(&face));
    let status = status_with(&node, "a session", has_one).await;
    let sessions: Vec<_> = status.faces.iter().filter(is_session).collect();
    assert_eq!(sessions.len(), 1);
    assert!(sessions[0].is_local);
    assert_eq!(status.link_drops["foreign_origin"], 3);
}

/// What a link receives reaches the application as the forwarder gives it, with no link header it did not ask for.
#[tokio::test]
async fn an_application_gets_the_packet_as_it_was_sent() {
    let node = start();
    let mut producer = node.application_face().await.unwrap();
    node.add_route(name("/a"), producer.id(), 0).await.unwrap();
    let mut consumer = node.application_face().await.unwrap();
    let sent = interest(name("/a/b"), Duration::from_secs(30));
    consumer.send(sent.clone()).await.unwrap();
    let received = soon("Interest", producer.recv()).await.unwrap();
    assert_eq!(received, sent);
    producer.send(answer(received, 10).unwrap()).await.unwrap();
    let received = soon("Data", consumer.recv()).await.unwrap();
    assert_eq!(received, data(name("/a/b"), 10).wire());
}
