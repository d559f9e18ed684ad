//! Changing over from one rung of a stream to another: the new one begins at a key sample, where the old one ends.
//!
//! Key samples of all rungs have the same positions, or nearly so in open groups, so what one consumer knows of time and of the path
//! holds for the other.

use namecast_units::{ByteSize, Instant};

use crate::metadata::Latest;
use crate::names::SampleClass;
use crate::path::{Limit, Request};
use crate::sample::SampleHeader;

use super::assembler::Assembly;
use super::handover::Allowance;
use super::schedule::GroupAt;
use super::{Consumer, ReadyKey, Shown, StartAt};

impl Consumer {
    /// Starts with a group that `other`, which pulls another rung, has told of: the newest one, or the next. `latest` is in
    /// this rung's numbers. Returns its position.
    pub fn start_group(
        &mut self,
        now: Instant,
        latest: &Latest,
        other: &Self,
        at: StartAt,
    ) -> Option<u64> {
        self.learn_from(other);
        let position = self.schedule.start_position(latest, at)?;
        let group = other.schedule.group_at(now, position, at)?;
        self.begin_group(now, latest, &group)
    }

    /// Drops groups whose key sample `shown` reaches: another rung has shown it.
    pub fn pass_over(&mut self, now: Instant, shown: Shown) {
        let keys = self.retrieval.samples().values();
        let passed = keys.filter(|it| key_header(it).is_some_and(|header| shown.reaches(header)));
        if let Some(last) = passed.map(|sample| sample.sequence).max() {
            self.skip_group_before(last.saturating_add(1));
        }
        self.settle(now);
    }

    /// Returns the first key sample that is complete and comes after what was shown.
    pub fn ready_key(&self, now: Instant, after: Option<Shown>) -> Option<ReadyKey> {
        self.retrieval
            .samples()
            .range((SampleClass::Key, 0)..=(SampleClass::Key, u64::MAX))
            .filter(|(_, sample)| sample.complete.is_some())
            .filter_map(|(_, sample)| Some(sample.lead()?.header()))
            .filter(|header| !self.playback.was_shown(now, header))
            .find(|header| after.is_none_or(|after| !after.reaches(header)))
            .map(|header| {
                let timeline = self.schedule.timeline();
                let leaves_at = timeline.leaves_at(now, header.published_at());
                ReadyKey {
                    position: header.position,
                    presented_at: header.presented_at(),
                    reorder_delay: self.source().reorder_delay,
                    leaves_at: leaves_at + header.composition_offset,
                }
            })
    }

    /// Makes the complete key sample at `position` the next to be delivered.
    pub fn begin_at(&mut self, now: Instant, position: u64) {
        let mut samples = self.retrieval.samples().values();
        let found = samples.find(|it| key_header(it).is_some_and(|it| it.position == position));
        if let Some(sequence) = found.map(|sample| sample.sequence) {
            self.go_on_with(sequence);
        }
        self.settle(now);
    }

    /// Starts at a key sample of which `shown`, which pulls another rung, has shown nothing: the newest one if that is not
    /// too old, else the next one. Returns its position, at which `shown` should end ([`set_ask_before`](Self::set_ask_before)).
    ///
    /// `None` if nothing is known of such a sample, or if `waits` and the next one's Interests would come too late.
    pub fn start_after(
        &mut self,
        now: Instant,
        latest: &Latest,
        shown: &Self,
        waits: bool,
    ) -> Option<u64> {
        let newest = latest.key_position?;
        let is_shown = shown.position().is_none_or(|shown| newest <= shown);
        self.learn_from(shown);
        if !waits && !is_shown {
            self.start(now, latest, StartAt::NewestKey)?;
            return Some(newest);
        }
        let position = self.schedule.start_position(latest, StartAt::NextKey)?;
        let group = shown.schedule.group_at(now, position, StartAt::NextKey)?;
        // Interests that have left cannot be called back: their Data would come as well.
        let out = shown.retrieval.outstanding_from(position, &shown.schedule);
        let are_in_vain = out > self.retrieval.recovery().profile().max_in_vain();
        let is_too_late = group.soonest < now + self.leaves_before(now) || are_in_vain;
        if waits && is_too_late {
            return None;
        }
        self.begin_group(now, latest, &group)
    }

    /// Starts with a group, by the stream's clock. Returns its position.
    fn begin_group(&mut self, now: Instant, latest: &Latest, group: &GroupAt) -> Option<u64> {
        let key = self.begin(now, latest, group.at)?;
        self.schedule.seed_group(now, key, latest, group);
        self.settle(now);
        Some(group.position)
    }

    /// Starts at the newest samples, whether they can be shown or not, to try what the path carries while `shown` is shown.
    /// Nothing happens if nothing is known of such samples.
    pub fn start_trial(
        &mut self,
        now: Instant,
        latest: &Latest,
        shown: &Self,
        allowance: Allowance,
    ) {
        self.learn_from(shown);
        self.schedule.handover_mut().set_allowance(Some(allowance));
        if let Some(next) = self.begin(now, latest, StartAt::NextKey) {
            // Those of the group that has begun count as well.
            self.playback.restart_order(next.saturating_sub(1));
            self.settle(now);
        }
    }

    /// Takes over what `other` knows of the path and its losses.
    fn learn_from(&mut self, other: &Self) {
        self.schedule.learn_from(&other.schedule);
        self.retrieval.learn_from(&other.retrieval);
    }

    /// Requests no sample at `position` or after it, and forgets those that are not whole; `None` ends that.
    pub fn set_ask_before(&mut self, now: Instant, position: Option<u64>) {
        self.schedule.handover_mut().set_ask_before(position);
        let left = self
            .retrieval
            .remove_all(&mut self.schedule, |key, sample, schedule| {
                sample.complete.is_none() && schedule.is_left_to_another(key)
            });
        for key in left {
            // If the other rung does not come, they are this one's again.
            self.schedule.give_back(key);
        }
        self.settle(now);
    }

    /// Requests no faster than allowed; `None`: than the controller allows.
    pub fn set_allowance(&mut self, now: Instant, allowance: Option<Allowance>) {
        if self.schedule.handover_mut().set_allowance(allowance) {
            let segment = ByteSize::bytes(u64::from(self.source().segment_size));
            let limit = allowance.map(|allowance| Limit {
                rate: allowance.rate,
                packet_size: allowance.packet_size.unwrap_or(segment),
            });
            let request = Request::Limit(self.client(), limit);
            self.retrieval.outbox().request(request);
            self.settle(now);
        }
    }

    /// Forgets all samples up to `position`: another rung has shown them.
    pub fn forget_up_to(&mut self, position: u64) {
        self.retrieval
            .remove_all(&mut self.schedule, |key, _, schedule| {
                let at = schedule.timeline().position(key);
                at.is_some_and(|at| at <= position)
            });
    }
}

/// Returns what a key sample says whose lead segment is here.
fn key_header(sample: &Assembly) -> Option<&SampleHeader> {
    let lead = sample.lead()?;
    (sample.class == SampleClass::Key).then_some(lead.header())
}
