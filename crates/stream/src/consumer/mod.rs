//! Pulls one rung of a stream.
//!
//! ```text
//!    Schedule                         Retrieval                          Playback
//!    which sample to request, when ──▶ its segments: requested,  ──▶ which leaves when, ──▶ samples
//!        ▲                             verified, repaired, whole         what is passed over
//!        └────── published ────────────┘
//! ```
//!
//! Each part owns its state, is told plain values and answers in such. The consumer leads: an event goes to the parts that it concerns,
//! and what they answer is carried out.
//!
//! | part        | what it owns                                                            |
//! |-------------|-------------------------------------------------------------------------|
//! | `schedule`  | when samples are published, could be here and are shown; what is next    |
//! | `retrieval` | which segments of a sample are requested, here and missing; their repair |
//! | `playback`  | which sample was delivered last, which one is next, what was shown before |

mod assembler;
mod clock;
mod config;
mod counters;
mod delivery;
#[cfg(test)]
mod fixtures;
mod handover;
mod order;
mod outbox;
mod pipeline;
mod playback;
mod playout;
mod repair;
mod retrieval;
mod rungs;
mod schedule;
pub mod synchroniser;
#[cfg(test)]
mod tests;
mod timeline;
mod types;

use core::time::Duration;

use namecast_packet::{Data, Nonce, lp::NackReason};
use namecast_units::Instant;

use crate::metadata::Latest;
use crate::names::SegmentId;
use crate::path::{ClientId, Event, Token};
use crate::rate::PathEvent;

pub use config::Config;
pub use counters::Counters;
pub use handover::{Allowance, GroupStart, Handover};
pub use playout::{AdaptiveTarget, Playout};
pub use repair::{RecoveryConfig, RecoveryProfile};
pub use schedule::Schedule;
pub use synchroniser::{StabilityClass, SynchroniserConfig, SynchroniserProfile};
pub use timeline::Timeline;
pub use types::{
    Delivery, LineUp, Output, ReadyKey, Sample, SharedVerifier, Shown, Sizes, Source, StartAt,
};

use playback::Playback;
use retrieval::{Retrieval, Segment, Setback};

/// Pulls one rung of a stream: requests samples before they exist, verifies and repairs them, and delivers them in decoding
/// order a little before they are to be shown.
///
/// A plain value: give it Data, Nacks and the time, and take everything from [`poll_output`](Self::poll_output) after each
/// call. Nothing is requested before [`start`](Self::start), and nothing delivered before
/// [`set_verifier`](Self::set_verifier).
pub struct Consumer {
    schedule: Schedule,
    retrieval: Retrieval,
    playback: Playback,
    /// Of what was delivered or passed over.
    counters: Counters,
}

impl core::fmt::Debug for Consumer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Consumer")
            .field("rung", self.source().names.prefix())
            .field("order", self.playback.order())
            .field("sizes", &self.sizes())
            .field("counters", &self.counters())
            .finish_non_exhaustive()
    }
}

impl Consumer {
    /// A consumer of `source` that waits for [`start`](Self::start). The uplink knows it as `client`.
    pub fn new(config: &Config, source: Source, client: ClientId) -> Self {
        Self {
            schedule: Schedule::new(config, &source),
            playback: Playback::new(config, &source),
            retrieval: Retrieval::new(config, source, client),
            counters: Counters::default(),
        }
    }

    /// Starts, or starts again, from what `latest` says; everything in hand is dropped.
    ///
    /// Returns the key sample that playback starts with; `None` if nothing is published yet.
    pub fn start(&mut self, now: Instant, latest: &Latest, at: StartAt) -> Option<u64> {
        let first = self.begin(now, latest, at)?;
        self.settle(now);
        Some(first)
    }

    /// Starts without a request yet.
    fn begin(&mut self, now: Instant, latest: &Latest, at: StartAt) -> Option<u64> {
        let source = self.retrieval.source();
        let latest = &source.numbered(latest);
        let start = self.schedule.start(now, source, latest, at)?;
        self.retrieval.clear();
        self.playback.start(now, start.plays_from);
        Some(start.first)
    }

