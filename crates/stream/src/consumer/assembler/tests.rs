//! The assembler alone: its counts against a recount, and what it requests.

use core::time::Duration;

use namecast_packet::{Data, Nonce};
use namecast_units::{Instant, Random};

use super::super::fixtures::{at, key_sample};
use super::*;
use crate::names::SegmentKind;
use crate::sample::Lead;
use crate::segmenter::Segments;

const KEY: SampleClass = SampleClass::Key;
const POLICY: Policy = Policy {
    requests_parity: false,
    suspects_counts: true,
};

/// Samples are reckoned to have 2 data segments and 1 of parity.
fn assembler(config: &Config) -> Assembler {
    let counts = SegmentCounts { data: 2, parity: 1 };
    let segments = SegmentEstimators::new(counts, counts, [1_000.0; 2], 100);
    Assembler::new(config, POLICY, segments)
}

fn begin(assembler: &mut Assembler, sequence: u64) {
    let counts = assembler.estimate(KEY);
    assembler.begin(&Opening {
        key: (KEY, sequence),
        counts,
        parity: counts.parity,
        copies: 1,
        copies_ahead: 0,
        inter_frame: 0,
        asked_ahead: true,
    });
}

fn lead(segments: &Segments) -> Lead {
    Lead::decode(&segments.data[0]).unwrap()
}

const fn id(sequence: u64, kind: SegmentKind, index: u64) -> SegmentId {
    id_of((KEY, sequence), (kind, index))
}

/// Everything that is to be requested leaves.
fn send(assembler: &mut Assembler, now: Instant) -> Vec<SegmentId> {
    let mut sent = Vec::new();
    while let Some(request) = assembler.next_request() {
        sent.push(request.id);
        assembler.on_sent(
            now,
            &Sent {
                id: request.id,
                nonce: Nonce::from(sent.len() as u32),
                order: sent.len() as u64,
                retry_at: now + Duration::from_millis(100),
                look_at: now + Duration::from_millis(100),
                hedge_at: None,
                is_published: false,
            },
        );
    }
    sent
}

fn take(assembler: &mut Assembler, now: Instant, id: SegmentId, data: &Data) {
    let answered = assembler.answer(id, None);
    if answered.is_none_or(|answered| answered.asked.is_none()) {
        return;
    }
    let key = (id.class, id.sequence);
    if id.is_lead() {
        let lead = Lead::decode(data).unwrap();
        if !assembler.has_lead(key) && assembler.has_room_for(key, &lead) {
            let is_suspicious = assembler.on_lead(key.0, &lead);
            assembler.accept_lead(now, key, lead, is_suspicious);
            assembler.request_advertised(key);
        }
    } else {
        assembler.accept(now, id, data, now);
    }
    let whole = assembler.get(key).and_then(Assembly::try_assemble);
    if let Some((payload, _)) = whole {
        let late = false;
        let complete = Complete {
            at: now,
            late,
            payload,
        };
        assembler.finish(key, complete);
    }
}

