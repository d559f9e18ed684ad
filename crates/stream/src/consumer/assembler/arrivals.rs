//! What comes: segments before and after their lead, leads, and whole samples.

use namecast_packet::Data;
use namecast_units::Instant;

use crate::names::{SampleClass, SegmentId};
use crate::sample::Lead;

use super::super::order::SampleKey;
use super::Assembler;
use super::queue::id_of;
use super::sample::{Accepted, Complete};
use super::segments::SegmentCounts;
use super::slot::Asked;

/// What was known of a segment when a packet of its name came.
#[derive(Clone, Copy, Debug)]
pub(in crate::consumer) struct Answered {
    /// The Interest that it answers.
    pub asked: Option<Asked>,
    /// It was to be requested again.
    pub was_queued: bool,
    pub is_repair: bool,
    /// Its sample is whole.
    pub is_complete: bool,
}

/// What follows from a bad packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::consumer) enum Rejected {
    /// The segment is requested again, or others of its sample may make up for it.
    Requested,
    /// It was requested too often: nothing will come of the sample.
    Hopeless,
}

impl Assembler {
    /// Records that a packet came for a segment, from `face`. Returns what it answers; `None` if nothing of its sample is under way.
    pub(in crate::consumer) fn answer(
        &mut self,
        id: SegmentId,
        face: Option<u64>,
    ) -> Option<Answered> {
        let sample = self.samples.get_mut(&(id.class, id.sequence))?;
        let mut answered = Answered {
            asked: None,
            was_queued: false,
            is_repair: false,
            is_complete: sample.complete.is_some(),
        };
        if let Some(slot) = sample.slot_mut(id.kind, id.index) {
            slot.hedge_at = None;
            answered.was_queued = core::mem::take(&mut slot.queued);
            answered.is_repair = slot.is_repair;
            answered.asked = slot.asked.take();
            if answered.asked.is_some() {
                slot.from_face = face;
            }
        }
        self.waiting -= usize::from(answered.was_queued);
        self.outstanding -= usize::from(answered.asked.is_some());
        Some(answered)
    }

    /// Takes a segment other than a lead; without its lead the sample is looked at by `look_at`. Returns `None` if there is no room for it.
    pub(in crate::consumer) fn accept(
        &mut self,
        now: Instant,
        id: SegmentId,
        data: &Data,
        look_at: Instant,
    ) -> Option<Accepted> {
        let key = (id.class, id.sequence);
        let has_room = self.unverified < self.bounds.unverified;
        let sample = self.samples.get_mut(&key)?;
        if sample.lead().is_none() && !has_room {
            return None;
        }
        let accepted = sample.accept(id.kind, id.index, data.clone());
        if accepted == Accepted::Unverified {
            self.unverified += 1;
            if sample.lacks_lead() {
                sample.unverified_at.get_or_insert(now);
                sample.wake_by(look_at);
            }
        }
        if accepted == Accepted::Here {
            self.accept_count(key);
        }
        Some(accepted)
    }

    /// Keeps the packet of a lead until somebody can judge it. Returns whether there was room.
    pub(in crate::consumer) fn keep_unjudged(&mut self, id: SegmentId, data: &Data) -> bool {
        if self.unverified >= self.bounds.unverified || !id.is_lead() {
            return false;
        }
        if let Some(sample) = self.samples.get_mut(&(id.class, id.sequence)) {
            let kept = sample.keep_unjudged_lead(data.clone());
            self.unverified += usize::from(kept == Accepted::Unverified);
        }
        true
    }

    /// Takes back a packet that [`keep_unjudged`](Self::keep_unjudged) kept.
    pub(in crate::consumer) fn take_unjudged(&mut self, key: SampleKey) -> Option<Data> {
        let data = self.samples.get_mut(&key)?.take_unjudged_lead()?;
        self.unverified -= 1;
        Some(data)
    }

