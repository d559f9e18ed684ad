//! Pulls one rung of a stream.
//!
//! ```text
//!                  Timeline: when samples are published, could be here, are shown
//!                     │                    │                       │
//!  Synchroniser ─▶ Pipeline ──wanted──▶ Assembler ──complete──▶ Playback ──▶ samples
//!  how far ahead   which, when         what is here,           what leaves,
//!                     ▲                 requested, missing      what is passed over
//!  Handover ──────────┤                 ▲   │ what came, and when
//!  what other rungs do│        requests │   ▼
//!                     └─ published ──── Recovery: what is lost, what to do about it
//! ```
//!
//! Each part owns its state, is told plain values and answers in such. The consumer leads: an event goes to the parts that it concerns,
//! and what they answer is carried out.
//!
//! | file        | what the consumer does there                                    |
//! |-------------|-----------------------------------------------------------------|
//! | `requests`  | asks the pipeline what to request, and makes requests of it      |
//! | `arrival`   | takes Data: verifies, measures, puts samples together            |
//! | `published` | moves on with what is known to be published                      |
//! | `repairs`   | looks at samples when their time has come                        |
//! | `delivery`  | delivers samples, drops what playback passes over                |
//! | `rungs`     | changes over from one rung to another                            |
//! | `readings`  | what others read                                                 |

mod arrival;
mod assembler;
mod clock;
mod config;
mod counters;
mod delivery;
mod handover;
mod order;
mod outbox;
mod pipeline;
mod playback;
mod playout;
mod published;
mod readings;
mod repair;
mod repairs;
mod requests;
mod rungs;
mod single;
pub mod synchroniser;
#[cfg(test)]
mod tests;
mod timeline;
mod types;

use core::time::Duration;

use namecast_packet::{Data, Interest, lp::NackReason};
use namecast_units::Instant;

use crate::metadata::Latest;
use crate::names::SampleClass;
use crate::path::{Client, PathOutlook, PathView};
use crate::rate::PathEvent;

pub use config::Config;
pub use counters::Counters;
pub use handover::{Allowance, GroupStart};
pub use playout::Playout;
pub use repair::{ParseRecoveryError, RecoveryConfig, RecoveryProfile};
pub use single::{Single, SingleOutput};
pub use synchroniser::{StabilityClass, SynchroniserConfig, SynchroniserProfile};
pub use types::{Delivery, LineUp, Output, Sample, SharedVerifier, Shown, Sizes, Source, StartAt};

use assembler::Assembler;
use handover::Handover;
use outbox::Outbox;
use pipeline::{Pipeline, PipelineLimits};
use playback::Playback;
use repair::Recovery;
use synchroniser::{State, Synchroniser};
use timeline::Timeline;

/// Pulls one rung of a stream: requests samples before they exist, verifies and repairs them, and delivers them in decoding
/// order a little before they are to be shown.
///
/// A plain value: give it Data, Nacks and the time, and take everything from [`poll_output`](Self::poll_output) after each
/// call. Nothing is requested before [`start`](Self::start), and nothing delivered before
/// [`set_verifier`](Self::set_verifier).
pub struct Consumer {
    config: Config,
    source: Source,
    /// By which the requester knows it.
    client: Client,
    /// Whose signature counts.
    verifier: Option<SharedVerifier>,
    /// What the path is like.
    path: PathView,
    timeline: Timeline,
    pipeline: Pipeline,
    synchroniser: Synchroniser,
    assembler: Assembler,
    recovery: Recovery,
    playback: Playback,
    handover: Handover,
    outputs: Outbox,
    counters: Counters,
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
        let limits = PipelineLimits {
            lead: config.max_lead,
            jump: config.max_jump,
            catch_up: config.max_samples as u64 / 2,
        };
        let has_deltas = !source.is_standalone();
        let recovery = Recovery::new(&config, &source);
        let segments = source.estimators(config.max_segments);
        Self {
            client,
            verifier: None,
            path: PathView::new(config.delay),
            timeline: Timeline::new(period, source.key_interval),
            pipeline: Pipeline::new(period, source.key_interval, limits),
            synchroniser: Synchroniser::new(
                &config.synchroniser,
                period,
                has_deltas,
                config.max_lead,
            ),
            assembler: Assembler::new(&config, recovery.profile().policy(), segments),
            recovery,
            playback: Playback::new(&config, &source),
            handover: Handover::default(),
            outputs: Outbox::default(),
            counters: Counters::default(),
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

    /// Does so, and requests nothing yet.
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
        self.synchroniser.start(now, self.path.delay.estimate(now));
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

    /// Takes one Data packet. Returns whether its name is one of this rung's.
    pub fn handle_data(&mut self, now: Instant, data: &Data, delivery: Delivery) -> bool {
        let Some(id) = self.source.names.parse(data.name()) else {
            return false;
        };
        self.on_segment(now, id, data, delivery);
        self.settle(now);
        true
    }

    /// Takes an Interest that came back. Returns whether its name is one of this rung's.
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

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let all = [
            self.assembler.next_wake(),
            self.playback.poll_timeout(&self.buffer()),
            self.synchroniser.poll_timeout(),
            self.pipeline.poll_timeout(),
        ];
        all.into_iter().flatten().min()
    }