/// Segments come in any order, some of them never; samples are dropped, the transport changes. Whatever happens, counts are those of
/// what is there, and within bounds.
#[test]
fn counts_are_those_of_a_recount() {
    let config = Config {
        max_outstanding: 24,
        max_unverified: 3,
        max_buffered: 12_000,
        ..Config::default()
    };
    let mut random = Random::from_seed(8);
    let samples: Vec<_> = (0..8)
        .map(|n| key_sample(n, 500 + 900 * n as usize, 0))
        .collect();
    let mut assembler = assembler(&config);
    for step in 0..20_000 {
        let now = at(step);
        let sequence = random.below(8);
        let segments = &samples[sequence as usize];
        match random.below(9) {
            0 if assembler.get((KEY, sequence)).is_none() && assembler.has_room(KEY) => {
                begin(&mut assembler, sequence);
            }
            0 => {}
            1 => drop(send(&mut assembler, now)),
            2 => drop(assembler.remove((KEY, sequence)).filter(|_| step % 3 == 0)),
            3 if step % 50 == 0 => drop(assembler.request_again()),
            3 => assembler.on_dropped(now, id(sequence, SegmentKind::Data, random.below(3))),
            4 => assembler.repair(id(sequence, SegmentKind::Parity, random.below(3))),
            5 => drop(assembler.reject(now, id(sequence, SegmentKind::Data, 1), true)),
            _ => {
                let at = random.below(segments.data.len() as u64);
                let data = &segments.data[at as usize];
                take(
                    &mut assembler,
                    now,
                    id(sequence, SegmentKind::Data, at),
                    data,
                );
            }
        }
        let all = assembler.samples().values();
        let sum = |count: fn(&Assembly) -> usize| all.clone().map(count).sum::<usize>();
        let sizes = assembler.sizes();
        assert_eq!(sizes.outstanding, sum(Assembly::outstanding), "{step}");
        assert_eq!(sizes.queued, sum(Assembly::waiting), "{step}");
        assert_eq!(sizes.unverified, sum(Assembly::unverified), "{step}");
        assert_eq!(sizes.buffered, sum(Assembly::size), "{step}");
        assert!(
            sizes.unverified <= 3 && sizes.buffered <= 12_000,
            "{sizes:?}"
        );
        let under_way = sum(|sample| {
            let slots = sample.slots().chain(sample.inter_frame());
            slots
                .filter(|(_, _, slot)| slot.queued || slot.asked.is_some())
                .count()
        });
        assert!(under_way <= 24, "{under_way}: {sizes:?}");
    }
}

/// Two samples advertise 20 segments where 2 are usual. The first count is accepted; while it stands unproven, the second is requested
/// 8 more. Once a segment of the first came, neither is suspicious, and all others of it are requested.
#[test]
fn one_large_count_at_a_time_is_accepted() {
    let mut assembler = assembler(&Config::default());
    let samples = [key_sample(0, 150_000, 0), key_sample(1, 150_000, 0)];
    let count = samples[0].data.len();
    assert!(count >= 20, "{count}");
    (0..2).for_each(|sequence| begin(&mut assembler, sequence));
    send(&mut assembler, at(0));
    let mut requested = Vec::new();
    for (sequence, segments) in (0..).zip(&samples) {
        let lead_id = id(sequence, SegmentKind::Data, 0);
        assembler.answer(lead_id, None);
        let lead = lead(segments);
        let is_suspicious = assembler.on_lead(KEY, &lead);
        assert!(is_suspicious);
        assembler.accept_lead(at(1), (KEY, sequence), lead, is_suspicious);
        assert!(assembler.request_advertised((KEY, sequence)));
        requested.push(send(&mut assembler, at(1)).len());
    }
    assert_eq!(requested, [count - 2, FEW]);
    let second = id(1, SegmentKind::Data, 1);
    take(&mut assembler, at(2), second, &samples[1].data[1]);
    let rest = send(&mut assembler, at(2));
    assert_eq!(rest.len(), count - 2 - FEW);
    assert!(rest.iter().all(|id| id.sequence == 1));
}

/// Repairs leave before what is wanted of new samples, and nothing is requested twice before it has left.
#[test]
fn repairs_come_first_and_once() {
    let mut assembler = assembler(&Config::default());
    begin(&mut assembler, 0);
    send(&mut assembler, at(0));
    begin(&mut assembler, 1);
    let lost = id(0, SegmentKind::Data, 1);
    assembler.repair(lost);
    assembler.repair(lost);
    let sent = send(&mut assembler, at(50));
    assert_eq!(sent[0], lost);
    let others = sent[1..].iter().map(|id| id.sequence);
    assert_eq!(others.collect::<Vec<_>>(), [1, 1, 1]);
    assert_eq!(assembler.lose(lost), Some(at(50)));
    assert_eq!(assembler.lose(lost), None, "it is known");
}