    /// Learns the size of samples from a verified lead. Returns whether the number of segments that it advertises is suspicious.
    pub(in crate::consumer) fn on_lead(&mut self, class: SampleClass, lead: &Lead) -> bool {
        let counts = SegmentCounts::of(lead);
        let is_large = counts.data > self.segments.estimate(class).data;
        let is_suspicious = is_large && self.policy.suspects_counts;
        if !is_suspicious {
            self.segments.observe(class, counts);
        }
        let share = lead.header().payload_size / lead.data_count().max(1);
        self.segments.observe_size(class, share);
        is_suspicious
    }

    /// Returns whether there is room for what `lead` says of its sample: its payload, and the Interests that it takes.
    pub(in crate::consumer) fn has_room_for(&self, key: SampleKey, lead: &Lead) -> bool {
        let known = self.get(key).map_or(0, |sample| sample.slots().count());
        let segments = lead.data_count() + lead.parity_count();
        let buffered = self.buffered + lead.header().payload_size;
        buffered <= self.bounds.buffered && self.can_request(segments.saturating_sub(known))
    }

    /// Takes the verified lead of a sample. Returns requests of what does not exist, and segments that it does not vouch for;
    /// `None` if nothing of the sample is under way.
    pub(in crate::consumer) fn accept_lead(
        &mut self,
        now: Instant,
        key: SampleKey,
        lead: Lead,
        is_suspicious: bool,
    ) -> Option<(Vec<SegmentId>, Vec<SegmentId>)> {
        let counts = SegmentCounts::of(&lead);
        let size = lead.header().payload_size;
        let sample = self.samples.get_mut(&key)?;
        let (unverified, out) = (sample.unverified(), sample.outstanding());
        let (waiting, awaited) = (sample.waiting(), sample.awaited());
        let bad = sample.accept_lead(now, lead);
        let is_gone = |(kind, index): &(_, _)| sample.slot(*kind, *index).is_none();
        let gone = awaited.into_iter().filter(is_gone);
        let gone = gone.map(|name| id_of(key, name)).collect();
        // A segment that came before it was proof enough.
        sample.is_suspicious = is_suspicious && sample.here() < 2;
        if is_suspicious && !sample.is_suspicious {
            self.segments.observe(key.0, counts);
        }
        self.unverified -= unverified - sample.unverified();
        self.outstanding -= out - sample.outstanding();
        self.waiting -= waiting - sample.waiting();
        self.buffered += size;
        let bad = bad.into_iter().map(|name| id_of(key, name)).collect();
        Some((gone, bad))
    }

    /// Records that a packet was not what it should be: the segment is requested again, past all caches.
    pub(in crate::consumer) fn reject(
        &mut self,
        now: Instant,
        id: SegmentId,
        is_published: bool,
    ) -> Rejected {
        let most = self.bounds.attempts;
        let Some(slot) = self.slot_mut(id) else {
            return Rejected::Requested;
        };
        slot.must_be_fresh = true;
        if slot.attempts < most {
            self.request(id);
            return Rejected::Requested;
        }
        // Bad packets can come as fast as we ask; a sample that is not out yet gets no more attempts than others.
        if !is_published {
            return Rejected::Hopeless;
        }
        // Others of its segments may make up for it.
        self.wake_by((id.class, id.sequence), now);
        Rejected::Requested
    }

    /// Records that a lead was rebuilt by inter-frame FEC, and not by a retransmission. Returns whether it was not known to be
    /// lost.
    pub(in crate::consumer) fn on_rebuilt(&mut self, key: SampleKey) -> bool {
        let lead = SegmentId::lead(key.0, key.1);
        self.slot_mut(lead).is_some_and(|slot| {
            let is_news = slot.is_early && !slot.is_repair;
            slot.is_repair = false;
            is_news
        })
    }

    /// Keeps the payload of a sample, and nothing else. Returns requests that are of no use any more.
    pub(in crate::consumer) fn finish(
        &mut self,
        key: SampleKey,
        complete: Complete,
    ) -> Vec<SegmentId> {
        let Some(sample) = self.samples.get_mut(&key) else {
            return Vec::new();
        };
        let (out, waiting) = (sample.outstanding(), sample.waiting());
        let awaited = sample.awaited();
        sample.finish(complete);
        self.outstanding -= out - sample.outstanding();
        self.waiting -= waiting - sample.waiting();
        awaited.into_iter().map(|name| id_of(key, name)).collect()
    }
}
