//! The consumer with hand-made packets: what it requests, when, and what it accepts.

use core::time::Duration;
use std::sync::Arc;

use namecast_packet::lp::NackReason;
use namecast_packet::signature::HmacVerifier;
use namecast_packet::{Data, Interest};
use namecast_units::{Instant, Timestamp};

mod eager;
mod inter_frame;
mod loss;
mod order;
mod reordering;
mod repair;

use super::*;
use eager::{Done, Eager};
use fixtures::{PERIOD, WALL, at, latest, ms, names, playout, segmenter, signer, source};

use crate::names::{SampleClass, SegmentId, SegmentKind};
use crate::sample::Asked;
use crate::segmenter::{Sample as Encoded, Segmenter, Segments, Stamp};

/// The round trip that the consumer is told of.
const RTT: Duration = ms(60);
/// Where everything comes from.
const FACE: u64 = 300;

/// One Interest as the tests look at it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ask {
    id: SegmentId,
    nonce: namecast_packet::Nonce,
    must_be_fresh: bool,
    avoid_face: Option<u64>,
}

/// A consumer, and a publisher's segmenter.
struct Desk {
    consumer: Eager,
    segmenter: Segmenter,
    samples: Vec<Sample>,
}

impl Desk {
    /// A consumer of a stream with a key sample a second, RTT 60 ms. Before anything was seen, it expects delta samples
    /// of 3 data segments and 1 of parity, key samples of four times as many octets.
    ///
    /// Repairs are those of the paper; the others have tests of their own.
    fn new(mut config: Config) -> Self {
        config.recovery.profile = RecoveryProfile::Timers;
        Self::repairing(config)
    }

    fn repairing(config: Config) -> Self {
        let mut desk = Self::without_key(config);
        desk.consumer
            .set_verifier(at(0), Arc::new(HmacVerifier::new(b"key")));
        desk
    }

    /// A consumer that does not know whose signature counts.
    fn without_key(config: Config) -> Self {
        let mut consumer = Eager::new(&config, source());
        consumer.set_playout(at(0), playout(), Duration::ZERO);
        consumer.schedule_mut().on_round_trip(at(0), RTT);
        Self {
            consumer,
            segmenter: segmenter(),
            samples: Vec::new(),
        }
    }

    /// Started at key sample 5 and delta sample 100; 100 to 102 are requested.
    ///
    /// Of 99, only that it is published is known: 102 may come 3 periods later, or up to one sooner. It takes 60 ms and 5 for
    /// good measure: its Interest leaves at 3 · 40 − 40 − 65 = 15 ms.
    fn started(config: Config) -> Self {
        let mut desk = Self::new(config);
        desk.consumer
            .start(at(0), &latest(5, 99), StartAt::NewestKey);
        desk.consumer.handle_timeout(at(14));
        let deltas = |desk: &Self| {
            let samples = desk.consumer.retrieval.samples().keys();
            samples.filter(|key| key.0 == SampleClass::Delta).count()
        };
        assert_eq!(deltas(&desk), 2);
        assert_eq!(desk.consumer.schedule.poll_timeout(), Some(at(15)));
        desk.consumer.handle_timeout(at(15));
        assert_eq!(deltas(&desk), 3);
        desk
    }

    fn asks(&mut self) -> Vec<Ask> {
        let mut asks = Vec::new();
        while let Some(done) = self.consumer.poll_output() {
            match done {
                Done::Sent(want, nonce) => asks.push(Ask {
                    id: want.token.segment,
                    nonce,
                    must_be_fresh: want.must_be_fresh,
                    avoid_face: want.avoid_face,
                }),
                Done::Sample(sample) => self.samples.push(sample),
            }
        }
        asks
    }

