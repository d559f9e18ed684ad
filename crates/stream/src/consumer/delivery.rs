//! Delivers samples when their time comes, and drops what playback passes over.

use namecast_units::Instant;

use crate::names::SampleClass;

use super::assembler::Assembly;
use super::order::Next;
use super::playback::{Buffer, Step};
use super::{Consumer, Output};

impl Consumer {
    /// Returns what there is to play.
    pub(super) fn buffer(&self) -> Buffer<'_> {
        Buffer {
            samples: self.retrieval.samples(),
            timeline: self.schedule.timeline(),
            is_held: self.schedule.synchroniser().holds_playback(),
        }
    }

    /// Delivers every sample whose turn and time it is. Each step takes one sample away, so the loop ends.
    pub(super) fn deliver_due(&mut self, now: Instant) {
        while let Some(step) = self.playback.step(now, &self.buffer()) {
            match step {
                // Of the rest of its group, some was shown as well: the next group is whole.
                Step::PassGroup(sequence) => self.skip_group_before(sequence.saturating_add(1)),
                Step::Skip(sequence) => {
                    self.counters.skips += 1;
                    self.go_on_with(sequence);
                }
                Step::Deliver(key) => {
                    let sample = self.retrieval.remove(key, &mut self.schedule);
                    let timeline = self.schedule.timeline();
                    let sample = sample.and_then(|it| self.playback.deliver(now, timeline, it));
                    let Some((mut sample, lost)) = sample else {
                        return;
                    };
                    let names = &self.retrieval.source().names;
                    sample.sequence = names.in_rung(key.0, sample.sequence);
                    self.counters.lost += lost;
                    self.counters.delivered += 1;
                    self.retrieval.outbox().push(Output::Sample(sample));
                }
            }
        }
    }

    /// Makes the complete key sample `sequence` the next one, and drops all that comes before it.
    pub(super) fn go_on_with(&mut self, sequence: u64) {
        let sample = self.retrieval.samples().get(&(SampleClass::Key, sequence));
        let Some(lead) = sample.and_then(Assembly::lead) else {
            return;
        };
        let is_standalone = self.source().is_standalone();
        let next = (!is_standalone).then_some(lead.header().other_sequence);
        if self.playback.order().last().is_some() && !is_standalone {
            self.retrieval.outbox().push(Output::Discontinuity);
        }
        self.playback.skip_to(sequence);
        self.schedule.skip_to(sequence, next);
        self.drop_before(SampleClass::Key, sequence);
        if let Some(next) = next {
            self.drop_before(SampleClass::Delta, next);
        }
    }

    /// Nothing more of the group in hand can be decoded: the next sample is the next key sample.
    pub(super) fn abandon_group(&mut self) {
        self.retrieval.outbox().push(Output::Discontinuity);
        if !self.source().is_standalone() {
            self.skip_group_before(self.playback.order().first_key().saturating_add(1));
        }
    }

    /// Drops every group before that of key sample `next`, which becomes the next one.
    pub(super) fn skip_group_before(&mut self, next: u64) {
        self.playback.skip_to(next);
        self.schedule.skip_to(next, None);
        self.drop_before(SampleClass::Key, next);
        let useless = self
            .retrieval
            .remove_all(&mut self.schedule, |key, sample, _| {
                let lead = sample.lead().filter(|_| key.0 == SampleClass::Delta);
                lead.is_some_and(|lead| lead.header().other_sequence < next)
            });
        self.counters.drop_undecodable += useless.len() as u64;
    }

    /// The tables are full and playback does not move: the group in hand is dropped, so that later ones have room, and so
    /// is what may not exist.
    pub(super) fn make_room(&mut self) {
        if !self.is_stuck() {
            return;
        }
        if !self.playback.order().needs_key() {
            self.abandon_group();
        }
        if self.is_stuck() {
            // Delta samples of which no lead came: playback goes on at the live edge.
            self.retrieval
                .remove_all(&mut self.schedule, |key, sample, _| {
                    key.0 == SampleClass::Delta && sample.lead().is_none()
                });
            self.schedule.skip_to_live_delta();
        }
        // A key sample that does not exist yet cannot be passed over.
        let first_key = self.playback.order().first_key();
        if self.is_stuck() && self.schedule.is_key_published(first_key) {
            self.abandon_group();
        }
    }

    fn is_stuck(&self) -> bool {
        self.retrieval.is_full()
            && !self.playback.is_held()
            && !self.source().is_standalone()
            && (!self.has_ready() || self.schedule.synchroniser().holds_playback())
    }

    /// Returns whether the next sample to be delivered is complete.
    pub fn has_ready(&self) -> bool {
        let next = self.playback.order().next(self.retrieval.samples());
        matches!(next, Next::Ready(_))
    }

    fn drop_before(&mut self, class: SampleClass, sequence: u64) {
        self.retrieval.remove_all(&mut self.schedule, |key, _, _| {
            ((class, 0)..(class, sequence)).contains(&key)
        });
    }
}
