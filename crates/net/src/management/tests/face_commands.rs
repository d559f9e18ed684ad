//! `faces/create`, `faces/update`, `faces/destroy`.

use namecast_units::{ByteSize, Duration};

use super::super::faces::list;
use super::super::{ControlParameters, FaceQueryFilter};
use super::{about, ask, assert_done, name, to, verdict};
use crate::{CongestionMarking, FaceId, FaceUri, Node, NodeConfig};

#[tokio::test]
async fn a_face_is_created_once_and_destroyed() {
    let node = Node::start(NodeConfig::default());
    let mut face = node.application_face().await.unwrap();
    let uri = "udp4://127.0.0.1:9";
    let response = ask(&mut face, "faces/create", &to(uri)).await;
    assert_eq!(verdict(&response), (200, "OK"));
    let id = response.parameters.face.unwrap();
    let expected = ControlParameters {
        face: Some(id),
        local_uri: Some("null://".to_owned()),
        flags: Some(4),
        persistency: Some(0),
        ..to(uri)
    };
    assert_eq!(response.parameters, expected);
    let described = node.describe(FaceId::from_number(id)).await.unwrap();
    assert_eq!(described.remote, uri.parse::<FaceUri>().unwrap());
    let again = ask(&mut face, "faces/create", &to(uri)).await;
    assert_eq!(
        verdict(&again),
        (409, "Face with remote URI already exists")
    );
    assert_eq!(again.parameters, expected);
    let this = ControlParameters {
        face: Some(id),
        ..ControlParameters::default()
    };
    for _ in 0..2 {
        let response = ask(&mut face, "faces/destroy", &this).await;
        assert_done(&response, &this);
        assert_eq!(node.faces().await.unwrap().len(), 2);
    }
}

/// The first face of a node is management's own: without it nobody could command the node any more.
#[tokio::test]
async fn management_does_not_destroy_its_own_face() {
    let node = Node::start(NodeConfig::default());
    let mut face = node.application_face().await.unwrap();
    let others = node.faces().await.unwrap();
    let own = others
        .iter()
        .map(|other| other.id)
        .find(|id| *id != face.id());
    let destroyed = ControlParameters {
        face: own.map(FaceId::number),
        ..ControlParameters::default()
    };
    let refused = ask(&mut face, "faces/destroy", &destroyed).await;
    assert_eq!(verdict(&refused), (406, "Management is asked by this face"));
    assert_eq!(node.faces().await.unwrap().len(), 2);
}

/// As by NFD's `EthernetFactory`. That one is made where it can be, `tests/ethernet.rs` shows.
#[tokio::test]
async fn ethernet_faces_are_refused_without_an_interface_that_was_opened_for_them() {
    let peer = "ether://[02:00:00:00:00:01]";
    let on = |local: &str| ControlParameters {
        local_uri: Some(local.to_owned()),
        ..to(peer)
    };
    let lasting = |persistency| ControlParameters {
        persistency: Some(persistency),
        ..on("dev://lo")
    };
    let group = ControlParameters {
        local_uri: Some("dev://lo".to_owned()),
        ..to("ether://[01:00:5e:00:17:aa]")
    };
    let needed = "Creation of unicast Ethernet faces requires a LocalUri with dev:// scheme";
    let absent = "No channels available to connect: dev://lo carries no Ethernet faces";
    let fleeting = "Outgoing Ethernet faces do not support on-demand persistency";
    assert_all_refused(&[
        (to(peer), 406, needed),
        (on("udp4://127.0.0.1:9"), 406, needed),
        (on("nonsense"), 400, "Malformed command"),
        (on("dev://lo"), 504, absent),
        (lasting(0), 504, absent),
        (lasting(1), 406, fleeting),
        (group, 406, "Cannot create multicast Ethernet faces"),
        (
            to("ether://[02:00:00:00:00:0A]"),
            400,
            "Non-canonical remote URI",
        ),
    ])
    .await;
}

