//! A node is stopped and started again; what depended on it recovers by itself.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use crate::common::{eventually, fetch, interest, loopback, name, produce, soon, start};
use namecast_net::{
    FaceUri, LinkState, ListenError, Node, NodeConfig, NodeError, RegistrationState, UnixAccess,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A producer behind `uri` registers with a hub there, the hub restarts, and the prefix is reachable again.
///
/// `listen` makes a hub listen at an address, the same each time; what it returns is kept as long as the hub.
async fn survives_a_restart<L>(uri: &FaceUri, listen: impl AsyncFn(&Node) -> L) {
    let hub = start();
    let listener = listen(&hub).await;
    let producer = start();
    produce(&producer, "/live", 100).await;
    let face = producer.connect(uri.clone()).await.unwrap();
    let registration = producer.register_prefix(face, name("/live"), 0);
    assert!(soon("registration", registration.registered()).await);
    let mut consumer = hub.application_face().await.unwrap();
    fetch(&mut consumer, &name("/live/1")).await;

    hub.shutdown().await;
    drop(listener);
    assert_eq!(consumer.recv().await, None);
    let hub = start();
    let _listener = eventually("the address is free", async || Some(listen(&hub).await)).await;
    eventually("the prefix is back", async || {
        let status = hub.status().await.unwrap();
        status
            .routes
            .iter()
            .any(|route| route.prefix == "/live")
            .then_some(())
    })
    .await;
    let mut consumer = hub.application_face().await.unwrap();
    fetch(&mut consumer, &name("/live/2")).await;
    hub.shutdown().await;
    producer.shutdown().await;
    assert_eq!(registration.state(), RegistrationState::Ended);
}

#[tokio::test]
async fn a_registration_survives_the_hubs_restart_over_a_unix_socket() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("node.sock");
    let uri = FaceUri::Unix(path.clone());
    survives_a_restart(&uri, async |hub| hub.listen_unix(&path).await.unwrap()).await;
}

#[tokio::test]
async fn a_registration_survives_the_hubs_restart_over_tcp() {
    let address = free_tcp_port();
    let uri = FaceUri::Tcp(address);
    survives_a_restart(&uri, async |hub| hub.listen_tcp(address).await.unwrap()).await;
}

/// Nothing tells that the hub restarted: the registration is repeated.
#[tokio::test]
async fn a_registration_survives_the_hubs_restart_over_udp() {
    let address = std::net::UdpSocket::bind(loopback())
        .unwrap()
        .local_addr()
        .unwrap();
    let uri = FaceUri::Udp(address);
    survives_a_restart(&uri, async |hub| hub.listen_udp(address).await.unwrap()).await;
}

fn free_tcp_port() -> std::net::SocketAddr {
    std::net::TcpListener::bind(loopback())
        .unwrap()
        .local_addr()
        .unwrap()
}

#[tokio::test]
async fn the_producers_end_takes_its_registration_away_and_cancelling_too() {
    let hub = start();
    let listener = hub.listen_tcp(loopback()).await.unwrap();
    let producer = start();
    let face = producer.connect(listener.uri().clone()).await.unwrap();
    let kept = producer.register_prefix(face, name("/kept"), 0);
    let cancelled = producer.register_prefix(face, name("/cancelled"), 0);
    assert!(soon("registration", kept.registered()).await);
    assert!(soon("registration", cancelled.registered()).await);
    cancelled.cancel();
    let has = |prefix: &'static str| {
        let hub = hub.clone();
        async move {
            let routes = hub.status().await.unwrap().routes;
            routes.iter().any(|route| route.prefix == prefix)
        }
    };
    eventually("unregistered", async || {
        (!has("/cancelled").await).then_some(())
    })
    .await;
    assert!(has("/kept").await);
    producer.remove_face(face).await.unwrap();
    eventually("route gone", async || (!has("/kept").await).then_some(())).await;
    let mut states = kept.states();
    let ended = |state: &RegistrationState| *state == RegistrationState::Ended;
    soon("end", states.wait_for(ended)).await.unwrap();
    assert!(!kept.registered().await);
}

#[tokio::test]
async fn a_face_connects_once_its_peer_appears() {
    let address = free_tcp_port();
    let node = start();
    let face = node.connect(FaceUri::Tcp(address)).await.unwrap();
    let mut state = node.link_state(face).await.unwrap();
    let down = |state: &LinkState| matches!(state, LinkState::Down(_));
    soon("down", state.wait_for(down)).await.unwrap();
    let peer = start();
    let _listener = peer.listen_tcp(address).await.unwrap();
    soon("up", node.connected(face)).await.unwrap();
}

