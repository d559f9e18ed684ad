//! Parity across samples: asks for it ahead, keeps the leads that it is over, and rebuilds those that were lost.
//!
//! ```text
//!   published     lead 8     lead 9     lead 10    lead 11, across 0
//!   due here         │          ✗          │          │        │
//!                               └─ waits ─────────────┴────────┴─▶ lead 9      before its time
//! ```
//!
//! A lost lead that can be asked for again in time costs one packet that way, and parity costs its share whether or not
//! anything is lost: it is asked for only where no round trip fits before a sample's time.

use std::collections::BTreeMap;

use bytes::Bytes;
use namecast_packet::Data;
use namecast_units::Instant;

use crate::across::Across;
use crate::names::{SampleClass, SegmentId, SegmentKind};

use super::super::Consumer;
use super::super::assembly::{Asked, Assembly};
use super::super::order::SampleKey;
use super::CLEAN;
use super::loss::LossEstimator;

/// Groups behind the newest one whose leads are kept: what comes later than that is of no use.
const MOST_OPEN: u64 = 4;
/// Share of what is lost that parity must give back to be worth asking for: a burst that takes whole groups leaves nothing
/// to rebuild them from.
const LEAST_GAIN: f64 = 0.5;

/// A lead as it came.
#[derive(Clone, Debug)]
struct Kept {
    wire: Bytes,
    /// It did not come when it should have.
    was_lost: bool,
}

/// Leads and parity of the groups in hand.
#[derive(Clone, Debug, Default)]
pub(in crate::consumer) struct Groups {
    leads: BTreeMap<SampleKey, Kept>,
    /// By the last sample of the group, then by number.
    shards: BTreeMap<SampleKey, BTreeMap<u64, Bytes>>,
    /// Losses among consecutive leads.
    losses: LossEstimator,
    /// The oldest group of each class that is in hand whole.
    oldest: [Option<u64>; 2],
}

impl Groups {
    /// Forgets all but what is known of losses.
    pub(in crate::consumer) fn clear(&mut self) {
        let losses = self.losses;
        *self = Self::default();
        self.losses = losses;
    }

    /// Takes over what `other` knows of losses.
    pub(in crate::consumer) const fn learn_from(&mut self, other: &Self) {
        self.losses = other.losses;
    }

    fn keep(&mut self, across: Across, key: SampleKey, lead: Kept) {
        let (class, sequence) = key;
        let group = across.group(sequence);
        // The first one may have begun before we did.
        let oldest = *self.oldest[class.index()].get_or_insert(group.saturating_add(1));
        if group < oldest {
            return;
        }
        self.leads.insert(key, lead);
        let open_from = group.saturating_sub(MOST_OPEN);
        if open_from > oldest {
            // Where more were passed over, they were not asked for.
            for past in oldest.max(open_from.saturating_sub(MOST_OPEN))..open_from {
                self.judge(across, class, past);
            }
            self.oldest[class.index()] = Some(open_from);
            let first = across
                .members(open_from)
                .map_or(u64::MAX, |members| *members.start());
            let is_open =
                |(other, sequence): SampleKey| other != class || sequence >= first;
            self.leads.retain(|key, _| is_open(*key));
            self.shards.retain(|key, _| is_open(*key));
        }
    }

    /// Learns from what became of the leads of a group.
    fn judge(&mut self, across: Across, class: SampleClass, group: u64) {
        let Some(members) = across.members(group) else {
            return;
        };
        let leads = &self.leads;
        let lost = members.map(|sequence| {
            let kept = leads.get(&(class, sequence));
            kept.is_none_or(|kept| kept.was_lost)
        });
        self.losses.observe(lost);
    }
}

impl Consumer {
    /// Parity across samples, if there is any and it is made use of.
    fn across(&self) -> Option<Across> {
        self.source.across.filter(|_| !self.follows_paper())
    }

    /// Shards to ask for ahead of the group that ends with sample `key`: none where a repair round fits before a sample's
    /// time, or the group takes longer than that; else as many as make it unlikely that one misses it.
    pub(in crate::consumer) fn across_ahead(&self, now: Instant, key: SampleKey) -> usize {
        let (class, sequence) = key;
        let ends = self
            .across()
            .and_then(|across| Some((across, across.ends_with(sequence)?)));
        let Some((across, members)) = ends else {
            return 0;
        };
        let losses = self.groups.losses.losses(0.0);
        if losses.share < CLEAN || self.has_time_to_repair(now, class) {
            return 0;
        }
        let position = |sequence| self.recovery.clock.position(class, sequence);
        let Some((first, last)) = position(*members.start()).zip(position(sequence)) else {
            return 0;
        };
        let frames = u32::try_from(last.saturating_sub(first)).unwrap_or(u32::MAX);
        let waits = self.source.rate.period().saturating_mul(frames);
        if waits + self.margin(now, class) > self.playout.target.saturating_sub(self.decode_lead) {
            return 0;
        }
        let (needed, most) = (across.samples as usize, across.parity as usize);
        let left = |more| losses.left(needed, more);
        let enough = (1..=most).find(|&more| left(more) <= self.config.recovery.miss);
        let count = enough.unwrap_or(most);
        let is_worth_it = left(count) <= losses.share * (1.0 - LEAST_GAIN);
        let has_room = self.can_ask(self.segments_expected(class) + count);
        if is_worth_it && has_room { count } else { 0 }
    }

