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

use crate::across::{Across, MAX_ACROSS_PARITY};
use crate::names::{SampleClass, SegmentId, SegmentKind};

use super::super::Consumer;
use super::super::assembly::{Asked, Assembly};
use super::super::order::SampleKey;
use super::CLEAN;
use super::loss::LossEstimator;

/// Groups behind the newest one whose leads are kept: what comes later than that is of no use.
const MOST_OPEN: u64 = 4;
/// Groups of which shards are kept, both classes.
const MOST_GROUPS: usize = 64;
/// Share of what is lost that parity must give back to be worth asking for: a burst that takes whole groups leaves nothing
/// to rebuild them from.
const LEAST_GAIN: f64 = 0.6;
/// What of earlier losses still counts after each new group that lost leads: a memory of some thirty.
const GAIN_KEPT: f64 = 0.97;
/// Lost leads that parity is taken to have given back before any was lost.
const GAIN_PRIOR: f64 = 1.0;

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
    /// Of the groups of which they were asked for, by the last sample, then by number.
    shards: BTreeMap<SampleKey, BTreeMap<u64, Bytes>>,
    /// Losses among consecutive leads.
    losses: LossEstimator,
    gain: Gain,
    /// The oldest group of each class that is in hand whole.
    oldest: [Option<u64>; 2],
}

/// How many leads groups lost, and how many of them parity could give back.
#[derive(Clone, Copy, Debug, Default)]
struct Gain {
    lost: f64,
    /// Of those, leads of groups that no more than so many shards give back.
    within: [f64; MAX_ACROSS_PARITY as usize + 1],
}

impl Gain {
    /// Takes note of a group that lost so many leads, and of which so many shards came, or would have come.
    fn observe(&mut self, lost: usize, came: usize) {
        if lost == 0 {
            return;
        }
        for sum in self.within.iter_mut().chain([&mut self.lost]) {
            *sum *= GAIN_KEPT;
        }
        self.lost += lost as f64;
        if lost <= came {
            let within = self.within.iter_mut().skip(lost);
            within.for_each(|sum| *sum += lost as f64);
        }
    }

    /// Share of what was lost that so many shards would have given back.
    fn of(&self, shards: usize) -> f64 {
        let within = self.within.get(shards).copied().unwrap_or(self.lost);
        (within + GAIN_PRIOR) / (self.lost + GAIN_PRIOR)
    }
}

impl Groups {
    /// Forgets all but what is known of losses.
    pub(in crate::consumer) fn clear(&mut self) {
        let (losses, gain) = (self.losses, self.gain);
        *self = Self {
            losses,
            gain,
            ..Self::default()
        };
    }

    /// Takes over what `other` knows of losses.
    pub(in crate::consumer) const fn learn_from(&mut self, other: &Self) {
        self.losses = other.losses;
        self.gain = other.gain;
    }

    /// Share of leads lost lately, also of samples that were never whole.
    pub(super) fn loss(&self) -> f64 {
        self.losses.share()
    }

    /// Takes note that shards of the group that ends with sample `last` are asked for.
    pub(in crate::consumer) fn expect(&mut self, last: SampleKey) {
        self.shards.entry(last).or_default();
        while self.shards.len() > MOST_GROUPS {
            self.shards.pop_first();
        }
    }

    /// Leads and shards kept.
    #[cfg(test)]
    pub(in crate::consumer) fn kept(&self) -> usize {
        self.leads.len() + self.shards.values().map(BTreeMap::len).sum::<usize>()
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
            let is_open = |(other, sequence): SampleKey| other != class || sequence >= first;
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
        let last = (class, *members.end());
        let is_lost = |sequence| {
            let kept = leads.get(&(class, sequence));
            kept.is_none_or(|kept: &Kept| kept.was_lost)
        };
        let came = match self.shards.get(&last) {
            Some(shards) => shards.len(),
            // They would have followed the last lead, and shared its fate.
            None if is_lost(last.1) => 0,
            None => usize::MAX,
        };
        let lost = members.map(is_lost);
        self.gain
            .observe(lost.clone().filter(|is_lost| *is_lost).count(), came);
        self.losses.observe(lost);
    }
}

impl Consumer {
    /// Parity across samples, if there is any and it is made use of.
    fn across(&self) -> Option<Across> {
        let is_used = self.repair.uses_across(&self.config.recovery);
        self.source.across.filter(|_| is_used)
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
        let position = |sequence| self.timeline.position((class, sequence));
        let Some((first, last)) = position(*members.start()).zip(position(sequence)) else {
            return 0;
        };
        let frames = u32::try_from(last.saturating_sub(first)).unwrap_or(u32::MAX);
        let waits = self.source.rate.period().saturating_mul(frames);
        if waits + self.margin(now, class) > self.timeline.target() {
            return 0;
        }
        let (needed, most) = (across.samples as usize, across.parity as usize);
        let left = |more| losses.left(needed, more);
        let enough = (1..=most).find(|&more| left(more) <= self.config.recovery.miss);
        let count = enough.unwrap_or(most);
        let is_worth_it = self.groups.gain.of(count) >= LEAST_GAIN;
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
        let Some(shards) = self.groups.shards.get_mut(&key) else {
            // The group was closed meanwhile.
            self.counters.drop_unwanted += 1;
            return;
        };
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
            if let Some(shards) = self.groups.shards.get_mut(&last) {
                shards.clear();
            }
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
        let pending = ends
            .across()
            .filter(|(_, _, slot)| slot.is_awaited())
            .count();
        let here = self.groups.shards.get(&last).map_or(0, BTreeMap::len);
        let overdue = members.filter(|&sequence| self.is_overdue(now, (class, sequence)));
        if pending == 0 || pending + here < overdue.count() {
            return None;
        }
        let until = self.due_at(now, last);
        let deadline = self.timeline.render_at(now, self.published_at(key)?);
        (until > now && until <= deadline).then_some(until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Leads lost one by one come back with one shard, three at once with three. Nine groups that lost one, then one that
    /// lost three: 0.97 · Σ 0.97ⁿ, n < 9, is 0.97 · (1 − 0.97⁹) / 0.03 = 7.753, of 10.753, and one more of each.
    #[test]
    fn the_gain_is_what_groups_showed() {
        let mut gain = Gain::default();
        assert!((gain.of(1) - 1.0).abs() < 1e-12);
        (0..9).for_each(|_| gain.observe(1, 1));
        gain.observe(0, 0);
        assert!((gain.of(1) - 1.0).abs() < 1e-12);
        gain.observe(3, 3);
        for (shards, expected) in [(1, 8.753 / 11.753), (2, 8.753 / 11.753), (3, 1.0), (9, 1.0)] {
            let is = gain.of(shards);
            assert!((is - expected).abs() < 1e-3, "{shards}: {is}");
        }
        // What parity did not come for is not given back by any number of shards: 3 · 0.97 of what was lost then.
        gain.observe(1, 0);
        let lost = 10.753 * 0.97 + 1.0;
        assert!(
            (gain.of(8) - lost / (lost + 1.0)).abs() < 1e-3,
            "{}",
            gain.of(8)
        );
    }
}
