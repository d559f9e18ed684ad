//! What the tests share: nodes, a producer, a consumer, and time limits.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(
    clippy::allow_attributes,
    reason = "whether a part is unused differs per test file"
)]

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use namecast_net::web::Scheme;
use namecast_net::{ApplicationFace, FaceId, Node, NodeConfig, NodeStatus, websocket};
use namecast_packet::signature::DigestSigner;
use namecast_packet::{Data, Interest, LpPacket, Name, Nonce, Packet};

/// Longer than anything takes on a machine that works at all.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// An address of this machine with a port of the system's choice.
pub(crate) fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

pub(crate) fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

pub(crate) fn start() -> Node {
    Node::start(NodeConfig::default())
}

/// Waits for `done`, which asks again and again, at every turn letting other tasks run.
pub(crate) async fn eventually<T>(what: &str, mut done: impl AsyncFnMut() -> Option<T>) -> T {
    let asking = async {
        loop {
            if let Some(value) = done().await {
                return value;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    match tokio::time::timeout(TIMEOUT, asking).await {
        Ok(value) => value,
        Err(_) => panic!("never happened: {what}"),
    }
}

/// Waits for something that happens once.
pub(crate) async fn soon<T>(what: &str, event: impl Future<Output = T>) -> T {
    match tokio::time::timeout(TIMEOUT, event).await {
        Ok(value) => value,
        Err(_) => panic!("never happened: {what}"),
    }
}

/// Waits until the node's status is as `wanted`.
pub(crate) async fn status_with(
    node: &Node,
    what: &str,
    wanted: impl Fn(&NodeStatus) -> bool,
) -> NodeStatus {
    eventually(what, async || {
        let status = node.status().await.unwrap();
        wanted(&status).then_some(status)
    })
    .await
}

/// Answers every Interest under `prefix` with `size` octets of Data.
pub(crate) async fn produce(node: &Node, prefix: &str, size: usize) -> FaceId {
    let mut face = node.application_face().await.unwrap();
    let id = face.id();
    node.add_route(name(prefix), id, 0).await.unwrap();
    tokio::spawn(async move {
        while let Some(frame) = face.recv().await {
            if let Some(answer) = answer(frame, size)
                && face.send(answer).await.is_err()
            {
                return;
            }
        }
    });
    id
}

/// The Data packet that a producer of `size` octets answers with.
pub(crate) fn answer(frame: Bytes, size: usize) -> Option<Bytes> {
    let packet = LpPacket::decode(frame).ok()?;
    let Packet::Interest(interest) = Packet::decode(packet.fragment?).ok()? else {
        return None;
    };
    let data = data(interest.name().clone(), size);
    let answer = LpPacket {
        pit_token: packet.pit_token,
        ..LpPacket::carrying(data.wire().clone())
    };
    Some(answer.encode())
}

pub(crate) fn data(name: Name, size: usize) -> Data {
    let content: Vec<_> = (0..size).map(|at| at as u8).collect();
    Data::builder(name).content(content).sign(&DigestSigner)
}

/// A number that no other call in this process returns.
pub(crate) fn unique() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

pub(crate) fn interest(name: Name, lifetime: Duration) -> Bytes {
    let interest = Interest::builder(name)
        .lifetime(lifetime)
        .build(Nonce::from(unique()));
    interest.wire().clone()
}

/// The Data in a frame.
pub(crate) fn data_of(frame: Bytes) -> Option<Data> {
    let packet = LpPacket::decode(frame).ok()?;
    if packet.nack.is_some() {
        return None;
    }
    match Packet::decode(packet.fragment?).ok()? {
        Packet::Data(data) => Some(data),
        Packet::Interest(_) => None,
    }
}

/// Requests `wanted` until it comes: on a busy machine a datagram may get lost.
pub(crate) async fn fetch(face: &mut ApplicationFace, wanted: &Name) -> Data {
    let asking = async {
        loop {
            let interest = interest(wanted.clone(), Duration::from_secs(1));
            face.send(interest).await.unwrap();
            let waiting = async {
                loop {
                    let frame = face.recv().await.unwrap();
                    if let Some(data) = data_of(frame).filter(|data| data.name() == wanted) {
                        return data;
                    }
                }
            };
            if let Ok(data) = tokio::time::timeout(Duration::from_secs(1), waiting).await {
                return data;
            }
        }
    };
    soon(&format!("Data {wanted}"), asking).await
}

/// A web server for the node's WebSocket faces.
pub(crate) async fn serve_websocket(node: &Node) -> SocketAddr {
    let door = websocket::WebDoor::open(node, &[]);
    let app = axum::Router::new().nest("/ws", door.router(Scheme::Http));
    let listener = tokio::net::TcpListener::bind(loopback()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}
