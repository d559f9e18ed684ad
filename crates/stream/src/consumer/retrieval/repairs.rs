//! Carries out what is decided about samples that lost segments.

use namecast_packet::Data;
use namecast_units::Instant;

use crate::rate::Loss;

use super::super::assembler::{Assembly, id_of};
use super::super::order::SampleKey;
use super::super::repair::BadShard;
use super::{Answer, Playback, Retrieval, Schedule};

impl Retrieval {
    /// Returns the samples whose time to be looked at has come.
    pub(in crate::consumer) fn due(&self, now: Instant) -> Vec<SampleKey> {
        self.assembler.due(now)
    }

    /// Looks at a sample whose time has come, and requests what a round takes.
    pub(in crate::consumer) fn check(
        &mut self,
        now: Instant,
        key: SampleKey,
        schedule: &mut Schedule,
        playback: &Playback,
    ) {
        self.assembler.hedge(now, key);
        self.rebuild(now, key, schedule, playback);
        if let Some(until) = self.waits_for_inter_frame(now, key, schedule) {
            self.assembler.rest_until(key, Some(until));
            return;
        }
        let sample = self.assembler.get(key);
        let Some(sample) = sample.filter(|sample| sample.complete.is_none()) else {
            self.assembler.rest_until(key, None);
            return;
        };
        let (moment, times) = (schedule.moment(now), self.times(now, key, schedule));
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
            if schedule.goes_by_gaps() {
                // It keeps no place in the pipeline.
                schedule.on_gone(key);
            }
            self.give_up(key);
        }
    }

    /// Takes a shard of the group that ends with the sample of `answer`.
    pub(super) fn on_inter_frame(
        &mut self,
        now: Instant,
        answer: &Answer<'_>,
        schedule: &mut Schedule,
        playback: &Playback,
    ) {
        if !self.recovery.uses_inter_frame() || self.verifier.is_none() {
            self.counters.drop_unverified += 1;
            return;
        }
        if !self.is_signed(answer.data) {
            // Nobody waits for it again: what it would have given back is requested itself.
            self.counters.drop_verification += 1;
            return;
        }
        let key = answer.key();
        match self.recovery.take_shard(key, answer.id.index, answer.data) {
            Ok(()) => self.rebuild(now, key, schedule, playback),
            Err(BadShard::Malformed) => self.counters.drop_inter_frame += 1,
            Err(BadShard::Unwanted) => self.counters.drop_unwanted += 1,
        }
    }

    fn is_signed(&self, data: &Data) -> bool {
        let verifier = self.verifier.as_ref();
        verifier.is_some_and(|verifier| data.verify(&**verifier).is_ok())
    }

    /// Rebuilds the lead segments that are overdue in the group of a sample, if enough is here.
    pub(super) fn rebuild(
        &mut self,
        now: Instant,
        key: SampleKey,
        schedule: &mut Schedule,
        playback: &Playback,
    ) {
        let class = key.0;
        let Some(members) = self.recovery.group_of(key) else {
            return;
        };
        let mut all = members.clone();
        if !self.recovery.can_rebuild(class, &members)
            || !all.any(|sequence| self.is_overdue(now, (class, sequence), schedule))
        {
            return;
        }
        let leads = self.recovery.rebuild(class, &members);
        let is_right = !leads.is_empty()
            && leads.into_iter().all(|(key, data)| {
                let answer = Answer::unmeasured(now, key, &data);
                self.take_rebuilt(now, &answer, schedule, playback)
            });
        if !is_right {
            // Of another publisher's leads, or of none at all.
            self.counters.drop_inter_frame += 1;
            self.recovery.forget_shards((class, *members.end()));
        }
    }

    /// Takes a lead segment that came out of parity. Returns whether it is what it should be.
    fn take_rebuilt(
        &mut self,
        now: Instant,
        answer: &Answer<'_>,
        schedule: &mut Schedule,
        playback: &Playback,
    ) -> bool {
        let (id, data, key) = (answer.id, answer.data, answer.key());
        if *data.name() != self.source.names.segment(id) || !self.is_signed(data) {
            return false;
        }
        if !self.is_overdue(now, key, schedule) {
            return true;
        }
        if self.assembler.on_rebuilt(key) {
            self.note_lost(id, Loss::Gap, true);
        }
        self.counters.recovered_inter_frame += 1;
        self.recovery.keep_lead(key, data, true);
        self.take_lead(now, answer, schedule, playback);
        self.finish_if_whole(now, key, schedule, playback);
        true
    }

    /// Returns whether the lead segment of a sample should be here, and is not.
    fn is_overdue(&self, now: Instant, key: SampleKey, schedule: &Schedule) -> bool {
        let lacks_lead = self.assembler.get(key).is_some_and(Assembly::lacks_lead);
        lacks_lead && self.due_at(now, key, schedule) <= now
    }

    /// Returns when what was requested of a sample before it existed should be here, if it is not lost.
    fn due_at(&self, now: Instant, key: SampleKey, schedule: &Schedule) -> Instant {
        let (moment, times) = (schedule.moment(now), self.times(now, key, schedule));
        self.recovery.due_at(&moment, &times)
    }

    /// Returns until when parity may still give back the lead segment of a sample, in time for it.
    fn waits_for_inter_frame(
        &self,
        now: Instant,
        key: SampleKey,
        schedule: &Schedule,
    ) -> Option<Instant> {
        let members = self.recovery.group_of(key)?;
        if !self.is_overdue(now, key, schedule) {
            return None;
        }
        let last = (key.0, *members.end());
        let ends = self.assembler.get(last)?;
        let pending = ends.inter_frame().filter(|(_, _, slot)| slot.is_awaited());
        let pending = pending.count();
        let is_overdue = |sequence: &u64| self.is_overdue(now, (key.0, *sequence), schedule);
        let overdue = members.filter(is_overdue).count();
        if pending == 0 || pending + self.recovery.shards_here(last) < overdue {
            return None;
        }
        let until = self.due_at(now, last, schedule);
        let published_at = schedule.published_at(key, &self.assembler)?;
        let deadline = schedule.timeline().render_at(now, published_at);
        (until > now && until <= deadline).then_some(until)
    }
}