/// Each is refused with its code and text, and nothing is made of any.
async fn assert_all_refused(refused: &[(ControlParameters, u64, &str)]) {
    let node = Node::start(NodeConfig::default());
    let mut face = node.application_face().await.unwrap();
    for (asked, code, text) in refused {
        let response = ask(&mut face, "faces/create", asked).await;
        assert_eq!(verdict(&response), (*code, *text));
    }
    assert_eq!(node.faces().await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_command_that_makes_no_sense_is_refused_with_the_reason() {
    let missing = "failed in validating parameters";
    let half = ControlParameters {
        flags: Some(2),
        ..to("tcp4://127.0.0.1:9")
    };
    let unknown = ControlParameters {
        persistency: Some(3),
        ..to("tcp4://127.0.0.1:9")
    };
    assert_all_refused(&[
        (ControlParameters::default(), 400, missing),
        (half, 400, missing),
        (unknown, 400, missing),
        (to("nonsense"), 400, "Malformed command"),
        (to("udp4://[::1]:9"), 400, "Malformed command"),
        (to("udp4://127.0.0.1"), 400, "Non-canonical remote URI"),
        (to("tcp://127.0.0.1:9"), 400, "Non-canonical remote URI"),
        (to("udp4://localhost:9"), 400, "Non-canonical remote URI"),
        (
            to("udp4://127.0.0.1:0"),
            406,
            "udp4://127.0.0.1:0: expected a port from 1 to 65535",
        ),
        (
            to("tcp6://[::]:9"),
            406,
            "tcp6://[::]:9: expected the address of one peer, not the wildcard",
        ),
    ])
    .await;
    let node = Node::start(NodeConfig::default());
    let mut face = node.application_face().await.unwrap();
    for unknown in ["faces/nonsense", "fib/nonsense", "nonsense/add"] {
        let response = ask(&mut face, unknown, &about("/a")).await;
        assert_eq!(verdict(&response), (501, "Unsupported command"));
    }
}

#[tokio::test]
async fn faces_of_kinds_that_are_not_made_by_command_are_refused() {
    let multicast = "Cannot create multicast UDP faces";
    assert_all_refused(&[
        (to("quic://127.0.0.1:9"), 406, "Unsupported protocol"),
        (to("udp4://224.0.23.170:56363"), 406, multicast),
        (to("udp6://[ff02::1]:56363"), 406, multicast),
    ])
    .await;
}

#[tokio::test]
async fn a_face_that_the_node_cannot_make_so_is_refused_with_the_reason() {
    let tcp = |chosen: ControlParameters| ControlParameters {
        uri: Some("tcp4://127.0.0.1:9".to_owned()),
        ..chosen
    };
    let chosen = ControlParameters::default;
    let from = ControlParameters {
        local_uri: Some("tcp4://127.0.0.1:8".to_owned()),
        ..chosen()
    };
    let on_demand = ControlParameters {
        persistency: Some(1),
        ..chosen()
    };
    let mtu = |mtu| ControlParameters {
        mtu: Some(mtu),
        ..chosen()
    };
    let local_fields = ControlParameters {
        flags: Some(1),
        mask: Some(1),
        ..to("udp4://192.0.2.1:9")
    };
    let narrow = ControlParameters {
        uri: Some("udp4://127.0.0.1:9".to_owned()),
        ..mtu(63)
    };
    assert_all_refused(&[
        (
            tcp(from),
            406,
            "Unicast TCP faces cannot be created with a LocalUri",
        ),
        (
            tcp(on_demand),
            406,
            "Outgoing TCP faces do not support on-demand persistency",
        ),
        (
            tcp(mtu(1_400)),
            406,
            "TCP faces do not support MTU overrides",
        ),
        (narrow, 406, "The MTU must be at least 64"),
        (
            local_fields,
            406,
            "Local fields can only be enabled on faces with local scope",
        ),
    ])
    .await;
}

fn chosen(face: u64) -> ControlParameters {
    ControlParameters {
        face: Some(face),
        ..ControlParameters::default()
    }
}

/// 7 are all flags: local fields, reliability, congestion marking.
fn state(face: u64, flags: u64, persistency: u64) -> ControlParameters {
    ControlParameters {
        flags: Some(flags),
        persistency: Some(persistency),
        ..chosen(face)
    }
}

#[tokio::test]
async fn a_face_is_created_as_it_is_wanted() {
    let node = Node::start(NodeConfig::default());
    let mut face = node.application_face().await.unwrap();
    let wanted = ControlParameters {
        flags: Some(3),
        mask: Some(7),
        persistency: Some(2),
        mtu: Some(1_000),
        default_congestion_threshold: Some(30_000),
        base_congestion_marking_interval: Some(20_000_000),
        ..to("udp4://127.0.0.1:9")
    };
    let response = ask(&mut face, "faces/create", &wanted).await;
    assert_eq!(verdict(&response), (200, "OK"));
    let id = response.parameters.face.unwrap();
    let expected = ControlParameters {
        uri: wanted.uri.clone(),
        local_uri: Some("null://".to_owned()),
        ..state(id, 3, 2)
    };
    assert_eq!(response.parameters, expected);
    let made = node.describe(FaceId::from_number(id)).await.unwrap();
    assert_eq!(made.mtu, Some(1_000));
    assert!(!made.congestion_marking);
    let twenty = CongestionMarking {
        interval: Duration::from_millis(20),
        threshold: ByteSize::bytes(30_000),
        ..CongestionMarking::default()
    };
    assert_eq!(made.congestion, twenty);
}

/// Faces mark by NFD's numbers unless something else is chosen; what is not chosen stays as it was. No number does harm.
#[tokio::test]
async fn congestion_marks_are_chosen_face_by_face_and_listed() {
    let node = Node::start(NodeConfig::default());
    let mut face = node.application_face().await.unwrap();
    let own = face.id().number();
    let switched = |flags| ControlParameters {
        flags: Some(flags),
        mask: Some(4),
        ..chosen(own)
    };
    let threshold = ControlParameters {
        default_congestion_threshold: Some(0),
        ..chosen(own)
    };
    let interval = ControlParameters {
        base_congestion_marking_interval: Some(u64::MAX),
        ..chosen(own)
    };
    let everything = FaceQueryFilter::default();
    for (change, expected) in [
        (chosen(own), (4, 65_536, 100_000_000)),
        (switched(0), (0, 65_536, 100_000_000)),
        (threshold, (0, 0, 100_000_000)),
        (interval, (0, 0, u64::MAX)),
        (switched(4), (4, 0, u64::MAX)),
    ] {
        let response = ask(&mut face, "faces/update", &change).await;
        assert_done(&response, &state(own, expected.0, 1));
        let listed = list(&node, &everything).await.unwrap();
        let own = listed.iter().find(|listed| listed.face == own).unwrap();
        let marks = (
            own.flags,
            own.default_congestion_threshold.unwrap(),
            own.base_congestion_marking_interval.unwrap(),
        );
        assert_eq!(marks, expected);
    }
}

/// A node that never marks may have a face that does.
#[tokio::test]
async fn a_face_may_mark_where_others_do_not() {
    let node = Node::start(NodeConfig {
        congestion_marking: None,
        ..NodeConfig::default()
    });
    let mut face = node.application_face().await.unwrap();
    let marking = ControlParameters {
        flags: Some(4),
        mask: Some(4),
        ..to("udp4://127.0.0.1:9")
    };
    let created = ask(&mut face, "faces/create", &marking).await;
    assert_eq!(verdict(&created), (200, "OK"));
    let made = FaceId::from_number(created.parameters.face.unwrap());
    let made = node.describe(made).await.unwrap();
    assert_eq!(made.congestion, CongestionMarking::default());
    let own = node.describe(face.id()).await.unwrap();
    assert!(made.congestion_marking && !own.congestion_marking);
}

/// Only what is meant changes: a flag whose mask is not set stays as it is. The link's own MTU holds besides.
#[tokio::test]
async fn a_face_is_changed_as_far_as_the_command_says() {
    let node = Node::start(NodeConfig::default());
    let mut face = node.application_face().await.unwrap();
    let created = ask(&mut face, "faces/create", &to("udp4://127.0.0.1:9")).await;
    let id = created.parameters.face.unwrap();
    let flags = |flags, mask| ControlParameters {
        flags: Some(flags),
        mask: Some(mask),
        ..chosen(id)
    };
    for (change, (expected, mtu)) in [
        (chosen(id), (state(id, 4, 0), 8_800)),
        (flags(7, 2), (state(id, 6, 0), 8_800)),
        (flags(1, 5), (state(id, 3, 0), 8_800)),
        (flags(0, 2), (state(id, 1, 0), 8_800)),
        (
            ControlParameters {
                persistency: Some(2),
                mtu: Some(700),
                ..chosen(id)
            },
            (state(id, 1, 2), 700),
        ),
        (
            ControlParameters {
                mtu: Some(60_000),
                ..chosen(id)
            },
            (state(id, 1, 2), 8_800),
        ),
    ] {
        let response = ask(&mut face, "faces/update", &change).await;
        assert_done(&response, &expected);
        let changed = node.describe(FaceId::from_number(id)).await.unwrap();
        assert_eq!(changed.mtu, Some(mtu));
    }
}

/// FaceId 0, or none, is the face that asks. With local fields, its packets say where they came from.
#[tokio::test]
async fn a_client_turns_its_own_local_fields_on() {
    let node = Node::start(NodeConfig::default());
    let mut face = node.application_face().await.unwrap();
    let own = face.id().number();
    for wanted in [None, Some(0)] {
        let wanted = ControlParameters {
            face: wanted,
            flags: Some(1),
            mask: Some(1),
            ..ControlParameters::default()
        };
        let response = ask(&mut face, "faces/update", &wanted).await;
        assert_done(&response, &state(own, 5, 1));
    }
    let described = node.describe(face.id()).await.unwrap();
    assert!(described.local_fields);
}

/// What cannot be is told, and nothing else of the command is done.
#[tokio::test]
async fn impossible_changes_are_refused_whole() {
    let node = Node::start(NodeConfig::default());
    let mut face = node.application_face().await.unwrap();
    let own = face.id().number();
    let unknown = ask(&mut face, "faces/update", &chosen(9_999)).await;
    assert_eq!(verdict(&unknown), (404, "Specified face does not exist"));
    let reliable = |change| ControlParameters {
        flags: Some(2),
        mask: Some(2),
        ..change
    };
    for offending in [
        ControlParameters {
            persistency: Some(0),
            ..ControlParameters::default()
        },
        ControlParameters {
            mtu: Some(1_000),
            ..ControlParameters::default()
        },
    ] {
        let change = reliable(ControlParameters {
            face: Some(own),
            ..offending.clone()
        });
        let response = ask(&mut face, "faces/update", &change).await;
        assert_eq!(verdict(&response), (409, "Invalid properties specified"));
        assert_eq!(response.parameters, offending);
    }
    let half = ControlParameters {
        flags: Some(2),
        ..chosen(own)
    };
    let response = ask(&mut face, "faces/update", &half).await;
    assert_eq!(verdict(&response), (400, "failed in validating parameters"));
    assert!(!node.describe(face.id()).await.unwrap().reliability);
}

/// Without local fields, management would not know who asks.
#[tokio::test]
async fn management_does_not_change_its_own_face() {
    let node = Node::start(NodeConfig::default());
    let own = node.faces().await.unwrap()[0].id.number();
    let mut face = node.application_face().await.unwrap();
    let change = ControlParameters {
        flags: Some(0),
        mask: Some(1),
        ..chosen(own)
    };
    let refused = ask(&mut face, "faces/update", &change).await;
    assert_eq!(verdict(&refused), (406, "Management is asked by this face"));
    let data = ask(&mut face, "rib/register", &about("/a")).await;
    assert_eq!(data.parameters.name, Some(name("/a")));
}
