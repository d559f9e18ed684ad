//! Fragments, bounds of queues, extensions: what happens at the edge of a node.

use bytes::Bytes;
use namecast_forward::{AddFaceError, Config, DropReason, FaceConfig, FaceId, LinkConfig, Node};
use namecast_packet::signature::NullSigner;
use namecast_packet::{Data, Interest, LpPacket, Nonce};
use namecast_units::{Instant, Random};

use crate::topology::{Net, data, interest, millis, name};

fn large(length: usize) -> Data {
    Data::builder(name("/p/large"))
        .content(vec![5; length])
        .sign(&NullSigner)
}

#[test]
fn large_data_crosses_links_of_small_mtu() {
    for mtu in [64, 100, 1_200, 1_420, 8_800] {
        let mut net = Net::new(3);
        let narrow = FaceConfig {
            mtu: Some(mtu),
            ..FaceConfig::default()
        };
        let (a, _) = net.link_with(0, 1, narrow.clone());
        let (b, _) = net.link_with(1, 2, narrow);
        let (consumer, producer) = (net.app(0), net.app(2));
        net.route(0, "/", a, 0);
        net.route(1, "/", b, 0);
        net.route(2, "/", producer.1, 0);
        net.ask(consumer, &interest("/p/large", 1));
        net.answer(producer, &large(8_000));
        assert_eq!(net.data(consumer), [large(8_000)], "{mtu}");
        let sent = net.nodes[2].counters().outgoing;
        let least = 8_000 / mtu as u64;
        assert!(
            (least..=2 * least + 2).contains(&sent.frames),
            "{mtu}: {} frames",
            sent.frames
        );
    }
}

/// Frames of several packets, lost with 10 %, doubled with 10 %, and shuffled: each packet whose fragments all arrived
/// comes out once and whole; nothing else does.
#[test]
fn reassembly_survives_loss_duplicates_and_reordering() {
    for seed in 0..50 {
        let mut random = Random::from_seed(seed);
        let mtu = 64 + random.below(1_500) as usize;
        let mut sender = Node::new(Config::default());
        let out = sender
            .add_face(FaceConfig {
                mtu: Some(mtu),
                ..FaceConfig::default()
            })
            .unwrap();
        let app = sender.add_face(FaceConfig::application("")).unwrap();
        sender.forwarder.add_route(name("/"), out, 0).unwrap();
        let mut receiver = Node::new(Config::default());
        let inward = receiver.add_face(FaceConfig::default()).unwrap();
        let sink = receiver.add_face(FaceConfig::application("")).unwrap();
        receiver.forwarder.add_route(name("/"), sink, 0).unwrap();

        let (mut arriving, mut expected) = (Vec::new(), Vec::new());
        for number in 0..20 {
            let parameters = vec![number as u8; random.below(6_000) as usize];
            let interest = Interest::builder(name("/p"))
                .parameters(parameters)
                .build(Nonce::from(number));
            sender.handle_frame(Instant::ZERO, app, interest.wire().clone());
            let mut lost = false;
            while let Some(transmit) = sender.poll_output() {
                assert!(transmit.frame.len() <= mtu);
                let drop = random.chance(0.02);
                lost |= drop;
                let copies = if drop {
                    0
                } else {
                    1 + usize::from(random.chance(0.1))
                };
                arriving.extend(core::iter::repeat_n(transmit.frame, copies));
            }
            if !lost {
                expected.push(interest.wire().clone());
            }
        }
        for index in (1..arriving.len()).rev() {
            arriving.swap(index, random.below(index as u64 + 1) as usize);
        }
        for frame in arriving {
            receiver.handle_frame(Instant::ZERO, inward, frame);
        }
        let mut got: Vec<Bytes> = core::iter::from_fn(|| receiver.poll_output())
            .map(|t| t.frame)
            .collect();
        got.sort();
        // A packet of one frame that came twice is a retransmission with the same Nonce, which is suppressed.
        got.dedup();
        expected.sort();
        let lengths = |all: &[Bytes]| all.iter().map(Bytes::len).collect::<Vec<_>>();
        assert_eq!(lengths(&got), lengths(&expected), "seed {seed}");
        assert!(got == expected, "seed {seed}");
        receiver.handle_timeout(Instant::ZERO + millis(500));
        receiver.handle_timeout(Instant::ZERO + millis(4_000));
        assert_eq!(
            (
                receiver.poll_timeout(),
                receiver.forwarder.pending_interests()
            ),
            (None, 0)
        );
    }
}

#[test]
fn an_incomplete_packet_is_given_up_after_half_a_second_of_silence() {
    for (gap, delivered) in [(499, 1), (500, 0)] {
        let mut net = Net::new(1);
        let (link, producer) = (net.face(0, FaceConfig::default()), net.app(0));
        net.route(0, "/", producer.1, 0);
        let wire = interest("/p/a/longer/name", 1).wire().clone();
        for index in 0..3 {
            let piece = LpPacket {
                sequence: Some(7 + index),
                fragment_index: index,
                fragment_count: Some(3),
                fragment: Some(wire.slice(
                    (index as usize * 10)..if index == 2 {
                        wire.len()
                    } else {
                        (index as usize + 1) * 10
                    },
                )),
                ..LpPacket::default()
            };
            net.send(link, piece.encode());
            if index < 2 {
                // Each fragment starts the time anew.
                net.run_for(millis(gap));
            }
        }
        assert_eq!(net.interests(producer).len(), delivered);
        let timeouts = net.nodes[0]
            .counters()
            .drops
            .get(DropReason::ReassemblyTimeout);
        assert_eq!(timeouts, 2 * (1 - delivered as u64), "{gap}");
    }
}

