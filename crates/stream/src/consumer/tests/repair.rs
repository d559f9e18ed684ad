//! Repairs by the stream's clock: what is requested when segments do not come.

use std::collections::BTreeSet;

use super::*;
use crate::segmenter::SegmenterConfig;

use SegmentKind::{Data as D, LeadCopy as C, Parity as P};

/// When delta sample `sequence` is published, in milliseconds: a period after the one before, the first one 40 ms after
/// the key sample, which is published at 0. Everything takes 30 ms to arrive.
const fn published(sequence: u64) -> u64 {
    (sequence - 99) * 40
}

const fn arrives(sequence: u64) -> u64 {
    published(sequence) + 30
}

/// Repairs as by default, where key sample 5 and delta samples up to 103, each of three data segments and two of parity,
/// came in time. Deltas are due 3 ms after they arrive at best.
fn warm() -> Desk {
    warm_with(Config::default())
}

fn warm_with(config: Config) -> Desk {
    let mut desk = Desk::repairing(config);
    desk.segmenter = Segmenter::new(
        names(),
        SegmenterConfig {
            segment_size: 1_000,
            parity_percent: 50,
        },
    );
    desk.consumer
        .start(at(0), &latest(5, 99), StartAt::NewestKey);
    let mut asks: Vec<_> = desk.asks().into_iter().map(|ask| (at(0), ask)).collect();
    desk.give_key(at(30));
    for sequence in 100..=103 {
        let next = at(arrives(sequence));
        while let Some(now) = desk.consumer.poll_timeout().filter(|now| *now < next) {
            desk.consumer.handle_timeout(now);
            asks.extend(desk.asks().into_iter().map(|ask| (now, ask)));
        }
        let id = SegmentId::lead(SampleClass::Delta, sequence);
        let (sent_at, lead) = asks.iter().find(|(_, ask)| ask.id == id).unwrap();
        // At the producer 30 ms after it left, where it waits for what is not published yet: a delay of 60 ms, always.
        let waited_for = at(published(sequence)).since(*sent_at + ms(30));
        let asked = Some(Asked {
            waited_for,
            nonce: lead.nonce,
        });
        let stamp = Stamp {
            asked,
            ..stamp(published(sequence))
        };
        let segments = desk.cut((SampleClass::Delta, sequence), 5, 2_500, stamp);
        for data in &segments.data {
            desk.give(at(arrives(sequence)), data);
        }
    }
    // A steady way.
    (0..30).for_each(|_| {
        desk.consumer
            .schedule_mut()
            .on_round_trip(at(arrives(103)), RTT)
    });
    desk
}

/// Delta sample `sequence`, published in answer to somebody else, so that it measures nothing.
fn segments(desk: &mut Desk, sequence: u64) -> Segments {
    let asked = Some(Asked {
        waited_for: ms(1),
        nonce: 1.into(),
    });
    let stamp = Stamp {
        asked,
        ..stamp(published(sequence))
    };
    desk.cut((SampleClass::Delta, sequence), 5, 2_500, stamp)
}

/// Interests for `sequence` that leave up to `until`, with the times at which they do.
fn asked_until(desk: &mut Desk, sequence: u64, until: u64) -> Vec<(Instant, SegmentKind, u64)> {
    let mut asked = Vec::new();
    let mut take = |desk: &mut Desk, now| {
        let asks = desk.asks();
        let of = asks.iter().filter(|ask| ask.id.sequence == sequence);
        asked.extend(of.map(|ask| (now, ask.id.kind, ask.id.index)));
    };
    while let Some(now) = desk.consumer.poll_timeout().filter(|now| *now <= at(until)) {
        desk.consumer.handle_timeout(now);
        take(desk, now);
    }
    asked
}

#[test]
fn nothing_but_data_is_asked_for_while_nothing_is_lost() {
    let mut desk = Desk::repairing(Config::default());
    desk.consumer
        .start(at(0), &latest(5, 99), StartAt::NewestKey);
    // The newest key sample exists, so that a round trip for what is missing of it would be lost; others do not.
    let asks = desk.asks();
    let ahead = asks.iter().filter(|ask| ask.id.sequence != 5);
    assert!(ahead.clone().count() > 0);
    assert!(ahead.into_iter().all(|ask| ask.id.kind == D));
    let mut desk = warm();
    assert!(desk.asks().iter().all(|ask| ask.id.kind == D));
    let counters = desk.consumer.counters();
    assert_eq!((counters.parity_bytes, counters.repair_bytes), (0, 0));
    assert_eq!(counters.complete, 5);
}

