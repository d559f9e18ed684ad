//! The segments of one rung's samples: requested, received, verified, repaired, until their samples are whole.
//!
//! ```text
//!              wanted                              what is here, requested, missing
//!  Schedule ─────────▶ Retrieval ──────────────▶ Assembler ──complete──▶ Playback
//!     ▲                 │   ▲  │                    ▲
//!     │        requests │   │  │ what came, and when│
//!     └─ published ─────┘   │  └──▶ Recovery: what is lost, what to do about it
//!                         Data
//! ```

mod arrival;
mod repairs;
mod requests;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use core::time::Duration;

use namecast_packet::Data;
use namecast_units::Instant;

use crate::names::SegmentId;
use crate::path::{ClientId, Request};
use crate::rate::{Loss, Lost, PathEvent};

use super::assembler::{Asked, Assembler, Assembly};
use super::order::{SampleKey, Samples};
use super::outbox::Outbox;
use super::playback::Playback;
use super::repair::{Recovery, Times};
use super::schedule::{News, Schedule};
use super::{Config, Counters, Delivery, SharedVerifier, Sizes, Source};

/// Requests, receives and repairs the samples of one rung.
pub(super) struct Retrieval {
    source: Source,
    /// By which the uplink knows it.
    client: ClientId,
    /// Whose signature counts.
    verifier: Option<SharedVerifier>,
    max_segments: usize,
    assembler: Assembler,
    recovery: Recovery,
    outputs: Outbox,
    /// What playback has to know of, in order.
    setbacks: VecDeque<Setback>,
    counters: Counters,
}

/// What came of samples, and is for playback to act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setback {
    /// This sample cannot be completed.
    GivenUp(SampleKey),
    /// The group that playback starts with is too long to catch up with: it starts with this key sample.
    PlaysFrom(u64),
}

/// A segment as it came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment<'a> {
    pub id: SegmentId,
    pub data: &'a Data,
    pub delivery: Delivery,
}

/// A segment that answers an Interest of ours.
#[derive(Clone, Copy, Debug)]
struct Answer<'a> {
    id: SegmentId,
    asked: Asked,
    data: &'a Data,
}

impl<'a> Answer<'a> {
    /// The lead segment of sample `key`, whose Interest measures nothing.
    fn unmeasured(now: Instant, key: SampleKey, data: &'a Data) -> Self {
        Self {
            id: SegmentId::lead(key.0, key.1),
            asked: Asked::unmeasured(now),
            data,
        }
    }

    const fn key(&self) -> SampleKey {
        (self.id.class, self.id.sequence)
    }
}

impl Retrieval {
    /// Nothing under way.
    pub(super) fn new(config: &Config, source: Source, client: ClientId) -> Self {
        let recovery = Recovery::new(config, &source);
        let segments = source.estimators(config.max_segments);
        Self {
            client,
            verifier: None,
            max_segments: config.max_segments as usize,
            assembler: Assembler::new(config, recovery.profile().policy(), segments),
            recovery,
            outputs: Outbox::default(),
            setbacks: VecDeque::new(),
            counters: Counters::default(),
            source,
        }
    }

    /// Drops everything in hand.
    pub(super) fn clear(&mut self) {
        self.assembler.clear();
        self.recovery.restart();
        self.outputs
            .request(Request::Withdraw(self.client.tokens()));
    }

    /// Takes over what `other`, of another rung of the stream, knows of losses.
    pub(super) fn learn_from(&mut self, other: &Self) {
        self.recovery.learn_from(&other.recovery);
    }

    /// Returns the rung that is pulled.
    pub(super) const fn source(&self) -> &Source {
        &self.source
    }

    /// Returns by which the uplink knows it.
    pub(super) const fn client(&self) -> ClientId {
        self.client
    }

    /// Returns what was counted.
    pub(super) const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns the sizes of the tables.
    pub(super) fn sizes(&self) -> Sizes {
        self.assembler.sizes()
    }

    /// Returns the samples under way.
    pub(super) const fn samples(&self) -> &Samples {
        self.assembler.samples()
    }

    /// Returns what is known of losses.
    pub(super) const fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// Returns the time from an Interest to the one that hedges it; zero while losses warrant none.
    pub(super) fn hedging(&self) -> Duration {
        self.recovery.hedge_delay().unwrap_or_default()
    }

    /// Returns whether no other sample may begin before one leaves.
    pub(super) fn is_full(&self) -> bool {
        self.assembler.is_full()
    }

