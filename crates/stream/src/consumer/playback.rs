//! Which sample leaves next, when, and which ones are passed over because they do not come.
//!
//! ```text
//!              next is complete, and it is time               a later key sample is due, and the next
//!            ┌──────────────────────────────────┐             one is late by more than the tolerance
//!  Samples ──┤                                  ├─▶ Deliver
//!  Timeline ─┤ next is not complete             ├─▶ Skip ◀────┘
//!  Order ────┤                                  │
//!            └ its group was shown before ──────┴─▶ PassGroup
//! ```
//!
//! Playback decides and remembers what left; the consumer drops what it passes over.

use core::time::Duration;

use namecast_units::{Instant, Timestamp};

use crate::names::SampleClass;
use crate::sample::{MAX_REORDERED, SampleHeader};

use super::Config;
use super::assembler::Assembly;
use super::order::{Next, Order, SampleKey, Samples};
use super::timeline::{CLOCK_WAS_SET, Timeline};
use super::types::{ReadyKey, Sample, Shown, Source};

/// What was shown before a start comes again no later than this after it: by then all caches and publishers are past it.
const REMEMBERED: Duration = Duration::from_secs(30);

/// What there is to play, and by which times.
#[derive(Clone, Copy)]
pub(super) struct Buffer<'a> {
    pub samples: &'a Samples,
    pub timeline: &'a Timeline,
    /// What there is may be older than need be, so that nothing leaves for now.
    pub is_held: bool,
}

/// What playback does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// This sample leaves.
    Deliver(SampleKey),
    /// This key sample was shown before, and some of what follows it: playback goes on with the group after it.
    PassGroup(u64),
    /// Playback goes on with this complete key sample instead of waiting.
    Skip(u64),
}

/// Where playback is.
#[derive(Clone, Debug)]
pub(super) struct Playback {
    order: Order,
    is_standalone: bool,
    is_newest: bool,
    /// Positions from one sample to the next.
    every: u64,
    period: Duration,
    /// How long after its time a sample is still waited for.
    tolerance: Duration,
    max_jump: u64,
    /// Whether what leaves is only needed to catch up with the live edge after a start.
    catching_up: bool,
    /// Whether nothing leaves for now.
    is_held: bool,
    /// Samples from this key sample of another rung on are left to that one.
    stop_before: Option<ReadyKey>,
    /// The latest presentation time of what left.
    presented_at: Option<Timestamp>,
    /// Largest composition offset of the rung.
    reorder_delay: Duration,
    /// What was shown before the start: nothing up to it leaves.
    shown: Option<Shown>,
    /// Until then that holds; clocks that jump must not stop the stream.
    shown_until: Instant,
}

impl Playback {
    /// Playback of `source` that has not started.
    pub(super) fn new(config: &Config, source: &Source) -> Self {
        let is_standalone = source.is_standalone();
        Self {
            order: Order::new(is_standalone, 0),
            is_standalone,
            is_newest: source.is_newest,
            every: u64::from(source.every),
            period: source.rate.period(),
            tolerance: config.tolerance(is_standalone),
            max_jump: config.max_jump,
            catching_up: true,
            is_held: false,
            stop_before: None,
            presented_at: None,
            reorder_delay: source.reorder_delay,
            shown: None,
            shown_until: Instant::ZERO,
        }
    }

    /// Starts, or starts again, with key sample `first`.
    pub(super) fn start(&mut self, now: Instant, first: u64) {
        self.restart_order(first);
        self.catching_up = true;
        self.shown_until = now + REMEMBERED;
    }

    /// Makes key sample `first` the first one, whatever left before.
    pub(super) const fn restart_order(&mut self, first: u64) {
        self.order = Order::new(self.is_standalone, first);
    }

    /// Returns the order of samples.
    pub(super) const fn order(&self) -> &Order {
        &self.order
    }

    /// Returns the latest presentation time of what left.
    pub(super) const fn presented_at(&self) -> Option<Timestamp> {
        self.presented_at
    }

    /// Returns whether samples only serve to catch up with the live edge.
    pub(super) const fn is_catching_up(&self) -> bool {
        self.catching_up
    }

