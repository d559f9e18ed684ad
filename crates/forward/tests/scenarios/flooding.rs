//! Faces that fill the PIT, and stay or leave: everybody else goes on.

use core::time::Duration;

use bytes::Bytes;
use namecast_forward::{Config, DropReason, FaceConfig, FaceId, Forwarder, PitConfig, Scope};
use namecast_packet::lp::NackReason;
use namecast_packet::{Component, Interest, InterestTemplate, LpPacket, Name, Nonce, Packet};
use namecast_units::{ByteSize, Instant};

use crate::topology::{Net, data, interest, millis, name};

/// Lifetime that strangers state.
const DAYS: Duration = Duration::from_secs(5 * 86_400);

/// A node whose `/dead` nobody answers, and whose `/live` is answered at once.
struct Flooded {
    node: Forwarder,
    now: Instant,
    producer: FaceId,
    dead: InterestTemplate,
    number: u64,
}

impl Flooded {
    fn new(config: Config) -> Self {
        let mut node = Forwarder::new(config);
        let mut route = |prefix| {
            let face = node.add_face(FaceConfig::application("producer")).unwrap();
            node.add_route(name(prefix), face, 0).unwrap();
            face
        };
        let (producer, _) = (route("/live"), route("/dead"));
        let dead = Interest::builder(name("/dead")).lifetime(DAYS);
        Self {
            node,
            now: Instant::ZERO,
            producer,
            dead: dead.template(Component::SEQUENCE),
            number: 0,
        }
    }

    fn face(&mut self) -> FaceId {
        self.node.add_face(FaceConfig::default()).unwrap()
    }

    /// `count` Interests that nobody answers.
    fn flood(&mut self, from: FaceId, count: usize) {
        for _ in 0..count {
            self.number += 1;
            let frame = self.dead.build(self.number, Nonce([1; 4]));
            self.node.handle_frame(self.now, from, frame.wire().clone());
            while self.node.poll_output().is_some() {}
        }
    }

    /// Whether `face` gets Data for an Interest that the producer answers after `delay`, during which `meanwhile` happens.
    fn is_served(&mut self, face: FaceId, meanwhile: impl FnOnce(&mut Self)) -> bool {
        self.number += 1;
        let uri = format!("/live/{}", self.number);
        let wire = interest(&uri, 1).wire().clone();
        self.node.handle_frame(self.now, face, wire);
        meanwhile(self);
        while self.node.poll_output().is_some() {}
        let answer = data(&uri).wire().clone();
        self.node.handle_frame(self.now, self.producer, answer);
        core::iter::from_fn(|| self.node.poll_output()).any(|sent| sent.face == face)
    }
}

/// Twice as many Interests as the table holds, from 1, 4 and 256 faces, which stay or leave at once: the next face's Interest is
/// answered without any time passing, and where they left nothing of theirs is left.
#[test]
fn faces_that_fill_the_table_and_stay_or_leave_harm_nobody() {
    let capacity = Config::default().pit.capacity;
    for count in [1, 4, 256] {
        for leave in [false, true] {
            let mut flooded = Flooded::new(Config::default());
            let faces: Vec<_> = (0..count).map(|_| flooded.face()).collect();
            for &face in &faces {
                flooded.flood(face, 2 * capacity / count);
            }
            let share = capacity.min(count * Config::default().pit.face_capacity);
            assert_eq!(flooded.node.pending_interests(), share);
            if leave {
                let now = flooded.now;
                faces
                    .iter()
                    .for_each(|&face| flooded.node.remove_face(now, face));
                assert_eq!(flooded.node.pending_interests(), 0);
            }
            let newcomer = flooded.face();
            assert!(flooded.is_served(newcomer, |_| {}), "{count} {leave}");
            // What stays is gone when the bound of a stranger's lifetime is over.
            flooded.now += Config::default().pit.max_nonlocal_lifetime;
            flooded.node.handle_timeout(flooded.now);
            assert_eq!(flooded.node.pending_interests(), 0);
        }
    }
}

/// 20 faces have 50 Interests each answered, each 4 ms after it came; meanwhile 1, 4 or 64 others send 2000 Interests, which is 2.5
/// times what the table holds.
#[test]
fn a_flood_of_twice_the_table_costs_others_nothing() {
    for count in [1, 4, 64] {
        let mut flooded = Flooded::new(Config {
            pit: PitConfig {
                capacity: 800,
                face_capacity: 200,
                ..PitConfig::default()
            },
            ..Config::default()
        });
        let flooding: Vec<_> = (0..count).map(|_| flooded.face()).collect();
        let others: Vec<_> = (0..20).map(|_| flooded.face()).collect();
        let mut served = 0;
        for round in 0..50 {
            for &other in &others {
                served += usize::from(flooded.is_served(other, |flooded| {
                    for part in 0..40 {
                        flooded.flood(flooding[(round + part) % count], 2_000 / 40);
                    }
                    flooded.now += millis(4);
                }));
            }
        }
        assert!(served >= 950, "{count}: {served} of 1000");
    }
}

