//! Pulls one rung of a stream.
//!
//! ```text
//!  pipeline ──▶ Interests ──▶ … ──▶ Data ──▶ assembly ──▶ order ──▶ samples
//!  λ ahead of    ▲    ▲               │    lead, digests,   by render_at,
//!  production    │    │               ▼    parity           or the next key
//!           segments  retransmit ◀── drd
//! ```

mod ahead;
mod arrival;
mod asking;
mod assembly;
mod claims;
mod clock;
mod config;
mod counters;
mod delivery;
mod handover;
mod order;
mod path_events;
mod pipeline;
mod playback;
mod playout;
mod repair;
mod rungs;
mod segments;
pub mod synchroniser;
#[cfg(test)]
mod tests;
mod timeline;
mod types;

use std::cmp::Reverse;
use std::collections::VecDeque;

use core::time::Duration;

use namecast_packet::{Data, Interest, lp::NackReason};
use namecast_units::{Instant, WindowedMinimum};

use crate::ladder::PathEvent;
use crate::metadata::Latest;
use crate::names::{SampleClass, SegmentId};
use crate::path::{Client, DelayEstimator};
use crate::rate::{Loss, Lost};

pub use config::Config;
pub use counters::Counters;
pub use handover::{Allowance, GroupStart};
pub use pipeline::{Advance, Pipeline, demand};
pub use playout::{BaseDelay, Playout};
pub use repair::{ParseRecoveryError, RecoveryConfig, RecoveryProfile};
pub use rungs::WireUse;
pub use segments::{SegmentCounts, SegmentEstimators};
pub use synchroniser::{StabilityClass, SynchroniserConfig, SynchroniserProfile};
pub use types::{
    Delivery, LineUp, Output, PathOutlook, Sample, SharedVerifier, Shown, Sizes, Source, StartAt,
};

use handover::Handover;
use order::{SampleKey, Samples};
use playback::Playback;
use synchroniser::{State, Synchroniser};
use timeline::Timeline;

/// Pulls one rung of a stream: asks for samples before they exist, verifies and repairs them, and hands them out in decoding
/// order a little before they are to be shown.
///
/// A plain value: give it Data, Nacks and the time, and take everything from [`poll_output`](Self::poll_output) after each
/// call. Nothing is asked for before [`start`](Self::start), and nothing handed out before
/// [`set_verifier`](Self::set_verifier).
pub struct Consumer {
    config: Config,
    source: Source,
    verifier: Option<SharedVerifier>,
    /// By which the requester knows it.
    client: Client,
    delay: DelayEstimator,
    segments: SegmentEstimators,
    pipeline: Pipeline,
    samples: Samples,
    timeline: Timeline,
    playback: Playback,
    handover: Handover,
    /// Segments to request, repairs before others.
    repairs: VecDeque<SegmentId>,
    wanted: VecDeque<SegmentId>,
    /// Segments that are to be requested: here, or at the requester.
    waiting: usize,
    /// What the path is like.
    outlook: PathOutlook,
    outputs: VecDeque<Output>,
    counters: Counters,
    /// A sample whose lead claims more than is usual, of which nothing came; claims of others are doubted as long.
    doubts: Option<SampleKey>,
    outstanding: usize,
    buffered: usize,
    strays: usize,
    events: path_events::PathEvents,
    /// Until then no cache may answer.
    fresh_until: Option<Instant>,
    repair: &'static dyn repair::Repair,
    recovery: repair::Recovery,
    groups: repair::Groups,
    /// The most by which packets overtook each other lately (a minimum in reverse).
    reordering: WindowedMinimum<Reverse<Duration>>,
    synchroniser: Synchroniser,
}

impl core::fmt::Debug for Consumer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Consumer")
            .field("rung", self.source.names.prefix())
            .field("order", self.playback.order())
            .field("sizes", &self.sizes())
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

