//! Datasets: their octets, by hand from the numbers of ndn-cxx, and what they tell of a node.

use bytes::Bytes;
use namecast_packet::signature::{DigestSigner, Signer};
use namecast_packet::{Component, ContentType, Data, DecodeError, Interest, Name, Nonce};

use super::super::{
    ChannelStatus, ControlParameters, ControlResponse, CsInfo, FaceStatus, FibEntry, GeneralStatus,
    Item, NextHopRecord, ReadvertisingStatus, RibEntry, RibRoute, StrategyChoice, StrategyCounts,
    decode_items,
};
use super::{about, command, exchange, fetch, name};
use crate::{ApplicationFace, Clock, Node, NodeConfig, StrategyKind, key_store};

/// Checks both directions of the coding against octets.
#[track_caller]
fn check<T: Item + PartialEq + core::fmt::Debug>(item: &T, octets: &[u8]) {
    assert_eq!(item.encode(), octets);
    let twice = Bytes::from([octets, octets].concat());
    let read: Result<Vec<T>, DecodeError> = decode_items(&twice);
    let read = read.unwrap();
    assert_eq!((&read[0], &read[1], read.len()), (item, item, 2));
}

#[test]
fn a_face_is_encoded_in_the_order_of_ndn_cxx() {
    let face = FaceStatus {
        face: 257,
        uri: "fd://3".to_owned(),
        local_uri: "unix:///n".to_owned(),
        expiration_millis: Some(600_000),
        scope: 1,
        persistency: 1,
        link_type: 0,
        base_congestion_marking_interval: None,
        default_congestion_threshold: None,
        mtu: Some(8_800),
        in_interests: 1,
        in_data: 2,
        in_nacks: 3,
        out_interests: 4,
        out_data: 5,
        out_nacks: 256,
        in_octets: 7,
        out_octets: 65_536,
        flags: 3,
    };
    let fields = [
        &[105, 2, 1, 1][..],
        &[114, 6],
        b"fd://3",
        &[129, 9],
        b"unix:///n",
        &[109, 4, 0, 9, 39, 192],
        &[132, 1, 1, 133, 1, 1, 134, 1, 0],
        &[137, 2, 34, 96],
        &[144, 1, 1, 145, 1, 2, 151, 1, 3, 146, 1, 4, 147, 1, 5],
        &[152, 2, 1, 0, 148, 1, 7, 149, 4, 0, 1, 0, 0, 108, 1, 3],
    ]
    .concat();
    // 4 + 8 + 11 + 6 + 9 + 4 + 15 + 16 octets.
    let octets = [&[128, 73][..], &fields].concat();
    check(&face, &octets);
}

#[test]
fn the_other_entries_are_encoded_as_ndn_cxx_does() {
    let hop = |face, cost| NextHopRecord { face, cost };
    let fib = FibEntry {
        prefix: name("/a"),
        next_hops: vec![hop(300, 10), hop(301, 0)],
    };
    let octets = [
        128, 25, 7, 3, 8, 1, b'a', 129, 7, 105, 2, 1, 44, 106, 1, 10, 129, 7, 105, 2, 1, 45, 106,
        1, 0,
    ];
    // 5 + 9 + 9 octets.
    let octets = [&[128, 23][..], &octets[2..]].concat();
    check(&fib, &octets);
    let rib = RibEntry {
        prefix: name("/a"),
        routes: vec![RibRoute {
            face: 300,
            origin: 65,
            cost: 9,
            flags: 1,
            expiration_millis: Some(1_000),
        }],
    };
    let octets = [
        128, 24, 7, 3, 8, 1, b'a', 129, 17, 105, 2, 1, 44, 111, 1, 65, 106, 1, 9, 108, 1, 1, 109,
        2, 3, 232,
    ];
    check(&rib, &octets);
    let choice = StrategyChoice {
        prefix: name("/a"),
        strategy: name("/s/v=5"),
        counts: None,
    };
    let octets = [
        128, 15, 7, 3, 8, 1, b'a', 107, 8, 7, 6, 8, 1, b's', 54, 1, 5,
    ];
    check(&choice, &octets);
    let counted = StrategyChoice {
        counts: Some(StrategyCounts {
            interests: 300,
            retransmissions: 1,
            suppressed: 2,
            rejected: 3,
            satisfied: 4,
            timeouts: 5,
            nacks: 6,
        }),
        ..choice
    };
    // 15 octets as before, 4 and six times 3.
    let counts = [
        240, 2, 1, 44, 242, 1, 1, 244, 1, 2, 246, 1, 3, 248, 1, 4, 250, 1, 5, 252, 1, 6,
    ];
    check(&counted, &[&[128, 37], &octets[2..], &counts].concat());
    let store = CsInfo {
        capacity: 8_192,
        flags: 3,
        entries: 2,
        hits: 1,
        misses: 300,
        memory: Some(5),
        memory_capacity: None,
    };
    let octets = [
        128, 20, 131, 2, 32, 0, 108, 1, 3, 135, 1, 2, 129, 1, 1, 130, 2, 1, 44, 240, 1, 5,
    ];
    check(&store, &octets);
    let channel = ChannelStatus {
        local_uri: "fd://3".to_owned(),
    };
    check(&channel, b"\x82\x08\x81\x06fd://3");
}