#[test]
fn an_output_queue_takes_no_more_than_its_bound_and_hurts_no_other_face() {
    let mut node = Node::new(Config {
        link: LinkConfig {
            max_output_queue: 5,
            ..LinkConfig::default()
        },
        ..Config::default()
    });
    let [slow, other, consumer] = [(); 3].map(|()| node.add_face(FaceConfig::default()).unwrap());
    node.forwarder.add_route(name("/slow"), slow, 0).unwrap();
    node.forwarder.add_route(name("/other"), other, 0).unwrap();
    for number in 0..20 {
        node.handle_frame(
            Instant::ZERO,
            consumer,
            interest(&format!("/slow/{number}"), number).wire().clone(),
        );
    }
    node.handle_frame(
        Instant::ZERO,
        consumer,
        interest("/other", 99).wire().clone(),
    );
    let drops = |face| {
        node.face_counters(face)
            .unwrap()
            .drops
            .get(DropReason::OutputQueueFull)
    };
    assert_eq!((drops(slow), drops(other)), (15, 0));
    let sent: Vec<FaceId> = core::iter::from_fn(|| node.poll_output())
        .map(|t| t.face)
        .collect();
    assert_eq!(sent, [slow, slow, slow, slow, slow, other]);
    node.handle_frame(
        Instant::ZERO,
        consumer,
        interest("/slow/x", 100).wire().clone(),
    );
    assert!(
        node.poll_output().is_some(),
        "an emptied queue takes frames again"
    );
}

#[test]
fn counters_add_up() {
    let mut net = Net::new(1);
    let (consumer, producer) = (net.app(0), net.app(0));
    net.route(0, "/", producer.1, 0);
    let (asked, answered) = (interest("/p", 1), data("/p"));
    net.ask(consumer, &asked);
    net.answer(producer, &answered);
    let at = |face| net.nodes[0].face_counters(face).unwrap();
    let (consumer, producer) = (at(consumer.1), at(producer.1));
    assert_eq!(
        (consumer.incoming.interests, consumer.outgoing.data),
        (1, 1)
    );
    assert_eq!(
        (producer.outgoing.interests, producer.incoming.data),
        (1, 1)
    );
    assert_eq!(
        consumer.incoming.octets.as_bytes(),
        asked.wire().len() as u64
    );
    assert_eq!(
        producer.incoming.octets.as_bytes(),
        answered.wire().len() as u64
    );
    let all = net.nodes[0].counters();
    assert_eq!((all.incoming.frames, all.outgoing.frames), (2, 2));
    assert_eq!(
        all.incoming.octets,
        consumer.incoming.octets + producer.incoming.octets
    );
    assert_eq!(
        (all.content_store_misses, all.satisfied, all.drops.total()),
        (1, 1, 0)
    );
}

/// Marks outgoing Data and refuses Interests under `/refused`.
/// Frames are numbered from the change on, and cut to the new MTU; without reliability nothing is due for them any more.
#[test]
fn a_face_changes_while_it_lives() {
    let mut node = Node::new(Config::default());
    let app = node.add_face(FaceConfig::application("")).unwrap();
    let out = node.add_face(FaceConfig::default()).unwrap();
    node.forwarder.add_route(name("/"), out, 0).unwrap();
    let send = |node: &mut Node, number| {
        let interest = Interest::builder(name(&format!("/p/{number}")))
            .parameters(vec![0; 150])
            .build(Nonce::from(number));
        node.handle_frame(Instant::ZERO, app, interest.wire().clone());
        let frames = core::iter::from_fn(|| node.poll_output());
        frames.map(|sent| sent.frame).collect::<Vec<_>>()
    };
    let is_numbered = |frame: &Bytes| {
        let packet = LpPacket::decode(frame.clone()).unwrap();
        packet.tx_sequence.is_some()
    };
    let [bare] = <[Bytes; 1]>::try_from(send(&mut node, 1)).unwrap();
    assert!(!is_numbered(&bare));
    let due = node.poll_timeout();
    let reliable = FaceConfig {
        reliability: true,
        mtu: Some(120),
        ..FaceConfig::default()
    };
    node.reconfigure_face(out, reliable.clone()).unwrap();
    let frames = send(&mut node, 2);
    assert!(frames.len() >= 2, "{frames:?}");
    let fits = |frame: &Bytes| frame.len() <= 120 && is_numbered(frame);
    assert!(frames.iter().all(fits), "{frames:?}");
    assert!(node.poll_timeout() < due);
    let narrow = FaceConfig {
        mtu: Some(100),
        ..reliable
    };
    node.reconfigure_face(out, narrow).unwrap();
    assert!(send(&mut node, 3).iter().all(|frame| frame.len() <= 100));
    node.reconfigure_face(out, FaceConfig::default()).unwrap();
    assert_eq!(node.poll_timeout(), due);
    assert!(!is_numbered(&send(&mut node, 4)[0]));
    let tiny = FaceConfig {
        mtu: Some(63),
        ..FaceConfig::default()
    };
    let refused = node.reconfigure_face(out, tiny);
    assert_eq!(refused, Err(AddFaceError::MtuTooSmall(63)));
    assert_eq!(send(&mut node, 5).len(), 1);
}