    /// Keeps a verified lead, if parity may be made of it.
    pub(in crate::consumer) fn keep_lead(&mut self, key: SampleKey, asked: &Asked, data: &Data) {
        let Some(across) = self.across() else {
            return;
        };
        let slot = self.samples.get(&key).and_then(|s| s.data().first());
        let was_lost = slot.is_some_and(|slot| slot.was_lost);
        let kept = Kept {
            wire: data.wire().clone(),
            was_lost: was_lost || (asked.attempts > 1 && !asked.is_insured),
        };
        self.groups.keep(across, key, kept);
    }

    /// Takes a shard of the group that ends with the sample of `id`.
    pub(in crate::consumer) fn on_across(&mut self, now: Instant, id: SegmentId, data: &Data) {
        let Some((across, verifier)) = self.across().zip(self.verifier.clone()) else {
            self.counters.drop_strays += 1;
            return;
        };
        if data.verify(&*verifier).is_err() {
            // Nobody waits for it again: what it would have given back is asked for itself.
            self.counters.drop_verification += 1;
            return;
        }
        let content = data.content().unwrap_or_default();
        let Ok(shard) = across.decode(&content) else {
            self.counters.drop_across += 1;
            return;
        };
        let key = (id.class, id.sequence);
        let shards = self.groups.shards.entry(key).or_default();
        shards.insert(id.index, shard);
        self.rebuild(now, key);
    }

    /// Rebuilds the leads that are overdue in the group of sample `key`, if enough is here.
    pub(in crate::consumer) fn rebuild(&mut self, now: Instant, (class, sequence): SampleKey) {
        let Some(across) = self.across() else { return };
        let Some(members) = across.members(across.group(sequence)) else {
            return;
        };
        let last = (class, *members.end());
        let Some(shards) = self.groups.shards.get(&last) else {
            return;
        };
        let kept = |sequence| self.groups.leads.get(&(class, sequence));
        let packets: Vec<_> = members
            .clone()
            .map(|sequence| kept(sequence).map(|kept| kept.wire.clone()))
            .collect();
        let missing = packets.iter().filter(|packet| packet.is_none()).count();
        let is_wanted = members
            .clone()
            .any(|sequence| self.is_overdue(now, (class, sequence)));
        if missing == 0 || missing > shards.len() || !is_wanted {
            return;
        }
        let shards = (0..u64::from(across.parity)).map(|index| shards.get(&index).cloned());
        let shards: Vec<_> = shards.collect();
        let rebuilt = across.recover(&packets, &shards);
        let leads = rebuilt.unwrap_or_default();
        let is_right = !leads.is_empty()
            && leads.into_iter().all(|(index, data)| {
                let key = (class, members.start() + index as u64);
                self.take_rebuilt(now, across, key, &data)
            });
        if !is_right {
            // Of another publisher's leads, or of none at all.
            self.counters.drop_across += 1;
            self.groups.shards.remove(&last);
        }
    }

    /// Takes a lead that came out of parity. Tells whether it is what it should be.
    fn take_rebuilt(&mut self, now: Instant, across: Across, key: SampleKey, data: &Data) -> bool {
        let id = SegmentId::lead(key.0, key.1);
        let is_signed = self
            .verifier
            .as_ref()
            .is_some_and(|verifier| data.verify(&**verifier).is_ok());
        if *data.name() != self.source.names.segment(id) || !is_signed {
            return false;
        }
        if !self.is_overdue(now, key) {
            return true;
        }
        let slot = self.samples.get_mut(&key);
        if let Some(slot) = slot.and_then(|sample| sample.slot_mut(SegmentKind::Data, 0)) {
            let is_news = slot.is_early && !slot.is_repair;
            // It did not come by asking again.
            slot.is_repair = false;
            if is_news {
                self.note_lost(now, key, (SegmentKind::Data, 0));
            }
        }
        self.counters.recovered_across += 1;
        let kept = Kept {
            wire: data.wire().clone(),
            was_lost: true,
        };
        self.groups.keep(across, key, kept);
        self.take_lead(now, key, Asked::unmeasured(now), data);
        self.finish_if_whole(now, key);
        true
    }

    /// Whether the lead of sample `key` should be here, and is not.
    fn is_overdue(&self, now: Instant, key: SampleKey) -> bool {
        let lacks_lead = self.samples.get(&key).is_some_and(Assembly::lacks_lead);
        lacks_lead && self.due_at(now, key) <= now
    }

    /// Until when parity may still give back the lead of sample `key`, in time for it.
    pub(super) fn waits_for_across(&self, now: Instant, key: SampleKey) -> Option<Instant> {
        let across = self.across()?;
        let (class, sequence) = key;
        if !self.is_overdue(now, key) {
            return None;
        }
        let members = across.members(across.group(sequence))?;
        let last = (class, *members.end());
        let ends = self.samples.get(&last)?;
        let pending = ends.across().filter(|(_, _, slot)| slot.is_awaited()).count();
        let here = self.groups.shards.get(&last).map_or(0, BTreeMap::len);
        let overdue = members.filter(|&sequence| self.is_overdue(now, (class, sequence)));
        if pending == 0 || pending + here < overdue.count() {
            return None;
        }
        let until = self.due_at(now, last);
        let deadline = self.playout.render_at(now, self.published_at(key)?);
        (until > now && until <= deadline).then_some(until)
    }
}