/// Fields without an element around them; the times are 1000 and 1256 ms.
#[test]
fn the_general_status_has_no_element_around_it() {
    let status = GeneralStatus {
        version: "n".to_owned(),
        start_millis: 1_000,
        current_millis: 1_256,
        fib_entries: 2,
        pit_entries: 3,
        cs_entries: 4,
        in_interests: 5,
        in_data: 6,
        in_nacks: 7,
        out_interests: 8,
        out_data: 9,
        out_nacks: 10,
        satisfied_interests: 11,
        unsatisfied_interests: 12,
        readvertising: Some(ReadvertisingStatus {
            daemons: 1,
            prefixes: 13,
            told: 14,
            registered: 15,
            unregistered: 16,
            failed: 17,
        }),
        ..GeneralStatus::default()
    };
    let octets = [
        128, 1, b'n', 129, 2, 3, 232, 130, 2, 4, 232, 131, 1, 0, 132, 1, 2, 133, 1, 3, 134, 1, 0,
        135, 1, 4, 144, 1, 5, 145, 1, 6, 151, 1, 7, 146, 1, 8, 147, 1, 9, 152, 1, 10, 153, 1, 11,
        154, 1, 12, 240, 1, 1, 242, 1, 13, 244, 1, 14, 246, 1, 15, 248, 1, 16, 250, 1, 17,
    ];
    assert_eq!(status.encode(), octets[..]);
    assert_eq!(GeneralStatus::decode(&status.encode()), Ok(status));
}

fn question(name: Name) -> Interest {
    Interest::builder(name)
        .can_be_prefix()
        .must_be_fresh()
        .build(Nonce(key_store::random()))
}

async fn first_segment(face: &mut ApplicationFace, uri: &str) -> Data {
    fetch(face, &question(name(uri))).await
}

/// The content of a dataset, gathered from all its segments.
async fn content(face: &mut ApplicationFace, uri: &str) -> Bytes {
    let first = first_segment(face, uri).await;
    let version = first.name().parent();
    assert_eq!(version.parent(), name(uri));
    assert!(
        version
            .last()
            .unwrap()
            .number_of(Component::VERSION)
            .is_some()
    );
    let last = first.final_block().unwrap().last().unwrap();
    let last = last.number_of(Component::SEGMENT).unwrap();
    let mut content = first.content().unwrap_or_default().to_vec();
    for number in 1..=last {
        let name = version.builder().segment(number).finish();
        let interest = Interest::builder(name.clone()).build(Nonce(key_store::random()));
        let segment = fetch(face, &interest).await;
        assert_eq!(segment.name(), &name);
        content.extend_from_slice(&segment.content().unwrap());
    }
    Bytes::from(content)
}

async fn list<T: Item>(face: &mut ApplicationFace, uri: &str) -> Vec<T> {
    decode_items(&content(face, uri).await).unwrap()
}

#[tokio::test]
async fn faces_and_channels_are_listed_as_they_are_at_the_moment() {
    let node = Node::start(NodeConfig::default());
    let mut face = node.application_face().await.unwrap();
    let id = face.id().number();
    let faces: Vec<FaceStatus> = list(&mut face, "/localhost/nfd/faces/list").await;
    assert_eq!(faces.len(), 2);
    let management = &faces[0];
    assert_eq!(management.uri, "internal://management");
    assert_eq!((management.flags, management.scope), (5, 1));
    let asking = faces.iter().find(|face| face.face == id).unwrap();
    assert_eq!((asking.in_interests, asking.out_data), (1, 0));
    assert_eq!((asking.persistency, asking.mtu), (1, Some(8_800)));
    assert_eq!((asking.flags, asking.expiration_millis), (4, None));
    // Told anew at once, not from the content store.
    let _other = node.application_face().await.unwrap();
    let faces: Vec<FaceStatus> = list(&mut face, "/localhost/nfd/faces/list").await;
    assert_eq!(faces.len(), 3);
    let channels = "/localhost/nfd/faces/channels";
    assert_eq!(list::<ChannelStatus>(&mut face, channels).await, []);
    let address = "127.0.0.1:0".parse().unwrap();
    let listener = node.listen_udp(address).await.unwrap();
    let local_uri = listener.uri().to_string();
    let expected = ChannelStatus { local_uri };
    assert_eq!(list::<ChannelStatus>(&mut face, channels).await, [expected]);
}

