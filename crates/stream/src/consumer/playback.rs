//! Hands samples out when their time comes, and passes over those that do not come.

use core::time::Duration;

use namecast_units::Instant;

use crate::names::SampleClass;

use super::assembly::Assembly;
use super::order::{Next, SampleKey};
use super::timeline::CLOCK_WAS_SET;
use super::{Consumer, Output, Sample};

impl Consumer {
    /// Whether the sample of `header` was shown before the start.
    pub(super) fn was_shown(&self, now: Instant, header: &crate::sample::SampleHeader) -> bool {
        let shown = self.shown.filter(|_| now < self.shown_until);
        shown.is_some_and(|shown| shown.covers(header))
    }

    /// Whether nothing is handed out for now.
    const fn is_held(&self) -> bool {
        self.held || self.synchroniser.holds_playback()
    }

    /// Hands out every sample whose turn and time it is. Each step takes one sample away, so the loop ends.
    pub(super) fn hand_out(&mut self, now: Instant) {
        while !self.is_held() {
            match self.order.next(&self.samples) {
                Next::Ready(key) => {
                    if !self.hand_out_one(now, key) {
                        return;
                    }
                }
                Next::Incomplete(_) | Next::Unknown => {
                    if !self.skip_if_due(now) {
                        return;
                    }
                }
            }
        }
    }

    fn hand_out_one(&mut self, now: Instant, key: SampleKey) -> bool {
        let Some(header) = self.header_of(key).cloned() else {
            return false;
        };
        if key.0 == SampleClass::Key && self.was_shown(now, &header) {
            // Of the rest of its group, some was shown as well: the next group is whole.
            self.skip_group_before(key.1.saturating_add(1));
            return true;
        }
        let beyond = self.stop_before.is_some_and(|stop| header.position >= stop);
        let at = self.timeline.leaves_at(now, header.published_at());
        // Published by the clock before it was set: its time is now.
        let is_of_another_clock = at.since(now) > CLOCK_WAS_SET + self.timeline.target();
        if beyond || at > now && !is_of_another_clock {
            return false;
        }
        let Some(sample) = self.remove(key) else {
            return false;
        };
        let Some((complete, lead_at)) = sample.complete.zip(sample.lead_at) else {
            return false;
        };
        if let Some(last) = self.order.last() {
            let step = header.position.saturating_sub(last.position);
            if step <= self.config.most_jump {
                self.counters.lost += step.saturating_sub(1);
            }
        }
        // From here on the order sees to it.
        self.shown = None;
        self.order.advance(key, &header);
        let render_at = match is_of_another_clock {
            true => now,
            false => self.timeline.render_at(now, header.published_at()),
        };
        self.catching_up &= complete.late;
        self.counters.handed_out += 1;
        self.outputs.push_back(Output::Sample(Sample {
            key: key.0 == SampleClass::Key,
            payload: complete.payload,
            lead_at,
            complete_at: complete.at,
            render_at,
            late: complete.late,
            catching_up: self.catching_up,
            header,
        }));
        true
    }

    /// Until when a sample that is not complete holds up the others; `None`: it holds up nobody.
    fn patience(&self, now: Instant) -> Option<Instant> {
        let next = self.order.next(&self.samples);
        let awaited = match next {
            Next::Ready(key) | Next::Incomplete(key) => Some(key),
            Next::Unknown => None,
        };
        let given_up = awaited
            .and_then(|key| self.samples.get(&key))
            .is_some_and(|sample| sample.given_up);
        if given_up {
            return None;
        }
        let period = self.source.rate.period();
        let own = awaited.and_then(|key| self.header_of(key));
        let published_at = match (own, self.order.last()) {
            (Some(header), _) => header.published_at(),
            (None, Some(last)) if !self.order.needs_key() => last.published_at + period,
            // Nothing was shown yet, so nothing is held up.
            _ => return None,
        };
        Some(self.timeline.render_at(now, published_at) + self.late_tolerance())
    }

    /// How long after its time a sample is still waited for.
    pub(super) const fn late_tolerance(&self) -> Duration {
        match self.source.is_standalone() {
            true => self.config.late_tolerance_standalone,
            false => self.config.late_tolerance,
        }
    }

    /// The key sample to go on with instead of waiting, and when it leaves.
    fn candidate(&self, now: Instant) -> Option<(u64, Instant)> {
        let leaves_at = |sample: &Assembly| {
            let header = sample.lead()?.header();
            let beyond = self.stop_before.is_some_and(|stop| header.position >= stop);
            (!beyond).then(|| {
                (
                    sample.sequence,
                    self.timeline.leaves_at(now, header.published_at()),
                )
            })
        };
        let mut candidates = self.order.candidates(&self.samples).filter_map(leaves_at);
        let first = candidates.next()?;
        // Where every sample stands alone, the next one loses least; else the latest that is due saves most.
        let last_due = candidates.filter(|(_, at)| *at <= now).last();
        match last_due {
            Some(last) if !self.source.is_standalone() => Some(last),
            _ => Some(first),
        }
    }

    fn skip_if_due(&mut self, now: Instant) -> bool {
        let Some((sequence, leaves_at)) = self.candidate(now) else {
            return false;
        };
        if leaves_at > now || self.patience(now).is_some_and(|until| now < until) {
            return false;
        }
        self.counters.skips += 1;
        self.go_on_with(sequence);
        true
    }

