//! Moves on with what is known to be published: leads say so, and what the publisher says of its newest samples.
//!
//! ```text
//!   lead of delta 41: 41, and key 7 that it needs ──┐                    ┌─▶ those before it were overtaken
//!   lead of key 8: 8, and the delta before it ──────┼──▶ Pipeline::on_published
//!   metadata: the newest of both ───────────────────┘                    └─▶ too many to catch up with: passed over
//! ```

use core::ops::RangeInclusive;
use core::time::Duration;

use namecast_units::Instant;

use crate::metadata::Latest;
use crate::names::SampleClass;
use crate::sample::SampleHeader;

use super::order::SampleKey;
use super::pipeline::Advance;
use super::{Consumer, LineUp};

impl Consumer {
    /// Compares what the publisher says of its newest samples, and requests what is new. `starved`: nothing comes.
    pub fn line_up(&mut self, now: Instant, latest: &Latest, starved: bool) -> LineUp {
        let (Some(key), Some(known)) =
            (latest.key_sequence, self.pipeline.newest(SampleClass::Key))
        else {
            return LineUp::OutOfLine;
        };
        let lower = key < known && (starved || self.timeline.is_news(latest));
        if lower
            || key.saturating_sub(known) > self.config.max_jump
            || self.synchroniser.waits_for_start()
        {
            return LineUp::OutOfLine;
        }
        if self.synchroniser.lead().is_some() {
            // What is newest shows in the gaps between arrivals.
            return LineUp::Missed(Duration::ZERO);
        }
        let missed_deltas = |newest| self.pipeline.missed(SampleClass::Delta, newest);
        let missed = self.pipeline.missed(SampleClass::Key, key)
            + latest.delta_sequence.map_or(0, missed_deltas);
        self.timeline.on_news(latest.served_at);
        // Only a later key sample than the one in hand allows to leave samples out.
        let has_later_key = key > self.playback.order().first_key();
        self.on_published(now, SampleClass::Key, key);
        if let Some(delta) = latest.delta_sequence {
            self.on_published(now, SampleClass::Delta, delta);
        }
        let missed = if has_later_key { missed } else { 0 };
        let missed = u32::try_from(missed).unwrap_or(u32::MAX);
        LineUp::Missed(self.source.rate.period().saturating_mul(missed))
    }

    /// Continues after [`line_up`](Self::line_up) with all that was missed.
    pub fn catch_up(&mut self, now: Instant) {
        self.settle(now);
    }

    /// Moves the pipeline on: `key` is published, and so is what it refers to.
    pub(super) fn note_published(&mut self, now: Instant, key: SampleKey, header: &SampleHeader) {
        let (class, sequence) = key;
        let other = header.other_sequence;
        if self.pipeline.newest(class).is_none_or(|n| sequence > n) {
            self.pipeline.on_arrival(now, class, sequence);
        }
        self.on_published(now, class, sequence);
        match class {
            SampleClass::Key if !self.source.is_standalone() => {
                self.on_key_published(now, sequence, other);
            }
            SampleClass::Key => {}
            SampleClass::Delta => {
                self.on_published(now, SampleClass::Key, other);
                self.mark_overtaken(now, SampleClass::Key, other..=other);
            }
        }
    }

    /// Key sample `sequence` is published, and `next` is the delta sample after it.
    fn on_key_published(&mut self, now: Instant, sequence: u64, next: u64) {
        let before = next.saturating_sub(1);
        if !self.pipeline.has_started(SampleClass::Delta) {
            self.pipeline.start(now, SampleClass::Delta, next, before);
        }
        if self.pipeline.take_start(sequence) {
            self.catch_up_from(sequence, next);
        }
        self.on_published(now, SampleClass::Delta, before);
        self.mark_overtaken(now, SampleClass::Delta, before..=before);
    }

    /// Requests the delta samples between the key sample playback starts with and the live edge.
    pub(super) fn catch_up_from(&mut self, key: u64, next: u64) {
        if !self.pipeline.catch_up_from(next) {
            // Too long a group to catch up with: its successor comes sooner.
            self.playback.skip_to(key.saturating_add(1));
        }
    }

    /// Sample `sequence` of `class` is published, by whatever says so.
    pub(super) fn on_published(&mut self, now: Instant, class: SampleClass, sequence: u64) {
        let target = self.timeline.target();
        match self.pipeline.on_published(now, class, sequence, target) {
            Advance::Overtakes(range) if !range.is_empty() => {
                let newer = range.start.saturating_add(1)..=range.end;
                self.assembler.forget_attempts(class, newer);
                self.mark_overtaken(now, class, range.start..=range.end - 1);
            }
            Advance::Refused => self.counters.refused_jumps += 1,
            Advance::Overtakes(_) | Advance::Known => {}
        }
    }

    fn mark_overtaken(&mut self, now: Instant, class: SampleClass, numbers: RangeInclusive<u64>) {
        let look_at = now + self.recovery.reordering(&self.moment(now));
        self.assembler.mark_overtaken(now, class, numbers, look_at);
    }
}