    /// Returns whether nothing leaves because somebody said so.
    pub(super) const fn is_held(&self) -> bool {
        self.is_held
    }

    /// Sets whether nothing leaves for now.
    pub(super) const fn set_held(&mut self, is_held: bool) {
        self.is_held = is_held;
    }

    /// Leaves samples from `key` on to the rung that it is of.
    pub(super) const fn set_stop_before(&mut self, key: Option<ReadyKey>) {
        self.stop_before = key;
    }

    /// Sets what was shown before.
    pub(super) const fn set_shown(&mut self, shown: Option<Shown>) {
        self.shown = shown;
    }

    /// Makes key sample `sequence`, or the next one after it, the next to leave.
    pub(super) const fn skip_to(&mut self, sequence: u64) {
        self.order.skip_to(sequence);
    }

    /// Returns whether the sample of `header` was shown before the start.
    pub(super) fn was_shown(&self, now: Instant, header: &SampleHeader) -> bool {
        let shown = self.shown.filter(|_| now < self.shown_until);
        shown.is_some_and(|shown| shown.covers(header))
    }

    /// Returns whether playback can go on with nothing but sample `key`.
    pub(super) fn waits_for(&self, (class, sequence): SampleKey) -> bool {
        let needs_key = self.order.needs_key();
        match class {
            SampleClass::Key => needs_key && sequence == self.order.first_key(),
            SampleClass::Delta => {
                let next = self.order.last().map(|last| last.next_delta);
                !needs_key && next == Some(sequence)
            }
        }
    }

    /// Returns what to do now, if anything.
    pub(super) fn step(&self, now: Instant, buffer: &Buffer<'_>) -> Option<Step> {
        if self.is_held || buffer.is_held {
            return None;
        }
        let Next::Ready(key) = self.order.next(buffer.samples) else {
            return self.skip(now, buffer);
        };
        let header = buffer.header_of(key)?;
        if key.0 == SampleClass::Key && self.was_shown(now, header) {
            return Some(Step::PassGroup(key.1));
        }
        let at = buffer.timeline.leaves_at(now, header.published_at());
        let is_due = self.is_newest || at <= now || buffer.is_of_another_clock(now, at);
        (is_due && !self.is_beyond(header)).then_some(Step::Deliver(key))
    }

    /// Takes a complete sample whose turn it is. Returns it as it leaves, and how many positions before it never left.
    pub(super) fn deliver(
        &mut self,
        now: Instant,
        timeline: &Timeline,
        sample: Assembly,
    ) -> Option<(Sample, u64)> {
        let header = sample.lead()?.header().clone();
        let key = (sample.class, sample.sequence);
        let (complete, lead_at) = sample.complete.zip(sample.lead_at)?;
        let step = self
            .order
            .last()
            .map_or(0, |last| header.position.saturating_sub(last.position));
        let step = step / self.every;
        let lost = if step <= self.max_jump {
            step.saturating_sub(1)
        } else {
            0
        };
        // From here on the order sees to it.
        self.shown = None;
        let presented_at = header.presented_at();
        // A picture may be shown before one that left earlier; whatever is earlier than that is of a clock that was set back.
        let latest = self
            .presented_at
            .filter(|at| at.since(presented_at) <= self.reorder_delay);
        self.presented_at = latest.max(Some(presented_at));
        self.order.advance(key, &header);
        self.catching_up &= complete.late;
        let leaves_at = timeline.leaves_at(now, header.published_at());
        let decoded_at = match is_of_another_clock(now, leaves_at, timeline) {
            true => now,
            false => timeline.render_at(now, header.published_at()),
        };
        let sample = Sample {
            key: key.0 == SampleClass::Key,
            sequence: key.1,
            payload: complete.payload,
            lead_at,
            complete_at: complete.at,
            render_at: decoded_at + header.composition_offset,
            late: complete.late,
            catching_up: self.catching_up,
            header,
        };
        Some((sample, lost))
    }