    /// The sample `sequence` of `size` octets, published at `published`.
    fn cut(
        &mut self,
        (class, sequence): (SampleClass, u64),
        other_sequence: u64,
        size: usize,
        stamp: Stamp,
    ) -> Segments {
        let position = match class {
            SampleClass::Key => sequence.saturating_sub(5).saturating_mul(2),
            SampleClass::Delta => sequence.saturating_sub(99),
        };
        let sample = Encoded {
            class,
            sequence,
            other_sequence,
            position,
            captured_at: stamp.published_at,
            composition_offset: Duration::ZERO,
            encoded_at: stamp.published_at,
            payload: (0..size).map(|octet| octet as u8).collect(),
            seal: None,
        };
        self.segmenter
            .segment(&sample, stamp, &signer(b"key"))
            .unwrap()
    }

    fn give(&mut self, now: Instant, data: &Data) {
        let delivery = Delivery {
            congestion_marked: false,
            face: Some(FACE),
            ..Delivery::default()
        };
        assert!(self.consumer.handle_data(now, data, delivery));
    }

    /// Key sample 5 in one segment; delta 100 follows it.
    fn give_key(&mut self, now: Instant) {
        let segments = self.cut((SampleClass::Key, 5), 100, 500, stamp(0));
        self.give(now, &segments.data[0]);
    }
}

const fn stamp(published: u64) -> Stamp {
    Stamp {
        published_at: Timestamp::from_micros(WALL.as_micros() + published * 1_000),
        asked: None,
    }
}

fn ids(asks: &[Ask]) -> Vec<(SampleClass, u64, SegmentKind, u64)> {
    let id = |ask: &Ask| (ask.id.class, ask.id.sequence, ask.id.kind, ask.id.index);
    asks.iter().map(id).collect()
}

fn segment(kind: SegmentKind, index: u64) -> (SampleClass, u64, SegmentKind, u64) {
    (SampleClass::Delta, 100, kind, index)
}

use SegmentKind::{Data as D, Parity as P};

/// λ of keys: ⌈(60 + 45 + 40) / 1000⌉ = 1, of deltas 3. A key of 12 000 octets: 12 + 3, deltas 3 + 1 each.
#[test]
fn a_start_asks_for_the_newest_key_sample_and_ahead_of_production() {
    let mut desk = Desk::started(Config::default());
    let asks = desk.asks();
    let of = |class, sequence| {
        let of = |ask: &&Ask| ask.id.class == class && ask.id.sequence == sequence;
        asks.iter().filter(of).count()
    };
    assert_eq!([5, 6, 7].map(|key| of(SampleClass::Key, key)), [15, 15, 0]);
    let deltas = [99, 100, 101, 102, 103].map(|delta| of(SampleClass::Delta, delta));
    assert_eq!(deltas, [0, 4, 4, 4, 0]);
    assert!(asks.iter().all(|ask| !ask.must_be_fresh));
    assert_eq!(desk.consumer.sizes().outstanding, 42);
}

/// The newest key sample is 3 deltas old: they come before the ones that do not exist yet.
#[test]
fn samples_since_the_key_sample_are_caught_up_on() {
    let mut desk = Desk::new(Config::default());
    desk.consumer
        .start(at(0), &latest(5, 102), StartAt::NewestKey);
    desk.asks();
    desk.give_key(at(60));
    let asks = desk.asks();
    let deltas: Vec<_> = asks.iter().map(|ask| ask.id.sequence).collect();
    assert_eq!(
        deltas[..12],
        [100, 100, 100, 100, 101, 101, 101, 101, 102, 102, 102, 102]
    );
    assert_eq!(desk.samples.len(), 0, "a target of 150 ms");
    desk.consumer.handle_timeout(at(210));
    desk.asks();
    assert_eq!(desk.samples.len(), 1);
    assert_eq!(desk.samples[0].render_at, at(210));
}

