//! One face cannot take what is everybody's.

use namecast_forward::{
    Config, ContentStoreConfig, DropReason, FaceConfig, FaceId, Forwarder, InterestRate, PitConfig,
    UnsolicitedData,
};
use namecast_packet::lp::NackReason;
use namecast_packet::{Interest, Nonce};
use namecast_units::Instant;

use crate::topology::{Net, data, interest, millis, name};

/// Interests that are out for good before the next ones come.
const SILENCE: core::time::Duration = millis(10_000);

fn quota(face_capacity: usize) -> Net {
    Net::with(Config {
        pit: PitConfig {
            face_capacity,
            ..PitConfig::default()
        },
        ..Config::default()
    })
}

/// A quota of 3: the fourth Interest is refused, a repetition of the third is none of that, and what Data, a Nack or time
/// ends makes room again.
#[test]
fn a_face_has_no_more_pending_interests_than_its_quota() {
    let mut net = quota(3);
    let (flooding, other, producer) = (net.app(0), net.app(0), net.app(0));
    net.route(0, "/", producer.1, 0);
    let refused = |net: &Net| net.nodes[0].counters().drops.get(DropReason::FaceQuota);
    for number in 0..5 {
        net.ask(flooding, &interest(&format!("/{number}"), number));
    }
    assert_eq!(
        (refused(&net), net.nodes[0].forwarder.pending_interests()),
        (2, 3)
    );
    net.ask(flooding, &interest("/2", 77));
    net.ask(other, &interest("/9", 9));
    net.ask(other, &interest("/2", 10));
    assert_eq!(
        (refused(&net), net.nodes[0].forwarder.pending_interests()),
        (2, 4)
    );
    net.answer(producer, &data("/0"));
    net.nack(producer, &interest("/1", 1), NackReason::NoRoute);
    for number in 10..13 {
        net.ask(flooding, &interest(&format!("/{number}"), number));
    }
    assert_eq!(refused(&net), 3);
    net.run_for(SILENCE);
    assert_eq!(net.nodes[0].forwarder.pending_interests(), 0);
    for number in 20..24 {
        net.ask(flooding, &interest(&format!("/{number}"), number));
    }
    assert_eq!(refused(&net), 4);
}

/// Ten faces request 100 names each, one a millisecond, which are answered at once; meanwhile one more face requests ten times
/// as many names as the PIT holds, which nobody answers. The ten get all, with a quota and without.
#[test]
fn a_flood_of_ten_times_the_pit_takes_nothing_from_others() {
    let answered = |face_capacity| {
        let mut net = Net::with(Config {
            pit: PitConfig {
                capacity: 1_000,
                face_capacity,
                ..PitConfig::default()
            },
            ..Config::default()
        });
        let flooding = net.face(0, FaceConfig::default());
        let (producer, dead_end) = (net.app(0), net.app(0));
        net.route(0, "/live", producer.1, 0);
        net.route(0, "/dead", dead_end.1, 0);
        let others = [(); 10].map(|()| net.face(0, FaceConfig::default()));
        for round in 0..100 {
            for number in 0..100 {
                let name = format!("/dead/{round}/{number}");
                net.ask(flooding, &interest(&name, round * 100 + number));
            }
            for (other, &face) in others.iter().enumerate() {
                let name = format!("/live/{other}/{round}");
                net.ask(face, &interest(&name, round));
                net.answer(producer, &data(&name));
            }
            net.run_for(millis(1));
        }
        net.nodes[0].counters().satisfied
    };
    assert_eq!(answered(500), 1_000);
    assert_eq!(answered(1_000), 1_000);
}

/// 100 a second, 10 at once: in the first instant ten pass, in the next second a hundred, however many come.
#[test]
fn a_face_sends_no_more_interests_than_its_rate() {
    let mut node = Forwarder::new(Config {
        pit: PitConfig {
            face_interest_rate: Some(InterestRate {
                per_second: 100,
                burst: 10,
            }),
            ..PitConfig::default()
        },
        ..Config::default()
    });
    let faces = [(); 2].map(|()| node.add_face(FaceConfig::default()).unwrap());
    let send = |node: &mut Forwarder, at, face: FaceId, number: u32| {
        let frame = interest(&format!("/{number}"), number).wire().clone();
        node.handle_frame(at, face, frame);
    };
    let received = |node: &Forwarder, face| node.face(face).unwrap().counters.incoming.interests;
    for number in 0..50 {
        send(&mut node, Instant::ZERO, faces[0], number);
    }
    assert_eq!(received(&node, faces[0]), 10);
    for number in 0..1_000 {
        send(
            &mut node,
            Instant::ZERO + millis(number + 1),
            faces[0],
            100 + number as u32,
        );
    }
    assert_eq!(received(&node, faces[0]), 110);
    assert_eq!(node.counters().drops.get(DropReason::InterestRate), 940);
    // The other face's bucket is its own.
    send(&mut node, Instant::ZERO, faces[1], 9_999);
    assert_eq!(received(&node, faces[1]), 1);
}

/// What an application sends unasked is kept for who asks later, if the policy admits local Data; it is not sent on.
#[test]
fn unsolicited_data_are_cached_where_the_policy_admits_them() {
    let mut net = Net::with(Config {
        content_store: ContentStoreConfig {
            unsolicited: UnsolicitedData::AdmitLocal,
            ..ContentStoreConfig::default()
        },
        ..Config::default()
    });
    let (local, remote) = (net.app(0), net.face(0, FaceConfig::default()));
    let consumer = net.app(0);
    net.answer(local, &data("/early"));
    net.answer(remote, &data("/forged"));
    let counters = net.nodes[0].counters();
    assert_eq!(counters.unsolicited_cached, 1);
    assert_eq!(counters.drops.get(DropReason::Unsolicited), 1);
    assert_eq!(counters.outgoing.data, 0);
    net.ask(consumer, &interest("/early", 1));
    net.ask(consumer, &interest("/forged", 2));
    let counters = net.nodes[0].counters();
    assert_eq!(
        (counters.content_store_hits, counters.outgoing.data),
        (1, 1)
    );
}

/// A consumer that waits for 2 s and one that waits for 1 ms request the same 200 names through one neighbour, in either order. The
/// producer answers after 50 ms: the patient one gets all.
#[test]
fn who_waits_briefly_takes_nothing_from_who_waits_long() {
    for brief_is_first in [true, false] {
        for repeats_nonces in [true, false] {
            let mut net = Net::new(2);
            let (patient, brief, producer) = (net.app(1), net.app(1), net.app(0));
            let (upstream, _) = net.link(1, 0);
            net.route(1, "/", upstream, 0);
            net.route(0, "/", producer.1, 0);
            let mut received = 0;
            for number in 0..200 {
                let uri = format!("/{number}");
                let asks = |nonce: u32, lifetime| {
                    let interest = Interest::builder(name(&uri)).lifetime(millis(lifetime));
                    interest.build(Nonce::from(nonce))
                };
                let nonce = |turn: u32| match repeats_nonces {
                    true => 1_000 + number,
                    false => 10_000 * turn + number,
                };
                if brief_is_first {
                    net.ask(brief, &asks(nonce(1), 1));
                }
                net.ask(patient, &asks(number, 2_000));
                for turn in 2..6 {
                    net.run_for(millis(10));
                    net.ask(brief, &asks(nonce(turn), 1));
                }
                net.run_for(millis(10));
                net.answer(producer, &data(&uri));
                net.run_for(millis(5));
                received += net.data(patient).len();
            }
            assert_eq!(received, 200, "{brief_is_first} {repeats_nonces}");
        }
    }
}
