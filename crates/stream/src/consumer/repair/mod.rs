//! Decides about samples that lost segments: what is missing, what to request for it, which Interests to hedge.
//!
//! ```text
//!   what came, and when ──▶ Knowledge: losses, lags, reordering, what queues, what a link repeats
//!                                 │
//!   Moment, Times, sample ──▶ Repair::decide ──▶ Verdict: lost, request, give up, look again
//! ```
//!
//! It is given a moment and a sample as plain values, and answers with such. The consumer carries it out.
//!
//! What comments on constants call measured is in `docs/journal/repair.md`: each was halved and doubled over lossy links in virtual time.

mod config;
mod inter_frame;
mod knowledge;
mod link_retransmission;
mod loss;
mod namecast;
mod odds;
mod plan;
mod progress;
mod retransmit;
mod rtsd;

use core::time::Duration;

use namecast_units::Instant;

use crate::names::{SampleClass, SegmentKind};
use crate::path::{PathOutlook, PathView, Timer};
use crate::rate::Loss;

use super::assembler::{Asked, Assembly, Name, Plan, Policy, SegmentCounts};
use super::config::Config;
use super::order::SampleKey;
use super::types::Source;

pub(super) use inter_frame::BadShard;
use inter_frame::Groups;
use knowledge::Knowledge;

pub use config::{RecoveryConfig, RecoveryProfile};
pub(super) use plan::LONG_QUEUE;

/// Least margin after the time at which a sample should be here: a choice. Measured:
/// half of it makes the producer send 5 % less where time is short and loses 0.1 % of frames; double costs up to 1.6 %.
const MIN_MARGIN: Duration = Duration::from_millis(3);
/// Loss below which nothing is requested in advance: less than one packet in the fifty samples that are remembered. Measured: half
/// and double change Data over reliable links by 0.1 %, and nothing else.
const CLEAN: f64 = 0.001;
/// Name of a lead.
const LEAD: Name = (SegmentKind::Data, 0);

/// What the profiles decide differently. Sealed: there are no others, and nothing outside of this module asks which one is in use.
pub(super) trait Repair: Sync {
    /// Returns the segments of a sample of `class` to request before it exists, of which as many are reckoned with as `estimate` says.
    fn ahead(
        &self,
        recovery: &Recovery,
        moment: &Moment,
        class: SampleClass,
        estimate: SegmentCounts,
    ) -> SegmentCounts;

    /// Returns the copies of a lead that may be requested.
    fn lead_copies(&self, config: &RecoveryConfig) -> usize;

    /// Returns whether inter-frame FEC is made use of.
    fn uses_inter_frame(&self, config: &RecoveryConfig) -> bool;

    /// Returns the time from an Interest to the one that hedges it, while losses warrant one.
    fn hedge_delay(&self, recovery: &Recovery) -> Option<Duration>;

    /// Returns whether Interests leave no earlier than the producer spaces what they request.
    fn is_paced(&self) -> bool;

    /// Returns how far leads are trusted.
    fn policy(&self) -> Policy;

    /// Returns the Interests for samples that nobody will show, at most, for another rung to wait for the next key sample.
    fn max_in_vain(&self) -> usize;

    /// Returns the samples that may be taken for published although nothing of them came, beyond the newest one seen: the pipeline moves on
    /// past those that should be here.
    fn max_unseen(&self) -> u64;

    /// Returns when to look at a sample again of which something may be missing.
    fn check_at(&self, recovery: &Recovery, moment: &Moment, times: &Times) -> Instant;

    /// Returns when to look at a sample again for an Interest that leaves now: its answer takes until `due`, its timer until `retry_at`.
    fn check_sent_at(&self, due: Instant, retry_at: Instant) -> Instant;

    /// Decides about a sample that is not whole, and whose time to be looked at has come.
    fn decide(
        &self,
        recovery: &Recovery,
        moment: &Moment,
        times: &Times,
        sample: &Assembly,
    ) -> Verdict;

    /// Returns whether an Interest whose answer should be here is taken for lost before its lifetime is over.
    fn has_timers(&self) -> bool {
        true
    }

    /// Returns when to reckon with the loss of what was requested now that a lead reported it.
    fn hedge_round_at(
        &self,
        recovery: &Recovery,
        moment: &Moment,
        times: &Times,
    ) -> Option<Instant>;
}