    /// Takes the Data that answers `id`.
    pub fn handle_data(&mut self, now: Instant, id: SegmentId, data: &Data, delivery: Delivery) {
        let segment = Segment { id, data, delivery };
        self.retrieval
            .on_segment(now, &segment, &mut self.schedule, &self.playback);
        self.settle(now);
    }

    /// Takes the Interest for `id` that had `nonce` and came back.
    pub fn handle_nack(
        &mut self,
        now: Instant,
        id: SegmentId,
        (nonce, reason): (Option<Nonce>, NackReason),
    ) {
        self.retrieval
            .on_nack(now, id, (nonce, reason), &self.schedule);
        self.settle(now);
    }

    /// Does what is due. Early and repeated calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.schedule.handle_timeout(now);
        for key in self.retrieval.due(now) {
            self.retrieval
                .check(now, key, &mut self.schedule, &self.playback);
            self.act_on_setbacks();
        }
        self.settle(now);
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let all = [
            self.retrieval.poll_timeout(),
            self.playback.poll_timeout(&self.buffer()),
            self.schedule.poll_timeout(),
        ];
        all.into_iter().flatten().min()
    }

    /// Returns the next thing to do, until `None`.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.retrieval.outbox().pop()
    }

    /// Sets whose signature counts. Lead segments that came before are judged now.
    pub fn set_verifier(&mut self, now: Instant, verifier: SharedVerifier) {
        self.retrieval
            .set_verifier(now, verifier, &mut self.schedule, &self.playback);
        self.settle(now);
    }

    /// Sets the playout clock, and how long before their time samples leave. Samples in hand are re-timed at once.
    /// Without a base, this stream's own is used.
    pub fn set_playout(&mut self, now: Instant, playout: Playout, decode_lead: Duration) {
        let Some(moved) = self.schedule.set_playout(now, playout, decode_lead) else {
            return;
        };
        if moved {
            // Checkpoints move along.
            self.retrieval.wake_incomplete(now);
        }
        self.settle(now);
    }

    /// Holds samples back, or lets them go.
    pub fn set_held(&mut self, now: Instant, held: bool) {
        self.playback.set_held(held);
        self.settle(now);
    }

    /// Leaves samples from `key` on to the rung that it is of.
    pub fn set_stop_before(&mut self, key: Option<ReadyKey>) {
        self.playback.set_stop_before(key);
    }

    /// Sets what was shown before: neither that nor anything before it is delivered, whatever the next start begins with.
    pub const fn set_shown(&mut self, shown: Option<Shown>) {
        self.playback.set_shown(shown);
    }

    /// Records what became of a request of this consumer, or of the path.
    pub fn on_event(&mut self, now: Instant, event: &Event) {
        let client = self.client();
        let is_own = |token: &Token| token.client == client;
        match event {
            Event::Sent {
                token,
                nonce,
                order,
            } if is_own(token) => {
                let sent = (*nonce, *order);
                let schedule = &mut self.schedule;
                self.retrieval.on_sent(now, token.segment, sent, schedule);
            }
            Event::Dropped(token) if is_own(token) => {
                self.retrieval.on_dropped(now, token.segment);
            }
            Event::Lost(token) if is_own(token) => self.retrieval.on_lost(now, token.segment),
            Event::PathGrew(shift) => self.schedule.on_path_grew(now, *shift),
            Event::PathShrank => self.schedule.on_path_shrank(now),
            Event::Interest { .. } | Event::Sent { .. } | Event::Dropped(_) | Event::Lost(_) => {}
        }
    }

    /// Requests everything that is outstanding again: the transport came back.
    pub fn handle_link_change(&mut self, now: Instant) {
        self.retrieval.request_again();
        self.settle(now);
    }

    /// The decoder failed: the next sample delivered is a key sample, after a discontinuity.
    pub fn handle_decoder_error(&mut self, now: Instant) {
        if !self.playback.order().needs_key() {
            self.abandon_group();
        }
        self.settle(now);
    }

    /// Compares what the publisher says of its newest samples, and moves on to what is new. `starved`: nothing comes.
    pub fn line_up(&mut self, now: Instant, latest: &Latest, starved: bool) -> LineUp {
        let first_key = self.playback.order().first_key();
        let latest = &self.source().numbered(latest);
        let (line_up, news) = self.schedule.line_up(now, latest, first_key, starved);
        self.retrieval.on_news(now, news, &self.schedule);
        line_up
    }

    /// Requests all that [`line_up`](Self::line_up) found to be missed.
    pub fn catch_up(&mut self, now: Instant) {
        self.settle(now);
    }

    /// Returns the next event for those who estimate bandwidth by what becomes of packets, until `None`.
    pub fn poll_path_event(&mut self) -> Option<PathEvent> {
        self.retrieval.outbox().pop_event()
    }

    /// Sets whether such events are kept.
    pub const fn enable_path_events(&mut self, is_enabled: bool) {
        self.retrieval.outbox().keep_events(is_enabled);
    }

    /// Returns when samples are published, and which are requested when.
    pub const fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Returns when samples are published, for what others find out of the path.
    pub const fn schedule_mut(&mut self) -> &mut Schedule {
        &mut self.schedule
    }

    /// Returns the rung it pulls.
    pub const fn source(&self) -> &Source {
        self.retrieval.source()
    }

    /// Returns by which the uplink knows it.
    pub const fn client(&self) -> ClientId {
        self.retrieval.client()
    }

    /// Returns what it counted.
    pub fn counters(&self) -> Counters {
        let mut sum = self.counters;
        sum += *self.retrieval.counters();
        sum
    }

    /// Returns the sizes of its tables.
    pub fn sizes(&self) -> Sizes {
        self.retrieval.sizes()
    }

    /// Returns the share of segments lost lately.
    pub fn loss(&self) -> f64 {
        self.retrieval.recovery().loss()
    }

    /// Returns how far samples were delivered, if any were.
    pub fn delivered(&self) -> Option<Shown> {
        self.position()
            .zip(self.playback.presented_at())
            .map(|(position, presented_at)| Shown {
                position: Some(position),
                presented_at,
            })
    }

    /// Returns the position of the sample delivered last.
    pub fn position(&self) -> Option<u64> {
        self.playback.order().last().map(|last| last.position)
    }

    /// Returns the playing time of complete samples, from the one due `now` to the last.
    pub fn buffered_time(&self, now: Instant) -> Duration {
        self.retrieval.buffered_time(now, &self.schedule)
    }

    /// λ: samples that may be in flight, by the gaps between arrivals; else those that need to be, ⌈(DRD + margin)/T⌉.
    pub fn interest_lead(&self, now: Instant) -> u64 {
        self.schedule.interest_lead(now, self.retrieval.hedging())
    }

    /// Returns the time before a sample's arrival at best at which its Interest leaves.
    pub fn leaves_before(&self, now: Instant) -> Duration {
        self.schedule.ahead_by(now, self.retrieval.hedging())
    }

    /// After every event: delivers what is due, requests ahead, passes on what is to be requested.
    fn settle(&mut self, now: Instant) {
        self.act_on_setbacks();
        self.deliver_due(now);
        self.make_room();
        self.retrieval.request_ahead(now, &mut self.schedule);
        self.retrieval.request_queued(now, &self.schedule);
    }

    /// Passes over what turned out not to come.
    fn act_on_setbacks(&mut self) {
        while let Some(setback) = self.retrieval.poll_setback() {
            match setback {
                Setback::GivenUp(key) if self.playback.waits_for(key) => self.abandon_group(),
                Setback::GivenUp(_) => {}
                Setback::PlaysFrom(key) => self.playback.skip_to(key),
            }
        }
    }
}
