//! What samples that were waited for show of their way: how close segments come, and how long they queue.
//!
//! ```text
//!  Interests wait at the producer     sample is published      Data at this end
//!   lead ─┐ 1 ─┐ 2 ─┐ 3 ─┐                 │              lead 1 2 3       4
//!         └────┴────┴────┴────────────▶────┤               └─train─┘       asked for later
//! ```

use std::collections::VecDeque;

use core::time::Duration;

use namecast_units::{ByteSize, Instant};

use crate::ladder::{Sign, Train};
use crate::names::{SegmentId, SegmentKind};

use super::Consumer;
use super::assembly::Asked;
use super::order::SampleKey;

/// Signs kept until somebody asks for them; the oldest go first.
const MOST_SIGNS: usize = 64;
/// Interests that leave within so long of each other leave together.
pub(super) const TOGETHER: Duration = Duration::from_millis(1);

/// A lead that was asked for before its sample existed.
#[derive(Clone, Copy, Debug)]
pub(super) struct AwaitedLead {
    pub key: SampleKey,
    /// How much later than at best it came.
    pub late: Duration,
    /// When its Interest left.
    pub asked_at: Instant,
    /// How long its answer took, and how much of that it waited for the sample, where the producer tells.
    pub waited: Option<(Duration, Duration)>,
}

/// The train that is coming in.
#[derive(Clone, Copy, Debug)]
struct Open {
    key: SampleKey,
    first_at: Instant,
    last_at: Instant,
    /// Interests that left until then were at the producer when the sample was published.
    asked_until: Instant,
    /// Index of the segment that goes on with it.
    next: u64,
    /// Octets after the first segment.
    size: ByteSize,
}

impl Open {
    /// What it was, if it has more than its lead.
    fn train(&self) -> Option<Train> {
        let train = Train {
            segments: u32::try_from(self.next).unwrap_or(u32::MAX),
            size: self.size,
            span: self.last_at.since(self.first_at),
        };
        (self.next > 1).then_some(train)
    }
}

/// Puts trains together, and keeps signs.
#[derive(Clone, Debug, Default)]
pub(super) struct Trains {
    open: Option<Open>,
    signs: VecDeque<Sign>,
    /// Whether those of single packets are kept as well.
    tells_packets: bool,
}

impl Trains {
    fn push(&mut self, sign: Sign) {
        if self.signs.len() == MOST_SIGNS {
            self.signs.pop_front();
        }
        self.signs.push_back(sign);
    }

    /// Ends the train that is coming in.
    pub(super) fn end(&mut self) {
        if let Some(train) = self.open.take().and_then(|open| open.train()) {
            self.push(Sign::Train(train));
        }
    }

    /// Ends it if it is of `key`.
    pub(super) fn end_of(&mut self, key: SampleKey) {
        if self.open.as_ref().is_some_and(|open| open.key == key) {
            self.end();
        }
    }

    /// Begins one with the lead of `key`. Interests that left until `asked_until` waited for it as well.
    pub(super) fn on_lead(&mut self, now: Instant, key: SampleKey, asked_until: Instant) {
        self.end();
        self.open = Some(Open {
            key,
            first_at: now,
            last_at: now,
            asked_until,
            next: 1,
            size: ByteSize::ZERO,
        });
    }

    /// Takes a segment that is no lead.
    pub(super) fn on_follower(
        &mut self,
        now: Instant,
        id: SegmentId,
        asked: &Asked,
        size: ByteSize,
    ) {
        let Some(open) = self.open.as_mut() else {
            return;
        };
        if open.key != (id.class, id.sequence) {
            return;
        }
        let is_once = asked.attempts == 1 || asked.is_insured;
        let was_there = is_once && asked.first_at <= open.asked_until;
        if id.kind == SegmentKind::Data && id.index == open.next && was_there {
            open.next += 1;
            open.last_at = now;
            open.size += size;
        } else {
            // Lost, overtaken, or asked for later: what comes from here on did not leave together.
            self.end();
        }
    }

    /// Takes what the lead of a sample waited for shows of queues.
    pub(super) fn on_queueing(&mut self, queueing: Duration) {
        self.push(Sign::Lead { queueing });
    }

