//! Ethernet faces over a pair of virtual interfaces in a network namespace of the test's own.
//!
//! Each test runs itself again inside the namespace, and is skipped where none may be made.

use crate::common::{eventually, fetch, name, produce, start, status_with};
use namecast_net::management::{Client, ClientError, ControlParameters, FaceStatus};
use namecast_net::{
    EthernetConfig, EthernetPort, FaceId, FaceOptions, MacAddress, Node, NodeConfig, NodeStatus,
    UdpConfig, UdpMulticast,
};
use namecast_units::Duration;

/// A pair of interfaces, each the other end of the other.
const SET_UP: &str = "{ sysctl -q -w net.ipv6.conf.default.accept_dad=0 || true; } && \
    ip link add near0 mtu 1500 type veth peer name far0 mtu 1500 && \
    ip link set near0 up && ip link set far0 up";

/// True inside a namespace with interfaces `near0` and `far0`. Outside, runs `test` there, or says why not.
fn is_inside(test: &str) -> bool {
    crate::namespace::is_inside(test, SET_UP)
}

async fn port(node: &Node, interface: &str) -> EthernetPort {
    let config = EthernetConfig::on(interface);
    node.open_ethernet(&config).await.unwrap()
}

/// Fetches packets of which each takes several frames of 1500 octets, and small ones.
async fn fetch_some(node: &Node, prefix: &str) {
    let mut consumer = node.application_face().await.unwrap();
    for index in 0..20 {
        let data = fetch(&mut consumer, &name(&format!("{prefix}/{index}"))).await;
        assert_eq!(data.content().map(|content| content.len()), Some(8_000));
    }
}

/// What the far node says once the near one has fetched from it over `face`.
async fn status_after_exchange(near: &Node, face: FaceId, far: &Node) -> NodeStatus {
    near.add_route(name("/far"), face, 0).await.unwrap();
    produce(far, "/far", 8_000).await;
    fetch_some(near, "/far").await;
    far.status().await.unwrap()
}

#[tokio::test]
async fn two_nodes_exchange_packets_through_the_group_of_ethernet() {
    if !is_inside("two_nodes_exchange_packets_through_the_group_of_ethernet") {
        return;
    }
    let (near, far) = (start(), start());
    let (near_port, _far_port) = (port(&near, "near0").await, port(&far, "far0").await);
    let face = near_port.multicast().unwrap();
    // Network cards let a group through only once the interface is in it.
    let groups = std::fs::read_to_string("/proc/net/dev_mcast").unwrap();
    let is_joined = |line: &str| line.contains("near0") && line.contains("01005e0017aa");
    assert!(groups.lines().any(is_joined), "{groups}");
    let status = status_after_exchange(&near, face, &far).await;
    let group = status
        .faces
        .iter()
        .find(|face| face.remote.starts_with("ether://"));
    let group = group.unwrap();
    assert_eq!(group.remote, "ether://[01:00:5e:00:17:aa]");
    assert_eq!(group.local.as_deref(), Some("dev://far0"));
    // 8000 octets and what is around them take 6 frames of 1500.
    assert!(
        group.outgoing.frames >= 120 && group.outgoing.nacks == 0,
        "{group:?}"
    );
    assert!(!group.is_local);
}

fn ethernet(peer: MacAddress, interface: &str) -> ControlParameters {
    ControlParameters {
        uri: Some(format!("ether://[{peer}]")),
        local_uri: Some(format!("dev://{interface}")),
        ..ControlParameters::default()
    }
}

/// The number of the face of these parameters, once the command is carried out.
async fn created(client: &mut Client, parameters: &ControlParameters) -> Result<u64, u64> {
    match client.command("faces/create", parameters).await {
        Ok(made) => {
            assert_eq!(made.uri, parameters.uri);
            assert_eq!(made.local_uri, parameters.local_uri);
            Ok(made.face.unwrap())
        }
        Err(ClientError::Refused { code, .. }) => Err(code),
        Err(other) => panic!("{other}"),
    }
}

