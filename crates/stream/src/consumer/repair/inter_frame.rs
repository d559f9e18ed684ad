//! Inter-frame FEC: requests it ahead, keeps the leads that it is over, and rebuilds those that were lost.
//!
//! ```text
//!   published     lead 8     lead 9     lead 10    lead 11, across 0
//!   due here         │          ✗          │          │        │
//!                               └─ waits ─────────────┴────────┴─▶ lead 9      before its time
//! ```
//!
//! A lost lead that can be retransmitted in time costs one packet that way, and parity costs its share whether or not
//! anything is lost: it is requested only where no round trip fits before a sample's time.

use std::collections::BTreeMap;

use core::ops::RangeInclusive;

use bytes::Bytes;
use namecast_packet::Data;

use crate::inter_frame::{InterFrameFec, MAX_INTER_FRAME_PARITY};
use crate::names::SampleClass;

use super::super::order::SampleKey;
use super::loss::LossEstimator;
use super::{CLEAN, Moment, Recovery};

/// Groups behind the newest one whose leads are kept: what comes later than that is of no use, as parity is requested only where a
/// group takes less than the target. A bound of memory.
const MAX_OPEN: u64 = 4;
/// Groups of which shards are kept, both classes. A bound of memory: `MAX_OPEN` of each class are in use.
const MAX_GROUPS: usize = 64;
/// Share of what is lost that parity must give back to be worth its octets: a burst that takes whole groups leaves nothing to rebuild them
/// from. Measured by `namecast experiment run rtsd/across` and `rtsd/across-bursts`: parity is requested there in the first, and costs
/// at most 1 % of Data in the second.
const MIN_GAIN: f64 = 0.6;
/// Share of earlier losses that still counts after each new group that lost leads: 1/(1 − 0.97), a memory of some thirty, which tells
/// 0.6 from 0.8 by two standard deviations, 2·√(0.6·0.4/30) = 0.18.
const GAIN_KEPT: f64 = 0.97;
/// Lost leads that parity is taken to have given back before any was lost: one, so that it is tried; one
/// group of which it could give back nothing ends that, 1/2 < `MIN_GAIN`.
const GAIN_PRIOR: f64 = 1.0;

/// Numbers of the samples of a group.
type Members = RangeInclusive<u64>;

/// A lead as it came.
#[derive(Clone, Debug)]
struct Kept {
    wire: Bytes,
    /// It did not come when it should have.
    was_lost: bool,
}

/// Leads and parity of the groups in hand.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    /// Inter-frame FEC, if there is any and it is made use of.
    inter_frame: Option<InterFrameFec>,
    leads: BTreeMap<SampleKey, Kept>,
    /// Of the groups of which they were requested, by the last sample, then by number.
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
    within: [f64; MAX_INTER_FRAME_PARITY as usize + 1],
}

impl Gain {
    /// Records a group that lost so many leads, and of which so many shards came, or would have come.
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

    /// Returns the share of what was lost that so many shards would have given back.
    fn of(&self, shards: usize) -> f64 {
        let within = self.within.get(shards).copied().unwrap_or(self.lost);
        (within + GAIN_PRIOR) / (self.lost + GAIN_PRIOR)
    }
}

impl Groups {
    /// Nothing in hand; `inter_frame` says how parity is made.
    pub(super) fn new(inter_frame: Option<InterFrameFec>) -> Self {
        Self {
            inter_frame,
            ..Self::default()
        }
    }

    /// Forgets all but what is known of losses.
    pub(super) fn clear(&mut self) {
        let (losses, gain) = (self.losses, self.gain);
        *self = Self {
            losses,
            gain,
            ..Self::new(self.inter_frame)
        };
    }

    /// Takes over what `other` knows of losses.
    pub(super) const fn learn_from(&mut self, other: &Self) {
        self.losses = other.losses;
        self.gain = other.gain;
    }

    /// Returns the share of leads lost lately, also of samples that were never whole.
    pub(super) fn loss(&self) -> f64 {
        self.losses.share()
    }

    fn keep(&mut self, inter_frame: InterFrameFec, key: SampleKey, lead: Kept) {
        let (class, sequence) = key;
        let group = inter_frame.group(sequence);
        // The first one may have begun before we did.
        let oldest = *self.oldest[class.index()].get_or_insert(group.saturating_add(1));
        if group < oldest {
            return;
        }
        self.leads.insert(key, lead);
        let open_from = group.saturating_sub(MAX_OPEN);
        if open_from > oldest {
            // Where more were passed over, they were not requested.
            for past in oldest.max(open_from.saturating_sub(MAX_OPEN))..open_from {
                self.judge(inter_frame, class, past);
            }
            self.oldest[class.index()] = Some(open_from);
            let first = inter_frame
                .members(open_from)
                .map_or(u64::MAX, |members| *members.start());
            let is_open = |(other, sequence): SampleKey| other != class || sequence >= first;
            self.leads.retain(|key, _| is_open(*key));
            self.shards.retain(|key, _| is_open(*key));
        }
    }

