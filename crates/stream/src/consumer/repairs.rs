//! Carries out what is decided about samples that lost segments.

use core::time::Duration;

use namecast_packet::Data;
use namecast_units::{Instant, Timestamp};

use crate::names::SegmentId;
use crate::rate::PathEvent;
use crate::rate::{Loss, Lost};

use super::Consumer;
use super::assembler::{Asked, Assembly, id_of};
use super::order::SampleKey;
use super::repair::{BadShard, Moment, Times};

impl Consumer {
    /// Returns the share of segments lost lately.
    pub fn loss(&self) -> f64 {
        self.recovery.loss()
    }

    /// Returns what is known of the path now, and how much time there is.
    pub(super) fn moment(&self, now: Instant) -> Moment {
        let moment = Moment::new(now, &self.path);
        Moment {
            target: self.timeline.target(),
            time_to_leave: self.timeline.time_to_leave(),
            tolerance: self.playback.tolerance(),
            is_alive: self.pipeline.is_alive(now, moment.round_trip()),
            ..moment
        }
    }

    /// Returns what is known of a sample's time.
    pub(super) fn times(&self, now: Instant, key: SampleKey) -> Times {
        let published_at = self.published_at(key);
        let has_lead = self.assembler.has_lead(key);
        Times {
            key,
            earliest: published_at.map(|at| self.timeline.earliest(now, at)),
            in_turn: self.pipeline.expected_at(key.0, key.1),
            render_at: published_at.map(|at| self.timeline.render_at(now, at)),
            unpunctuality: match has_lead {
                true => Duration::ZERO,
                false => self.timeline.unpunctuality(now),
            },
            is_published: self.is_published(key),
            has_lead,
            period: self.source.rate.period(),
        }
    }

    /// Returns when a sample was or will be published, by its lead or by the stream's clock.
    pub(super) fn published_at(&self, key: SampleKey) -> Option<Timestamp> {
        let told = self.assembler.header(key).map(|it| it.published_at());
        told.or_else(|| self.timeline.published_at(key))
    }

    /// Looks at a sample again when what is missing of it should be requested.
    pub(super) fn wake_for_check(&mut self, now: Instant, key: SampleKey) {
        let (moment, times) = (self.moment(now), self.times(now, key));
        let at = self.recovery.check_at(&moment, &times);
        self.assembler.wake_by(key, at.max(now));
    }

    /// Looks at every sample whose time has come.
    pub(super) fn repair_due(&mut self, now: Instant) {
        for key in self.assembler.due(now) {
            self.check(now, key);
        }
    }

    /// Looks at a sample whose time has come, and requests what a round takes.
    fn check(&mut self, now: Instant, key: SampleKey) {
        self.assembler.hedge(now, key);
        self.rebuild(now, key);
        if let Some(until) = self.waits_for_across(now, key) {
            self.assembler.rest_until(key, Some(until));
            return;
        }
        let sample = self.assembler.get(key);
        let Some(sample) = sample.filter(|sample| sample.complete.is_none()) else {
            self.assembler.rest_until(key, None);
            return;
        };
        let (moment, times) = (self.moment(now), self.times(now, key));
        let verdict = self.recovery.decide(&moment, &times, sample);
        self.assembler.plan(key, &verdict.plan);
        for lost in verdict.lost {
            let id = id_of(key, lost.name);
            self.note_lost(id, lost.loss, lost.is_first);
        }
        for name in verdict.request {
            self.assembler.repair(id_of(key, name));
        }
        if verdict.give_up {
            self.give_up(key);
        }
    }

    /// A segment did not come when it should have.
    fn note_lost(&mut self, id: SegmentId, loss: Loss, is_first: bool) {
        if is_first {
            self.assembler.mark_lost(id);
            self.recovery.on_first_lost();
        }
        self.counters.interests_timed_out += u64::from(loss == Loss::Timeout);
        self.report_loss(id, loss);
    }

    /// Tells whoever estimates bandwidth of a loss, once per transmission.
    pub(super) fn report_loss(&mut self, id: SegmentId, kind: Loss) {
        if let Some(asked_at) = self.assembler.lose(id) {
            self.outputs.note(PathEvent::Lost(Lost {
                asked_at,
                kind,
                repeated: false,
            }));
        }
    }

    /// Returns the shards to request ahead of the group that ends with a sample.
    pub(super) fn shards_ahead(&mut self, now: Instant, key: SampleKey) -> usize {
        let moment = self.moment(now);
        let position = |key| self.timeline.position(key);
        let count = self.recovery.shards_ahead(&moment, key, position);
        let expected = self.assembler.segments_expected(key.0);
        let has_room = |count: &usize| self.assembler.can_request(expected + count);
        let count = count.filter(has_room).unwrap_or(0);
        if count > 0 {
            self.recovery.expect_shards(key);
        }
        count
    }