/// As a command makes it: one to each peer on each interface that was opened for such faces, and on no other.
#[tokio::test]
async fn a_face_to_a_peer_is_made_by_command() {
    if !is_inside("a_face_to_a_peer_is_made_by_command") {
        return;
    }
    let (near, far) = (start(), start());
    let (near_port, far_port) = (port(&near, "near0").await, port(&far, "far0").await);
    let mut client = Client::of_node(&near).await.unwrap();
    let wanted = ControlParameters {
        mtu: Some(500),
        ..ethernet(far_port.address(), "near0")
    };
    let face = created(&mut client, &wanted).await.unwrap();
    let status = status_after_exchange(&near, FaceId::from_number(face), &far).await;
    let faces: Vec<FaceStatus> = client.list("faces/list").await.unwrap();
    let made = faces.iter().find(|other| other.face == face).unwrap();
    // What was asked for, and in NFD's numbers another host, one peer, persistent.
    assert_eq!(made.mtu, Some(500));
    assert_eq!((made.scope, made.link_type, made.persistency), (0, 0, 0));
    let heard = format!("ether://[{}]", near_port.address());
    let peer = status.faces.iter().find(|face| face.remote == heard);
    assert_eq!(created(&mut client, &wanted).await, Err(409));
    let elsewhere = ethernet(far_port.address(), "far0");
    assert_eq!(created(&mut client, &elsewhere).await, Err(504));

    // At the far node the peer's frames made a face, which gives way to the one that is asked for.
    let mut client = Client::of_node(&far).await.unwrap();
    let wanted = ethernet(near_port.address(), "far0");
    let kept = created(&mut client, &wanted).await.unwrap();
    assert_ne!(peer.unwrap().id, kept);
    status_with(&far, "one face to the peer", |status| {
        let mut all = status.faces.iter().filter(|face| face.remote == heard);
        all.next().is_some_and(|face| face.id == kept) && all.next().is_none()
    })
    .await;
    drop(near_port);
    let again = ethernet(far_port.address(), "near0");
    let mut client = Client::of_node(&near).await.unwrap();
    eventually("the interface is closed", async || {
        (created(&mut client, &again).await == Err(504)).then_some(())
    })
    .await;
}

/// The far node gets a face to the near one as that sends, and loses it when it is silent.
#[tokio::test]
async fn a_peer_becomes_a_face_and_ends_when_it_is_silent() {
    if !is_inside("a_peer_becomes_a_face_and_ends_when_it_is_silent") {
        return;
    }
    let far = Node::start(NodeConfig {
        udp: UdpConfig {
            idle_timeout: Duration::from_secs(2),
            ..UdpConfig::default()
        },
        ..NodeConfig::default()
    });
    let near = start();
    let far_port = port(&far, "far0").await;
    let near_port = port(&near, "near0").await;
    let options = FaceOptions::default();
    let face = near_port
        .connect(far_port.address(), &options)
        .await
        .unwrap();
    near.add_route(name("/far"), face, 0).await.unwrap();
    produce(&far, "/far", 8_000).await;
    fetch_some(&near, "/far").await;
    let peer = format!("ether://[{}]", near_port.address());
    let is_known = async || {
        let status = far.status().await.unwrap();
        status.faces.iter().any(|face| face.remote == peer)
    };
    assert!(is_known().await);
    eventually("the silent peer's face ends", async || {
        (!is_known().await).then_some(())
    })
    .await;
    // The one that was connected stays, and makes the other again.
    fetch_some(&near, "/far/again").await;
    assert!(is_known().await);
    drop(near_port);
    status_with(&near, "the port's faces end with it", |status| {
        !status
            .faces
            .iter()
            .any(|face| face.remote.starts_with("ether://"))
    })
    .await;
}

#[tokio::test]
async fn unknown_peers_have_as_many_faces_as_are_allowed() {
    if !is_inside("unknown_peers_have_as_many_faces_as_are_allowed") {
        return;
    }
    let (near, far) = (start(), start());
    let config = EthernetConfig {
        max_peers: 0,
        ..EthernetConfig::on("far0")
    };
    let far_port = far.open_ethernet(&config).await.unwrap();
    let near_port = port(&near, "near0").await;
    let options = FaceOptions::default();
    let face = near_port
        .connect(far_port.address(), &options)
        .await
        .unwrap();
    near.add_route(name("/far"), face, 0).await.unwrap();
    let consumer = near.application_face().await.unwrap();
    let asked = crate::common::interest(name("/far/1"), std::time::Duration::from_secs(60));
    consumer.send(asked).await.unwrap();
    let status = status_with(&far, "the frame is refused", |status| {
        status.link_drops.contains_key("too_many_faces")
    })
    .await;
    let listener = status
        .listeners
        .iter()
        .find(|listener| listener.uri == "dev://far0");
    assert_eq!(listener.unwrap().drops.get("too_many_faces"), Some(&1));
    let group = namecast_net::MacAddress::NDN_MULTICAST;
    assert!(near_port.connect(group, &options).await.is_err());
}

/// Here 8800 octets are one datagram, which IP cuts for the interface.
#[tokio::test]
async fn two_nodes_exchange_packets_through_a_group_of_ipv6() {
    if !is_inside("two_nodes_exchange_packets_through_a_group_of_ipv6") {
        return;
    }
    let group = |interface: &str| UdpMulticast {
        group: UdpMulticast::GROUP_V6,
        ..UdpMulticast::on(interface)
    };
    let (near, far) = (start(), start());
    let face = match near.join_udp_multicast(&group("near0")).await {
        Err(error) if error.to_string().contains("no IPv6 address") => {
            eprintln!("skipped, as there is no IPv6");
            return;
        }
        joined => joined.unwrap(),
    };
    let far_face = far.join_udp_multicast(&group("far0")).await.unwrap();
    let status = status_after_exchange(&near, face, &far).await;
    let face = status
        .faces
        .iter()
        .find(|face| face.id == far_face.number());
    assert_eq!(face.unwrap().remote, "udp6://[ff02::1234]:56363");
    assert!((20..40).contains(&face.unwrap().outgoing.frames));
}
