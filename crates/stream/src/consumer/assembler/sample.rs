//! One sample on its way: collects segments, verifies them by the lead, recovers from parity, puts the payload together.

use bytes::{Bytes, BytesMut};
use namecast_packet::Data;
use namecast_units::Instant;

use crate::fec;
use crate::names::{SampleClass, SegmentKind};
use crate::sample::Lead;

use super::segments::SegmentCounts;
use super::slot::{Content, Slot};

/// Kind and index of a segment of a sample.
pub(in crate::consumer) type Name = (SegmentKind, u64);

/// What became of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::consumer) enum Accepted {
    /// It is verified and kept.
    Here,
    /// It is kept until the lead comes.
    Unverified,
    /// The lead does not vouch for it.
    Bad,
    /// It was there already.
    Again,
}

/// A sample that is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::consumer) struct Complete {
    /// When it became so.
    pub at: Instant,
    /// Whether that was after its time.
    pub late: bool,
    /// The encoded sample.
    pub payload: Bytes,
}

/// One sample on its way.
#[derive(Clone, Debug)]
pub(in crate::consumer) struct Assembly {
    pub class: SampleClass,
    pub sequence: u64,
    lead: Option<Lead>,
    data: Vec<Slot>,
    parity: Vec<Slot>,
    copies: Vec<Slot>,
    /// Inter-frame FEC of the group that ends with it, as far as it is requested.
    inter_frame: Vec<Slot>,
    /// Whether it was requested before it was known to be published.
    pub asked_ahead: bool,
    /// When the verified lead came.
    pub lead_at: Option<Instant>,
    /// When the first segment came that nothing vouched for.
    pub unverified_at: Option<Instant>,
    /// When a later sample came.
    pub overtaken_at: Option<Instant>,
    /// Whether the checkpoint before the deadline is behind it.
    pub checked: bool,
    /// When to reckon with the loss of all that the last round requested.
    pub hedge_round_at: Option<Instant>,
    /// Whether the lead advertises more segments than samples of the class have, and none has come.
    pub is_suspicious: bool,
    /// Whether a segment that it needs was requested in vain too often.
    pub given_up: bool,
    /// When to look at it again; may be too early, never too late.
    pub wake: Option<Instant>,
    pub complete: Option<Complete>,
}

impl Assembly {
    /// A sample of which `counts` segments are about to be requested, and of whose lead there may be `copies`.
    pub(in crate::consumer) fn new(
        class: SampleClass,
        sequence: u64,
        counts: SegmentCounts,
        copies: usize,
    ) -> Self {
        Self {
            class,
            sequence,
            lead: None,
            data: vec![Slot::default(); counts.data.max(1) as usize],
            parity: vec![Slot::default(); counts.parity as usize],
            copies: vec![Slot::default(); copies],
            inter_frame: Vec::new(),
            asked_ahead: false,
            lead_at: None,
            unverified_at: None,
            overtaken_at: None,
            checked: false,
            hedge_round_at: None,
            is_suspicious: false,
            given_up: false,
            wake: None,
            complete: None,
        }
    }

    pub(in crate::consumer) const fn lead(&self) -> Option<&Lead> {
        self.lead.as_ref()
    }

    fn slots_of(&self, kind: SegmentKind) -> &Vec<Slot> {
        match kind {
            SegmentKind::Data => &self.data,
            SegmentKind::Parity => &self.parity,
            SegmentKind::LeadCopy => &self.copies,
            SegmentKind::InterFrame => &self.inter_frame,
        }
    }

    pub(in crate::consumer) fn slot(&self, kind: SegmentKind, index: u64) -> Option<&Slot> {
        self.slots_of(kind).get(usize::try_from(index).ok()?)
    }

    /// Returns the segments that are requested or about to be.
    pub(in crate::consumer) fn awaited(&self) -> Vec<(SegmentKind, u64)> {
        let all = self.slots().chain(self.copies());
        let awaited = all.filter(|(_, _, slot)| slot.is_awaited());
        awaited.map(|(kind, index, _)| (kind, index)).collect()
    }

    /// Wants that have not left.
    pub(in crate::consumer) fn waiting(&self) -> usize {
        let all = self.slots().chain(self.copies()).chain(self.inter_frame());
        all.filter(|(_, _, slot)| slot.queued).count()
    }

