//! Changing over from one rung of a stream to another: the new one begins at a key sample, where the old one ends.
//!
//! All rungs have the same positions, so what one consumer knows of time and of the path holds for the other.

use core::time::Duration;

use namecast_packet::Name;
use namecast_units::{ByteSize, Instant, Timestamp};

use crate::metadata::Latest;
use crate::names::SampleClass;
use crate::path::{Limit, Token};

use super::assembler::Asked;
use super::handover::{Allowance, GroupStart};
use super::order::{Next, SampleKey};
use super::{Consumer, Output, StartAt};

/// A group to start with.
struct GroupAt {
    at: StartAt,
    position: u64,
    published_at: Timestamp,
    /// When its key sample could be here at the earliest.
    soonest: Instant,
}

impl Consumer {
    /// Returns the newest group that has begun.
    pub const fn newest_group(&self) -> Option<GroupStart> {
        self.handover.newest_group()
    }

    /// Returns the newest delta sample known to be published.
    pub fn newest_delta(&self) -> Option<u64> {
        let newest = self.pipeline.newest(SampleClass::Delta)?;
        Some(newest.max(self.pipeline.assumed(SampleClass::Delta)))
    }

    /// Returns when the sample at `position` could be here at the earliest, by the stream's clock.
    pub fn arrives_at(&self, now: Instant, position: u64) -> Option<Instant> {
        let published_at = self.timeline.time_of(position)?;
        Some(self.timeline.earliest(now, published_at))
    }

    /// Returns the segment that `name` is of, as the requester knows it.
    pub fn token_of(&self, name: &Name) -> Option<Token> {
        let segment = self.source.names.parse(name)?;
        Some(Token {
            client: self.client,
            segment,
        })
    }

    /// Returns by how much the base delay exceeds what it was within the last minute.
    pub fn base_growth(&self, now: Instant) -> Duration {
        self.timeline.base_growth(now)
    }

