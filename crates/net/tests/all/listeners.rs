//! Listeners whose tasks end serve newcomers again, and nobody who is there notices.

use crate::common::{fetch, loopback, name, produce, start, unique};
use namecast_net::supervision::{ListenerState, until_restarted};
use namecast_net::{ApplicationFace, FaceId, FaceUri, Node, NodeStatus, webtransport};

/// Faults that each listener is to survive.
const FAULTS: u64 = 20;

/// A node that consumes by the face that `dial` adds.
async fn consumer(dial: &impl AsyncFn(&Node) -> FaceId) -> (Node, ApplicationFace) {
    let node = start();
    let face = dial(&node).await;
    node.add_route(name("/a"), face, 0).await.unwrap();
    let application = node.application_face().await.unwrap();
    (node, application)
}

async fn fetch_new(application: &mut ApplicationFace) {
    fetch(application, &name(&format!("/a/{}", unique()))).await;
}

/// Ends the listener's task again and again: each time a newcomer gets in, and who came first keeps the face.
async fn withstands_faults(state: &ListenerState, dial: impl AsyncFn(&Node) -> FaceId) {
    let (_first, mut first) = consumer(&dial).await;
    fetch_new(&mut first).await;
    for restarts in 1..=FAULTS {
        state.inject_fault();
        while state.problem().is_none() {
            tokio::task::yield_now().await;
        }
        let (newcomer, mut application) = consumer(&dial).await;
        fetch_new(&mut application).await;
        newcomer.shutdown().await;
        fetch_new(&mut first).await;
        until_restarted(state, restarts).await;
        assert_eq!(state.restarts(), restarts);
    }
}

/// Peers that the only listener has made faces for.
fn accepted(status: &NodeStatus) -> u64 {
    assert_eq!(status.listeners[0].restarts, Some(FAULTS));
    assert_eq!(status.listeners[0].problem, None);
    status.listeners[0].accepted
}

fn dial(uri: &FaceUri) -> impl AsyncFn(&Node) -> FaceId {
    async |node: &Node| node.connect(uri.clone()).await.unwrap()
}

#[tokio::test]
async fn udp_withstands_faults() {
    let node = start();
    produce(&node, "/a", 10).await;
    let listener = node.listen_udp(loopback()).await.unwrap();
    withstands_faults(listener.state(), dial(listener.uri())).await;
    assert_eq!(accepted(&node.status().await.unwrap()), FAULTS + 1);
}

#[tokio::test]
async fn tcp_withstands_faults() {
    let node = start();
    produce(&node, "/a", 10).await;
    let listener = node.listen_tcp(loopback()).await.unwrap();
    withstands_faults(listener.state(), dial(listener.uri())).await;
    assert_eq!(accepted(&node.status().await.unwrap()), FAULTS + 1);
}

#[cfg(unix)]
#[tokio::test]
async fn unix_sockets_withstand_faults() {
    let node = start();
    produce(&node, "/a", 10).await;
    let directory = tempfile::tempdir().unwrap();
    let listener = node.listen_unix(&directory.path().join("socket")).await;
    let listener = listener.unwrap();
    withstands_faults(listener.state(), dial(listener.uri())).await;
    assert_eq!(accepted(&node.status().await.unwrap()), FAULTS + 1);
}

#[tokio::test]
async fn webtransport_withstands_faults() {
    let node = start();
    produce(&node, "/a", 10).await;
    let listener = webtransport::listen(&node, loopback(), &[]).await.unwrap();
    let (address, hash) = (listener.address(), listener.certificate_hash());
    let dial = async |node: &Node| {
        let face = webtransport::connect(node, address, vec![hash]).await;
        face.unwrap()
    };
    withstands_faults(listener.state(), dial).await;
    assert_eq!(accepted(&node.status().await.unwrap()), FAULTS + 1);
}

/// The task of a UDP peer's own socket starts again with the face that it had.
#[tokio::test]
async fn udp_peers_keep_their_faces() {
    let node = start();
    produce(&node, "/a", 10).await;
    let listener = node.listen_udp(loopback()).await.unwrap();
    let (_near, mut application) = consumer(&dial(listener.uri())).await;
    fetch_new(&mut application).await;
    for restarts in 1..=FAULTS {
        listener.state().inject_peer_fault();
        until_restarted(listener.state(), restarts).await;
        fetch_new(&mut application).await;
        assert_eq!(listener.state().problem(), None);
    }
    assert_eq!(accepted(&node.status().await.unwrap()), 1);
}