    pub(in crate::consumer) fn slot_mut(
        &mut self,
        kind: SegmentKind,
        index: u64,
    ) -> Option<&mut Slot> {
        let slots = match kind {
            SegmentKind::Data => &mut self.data,
            SegmentKind::Parity => &mut self.parity,
            SegmentKind::LeadCopy => &mut self.copies,
            SegmentKind::InterFrame => &mut self.inter_frame,
        };
        slots.get_mut(usize::try_from(index).ok()?)
    }

    /// Returns the copies of the lead.
    pub(in crate::consumer) fn copies(&self) -> impl Iterator<Item = (SegmentKind, u64, &Slot)> {
        let copies = (0..).zip(&self.copies);
        copies.map(|(index, slot)| (SegmentKind::LeadCopy, index, slot))
    }

    /// Makes room for `count` shards of inter-frame FEC of the group that ends with it.
    pub(in crate::consumer) fn expect_inter_frame(&mut self, count: usize) {
        self.inter_frame = vec![Slot::default(); count];
    }

    /// Inter-frame FEC of the group that ends with it, as far as it is requested.
    pub(in crate::consumer) fn inter_frame(
        &self,
    ) -> impl Iterator<Item = (SegmentKind, u64, &Slot)> {
        let inter_frame = (0..).zip(&self.inter_frame);
        inter_frame.map(|(index, slot)| (SegmentKind::InterFrame, index, slot))
    }

    /// Returns when the first Interest that is to be sent twice is due for that.
    pub(in crate::consumer) fn next_hedge(&self) -> Option<Instant> {
        let slots = self.slots().chain(self.inter_frame());
        slots.filter_map(|(_, _, slot)| slot.hedge_at).min()
    }

    /// Data segments.
    pub(in crate::consumer) fn data(&self) -> &[Slot] {
        &self.data
    }

    /// Returns all segments, data first.
    pub(in crate::consumer) fn slots(&self) -> impl Iterator<Item = (SegmentKind, u64, &Slot)> {
        let data = (0..).zip(&self.data);
        let parity = (0..).zip(&self.parity);
        data.map(|(index, slot)| (SegmentKind::Data, index, slot))
            .chain(parity.map(|(index, slot)| (SegmentKind::Parity, index, slot)))
    }

    /// Returns the Interests out for this sample.
    pub(in crate::consumer) fn outstanding(&self) -> usize {
        self.slots()
            .chain(self.copies())
            .chain(self.inter_frame())
            .filter(|(_, _, slot)| slot.asked.is_some())
            .count()
    }

    /// Packets kept that nothing vouches for.
    pub(in crate::consumer) fn unverified(&self) -> usize {
        self.slots()
            .filter(|(_, _, slot)| slot.is_unverified())
            .count()
    }

    /// Returns since when its lead, or any segment, has been thought lost: later samples came, or followers of the lead.
    pub(in crate::consumer) fn thought_lost_at(&self, is_lead: bool) -> Option<Instant> {
        let unverified_at = self.unverified_at.filter(|_| is_lead);
        self.overtaken_at.into_iter().chain(unverified_at).min()
    }

    /// Returns whether a follower came and the lead is neither here nor waiting for a key.
    pub(in crate::consumer) fn lacks_lead(&self) -> bool {
        self.lead.is_none() && self.data[0].is_missing()
    }

    /// Counts the Interests that are out as sent again once, however often they were.
    pub(in crate::consumer) fn forget_attempts(&mut self) {
        for slot in self.data.iter_mut().chain(&mut self.parity) {
            slot.attempts = slot.attempts.min(2);
        }
    }

    /// Returns the segments here, data and parity.
    pub(in crate::consumer) fn here(&self) -> usize {
        self.slots().filter(|(_, _, slot)| slot.is_here()).count()
    }

    /// Returns the octets of payload that it holds.
    pub(in crate::consumer) fn size(&self) -> usize {
        match (&self.complete, &self.lead) {
            (Some(complete), _) => complete.payload.len(),
            (None, Some(lead)) => lead.header().payload_size,
            (None, None) => 0,
        }
    }

    /// Brings `wake` forward to `at`.
    pub(in crate::consumer) fn wake_by(&mut self, at: Instant) {
        self.wake = Some(self.wake.map_or(at, |wake| wake.min(at)));
    }

