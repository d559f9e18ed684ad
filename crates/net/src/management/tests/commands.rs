//! Commands of the modules besides `rib`.

use bytes::Bytes;

use super::super::ControlParameters;
use super::{about, ask, assert_done, command, exchange, name, routes, to, verdict};
use crate::{FaceId, ManagementConfig, Node, NodeConfig, RouteStatus};

/// Written by hand from ndn-cxx's numbers, in its order.
#[test]
fn every_field_is_coded_in_the_order_of_ndn_cxx() {
    let parameters = ControlParameters {
        name: Some(name("/a")),
        face: Some(1),
        uri: Some("u".to_owned()),
        local_uri: Some("l".to_owned()),
        origin: Some(2),
        cost: Some(3),
        capacity: Some(4),
        count: Some(5),
        flags: Some(6),
        mask: Some(7),
        strategy: Some(name("/s")),
        expiration: Some(std::time::Duration::from_millis(8)),
        persistency: Some(2),
        base_congestion_marking_interval: Some(9),
        default_congestion_threshold: Some(10),
        mtu: Some(11),
    };
    let fields = [
        &[7, 3, 8, 1, b'a', 105, 1, 1, 114, 1, b'u', 129, 1, b'l'][..],
        &[111, 1, 2, 106, 1, 3, 131, 1, 4, 132, 1, 5, 108, 1, 6],
        &[112, 1, 7, 107, 5, 7, 3, 8, 1, b's', 109, 1, 8, 133, 1, 2],
        &[135, 1, 9, 136, 1, 10, 137, 1, 11],
    ]
    .concat();
    // 14 + 15 + 16 + 9 octets.
    let wire = Bytes::from([&[104, 54][..], &fields].concat());
    assert_eq!(parameters.encode(), wire);
    assert_eq!(ControlParameters::decode(&wire), Ok(parameters));
}

#[tokio::test]
async fn a_next_hop_is_added_and_removed() {
    let node = Node::start(NodeConfig::default());
    let mut face = node.application_face().await.unwrap();
    let id = face.id().number();
    let hop = ControlParameters {
        cost: Some(9),
        ..about("/a")
    };
    let response = ask(&mut face, "fib/add-nexthop", &hop).await;
    let expected = ControlParameters {
        face: Some(id),
        ..hop.clone()
    };
    assert_done(&response, &expected);
    let route = RouteStatus {
        prefix: "/a".to_owned(),
        face: id,
        cost: 9,
    };
    assert_eq!(routes(&node).await, [route]);
    // As NFD, also if there is nothing to remove.
    for _ in 0..2 {
        let response = ask(&mut face, "fib/remove-nexthop", &about("/a")).await;
        let expected = ControlParameters {
            face: Some(id),
            ..about("/a")
        };
        assert_done(&response, &expected);
        assert_eq!(routes(&node).await, []);
    }
    let nowhere = ControlParameters {
        face: Some(9_999),
        ..about("/a")
    };
    let response = ask(&mut face, "fib/add-nexthop", &nowhere).await;
    assert_eq!(verdict(&response), (410, "Face not found"));
    let long = about(&"/x".repeat(33));
    let response = ask(&mut face, "fib/add-nexthop", &long).await;
    let text = "FIB entry prefix cannot exceed 32 components";
    assert_eq!(verdict(&response), (414, text));
    let response = ask(&mut face, "fib/add-nexthop", &ControlParameters::default()).await;
    assert_eq!(verdict(&response), (400, "failed in validating parameters"));
    assert_eq!(routes(&node).await, []);
}

#[tokio::test]
async fn a_strategy_is_set_by_any_version_that_is_known_and_unset() {
    let node = Node::start(NodeConfig::default());
    let mut face = node.application_face().await.unwrap();
    let choice = |strategy: &str| ControlParameters {
        strategy: Some(name(strategy)),
        ..about("/a")
    };
    let newest = "/localhost/nfd/strategy/multicast/v=5";
    for asked in [
        "/localhost/nfd/strategy/multicast",
        "/localhost/nfd/strategy/multicast/v=1",
        newest,
    ] {
        let response = ask(&mut face, "strategy-choice/set", &choice(asked)).await;
        assert_done(&response, &choice(newest));
    }
    assert_eq!(node.strategies().unwrap().len(), 2);
    for (asked, code) in [
        ("/localhost/nfd/strategy/multicast/v=6", 404),
        ("/localhost/nfd/strategy/asf/v=6", 404),
        ("/localhost/nfd/strategy/multicast/x", 404),
        ("/multicast", 404),
        ("/localhost/nfd/strategy/multicast/v=5/x~1", 409),
    ] {
        let response = ask(&mut face, "strategy-choice/set", &choice(asked)).await;
        assert_eq!(response.code, code, "{asked}");
    }
    let response = ask(&mut face, "strategy-choice/unset", &about("/a")).await;
    assert_done(&response, &about("/a"));
    assert_eq!(node.strategies().unwrap().len(), 1);
    for refused in [about("/"), ControlParameters::default()] {
        let response = ask(&mut face, "strategy-choice/unset", &refused).await;
        assert_eq!(verdict(&response), (400, "failed in validating parameters"));
    }
}

/// A neighbour that may register routes may still not make faces.
#[tokio::test]
async fn neighbours_command_nothing_but_routes() {
    let config = NodeConfig {
        management: ManagementConfig {
            allow_localhop: true,
            ..ManagementConfig::default()
        },
        ..NodeConfig::default()
    };
    let node = Node::start(config);
    let mut face = node.application_face().await.unwrap();
    // The prefix of other modules is not even routed, so the name is made to pass as one of a route.
    node.add_route(name("/localhop/nfd"), management(&node).await, 0)
        .await
        .unwrap();
    let asked = command("/localhop/nfd/faces/create", &to("udp4://127.0.0.1:9"));
    let response = exchange(&mut face, &asked).await;
    assert_eq!(verdict(&response), (501, "Unsupported command"));
    assert_eq!(node.faces().await.unwrap().len(), 2);
}

async fn management(node: &Node) -> FaceId {
    node.faces().await.unwrap()[0].id
}

/// The answer has the command's name, so the prefix cannot be in it twice.
#[tokio::test]
async fn a_prefix_of_5000_octets_is_answered() {
    let node = Node::start(NodeConfig::default());
    let mut face = node.application_face().await.unwrap();
    let long = format!("/{}", "x".repeat(5_000));
    let response = ask(&mut face, "rib/register", &about(&long)).await;
    assert_eq!(verdict(&response), (200, "OK"));
    let parameters = &response.parameters;
    assert_eq!((&parameters.name, parameters.cost), (&None, Some(0)));
    assert_eq!(routes(&node).await[0].prefix, long);
}
