//! Which segments of a sample to retransmit, and when.
//!
//! A segment counts as lost once
//! - later samples came, or followers of a lead that did not, although its answer could have been here by then
//!   (reordering is given a moment);
//! - or the checkpoint, γ·DRD before the deadline, is reached (RTSD §3.4);
//! - or its timer ran out.
//!
//! Parity is counted first: only what neither the segments here nor those still on their way can replace is requested.

use core::time::Duration;

use namecast_units::Instant;

use crate::names::SegmentKind;

use super::super::assembler::{Asked, Assembly, Name};

/// What the decision rests on besides the sample itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Situation {
    /// Time now.
    pub now: Instant,
    /// Data that exists takes this long.
    pub delay: Duration,
    /// And at least this long.
    pub min_delay: Duration,
    /// Packets may overtake each other by this much.
    pub reordering: Duration,
    /// The sample's checkpoint.
    pub checkpoint: Instant,
    /// The sample is known to be published.
    pub published: bool,
    /// Transmissions of one Interest, at most.
    pub max_attempts: u32,
}

/// What to do about one sample.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Decision {
    /// Segments to retransmit.
    pub again: Vec<(SegmentKind, u64)>,
    /// Of the Interests found lost, those whose timer ran out. Also of ones that need not be repeated.
    pub timed_out: Vec<(SegmentKind, u64)>,
    /// A segment that is needed was requested too often.
    pub give_up: bool,
}

impl Situation {
    /// Returns since when there has been evidence that the lead, or any segment, should be here.
    fn evidence(&self, assembly: &Assembly, is_lead: bool) -> Option<Instant> {
        Some(assembly.thought_lost_at(is_lead)? + self.reordering)
    }

    /// Returns whether the Interest for a segment that is missing has been in vain.
    fn is_lost(&self, assembly: &Assembly, asked: &Asked, is_lead: bool) -> bool {
        let should_be_here = |by: Instant| by <= self.now && asked.last_at + self.min_delay <= by;
        let checkpoint = !assembly.checked
            && self.checkpoint <= self.now
            && asked.last_at + self.delay <= self.now;
        asked.retry_at <= self.now
            || checkpoint
            || self.evidence(assembly, is_lead).is_some_and(should_be_here)
    }

    /// Decides about `assembly`.
    pub(super) fn decide(&self, assembly: &Assembly) -> Decision {
        let mut decision = Decision::default();
        let mut lost = Vec::new();
        let mut on_the_way = 0;
        let has_lead = assembly.lead().is_some();
        for (kind, index, slot) in assembly.slots() {
            if !slot.is_missing() {
                continue;
            }
            let is_lead = kind == SegmentKind::Data && index == 0;
            let timer = slot.asked.is_some_and(|asked| asked.retry_at <= self.now);
            if timer {
                decision.timed_out.push((kind, index));
            }
            let asked = slot.asked.filter(|_| !slot.queued);
            match asked.map(|asked| self.is_lost(assembly, &asked, is_lead)) {
                // Without the lead nobody knows what is needed: others wait for their own timer.
                Some(true) if has_lead || is_lead || timer => {
                    lost.push((kind, index, slot.attempts));
                }
                Some(true) => {}
                Some(false) => on_the_way += 1,
                None => on_the_way += usize::from(slot.queued),
            }
        }
        let needed = match assembly.lead() {
            Some(lead) => lead
                .data_count()
                .saturating_sub(assembly.here() + on_the_way),
            None => lost.len(),
        };
        lost.truncate(needed);
        for (kind, index, attempts) in lost {
            if self.published && attempts >= self.max_attempts {
                decision.give_up = true;
            } else {
                decision.again.push((kind, index));
            }
        }
        decision
    }

    /// Returns when to decide again if nothing happens before, and the timers in `retry` begin anew.
    pub(super) fn next_look(
        &self,
        assembly: &Assembly,
        retry: &[(Name, Instant)],
    ) -> Option<Instant> {
        let mut times = Vec::with_capacity(4);
        if self.checkpoint > self.now && !assembly.checked {
            times.push(self.checkpoint);
        }
        for is_lead in [true, false] {
            times.extend(self.evidence(assembly, is_lead));
        }
        times.retain(|&at| at > self.now);
        let timers = assembly
            .slots()
            .filter(|(_, _, slot)| slot.is_missing())
            .filter_map(|(kind, index, slot)| {
                let anew = retry.iter().find(|(name, _)| *name == (kind, index));
                Some(anew.map_or(slot.asked?.retry_at, |(_, at)| *at))
            });
        times.into_iter().chain(timers).min()
    }
}
