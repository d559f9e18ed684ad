//! Pages that show tickets.

use super::*;
use crate::node::NewFace;
use crate::web::Visitor;
use crate::{FaceUri, ManagementConfig, NodeConfig};

/// A node with a ticket for `/cam`, and its token.
fn node() -> (Node, [u8; 16]) {
    let management = ManagementConfig::default();
    let token = management.tickets.issue(name("/cam")).unwrap();
    let config = NodeConfig {
        management,
        ..NodeConfig::default()
    };
    (Node::start(config), token)
}

async fn page(node: &Node, visitor: Visitor) -> ApplicationFace {
    let remote = FaceUri::WebSocketClient("192.0.2.1:9".parse().unwrap());
    let new = NewFace::of_visitor(remote, visitor, None);
    node.internal_face(new).await.unwrap()
}

fn register(prefix: &str, token: [u8; 16], secret: u8) -> Interest {
    let mut info = DigestSigner.info();
    info.nonce = Some(Bytes::copy_from_slice(&key_store::random::<8>()));
    info.time = Some(Duration::from_micros(Clock::new().wall().as_micros()));
    let name = name("/localhop/nfd/rib/register").child(Component {
        kind: Component::GENERIC,
        value: &about(prefix).encode(),
    });
    let shown = [token, [secret; 16]].concat();
    Interest::builder(name)
        .parameters(shown)
        .sign(Nonce(key_store::random()), &DigestSigner, &info)
}

async fn routed(node: &Node) -> Vec<(String, u64)> {
    let routes = routes(node).await;
    let route = |route: RouteStatus| (route.prefix, route.face);
    routes.into_iter().map(route).collect()
}

/// One name for one tab; its route moves with the tab to another face, and ends with that.
#[tokio::test]
async fn a_page_with_a_ticket_registers_its_name_and_no_other() {
    let (node, token) = node();
    let mut tab = page(&node, Visitor::OwnPage).await;
    let done = exchange(&mut tab, &register("/cam", token, 1)).await;
    assert_eq!(verdict(&done), (200, "OK"));
    assert_eq!(
        routed(&node).await,
        [("/cam".to_owned(), tab.id().number())]
    );

    let other = exchange(&mut tab, &register("/other", token, 1)).await;
    assert_eq!(other.code, 403);
    assert!(other.text.contains("for /cam alone"), "{}", other.text);
    let plain = exchange(
        &mut tab,
        &command("/localhop/nfd/rib/register", &about("/x")),
    )
    .await;
    assert_eq!(plain.code, 403);
    assert!(plain.text.contains("link to go live"), "{}", plain.text);

    let mut second = page(&node, Visitor::OwnPage).await;
    let used = exchange(&mut second, &register("/cam", token, 2)).await;
    assert_eq!(used.code, 403);
    assert!(used.text.contains("used already"), "{}", used.text);
    assert_eq!(
        routed(&node).await,
        [("/cam".to_owned(), tab.id().number())]
    );

    let done = exchange(&mut second, &register("/cam", token, 1)).await;
    assert_eq!(verdict(&done), (200, "OK"));
    assert_eq!(
        routed(&node).await,
        [("/cam".to_owned(), second.id().number())]
    );
    let ended = second.id();
    drop(second);
    node.remove_face(ended).await.ok();
    assert_eq!(routed(&node).await, []);
}

#[tokio::test]
async fn pages_of_other_origins_and_programs_are_refused() {
    let (node, token) = node();
    let mut stranger = page(&node, Visitor::Stranger).await;
    let mut program = node.application_face().await.unwrap();
    for face in [&mut stranger, &mut program] {
        let refused = exchange(face, &register("/cam", token, 1)).await;
        assert_eq!(refused.code, 403);
        assert!(
            refused.text.contains("page of this node"),
            "{}",
            refused.text
        );
    }
    assert_eq!(routed(&node).await, []);
    let counted = node.status().await.unwrap().tickets.unwrap();
    assert_eq!((counted.issued, counted.refused_origin), (1, 2));
}

/// Without tickets nobody answers a neighbour's command, as before; with them the answer says what to do.
#[tokio::test]
async fn a_node_without_tickets_serves_no_neighbours() {
    let plain = Node::start(NodeConfig::default());
    let (with, _) = node();
    for (node, served) in [(plain, false), (with, true)] {
        let routes = node.status().await.unwrap().routes;
        let is_there = routes.iter().any(|it| it.prefix.starts_with("/localhop"));
        assert_eq!(is_there, served);
    }
}
