//! Inter-frame FEC: when it is requested, and what comes of it.
//!
//! Sound of 50 packets a second; everything takes 60 ms each way, so that with a target of 100 ms nothing that was lost can
//! be retransmitted in time. Samples are published every 20 ms from number 8 on, in groups of four.

use std::collections::BTreeMap;

use namecast_units::Bitrate;

use super::*;
use crate::catalogue::{SampleRate, StreamKind};
use crate::inter_frame::InterFrameFec;
use crate::segmenter::SegmenterConfig;

use SegmentKind::InterFrame as X;

const CODE: InterFrameFec = InterFrameFec {
    samples: 4,
    parity: 2,
};
const WAY: Duration = ms(60);
const KEY: SampleClass = SampleClass::Key;

fn published(sequence: u64) -> Instant {
    at(1_000 + (sequence - 8) * 20)
}

fn arrives(sequence: u64) -> Instant {
    published(sequence) + WAY
}

/// A consumer, and the producer's side of what it requests.
struct Booth {
    consumer: Eager,
    segmenter: Segmenter,
    /// When each segment was requested first, by which Interest, and how often.
    asked: BTreeMap<SegmentId, (Instant, namecast_packet::Nonce, u32)>,
    leads: BTreeMap<u64, Data>,
    samples: Vec<Sample>,
}

impl Booth {
    fn new(target: Duration) -> Self {
        Self::with(Config::default(), target)
    }

    fn with(config: Config, target: Duration) -> Self {
        let source = Source {
            kind: StreamKind::Audio,
            rate: SampleRate::new(50, 1),
            key_interval: 1,
            bitrate: Bitrate::kbps(100),
            inter_frame: Some(CODE),
            ..source()
        };
        let mut consumer = Eager::new(&config, source);
        let playout = Playout {
            target,
            ..playout()
        };
        consumer.set_playout(at(0), playout, Duration::ZERO);
        consumer.set_verifier(at(0), Arc::new(HmacVerifier::new(b"key")));
        (0..30).for_each(|_| consumer.schedule_mut().on_round_trip(at(0), WAY * 2));
        let mut booth = Self {
            consumer,
            segmenter: Segmenter::new(names(), SegmenterConfig::default()),
            asked: BTreeMap::new(),
            leads: BTreeMap::new(),
            samples: Vec::new(),
        };
        let newest = Latest {
            key_sequence: Some(7),
            delta_sequence: None,
            served_at: WALL + ms(980),
            ..latest(7, 0)
        };
        booth.consumer.start(at(1_000), &newest, StartAt::NextKey);
        booth.take(at(1_000));
        booth
    }

    /// Records what the consumer wants.
    fn take(&mut self, now: Instant) {
        while let Some(done) = self.consumer.poll_output() {
            match done {
                Done::Sent(want, nonce) => {
                    let first = (now, nonce, 0);
                    self.asked.entry(want.token.segment).or_insert(first).2 += 1;
                }
                Done::Sample(sample) => self.samples.push(sample),
            }
        }
    }

    fn run_until(&mut self, until: Instant) {
        while let Some(now) = self.consumer.poll_timeout().filter(|now| *now < until) {
            self.consumer.handle_timeout(now);
            self.take(now);
        }
    }

    fn give(&mut self, now: Instant, data: &Data) {
        self.run_until(now);
        self.consumer.handle_data(now, data, Delivery::default());
        self.take(now);
    }

    /// The lead of a sample, made for the Interest that waited for it.
    fn lead(&mut self, sequence: u64) -> Data {
        let asked = self.asked.get(&SegmentId::lead(KEY, sequence));
        let asked = asked.map(|(at, nonce, _)| Asked {
            waited_for: published(sequence).since(*at + WAY),
            nonce: *nonce,
        });
        let sample = Encoded {
            class: KEY,
            sequence,
            other_sequence: 0,
            position: sequence,
            captured_at: WALL + published(sequence).since(Instant::ZERO),
            composition_offset: Duration::ZERO,
            encoded_at: WALL + published(sequence).since(Instant::ZERO),
            payload: vec![sequence as u8; 100 + sequence as usize % 9].into(),
            seal: None,
        };
        let stamp = Stamp {
            published_at: sample.captured_at,
            asked,
        };
        let segments = self.segmenter.segment(&sample, stamp, &signer(b"key"));
        let data = segments.unwrap().data.remove(0);
        self.leads.insert(sequence, data.clone());
        data
    }

    fn shard_id(last: u64, index: u64) -> SegmentId {
        SegmentId {
            class: KEY,
            sequence: last,
            kind: X,
            index,
        }
    }

    /// A shard of the group that ends with `last`, from the leads as they were made.
    fn shard(&self, last: u64, index: u64) -> Data {
        let leads: Vec<_> = (last - 3..=last)
            .map(|sequence| self.leads[&sequence].wire().clone())
            .collect();
        let content = CODE.encode(&leads, index as usize).unwrap();
        Self::signed(last, index, content, b"key")
    }