impl Consumer {
    /// A consumer of `source` that waits for [`start`](Self::start). The requester knows it as `client`.
    pub fn new(config: Config, source: Source, client: Client) -> Self {
        let period = source.rate.period();
        Self {
            client,
            delay: DelayEstimator::new(config.delay),
            segments: source.estimators(config.most_segments),
            pipeline: Pipeline::new(
                period,
                source.key_interval,
                config.most_lead,
                config.most_jump,
            ),
            samples: Samples::new(),
            timeline: Timeline::new(period, source.key_interval),
            playback: Playback::new(&config, &source),
            handover: Handover::default(),
            waiting: 0,
            outlook: PathOutlook::default(),
            repairs: VecDeque::new(),
            wanted: VecDeque::new(),
            outputs: VecDeque::new(),
            counters: Counters::default(),
            doubts: None,
            outstanding: 0,
            buffered: 0,
            strays: 0,
            events: path_events::PathEvents::default(),
            fresh_until: None,
            repair: config.recovery.profile.repair(),
            recovery: repair::Recovery::new(period, source.key_interval),
            groups: repair::Groups::default(),
            reordering: WindowedMinimum::new(Duration::from_secs(1), 10),
            synchroniser: Synchroniser::new(
                &config.synchroniser,
                period,
                !source.is_standalone(),
                config.most_lead,
            ),
            verifier: None,
            config,
            source,
        }
    }

    /// Starts, or starts again, from what `latest` says; everything in hand is dropped.
    ///
    /// Gives the key sample that playback starts with; `None` if nothing is published yet.
    pub fn start(&mut self, now: Instant, latest: &Latest, at: StartAt) -> Option<u64> {
        let first = self.begin(now, latest, at)?;
        self.settle(now);
        Some(first)
    }

    /// Does so, and asks for nothing yet.
    fn begin(&mut self, now: Instant, latest: &Latest, at: StartAt) -> Option<u64> {
        let is_first = self.synchroniser.state() == State::Inactive;
        let staleness = self.config.synchroniser.staleness;
        let latest = &self
            .source
            .aged(latest, if is_first { staleness } else { Duration::ZERO });
        let newest = latest.key_sequence?;
        let goes_by_gaps = self.synchroniser.lead().is_some();
        let first = match at {
            StartAt::NewestKey if !goes_by_gaps => newest,
            StartAt::NewestKey | StartAt::NextKey => newest.saturating_add(1),
        };
        self.clear();
        self.pipeline
            .restart(now, Some(first).filter(|_| !goes_by_gaps));
        self.playback.start(now, first);
        self.handover.restart();
        self.timeline.restart(latest.served_at);
        self.synchroniser.start(now, self.delay.estimate(now));
        self.pipeline.start(now, SampleClass::Key, first, newest);
        if let Some(delta) = latest.delta_sequence
            && !self.source.is_standalone()
        {
            let next = delta.saturating_add(1);
            self.pipeline.start(now, SampleClass::Delta, next, delta);
        }
        if let Some(next) = latest.next_delta.filter(|_| first == newest) {
            self.catch_up_from(first, next);
        }
        Some(first)
    }

    /// Takes one Data packet. Tells whether its name is one of this rung's.
    pub fn handle_data(&mut self, now: Instant, data: &Data, delivery: Delivery) -> bool {
        let Some(id) = self.source.names.parse(data.name()) else {
            return false;
        };
        self.on_segment(now, id, data, delivery);
        self.settle(now);
        true
    }

    /// Takes an Interest that came back. Tells whether its name is one of this rung's.
    pub fn handle_nack(&mut self, now: Instant, interest: &Interest, reason: NackReason) -> bool {
        let Some(id) = self.source.names.parse(interest.name()) else {
            return false;
        };
        self.on_nack(now, id, interest.nonce(), reason);
        self.settle(now);
        true
    }

