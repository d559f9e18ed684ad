//! Hosts by name, in a namespace with a hosts file of its own.

use std::net::SocketAddr;

use crate::common::{fetch, name, produce, start};
use namecast_net::{FaceUri, Node};

const SET_UP: &str = "ip link set lo up && mount -t tmpfs none /mnt && touch /mnt/hosts && \
                      mount --bind /mnt/hosts /etc/hosts";

fn write_hosts(lines: &str) {
    std::fs::write("/etc/hosts", lines).unwrap();
}

/// A node that produces under `/here`.
async fn producer() -> Node {
    let node = start();
    produce(&node, "/here", 100).await;
    node
}

/// A node with a route to `uri` for `/here`.
async fn consumer(uri: &str) -> Node {
    let node = start();
    let face = node.connect(uri.parse::<FaceUri>().unwrap()).await.unwrap();
    node.add_route(name("/here"), face, 0).await.unwrap();
    node
}

async fn fetches(consumer: &Node, wanted: &str) {
    let mut application = consumer.application_face().await.unwrap();
    fetch(&mut application, &name(wanted)).await;
}

/// Nobody listens at the first address, which over UDP only an answer to what was sent shows.
#[tokio::test]
async fn all_addresses_of_a_host_are_tried() {
    if !crate::namespace::is_inside("all_addresses_of_a_host_are_tried", SET_UP) {
        return;
    }
    write_hosts("127.0.0.2 router\n127.0.0.3 router\n");
    for address in ["127.0.0.2:0", "127.0.0.3:0"] {
        let address: SocketAddr = address.parse().unwrap();
        let producer = producer().await;
        let udp = producer.listen_udp(address).await.unwrap();
        let tcp = producer.listen_tcp(address).await.unwrap();
        for uri in [
            format!("udp://router:{}", udp.address().port()),
            format!("tcp://router:{}", tcp.address().port()),
        ] {
            fetches(&consumer(&uri).await, "/here/x").await;
        }
    }
}

#[tokio::test]
async fn a_host_that_moved_is_found_again() {
    if !crate::namespace::is_inside("a_host_that_moved_is_found_again", SET_UP) {
        return;
    }
    write_hosts("127.0.0.2 router\n");
    let before = producer().await;
    let listener = before.listen_tcp("127.0.0.2:0".parse().unwrap()).await;
    let listener = listener.unwrap();
    let port = listener.address().port();
    let consumer = consumer(&format!("tcp://router:{port}")).await;
    fetches(&consumer, "/here/before").await;
    write_hosts("127.0.0.3 router\n");
    let after = producer().await;
    let moved = SocketAddr::from(([127, 0, 0, 3], port));
    let _listener = after.listen_tcp(moved).await.unwrap();
    drop(listener);
    before.shutdown().await;
    fetches(&consumer, "/here/after").await;
}