    /// Returns the next thing to do, until `None`.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop()
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
            self.assembler.wake_incomplete(now);
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

    /// Sets what was shown before: neither that nor anything before it is delivered, whatever the next start begins with.
    pub const fn set_shown(&mut self, shown: Option<Shown>) {
        self.playback.set_shown(shown);
    }

    /// Asks past all caches until then: they may hold Data of an earlier publisher under names that come again.
    pub const fn set_fresh_until(&mut self, until: Option<Instant>) {
        self.handover.set_fresh_until(until);
    }

    /// Takes the time from Interest to Data of something else from the same producer, that existed when it was requested.
    pub fn on_round_trip(&mut self, now: Instant, rtt: Duration) {
        self.path.delay.on_own(now, rtt, Duration::ZERO);
    }

    /// Sends everything that is outstanding again: the transport came back.
    pub fn handle_link_change(&mut self, now: Instant) {
        self.counters.interests_retransmitted += self.assembler.request_again();
        self.settle(now);
    }

    /// The decoder failed: the next sample delivered is a key sample, after a discontinuity.
    pub fn handle_decoder_error(&mut self, now: Instant) {
        if !self.playback.order().needs_key() {
            self.abandon_group();
        }
        self.settle(now);
    }

    /// Takes the delay of a packet that states when it was served, as a bound of the base.
    pub fn on_served(&mut self, now: Instant, delay: i64) {
        // By gaps, what comes may be older than the path is long.
        if self.synchroniser.lead().is_none() {
            self.timeline.on_served(now, delay);
        }
    }

    /// Tells the synchroniser whether a higher bitrate is being tried beside this one.
    pub fn set_challenging(&mut self, now: Instant, is_challenging: bool) {
        self.synchroniser.set_challenging(now, is_challenging);
    }

    /// Returns the next event for those who estimate bandwidth by what becomes of packets, until `None`.
    pub fn poll_path_event(&mut self) -> Option<PathEvent> {
        self.outputs.pop_event()
    }

    /// Sets whether such events are kept.
    pub const fn enable_path_events(&mut self, is_enabled: bool) {
        self.outputs.keep_events(is_enabled);
    }

    /// Sets what the path is like.
    pub const fn set_outlook(&mut self, outlook: PathOutlook) {
        self.path.outlook = outlook;
    }

    /// The path is no longer than it was before it was last found to be.
    pub fn on_path_shrank(&mut self, now: Instant) {
        self.timeline.on_path_shrank(now);
    }

    /// Every delay is longer by `shift` from now on.
    pub fn on_path_grew(&mut self, now: Instant, shift: Duration) {
        self.timeline.on_path_grew(now, shift);
        self.path.delay.raise(shift);
    }

    /// After every event: delivers what is due, requests ahead, passes on what is to be requested.
    fn settle(&mut self, now: Instant) {
        self.deliver_due(now);
        self.request_ahead(now);
        self.request_queued(now);
    }

    fn clear(&mut self) {
        self.assembler.clear();
        self.recovery.restart();
        self.outputs.push(Output::WithdrawAll);
    }
}