    /// Takes what became of one packet.
    pub(super) fn on_packet(&mut self, sign: Sign) {
        if self.tells_packets {
            self.push(sign);
        }
    }

    pub(super) fn poll(&mut self) -> Option<Sign> {
        self.signs.pop_front()
    }
}

impl Consumer {
    /// The next sign of what the way carries, until `None`. Unless somebody takes them, the oldest are forgotten.
    pub fn poll_sign(&mut self) -> Option<Sign> {
        self.trains.poll()
    }

    /// Says whether every packet, and every loss, is to be a sign: for those who estimate bandwidth by them.
    pub const fn set_tells_packets(&mut self, tells_packets: bool) {
        self.trains.tells_packets = tells_packets;
    }

    /// Takes note of the lead of a sample that was asked for before it existed.
    pub(super) fn note_train_lead(&mut self, now: Instant, lead: &AwaitedLead) {
        let AwaitedLead {
            key,
            late,
            asked_at,
            waited,
        } = *lead;
        let (asked_at, waited) = match waited {
            Some((took, waited)) => (now.saturating_sub(took), waited),
            None => {
                let took = now.since(asked_at);
                let waited = took.saturating_sub(self.delay.estimate(now));
                (asked_at, waited.min(TOGETHER))
            }
        };
        if waited.is_zero() {
            self.trains.end();
            return;
        }
        self.trains.on_lead(now, key, asked_at + waited);
        let behind = self.samples.get(&key).map(|sample| sample.behind);
        self.trains
            .on_queueing(late.max(behind.unwrap_or_default()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::SampleClass;

    const KEY: SampleKey = (SampleClass::Delta, 7);
    const SIZE: ByteSize = ByteSize::bytes(1_000);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn id(index: u64) -> SegmentId {
        SegmentId {
            class: KEY.0,
            sequence: KEY.1,
            kind: SegmentKind::Data,
            index,
        }
    }

    fn asked(millis: u64) -> Asked {
        Asked {
            attempts: 1,
            ..Asked::unmeasured(at(millis))
        }
    }

    /// The lead and what follows it at 102, 104, … ms, asked for at these times, where 10 ms was the last in time.
    fn train(asked_at: &[u64], indices: &[u64]) -> Option<Sign> {
        let mut trains = Trains::default();
        trains.on_lead(at(100), KEY, at(10));
        for (step, (&millis, &index)) in asked_at.iter().zip(indices).enumerate() {
            let now = at(102 + 2 * step as u64);
            trains.on_follower(now, id(index), &asked(millis), SIZE);
        }
        trains.end();
        trains.poll()
    }

    fn sign(segments: u32) -> Option<Sign> {
        Some(Sign::Train(Train {
            segments,
            size: ByteSize::bytes(u64::from(segments - 1) * 1_000),
            span: Duration::from_millis(u64::from(segments - 1) * 2),
        }))
    }

    #[test]
    fn what_was_asked_for_in_time_and_came_in_a_row_is_a_train() {
        assert_eq!(train(&[0, 0, 10], &[1, 2, 3]), sign(4));
        // Asked for later, a segment lost, one that overtook another.
        assert_eq!(train(&[0, 0, 11], &[1, 2, 3]), sign(3));
        assert_eq!(train(&[0, 0, 0], &[1, 3, 4]), sign(2));
        assert_eq!(train(&[0, 0, 0], &[2, 1, 3]), None);
    }

    #[test]
    fn another_lead_ends_it_and_memory_is_bounded() {
        let mut trains = Trains::default();
        for step in 0..1_000 {
            trains.on_lead(at(step * 40), KEY, at(step * 40));
            trains.on_follower(at(step * 40 + 2), id(1), &asked(step * 40), SIZE);
            trains.on_queueing(Duration::from_millis(step));
        }
        assert_eq!(trains.signs.len(), MOST_SIGNS);
        let last = trains.signs.back();
        assert_eq!(
            last,
            Some(&Sign::Lead {
                queueing: Duration::from_millis(999)
            })
        );
    }
}