#[tokio::test]
async fn a_query_tells_the_faces_that_are_as_it_says() {
    let node = Node::start(NodeConfig::default());
    let mut face = node.application_face().await.unwrap();
    let id = u8::try_from(face.id().number() - 256).unwrap();
    let mut matches = async |filter: &[u8]| -> Vec<String> {
        let filter = [&[150, u8::try_from(filter.len()).unwrap()], filter].concat();
        let asked = name("/localhost/nfd/faces/query").child(Component {
            kind: Component::GENERIC,
            value: &filter,
        });
        let data = fetch(&mut face, &question(asked)).await;
        let faces: Vec<FaceStatus> = decode_items(&data.content().unwrap_or_default()).unwrap();
        faces.into_iter().map(|face| face.uri).collect()
    };
    let (management, application) = ("internal://management", "internal://application");
    assert_eq!(matches(&[]).await, [management, application]);
    assert_eq!(matches(&[105, 2, 1, id]).await, [application]);
    assert_eq!(
        matches(b"\x72\x15internal://management").await,
        [management]
    );
    assert_eq!(matches(b"\x83\x08internal").await.len(), 2);
    assert_eq!(matches(b"\x83\x04null").await.len(), 2);
    assert_eq!(matches(b"\x83\x04udp4").await.len(), 0);
    assert_eq!(matches(b"\x81\x07null://").await.len(), 2);
    // Scope, persistency and link type: local, on demand, one peer; then each otherwise.
    assert_eq!(matches(&[132, 1, 1, 133, 1, 1, 134, 1, 0]).await.len(), 2);
    assert_eq!(matches(&[132, 1, 0]).await.len(), 0);
    assert_eq!(matches(&[133, 1, 0]).await.len(), 0);
    assert_eq!(matches(&[134, 1, 1]).await.len(), 0);
}

#[tokio::test]
async fn a_malformed_query_is_refused_with_a_nack_as_content() {
    let node = Node::start(NodeConfig::default());
    let mut face = node.application_face().await.unwrap();
    let asked = name("/localhost/nfd/faces/query/nonsense");
    let data = fetch(&mut face, &question(asked.clone())).await;
    assert_eq!(
        (data.name(), data.content_type()),
        (&asked, ContentType::Nack)
    );
    let response = ControlResponse::decode(&data.content().unwrap()).unwrap();
    assert_eq!(
        (response.code, response.text.as_str()),
        (400, "Malformed filter")
    );
}

#[tokio::test]
async fn routes_are_listed_in_the_rib_with_their_origins_and_in_the_fib_boiled_down() {
    let node = Node::start(NodeConfig::default());
    let mut face = node.application_face().await.unwrap();
    let id = face.id().number();
    for (origin, cost) in [(0, 7), (255, 3)] {
        let parameters = ControlParameters {
            origin: Some(origin),
            cost: Some(cost),
            expiration: (origin == 0).then(|| std::time::Duration::from_secs(100)),
            ..about("/a")
        };
        let command = command("/localhost/nfd/rib/register", &parameters);
        assert_eq!(exchange(&mut face, &command).await.code, 200);
    }
    let rib: Vec<RibEntry> = list(&mut face, "/localhost/nfd/rib/list").await;
    assert_eq!((rib.len(), &rib[0].prefix), (1, &name("/a")));
    let [first, second] = rib[0].routes[..] else {
        panic!("{rib:?}");
    };
    assert_eq!(
        (first.face, first.origin, first.cost, first.flags),
        (id, 0, 7, 1)
    );
    assert!((90_000..=100_000).contains(&first.expiration_millis.unwrap()));
    let forever = RibRoute {
        face: id,
        origin: 255,
        cost: 3,
        flags: 1,
        expiration_millis: None,
    };
    assert_eq!(second, forever);
    let fib: Vec<FibEntry> = list(&mut face, "/localhost/nfd/fib/list").await;
    let [route, management] = &fib[..] else {
        panic!("{fib:?}");
    };
    let hop = NextHopRecord { face: id, cost: 3 };
    assert_eq!(
        (&route.prefix, &route.next_hops[..]),
        (&name("/a"), &[hop][..])
    );
    assert_eq!(management.prefix, name("/localhost/nfd"));
}

