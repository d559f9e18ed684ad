//! `rib/register` and `rib/unregister`.

use std::time::Duration;

use namecast_packet::{Interest, Nonce};

use super::super::{Client, ControlParameters, ControlResponse, RibEntry};
use super::{about, command, exchange, name, routes};
use crate::{ApplicationFace, FaceId, ManagementConfig, Node, NodeConfig, RouteStatus, key_store};

async fn ask(
    face: &mut ApplicationFace,
    verb: &str,
    parameters: &ControlParameters,
) -> ControlResponse {
    let prefix = format!("/localhost/nfd/rib/{verb}");
    exchange(face, &command(&prefix, parameters)).await
}

fn route(prefix: &str, face: FaceId, cost: u64) -> RouteStatus {
    RouteStatus {
        prefix: prefix.to_owned(),
        face: face.number(),
        cost,
    }
}

#[tokio::test]
async fn a_prefix_is_registered_for_the_face_that_asks_and_every_field_told_back() {
    let node = Node::start(NodeConfig::default());
    let mut face = node.application_face().await.unwrap();
    let response = ask(&mut face, "register", &about("/a")).await;
    assert_eq!(response.code, 200);
    let expected = ControlParameters {
        face: Some(face.id().number()),
        origin: Some(0),
        cost: Some(0),
        flags: Some(1),
        ..about("/a")
    };
    assert_eq!(response.parameters, expected);
    assert_eq!(routes(&node).await, [route("/a", face.id(), 0)]);
    let response = ask(&mut face, "unregister", &about("/a")).await;
    assert_eq!(response.code, 200);
    let expected = ControlParameters {
        face: Some(face.id().number()),
        origin: Some(0),
        ..about("/a")
    };
    assert_eq!(response.parameters, expected);
    assert_eq!(routes(&node).await, []);
}

#[tokio::test]
async fn another_face_may_be_named_if_it_is_there() {
    let node = Node::start(NodeConfig::default());
    let mut face = node.application_face().await.unwrap();
    let other = node.application_face().await.unwrap();
    let to = |face: FaceId| ControlParameters {
        face: Some(face.number()),
        cost: Some(9),
        ..about("/a")
    };
    let response = ask(&mut face, "register", &to(other.id())).await;
    assert_eq!(response.code, 200);
    assert_eq!(routes(&node).await, [route("/a", other.id(), 9)]);
    let response = ask(&mut face, "register", &to(FaceId::from_number(9_999))).await;
    assert_eq!(response.code, 410);
    assert_eq!(response.parameters.name, Some(name("/a")));
    assert_eq!(routes(&node).await.len(), 1);
}

#[tokio::test]
async fn commands_that_cannot_be_carried_out_are_refused_with_a_reason() {
    let config = NodeConfig {
        management: ManagementConfig {
            max_routes: 1,
            ..ManagementConfig::default()
        },
        ..NodeConfig::default()
    };
    let node = Node::start(config);
    let mut face = node.application_face().await.unwrap();
    let nothing = ControlParameters::default();
    assert_eq!(ask(&mut face, "register", &nothing).await.code, 400);
    let long = "/x".repeat(33);
    assert_eq!(ask(&mut face, "register", &about(&long)).await.code, 414);
    assert_eq!(ask(&mut face, "announce", &about("/a")).await.code, 501);
    assert_eq!(ask(&mut face, "register", &about("/a")).await.code, 200);
    assert_eq!(ask(&mut face, "register", &about("/b")).await.code, 500);
    assert_eq!(routes(&node).await, [route("/a", face.id(), 0)]);
}

#[tokio::test]
async fn an_unsigned_command_is_refused() {
    let node = Node::start(NodeConfig::default());
    let mut face = node.application_face().await.unwrap();
    let signed = command("/localhost/nfd/rib/register", &about("/a"));
    let unsigned = Interest::builder(signed.name().parent()).build(Nonce(key_store::random()));
    let response = exchange(&mut face, &unsigned).await;
    assert_eq!(response.code, 403);
    assert_eq!(routes(&node).await, []);
    assert_eq!(exchange(&mut face, &signed).await.code, 200);
}