    /// Returns when there is something to do, if nothing arrives.
    pub(super) fn poll_timeout(&self, buffer: &Buffer<'_>) -> Option<Instant> {
        if self.is_held || buffer.is_held {
            return None;
        }
        // Without a base, samples leave at once; with one, `now` does not matter.
        let now = Instant::ZERO;
        match self.order.next(buffer.samples) {
            Next::Ready(key) => {
                let header = buffer
                    .header_of(key)
                    .filter(|header| !self.is_beyond(header))?;
                Some(buffer.timeline.leaves_at(now, header.published_at()))
            }
            Next::Incomplete(_) | Next::Unknown => {
                let (_, leaves_at) = self.candidate(now, buffer)?;
                let until = self.waits_until(now, buffer);
                Some(until.map_or(leaves_at, |until| until.max(leaves_at)))
            }
        }
    }

    /// Returns whether another rung has the sample. Near its key sample the time of presentation tells where a rung reorders: in
    /// an open group the same picture has another position there.
    fn is_beyond(&self, header: &SampleHeader) -> bool {
        self.stop_before.is_some_and(|stop| {
            let reorders = self.reorder_delay.max(stop.reorder_delay) > Duration::ZERO;
            let is_near = header.position.abs_diff(stop.position) <= MAX_REORDERED;
            match reorders && is_near {
                true => header.presented_at() + self.period / 2 >= stop.presented_at,
                false => header.position >= stop.position,
            }
        })
    }

    fn skip(&self, now: Instant, buffer: &Buffer<'_>) -> Option<Step> {
        let (sequence, leaves_at) = self.candidate(now, buffer)?;
        let waits = leaves_at > now
            || self
                .waits_until(now, buffer)
                .is_some_and(|until| now < until);
        (self.is_newest || !waits).then_some(Step::Skip(sequence))
    }

    /// Returns the key sample to go on with instead of waiting, and when it leaves.
    fn candidate(&self, now: Instant, buffer: &Buffer<'_>) -> Option<(u64, Instant)> {
        let leaves_at = |sample: &Assembly| {
            let header = sample.lead()?.header();
            let at = buffer.timeline.leaves_at(now, header.published_at());
            (!self.is_beyond(header)).then_some((sample.sequence, at))
        };
        let mut candidates = self.order.candidates(buffer.samples).filter_map(leaves_at);
        let first = candidates.next()?;
        // Where every sample stands alone, the next one loses least; else the latest that is due saves most.
        let last_due = candidates.rfind(|(_, at)| *at <= now);
        match last_due {
            Some(last) if !self.is_standalone => Some(last),
            _ => Some(first),
        }
    }

    /// Returns until when a sample that is not complete holds up the others; `None`: it holds up nobody.
    fn waits_until(&self, now: Instant, buffer: &Buffer<'_>) -> Option<Instant> {
        let awaited = match self.order.next(buffer.samples) {
            Next::Ready(key) | Next::Incomplete(key) => Some(key),
            Next::Unknown => None,
        };
        let sample = awaited.and_then(|key| buffer.samples.get(&key));
        if sample.is_some_and(|sample| sample.given_up) {
            return None;
        }
        let own = awaited.and_then(|key| buffer.header_of(key));
        let published_at = match (own, self.order.last()) {
            (Some(header), _) => header.published_at(),
            (None, Some(last)) if !self.order.needs_key() => last.published_at + self.period,
            // Nothing was shown yet, so nothing is held up.
            _ => return None,
        };
        Some(buffer.timeline.render_at(now, published_at) + self.tolerance)
    }
}

impl<'a> Buffer<'a> {
    fn header_of(&self, key: SampleKey) -> Option<&'a SampleHeader> {
        Some(self.samples.get(&key)?.lead()?.header())
    }

    fn is_of_another_clock(&self, now: Instant, leaves_at: Instant) -> bool {
        is_of_another_clock(now, leaves_at, self.timeline)
    }
}

/// Returns whether what would leave then was published by the clock before it was set: its time is now.
fn is_of_another_clock(now: Instant, leaves_at: Instant, timeline: &Timeline) -> bool {
    leaves_at.since(now) > CLOCK_WAS_SET + timeline.target()
}