#[tokio::test]
async fn the_strategy_of_all_names_is_listed_even_if_nobody_chose_it() {
    let node = Node::start(NodeConfig::default());
    let mut face = node.application_face().await.unwrap();
    let uri = "/localhost/nfd/strategy-choice/list";
    let choice = |prefix: &str, word: &str, interests, satisfied| StrategyChoice {
        prefix: name(prefix),
        strategy: name(&format!("/localhost/nfd/strategy/{word}/v=5")),
        counts: Some(StrategyCounts {
            interests,
            satisfied,
            ..StrategyCounts::default()
        }),
    };
    // The question itself, and the second time the first one's answer.
    for satisfied in [0, 1] {
        let best_route = choice("/", "best-route", satisfied + 1, satisfied);
        assert_eq!(list::<StrategyChoice>(&mut face, uri).await, [best_route]);
    }
    node.set_strategy(&name("/"), StrategyKind::Multicast)
        .unwrap();
    node.set_strategy(&name("/a"), StrategyKind::BestRoute)
        .unwrap();
    let expected = [
        choice("/", "multicast", 1, 0),
        choice("/a", "best-route", 0, 0),
    ];
    assert_eq!(list::<StrategyChoice>(&mut face, uri).await, expected);
}

/// 64 MiB are 8192 packets of 8 KiB. The question itself is the miss.
#[tokio::test]
async fn the_content_store_and_the_node_are_told_as_they_are() {
    let node = Node::start(NodeConfig::default());
    let mut face = node.application_face().await.unwrap();
    let store: Vec<CsInfo> = list(&mut face, "/localhost/nfd/cs/info").await;
    let expected = CsInfo {
        capacity: 8_192,
        flags: 3,
        entries: 0,
        hits: 0,
        misses: 1,
        memory: Some(0),
        memory_capacity: Some(64 << 20),
    };
    assert_eq!(store, [expected]);
    let before = Clock::new().wall().as_micros() / 1_000;
    let content = content(&mut face, "/localhost/nfd/status/general").await;
    let status = GeneralStatus::decode(&content).unwrap();
    assert!(status.version.starts_with("namecast-"));
    assert!(status.current_millis >= before && status.start_millis <= status.current_millis);
    assert_eq!(
        (status.fib_entries, status.pit_entries, status.cs_entries),
        (1, 1, 0)
    );
    // Two questions in, each sent on to management; one answer came back and went out.
    assert_eq!((status.in_interests, status.out_interests), (2, 2));
    assert_eq!((status.in_data, status.out_data), (1, 1));
    assert_eq!(
        (status.satisfied_interests, status.unsatisfied_interests),
        (1, 0)
    );
}

/// 300 routes of 40 octets and more are over 8000 octets: several segments, which read back as one list.
#[tokio::test]
async fn a_long_list_comes_in_segments() {
    let node = Node::start(NodeConfig::default());
    let mut face = node.application_face().await.unwrap();
    let id = face.id();
    for number in 0..300 {
        let prefix = format!("/a-prefix-that-is-not-short/{number:03}");
        node.add_route(name(&prefix), id, number).await.unwrap();
    }
    let uri = "/localhost/nfd/fib/list";
    let first = first_segment(&mut face, uri).await;
    assert_eq!(first.content().unwrap().len(), 8_000);
    let entries: Vec<FibEntry> = list(&mut face, uri).await;
    assert_eq!(
        (entries.len(), &entries[0].prefix),
        (301, &name("/localhost/nfd"))
    );
    for (number, entry) in entries[1..].iter().enumerate() {
        assert_eq!(
            entry.prefix,
            name(&format!("/a-prefix-that-is-not-short/{number:03}"))
        );
        assert_eq!(entry.next_hops[0].cost, number as u64);
    }
}

/// As python-ndn asks: the answer is below the name with the digest.
#[tokio::test]
async fn a_signed_question_is_answered_below_its_name() {
    let node = Node::start(NodeConfig::default());
    let mut face = node.application_face().await.unwrap();
    let signed = Interest::builder(name("/localhost/nfd/faces/list"))
        .can_be_prefix()
        .sign(
            Nonce(key_store::random()),
            &DigestSigner,
            &DigestSigner.info(),
        );
    let data = fetch(&mut face, &signed).await;
    assert!(signed.name().is_prefix_of(data.name()));
    let faces: Vec<FaceStatus> = decode_items(&data.content().unwrap()).unwrap();
    assert_eq!(faces.len(), 2);
}
