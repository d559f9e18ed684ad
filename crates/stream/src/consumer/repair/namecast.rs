//! Namecast's repair: by the stream's clock, in rounds, with as much ahead as loss and the time left warrant.

use core::time::Duration;

use namecast_units::Instant;

use crate::names::SampleClass;
use crate::rate::Loss;
use crate::sample::MAX_LEAD_COPIES;

use super::super::assembler::{Assembly, FEW, Plan, Policy, SegmentCounts, Slot};
use super::plan::{NAME_REST, Outlook};
use super::{CLEAN, Lost, Moment, Recovery, RecoveryConfig, Repair, Times, Verdict};

/// Bounds of the time from an Interest to another one that makes up for its loss: beyond what forwarders hold back, and for a
/// burst of five packets of a stream of 1 Mbit/s to end, 5 · 8 ms. Measured: a lower first and a higher second one change no
/// run at 30 frames a second, whose period lies between them.
const BURST: (Duration, Duration) = (NAME_REST, Duration::from_millis(40));
/// Loss to reckon with once anything is missing: a choice.
/// Measured: half and double lose 0.1 to 0.4 % of frames at 10 % loss.
const MIN_LOSS: f64 = 0.01;
/// Samples that may be taken for published although nothing of them came, beyond those requested ahead: a quarter of a second at 30
/// frames a second. A bound alone: half and double change no run that was measured.
const MAX_UNSEEN: u64 = 8;
/// Interests for samples that nobody will show, at most, if there is time to wait for the next key sample: a frame of 1 Mbit/s has
/// as many segments with its parity. A bound alone, of changes of rung.
const MAX_IN_VAIN: usize = 8;

/// [`RecoveryProfile::Namecast`](super::RecoveryProfile::Namecast).
pub(super) struct Namecast;

impl Repair for Namecast {
    fn ahead(
        &self,
        recovery: &Recovery,
        moment: &Moment,
        class: SampleClass,
        estimate: SegmentCounts,
    ) -> SegmentCounts {
        let SegmentCounts { mut data, parity } = estimate;
        if !recovery.is_standalone && !recovery.has_time_to_repair(moment, class) {
            // One that turns out larger could not be completed in time; what it does not have costs no Data.
            data = (data + parity.max(1)).min(recovery.max_segments);
        }
        let parity = recovery.parity_ahead(moment, class, data, parity);
        SegmentCounts { data, parity }
    }

    fn lead_copies(&self, config: &RecoveryConfig) -> usize {
        config.lead_copies.min(MAX_LEAD_COPIES)
    }

    fn uses_inter_frame(&self, config: &RecoveryConfig) -> bool {
        config.inter_frame
    }

    fn hedge_delay(&self, recovery: &Recovery) -> Option<Duration> {
        let warranted = !recovery.knowledge.link_retransmission.is_trusted()
            && recovery.loss() >= recovery.config.hedge_from;
        warranted.then(|| recovery.burst())
    }

    fn is_paced(&self) -> bool {
        true
    }

    fn policy(&self) -> Policy {
        Policy {
            requests_parity: false,
            suspects_counts: true,
        }
    }

    fn max_in_vain(&self) -> usize {
        MAX_IN_VAIN
    }

    fn max_unseen(&self) -> u64 {
        MAX_UNSEEN
    }

    fn check_at(&self, recovery: &Recovery, moment: &Moment, times: &Times) -> Instant {
        recovery.due_at(moment, times)
    }

    fn check_sent_at(&self, due: Instant, _retry_at: Instant) -> Instant {
        due
    }

    fn decide(
        &self,
        recovery: &Recovery,
        moment: &Moment,
        times: &Times,
        sample: &Assembly,
    ) -> Verdict {
        let mut round = recovery.outlook(moment, times).plan(sample);
        if sample.is_suspicious {
            // What may not exist is not worth more.
            round.ask.truncate(FEW);
        }
        let lost = |name: &(_, _)| {
            let is_first = sample.slot(name.0, name.1).is_some_and(Slot::is_first);
            Lost {
                name: *name,
                loss: if is_first { Loss::Gap } else { Loss::Timeout },
                is_first,
            }
        };
        let hedged = sample.next_hedge().into_iter();
        Verdict {
            lost: round.lost.iter().map(lost).collect(),
            plan: Plan {
                retry: Vec::new(),
                checked: false,
                hedge_round_at: round.hedge_round_at,
                wake: hedged.chain(round.next_look).min(),
            },
            request: round.ask,
            give_up: round.give_up,
        }
    }

    fn hedge_round_at(
        &self,
        recovery: &Recovery,
        moment: &Moment,
        times: &Times,
    ) -> Option<Instant> {
        // Where segments are requested one by one, all of them in one burst of losses are few; where links repeat them, none.
        let is_clean = recovery.knowledge.losses.share() < CLEAN;
        if is_clean || recovery.knowledge.link_retransmission.is_trusted() {
            return None;
        }
        recovery.outlook(moment, times).hedge_round_at()
    }
}

impl Recovery {
    fn outlook(&self, moment: &Moment, times: &Times) -> Outlook<'_> {
        let knowledge = &self.knowledge;
        let expected_at = times.expected_at();
        let margin = knowledge.margin(moment, times.key.0);
        let wait = knowledge.wait(moment, margin);
        let deadline = times.render_at.unwrap_or(expected_at + moment.target);
        Outlook {
            now: moment.now,
            due_at: expected_at + wait + times.unpunctuality,
            expected_at,
            margin,
            wait,
            repeats: knowledge.link_retransmission.is_trusted(),
            prefers_copies: self.prefers_copies(times),
            path: moment.path,
            progress: knowledge.progress(),
            delay: moment.delay,
            min_delay: moment.min_delay(),
            round_trip: moment.round_trip(),
            hedge_after: self.burst(),
            deadline,
            hurry_until: deadline + moment.tolerance,
            is_alive: moment.is_alive,
            is_published: times.is_published,
            losses: knowledge.losses.losses(MIN_LOSS).of_round_trip(),
            max_attempts: self.max_attempts,
            config: &self.config,
        }
    }

    /// Returns whether copies of a sample's lead are requested before the lead itself is again. To find out by a key sample would risk
    /// all that needs it.
    fn prefers_copies(&self, times: &Times) -> bool {
        let link_retransmission = &self.knowledge.link_retransmission;
        let (class, sequence) = times.key;
        let may_test = class == SampleClass::Delta || self.is_standalone;
        link_retransmission.is_trusted() || may_test && link_retransmission.is_test(sequence)
    }

    /// Returns the time after which another Interest is not lost in the same burst: about one sample.
    fn burst(&self) -> Duration {
        let (least, most) = BURST;
        self.period.clamp(least, most)
    }

    /// Parity segments of a sample of `data` segments to request ahead, `most` at most: none where a repair round fits before its
    /// time, else as many as make it unlikely that it misses it.
    fn parity_ahead(&self, moment: &Moment, class: SampleClass, data: u32, most: u32) -> u32 {
        let losses = self.knowledge.losses.losses(0.0);
        if losses.share < CLEAN || self.has_time_to_repair(moment, class) {
            return 0;
        }
        (0..most)
            .find(|&more| {
                let (sent, needed) = ((data + more) as usize, data as usize);
                losses.fewer(sent, needed) <= self.config.miss
            })
            .unwrap_or(most)
    }
}
