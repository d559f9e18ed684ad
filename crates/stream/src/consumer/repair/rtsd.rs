//! Repair as \[RTSD\] has it (§3.4).

use core::time::Duration;

use namecast_units::Instant;

use crate::names::SampleClass;
use crate::rate::Loss;

use super::super::assembler::{Assembly, Name, Plan, Policy, SegmentCounts};
use super::retransmit::Situation;
use super::{Lost, Moment, Recovery, RecoveryConfig, Repair, Times, Verdict};

/// [`RecoveryProfile::Paper`](super::RecoveryProfile::Paper).
pub(super) struct Rtsd;

impl Repair for Rtsd {
    fn ahead(
        &self,
        _recovery: &Recovery,
        _moment: &Moment,
        _class: SampleClass,
        estimate: SegmentCounts,
    ) -> SegmentCounts {
        estimate
    }

    fn lead_copies(&self, _config: &RecoveryConfig) -> usize {
        0
    }

    fn uses_inter_frame(&self, _config: &RecoveryConfig) -> bool {
        false
    }

    fn hedge_delay(&self, _recovery: &Recovery) -> Option<Duration> {
        None
    }

    fn is_paced(&self) -> bool {
        false
    }

    fn policy(&self) -> Policy {
        Policy {
            requests_parity: true,
            suspects_counts: false,
        }
    }

    /// There is no bound: the Interests of the next key sample have always left.
    fn max_in_vain(&self) -> usize {
        usize::MAX
    }

    /// Only what came moves the pipeline on.
    fn max_unseen(&self) -> u64 {
        0
    }

    /// Returns when one more round trip still fits before the deadline: γ·DRD before it (RTSD §3.4).
    fn check_at(&self, recovery: &Recovery, moment: &Moment, times: &Times) -> Instant {
        let margin = moment.delay.mul_f64(recovery.checkpoint);
        if let Some(render_at) = times.render_at.filter(|_| times.has_lead) {
            return render_at.saturating_sub(margin);
        }
        let deadline = times.in_turn + moment.target;
        // A delta sample after a key sample comes one period later than the one before promised.
        let soonest = times.in_turn + times.period + recovery.reordering(moment);
        deadline.saturating_sub(margin).max(soonest)
    }

    fn check_sent_at(&self, _due: Instant, retry_at: Instant) -> Instant {
        retry_at
    }

    fn decide(
        &self,
        recovery: &Recovery,
        moment: &Moment,
        times: &Times,
        sample: &Assembly,
    ) -> Verdict {
        let now = moment.now;
        let delay = moment.delay;
        let situation = Situation {
            now,
            delay,
            min_delay: moment.min_delay().min(delay),
            reordering: recovery.reordering(moment),
            checkpoint: self.check_at(recovery, moment, times),
            published: times.is_published,
            max_attempts: recovery.max_attempts,
        };
        let decision = situation.decide(sample);
        let timer = |&(kind, index): &Name| {
            let attempts = sample.slot(kind, index)?.attempts;
            Some(((kind, index), now + moment.timer.after(attempts)))
        };
        let retry: Vec<_> = decision.timed_out.iter().filter_map(timer).collect();
        let lost = |loss| {
            move |&name: &Name| Lost {
                name,
                loss,
                is_first: false,
            }
        };
        let timed_out = decision.timed_out.iter().map(lost(Loss::Timeout));
        let overdue = decision.again.iter().map(lost(Loss::Gap));
        Verdict {
            lost: timed_out.chain(overdue).collect(),
            plan: Plan {
                wake: situation.next_look(sample, &retry),
                checked: situation.checkpoint <= now,
                hedge_round_at: None,
                retry,
            },
            request: decision.again,
            give_up: decision.give_up,
        }
    }

    fn hedge_round_at(
        &self,
        _recovery: &Recovery,
        _moment: &Moment,
        _times: &Times,
    ) -> Option<Instant> {
        None
    }
}
