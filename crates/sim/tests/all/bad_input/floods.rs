//! More packets than anybody asked for.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use bytes::Bytes;
use namecast_packet::lp::NackReason;
use namecast_packet::{Data, Interest, LpPacket, Name, Nonce};
use namecast_sim::Application;
use namecast_sim::live::Media;
use namecast_stream::{SampleClass, SegmentId, SegmentKind, StreamNames};
use namecast_units::Random;

use crate::bad_input::stage::{LOSSES, Stage, viewer};
use crate::bad_input::studio::{Changed, FIRST, Studio, wrong_key};
use crate::live_world::{ms, root};

/// Names that a watcher knows: segments near what it pulls, metadata, catalogue, key, and something else.
fn name(random: &mut Random, near: u64) -> Name {
    let names = StreamNames::new(root());
    let rung = names.rung("video", "1M");
    let kinds = [SegmentKind::Data, SegmentKind::Parity];
    match random.below(8) {
        0 => names.metadata_version(random.next_u64()),
        1 => names.catalogue_segment(random.below(3), random.below(3)),
        2 => root()
            .builder()
            .generic("KEY")
            .generic("1")
            .generic("self")
            .version(1)
            .finish(),
        3 => "/else/where".parse().unwrap(),
        _ => rung.segment(SegmentId {
            class: SampleClass::ALL[random.below(2) as usize],
            sequence: near.saturating_add(random.below(40)).saturating_sub(20),
            kind: kinds[random.below(2) as usize],
            index: random.below(8),
        }),
    }
}

const REASONS: [NackReason; 5] = [
    NackReason::None,
    NackReason::Congestion,
    NackReason::Duplicate,
    NackReason::NoRoute,
    NackReason::Other(77),
];

fn nack(name: Name, nonce: Nonce, reason: NackReason) -> Bytes {
    let interest = Interest::builder(name).build(nonce);
    let nack = LpPacket {
        nack: Some(reason),
        ..LpPacket::carrying(interest.wire().clone())
    };
    nack.encode()
}

/// A node that went mad hands the watcher 2000 packets a second for five seconds, next to those it asked for: Data of all
/// names of another key, Data of the stream over and over, and Nacks.
#[test]
fn a_flood_does_not_stop_playback() {
    for loss in LOSSES {
        let mut stage = Stage::new(loss, viewer());
        let sent = Rc::new(RefCell::new(VecDeque::new()));
        let tap = Rc::clone(&sent);
        let studio = Studio::new(Media::video(), |_, _| {});
        stage.produce(Changed::new(studio, move |_, data| {
            let mut tap = tap.borrow_mut();
            tap.push_back(data.wire().clone());
            if tap.len() > 300 {
                tap.pop_front();
            }
            vec![data.clone()]
        }));
        stage.run_until(ms(10_000));
        let before = stage.stats();
        let mut random = Random::from_seed(7);
        let wrong = wrong_key();
        for step in 0..500 {
            for _ in 0..20 {
                let seconds = 10 + step / 100;
                let near = FIRST + seconds * [1, 29][random.below(2) as usize];
                let name = name(&mut random, near);
                let frame = match random.below(3) {
                    0 => {
                        let nonce = Nonce::from(random.next_u64() as u32);
                        nack(name, nonce, REASONS[random.below(5) as usize])
                    }
                    1 => {
                        let mut content = vec![0; random.below(1_200) as usize];
                        random.fill(&mut content);
                        let data = Data::builder(name).content(content).sign(&wrong);
                        data.wire().clone()
                    }
                    _ => {
                        let sent = sent.borrow();
                        sent[random.below(sent.len() as u64) as usize].clone()
                    }
                };
                stage.with_watcher(|watcher, now| watcher.handle_frame(now, frame));
            }
            stage.run_until(ms(10_000 + (step + 1) * 10));
        }
        stage.run_until(ms(20_000));
        let after = stage.stats();
        stage.assert_steady(ms(10_000)..ms(15_000));
        let unexpected = after.packets_unexpected - before.packets_unexpected;
        let bad = after.verification_failures - before.verification_failures;
        let nacked = after.interests_nacked - before.interests_nacked;
        // Nearly all of the 10 000 are dropped for not being asked for.
        assert!((7_500..=10_300).contains(&unexpected), "{unexpected}");
        assert!((1..=200).contains(&bad), "{bad}");
        assert!((500..=2_000).contains(&nacked), "{nacked}");
        let peak = stage.peak.consumers;
        assert!(peak.samples <= 40 && peak.outstanding <= 200, "{peak:?}");
        stage.assert_steady(ms(16_000)..ms(19_500));
        stage.assert_decodable();
    }
}
