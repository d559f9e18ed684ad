//! Whatever comes in, the node stays whole.

use core::time::Duration;

use bytes::Bytes;
use namecast_forward::{
    AsfConfig, Config, ContentStoreConfig, DeadNonceConfig, DropReason, FaceConfig, FaceId, Keep,
    LearningConfig, LinkConfig, Node, PitConfig, ReassemblyConfig, StrategyKind,
};
use namecast_packet::lp::NackReason;
use namecast_packet::signature::NullSigner;
use namecast_packet::tlv::Writer;
use namecast_packet::{Component, Data, Interest, LpPacket, Name, Nonce, PrefixAnnouncement};
use namecast_units::{ByteSize, Instant, Random};

use crate::topology::{data, interest, millis, name};

const KINDS: [StrategyKind; 6] = [
    StrategyKind::BestRoute,
    StrategyKind::Multicast,
    StrategyKind::Random,
    StrategyKind::Weighted,
    StrategyKind::Asf(AsfConfig::DEFAULT),
    StrategyKind::SelfLearning,
];

/// A node with small bounds, so that all of them are met.
fn small() -> Config {
    Config {
        pit: PitConfig {
            capacity: 20,
            face_capacity: 15,
            ..PitConfig::default()
        },
        content_store: ContentStoreConfig::with_capacity(ByteSize::bytes(5_000)),
        dead_nonces: DeadNonceConfig {
            capacity: 10,
            ..DeadNonceConfig::default()
        },
        link: LinkConfig {
            max_output_queue: 50,
            reassembly: ReassemblyConfig {
                max_packets: 4,
                max_octets: ByteSize::bytes(4_000),
                ..ReassemblyConfig::default()
            },
            ..LinkConfig::default()
        },
        max_measurements: 2,
        max_name_components: 8,
        learning: LearningConfig {
            max_routes: 2,
            ..LearningConfig::default()
        },
        ..Config::default()
    }
}

fn random_name(random: &mut Random) -> Name {
    let depth = 1 + random.below(4);
    let words = ["a", "b", "localhost", "localhop"];
    let mut name = (0..depth).fold(Name::root(), |name, _| {
        let word = words[usize::try_from(random.below(40)).unwrap().min(39) / 13];
        name.child(Component::generic(word))
    });
    if random.chance(0.1) {
        let digest = Data::builder(name.clone())
            .sign(&NullSigner)
            .implicit_digest();
        name = name.child(Component {
            kind: Component::IMPLICIT_DIGEST,
            value: &digest,
        });
    }
    name
}

/// A valid frame of any kind, often with link header fields.
fn random_frame(random: &mut Random) -> Vec<u8> {
    let name = random_name(random);
    let announced = name.prefix(1 + random.below(2) as usize);
    let is_data = random.chance(0.4);
    let fragment = if is_data {
        let freshness = millis(random.below(3) * 50);
        let content = vec![0; random.below(800) as usize];
        Data::builder(name)
            .freshness(freshness)
            .content(content)
            .sign(&NullSigner)
            .wire()
            .clone()
    } else {
        let mut builder = Interest::builder(name).lifetime(millis(random.below(200)));
        if random.chance(0.3) {
            builder = builder.can_be_prefix();
        }
        if random.chance(0.3) {
            builder = builder.must_be_fresh();
        }
        if random.chance(0.3) {
            builder = builder.hop_limit(random.below(3) as u8);
        }
        builder
            .build(Nonce::from(random.below(30) as u32))
            .wire()
            .clone()
    };
    let mut packet = LpPacket::carrying(fragment);
    if is_data && random.chance(0.5) {
        let expiration = Duration::from_secs(random.below(10));
        let announcement = PrefixAnnouncement::sign(&announced, 1, expiration, None, &NullSigner);
        packet.prefix_announcement = Some(announcement.data().wire().clone());
    }
    if random.chance(0.5) {
        packet.non_discovery = random.chance(0.1);
        packet.pit_token = random.chance(0.3).then(|| Bytes::from_static(b"token!"));
        packet.nack = random.chance(0.2).then_some(NackReason::Congestion);
        packet.next_hop_face = random.chance(0.1).then(|| 254 + random.below(6));
        packet.no_cache = random.chance(0.1);
        packet.congestion_mark = random.below(2);
        if random.chance(0.3) {
            packet.sequence = Some(random.below(20));
            packet.fragment_count = Some(1 + random.below(4));
            packet.fragment_index = random.below(packet.fragment_count.unwrap());
        }
    }
    packet.encode().to_vec()
}

/// Frames of one run.
const STEPS: usize = 3_000;

