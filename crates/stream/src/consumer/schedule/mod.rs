//! Which sample to request, and when: before it exists, so that its Interest is at the producer when it is published.
//!
//! ```text
//!  Timeline: when a sample is published, could be here, is shown ──┐
//!  Synchroniser: how far ahead ────────────────────────────────────┼──▶ next sample to request, and when
//!  Pipeline: which are published, which were requested ────────────┤
//!  Handover: what other rungs request ─────────────────────────────┘
//! ```

mod published;
mod requests;
#[cfg(test)]
mod tests;

use core::ops::RangeInclusive;
use core::time::Duration;

use namecast_units::{Instant, Timestamp};

use crate::metadata::Latest;
use crate::names::SampleClass;
use crate::path::{PathOutlook, PathView};
use crate::sample::SampleHeader;

use super::Config;
use super::assembler::Assembler;
use super::handover::Handover;
use super::order::SampleKey;
use super::pipeline::{Pipeline, PipelineLimits};
use super::playout::Playout;
use super::repair::{Moment, Times};
use super::synchroniser::{State, Synchroniser};
use super::timeline::Timeline;
use super::types::{Source, StartAt};

pub(super) use published::News;

/// When the samples of one rung are published, and which of them to request when.
#[derive(Clone, Debug)]
pub struct Schedule {
    period: Duration,
    key_interval: u32,
    lifetime: RangeInclusive<Duration>,
    tolerance: Duration,
    max_jump: u64,
    /// Old samples that the first start requests, in time.
    staleness: Duration,
    initial_lead: Option<u64>,
    /// What the path is like.
    path: PathView,
    timeline: Timeline,
    pipeline: Pipeline,
    synchroniser: Synchroniser,
    handover: Handover,
}

/// Where a rung starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::consumer) struct Start {
    /// The first key sample that is requested.
    pub first: u64,
    /// The key sample that playback starts with: a later one if there is no room to catch up with the first one's group.
    pub plays_from: u64,
}

/// A group to start with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::consumer) struct GroupAt {
    pub at: StartAt,
    pub position: u64,
    pub published_at: Timestamp,
    /// When its key sample could be here at the earliest.
    pub soonest: Instant,
}

impl Schedule {
    pub(in crate::consumer) fn new(config: &Config, source: &Source) -> Self {
        let period = source.rate.period();
        let limits = PipelineLimits {
            lead: config.max_lead,
            jump: config.max_jump,
            catch_up: config.max_samples as u64 / 2,
        };
        let has_deltas = !source.is_standalone();
        Self {
            period,
            key_interval: source.key_interval.max(1),
            lifetime: config.lifetime.clone(),
            tolerance: config.tolerance(source.is_standalone()),
            max_jump: config.max_jump,
            staleness: config.synchroniser.staleness,
            initial_lead: config.synchroniser.initial_lead,
            path: PathView::new(config.delay),
            // Positions count all samples.
            timeline: Timeline::new(
                source.rung_period(),
                source.key_interval.saturating_mul(source.every),
            ),
            pipeline: Pipeline::new(period, source.key_interval, limits),
            synchroniser: Synchroniser::new(
                &config.synchroniser,
                period,
                has_deltas,
                config.max_lead,
            ),
            handover: Handover::default(),
        }
    }

    /// Starts, or starts again, from what `latest` says. Returns where; `None` if nothing is published yet.
    pub(in crate::consumer) fn start(
        &mut self,
        now: Instant,
        source: &Source,
        latest: &Latest,
        at: StartAt,
    ) -> Option<Start> {
        let is_first = self.synchroniser.state() == State::Inactive;
        let age = if is_first {
            self.staleness
        } else {
            Duration::ZERO
        };
        let latest = &source.aged(latest, age);
        let newest = latest.key_sequence?;
        let first = match at {
            StartAt::Key(first) if self.is_standalone() && !self.goes_by_gaps() => first,
            StartAt::NewestKey | StartAt::Key(_) if !self.goes_by_gaps() => newest,
            _ => newest.saturating_add(1),
        };
        let start_key = Some(first).filter(|_| !self.goes_by_gaps());
        self.pipeline.restart(now, start_key);
        self.handover.restart();
        self.timeline.restart(latest.served_at);
        self.synchroniser.start(now, self.path.delay.estimate(now));
        self.pipeline.start(now, SampleClass::Key, first, newest);
        if let Some(delta) = latest.delta_sequence
            && !self.is_standalone()
        {
            let next = delta.saturating_add(1);
            self.pipeline.start(now, SampleClass::Delta, next, delta);
        }
        let next_delta = latest.next_delta.filter(|_| first == newest);
        let later = next_delta.and_then(|next| self.catch_up_from(first, next));
        Some(Start {
            first,
            plays_from: later.unwrap_or(first),
        })
    }