    /// Learns from what became of the leads of a group.
    fn judge(&mut self, inter_frame: InterFrameFec, class: SampleClass, group: u64) {
        let Some(members) = inter_frame.members(group) else {
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

/// Why a shard was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::consumer) enum BadShard {
    /// It is no parity of this code.
    Malformed,
    /// Nobody requested it, or its group was closed meanwhile.
    Unwanted,
}

impl Recovery {
    /// Returns whether inter-frame FEC is made use of.
    pub(in crate::consumer) const fn uses_inter_frame(&self) -> bool {
        self.groups.inter_frame.is_some()
    }

    /// Returns the shards to request ahead of the group that ends with sample `key`: none where a repair round fits before a sample's
    /// time, or the group takes longer than that; else as many as make it unlikely that one misses it. `position` tells where
    /// samples are.
    pub(in crate::consumer) fn shards_ahead(
        &self,
        moment: &Moment,
        key: SampleKey,
        position: impl Fn(SampleKey) -> Option<u64>,
    ) -> Option<usize> {
        let (class, sequence) = key;
        let inter_frame = self.groups.inter_frame?;
        let members = inter_frame.ends_with(sequence)?;
        let losses = self.groups.losses.losses(0.0);
        if losses.share < CLEAN || self.has_time_to_repair(moment, class) {
            return None;
        }
        let (first, last) = (position((class, *members.start()))?, position(key)?);
        let frames = u32::try_from(last.saturating_sub(first)).unwrap_or(u32::MAX);
        let waits = self.period.saturating_mul(frames);
        if waits + self.knowledge.margin(moment, class) > moment.target {
            return None;
        }
        let (needed, most) = (inter_frame.samples as usize, inter_frame.parity as usize);
        let is_enough = |more: &usize| losses.left(needed, *more) <= self.config.miss;
        let count = (1..=most).find(is_enough).unwrap_or(most);
        (self.groups.gain.of(count) >= MIN_GAIN).then_some(count)
    }

    /// Records that shards of the group that ends with sample `last` are requested.
    pub(in crate::consumer) fn expect_shards(&mut self, last: SampleKey) {
        let shards = &mut self.groups.shards;
        shards.entry(last).or_default();
        while shards.len() > MAX_GROUPS {
            shards.pop_first();
        }
    }

    /// Keeps a verified lead, if parity may be made of it. `was_lost` if it did not come when it should have.
    pub(in crate::consumer) fn keep_lead(&mut self, key: SampleKey, data: &Data, was_lost: bool) {
        if let Some(inter_frame) = self.groups.inter_frame {
            let wire = data.wire().clone();
            self.groups.keep(inter_frame, key, Kept { wire, was_lost });
        }
    }

    /// Takes the verified shard `index` of the group that ends with sample `last`.
    pub(in crate::consumer) fn take_shard(
        &mut self,
        last: SampleKey,
        index: u64,
        data: &Data,
    ) -> Result<(), BadShard> {
        let content = data.content().unwrap_or_default();
        let shard = self
            .groups
            .inter_frame
            .and_then(|inter_frame| inter_frame.decode(&content).ok())
            .ok_or(BadShard::Malformed)?;
        let shards = self.groups.shards.get_mut(&last);
        shards.ok_or(BadShard::Unwanted)?.insert(index, shard);
        Ok(())
    }

    /// Returns the samples of the group that `key` is of, if parity is made use of.
    pub(in crate::consumer) fn group_of(&self, (_, sequence): SampleKey) -> Option<Members> {
        let inter_frame = self.groups.inter_frame?;
        inter_frame.members(inter_frame.group(sequence))
    }

    /// Returns the shards that are here of the group that ends with sample `last`.
    pub(in crate::consumer) fn shards_here(&self, last: SampleKey) -> usize {
        self.groups.shards.get(&last).map_or(0, BTreeMap::len)
    }

    /// Returns whether enough is here to rebuild leads that did not come of the group with `members` of `class`.
    pub(in crate::consumer) fn can_rebuild(&self, class: SampleClass, members: &Members) -> bool {
        let is_missing = |sequence: &u64| !self.groups.leads.contains_key(&(class, *sequence));
        let missing = members.clone().filter(is_missing).count();
        let here = self.groups.shards.get(&(class, *members.end()));
        missing > 0 && here.is_some_and(|shards| missing <= shards.len())
    }

    /// Returns the leads that did not come, by parity; none if that gives nothing that makes sense.
    pub(in crate::consumer) fn rebuild(
        &self,
        class: SampleClass,
        members: &Members,
    ) -> Vec<(SampleKey, Data)> {
        let shards = self.groups.shards.get(&(class, *members.end()));
        let Some((inter_frame, shards)) = self.groups.inter_frame.zip(shards) else {
            return Vec::new();
        };
        let kept = |sequence| self.groups.leads.get(&(class, sequence));
        let packets = members
            .clone()
            .map(|sequence| Some(kept(sequence)?.wire.clone()));
        let packets: Vec<_> = packets.collect();
        let shards = (0..u64::from(inter_frame.parity)).map(|index| shards.get(&index).cloned());
        let shards: Vec<_> = shards.collect();
        let rebuilt = inter_frame.recover(&packets, &shards).unwrap_or_default();
        let key = |index: usize| (class, members.start() + index as u64);
        let rebuilt = rebuilt.into_iter();
        rebuilt.map(|(index, data)| (key(index), data)).collect()
    }

    /// The shards of a group are of another publisher's leads, or of none at all.
    pub(in crate::consumer) fn forget_shards(&mut self, last: SampleKey) {
        if let Some(shards) = self.groups.shards.get_mut(&last) {
            shards.clear();
        }
    }

    /// Returns the leads and shards kept.
    #[cfg(test)]
    pub(in crate::consumer) fn kept(&self) -> usize {
        let groups = &self.groups;
        groups.leads.len() + groups.shards.values().map(BTreeMap::len).sum::<usize>()
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