/// So many runs that they take `NAMECAST_FRAMES` frames, if that is set: 100 million take minutes in a release build.
fn runs() -> u64 {
    let frames = std::env::var("NAMECAST_FRAMES").ok();
    let frames = frames.and_then(|frames| frames.parse::<u64>().ok());
    frames.map_or(40, |frames| frames.div_ceil(STEPS as u64))
}

/// Adds a face of any kind, perhaps with a route to it.
fn random_face(random: &mut Random, node: &mut Node) -> FaceId {
    let mtu = random.chance(0.5).then(|| 64 + random.below(600) as usize);
    let base = match random.chance(0.5) {
        true => FaceConfig::application(""),
        false => FaceConfig::default(),
    };
    let local_fields = random.chance(0.5);
    let config = FaceConfig {
        mtu,
        local_fields,
        ..base
    };
    let face = node.add_face(config).unwrap();
    let prefix = name(["/", "/a", "/a/b", "/b"][random.below(4) as usize]);
    if random.chance(0.5) {
        node.forwarder
            .add_route(prefix, face, random.below(9))
            .unwrap();
    }
    face
}

/// Frames valid, damaged and random, from all kinds of faces, with faces and routes coming and going: no panic, every
/// bound kept, and once all lifetimes are over nothing is pending.
#[test]
fn nothing_that_arrives_breaks_the_node() {
    let (mut measured, mut learned, mut usual) = (0, 0, [0; 3]);
    for seed in 0..runs() {
        let mut random = Random::from_seed(seed);
        let mut node = Node::new(small());
        let mut now = Instant::ZERO;
        let mut faces = Vec::new();
        for step in 0..STEPS {
            while faces.len() < 5 {
                faces.push(random_face(&mut random, &mut node));
            }
            if random.chance(0.003) {
                node.remove_face(now, faces.remove(step % 5));
                continue;
            }
            if random.chance(0.01) {
                let kind = KINDS[step % KINDS.len()];
                node.forwarder
                    .set_strategy(name(["/", "/a"][step / 2 % 2]), kind)
                    .unwrap();
            }
            let mut frame = random_frame(&mut random);
            if random.chance(0.3) {
                let at = random.below(frame.len() as u64) as usize;
                frame[at] ^= 1 << random.below(8);
            }
            if random.chance(0.05) {
                frame.truncate(random.below(frame.len() as u64) as usize);
            }
            now += Duration::from_micros(random.below(5_000));
            node.handle_frame(now, faces[step % 5], Bytes::from(frame));
            if random.chance(0.5) {
                core::iter::from_fn(|| node.poll_output()).for_each(drop);
            }
            // One more is for local names.
            assert!(node.forwarder.pending_interests() <= 21);
            assert!(node.forwarder.content_store().size() <= ByteSize::bytes(5_000));
            assert!(node.forwarder.measured().1 <= 2);
            measured = measured.max(node.forwarder.measured().1);
            let routes = node.forwarder.learned_routes().count();
            assert!(routes <= 2);
            learned = learned.max(routes);
        }
        let counters = node.counters();
        let malformed = counters.drops.get(DropReason::Malformed);
        let seen = [counters.satisfied, counters.content_store_hits, malformed];
        usual
            .iter_mut()
            .zip(seen)
            .for_each(|(sum, count)| *sum += count);
        // A damaged announcement may hold for ever, so end the learning.
        for prefix in ["/", "/a"] {
            node.forwarder
                .set_strategy(name(prefix), StrategyKind::BestRoute)
                .unwrap();
        }
        // A damaged lifetime may be any number, so jump to the end of the longest.
        node.handle_timeout(now + Config::default().pit.max_lifetime);
        assert_eq!(
            (node.forwarder.pending_interests(), node.poll_timeout()),
            (0, None)
        );
        let counters = node.counters();
        assert_eq!(node.forwarder.faces().count(), faces.len());
        assert!(counters.incoming.interests >= counters.satisfied + counters.unsatisfied);
    }
    assert!(usual.iter().all(|&sum| sum > 10 * runs()), "{usual:?}");
    assert_eq!((measured, learned), (2, 2));
}

#[test]
fn random_octets_never_end_a_face() {
    let mut random = Random::from_seed(11);
    let mut node = Node::new(Config::default());
    let face = node.add_face(FaceConfig::default()).unwrap();
    for _ in 0..20_000 {
        let mut octets = vec![0; random.below(60) as usize];
        random.fill(&mut octets);
        if let Some(first) = octets.first_mut() {
            *first = [5, 6, 100][*first as usize % 3];
        }
        if let Some(second) = octets.len().checked_sub(2) {
            octets[1] = second as u8;
        }
        node.handle_frame(Instant::ZERO, face, Bytes::from(octets));
    }
    assert_eq!(
        node.counters().drops.total(),
        node.counters().drops.get(DropReason::Malformed)
            + node.counters().drops.get(DropReason::MisplacedField)
            + node.counters().drops.get(DropReason::BadFragment)
            + node.counters().drops.get(DropReason::NoRoute)
            + node.counters().drops.get(DropReason::Unsolicited)
    );
    assert!(node.counters().drops.get(DropReason::Malformed) > 10_000);
    let consumer = node.add_face(FaceConfig::default()).unwrap();
    node.forwarder.add_route(name("/"), face, 0).unwrap();
    node.handle_frame(Instant::ZERO, consumer, interest("/p", 1).wire().clone());
    node.handle_frame(Instant::ZERO, face, data("/p").wire().clone());
    assert_eq!(node.counters().satisfied, 1);
}