    fn signed(last: u64, index: u64, content: bytes::Bytes, key: &[u8]) -> Data {
        Data::builder(names().segment(Self::shard_id(last, index)))
            .content(content)
            .sign(&signer(key))
    }

    /// Lets samples come that are not `lost`, each in its time, and no parity.
    fn play(&mut self, samples: core::ops::RangeInclusive<u64>, lost: &[u64]) {
        for sequence in samples {
            let lead = self.lead(sequence);
            if !lost.contains(&sequence) {
                self.give(arrives(sequence), &lead);
            }
        }
    }

    /// Plays up to sample 79; every tenth is lost and never comes.
    fn warm(target: Duration) -> Self {
        let mut booth = Self::new(target);
        booth.play(8..=79, &[12, 22, 32, 42, 52, 62, 72]);
        booth
    }

    /// How often the lead of a sample was requested.
    fn asked_for(&self, sequence: u64) -> u32 {
        self.asked[&SegmentId::lead(KEY, sequence)].2
    }
}

/// One in ten is lost. Sample 81 does not come; the parity of its group was requested before the group began, comes with
/// sample 83, 40 ms later, and gives it back 20 ms before its time, without an Interest more.
#[test]
fn a_lost_lead_is_rebuilt_without_a_round_trip() {
    let mut booth = Booth::warm(ms(100));
    let before = booth.consumer.counters();
    booth.play(80..=83, &[81]);
    let asked = booth.asked[&Booth::shard_id(83, 0)].0;
    assert!(asked + WAY <= published(83), "{asked:?}");
    // Hedged like other Interests, and no more.
    assert_eq!(booth.asked[&Booth::shard_id(83, 0)].2, 2);
    assert_eq!(booth.asked_for(81), 2);
    let shard = booth.shard(83, 0);
    booth.give(arrives(83) + ms(1), &shard);
    assert_eq!(booth.asked_for(81), 2, "asked again");
    let copies = booth
        .asked
        .keys()
        .filter(|id| id.kind == SegmentKind::LeadCopy);
    assert_eq!(copies.filter(|id| id.sequence == 81).count(), 0);
    let counters = booth.consumer.counters();
    assert_eq!(
        counters.recovered_inter_frame - before.recovered_inter_frame,
        1
    );
    assert_eq!(counters.complete - before.complete, 4);
    assert_eq!((counters.late, counters.drop_inter_frame), (0, 0));
    assert_eq!(
        counters.recovered_retransmission,
        before.recovered_retransmission
    );
    let octets = shard.wire().len() as u64;
    assert_eq!(counters.parity_bytes - before.parity_bytes, octets);
    booth.run_until(arrives(83) + ms(101));
    let shown = booth.samples.iter().find(|s| s.header.position == 81);
    let shown = shown.expect("it was delivered");
    assert_eq!(shown.payload, [81_u8; 100].to_vec());
    assert_eq!(shown.complete_at, arrives(83) + ms(1));
    assert!(!shown.late);
}

/// The last lead of a group may still come when its parity does; once it is overdue it is rebuilt as well.
#[test]
fn the_last_lead_is_waited_for_as_long_as_any() {
    let mut booth = Booth::warm(ms(100));
    booth.play(80..=83, &[83]);
    let before = booth.consumer.counters().recovered_inter_frame;
    let shard = booth.shard(83, 1);
    booth.give(arrives(83), &shard);
    assert_eq!(booth.consumer.counters().recovered_inter_frame, before);
    booth.run_until(arrives(83) + ms(15));
    assert_eq!(booth.consumer.counters().recovered_inter_frame, before + 1);
}

/// Two of a group are lost, and two shards come.
#[test]
fn as_many_leads_as_shards_come_back() {
    let mut booth = Booth::warm(ms(100));
    booth.play(80..=83, &[80, 82]);
    let before = booth.consumer.counters();
    assert!(booth.asked.contains_key(&Booth::shard_id(83, 1)));
    let shards = [0, 1].map(|index| booth.shard(83, index));
    booth.give(arrives(83) + ms(1), &shards[0]);
    let counters = booth.consumer.counters();
    assert_eq!(counters.recovered_inter_frame, before.recovered_inter_frame);
    booth.give(arrives(83) + ms(1), &shards[1]);
    let counters = booth.consumer.counters();
    assert_eq!(
        counters.recovered_inter_frame,
        before.recovered_inter_frame + 2
    );
    assert_eq!(counters.late, 0);
}

/// A group takes 60 ms to its last sample. With a target of 60 ms, or with 400 ms, in which what is lost can be requested
/// again twice, no parity is requested; nor where nothing is lost, nor like the paper, nor if it is turned off.
#[test]
fn parity_is_asked_for_only_where_it_is_in_time_and_nothing_else_is() {
    let asked = |booth: &Booth| booth.asked.keys().any(|id| id.kind == X);
    assert!(asked(&Booth::warm(ms(100))));
    assert!(!asked(&Booth::warm(ms(60))));
    assert!(!asked(&Booth::warm(ms(400))));
    let mut clean = Booth::new(ms(100));
    clean.play(8..=79, &[]);
    assert!(!asked(&clean));
    let paper = RecoveryConfig {
        profile: RecoveryProfile::Timers,
        ..RecoveryConfig::default()
    };
    let without = RecoveryConfig {
        inter_frame: false,
        ..RecoveryConfig::default()
    };
    for recovery in [paper, without] {
        let config = Config {
            recovery,
            ..Config::default()
        };
        let mut booth = Booth::with(config, ms(100));
        booth.play(8..=79, &[12, 22, 32, 42, 52, 62, 72]);
        assert!(!asked(&booth));
    }
}