    /// When [`skip_if_due`](Self::skip_if_due) or the next sample's time comes.
    pub(super) fn playback_timeout(&self) -> Option<Instant> {
        if self.is_held() {
            return None;
        }
        // Without a base, samples leave at once; with one, `now` does not matter.
        let now = Instant::ZERO;
        match self.order.next(&self.samples) {
            Next::Ready(key) => {
                let header = self.header_of(key)?;
                let beyond = self.stop_before.is_some_and(|stop| header.position >= stop);
                (!beyond).then(|| self.timeline.leaves_at(now, header.published_at()))
            }
            Next::Incomplete(_) | Next::Unknown => {
                let (_, leaves_at) = self.candidate(now)?;
                let patience = self.patience(now);
                Some(patience.map_or(leaves_at, |until| until.max(leaves_at)))
            }
        }
    }

    /// Makes the complete key sample `sequence` the next one, and drops all that comes before it.
    pub(super) fn go_on_with(&mut self, sequence: u64) {
        let key = (SampleClass::Key, sequence);
        let Some(header) = self.header_of(key).cloned() else {
            return;
        };
        if self.order.last().is_some() && !self.source.is_standalone() {
            self.outputs.push_back(Output::Discontinuity);
        }
        self.start_key = None;
        self.order.skip_to(sequence);
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
        self.outputs.push_back(Output::Discontinuity);
        if !self.source.is_standalone() {
            self.skip_group_before(self.order.first_key().saturating_add(1));
        }
    }

    /// Drops every group before that of key sample `next`, which becomes the next one.
    pub(super) fn skip_group_before(&mut self, next: u64) {
        self.order.skip_to(next);
        self.start_key = None;
        self.pipeline.skip_to(SampleClass::Key, next);
        self.drop_before(SampleClass::Key, next);
        let is_useless = |sample: &Assembly| {
            sample
                .lead()
                .is_some_and(|lead| lead.header().other_sequence < next)
        };
        let useless: Vec<_> = self
            .samples
            .iter()
            .filter(|((class, _), sample)| *class == SampleClass::Delta && is_useless(sample))
            .map(|(key, _)| *key)
            .collect();
        self.counters.drop_undecodable += useless.len() as u64;
        for key in useless {
            self.remove(key);
        }
    }

    /// Takes note that a sample cannot be completed.
    pub(super) fn mark_given_up(&mut self, key: SampleKey) {
        if let Some(sample) = self.samples.get_mut(&key) {
            let is_news = !core::mem::replace(&mut sample.given_up, true);
            self.counters.given_up += u64::from(is_news);
        }
    }

    /// A sample was asked for too often. If playback waits for it, the rest of its group is of no use.
    pub(super) fn give_up(&mut self, key: SampleKey) {
        self.mark_given_up(key);
        if self.source.is_standalone() {
            return;
        }
        let (class, sequence) = key;
        let is_awaited = match class {
            SampleClass::Key => sequence == self.order.first_key() && self.order.needs_key(),
            SampleClass::Delta => {
                let next = self.order.last().map(|last| last.next_delta);
                !self.order.needs_key() && next == Some(sequence)
            }
        };
        if is_awaited {
            self.abandon_group();
        }
    }

    /// The tables are full and playback does not move: the group in hand is dropped, so that later ones have room, and so
    /// is what may not exist.
    pub(super) fn make_room(&mut self) {
        if !self.is_stuck() {
            return;
        }
        if !self.order.needs_key() {
            self.abandon_group();
        }
        if self.is_stuck() {
            self.drop_unanswered_deltas();
        }
        // A key sample that does not exist yet cannot be passed over.
        let newest = self.pipeline.newest(SampleClass::Key);
        if self.is_stuck() && newest.is_some_and(|newest| self.order.first_key() <= newest) {
            self.abandon_group();
        }
    }

    fn is_stuck(&self) -> bool {
        let is_full = self.samples.len() >= self.config.most_samples
            || self.buffered >= self.config.most_buffered;
        let waits = || {
            !matches!(self.order.next(&self.samples), Next::Ready(_))
                || self.synchroniser.holds_playback()
        };
        is_full && !self.held && !self.source.is_standalone() && waits()
    }

    /// Drops delta samples of which no lead came, and goes on at the live edge.
    fn drop_unanswered_deltas(&mut self) {
        let unanswered: Vec<_> = self
            .samples
            .iter()
            .filter(|((class, _), sample)| *class == SampleClass::Delta && sample.lead().is_none())
            .map(|(key, _)| *key)
            .collect();
        for key in unanswered {
            self.remove(key);
        }
        if let Some(newest) = self.pipeline.newest(SampleClass::Delta) {
            let next = newest.saturating_add(1);
            self.pipeline.skip_to(SampleClass::Delta, next);
        }
    }

    fn drop_before(&mut self, class: SampleClass, sequence: u64) {
        let old: Vec<_> = self
            .samples
            .range((class, 0)..(class, sequence))
            .map(|(key, _)| *key)
            .collect();
        for key in old {
            self.remove(key);
        }
    }

    fn header_of(&self, key: SampleKey) -> Option<&crate::sample::SampleHeader> {
        Some(self.samples.get(&key)?.lead()?.header())
    }
}