    /// Requests the delta samples between the key sample that playback starts with and the live edge. Returns the key sample
    /// to start with instead if there is no room for them.
    fn catch_up_from(&mut self, key: u64, next: u64) -> Option<u64> {
        // Too long a group to catch up with: its successor comes sooner.
        (!self.pipeline.catch_up_from(next)).then_some(key.saturating_add(1))
    }

    /// Returns the position of the group to start with, by what `latest` says of another numbering.
    pub(in crate::consumer) fn start_position(&self, latest: &Latest, at: StartAt) -> Option<u64> {
        let newest = latest.key_position?;
        match at {
            StartAt::NewestKey | StartAt::Key(_) => Some(newest),
            StartAt::NextKey => newest.checked_add(u64::from(self.key_interval)),
        }
    }

    /// Returns when the group at `position` begins, by the stream's clock.
    pub(in crate::consumer) fn group_at(
        &self,
        now: Instant,
        position: u64,
        at: StartAt,
    ) -> Option<GroupAt> {
        let published_at = self.timeline.time_of(position)?;
        Some(GroupAt {
            at,
            position,
            published_at,
            soonest: self.timeline.earliest(now, published_at),
        })
    }

    /// Sets that `group` begins with key sample `key`, which was started with.
    pub(in crate::consumer) fn seed_group(
        &mut self,
        now: Instant,
        key: u64,
        latest: &Latest,
        group: &GroupAt,
    ) {
        self.timeline.seed(key, group.position, group.published_at);
        let Some(next) = latest.next_delta.filter(|_| !self.is_standalone()) else {
            return;
        };
        // A group has one delta sample less than frames. If it turns out to have more, they are caught up with.
        let skipped = match group.at {
            StartAt::NewestKey | StartAt::Key(_) => 0,
            StartAt::NextKey => u64::from(self.key_interval) - 1,
        };
        let first = next.saturating_add(skipped);
        self.timeline.seed_delta(first, group.position + 1);
        if group.at == StartAt::NextKey {
            let before = first.saturating_sub(1);
            self.pipeline
                .start(group.soonest.max(now), SampleClass::Delta, first, before);
        }
    }

    /// Takes over what `other`, of another rung of the stream, knows of the path.
    pub(in crate::consumer) fn learn_from(&mut self, other: &Self) {
        self.path.learn_from(&other.path);
        self.timeline.learn_from(&other.timeline);
    }

    const fn is_standalone(&self) -> bool {
        self.key_interval <= 1
    }

    /// Returns whether samples are requested by the gaps between arrivals, not by the stream's clock.
    pub(in crate::consumer) fn goes_by_gaps(&self) -> bool {
        self.synchroniser.lead().is_some()
    }

    /// Returns what is known of the path now, and how much time there is.
    pub(in crate::consumer) fn moment(&self, now: Instant) -> Moment {
        let moment = Moment::new(now, &self.path);
        Moment {
            target: self.timeline.target(),
            time_to_leave: self.timeline.time_to_leave(),
            tolerance: self.tolerance,
            is_alive: self.pipeline.is_alive(now, moment.round_trip()),
            is_held: self.synchroniser.holds_playback() || self.handover.allowance().is_some(),
            ..moment
        }
    }

    /// Returns what is known of the time of a sample, of which `samples` shows what has come.
    pub(in crate::consumer) fn times(
        &self,
        now: Instant,
        key: SampleKey,
        samples: &Assembler,
    ) -> Times {
        let published_at = self.published_at(key, samples);
        let has_lead = samples.has_lead(key);
        Times {
            key,
            earliest: published_at.map(|at| self.timeline.earliest(now, at)),
            in_turn: self.pipeline.expected_at(key.0, key.1),
            render_at: published_at.map(|at| self.timeline.render_at(now, at)),
            unpunctuality: match has_lead {
                true => Duration::ZERO,
                false => self.timeline.unpunctuality(now),
            },
            is_published: self.is_published(key, samples),
            has_lead,
            period: self.period,
        }
    }

    /// Returns when a sample was or will be published, by its lead segment or by the stream's clock.
    pub(in crate::consumer) fn published_at(
        &self,
        key: SampleKey,
        samples: &Assembler,
    ) -> Option<Timestamp> {
        let stated = samples.header(key).map(SampleHeader::published_at);
        stated.or_else(|| self.timeline.published_at(key))
    }

    /// Returns whether a sample is known to be published.
    pub(in crate::consumer) fn is_published(
        &self,
        (class, sequence): SampleKey,
        samples: &Assembler,
    ) -> bool {
        let newest = self.pipeline.newest(class);
        newest.is_some_and(|newest| sequence <= newest) || samples.has_lead((class, sequence))
    }