    /// Keeps a verified lead, in case that parity is made of it.
    pub(super) fn keep_lead(&mut self, key: SampleKey, asked: &Asked, data: &Data) {
        let slot = self.assembler.slot(SegmentId::lead(key.0, key.1));
        let was_lost = slot.is_some_and(|slot| slot.was_lost);
        let was_lost = was_lost || (asked.attempts > 1 && !asked.is_hedged);
        self.recovery.keep_lead(key, data, was_lost);
    }

    /// Takes a shard of the group that ends with the sample of `id`.
    pub(super) fn on_across(&mut self, now: Instant, id: SegmentId, data: &Data) {
        let verifier = self.verifier.as_ref();
        let Some(verifier) = verifier.filter(|_| self.recovery.uses_across()) else {
            self.counters.drop_unverified += 1;
            return;
        };
        if data.verify(&**verifier).is_err() {
            // Nobody waits for it again: what it would have given back is requested itself.
            self.counters.drop_verification += 1;
            return;
        }
        let key = (id.class, id.sequence);
        match self.recovery.take_shard(key, id.index, data) {
            Ok(()) => self.rebuild(now, key),
            Err(BadShard::Malformed) => self.counters.drop_across += 1,
            Err(BadShard::Unwanted) => self.counters.drop_unwanted += 1,
        }
    }

    /// Rebuilds the leads that are overdue in the group of a sample, if enough is here.
    pub(super) fn rebuild(&mut self, now: Instant, key: SampleKey) {
        let class = key.0;
        let Some(members) = self.recovery.group_of(key) else {
            return;
        };
        let mut all = members.clone();
        if !self.recovery.can_rebuild(class, &members)
            || !all.any(|sequence| self.is_overdue(now, (class, sequence)))
        {
            return;
        }
        let leads = self.recovery.rebuild(class, &members);
        let is_right = !leads.is_empty()
            && leads
                .into_iter()
                .all(|(key, data)| self.take_rebuilt(now, key, &data));
        if !is_right {
            // Of another publisher's leads, or of none at all.
            self.counters.drop_across += 1;
            self.recovery.forget_shards((class, *members.end()));
        }
    }

    /// Takes a lead that came out of parity. Returns whether it is what it should be.
    fn take_rebuilt(&mut self, now: Instant, key: SampleKey, data: &Data) -> bool {
        let id = SegmentId::lead(key.0, key.1);
        let verifier = self.verifier.as_ref();
        let is_signed = verifier.is_some_and(|verifier| data.verify(&**verifier).is_ok());
        if *data.name() != self.source.names.segment(id) || !is_signed {
            return false;
        }
        if !self.is_overdue(now, key) {
            return true;
        }
        if self.assembler.on_rebuilt(key) {
            self.note_lost(id, Loss::Gap, true);
        }
        self.counters.recovered_across += 1;
        self.recovery.keep_lead(key, data, true);
        self.take_lead(now, key, Asked::unmeasured(now), data);
        self.finish_if_whole(now, key);
        true
    }

    /// Returns whether the lead of a sample should be here, and is not.
    fn is_overdue(&self, now: Instant, key: SampleKey) -> bool {
        let lacks_lead = self.assembler.get(key).is_some_and(Assembly::lacks_lead);
        lacks_lead && self.due_at(now, key) <= now
    }

    /// Returns when what was requested of a sample before it existed should be here, if it is not lost.
    fn due_at(&self, now: Instant, key: SampleKey) -> Instant {
        let (moment, times) = (self.moment(now), self.times(now, key));
        self.recovery.due_at(&moment, &times)
    }

    /// Returns until when parity may still give back the lead of a sample, in time for it.
    fn waits_for_across(&self, now: Instant, key: SampleKey) -> Option<Instant> {
        let members = self.recovery.group_of(key)?;
        if !self.is_overdue(now, key) {
            return None;
        }
        let last = (key.0, *members.end());
        let ends = self.assembler.get(last)?;
        let pending = ends.across().filter(|(_, _, slot)| slot.is_awaited());
        let pending = pending.count();
        let is_overdue = |sequence: &u64| self.is_overdue(now, (key.0, *sequence));
        let overdue = members.filter(is_overdue).count();
        if pending == 0 || pending + self.recovery.shards_here(last) < overdue {
            return None;
        }
        let until = self.due_at(now, last);
        let deadline = self.timeline.render_at(now, self.published_at(key)?);
        (until > now && until <= deadline).then_some(until)
    }
}