#[test]
fn what_is_too_large_or_misplaced_is_dropped_by_name() {
    let mut node = Node::new(Config::default());
    let face = node.add_face(FaceConfig::default()).unwrap();
    let mut send = |frame: Bytes| {
        let before = node.counters().drops;
        node.handle_frame(Instant::ZERO, face, frame);
        let after = node.counters().drops;
        let reason = after
            .iter()
            .find(|&(reason, count)| count > before.get(reason));
        reason.map(|(reason, _)| reason)
    };
    let with = |change: fn(&mut LpPacket), packet: Bytes| {
        let mut packet = LpPacket::carrying(packet);
        change(&mut packet);
        packet.encode()
    };
    let (asks, answers) = (interest("/p", 1).wire().clone(), data("/p").wire().clone());
    let huge = Data::builder(name("/p"))
        .content(vec![0; 8_800])
        .sign(&NullSigner);
    let deep = interest(&"/x".repeat(129), 1);
    let digest = Component {
        kind: Component::IMPLICIT_DIGEST,
        value: &[0; 32],
    };
    let digest = Data::builder(name("/p").child(digest)).sign(&NullSigner);
    assert_eq!(send(huge.wire().clone()), Some(DropReason::PacketTooLarge));
    assert_eq!(send(deep.wire().clone()), Some(DropReason::NameTooLong));
    assert_eq!(
        send(digest.wire().clone()),
        Some(DropReason::DigestInDataName)
    );
    assert_eq!(
        send(with(|p| p.no_cache = true, asks.clone())),
        Some(DropReason::MisplacedField)
    );
    assert_eq!(
        send(with(|p| p.next_hop_face = Some(1), answers)),
        Some(DropReason::MisplacedField)
    );
    assert_eq!(
        send(with(|p| p.next_hop_face = Some(1), asks)),
        Some(DropReason::LocalFieldsOff)
    );
    assert_eq!(send(Bytes::new()), Some(DropReason::Malformed));
    // A keep-alive is no error; an acknowledgement is none.
    assert_eq!(send(Bytes::from_static(&[100, 0])), None);
    let acknowledgement = LpPacket {
        acks: vec![1],
        ..LpPacket::default()
    };
    assert_eq!(send(acknowledgement.encode()), None);
    assert_eq!(node.forwarder.face(face).unwrap().counters.keep_alives, 1);
}

/// What tables keep is a matter of memory and time; what comes out is the same.
#[test]
fn nodes_that_keep_frames_and_nodes_that_copy_behave_the_same() {
    let run = |seed, keep, content_store| {
        let mut random = Random::from_seed(seed);
        let mut node = Node::new(Config {
            keep,
            content_store: ContentStoreConfig::with_capacity(content_store),
            ..small()
        });
        let faces = [(); 3].map(|()| node.add_face(FaceConfig::default()).unwrap());
        for (prefix, face) in ["/a", "/b", "/"].into_iter().zip(faces) {
            node.forwarder.add_route(name(prefix), face, 0).unwrap();
        }
        let (mut now, mut sent) = (Instant::ZERO, Vec::new());
        for _ in 0..2_000 {
            now += Duration::from_micros(random.below(5_000));
            let face = faces[random.below(3) as usize];
            node.handle_frame(now, face, random_frame(&mut random).into());
            sent.extend(core::iter::from_fn(|| node.poll_output()));
        }
        (
            sent,
            node.counters(),
            node.forwarder.content_store().packets(),
        )
    };
    for seed in 0..5 {
        // Copies count for a little more, so frames are compared where that decides nothing.
        let (scarce, plenty) = (small().content_store.capacity, ByteSize::mebibytes(8));
        let copies = run(seed, Keep::Copies, scarce);
        assert_eq!(copies, run(seed, Keep::LargeFrames, scarce));
        let frames = run(seed, Keep::Frames, plenty);
        assert_eq!(run(seed, Keep::Copies, plenty), frames);
        assert!(copies.1.satisfied > 10 && copies.1.expired > 10 && copies.0.len() > 100);
    }
}