/// Where the publisher says which delta sample follows the key sample, they are requested with it, and once only.
#[test]
fn a_publisher_that_tells_of_the_group_saves_a_round_trip() {
    let mut desk = Desk::new(Config::default());
    let latest = Latest {
        next_delta: Some(100),
        ..latest(5, 102)
    };
    desk.consumer.start(at(0), &latest, StartAt::NewestKey);
    let asked = |desk: &mut Desk| {
        let deltas = desk.asks().into_iter().map(|ask| ask.id);
        let mut leads: Vec<_> = deltas
            .filter(|id| id.class == SampleClass::Delta && id.is_lead())
            .map(|id| id.sequence)
            .collect();
        leads.sort_unstable();
        leads
    };
    assert_eq!(asked(&mut desk), [100, 101, 102, 103, 104]);
    desk.give_key(at(10));
    assert!(asked(&mut desk).is_empty());
    // One that says that thousands follow is not accepted.
    let mut desk = Desk::new(Config::default());
    let lying = Latest {
        next_delta: Some(0),
        ..fixtures::latest(5, 100_000)
    };
    desk.consumer.start(at(0), &lying, StartAt::NewestKey);
    assert_eq!(asked(&mut desk), [100_001, 100_002]);
}

/// M = 3 + 1 were asked; the lead tells of N = 6 and P = 2.
#[test]
fn what_the_lead_tells_of_is_asked_for_at_once() {
    let mut desk = Desk::started(Config::default());
    desk.asks();
    desk.give_key(at(60));
    desk.asks();
    let segments = desk.cut((SampleClass::Delta, 100), 5, 5_500, stamp(60));
    assert_eq!((segments.data.len(), segments.parity.len()), (6, 2));
    desk.give(at(90), &segments.data[0]);
    let asks: Vec<_> = ids(&desk.asks())
        .into_iter()
        .filter(|(_, sequence, ..)| *sequence == 100)
        .collect();
    let expected = [segment(D, 3), segment(D, 4), segment(D, 5), segment(P, 1)];
    assert_eq!(asks, expected);
}

#[test]
fn a_forged_lead_counts_for_nothing() {
    let mut desk = Desk::started(Config::default());
    desk.asks();
    let segments = desk.cut((SampleClass::Key, 5), 100, 500, stamp(0));
    let forged = Data::builder(segments.data[0].name().clone())
        .content(segments.data[0].content().unwrap())
        .sign(&signer(b"another"));
    for _ in 0..20 {
        desk.give(at(60), &forged);
        let asks = desk.asks();
        let mut of_5 = asks.iter().filter(|ask| ask.id.class == SampleClass::Key);
        assert!(of_5.all(|ask| ask.must_be_fresh && ask.id.is_lead()));
    }
    let counters = desk.consumer.counters();
    let most = u64::from(Config::default().max_attempts);
    assert_eq!(
        counters.drop_verification, most,
        "then nobody asks any more"
    );
    assert_eq!((counters.leads, counters.complete), (0, 0));
}

/// Before anybody knows the key, leads are kept, up to a bound, and not accepted.
#[test]
fn leads_wait_for_the_key() {
    let config = Config {
        max_unverified: 2,
        ..Config::default()
    };
    let mut desk = Desk::without_key(config);
    desk.consumer
        .start(at(0), &latest(5, 99), StartAt::NewestKey);
    desk.asks();
    desk.give_key(at(60));
    for sequence in 100..=102 {
        let segments = desk.cut((SampleClass::Delta, sequence), 5, 500, stamp(60));
        desk.give(at(60), &segments.data[0]);
    }
    assert_eq!(desk.consumer.sizes().unverified, 2);
    assert_eq!(desk.consumer.counters().drop_unverified, 2);
    assert_eq!(desk.consumer.counters().leads, 0);
    desk.consumer
        .set_verifier(at(70), Arc::new(HmacVerifier::new(b"key")));
    assert_eq!(desk.consumer.counters().complete, 2);
    assert_eq!(desk.consumer.sizes().unverified, 0);
}