    /// Returns the time before that at which Interests leave.
    pub fn leaves_before(&self, now: Instant) -> Duration {
        self.ahead_by(now)
    }

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
        let newest = latest.key_position?;
        let interval = u64::from(self.source.key_interval.max(1));
        let position = match at {
            StartAt::NewestKey => newest,
            StartAt::NextKey => newest.checked_add(interval)?,
        };
        let published_at = other.timeline.time_of(position)?;
        let soonest = other.timeline.earliest(now, published_at);
        let start = GroupAt {
            at,
            position,
            published_at,
            soonest,
        };
        self.begin_group(now, latest, start)
    }

    /// Drops groups whose key sample is at `position` or before: another rung shows them.
    pub fn pass_over(&mut self, now: Instant, position: u64) {
        let passed = self.assembler.samples().values().filter(|sample| {
            let at = sample.lead().map(|lead| lead.header().position);
            sample.class == SampleClass::Key && at.is_some_and(|at| at <= position)
        });
        if let Some(last) = passed.map(|sample| sample.sequence).max() {
            self.skip_group_before(last.saturating_add(1));
        }
        self.settle(now);
    }

    /// Returns a key sample that is complete and comes after `position`: its position, and when it would be delivered.
    pub fn ready_key(&self, now: Instant, after: Option<u64>) -> Option<(u64, Instant)> {
        self.assembler
            .samples()
            .range((SampleClass::Key, 0)..=(SampleClass::Key, u64::MAX))
            .filter(|(_, sample)| sample.complete.is_some())
            .filter_map(|(_, sample)| Some(sample.lead()?.header()))
            .filter(|header| !self.playback.was_shown(now, header))
            .find(|header| after.is_none_or(|after| header.position > after))
            .map(|header| {
                let at = self.timeline.leaves_at(now, header.published_at());
                (header.position, at)
            })
    }

    /// Makes the complete key sample at `position` the next to be delivered.
    pub fn begin_at(&mut self, now: Instant, position: u64) {
        let found = self.assembler.samples().values().find(|sample| {
            let at = sample.lead().map(|lead| lead.header().position);
            sample.class == SampleClass::Key && at == Some(position)
        });
        if let Some(sequence) = found.map(|sample| sample.sequence) {
            self.go_on_with(sequence);
        }
        self.settle(now);
    }

    /// Returns whether the next sample to be delivered is complete.
    pub fn has_ready(&self) -> bool {
        matches!(
            self.playback.order().next(self.assembler.samples()),
            Next::Ready(_)
        )
    }

    /// Forgets all that is not complete, and requests nothing more.
    pub fn stop_requests(&mut self, now: Instant) {
        self.set_ask_before(now, Some(0));
    }

    /// Starts at a key sample of which `beside`, which pulls another rung, has shown nothing: the newest one if that is not
    /// too old, else the next one. Gives its position, at which `beside` should end ([`set_ask_before`](Self::set_ask_before)).
    ///
    /// `None` if nothing is known of such a sample, or if `waits` and the next one's Interests would come too late.
    pub fn start_beside(
        &mut self,
        now: Instant,
        latest: &Latest,
        beside: &Self,
        waits: bool,
    ) -> Option<u64> {
        let newest = latest.key_position?;
        let is_shown = beside.position().is_none_or(|shown| newest <= shown);
        self.learn_from(beside);
        if !waits && !is_shown {
            self.start(now, latest, StartAt::NewestKey)?;
            return Some(newest);
        }
        let interval = u64::from(self.source.key_interval.max(1));
        let position = newest.checked_add(interval)?;
        let published_at = beside.timeline.time_of(position)?;
        let soonest = beside.timeline.earliest(now, published_at);
        // Interests that have left cannot be called back: their Data would come as well.
        let are_in_vain = beside.outstanding_from(position) > self.recovery.profile().max_in_vain();
        let is_too_late = soonest < now + self.ahead_by(now) || are_in_vain;
        if waits && is_too_late {
            return None;
        }
        let start = GroupAt {
            at: StartAt::NextKey,
            position,
            published_at,
            soonest,
        };
        self.begin_group(now, latest, start)
    }

    /// Starts with a group, by the stream's clock. Returns its position.
    fn begin_group(&mut self, now: Instant, latest: &Latest, start: GroupAt) -> Option<u64> {
        let GroupAt {
            at,
            position,
            published_at,
            soonest,
        } = start;
        let key = self.begin(now, latest, at)?;
        self.timeline.seed(key, position, published_at);
        if let Some(next) = latest.next_delta.filter(|_| !self.source.is_standalone()) {
            // A group has one delta sample less than frames. If it turns out to have more, they are caught up with.
            let skipped = match at {
                StartAt::NewestKey => 0,
                StartAt::NextKey => u64::from(self.source.key_interval.max(1)) - 1,
            };
            let first = next.saturating_add(skipped);
            self.timeline.seed_delta(first, position + 1);
            if at == StartAt::NextKey {
                let before = first.saturating_sub(1);
                self.pipeline
                    .start(soonest.max(now), SampleClass::Delta, first, before);
            }
        }
        self.settle(now);
        Some(position)
    }

    /// Starts at the newest samples, whether they can be shown or not, to try what the path carries while `beside` is shown.
    /// Nothing happens if nothing is known of such samples.
    pub fn start_trial(
        &mut self,
        now: Instant,
        latest: &Latest,
        beside: &Self,
        allowance: Allowance,
    ) {
        self.learn_from(beside);
        self.handover.set_allowance(Some(allowance));
        if let Some(next) = self.begin(now, latest, StartAt::NextKey) {
            // Those of the group that has begun count as well.
            self.playback.restart_order(next.saturating_sub(1));
            self.settle(now);
        }
    }

    /// Returns the Interests that are out for samples at `position` and after it.
    fn outstanding_from(&self, position: u64) -> usize {
        let is_later = |key| self.timeline.position(key).is_some_and(|at| at >= position);
        let later = self
            .assembler
            .samples()
            .iter()
            .filter(|(key, _)| is_later(**key));
        later.map(|(_, sample)| sample.outstanding()).sum()
    }

    /// Takes over what `other` knows of the path and its losses.
    fn learn_from(&mut self, other: &Self) {
        self.path.learn_from(&other.path);
        self.timeline.learn_from(&other.timeline);
        self.recovery.learn_from(&other.recovery);
    }

    /// Requests no sample at `position` or after it, and forgets those that are not whole; `None` ends that.
    pub fn set_ask_before(&mut self, now: Instant, position: Option<u64>) {
        self.handover.set_ask_before(position);
        let left = self
            .assembler
            .keys(|key, sample| sample.complete.is_none() && self.is_left_to_another(key));
        for key in left {
            self.remove(key);
            // If the other rung does not come, they are this one's again.
            self.pipeline.give_back(key.0, key.1);
        }
        self.settle(now);
    }

    /// Returns whether a sample is one that another rung's consumer requests.
    pub(super) fn is_left_to_another(&self, key: SampleKey) -> bool {
        self.handover
            .is_left_to_another(self.timeline.position(key))
    }

    /// Returns when the sample at `position` is to be shown, by the stream's clock.
    pub fn shown_at(&self, now: Instant, position: u64) -> Option<Instant> {
        let published_at = self.timeline.time_of(position)?;
        Some(self.timeline.render_at(now, published_at))
    }

    /// Returns the time from one key sample to the next.
    pub fn key_period(&self) -> Duration {
        let interval = self.source.key_interval.max(1);
        self.source.rate.period().saturating_mul(interval)
    }

    /// Asks no faster than allowed; `None`: than the controller allows.
    pub fn set_allowance(&mut self, now: Instant, allowance: Option<Allowance>) {
        if self.handover.set_allowance(allowance) {
            let segment = ByteSize::bytes(u64::from(self.source.segment_size));
            let limit = allowance.map(|allowance| Limit {
                rate: allowance.rate,
                packet_size: allowance.packet_size.unwrap_or(segment),
            });
            self.outputs.push(Output::Limit(limit));
            self.settle(now);
        }
    }

    /// Returns the time that Data took which existed when it was requested, as all does that an allowance is for. Those that are requested
    /// ahead come one behind the other, so that only a lead's time tells of queues.
    pub(super) fn plain_round_trip(
        &self,
        now: Instant,
        key: SampleKey,
        asked: &Asked,
    ) -> Option<Duration> {
        self.handover.allowance()?;
        let soonest = self.timeline.earliest(now, self.published_at(key)?);
        (asked.attempts == 1 && soonest <= asked.last_at).then(|| now.since(asked.last_at))
    }

    /// Forgets all samples up to `position`: another rung has shown them.
    pub fn forget_up_to(&mut self, position: u64) {
        let past = self.assembler.keys(|key, _| {
            let at = self.timeline.position(key);
            at.is_some_and(|at| at <= position)
        });
        for key in past {
            self.remove(key);
        }
    }
}