/// Of three faces that fill a table of 10 the one with 6 loses what it has waited for longest, and is told; the others, whose
/// Interests are older, lose nothing.
#[test]
fn the_longest_waiting_interest_of_who_has_most_gives_way() {
    let mut net = Net::with(Config {
        pit: PitConfig {
            capacity: 10,
            ..PitConfig::default()
        },
        ..Config::default()
    });
    let faces = [(); 3].map(|()| net.face(0, FaceConfig::default()));
    let producer = net.app(0);
    net.route(0, "/", producer.1, 0);
    let mut asks = |face: usize, numbers: core::ops::Range<u32>| {
        numbers.for_each(|number| net.ask(faces[face], &interest(&format!("/{number}"), number)));
    };
    asks(0, 0..2);
    asks(1, 2..4);
    asks(2, 4..10);
    asks(0, 10..11);
    asks(1, 11..12);
    let nacked = net.seen(faces[2]);
    let nacked: Vec<_> = nacked
        .into_iter()
        .map(|seen| (seen.header.nack, seen.packet))
        .collect();
    let expected = [4, 5].map(|number| {
        let interest = interest(&format!("/{number}"), number);
        (Some(NackReason::Congestion), Packet::Interest(interest))
    });
    assert_eq!(nacked, expected);
    let dropped = |face| {
        let counters = net.nodes[0].face_counters(face).unwrap();
        counters.drops.get(DropReason::PitFull)
    };
    assert_eq!(faces.map(|(_, face)| dropped(face)), [0, 0, 2]);
    assert_eq!(net.nodes[0].forwarder.pending_interests(), 10);
    for number in [0, 3, 10, 11] {
        net.answer(producer, &data(&format!("/{number}")));
    }
    assert_eq!((net.data(faces[0]).len(), net.data(faces[1]).len()), (2, 2));
}

/// What the flooding face asked for first and another face waits for as well is the other's from then on.
#[test]
fn an_interest_that_gives_way_stays_for_others_who_wait() {
    for leave in [false, true] {
        let mut net = Net::with(Config {
            pit: PitConfig {
                capacity: 10,
                ..PitConfig::default()
            },
            ..Config::default()
        });
        let faces = [(); 2].map(|()| net.face(0, FaceConfig::default()));
        let producer = net.app(0);
        net.route(0, "/", producer.1, 0);
        net.ask(faces[0], &interest("/both", 1));
        net.ask(faces[1], &interest("/both", 2));
        let flood = if leave { 1..2 } else { 1..20 };
        flood.for_each(|number| net.ask(faces[0], &interest(&format!("/{number}"), number)));
        if leave {
            let now = net.now;
            net.nodes[0].remove_face(now, faces[0].1);
            assert_eq!(net.nodes[0].forwarder.pending_interests(), 1);
        }
        net.answer(producer, &data("/both"));
        assert_eq!(net.data(faces[1]), [data("/both")]);
    }
}

/// Where memory is short, it counts and not the number: one face with 40 large Interests makes room for them by its own, and
/// another keeps 100 small ones.
#[test]
fn who_has_most_memory_gives_way_where_memory_is_short() {
    let mut net = Net::with(Config {
        pit: PitConfig {
            max_size: ByteSize::bytes(128 << 10),
            ..PitConfig::default()
        },
        ..Config::default()
    });
    let [small, large] = [(); 2].map(|()| net.face(0, FaceConfig::default()));
    let producer = net.app(0);
    net.route(0, "/", producer.1, 0);
    for number in 0..100 {
        net.ask(small, &interest(&format!("/small/{number}"), number));
    }
    for number in 0..40 {
        let large_name = name(&format!("/large/{number}/{}", "x".repeat(4_000)));
        net.ask(
            large,
            &Interest::builder(large_name).build(Nonce::from(number)),
        );
    }
    for number in 0..100 {
        net.answer(producer, &data(&format!("/small/{number}")));
    }
    assert_eq!(net.data(small).len(), 100);
    let dropped = |(_, face)| {
        let counters = net.nodes[0].face_counters(face).unwrap();
        counters.drops.get(DropReason::PitFull)
    };
    assert_eq!(dropped(small), 0);
    // Beside 100 of some 460 octets there is room for about 19 of 4400.
    assert!((18..=24).contains(&dropped(large)), "{}", dropped(large));
}

/// 20 s stated: from another host it waits for 10 s, from this one for all of them.
#[test]
fn interests_from_other_hosts_wait_for_ten_seconds_at_most() {
    for (scope, seconds) in [(Scope::NonLocal, 10), (Scope::Local, 20)] {
        let mut net = Net::new(1);
        let config = FaceConfig {
            scope,
            ..FaceConfig::default()
        };
        let (consumer, producer) = (net.face(0, config), net.app(0));
        net.route(0, "/", producer.1, 0);
        let long = Interest::builder(name("/long")).lifetime(millis(20_000));
        net.ask(consumer, &long.build(Nonce::from(1)));
        net.run_for(millis(seconds * 1_000 - 1));
        assert_eq!(net.nodes[0].forwarder.pending_interests(), 1);
        net.run_for(millis(1));
        assert_eq!(net.nodes[0].forwarder.pending_interests(), 0);
    }
}

/// A Nack for the last face that waits ends the entry, although another upstream was asked, too.
#[test]
fn an_entry_that_nobody_waits_for_any_more_goes() {
    let mut node = Forwarder::new(Config::default());
    let faces = [(); 2].map(|()| node.add_face(FaceConfig::default()).unwrap());
    // Each is the other's upstream.
    faces
        .iter()
        .for_each(|&face| node.add_route(Name::root(), face, 0).unwrap());
    let send = |node: &mut Forwarder, face, frame: Bytes| {
        node.handle_frame(Instant::ZERO, face, frame);
        while node.poll_output().is_some() {}
    };
    send(&mut node, faces[0], interest("/p", 1).wire().clone());
    assert_eq!(node.pending_interests(), 1);
    let refused = LpPacket {
        nack: Some(NackReason::NoRoute),
        ..LpPacket::carrying(interest("/p", 1).wire().clone())
    };
    send(&mut node, faces[1], refused.encode());
    assert_eq!(node.pending_interests(), 0);
}