/// The Interest for delta 100 was 30 ms on the way and waited 25 ms: DRD is 90 − 25 = 65 ms, SRTT ⅞·60 + ⅛·65.
#[test]
fn drd_is_measured_by_our_own_nonce_only() {
    let mut desk = Desk::started(Config::default());
    let asks = desk.asks();
    let lead = SegmentId::lead(SampleClass::Delta, 100);
    let nonce = asks.iter().find(|ask| ask.id == lead).unwrap().nonce;
    let asked = |nonce| Stamp {
        asked: Some(Asked {
            waited_for: ms(25),
            nonce,
        }),
        ..stamp(60)
    };
    let ours = desk.cut((SampleClass::Delta, 100), 5, 500, asked(nonce));
    let others = desk.cut((SampleClass::Delta, 101), 5, 500, asked(0xFFFF_FFFF.into()));
    desk.give(at(90), &ours.data[0]);
    let expected = Duration::from_micros(60_625);
    assert_eq!(
        desk.consumer.schedule().path().delay.estimate(at(90)),
        expected
    );
    desk.give(at(95), &others.data[0]);
    assert_eq!(
        desk.consumer.schedule().path().delay.estimate(at(95)),
        expected
    );
    let counters = desk.consumer.counters();
    assert_eq!((counters.leads, counters.leads_for_others), (2, 1));
}

/// A signed lead that points a million samples ahead is not followed, and does not loop.
#[test]
fn a_lead_that_points_nowhere_is_dropped() {
    let mut desk = Desk::started(Config::default());
    desk.asks();
    let lying = desk.cut((SampleClass::Delta, 100), 1_000_000, 500, stamp(60));
    desk.give(at(60), &lying.data[0]);
    assert_eq!(desk.consumer.counters().drop_malformed, 1);
    assert!(desk.asks().iter().all(|ask| ask.id.sequence <= 103));
    assert!(desk.consumer.sizes().samples < 10);

    let far = Latest {
        served_at: WALL + ms(100),
        ..latest(1_000_000, 99)
    };
    assert_eq!(
        desk.consumer.line_up(at(100), &far, false),
        LineUp::OutOfLine
    );
    let before = Latest {
        served_at: WALL + ms(100),
        ..latest(3, 99)
    };
    assert_eq!(
        desk.consumer.line_up(at(100), &before, false),
        LineUp::OutOfLine
    );
    let stale = Latest {
        served_at: Timestamp::from_micros(0),
        ..latest(4, 99)
    };
    let lined_up = desk.consumer.line_up(at(100), &stale, false);
    assert_eq!(lined_up, LineUp::Missed(Duration::ZERO));
}

/// 2 key samples and 48 delta samples of 40 ms were published and not requested.
#[test]
fn what_was_missed_is_told_in_playing_time() {
    let mut desk = Desk::started(Config::default());
    desk.asks();
    let lined_up = desk.consumer.line_up(at(2_100), &latest(8, 150), true);
    assert_eq!(lined_up, LineUp::Missed(PERIOD * 50));
}

#[test]
fn extreme_sequence_numbers_do_not_overflow() {
    for number in [0, 1, u64::MAX - 1, u64::MAX] {
        let mut desk = Desk::new(Config::default());
        desk.consumer
            .start(at(0), &latest(number, number), StartAt::NewestKey);
        desk.asks();
        let key = desk.cut((SampleClass::Key, number), number, 500, stamp(0));
        desk.give(at(60), &key.data[0]);
        desk.consumer.line_up(at(70), &latest(number, number), true);
        for step in 1..100 {
            desk.consumer.handle_timeout(at(70 + step * 50));
        }
        desk.consumer
            .start(at(9_000), &latest(number, number), StartAt::NextKey);
        desk.consumer.handle_decoder_error(at(9_000));
        desk.asks();
        assert!(desk.consumer.sizes().samples < 20);
    }
}

#[test]
fn tables_stay_within_their_bounds() {
    let config = Config {
        max_samples: 6,
        max_outstanding: 40,
        ..Config::default()
    };
    let mut desk = Desk::new(config);
    desk.consumer
        .start(at(0), &latest(5, 99), StartAt::NewestKey);
    desk.consumer.line_up(at(1), &latest(5, 999), false);
    for step in 0..200 {
        desk.consumer.handle_timeout(at(step * 20));
        desk.asks();
        let sizes = desk.consumer.sizes();
        assert!(sizes.samples <= 6, "{sizes:?}");
        assert!(sizes.outstanding + sizes.queued <= 40, "{sizes:?}");
    }
}
