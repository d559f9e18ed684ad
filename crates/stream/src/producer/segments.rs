//! Answers Interests for segments, copies of leads among them, which are made when somebody asks.

use crate::names::{SegmentId, SegmentKind};
use crate::sample::{MAX_LEAD_COPIES, MAX_SEGMENTS};
use crate::segmenter::Segments;

use super::{DropReason, Key, Lookup, Producer, RungId, Verdict};

impl Producer {
    /// Makes the copies of `lead` that Interests wait for.
    pub(super) fn make_copies_waited_for(
        &mut self,
        rung: RungId,
        lead: SegmentId,
        segments: &mut Segments,
    ) {
        for index in 0..MAX_LEAD_COPIES as u64 {
            let kind = SegmentKind::LeadCopy;
            let id = SegmentId {
                kind,
                index,
                ..lead
            };
            if self.pending.oldest(&(rung, id)).is_some() {
                let segmenter = &self.rungs[rung.0].segmenter;
                let copy = segmenter.copy(id, &segments.data[0], &*self.signer);
                segments.copies.insert(index, copy);
                self.counters.lead_copies += 1;
            }
        }
    }

    /// What to do with an Interest for segment `id`.
    pub(super) fn segment_verdict(&mut self, (rung, id): Key) -> Verdict {
        let state = &self.rungs[rung.0];
        let next = state.next[id.class.index()];
        let most = match id.kind {
            SegmentKind::Data | SegmentKind::Parity => MAX_SEGMENTS,
            SegmentKind::LeadCopy => MAX_LEAD_COPIES,
        };
        if id.index >= most as u64 {
            return Verdict::Drop(DropReason::NoSuchSegment);
        }
        if let Some(ahead) = id.sequence.checked_sub(next) {
            // The largest number is never published.
            return if ahead < self.config.max_ahead && id.sequence < u64::MAX {
                Verdict::Hold((rung, id))
            } else {
                Verdict::Drop(DropReason::TooFarAhead)
            };
        }
        match state.cache.get(&id) {
            Lookup::Found(data) => Verdict::Answer(data.clone()),
            Lookup::NoSuchSegment if id.kind == SegmentKind::LeadCopy => self.copy_lead((rung, id)),
            Lookup::NoSuchSegment => Verdict::Drop(DropReason::NoSuchSegment),
            Lookup::Absent => Verdict::Drop(DropReason::TooOld),
        }
    }

    /// Makes the copy of a cached lead that is asked for, and keeps it: no copy is signed twice.
    fn copy_lead(&mut self, (rung, id): Key) -> Verdict {
        let state = &mut self.rungs[rung.0];
        let lead = SegmentId::lead(id.class, id.sequence);
        let Lookup::Found(lead) = state.cache.get(&lead) else {
            return Verdict::Drop(DropReason::NoSuchSegment);
        };
        let copy = state.segmenter.copy(id, lead, &*self.signer);
        state.cache.keep_copy(&id, copy.clone());
        self.counters.lead_copies += 1;
        Verdict::Answer(copy)
    }
}
