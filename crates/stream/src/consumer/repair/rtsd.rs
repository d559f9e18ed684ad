//! Repair as \[RTSD\] has it (§3.4), and with timers.
//!
//! ```text
//!   earliest arrival ──────────── target ───────────▶ shown
//!                        checkpoint ├──── γ·DRD ────┤
//!   parity first; what it does not make up for is requested again, once
//! ```

use core::time::Duration;

use namecast_units::Instant;

use crate::names::SampleClass;
use crate::rate::Loss;

use super::super::assembler::{Assembly, Name, Plan, Policy, SegmentCounts, Slot};
use super::retransmit::Situation;
use super::{Lost, Moment, Recovery, RecoveryConfig, Repair, Times, Verdict};

/// [`RecoveryProfile::Paper`](super::RecoveryProfile::Paper) and [`RecoveryProfile::Timers`](super::RecoveryProfile::Timers).
pub(super) struct Rtsd {
    /// Whether what was overtaken, and what a timer ran out for, is requested again as well.
    pub has_timers: bool,
}

/// Before playback begins no sample has a deadline. Whoever begins to play looks at all of them.
const NO_DEADLINE: Duration = Duration::from_secs(3_600);
/// What takes DRD to the nanosecond must not come one too late.
const TICK: Duration = Duration::from_millis(1);

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
        if !self.has_timers && moment.is_held {
            return moment.now + NO_DEADLINE;
        }
        if let Some(render_at) = times.render_at.filter(|_| !self.has_timers) {
            return render_at.saturating_sub(margin + TICK);
        }
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
        if !self.has_timers {
            let checkpoint = self.check_at(recovery, moment, times);
            return at_checkpoint(moment.now, recovery.max_attempts, checkpoint, sample);
        }
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

    fn has_timers(&self) -> bool {
        self.has_timers
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

/// Requests what parity does not make up for once the checkpoint is reached. An Interest is lost once its lifetime is over, and the sample is
/// given up when all of them are.
fn at_checkpoint(
    now: Instant,
    max_attempts: u32,
    checkpoint: Instant,
    sample: &Assembly,
) -> Verdict {
    let missing = sample.slots().filter(|(_, _, slot)| slot.is_missing());
    let missing: Vec<_> = missing.collect();
    let is_reached = checkpoint <= now && !sample.checked;
    let mut request: Vec<Name> = Vec::new();
    if is_reached {
        let again = missing.iter().filter(|(_, _, slot)| {
            slot.asked.is_some() && !slot.queued && slot.attempts < max_attempts
        });
        request.extend(again.map(|(kind, index, _)| (*kind, *index)));
        if let Some(lead) = sample.lead() {
            request.truncate(lead.data_count().saturating_sub(sample.here()));
        }
    }
    let asked = || {
        missing
            .iter()
            .filter_map(|(kind, index, slot)| Some(((*kind, *index), slot.asked?)))
    };
    let lapsed = asked().filter(|(_, asked)| asked.retry_at <= now && !asked.is_lost);
    let lapsed = lapsed.map(|(name, _)| (name, Loss::Timeout));
    let overdue = request.iter().map(|name| (*name, Loss::Gap));
    let lost = lapsed.chain(overdue).map(|(name, loss)| Lost {
        name,
        loss,
        is_first: false,
    });
    let next_lapse = asked()
        .map(|(_, asked)| asked.retry_at)
        .filter(|at| *at > now);
    let upcoming = (checkpoint > now && !sample.checked).then_some(checkpoint);
    let wake = next_lapse.chain(upcoming).min();
    let is_out = |(_, _, slot): &(_, _, &Slot)| {
        slot.queued || slot.asked.is_some_and(|asked| asked.retry_at > now)
    };
    Verdict {
        lost: lost.collect(),
        give_up: request.is_empty() && !missing.iter().any(is_out),
        plan: Plan {
            wake,
            checked: is_reached,
            ..Plan::default()
        },
        request,
    }
}