    /// Keeps the packet of a lead until somebody can judge it.
    pub(in crate::consumer) fn keep_unjudged_lead(&mut self, data: Data) -> Accepted {
        if !self.data[0].is_missing() {
            return Accepted::Again;
        }
        self.data[0].content = Content::Unverified(Box::new(data));
        Accepted::Unverified
    }

    /// Returns the packet kept by [`keep_unjudged_lead`](Self::keep_unjudged_lead).
    pub(in crate::consumer) fn take_unjudged_lead(&mut self) -> Option<Data> {
        match core::mem::take(&mut self.data[0].content) {
            Content::Unverified(data) => Some(*data),
            content => {
                self.data[0].content = content;
                None
            }
        }
    }

    /// Takes the verified lead. Returns the segments kept before that it does not vouch for; they are missing again.
    pub(in crate::consumer) fn accept_lead(
        &mut self,
        now: Instant,
        lead: Lead,
    ) -> Vec<(SegmentKind, u64)> {
        self.data.resize(lead.data_count(), Slot::default());
        self.parity.resize(lead.parity_count(), Slot::default());
        // Copies that are still on their way tell nothing new.
        self.copies.clear();
        let mut bad = Vec::new();
        for kind in [SegmentKind::Data, SegmentKind::Parity] {
            for index in 0..self.slots_of(kind).len() as u64 {
                let slot = self
                    .slot_mut(kind, index)
                    .expect("index is below the length");
                let Content::Unverified(data) = &slot.content else {
                    continue;
                };
                if lead.vouches_for(kind, index, data) {
                    slot.content = Content::Here(data.content().unwrap_or_default());
                } else {
                    slot.content = Content::Missing;
                    bad.push((kind, index));
                }
            }
        }
        self.data[0].content = Content::Here(lead.share().clone());
        self.lead = Some(lead);
        self.lead_at = Some(now);
        bad
    }

    /// Takes a segment other than the lead.
    pub(in crate::consumer) fn accept(
        &mut self,
        kind: SegmentKind,
        index: u64,
        data: Data,
    ) -> Accepted {
        let verified = self
            .lead
            .as_ref()
            .map(|lead| lead.vouches_for(kind, index, &data));
        let Some(slot) = self.slot_mut(kind, index) else {
            return Accepted::Bad;
        };
        match verified {
            _ if !slot.is_missing() => Accepted::Again,
            Some(true) => {
                slot.content = Content::Here(data.content().unwrap_or_default());
                Accepted::Here
            }
            Some(false) => Accepted::Bad,
            None => {
                slot.content = Content::Unverified(Box::new(data));
                Accepted::Unverified
            }
        }
    }

    /// Puts the payload together if enough is here; parity first, before anything is retransmitted.
    ///
    /// Returns whether parity was needed.
    pub(in crate::consumer) fn try_assemble(&self) -> Option<(Bytes, bool)> {
        let lead = self.lead.as_ref()?;
        if self.complete.is_some() || self.here() < self.data.len() {
            return None;
        }
        if let [only] = self.data.as_slice() {
            return Some((only.shard()?, false));
        }
        let data: Vec<_> = self.data.iter().map(Slot::shard).collect();
        let needs_parity = data.iter().any(Option::is_none);
        let shards = if needs_parity {
            let parity: Vec<_> = self.parity.iter().map(Slot::shard).collect();
            fec::recover(&data, &parity, lead.shard_size()).ok()?
        } else {
            data.into_iter().flatten().collect()
        };
        let mut payload = BytesMut::with_capacity(lead.header().payload_size);
        shards
            .iter()
            .for_each(|shard| payload.extend_from_slice(shard));
        Some((payload.freeze(), needs_parity))
    }

    /// Returns whether a segment that is here was requested more than once.
    pub(in crate::consumer) fn was_asked_again(&self) -> bool {
        self.slots()
            .any(|(_, _, slot)| slot.is_here() && slot.is_repair && slot.attempts > 1)
    }

    /// Keeps the payload, and nothing else of the segments but inter-frame FEC, which is for others.
    pub(in crate::consumer) fn finish(&mut self, complete: Complete) {
        self.data = vec![Slot::default()];
        self.parity = Vec::new();
        self.copies = Vec::new();
        self.complete = Some(complete);
        self.wake = None;
    }
}
