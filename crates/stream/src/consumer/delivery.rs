//! Delivers samples when their time comes, and drops what playback passes over.

use namecast_units::Instant;

use crate::names::SampleClass;

use super::assembler::Assembly;
use super::order::{Next, SampleKey};
use super::playback::{Buffer, Step};
use super::{Consumer, Output};

impl Consumer {
    /// Returns what there is to play.
    pub(super) fn buffer(&self) -> Buffer<'_> {
        Buffer {
            samples: self.assembler.samples(),
            timeline: &self.timeline,
            is_held: self.synchroniser.holds_playback(),
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
                    let sample = self.remove(key);
                    let sample =
                        sample.and_then(|it| self.playback.deliver(now, &self.timeline, it));
                    let Some((sample, lost)) = sample else {
                        return;
                    };
                    self.counters.lost += lost;
                    self.counters.delivered += 1;
                    self.outputs.push(Output::Sample(sample));
                }
            }
        }
    }

    /// Makes the complete key sample `sequence` the next one, and drops all that comes before it.
    pub(super) fn go_on_with(&mut self, sequence: u64) {
        let key = (SampleClass::Key, sequence);
        let Some(header) = self.assembler.header(key).cloned() else {
            return;
        };
        if self.playback.order().last().is_some() && !self.source.is_standalone() {
            self.outputs.push(Output::Discontinuity);
        }
        self.playback.skip_to(sequence);
        self.pipeline.forget_start();
        self.pipeline.skip_to(SampleClass::Key, sequence);
        self.drop_before(SampleClass::Key, sequence);
        if !self.source.is_standalone() {
            let next = header.other_sequence;
            self.pipeline.skip_to(SampleClass::Delta, next);
            self.drop_before(SampleClass::Delta, next);
        }
    }

    /// Nothing more of the group in hand can be decoded: the next sample is the next key sample.
    pub(super) fn abandon_group(&mut self) {
        self.outputs.push(Output::Discontinuity);
        if !self.source.is_standalone() {
            self.skip_group_before(self.playback.order().first_key().saturating_add(1));
        }
    }

    /// Drops every group before that of key sample `next`, which becomes the next one.
    pub(super) fn skip_group_before(&mut self, next: u64) {
        self.playback.skip_to(next);
        self.pipeline.forget_start();
        self.pipeline.skip_to(SampleClass::Key, next);
        self.drop_before(SampleClass::Key, next);
        let is_useless = |sample: &Assembly| {
            sample
                .lead()
                .is_some_and(|lead| lead.header().other_sequence < next)
        };
        let useless = self
            .assembler
            .keys(|key, sample| key.0 == SampleClass::Delta && is_useless(sample));
        self.counters.drop_undecodable += useless.len() as u64;
        for key in useless {
            self.remove(key);
        }
    }

    /// Records that a sample cannot be completed.
    pub(super) fn mark_given_up(&mut self, key: SampleKey) {
        self.counters.given_up += u64::from(self.assembler.give_up(key));
    }

    /// A sample was requested too often. If playback waits for it, the rest of its group is of no use.
    pub(super) fn give_up(&mut self, key: SampleKey) {
        self.mark_given_up(key);
        if self.source.is_standalone() {
            return;
        }
        if self.playback.waits_for(key) {
            self.abandon_group();
        }
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
            self.drop_unanswered_deltas();
        }
        // A key sample that does not exist yet cannot be passed over.
        let newest = self.pipeline.newest(SampleClass::Key);
        if self.is_stuck()
            && newest.is_some_and(|newest| self.playback.order().first_key() <= newest)
        {
            self.abandon_group();
        }
    }

    fn is_stuck(&self) -> bool {
        let waits = || {
            !matches!(
                self.playback.order().next(self.assembler.samples()),
                Next::Ready(_)
            ) || self.synchroniser.holds_playback()
        };
        self.assembler.is_full()
            && !self.playback.is_held()
            && !self.source.is_standalone()
            && waits()
    }

    /// Drops delta samples of which no lead came, and goes on at the live edge.
    fn drop_unanswered_deltas(&mut self) {
        let unanswered = self
            .assembler
            .keys(|key, sample| key.0 == SampleClass::Delta && sample.lead().is_none());
        for key in unanswered {
            self.remove(key);
        }
        if let Some(newest) = self.pipeline.newest(SampleClass::Delta) {
            let next = newest.saturating_add(1);
            self.pipeline.skip_to(SampleClass::Delta, next);
        }
    }

    fn drop_before(&mut self, class: SampleClass, sequence: u64) {
        let old = self
            .assembler
            .keys(|key, _| ((class, 0)..(class, sequence)).contains(&key));
        for key in old {
            self.remove(key);
        }
    }
}