/// What is known of the path now, and how much time there is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub now: Instant,
    /// Data that exists takes this long.
    pub delay: Duration,
    /// And at least this long, if that is known.
    pub least: Option<Duration>,
    /// How long after an Interest its answer is given up.
    pub timer: Timer,
    /// What queues on the path, and how delays vary.
    pub path: PathOutlook,
    /// Time from the earliest possible arrival to showing.
    pub target: Duration,
    /// The same to the moment at which a sample leaves.
    pub time_to_leave: Duration,
    /// How long after its time a sample is still waited for.
    pub tolerance: Duration,
    /// Something of the stream came lately: it is not all of it that is gone.
    pub is_alive: bool,
    /// Nothing is to be played: what comes is older than need be, or is of a rung on trial.
    pub is_held: bool,
}

impl Moment {
    /// What `path` tells of itself; of the stream, nothing.
    pub(super) fn new(now: Instant, path: &PathView) -> Self {
        Self {
            now,
            delay: path.delay.estimate(now),
            least: path.delay.least(now),
            timer: path.delay.timer(now),
            path: path.outlook,
            target: Duration::ZERO,
            time_to_leave: Duration::ZERO,
            tolerance: Duration::ZERO,
            is_alive: true,
            is_held: false,
        }
    }

    /// Returns the time after which what is requested now should be here.
    pub(super) fn round_trip(&self) -> Duration {
        self.timer.after(0)
    }

    /// Returns the least that Data takes which exists: what it takes now may be for queues.
    fn min_delay(&self) -> Duration {
        self.least.unwrap_or(self.delay)
    }
}

/// What is known of one sample's time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub key: SampleKey,
    /// When it could be here at the earliest, by its lead or by the stream's clock.
    pub earliest: Option<Instant>,
    /// When it should be here as it follows the newest one that came; in the past if it is published.
    pub in_turn: Instant,
    /// When it is to be shown, as far as its publication is known.
    pub render_at: Option<Instant>,
    /// By how much it may be published after its time.
    pub unpunctuality: Duration,
    /// It is known to be published.
    pub is_published: bool,
    /// Its verified lead is here.
    pub has_lead: bool,
    /// From one sample to the next.
    pub period: Duration,
}

impl Times {
    /// Returns when it could be here at the earliest.
    pub(super) fn expected_at(&self) -> Instant {
        // A delta sample after a key sample comes one period later than the one before promised.
        self.earliest.unwrap_or(self.in_turn + self.period)
    }
}

/// A segment that came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Came<'a> {
    pub name: Name,
    /// The Interest that it answers.
    pub asked: &'a Asked,
    /// Nothing but Interests that left before it existed has been sent for it.
    pub is_first: bool,
}

/// A segment that did not come when it should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lost {
    pub name: Name,
    /// How that shows.
    pub loss: Loss,
    /// Nothing but Interests that left before it existed has been sent for it, by which losses are measured.
    pub is_first: bool,
}

/// What to do about one sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Verdict {
    pub lost: Vec<Lost>,
    /// Segments to request.
    pub request: Vec<Name>,
    /// A segment that is needed was requested too often.
    pub give_up: bool,
    /// What the sample remembers of it.
    pub plan: Plan,
}

/// What a consumer knows of losses, and does about them.
#[derive(Clone)]
pub(super) struct Recovery {
    profile: &'static dyn Repair,
    config: RecoveryConfig,
    is_standalone: bool,
    period: Duration,
    /// Retransmission checkpoint before the deadline, in DRDs.
    checkpoint: f64,
    max_attempts: u32,
    max_segments: u32,
    knowledge: Knowledge,
    groups: Groups,
}

impl Recovery {
    /// Knows nothing of losses yet.
    pub(super) fn new(config: &Config, source: &Source) -> Self {
        let profile = config.recovery.profile.repair();
        let is_used = profile.uses_inter_frame(&config.recovery);
        let period = source.rate.period();
        Self {
            profile,
            config: config.recovery,
            is_standalone: source.is_standalone(),
            period,
            checkpoint: config.checkpoint,
            max_attempts: config.max_attempts,
            max_segments: config.max_segments,
            knowledge: Knowledge::new(period, source.key_interval),
            groups: Groups::new(source.inter_frame.filter(|_| is_used)),
        }
    }

    /// Forgets the samples in hand.
    pub(super) fn restart(&mut self) {
        self.groups.clear();
    }