/// Nothing of sample 104 comes, and nothing after it either: it is due 3 ms after it could have been here, and all that
/// was requested of it is retransmitted then, each name once.
#[test]
fn a_sample_that_is_lost_whole_is_noticed_by_the_clock() {
    let mut desk = warm();
    desk.asks();
    let due = arrives(104) + 3;
    assert_eq!(asked_until(&mut desk, 104, due - 1), []);
    let asked = asked_until(&mut desk, 104, due);
    assert!(asked.iter().all(|(now, ..)| *now == at(due)), "{asked:?}");
    let names: BTreeSet<_> = asked
        .iter()
        .map(|&(_, kind, index)| (kind, index))
        .collect();
    assert_eq!(names.len(), asked.len(), "{asked:?}");
    for wanted in [(D, 0), (D, 1), (D, 2)] {
        assert!(names.contains(&wanted), "{asked:?}");
    }
}

/// Sample 104 is published 10 ms after its time, and 105 in time again: 10 ms and a quarter is what 106 is waited for
/// beyond the 3 ms, by the first look and by all that follow it.
#[test]
fn an_encoder_that_does_not_keep_time_is_waited_for() {
    let mut desk = warm();
    desk.asks();
    for (sequence, late) in [(104, 10), (105, 0)] {
        asked_until(&mut desk, sequence, arrives(sequence) + late);
        let asked = Some(Asked {
            waited_for: ms(1),
            nonce: 1.into(),
        });
        let stamp = Stamp {
            asked,
            ..stamp(published(sequence) + late)
        };
        let segments = desk.cut((SampleClass::Delta, sequence), 5, 2_500, stamp);
        for data in &segments.data {
            desk.give(at(arrives(sequence) + late), data);
        }
    }
    desk.asks();
    let due = arrives(106) + 3 + 12;
    assert_eq!(asked_until(&mut desk, 106, due), []);
    assert!(!asked_until(&mut desk, 106, due + 1).is_empty());
}

/// Two of three data segments of sample 104 come. A round trip takes some 60 ms and the target is 150 ms, so one more
/// round can follow the first: it requests the one that is missing. Had the first been the last, it would have requested parity too.
#[test]
fn a_round_that_can_be_repeated_asks_for_little_and_the_last_for_more() {
    let mut desk = warm();
    desk.asks();
    let segments = segments(&mut desk, 104);
    desk.give(at(arrives(104)), &segments.data[0]);
    desk.give(at(arrives(104)), &segments.data[2]);
    let due = arrives(104) + 3;
    let first = asked_until(&mut desk, 104, due);
    assert_eq!(first, [(at(due), D, 1)]);
    let last = asked_until(&mut desk, 104, arrives(104) + 149);
    assert!(last.iter().any(|(_, kind, _)| *kind == P), "{last:?}");
    assert_eq!(desk.consumer.counters().complete, 5);
    desk.give(at(arrives(104) + 140), &segments.parity[0]);
    let counters = desk.consumer.counters();
    assert_eq!((counters.complete, counters.late), (6, 0));
    assert_eq!(counters.recovered_parity, 1);
    assert_eq!(counters.repair_bytes, counters.parity_bytes);
}

/// The lead of sample 104 is lost twice: the last round requests copies of it, and one of them will do.
#[test]
fn a_copy_does_for_the_lead() {
    let mut desk = warm();
    desk.asks();
    let segments = segments(&mut desk, 104);
    desk.give(at(arrives(104)), &segments.data[1]);
    desk.give(at(arrives(104)), &segments.data[2]);
    let asked = asked_until(&mut desk, 104, arrives(104) + 149);
    assert_eq!(asked.first(), Some(&(at(arrives(104) + 3), D, 0)));
    let copies = asked.iter().filter(|(_, kind, _)| *kind == C);
    let indices: BTreeSet<_> = copies.map(|(_, _, index)| *index).collect();
    assert!(!indices.is_empty(), "{asked:?}");
    let id = SegmentId {
        class: SampleClass::Delta,
        sequence: 104,
        kind: C,
        index: *indices.first().unwrap(),
    };
    let forged = desk
        .segmenter
        .copy(id, &segments.data[0], &signer(b"other"));
    desk.give(at(arrives(104) + 145), &forged);
    assert_eq!(desk.consumer.counters().drop_verification, 1);
    let asked = asked_until(&mut desk, 104, arrives(104) + 145);
    assert!(
        asked
            .iter()
            .all(|(_, kind, index)| (*kind, *index) == (C, id.index))
    );
    let copy = desk.segmenter.copy(id, &segments.data[0], &signer(b"key"));
    desk.give(at(arrives(104) + 146), &copy);
    let counters = desk.consumer.counters();
    assert_eq!((counters.recovered_copy, counters.complete), (1, 6));
    let sizes = desk.consumer.sizes();
    assert_eq!(sizes.unverified, 0);
}

