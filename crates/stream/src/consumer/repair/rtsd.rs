//! Repair as \[RTSD\] has it (§3.4).

use core::time::Duration;

use namecast_units::Instant;

use crate::names::{SampleClass, SegmentKind};
use crate::rate::Loss;

use super::super::Consumer;
use super::super::assembly::Assembly;
use super::super::order::SampleKey;
use super::super::segments::SegmentCounts;
use super::retransmit::Situation;
use super::{RecoveryConfig, Repair};

/// [`RecoveryProfile::Paper`](super::RecoveryProfile::Paper).
pub(super) struct Rtsd;

impl Repair for Rtsd {
    fn ahead(&self, consumer: &Consumer, _now: Instant, class: SampleClass) -> SegmentCounts {
        consumer.segments.estimate(class)
    }

    fn lead_copies(&self, _config: &RecoveryConfig) -> usize {
        0
    }

    fn uses_across(&self, _config: &RecoveryConfig) -> bool {
        false
    }

    fn insurance(&self, _consumer: &Consumer) -> Option<Duration> {
        None
    }

    fn is_paced(&self) -> bool {
        false
    }

    fn requests_reported(&self, _kind: SegmentKind) -> bool {
        true
    }

    fn doubts_claims(&self) -> bool {
        false
    }

    /// The Interests of the next key sample have always left.
    fn most_in_vain(&self) -> usize {
        usize::MAX
    }

    /// When one more round trip still fits before the deadline: γ·DRD before it (RTSD §3.4).
    fn check_at(&self, consumer: &Consumer, now: Instant, key: SampleKey) -> Instant {
        let margin = consumer
            .delay
            .estimate(now)
            .mul_f64(consumer.config.checkpoint);
        let lead = consumer.samples.get(&key).and_then(Assembly::lead);
        match lead {
            Some(lead) => consumer
                .timeline
                .render_at(now, lead.header().published_at())
                .saturating_sub(margin),
            None => {
                let expected = consumer.pipeline.expected_at(key.0, key.1);
                let deadline = expected + consumer.timeline.target();
                // A delta sample after a key sample comes one period later than the one before promised.
                let soonest = expected + consumer.source.rate.period() + consumer.reordering(now);
                deadline.saturating_sub(margin).max(soonest)
            }
        }
    }

    fn check_sent_at(&self, _due: Instant, retry_at: Instant) -> Instant {
        retry_at
    }

    fn check(&self, consumer: &mut Consumer, now: Instant, key: SampleKey) {
        let delay = consumer.delay.estimate(now);
        let situation = Situation {
            now,
            delay,
            least_delay: consumer.delay.least(now).unwrap_or(delay).min(delay),
            reordering: consumer.reordering(now),
            checkpoint: self.check_at(consumer, now, key),
            published: consumer.is_published(key),
            most_attempts: consumer.config.most_attempts,
        };
        let Some(sample) = consumer.samples.get_mut(&key) else {
            return;
        };
        if sample.complete.is_some() {
            sample.wake = None;
            return;
        }
        let decision = situation.decide(sample);
        for &(kind, index) in &decision.timed_out {
            if let Some(slot) = sample.slot_mut(kind, index) {
                let timer = consumer.delay.timeout(now, slot.attempts);
                if let Some(asked) = &mut slot.asked {
                    asked.retry_at = now + timer;
                }
            }
        }
        sample.checked |= situation.checkpoint <= now;
        sample.wake = situation.next_look(sample);
        let timed_out = decision.timed_out.len() as u64;
        consumer.counters.interests_timed_out += timed_out;
        for &(kind, index) in &decision.timed_out {
            consumer.report_loss(now, key, (kind, index), Loss::Timeout);
        }
        for (kind, index) in decision.again {
            consumer.report_loss(now, key, (kind, index), Loss::Gap);
            if let Some(slot) = consumer.slot_mut(key, (kind, index)) {
                slot.is_repair = true;
            }
            consumer.queue_repair(key, kind, index);
        }
        if decision.give_up {
            consumer.give_up(key);
        }
    }

    fn hedge_missing(&self, _consumer: &mut Consumer, _now: Instant, _key: SampleKey) {}

    /// Only what came moves it on.
    fn pass_unseen(&self, _consumer: &mut Consumer, _now: Instant) {}
}