#[tokio::test]
async fn a_route_ends_when_its_time_has_come() {
    let node = Node::start(NodeConfig::default());
    let mut face = node.application_face().await.unwrap();
    let short = ControlParameters {
        expiration: Some(Duration::from_millis(1)),
        ..about("/a")
    };
    assert_eq!(ask(&mut face, "register", &short).await.code, 200);
    let waiting = async {
        while !routes(&node).await.is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting)
        .await
        .unwrap();
}

/// A millisecond less than forever is some time.
#[tokio::test]
async fn a_route_for_ever_has_no_end() {
    let node = Node::start(NodeConfig::default());
    let mut face = node.application_face().await.unwrap();
    let mut client = Client::of_node(&node).await.unwrap();
    for (millis, ends) in [(i64::MAX as u64, false), (i64::MAX as u64 - 1, true)] {
        let wanted = ControlParameters {
            expiration: Some(Duration::from_millis(millis)),
            ..about("/a")
        };
        assert_eq!(ask(&mut face, "register", &wanted).await.code, 200);
        let entries: Vec<RibEntry> = client.list("rib/list").await.unwrap();
        assert_eq!(entries[0].routes[0].expiration_millis.is_some(), ends);
    }
}

/// Routes to a face end with it, and what they kept out comes in: `/a/b` captured, and now has the next hop of `/a`.
#[tokio::test]
async fn routes_end_with_their_face() {
    let node = Node::start(NodeConfig::default());
    let mut face = node.application_face().await.unwrap();
    let mut ending = node.application_face().await.unwrap();
    let own = ControlParameters {
        cost: Some(3),
        ..about("/a/b")
    };
    let capturing = ControlParameters {
        flags: Some(2),
        ..about("/a/b")
    };
    assert_eq!(ask(&mut face, "register", &about("/a")).await.code, 200);
    assert_eq!(ask(&mut face, "register", &own).await.code, 200);
    let third = node.application_face().await.unwrap();
    let to_third = ControlParameters {
        face: Some(third.id().number()),
        ..about("/a")
    };
    assert_eq!(ask(&mut face, "register", &to_third).await.code, 200);
    let inherited = route("/a/b", third.id(), 0);
    assert!(routes(&node).await.contains(&inherited));
    assert_eq!(ask(&mut ending, "register", &capturing).await.code, 200);
    assert!(!routes(&node).await.contains(&inherited));
    node.remove_face(ending.id()).await.unwrap();
    let waiting = async {
        while !routes(&node).await.contains(&inherited) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting)
        .await
        .unwrap();
    assert_eq!(routes(&node).await.len(), 4);
}

#[tokio::test]
async fn neighbours_may_register_only_if_allowed_and_only_for_themselves() {
    let allowed = |allow_localhop| NodeConfig {
        management: ManagementConfig {
            allow_localhop,
            ..ManagementConfig::default()
        },
        ..NodeConfig::default()
    };
    let prefix = "/localhop/nfd/rib/register";
    let node = Node::start(allowed(false));
    let face = node.application_face().await.unwrap();
    let status = node.status().await.unwrap();
    assert!(
        !status
            .routes
            .iter()
            .any(|route| route.prefix.starts_with("/localhop"))
    );
    drop(face);
    let node = Node::start(allowed(true));
    let mut face = node.application_face().await.unwrap();
    let response = exchange(&mut face, &command(prefix, &about("/a"))).await;
    assert_eq!(response.code, 200);
    let other = node.application_face().await.unwrap();
    let for_other = ControlParameters {
        face: Some(other.id().number()),
        ..about("/b")
    };
    let response = exchange(&mut face, &command(prefix, &for_other)).await;
    assert_eq!(response.code, 403);
    assert_eq!(routes(&node).await, [route("/a", face.id(), 0)]);
}