    /// Takes over what `other` knows of the path.
    pub(super) fn learn_from(&mut self, other: &Self) {
        self.knowledge = other.knowledge.clone();
        self.groups.learn_from(&other.groups);
    }

    /// Returns what the profile decides.
    pub(super) const fn profile(&self) -> &'static dyn Repair {
        self.profile
    }

    /// Returns the copies of a lead that may be requested.
    pub(super) fn lead_copies(&self) -> usize {
        self.profile.lead_copies(&self.config)
    }

    /// Returns the share of segments lost lately.
    pub(super) fn loss(&self) -> f64 {
        self.knowledge.loss().max(self.groups.loss())
    }

    /// Returns the segments of a sample of `class` to request before it exists.
    pub(super) fn ahead(
        &self,
        moment: &Moment,
        class: SampleClass,
        estimate: SegmentCounts,
    ) -> SegmentCounts {
        self.profile.ahead(self, moment, class, estimate)
    }

    /// Returns the time from an Interest to the one that hedges it, while losses warrant one.
    pub(super) fn hedge_delay(&self) -> Option<Duration> {
        self.profile.hedge_delay(self)
    }

    /// Returns when to hedge an Interest that leaves now; `None` if the second one would come too late to wait for the segment.
    pub(super) fn hedge_at(&self, moment: &Moment, times: &Times) -> Option<Instant> {
        let at = moment.now + self.hedge_delay()?;
        (at + moment.delay <= times.expected_at()).then_some(at)
    }

    /// Returns when to look at a sample again of which something may be missing.
    pub(super) fn check_at(&self, moment: &Moment, times: &Times) -> Instant {
        self.profile.check_at(self, moment, times)
    }

    /// Decides about a sample that is not whole.
    pub(super) fn decide(&self, moment: &Moment, times: &Times, sample: &Assembly) -> Verdict {
        self.profile.decide(self, moment, times, sample)
    }

    /// Returns when to reckon with the loss of what was requested now that a lead reported it.
    pub(super) fn hedge_round_at(&self, moment: &Moment, times: &Times) -> Option<Instant> {
        self.profile.hedge_round_at(self, moment, times)
    }

    /// Returns when what was requested of a sample before it existed should be here, if it is not lost.
    pub(super) fn due_at(&self, moment: &Moment, times: &Times) -> Instant {
        let margin = self.knowledge.margin(moment, times.key.0);
        let wait = self.knowledge.wait(moment, margin);
        times.expected_at() + wait + times.unpunctuality
    }

    /// Returns the time that packets are given to overtake each other.
    pub(super) fn reordering(&self, moment: &Moment) -> Duration {
        self.knowledge.reordering(moment)
    }

    /// Returns whether what turns out to be missing of a sample of `class` can still come before its time.
    fn has_time_to_repair(&self, moment: &Moment, class: SampleClass) -> bool {
        let margin = self.knowledge.margin(moment, class);
        moment.round_trip() <= moment.time_to_leave.saturating_sub(margin)
    }

    /// Records that something came that nobody waited for.
    pub(super) const fn on_unwanted(&mut self, now: Instant) {
        self.knowledge.on_unwanted(now);
    }

    /// Learns by how much packets overtake each other, from one that came after it was thought lost.
    pub(super) fn learn_reordering(
        &mut self,
        moment: &Moment,
        asked: &Asked,
        thought_lost: Instant,
    ) {
        self.knowledge.learn_reordering(moment, asked, thought_lost);
    }

    /// Learns from when a segment came. Returns whether it came by itself, and was not lost.
    pub(super) fn on_segment(&mut self, moment: &Moment, times: &Times, came: &Came<'_>) -> bool {
        let by_itself = self.knowledge.learn_lag(moment, times, came);
        self.knowledge.learn_progress(moment, times, came.asked);
        by_itself
    }

    /// Records that a segment for which nothing else was sent did not come when it should have.
    pub(super) fn on_first_lost(&mut self) {
        self.knowledge.on_first_lost();
    }

    /// Records whether the first of two Interests for a lead was lost.
    pub(super) fn on_hedged(&mut self, first_was_lost: bool) {
        self.knowledge.on_hedged(first_was_lost);
    }

    /// Learns from what became of the segments of a sample that is whole.
    pub(super) fn on_whole(&mut self, moment: &Moment, times: &Times, sample: &Assembly) {
        self.knowledge.on_whole(moment, times, sample);
    }
}