    /// Passes over samples before key sample `key`, and before delta sample `delta` if that is known.
    pub(in crate::consumer) fn skip_to(&mut self, key: u64, delta: Option<u64>) {
        self.pipeline.forget_start();
        self.pipeline.skip_to(SampleClass::Key, key);
        if let Some(delta) = delta {
            self.pipeline.skip_to(SampleClass::Delta, delta);
        }
    }

    /// Goes on at the live edge with delta samples.
    pub(in crate::consumer) fn skip_to_live_delta(&mut self) {
        if let Some(newest) = self.pipeline.newest(SampleClass::Delta) {
            let next = newest.saturating_add(1);
            self.pipeline.skip_to(SampleClass::Delta, next);
        }
    }

    /// Returns whether key sample `sequence` is known to be published.
    pub(in crate::consumer) fn is_key_published(&self, sequence: u64) -> bool {
        let newest = self.pipeline.newest(SampleClass::Key);
        newest.is_some_and(|newest| sequence <= newest)
    }

    /// Returns whether a sample is one that another rung's consumer requests.
    pub(in crate::consumer) fn is_left_to_another(&self, key: SampleKey) -> bool {
        self.handover
            .is_left_to_another(self.timeline.position(key))
    }

    /// Records that a sample, which was requested, is to be requested again in its turn.
    pub(in crate::consumer) fn give_back(&mut self, (class, sequence): SampleKey) {
        self.pipeline.give_back(class, sequence);
    }

    /// Sets the playout clock and the decode lead time. Returns whether the target is another one; `None` if nothing has changed.
    pub(in crate::consumer) fn set_playout(
        &mut self,
        now: Instant,
        playout: Playout,
        decode_lead: Duration,
    ) -> Option<bool> {
        self.timeline.set_playout(now, playout, decode_lead)
    }

    /// Does what is due.
    pub(in crate::consumer) fn handle_timeout(&mut self, now: Instant) {
        self.synchroniser.handle_timeout(now);
    }

    /// Returns when there is something to do, if nothing arrives.
    pub(in crate::consumer) fn poll_timeout(&self) -> Option<Instant> {
        let both = [
            self.synchroniser.poll_timeout(),
            self.pipeline.poll_timeout(),
        ];
        both.into_iter().flatten().min()
    }
}

/// What others read, and say, of the stream's time.
impl Schedule {
    /// Returns when samples are published, could be here, and are shown.
    pub const fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// Returns what is left to other rungs, or left over by them.
    pub const fn handover(&self) -> &Handover {
        &self.handover
    }

    /// Returns what is left to other rungs, to be changed.
    pub const fn handover_mut(&mut self) -> &mut Handover {
        &mut self.handover
    }

    /// Returns the newest delta sample known to be published.
    pub fn newest_delta(&self) -> Option<u64> {
        let newest = self.pipeline.newest(SampleClass::Delta)?;
        Some(newest.max(self.pipeline.assumed(SampleClass::Delta)))
    }

    /// Returns the time from one key sample to the next.
    pub const fn key_period(&self) -> Duration {
        self.period.saturating_mul(self.key_interval)
    }

    /// Returns when a verified lead segment arrived last, or the rung was started.
    pub const fn last_arrival(&self) -> Option<Instant> {
        self.pipeline.last_arrival()
    }

    /// Returns the samples known to be published since the start.
    pub fn published(&self) -> u64 {
        self.pipeline.published()
    }

    /// Returns what the path is like.
    pub const fn path(&self) -> &PathView {
        &self.path
    }

    /// Returns the synchroniser: the state, and what was observed until then.
    pub const fn synchroniser(&self) -> &Synchroniser {
        &self.synchroniser
    }

    /// Sets whether a higher bitrate is being tried at the same time.
    pub fn set_challenging(&mut self, now: Instant, is_challenging: bool) {
        self.synchroniser.set_challenging(now, is_challenging);
    }

    /// Sets what the path is like.
    pub const fn set_outlook(&mut self, outlook: PathOutlook) {
        self.path.outlook = outlook;
    }

    /// Records the time from Interest to Data of something else from this producer, that existed when it was requested.
    pub fn on_round_trip(&mut self, now: Instant, rtt: Duration) {
        self.path.delay.on_own(now, rtt, Duration::ZERO);
    }

    /// Records the delay of a packet that states when it was served, as a bound of the base.
    pub fn on_served(&mut self, now: Instant, delay: i64) {
        // By gaps, what comes may be older than the path is long.
        if !self.goes_by_gaps() {
            self.timeline.on_served(now, delay);
        }
    }

    /// The path is no longer than it was before it was last found to be.
    pub(in crate::consumer) fn on_path_shrank(&mut self, now: Instant) {
        self.timeline.on_path_shrank(now);
    }

    /// Every delay is longer by `shift` from now on.
    pub(in crate::consumer) fn on_path_grew(&mut self, now: Instant, shift: Duration) {
        self.timeline.on_path_grew(now, shift);
        self.path.delay.raise(shift);
    }
}