/// While segments are lost, Interests for what does not exist yet are sent twice, with other Nonces, the second long
/// enough after the first for a burst of losses to be over.
#[test]
fn interests_are_hedged_while_any_are_lost() {
    let mut desk = warm();
    desk.asks();
    let lossy = segments(&mut desk, 104);
    desk.give(at(arrives(104)), &lossy.data[0]);
    asked_until(&mut desk, 104, arrives(104) + 20);
    for data in &lossy.data[1..] {
        desk.give(at(arrives(104) + 60), data);
    }
    assert!(desk.consumer.loss() > 0.005, "{}", desk.consumer.loss());
    desk.asks();
    let whole = segments(&mut desk, 105);
    whole
        .data
        .iter()
        .for_each(|data| desk.give(at(arrives(105) + 31), data));
    let mut now = at(arrives(105) + 31);
    let mut asks = desk.asks();
    while asks.iter().all(|ask| ask.id.sequence <= 108) {
        now = desk.consumer.poll_timeout().unwrap();
        desk.consumer.handle_timeout(now);
        asks = desk.asks();
    }
    let newest = asks.iter().map(|ask| ask.id.sequence).max().unwrap();
    let first: Vec<_> = asks.iter().filter(|a| a.id.sequence == newest).collect();
    let until = now.as_nanos() / 1_000_000 + 60;
    let second = asked_until(&mut desk, newest, until);
    let names: Vec<_> = first
        .iter()
        .map(|ask| (ask.id.kind, ask.id.index))
        .collect();
    let again: Vec<_> = second
        .iter()
        .map(|&(_, kind, index)| (kind, index))
        .collect();
    assert_eq!(names, again);
    assert!(
        second.iter().all(|(time, ..)| *time == now + PERIOD),
        "{second:?}"
    );
    assert!(desk.consumer.counters().interests_hedged >= names.len() as u64);
}

/// The same stream, repaired as the paper has it.
fn warm_as_paper() -> Desk {
    let mut config = Config {
        max_attempts: 2,
        ..Config::default()
    };
    config.recovery.profile = RecoveryProfile::Paper;
    warm_with(config)
}

/// Delta sample 104 arrives at 230 ms at best and is shown at 380, so that its checkpoint is at 319: a round trip and a tick before. Of three data segments
/// and two of parity, the lead and one of parity came: one more is needed, and requested once, whatever overtook it.
#[test]
fn like_the_paper_what_parity_does_not_make_up_for_is_requested_once() {
    let mut desk = warm_as_paper();
    let sample = segments(&mut desk, 104);
    asked_until(&mut desk, 104, 229);
    desk.give(at(230), &sample.data[0]);
    desk.give(at(230), &sample.parity[0]);
    let later = segments(&mut desk, 105);
    later.data.iter().for_each(|data| desk.give(at(270), data));
    assert_eq!(asked_until(&mut desk, 104, 318), []);
    assert_eq!(asked_until(&mut desk, 104, 3_000), [(at(319), D, 1)]);
}

/// Nothing came of it: all five are requested, as nobody knows what is needed. With them here, it is whole.
#[test]
fn like_the_paper_a_sample_of_which_nothing_came_is_requested_whole() {
    let mut desk = warm_as_paper();
    let sample = segments(&mut desk, 104);
    asked_until(&mut desk, 104, 229);
    let all = [(D, 0), (D, 1), (D, 2), (P, 0), (P, 1)].map(|(kind, index)| (at(319), kind, index));
    assert_eq!(asked_until(&mut desk, 104, 379), all);
    sample.data.iter().for_each(|data| desk.give(at(380), data));
    assert_eq!(desk.consumer.counters().recovered_retransmission, 1);
}
