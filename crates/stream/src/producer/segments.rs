//! Answers Interests for segments. Copies of leads, and inter-frame FEC, are made when somebody asks.

use core::time::Duration;

use bytes::Bytes;

use namecast_packet::Data;

use crate::inter_frame::InterFrameFecError;
use crate::names::{SegmentId, SegmentKind};
use crate::sample::{MAX_LEAD_COPIES, MAX_SEGMENTS};
use crate::segmenter::Segments;

use super::{DropReason, Key, Lookup, Producer, RungId, Verdict};

/// What is due later is refused while the table of held Interests is more than this part full.
const LATE: Duration = Duration::from_secs(2);
const CROWDED: usize = 4;

impl Producer {
    /// Makes what Interests wait for of the sample of `lead` that is made on request only.
    pub(super) fn make_what_is_waited_for(
        &mut self,
        rung: RungId,
        lead: SegmentId,
        segments: &mut Segments,
    ) {
        for kind in [SegmentKind::LeadCopy, SegmentKind::InterFrame] {
            for index in 0..self.most((rung, SegmentId { kind, ..lead })) {
                let id = SegmentId {
                    kind,
                    index,
                    ..lead
                };
                if self.pending.oldest(&(rung, id)).is_none() {
                    continue;
                }
                match self.make((rung, id), &segments.data[0]) {
                    Ok(data) => {
                        segments.insert(&id, data);
                    }
                    Err(reason) => {
                        let waiters = self.pending.take(&(rung, id));
                        self.counters.drop(reason, waiters.len());
                    }
                }
            }
        }
    }

    /// Returns how many segments there are at most of the kind of `id`, in its sample.
    fn most(&self, (rung, id): Key) -> u64 {
        match id.kind {
            SegmentKind::Data | SegmentKind::Parity => MAX_SEGMENTS as u64,
            SegmentKind::LeadCopy => MAX_LEAD_COPIES as u64,
            SegmentKind::InterFrame => {
                let inter_frame = self.rungs[&rung].inter_frame;
                let inter_frame =
                    inter_frame.filter(|inter_frame| inter_frame.ends_with(id.sequence).is_some());
                inter_frame.map_or(0, |inter_frame| u64::from(inter_frame.parity))
            }
        }
    }

    /// Returns what to do with an Interest for segment `id`.
    pub(super) fn segment_verdict(&mut self, (rung, id): Key) -> Verdict {
        let state = &self.rungs[&rung];
        let next = state.next[id.class.index()];
        if id.index >= self.most((rung, id)) {
            return Verdict::Refuse(DropReason::NoSuchSegment);
        }
        if let Some(ahead) = id.sequence.checked_sub(next) {
            // The largest number is never published.
            let is_late = ahead > 1 && state.time_until(&id) > LATE;
            let is_crowded = self.pending.len() > self.config.max_pending / CROWDED;
            let is_near = ahead < self.config.max_ahead && !(is_late && is_crowded);
            return if is_near && id.sequence < u64::MAX {
                Verdict::Hold((rung, id))
            } else {
                Verdict::Refuse(DropReason::TooFarAhead)
            };
        }
        match state.cache.get(&id) {
            Lookup::Found(data) => Verdict::Answer(data.clone()),
            Lookup::NoSuchSegment => self.make_and_keep((rung, id)),
            Lookup::Absent => Verdict::Refuse(DropReason::TooOld),
        }
    }

    /// Makes what is requested of a cached sample, and keeps it: nothing is signed twice.
    fn make_and_keep(&mut self, (rung, id): Key) -> Verdict {
        let lead = SegmentId::lead(id.class, id.sequence);
        let Lookup::Found(lead) = self.rungs[&rung].cache.get(&lead) else {
            return Verdict::Refuse(DropReason::NoSuchSegment);
        };
        match self.make((rung, id), &lead.clone()) {
            Ok(data) => {
                if let Some(state) = self.rungs.get_mut(&rung) {
                    state.cache.keep(&id, data.clone());
                }
                Verdict::Answer(data)
            }
            Err(reason) => Verdict::Drop(reason),
        }
    }

    /// Makes `id` of the sample that has this `lead`.
    fn make(&mut self, (rung, id): Key, lead: &Data) -> Result<Data, DropReason> {
        let segmenter = &self.rungs[&rung].segmenter;
        match id.kind {
            SegmentKind::Data | SegmentKind::Parity => Err(DropReason::NoSuchSegment),
            SegmentKind::LeadCopy => {
                self.counters.lead_copies += 1;
                Ok(segmenter.copy(id, lead, &*self.signer))
            }
            SegmentKind::InterFrame => {
                let content = self.inter_frame((rung, id), lead)?;
                let name = segmenter.names().segment(id);
                self.counters.inter_frame_shards += 1;
                Ok(Data::builder(name).content(content).sign(&*self.signer))
            }
        }
    }

    /// Content of parity `id` across the group that ends with the sample which has this `lead`.
    fn inter_frame(&self, (rung, id): Key, lead: &Data) -> Result<Bytes, DropReason> {
        let state = &self.rungs[&rung];
        let inter_frame = state.inter_frame.ok_or(DropReason::NoSuchSegment)?;
        let members = inter_frame.ends_with(id.sequence);
        let members = members.ok_or(DropReason::NoSuchSegment)?;
        let mut packets = Vec::with_capacity(inter_frame.samples as usize);
        for sequence in *members.start()..id.sequence {
            match state.cache.get(&SegmentId::lead(id.class, sequence)) {
                Lookup::Found(lead) => packets.push(lead.wire().clone()),
                // One was left out, or published before this producer was there.
                Lookup::NoSuchSegment | Lookup::Absent => return Err(DropReason::TooOld),
            }
        }
        packets.push(lead.wire().clone());
        let index = usize::try_from(id.index).unwrap_or(usize::MAX);
        let encoded = inter_frame.encode(&packets, index);
        encoded.map_err(|error| match error {
            InterFrameFecError::TooLarge(_) => DropReason::LeadTooLarge,
            _ => DropReason::NoSuchSegment,
        })
    }
}