/// Bursts take whole groups of every ten, and leave nothing to rebuild them from: parity is not requested then.
#[test]
fn parity_that_gives_nothing_back_is_not_asked_for() {
    let mut booth = Booth::new(ms(100));
    let lost: Vec<_> = (8..=400).filter(|n| n % 40 < 5).collect();
    booth.play(8..=400, &lost);
    let newest = booth.asked.keys().filter(|id| id.kind == X);
    let newest = newest.map(|id| id.sequence).max().unwrap_or(0);
    assert!(newest < 200, "{newest}");
}

/// What is signed by nobody, by somebody else, of another code, or of other leads gives nothing back, and each is counted.
#[test]
fn garbage_is_refused_and_counted() {
    let mut booth = Booth::warm(ms(100));
    booth.play(80..=83, &[81]);
    let before = booth.consumer.counters();
    let right = booth.shard(83, 0);
    let content = right.content().unwrap();
    let other = InterFrameFec {
        samples: 3,
        parity: 2,
    };
    let leads: Vec<_> = (80..83).map(|n| booth.leads[&n].wire().clone()).collect();
    let now = arrives(83) + ms(1);
    booth.give(now, &Booth::signed(83, 0, content.clone(), b"other"));
    let counters = booth.consumer.counters();
    assert_eq!(counters.drop_verification, before.drop_verification + 1);
    // One more Interest is out for the group, and none for a third.
    let elsewhere = other.encode(&leads, 0).unwrap();
    booth.give(now, &Booth::signed(83, 1, elsewhere, b"key"));
    assert_eq!(
        booth.consumer.counters().drop_inter_frame,
        before.drop_inter_frame + 1
    );
    booth.give(now, &right);
    let surplus = booth.consumer.counters().drop_surplus;
    assert_eq!(surplus, before.drop_surplus + 1);

    booth.play(84..=87, &[85]);
    let size = booth.shard(87, 0).content().unwrap().len();
    let mut garbage = booth.shard(87, 0).content().unwrap().to_vec();
    garbage[size / 2..].fill(0x5a);
    let now = arrives(87) + ms(1);
    booth.give(now, &Booth::signed(87, 0, garbage.into(), b"key"));
    let counters = booth.consumer.counters();
    assert_eq!(counters.drop_inter_frame, before.drop_inter_frame + 2);
    assert_eq!(counters.recovered_inter_frame, before.recovered_inter_frame);
    assert_eq!(counters.complete - before.complete, 3);
    // They are retransmitted instead.
    booth.run_until(arrives(87) + ms(40));
    assert!(booth.asked_for(85) > 2);
}

/// Parity that is signed and gives packets that are leads in all but one thing: another sample's, or signed by nobody we know.
#[test]
fn what_is_rebuilt_must_be_the_lead_that_is_missing() {
    let mut booth = Booth::warm(ms(100));
    booth.play(80..=83, &[81]);
    let other = booth.leads[&79].clone();
    let content = booth.leads[&81].content().unwrap();
    let forged = Data::builder(names().segment(SegmentId::lead(KEY, 81)))
        .content(content)
        .sign(&signer(b"other"));
    let before = booth.consumer.counters();
    for (index, (lie, dropped)) in [(other, 1), (forged, 2)].into_iter().enumerate() {
        let mut leads: Vec<_> = (80..=83).map(|n| booth.leads[&n].wire().clone()).collect();
        leads[1] = lie.wire().clone();
        let content = CODE.encode(&leads, index).unwrap();
        let lie = Booth::signed(83, index as u64, content, b"key");
        booth.give(arrives(83) + ms(1), &lie);
        let counters = booth.consumer.counters();
        assert_eq!(counters.drop_inter_frame, before.drop_inter_frame + dropped);
        assert_eq!(counters.complete, before.complete);
    }
    assert_eq!(
        booth.consumer.counters().recovered_inter_frame,
        before.recovered_inter_frame
    );
}

/// Leads and shards of some groups are kept, whatever comes, and none after a new start.
#[test]
fn what_is_kept_is_bounded() {
    let mut booth = Booth::new(ms(100));
    booth.play(8..=800, &[]);
    let kept = booth.consumer.retrieval.recovery().kept();
    assert!((4 * 4..=5 * 4).contains(&kept), "{kept}");
    booth
        .consumer
        .start(arrives(801), &latest(801, 0), StartAt::NewestKey);
    assert_eq!(booth.consumer.retrieval.recovery().kept(), 0);
}
