//! Inter-frame FEC: what it is requested by, when it is made, and what it gives back.

use super::*;
use crate::inter_frame::InterFrameFec;

/// Of the test's rung, whose first sample begins a group.
const CODE: InterFrameFec = InterFrameFec {
    samples: 4,
    parity: 2,
};

const _: () = assert!(FIRST.is_multiple_of(4));

fn shard(sequence: u64, index: u64) -> String {
    format!("/demo/video/1M/delta/seq={sequence}/across/seg={index}")
}

fn lead(sequence: u64) -> String {
    format!("/demo/video/1M/delta/seq={sequence}/data/seg=0")
}

impl Desk {
    fn publish_deltas(&mut self, sequences: core::ops::RangeInclusive<u64>) {
        for sequence in sequences {
            let size = 100 + 10 * (sequence % 7) as usize;
            self.publish(SampleClass::Delta, sequence, size);
            self.advance(33);
        }
    }

    fn fetch(&mut self, name: &str) -> Data {
        self.ask(name);
        let mut output = self.output();
        assert_eq!(output.len(), 1, "{name}");
        output.remove(0)
    }
}

/// Interests wait from before the group began; both shards leave with its last lead, signed, and any two leads come back
/// octet for octet.
#[test]
fn parity_that_is_waited_for_leaves_with_the_last_lead_of_its_group() {
    let mut desk = Desk::signed(ProducerConfig::default(), Box::new(ed25519()));
    desk.ask(&shard(FIRST + 3, 1));
    desk.ask(&shard(FIRST + 3, 0));
    desk.publish_deltas(FIRST..=FIRST + 2);
    assert!(desk.output().is_empty(), "the group is not complete");
    assert_eq!(desk.producer.pending(), 2);
    desk.publish_deltas(FIRST + 3..=FIRST + 3);
    let shards = desk.output();
    let names: Vec<_> = shards.iter().map(|data| data.name().to_string()).collect();
    assert_eq!(names, [shard(FIRST + 3, 0), shard(FIRST + 3, 1)]);
    let key = ed25519().public_key();
    assert!(shards.iter().all(|data| data.verify(&key).is_ok()));
    assert_eq!(desk.producer.counters().inter_frame_shards, 2);

    let leads: Vec<Data> = (FIRST..=FIRST + 3)
        .map(|sequence| desk.fetch(&lead(sequence)))
        .collect();
    let given: Vec<_> = [true, false, true, false]
        .iter()
        .zip(&leads)
        .map(|(is_here, data)| is_here.then(|| data.wire().clone()))
        .collect();
    let parity: Vec<_> = shards
        .iter()
        .map(|data| Some(CODE.decode(&data.content().unwrap()).unwrap()))
        .collect();
    let rebuilt = CODE.recover(&given, &parity).unwrap();
    assert_eq!(rebuilt, [(1, leads[1].clone()), (3, leads[3].clone())]);
    desk.check_balance();
}

#[test]
fn parity_is_made_when_it_is_asked_for_and_once() {
    let mut desk = Desk::new(ProducerConfig::default());
    desk.publish_deltas(FIRST..=FIRST + 7);
    assert_eq!(desk.producer.counters().inter_frame_shards, 0);
    let before = desk.producer.cache_size();
    let made = desk.fetch(&shard(FIRST + 3, 1));
    let kept = desk.producer.cache_size();
    assert!(kept >= before + ByteSize::of(made.wire()));
    assert_eq!(desk.fetch(&shard(FIRST + 3, 1)), made);
    assert_eq!(desk.producer.counters().inter_frame_shards, 1);
    assert_eq!(desk.producer.cache_size(), kept);
    desk.check_balance();
}

#[test]
fn what_is_no_groups_parity_is_refused() {
    let mut desk = Desk::new(ProducerConfig::default());
    desk.ask(&shard(FIRST + 3, 2));
    desk.ask(&shard(FIRST + 2, 0));
    assert_eq!(desk.dropped(DropReason::NoSuchSegment), 2);
    desk.ask(&shard(FIRST + 303, 0));
    assert_eq!(desk.dropped(DropReason::TooFarAhead), 1);
    // The first sample of the second group was left out, and so was the last of the third.
    desk.ask(&shard(FIRST + 7, 0));
    desk.ask(&shard(FIRST + 11, 0));
    desk.publish_deltas(FIRST..=FIRST + 3);
    desk.publish_deltas(FIRST + 5..=FIRST + 10);
    assert_eq!(desk.dropped(DropReason::TooOld), 1);
    desk.publish_deltas(FIRST + 12..=FIRST + 15);
    assert_eq!(desk.dropped(DropReason::Skipped), 1);
    desk.ask(&shard(FIRST + 7, 0));
    desk.ask(&shard(FIRST + 11, 0));
    assert_eq!(desk.dropped(DropReason::TooOld), 3);
    assert_eq!(desk.names(), [""; 0]);
    assert_eq!(desk.producer.counters().inter_frame_shards, 0);
    desk.check_balance();
}

/// 290 000 octets take 290 data and 174 parity segments, whose digests alone fill a lead of 7400 octets and more: with
/// name and signature it is one that no packet has room for beside a header.
#[test]
fn a_group_with_too_large_a_lead_has_no_parity() {
    let mut desk = Desk::new(ProducerConfig::default());
    desk.ask(&shard(FIRST + 3, 0));
    desk.publish_deltas(FIRST..=FIRST + 1);
    desk.publish(SampleClass::Delta, FIRST + 2, 297_000);
    desk.publish_deltas(FIRST + 3..=FIRST + 7);
    assert_eq!(desk.dropped(DropReason::LeadTooLarge), 1);
    desk.ask(&shard(FIRST + 3, 1));
    assert_eq!(desk.dropped(DropReason::LeadTooLarge), 2);
    assert!(desk.output().is_empty());
    desk.fetch(&shard(FIRST + 7, 1));
    desk.check_balance();
}

#[test]
fn without_an_offer_there_is_none() {
    let mut desk = Desk::new(ProducerConfig::default());
    desk.producer
        .add_rung("audio", "32k", RungConfig::default())
        .unwrap();
    desk.ask("/demo/audio/32k/key/seq=3/across/seg=0");
    assert_eq!(desk.dropped(DropReason::NoSuchSegment), 1);
}