/// Fragments that never complete hold no more than the bound, and are given up in time.
#[test]
fn a_flood_of_first_fragments_is_bounded() {
    let mut node = Node::new(small());
    let face = node.add_face(FaceConfig::default()).unwrap();
    for number in 0..1_000 {
        let piece = LpPacket {
            sequence: Some(number * 10),
            fragment_count: Some(3),
            fragment: Some(Bytes::from_static(&[5; 100])),
            ..LpPacket::default()
        };
        node.handle_frame(Instant::ZERO, face, piece.encode());
    }
    assert_eq!(node.counters().drops.get(DropReason::ReassemblyFull), 996);
    assert_eq!(node.poll_timeout(), Some(Instant::ZERO + millis(500)));
    node.handle_timeout(Instant::ZERO + millis(500));
    assert_eq!(node.counters().drops.get(DropReason::ReassemblyTimeout), 4);
    assert_eq!(node.poll_timeout(), None);
}

/// Interests that differ only in a digest share nothing that would make one look-up walk over all of them.
#[test]
fn an_interest_flood_costs_octets_up_to_the_bound() {
    let mut node = Node::new(Config {
        pit: PitConfig {
            max_size: ByteSize::bytes(100_000),
            ..PitConfig::default()
        },
        ..Config::default()
    });
    let [consumer, producer] = [(); 2].map(|()| node.add_face(FaceConfig::default()).unwrap());
    node.forwarder.add_route(name("/"), producer, 0).unwrap();
    for number in 0..2_000_u32 {
        let interest = Interest::builder(name("/p"))
            .parameters(number.to_be_bytes().repeat(200))
            .build(Nonce::from(number));
        node.handle_frame(Instant::ZERO, consumer, interest.wire().clone());
        core::iter::from_fn(|| node.poll_output()).for_each(drop);
    }
    // Each takes about 850 octets for the Interest, of which its name is a part, and 360 besides: 82 of them.
    assert!(
        (78..=86).contains(&node.forwarder.pending_interests()),
        "{}",
        node.forwarder.pending_interests()
    );
    let refused = node.counters().drops.get(DropReason::PitFull);
    assert_eq!(refused + node.forwarder.pending_interests() as u64, 2_000);
}

/// Interests that are mostly a link header that is passed over, eight thousand octets of it: the table takes them out of
/// their frames, or it would hold a hundred times what it counts. A header of usual size stays.
#[test]
fn a_long_link_header_is_not_kept_with_the_packet() {
    /// An unknown field that may be passed over.
    const IGNORED: u32 = 952;
    let mut node = Node::new(Config {
        keep: Keep::Frames,
        ..Config::default()
    });
    let [consumer, producer] = [(); 2].map(|()| node.add_face(FaceConfig::default()).unwrap());
    node.forwarder.add_route(name("/"), producer, 0).unwrap();
    for (nonce, header, is_kept) in [(1, 8_000, false), (2, 40, true)] {
        let interest = interest(&format!("/p/{nonce}"), nonce);
        let mut frame = Writer::default();
        frame.nested(100, |fields| {
            fields.element(IGNORED, &vec![0; header]);
            fields.element(80, interest.wire());
        });
        let frame = frame.finish();
        node.handle_frame(Instant::ZERO, consumer, frame.clone());
        let sent = node.poll_output().unwrap().frame;
        assert_eq!(&sent, interest.wire());
        let is_in_frame = frame.as_ptr_range().contains(&sent.as_ptr());
        assert_eq!(is_in_frame, is_kept, "{header}");
    }
    assert_eq!(node.forwarder.pending_interests(), 2);
}

/// The table is full of one face's Interests; others still get an answer where it matters.
#[test]
fn a_full_table_has_room_for_management() {
    let mut node = Node::new(Config {
        pit: PitConfig {
            capacity: 64,
            face_capacity: 64,
            ..PitConfig::default()
        },
        ..Config::default()
    });
    let [flooding, producer] = [(); 2].map(|()| node.add_face(FaceConfig::default()).unwrap());
    let [operator, manager] = [(); 2].map(|()| node.add_face(FaceConfig::application("")).unwrap());
    node.forwarder.add_route(name("/"), producer, 0).unwrap();
    node.forwarder
        .add_route(name("/localhost"), manager, 0)
        .unwrap();
    let mut ask = |face, uri: &str, nonce| {
        let before = node.forwarder.pending_interests();
        node.handle_frame(Instant::ZERO, face, interest(uri, nonce).wire().clone());
        node.forwarder.pending_interests() > before
    };
    let flood = (0..100).filter(|&nonce| ask(flooding, &format!("/p/{nonce}"), nonce));
    assert_eq!(flood.count(), 64);
    assert!(!ask(operator, "/q", 200));
    assert!(ask(operator, "/localhost/nfd/status/general", 201));
    assert!(!ask(operator, "/localhost/nfd/faces/list", 202));
}