#[tokio::test]
async fn what_is_queued_goes_out_before_a_node_stops() {
    let node = start();
    let listener = node.listen_tcp(loopback()).await.unwrap();
    produce(&node, "/here", 8_000).await;
    let mut peer = tokio::net::TcpStream::connect(listener.address())
        .await
        .unwrap();
    for index in 0..20 {
        let wanted = name(&format!("/here/{index}"));
        let interest = interest(wanted, Duration::from_secs(60));
        peer.write_all(&interest).await.unwrap();
    }
    crate::common::status_with(&node, "all answered", |status| {
        let tcp = status
            .faces
            .iter()
            .find(|face| face.remote.starts_with("tcp4://"));
        tcp.is_some_and(|face| face.outgoing.data == 20)
    })
    .await;
    soon("stop", node.shutdown()).await;
    let mut octets = Vec::new();
    soon("the end", peer.read_to_end(&mut octets))
        .await
        .unwrap();
    assert!(octets.len() > 20 * 8_000, "{}", octets.len());
    assert_eq!(node.status().await.unwrap_err(), NodeError::Stopped);
    assert_eq!(
        node.application_face().await.unwrap_err(),
        NodeError::Stopped
    );
    assert!(node.listen_tcp(loopback()).await.is_err());
    soon("stop again", node.shutdown()).await;
}

#[tokio::test]
async fn a_unix_socket_goes_with_its_node_and_a_stale_one_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("node.sock");
    // As a killed process leaves it: the file is there, nobody listens.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let node = start();
    let listener = node.listen_unix(&path).await.unwrap();
    let in_use = start().listen_unix(&path).await.unwrap_err();
    assert!(
        matches!(&in_use, ListenError::InUse(taken) if *taken == path),
        "{in_use}"
    );
    node.shutdown().await;
    assert!(!path.exists());
    drop(listener);
}

/// Neither the process's umask nor an earlier file decides; without a group of that name nothing listens.
#[tokio::test]
async fn a_unix_socket_has_the_permissions_that_were_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("node.sock");
    let node = start();
    for mode in [0o666, 0o600] {
        let access = UnixAccess {
            mode: Some(mode),
            group: None,
        };
        let listener = node.listen_unix_as(&path, &access).await.unwrap();
        let found = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(found & 0o777, mode);
        drop(std::os::unix::net::UnixStream::connect(&path).unwrap());
        drop(listener);
        eventually("the socket is removed", async || {
            (!path.exists()).then_some(())
        })
        .await;
    }
    let access = UnixAccess {
        group: Some("no-such-group".to_owned()),
        ..UnixAccess::default()
    };
    let error = node.listen_unix_as(&path, &access).await.unwrap_err();
    assert!(error.to_string().contains("no-such-group"), "{error}");
    assert!(!path.exists());
}

#[tokio::test]
async fn a_file_that_is_no_socket_is_not_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("precious");
    std::fs::write(&path, "data").unwrap();
    let error = start().listen_unix(&path).await.unwrap_err();
    assert!(error.to_string().contains("precious"), "{error}");
    assert_eq!(std::fs::read_to_string(Path::new(&path)).unwrap(), "data");
}

#[tokio::test]
async fn a_port_that_is_taken_is_named_in_the_error() {
    let node = start();
    let listener = node.listen_tcp(loopback()).await.unwrap();
    let error = node.listen_tcp(*listener.address()).await.unwrap_err();
    assert!(
        error.to_string().contains(&listener.uri().to_string()),
        "{error}"
    );
    node.shutdown().await;
}

/// A peer that does not read has its connection cut off after the configured time.
#[tokio::test]
async fn stopping_takes_no_longer_than_allowed() {
    let node = Node::start(NodeConfig {
        shutdown_timeout: Duration::from_millis(50),
        ..NodeConfig::default()
    });
    produce(&node, "/big", 8_000).await;
    let listener = node.listen_tcp(loopback()).await.unwrap();
    let mut peer = tokio::net::TcpStream::connect(listener.address())
        .await
        .unwrap();
    eventually("queue full", async || {
        for _ in 0..200 {
            let wanted = name(&format!("/big/{}", crate::common::unique()));
            let interest = interest(wanted, Duration::from_secs(4));
            peer.write_all(&interest).await.unwrap();
        }
        let status = node.status().await.unwrap();
        status.link_drops.contains_key("queue_full").then_some(())
    })
    .await;
    soon("stop", node.shutdown()).await;
}
