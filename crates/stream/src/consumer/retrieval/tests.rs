use std::sync::Arc;

use namecast_packet::Nonce;
use namecast_packet::lp::NackReason;
use namecast_packet::signature::HmacVerifier;

use super::super::Output;
use super::*;
use crate::metadata::Latest;
use crate::names::{SampleClass, SegmentKind};
use crate::path::{ClientId, Request};

use super::super::StartAt;
use super::super::fixtures::{at, key_sample, latest, playout, source};

const KEY: SampleKey = (SampleClass::Key, 5);

fn verifier() -> SharedVerifier {
    Arc::new(HmacVerifier::new(b"key"))
}

/// The segments of one rung with key sample 5 published, and what it goes by.
struct Bench {
    retrieval: Retrieval,
    schedule: Schedule,
    playback: Playback,
}

impl Bench {
    /// Key samples are expected to have 12 data segments and 3 of parity, of which all 12 and, in repair, no parity is
    /// requested before a lead came.
    fn new() -> Self {
        let source = source();
        let config = Config::default();
        let mut schedule = Schedule::new(&config, &source);
        schedule.set_playout(at(0), playout(), Duration::ZERO);
        let latest = Latest {
            delta_sequence: None,
            ..latest(5, 0)
        };
        schedule.start(at(0), &source, &latest, StartAt::NewestKey);
        Self {
            playback: Playback::new(&config, &source),
            retrieval: Retrieval::new(&config, source, ClientId(1)),
            schedule,
        }
    }

    /// One that has requested what it should, and trusts the publisher.
    fn requesting() -> Self {
        let mut bench = Self::new();
        bench.trust();
        bench.request();
        bench
    }

    fn trust(&mut self) {
        self.retrieval
            .set_verifier(at(0), verifier(), &mut self.schedule, &self.playback);
    }

    /// Requests what is to be requested, and sends it. Returns the segments of key sample 5.
    fn request(&mut self) -> Vec<(SegmentKind, u64)> {
        self.retrieval.request_ahead(at(0), &mut self.schedule);
        self.retrieval.request_queued(at(0), &self.schedule);
        let mut sent = Vec::new();
        while let Some(output) = self.retrieval.outbox().pop() {
            if let Output::Request(Request::Want(want)) = output {
                let id = want.token.segment;
                let nonce = (Nonce::from(7), 0);
                self.retrieval.on_sent(at(0), id, nonce, &mut self.schedule);
                if (id.class, id.sequence) == KEY {
                    sent.push((id.kind, id.index));
                }
            }
        }
        sent
    }

    fn give(&mut self, data: &Data) {
        let id = self.retrieval.source().names.parse(data.name()).unwrap();
        let segment = Segment {
            id,
            data,
            delivery: Delivery::default(),
        };
        self.retrieval
            .on_segment(at(60), &segment, &mut self.schedule, &self.playback);
    }

    fn outputs(&mut self) -> Vec<String> {
        let outputs = core::iter::from_fn(|| self.retrieval.outbox().pop());
        outputs.map(|output| format!("{output:?}")).collect()
    }
}

#[test]
fn what_is_scheduled_is_requested_once() {
    let mut bench = Bench::requesting();
    let sizes = bench.retrieval.sizes();
    assert!(sizes.outstanding >= 12, "{sizes:?}");
    assert_eq!(sizes.queued, 0);
    assert_eq!(bench.request(), []);
    let sent = bench.retrieval.counters().interests_sent;
    assert_eq!(sent, sizes.outstanding as u64);
}

#[test]
fn what_nobody_requested_is_dropped() {
    let mut bench = Bench::new();
    bench.trust();
    bench.give(&key_sample(5, 500, 100).data[0]);
    let counters = bench.retrieval.counters();
    assert_eq!((counters.drop_unwanted, counters.leads), (1, 0));
}

/// One segment of 500 bytes: what else is out for the sample is of no use any more.
#[test]
fn a_sample_that_is_whole_withdraws_the_rest() {
    let mut bench = Bench::requesting();
    bench.give(&key_sample(5, 500, 100).data[0]);
    let counters = bench.retrieval.counters();
    assert_eq!((counters.complete, counters.payload_bytes), (1, 500));
    let sample = &bench.retrieval.samples()[&KEY];
    assert_eq!(sample.outstanding(), 0);
    let outputs = bench.outputs();
    assert!(outputs.iter().any(|it| it.starts_with("Request(Forget(")));
}

#[test]
fn lead_segments_wait_for_the_key_that_signs() {
    let mut bench = Bench::new();
    bench.request();
    bench.give(&key_sample(5, 500, 100).data[0]);
    assert_eq!(bench.retrieval.counters().leads, 0);
    assert_eq!(bench.retrieval.sizes().unverified, 1);
    bench.trust();
    assert_eq!(bench.retrieval.counters().complete, 1);
    assert_eq!(bench.retrieval.sizes().unverified, 0);
}

/// The delta sample after it would be a million samples ahead of the one before.
#[test]
fn a_lead_segment_that_points_nowhere_gives_up_its_sample() {
    let mut bench = Bench::requesting();
    let whole = key_sample(5, 500, 100);
    bench.give(&whole.data[0]);
    assert_eq!(bench.retrieval.poll_setback(), None);
    let mut bench = Bench::requesting();
    bench.schedule.on_lead(
        at(0),
        KEY,
        &crate::sample::Lead::decode(&whole.data[0])
            .unwrap()
            .header()
            .clone(),
    );
    bench.give(&key_sample(5, 500, 1_000_000).data[0]);
    assert_eq!(bench.retrieval.counters().drop_malformed, 1);
    let setback = bench.retrieval.poll_setback();
    assert_eq!(setback, Some(Setback::GivenUp(KEY)));
    assert!(bench.retrieval.samples()[&KEY].given_up);
}

/// Only congestion is a loss for whoever estimates bandwidth, and only the last Nonce's.
#[test]
fn an_interest_that_came_back_is_counted_and_reported() {
    let mut bench = Bench::requesting();
    bench.retrieval.outbox().keep_events(true);
    let lead = SegmentId::lead(KEY.0, KEY.1);
    let mut nack = |nonce: u32, reason| {
        let nack = (Some(Nonce::from(nonce)), reason);
        bench.retrieval.on_nack(at(10), lead, nack, &bench.schedule);
        let counters = bench.retrieval.counters();
        let counted = (counters.interests_nacked, counters.drop_unwanted);
        (counted, bench.retrieval.outbox().pop_event().is_some())
    };
    assert_eq!(nack(7, NackReason::None), ((1, 0), false));
    assert_eq!(nack(8, NackReason::Congestion), ((1, 1), false));
    assert_eq!(nack(7, NackReason::NoRoute), ((2, 1), false));
    assert_eq!(nack(7, NackReason::Congestion), ((3, 1), true));
    assert_eq!(nack(7, NackReason::Congestion), ((4, 1), false), "once");
}

#[test]
fn what_is_dropped_is_withdrawn() {
    let mut bench = Bench::requesting();
    let Bench {
        retrieval,
        schedule,
        ..
    } = &mut bench;
    let removed = retrieval.remove_all(schedule, |key, _, _| key == KEY);
    assert_eq!(removed, [KEY]);
    assert!(!retrieval.samples().contains_key(&KEY));
    let outputs = bench.outputs();
    assert!(outputs[0].starts_with("Request(Withdraw("), "{outputs:?}");
    let again = bench.retrieval.remove(KEY, &mut bench.schedule);
    assert!(again.is_none());
}