    /// Returns when to look at a sample next, if nothing happens before.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.assembler.next_wake()
    }

    /// Returns the playing time of complete samples, from the one due `now` to the last.
    pub(super) fn buffered_time(&self, now: Instant, schedule: &Schedule) -> Duration {
        let complete = self.samples().values().filter(|it| it.complete.is_some());
        let last = complete
            .filter_map(|sample| Some(sample.lead()?.header().published_at()))
            .max();
        last.map_or(Duration::ZERO, |published_at| {
            let shown_at = schedule.timeline().render_at(now, published_at);
            shown_at.since(now)
        })
    }

    /// Returns the Interests that are out for samples at `position` and after it.
    pub(super) fn outstanding_from(&self, position: u64, schedule: &Schedule) -> usize {
        let position_of = |key| schedule.timeline().position(key);
        let is_later = |key| position_of(key).is_some_and(|at| at >= position);
        let later = self.samples().iter().filter(|(key, _)| is_later(**key));
        later.map(|(_, sample)| sample.outstanding()).sum()
    }

    /// Returns what is to be done, and what became of packets.
    pub(super) const fn outbox(&mut self) -> &mut Outbox {
        &mut self.outputs
    }

    /// Returns the next thing that is for playback to act on, until `None`.
    pub(super) fn poll_setback(&mut self) -> Option<Setback> {
        self.setbacks.pop_front()
    }

    /// Returns what is known of the time of a sample.
    fn times(&self, now: Instant, key: SampleKey, schedule: &Schedule) -> Times {
        schedule.times(now, key, &self.assembler)
    }

    /// Looks at every sample that is not whole at once: its time has moved.
    pub(super) fn wake_incomplete(&mut self, now: Instant) {
        self.assembler.wake_incomplete(now);
    }

    /// Looks at a sample again when what is missing of it should be requested.
    fn wake_for_check(&mut self, now: Instant, key: SampleKey, schedule: &Schedule) {
        let (moment, times) = (schedule.moment(now), self.times(now, key, schedule));
        let at = self.recovery.check_at(&moment, &times);
        self.assembler.wake_by(key, at.max(now));
    }

    /// Marks samples that are known to exist, and those that were overtaken.
    pub(super) fn on_news(&mut self, now: Instant, news: News, schedule: &Schedule) {
        self.counters.refused_jumps += news.refused;
        for (class, numbers) in news.newer {
            self.assembler.forget_attempts(class, numbers);
        }
        let look_at = now + self.recovery.reordering(&schedule.moment(now));
        for (class, numbers) in news.overtaken {
            self.assembler.mark_overtaken(now, class, numbers, look_at);
        }
        self.setbacks
            .extend(news.plays_from.map(Setback::PlaysFrom));
    }

    /// Records that a sample cannot be completed.
    fn mark_given_up(&mut self, key: SampleKey) {
        self.counters.given_up += u64::from(self.assembler.give_up(key));
    }

    /// A sample was requested too often. If playback waits for it, the rest of its group is of no use.
    fn give_up(&mut self, key: SampleKey) {
        self.mark_given_up(key);
        if !self.source.is_standalone() {
            self.setbacks.push_back(Setback::GivenUp(key));
        }
    }

    /// Drops a sample and whatever is out for it.
    pub(super) fn remove(&mut self, key: SampleKey, schedule: &mut Schedule) -> Option<Assembly> {
        let (sample, was_requested) = self.assembler.remove(key)?;
        schedule.on_gone(key);
        if was_requested {
            let tokens = self.client.sample(key.0, key.1);
            self.outputs.request(Request::Withdraw(tokens));
        }
        Some(sample)
    }

    /// Drops the samples of which `is_one` holds. Returns them.
    pub(super) fn remove_all(
        &mut self,
        schedule: &mut Schedule,
        is_one: impl Fn(SampleKey, &Assembly, &Schedule) -> bool,
    ) -> Vec<SampleKey> {
        let all = self
            .assembler
            .keys(|key, sample| is_one(key, sample, schedule));
        for key in &all {
            self.remove(*key, schedule);
        }
        all
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

    /// Reports a loss to whoever estimates bandwidth, once for each transmission.
    fn report_loss(&mut self, id: SegmentId, kind: Loss) {
        if let Some(asked_at) = self.assembler.lose(id) {
            self.outputs.note(PathEvent::Lost(Lost {
                asked_at,
                kind,
                repeated: false,
            }));
        }
    }
}
