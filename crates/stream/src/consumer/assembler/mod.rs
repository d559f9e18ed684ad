//! Samples under way: which segments are requested, which are here, and what of it all there is room for.
//!
//! ```text
//!            begin                 request: repairs first           on_sent
//!  Pipeline ───────▶ slot missing ────────────────────────▶ queued ─────────▶ asked
//!                        ▲  ▲                                  │                │ answer
//!            rejected: its │  └────────── withdrawn ───────────┘                ▼
//!            lead does not │                                     lead here: verified, or rejected
//!            vouch for it  └──────────────────────────────────── no lead yet: kept, up to a bound
//!                                                                any N of N + P here: whole
//! ```
//!
//! Every count of what is queued, requested, kept or buffered is changed here and nowhere else.

mod arrivals;
mod queue;
mod sample;
mod segments;
mod slot;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use namecast_units::Instant;

use crate::names::{SampleClass, SegmentId};
use crate::sample::SampleHeader;

use super::config::Config;
use super::order::{SampleKey, Samples};
use super::types::Sizes;

pub(super) use arrivals::Rejected;
pub(super) use queue::{Opening, Request, Sent, SentAs, id_of};
pub(super) use sample::{Accepted, Assembly, Complete, Name};
pub(super) use segments::{SegmentCounts, SegmentEstimators};
pub(super) use slot::{Asked, LeadAnswer, Slot};

/// Segments that a round requests of a sample that is larger than expected, while none of them has come.
pub(super) const FEW: usize = 8;

/// What there is room for.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    samples: usize,
    buffered: usize,
    outstanding: usize,
    unverified: usize,
    attempts: u32,
}

/// What profiles of repair decide differently about leads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    /// Parity is requested as soon as a lead reports it.
    pub requests_parity: bool,
    /// A lead that reports more segments than expected has to prove it.
    pub suspects_counts: bool,
}

/// Samples from their first Interest until they leave.
#[derive(Clone, Debug)]
pub(super) struct Assembler {
    bounds: Bounds,
    policy: Policy,
    samples: Samples,
    /// How many segments the next sample will have.
    segments: SegmentEstimators,
    /// Segments to request, repairs before others.
    repairs: VecDeque<SegmentId>,
    wanted: VecDeque<SegmentId>,
    /// Segments that are to be requested: here, or at the uplink.
    waiting: usize,
    outstanding: usize,
    /// Octets of payload.
    buffered: usize,
    unverified: usize,
    /// A sample whose lead advertises more segments than is usual, of which none came; advertised counts of others are suspicious as long.
    suspicious: Option<SampleKey>,
}

impl Assembler {
    /// Nothing under way. `segments` tells what samples have.
    pub(super) const fn new(config: &Config, policy: Policy, segments: SegmentEstimators) -> Self {
        Self {
            bounds: Bounds {
                samples: config.max_samples,
                buffered: config.max_buffered,
                outstanding: config.max_outstanding,
                unverified: config.max_unverified,
                attempts: config.max_attempts,
            },
            policy,
            samples: Samples::new(),
            segments,
            repairs: VecDeque::new(),
            wanted: VecDeque::new(),
            waiting: 0,
            outstanding: 0,
            buffered: 0,
            unverified: 0,
            suspicious: None,
        }
    }

    /// Drops everything but what is known of the size of samples.
    pub(super) fn clear(&mut self) {
        self.samples.clear();
        self.repairs.clear();
        self.wanted.clear();
        (self.outstanding, self.waiting) = (0, 0);
        (self.buffered, self.unverified) = (0, 0);
    }

    /// Returns all samples.
    pub(super) const fn samples(&self) -> &Samples {
        &self.samples
    }

    /// One sample.
    pub(super) fn get(&self, key: SampleKey) -> Option<&Assembly> {
        self.samples.get(&key)
    }

    /// Returns what is there of a segment.
    pub(super) fn slot(&self, id: SegmentId) -> Option<&Slot> {
        self.get((id.class, id.sequence))?.slot(id.kind, id.index)
    }

    fn slot_mut(&mut self, id: SegmentId) -> Option<&mut Slot> {
        let sample = self.samples.get_mut(&(id.class, id.sequence))?;
        sample.slot_mut(id.kind, id.index)
    }

    /// Returns what the verified lead of a sample says.
    pub(super) fn header(&self, key: SampleKey) -> Option<&SampleHeader> {
        Some(self.get(key)?.lead()?.header())
    }

    /// Returns whether the verified lead of a sample is here.
    pub(super) fn has_lead(&self, key: SampleKey) -> bool {
        self.get(key).is_some_and(|sample| sample.lead().is_some())
    }

    /// Returns the sizes of the tables.
    pub(super) fn sizes(&self) -> Sizes {
        let is_complete = |sample: &&Assembly| sample.complete.is_some();
        Sizes {
            samples: self.samples.len(),
            complete: self.samples.values().filter(is_complete).count(),
            buffered: self.buffered,
            outstanding: self.outstanding,
            queued: self.waiting,
            unverified: self.unverified,
        }
    }

    /// Returns the segments that are to be requested.
    pub(super) const fn waiting(&self) -> usize {
        self.waiting
    }

    /// Returns whether no other sample may begin before one leaves.
    pub(super) fn is_full(&self) -> bool {
        self.samples.len() >= self.bounds.samples || self.buffered >= self.bounds.buffered
    }

    /// Returns whether there is room for another sample of `class`.
    pub(super) fn has_room(&self, class: SampleClass) -> bool {
        !self.is_full() && self.can_request(self.segments_expected(class))
    }

