//! Repair as \[RTSD\] has it (§3.4).

use core::time::Duration;

use namecast_units::Instant;

use crate::rate::Loss;

use super::super::Consumer;
use super::super::assembly::Assembly;
use super::super::order::SampleKey;
use super::retransmit::Situation;

/// Bounds of the time that packets are given to overtake each other before they were seen to do so.
const LEAST_REORDERING: Duration = Duration::from_millis(2);
const USUAL_REORDERING: Duration = Duration::from_millis(10);

impl Consumer {
    /// When what is still missing of a sample should be asked for again, so that one more round trip fits before its
    /// deadline: γ·DRD before it (RTSD §3.4).
    pub(in crate::consumer) fn checkpoint(&self, now: Instant, key: SampleKey) -> Instant {
        let margin = self.delay.estimate(now).mul_f64(self.config.checkpoint);
        let lead = self.samples.get(&key).and_then(Assembly::lead);
        match lead {
            Some(lead) => self
                .playout
                .render_at(now, lead.header().published_at())
                .saturating_sub(margin),
            None => {
                let expected = self.pipeline.expected_at(key.0, key.1);
                let deadline = expected + self.playout.target;
                // A delta sample after a key sample comes one period later than the one before promised.
                let soonest = expected + self.source.rate.period() + self.reordering(now);
                deadline.saturating_sub(margin).max(soonest)
            }
        }
    }

    /// Time that packets are given to overtake each other: what was seen in the last seconds and a quarter, or the usual
    /// time if that is more.
    pub(in crate::consumer) fn reordering(&self, now: Instant) -> Duration {
        let delay = self.delay.estimate(now);
        let usual = (delay / 8).clamp(LEAST_REORDERING, USUAL_REORDERING);
        let seen = self
            .reordering
            .minimum(now)
            .map_or(Duration::ZERO, |seen| seen.0);
        (seen * 5 / 4).min(delay / 2).max(usual)
    }

    pub(super) fn repair_like_paper(&mut self, now: Instant, key: SampleKey) {
        let delay = self.delay.estimate(now);
        let situation = Situation {
            now,
            delay,
            least_delay: self.delay.least(now).unwrap_or(delay).min(delay),
            reordering: self.reordering(now),
            checkpoint: self.checkpoint(now, key),
            published: self.is_published(key),
            most_attempts: self.config.most_attempts,
        };
        let Some(sample) = self.samples.get_mut(&key) else {
            return;
        };
        if sample.complete.is_some() {
            sample.wake = None;
            return;
        }
        let repair = situation.repair(sample);
        for &(kind, index) in &repair.timed_out {
            if let Some(slot) = sample.slot_mut(kind, index) {
                let timer = self.delay.timeout(now, slot.attempts);
                if let Some(asked) = &mut slot.asked {
                    asked.retry_at = now + timer;
                }
            }
        }
        sample.checked |= situation.checkpoint <= now;
        sample.wake = situation.next_look(sample);
        let timed_out = repair.timed_out.len() as u64;
        self.counters.interests_timed_out += timed_out;
        for &(kind, index) in &repair.timed_out {
            self.report_loss(now, key, (kind, index), Loss::Timeout);
        }
        for (kind, index) in repair.again {
            self.report_loss(now, key, (kind, index), Loss::Gap);
            if let Some(slot) = self.slot_mut(key, (kind, index)) {
                slot.is_repair = true;
            }
            self.queue_repair(key, kind, index);
        }
        if repair.give_up {
            self.give_up(key);
        }
    }
}