    /// Does what is due. Early and repeated calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.synchroniser.handle_timeout(now);
        self.repair_due(now);
        self.settle(now);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let repairs = self.samples.values().filter_map(|sample| sample.wake).min();
        let others = [
            self.playback.poll_timeout(&self.buffer()),
            self.synchroniser.poll_timeout(),
            self.pipeline.poll_timeout(),
        ];
        let all = [repairs].into_iter().chain(others);
        all.flatten().min()
    }

    /// The next thing to do, until `None`.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Sets whose signature counts. Leads that came before are judged now.
    pub fn set_verifier(&mut self, now: Instant, verifier: SharedVerifier) {
        self.verifier = Some(verifier);
        self.judge_kept_leads(now);
        self.settle(now);
    }

    /// Sets the playout clock, and how long before their time samples leave. Samples in hand are re-timed at once.
    /// Without a base, this stream's own is used.
    pub fn set_playout(&mut self, now: Instant, playout: Playout, decode_lead: Duration) {
        let Some(moved) = self.timeline.set_playout(now, playout, decode_lead) else {
            return;
        };
        if moved {
            // Checkpoints move along.
            let incomplete = self.samples.values_mut().filter(|s| s.complete.is_none());
            incomplete.for_each(|sample| sample.wake_by(now));
        }
        self.settle(now);
    }

    /// Holds samples back, or lets them go.
    pub fn set_held(&mut self, now: Instant, held: bool) {
        self.playback.set_held(held);
        self.settle(now);
    }

    /// Leaves samples from `position` on to another rung.
    pub fn set_stop_before(&mut self, position: Option<u64>) {
        self.playback.set_stop_before(position);
    }

    /// Sets what was shown before: neither that nor anything before it is handed out, whatever the next start begins with.
    pub const fn set_shown(&mut self, shown: Option<Shown>) {
        self.playback.set_shown(shown);
    }

    /// Asks past all caches until then: they may hold Data of an earlier publisher under names that come again.
    pub const fn set_fresh_until(&mut self, until: Option<Instant>) {
        self.fresh_until = until;
    }

    /// Takes the time from Interest to Data of something else from the same producer, that existed when it was asked for.
    pub fn on_round_trip(&mut self, now: Instant, rtt: Duration) {
        self.delay.on_own(now, rtt, Duration::ZERO);
    }

    /// Sends everything that is outstanding again: the transport came back.
    pub fn handle_link_change(&mut self, now: Instant) {
        self.ask_everything_again();
        self.settle(now);
    }

    /// The decoder failed: the next sample handed out is a key sample, after a discontinuity.
    pub fn handle_decoder_error(&mut self, now: Instant) {
        if !self.playback.order().needs_key() {
            self.abandon_group();
        }
        self.settle(now);
    }

    /// Compares what the publisher says of its newest samples, and asks for what is new. `starved`: nothing comes.
    pub fn line_up(&mut self, now: Instant, latest: &Latest, starved: bool) -> LineUp {
        let (Some(key), Some(known)) =
            (latest.key_sequence, self.pipeline.newest(SampleClass::Key))
        else {
            return LineUp::OutOfLine;
        };
        let lower = key < known && (starved || self.timeline.is_news(latest));
        if lower
            || key.saturating_sub(known) > self.config.most_jump
            || self.synchroniser.waits_for_start()
        {
            return LineUp::OutOfLine;
        }
        if self.synchroniser.lead().is_some() {
            // What is newest shows in the gaps between arrivals.
            return LineUp::Missed(Duration::ZERO);
        }
        let missed = self.missed(SampleClass::Key, Some(key))
            + self.missed(SampleClass::Delta, latest.delta_sequence);
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

    /// Drops groups whose key sample is at `position` or before: another rung shows them.
    pub fn pass_over(&mut self, now: Instant, position: u64) {
        let passed = self.samples.values().filter(|sample| {
            let at = sample.lead().map(|lead| lead.header().position);
            sample.class == SampleClass::Key && at.is_some_and(|at| at <= position)
        });
        if let Some(last) = passed.map(|sample| sample.sequence).max() {
            self.skip_group_before(last.saturating_add(1));
        }
        self.settle(now);
    }

    /// A key sample that is complete and comes after `position`: its position, and when it would be handed out.
    pub fn ready_key(&self, now: Instant, after: Option<u64>) -> Option<(u64, Instant)> {
        self.samples
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

    /// Makes the complete key sample at `position` the next to be handed out.
    pub fn begin_at(&mut self, now: Instant, position: u64) {
        let found = self.samples.values().find(|sample| {
            let at = sample.lead().map(|lead| lead.header().position);
            sample.class == SampleClass::Key && at == Some(position)
        });
        if let Some(sequence) = found.map(|sample| sample.sequence) {
            self.go_on_with(sequence);
        }
        self.settle(now);
    }

    /// Playback position of the sample handed out last.
    pub fn position(&self) -> Option<u64> {
        self.playback.order().last().map(|last| last.position)
    }

    /// What the stream's own packets say of the way's length.
    pub fn base(&self, now: Instant) -> Option<i64> {
        self.timeline.base(now)
    }

    /// Takes the delay of a packet that states when it was served, as a bound of the base.
    pub fn on_served(&mut self, now: Instant, delay: i64) {
        // By gaps, what comes may be older than the way is long.
        if self.synchroniser.lead().is_none() {
            self.timeline.on_served(now, delay);
        }
    }

    /// When a verified lead arrived last, or the consumer was started.
    pub const fn last_arrival(&self) -> Option<Instant> {
        self.pipeline.last_arrival()
    }

    /// The delay estimator.
    pub const fn delay(&self) -> &DelayEstimator {
        &self.delay
    }

    /// By which the requester knows it.
    pub const fn client(&self) -> Client {
        self.client
    }

    /// What it counted.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The rung it pulls.
    pub const fn source(&self) -> &Source {
        &self.source
    }

    /// Samples known to be published since the start.
    pub fn published(&self) -> u64 {
        self.pipeline.published()
    }

    /// λ: samples that may be in flight, by the gaps between arrivals; else those that need to be, ⌈(DRD + margin)/T⌉.
    pub fn interest_lead(&self, now: Instant) -> u64 {
        let period = self.source.rate.period();
        let needed = || demand(self.ahead_by(now), Duration::ZERO, period);
        self.synchroniser.lead().unwrap_or_else(needed)
    }

    /// Its synchroniser: the state, and what was observed on the way there.
    pub const fn synchroniser(&self) -> &Synchroniser {
        &self.synchroniser
    }

    /// Tells the synchroniser whether a higher bitrate is being tried beside this one.
    pub fn set_challenging(&mut self, now: Instant, is_challenging: bool) {
        self.synchroniser.set_challenging(now, is_challenging);
    }

    /// Playing time of complete samples, from the one due `now` to the last.
    pub fn buffered_time(&self, now: Instant) -> Duration {
        let last = self
            .samples
            .values()
            .filter(|sample| sample.complete.is_some())
            .filter_map(|sample| Some(sample.lead()?.header().published_at()))
            .max();
        last.map_or(Duration::ZERO, |published_at| {
            self.timeline.render_at(now, published_at).since(now)
        })
    }

    /// Sizes of its tables.
    pub fn sizes(&self) -> Sizes {
        Sizes {
            samples: self.samples.len(),
            complete: self
                .samples
                .values()
                .filter(|sample| sample.complete.is_some())
                .count(),
            buffered: self.buffered,
            outstanding: self.outstanding,
            queued: self.waiting,
            strays: self.strays,
        }
    }

    /// After every event: asks ahead, sends what may be sent, hands out what is due.
    fn settle(&mut self, now: Instant) {
        self.deliver_due(now);
        self.ask_ahead(now);
        self.express_queued(now);
    }

    fn clear(&mut self) {
        self.samples.clear();
        self.repairs.clear();
        self.wanted.clear();
        self.groups.clear();
        self.outputs.push_back(Output::WithdrawAll);
        (self.outstanding, self.waiting) = (0, 0);
        (self.buffered, self.strays) = (0, 0);
    }

    /// How many samples of `class` up to `newest` were never asked for.
    fn missed(&self, class: SampleClass, newest: Option<u64>) -> u64 {
        let next = self.pipeline.next_to_ask(class);
        newest.zip(next).map_or(0, |(newest, next)| {
            newest.saturating_add(1).saturating_sub(next)
        })
    }

    /// Tells the controller that what was asked for at `asked_at` is lost, unless it knows.
    fn on_loss(&mut self, asked_at: Instant, kind: Loss) {
        let lost = Lost {
            asked_at,
            kind,
            repeated: false,
        };
        self.note_event(PathEvent::Lost(lost));
    }
}