    /// Returns whether so many more segments may be requested at a time.
    pub(super) const fn can_request(&self, segments: usize) -> bool {
        self.outstanding + self.waiting + segments <= self.bounds.outstanding
    }

    /// Returns the segments that the next sample of `class` is reckoned to have.
    pub(super) fn estimate(&self, class: SampleClass) -> SegmentCounts {
        self.segments.estimate(class)
    }

    /// Returns the segments that the next sample of `class` is reckoned to have, parity included.
    pub(super) fn segments_expected(&self, class: SampleClass) -> usize {
        let counts = self.segments.estimate(class);
        (counts.data + counts.parity) as usize
    }

    /// Returns when to look at a sample next, if nothing happens before.
    pub(super) fn next_wake(&self) -> Option<Instant> {
        self.samples.values().filter_map(|sample| sample.wake).min()
    }

    /// Returns the samples that are to be looked at.
    pub(super) fn due(&self, now: Instant) -> Vec<SampleKey> {
        self.keys(|_, sample| sample.wake.is_some_and(|wake| wake <= now))
    }

    /// Returns the samples of which `is_one` holds.
    pub(super) fn keys(&self, is_one: impl Fn(SampleKey, &Assembly) -> bool) -> Vec<SampleKey> {
        let found = self
            .samples
            .iter()
            .filter(|(key, sample)| is_one(**key, sample));
        found.map(|(key, _)| *key).collect()
    }

    /// Looks at a sample by `at`.
    pub(super) fn wake_by(&mut self, key: SampleKey, at: Instant) {
        if let Some(sample) = self.samples.get_mut(&key) {
            sample.wake_by(at);
        }
    }

    /// Looks at every sample that is not whole by `at`.
    pub(super) fn wake_incomplete(&mut self, at: Instant) {
        let incomplete = self.samples.values_mut().filter(|s| s.complete.is_none());
        incomplete.for_each(|sample| sample.wake_by(at));
    }

    /// Looks at a sample at `at` and not before, but for Interests that are to be sent twice; `None`: not at all.
    pub(super) fn rest_until(&mut self, key: SampleKey, at: Option<Instant>) {
        if let Some(sample) = self.samples.get_mut(&key) {
            let hedged = at.and_then(|_| sample.next_hedge());
            sample.wake = hedged.into_iter().chain(at).min();
        }
    }

    /// Reckons by `at` with the loss of all that was requested of a sample.
    pub(super) fn hedge_round_by(&mut self, key: SampleKey, at: Instant) {
        if let Some(sample) = self.samples.get_mut(&key) {
            sample.hedge_round_at = Some(sample.hedge_round_at.map_or(at, |before| before.min(at)));
            sample.wake_by(at);
        }
    }

    /// Takes what was decided about a sample.
    pub(super) fn plan(&mut self, key: SampleKey, plan: &Plan) {
        let Some(sample) = self.samples.get_mut(&key) else {
            return;
        };
        for &((kind, index), retry_at) in &plan.retry {
            let asked = sample
                .slot_mut(kind, index)
                .and_then(|slot| slot.asked.as_mut());
            if let Some(asked) = asked {
                asked.retry_at = retry_at;
            }
        }
        sample.checked |= plan.checked;
        sample.hedge_round_at = plan.hedge_round_at;
        sample.wake = plan.wake;
    }

    /// Records that a sample cannot be completed. Returns whether that is news.
    pub(super) fn give_up(&mut self, key: SampleKey) -> bool {
        let sample = self.samples.get_mut(&key);
        sample.is_some_and(|sample| !core::mem::replace(&mut sample.given_up, true))
    }

    /// Samples of `class` in `numbers` exist now: what was requested in vain before says nothing of whether they will come.
    pub(super) fn forget_attempts(
        &mut self,
        class: SampleClass,
        numbers: core::ops::RangeInclusive<u64>,
    ) {
        let range = (class, *numbers.start())..=(class, *numbers.end());
        let samples = self.samples.range_mut(range);
        samples.for_each(|(_, sample)| sample.forget_attempts());
    }

    /// Samples of `class` in `numbers` were overtaken: what does not come by `look_at` may be lost.
    pub(super) fn mark_overtaken(
        &mut self,
        now: Instant,
        class: SampleClass,
        numbers: core::ops::RangeInclusive<u64>,
        look_at: Instant,
    ) {
        let range = (class, *numbers.start())..=(class, *numbers.end());
        for (_, sample) in self.samples.range_mut(range) {
            if sample.complete.is_none() && sample.overtaken_at.is_none() {
                sample.overtaken_at = Some(now);
                sample.wake_by(look_at);
            }
        }
    }

    /// Drops a sample. Returns it, and whether anything of it was requested or to be.
    pub(super) fn remove(&mut self, key: SampleKey) -> Option<(Assembly, bool)> {
        let sample = self.samples.remove(&key)?;
        self.outstanding -= sample.outstanding();
        self.waiting -= sample.waiting();
        self.unverified -= sample.unverified();
        self.buffered -= sample.size();
        let was_requested = sample.outstanding() + sample.waiting() > 0;
        Some((sample, was_requested))
    }
}

/// What was decided about one sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Plan {
    /// Timers that begin anew.
    pub retry: Vec<(Name, Instant)>,
    /// The checkpoint before the deadline is behind it.
    pub checked: bool,
    /// When to reckon with the loss of all that the last round requested.
    pub hedge_round_at: Option<Instant>,
    /// When to look at it again.
    pub wake: Option<Instant>,
}
