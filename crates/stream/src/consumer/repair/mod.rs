//! Repairs samples that lost segments: notices what is missing, decides what to ask for, insures Interests.

mod across;
mod config;
mod loss;
mod namecast;
mod odds;
mod patience;
mod plan;
mod progress;
mod retransmit;
mod rtsd;

use std::cmp::Reverse;

use core::time::Duration;

use namecast_units::{Instant, Timestamp, WindowedMinimum};

use crate::names::{SampleClass, SegmentId, SegmentKind};
use crate::rate::Loss;

use super::Consumer;
use super::assembly::{Asked, Assembly, Slot};
use super::order::SampleKey;
use super::segments::SegmentCounts;

use loss::LossEstimator;
use patience::{Patience, Room};
pub(super) use plan::LONG_QUEUE;

pub(super) use across::Groups;

pub use config::{ParseRecoveryError, RecoveryConfig, RecoveryProfile};

/// Bounds of the margin after the time at which a sample should be here.
const LEAST_MARGIN: Duration = Duration::from_millis(3);
/// The margin before anything was seen.
const FIRST_MARGIN: Duration = Duration::from_millis(10);
/// Bounds of the time that packets are given to overtake each other before they were seen to do so.
const LEAST_REORDERING: Duration = Duration::from_millis(2);
const USUAL_REORDERING: Duration = Duration::from_millis(10);
/// Below this loss nothing is asked for in advance.
const CLEAN: f64 = 0.001;
/// Name of a lead.
const LEAD: (SegmentKind, u64) = (SegmentKind::Data, 0);

/// What the profiles decide differently. Sealed: there are no others, and nothing outside of this module asks which one is in use.
pub(super) trait Repair: Sync {
    /// Segments of a sample of `class` to request before it exists.
    fn ahead(&self, consumer: &Consumer, now: Instant, class: SampleClass) -> SegmentCounts;

    /// Copies of a lead that may be requested.
    fn lead_copies(&self, config: &RecoveryConfig) -> usize;

    /// Whether parity across samples is made use of.
    fn uses_across(&self, config: &RecoveryConfig) -> bool;

    /// Time from an Interest to the one that insures it, while losses warrant one.
    fn insurance(&self, consumer: &Consumer) -> Option<Duration>;

    /// Whether Interests leave no earlier than the producer spaces what they request.
    fn is_paced(&self) -> bool;

    /// Whether segments of `kind` that nobody requested yet are requested as soon as a lead reports them.
    fn requests_reported(&self, kind: SegmentKind) -> bool;

    /// Whether a lead that reports more segments than expected has to prove it.
    fn doubts_claims(&self) -> bool;

    /// Interests for samples that nobody will show, at most, for another rung to wait for the next key sample.
    fn most_in_vain(&self) -> usize;

    /// When to look at a sample again of which something may be missing.
    fn check_at(&self, consumer: &Consumer, now: Instant, key: SampleKey) -> Instant;

    /// When to look at a sample again for an Interest that leaves now: its answer takes until `due`, its timer until `retry_at`.
    fn check_sent_at(&self, due: Instant, retry_at: Instant) -> Instant;

    /// Looks at a sample whose time has come, and requests what a round takes.
    fn check(&self, consumer: &mut Consumer, now: Instant, key: SampleKey);

    /// Reckons with the loss of what was requested now that a lead reported it.
    fn hedge_missing(&self, consumer: &mut Consumer, now: Instant, key: SampleKey);

    /// Moves the pipeline on past samples that should be here, although nothing of them came.
    fn pass_unseen(&self, consumer: &mut Consumer, now: Instant);
}

/// What a consumer knows of losses.
#[derive(Clone, Debug)]
pub(super) struct Recovery {
    losses: LossEstimator,
    /// Of Interests alone, as far as insured ones show it.
    interests: LossEstimator,
    /// The most by which segments of key and delta samples came after the earliest time lately (a minimum in reverse).
    lags: [WindowedMinimum<Reverse<Duration>>; 2],
    pub(super) progress: progress::Progress,
    patience: Patience,
}

impl Recovery {
    pub(super) fn new(period: Duration, key_interval: u32) -> Self {
        // A key sample comes every second or so: each class remembers a few dozen samples.
        let window = |span| WindowedMinimum::new(span, 10);
        let key_period = period.saturating_mul(key_interval.max(1));
        let spans = [key_period, period].map(|period| (period * 4).max(Duration::from_millis(250)));
        Self {
            losses: LossEstimator::default(),
            interests: LossEstimator::default(),
            lags: spans.map(window),
            progress: progress::Progress::default(),
            patience: Patience::default(),
        }
    }
}

impl Consumer {
    /// Share of segments lost lately.
    pub fn loss(&self) -> f64 {
        let recovery = &self.recovery;
        let leads = self.groups.loss();
        let shares = [recovery.losses.share(), recovery.interests.share(), leads];
        shares.into_iter().fold(0.0, f64::max)
    }

    /// Looks at every sample whose time has come.
    pub(super) fn repair_due(&mut self, now: Instant) {
        let due: Vec<_> = self
            .samples
            .iter()
            .filter(|(_, sample)| sample.wake.is_some_and(|wake| wake <= now))
            .map(|(key, _)| *key)
            .collect();
        for key in due {
            self.repair.check(self, now, key);
        }
    }

    /// When a sample was or will be published, by its lead or by the stream's clock.
    pub(super) fn published_at(&self, key: SampleKey) -> Option<Timestamp> {
        let lead = self.samples.get(&key).and_then(Assembly::lead);
        let told = lead.map(|lead| lead.header().published_at());
        told.or_else(|| self.timeline.published_at(key))
    }

    /// When a sample could be here at the earliest.
    fn expected_at(&self, now: Instant, key: SampleKey) -> Instant {
        match self.published_at(key) {
            Some(published_at) => self.timeline.earliest(now, published_at),
            // A delta sample after a key sample comes one period later than the one before promised.
            None => self.pipeline.expected_at(key.0, key.1) + self.source.rate.period(),
        }
    }

    /// How much later than at the earliest segments come that are not lost.
    fn margin(&self, now: Instant, class: SampleClass) -> Duration {
        let seen = self.recovery.lags[class.index()].minimum(now);
        let margin = seen.map_or(FIRST_MARGIN, |lag| lag.0 * 5 / 4);
        let most = (self.delay.estimate(now) / 2).max(self.progress().ordinary());
        margin.min(most).max(LEAST_MARGIN)
    }

    /// Time that packets are given to overtake each other: what was seen in the last seconds and a quarter, or the usual
    /// time if that is more.
    pub(super) fn reordering(&self, now: Instant) -> Duration {
        let delay = self.delay.estimate(now);
        let usual = (delay / 8).clamp(LEAST_REORDERING, USUAL_REORDERING);
        let seen = self
            .reordering
            .minimum(now)
            .map_or(Duration::ZERO, |seen| seen.0);
        (seen * 5 / 4).min(delay / 2).max(usual)
    }

    /// When what was asked for of a sample before it existed should be here, if it is not lost.
    pub(super) fn due_at(&self, now: Instant, key: SampleKey) -> Instant {
        let wait = self.wait(now, self.margin(now, key.0));
        self.expected_at(now, key) + wait + self.unpunctuality(now, key)
    }

    /// By how much a sample of which nothing is known may be published after its time.
    fn unpunctuality(&self, now: Instant, key: SampleKey) -> Duration {
        let is_seen = self.samples.get(&key).and_then(Assembly::lead).is_some();
        if is_seen {
            return Duration::ZERO;
        }
        self.timeline.unpunctuality(now)
    }

    /// How long what is late is waited for, from the earliest time on: for `margin`, or what links take that repeat it.
    fn wait(&self, now: Instant, margin: Duration) -> Duration {
        let wait = self.recovery.patience.wait(now, self.room(now));
        wait.map_or(margin, |wait| wait.max(margin))
    }

    /// How long after the earliest time what is late may be waited for.
    fn room(&self, now: Instant) -> Room {
        let deadline = self.timeline.time_to_leave();
        let round = self.delay.estimate(now) + LEAST_MARGIN;
        Room {
            last_call: deadline.saturating_sub(round),
            deadline,
        }
    }

    fn slot_mut(&mut self, key: SampleKey, (kind, index): (SegmentKind, u64)) -> Option<&mut Slot> {
        self.samples.get_mut(&key)?.slot_mut(kind, index)
    }

    /// A segment did not come when it should have.
    fn note_lost(&mut self, now: Instant, key: SampleKey, name: (SegmentKind, u64)) {
        let Some(slot) = self.slot_mut(key, name) else {
            return;
        };
        let first = slot.is_first();
        slot.was_lost |= first;
        if first {
            self.recovery.patience.ran_out();
        }
        self.counters.interests_timed_out += u64::from(!first);
        let loss = if first { Loss::Gap } else { Loss::Timeout };
        self.report_loss(now, key, name, loss);
    }

    /// Tells the controller of a loss, once per transmission.
    pub(super) fn report_loss(
        &mut self,
        _now: Instant,
        key: SampleKey,
        name: (SegmentKind, u64),
        loss: Loss,
    ) {
        let asked = self
            .slot_mut(key, name)
            .and_then(|slot| slot.asked.as_mut());
        if let Some(asked) = asked.filter(|asked| !asked.is_lost) {
            asked.is_lost = true;
            let asked_at = asked.last_at;
            self.on_loss(asked_at, loss);
        }
    }

    /// When to insure the Interest for `id` that leaves now; `None` if the second one would come too late to wait for the
    /// segment.
    pub(super) fn insure_at(&self, now: Instant, id: SegmentId) -> Option<Instant> {
        let at = now + self.repair.insurance(self)?;
        let expected_at = self.expected_at(now, (id.class, id.sequence));
        (at + self.delay.estimate(now) <= expected_at).then_some(at)
    }

    /// Whether what turns out to be missing of a sample of `class` can still come before its time.
    fn has_time_to_repair(&self, now: Instant, class: SampleClass) -> bool {
        let left = self
            .timeline
            .time_to_leave()
            .saturating_sub(self.margin(now, class));
        self.delay.timeout(now, 0) <= left
    }

    /// Learns by how much a segment came after the earliest time, unless it was given up before: what is asked for again
    /// may come from a cache nearby, so that its time says nothing. The margin still grows to whatever jitter there is,
    /// since it lies above the greatest lag seen, by a quarter.
    pub(super) fn learn_lag(&mut self, now: Instant, id: SegmentId, asked: &Asked) {
        if self.outlook.queueing > LONG_QUEUE {
            // What comes late was queued; that is no jitter, nor does a link repeat it.
            return;
        }
        let key = (id.class, id.sequence);
        let delay = self.delay.estimate(now);
        let least = self.delay.least(now).unwrap_or_default();
        // Where packets are late, one that comes sooner than it could if it had been asked for again was so, not lost.
        let is_late = self.margin(now, id.class) > LEAST_MARGIN;
        let Some(slot) = self.slot_mut(key, (id.kind, id.index)) else {
            return;
        };
        slot.was_lost &= !is_late || now.since(asked.last_at) * 5 >= least * 2;
        let first_answer = slot.is_first();
        let asked_once = asked.attempts == 1 || asked.is_insured;
        if let Some(published_at) = self.published_at(key).filter(|_| first_answer) {
            let from = self
                .timeline
                .earliest(now, published_at)
                .max(asked.last_at + delay);
            let lag = now.since(from);
            let is_overdue = lag > self.margin(now, id.class);
            let room = self.room(now);
            let patience = &mut self.recovery.patience;
            let tells = (id.kind, id.index) == LEAD || patience.is_trusted();
            match is_overdue {
                true if tells && asked_once => patience.came(now, lag, room),
                true => {}
                false => patience.came_in_time(now),
            }
            // What a link repeats is no jitter.
            if !(is_overdue && self.recovery.patience.is_trusted()) {
                self.recovery.lags[id.class.index()].push(now, Reverse(lag));
            }
        }
    }

    /// Takes note of whether the lead of a sample that is whole came by itself: where it was overdue, and asked for by the names
    /// of its copies alone.
    pub(super) fn note_whole(&mut self, now: Instant, key: SampleKey) {
        let lead = self
            .samples
            .get(&key)
            .and_then(|sample| sample.slots().next());
        let did_not_come = lead
            .is_some_and(|(_, _, slot)| slot.asked.is_some() && slot.is_first() && slot.was_lost);
        if did_not_come {
            let lag = now.since(self.expected_at(now, key));
            let room = self.room(now);
            self.recovery.patience.did_not_come(lag, room);
        }
    }

    /// Takes note of a lead: the clock goes by it.
    pub(super) fn note_lead(
        &mut self,
        now: Instant,
        key: SampleKey,
        header: &crate::sample::SampleHeader,
    ) {
        self.timeline.on_lead(now, key, header);
        self.handover.on_lead(key, header);
    }

    /// Takes note whether the first of two Interests for a lead was lost.
    pub(super) fn note_insured(&mut self, first_was_lost: bool) {
        self.recovery
            .interests
            .observe(core::iter::once(first_was_lost));
    }

    /// Learns from what became of the segments of a sample that is whole.
    pub(super) fn note_losses(&mut self, key: SampleKey) {
        let Some(sample) = self.samples.get(&key) else {
            return;
        };
        let early = sample.data().iter().filter(|slot| slot.is_early);
        let lost: Vec<_> = early.map(|slot| slot.was_lost).collect();
        if !lost.is_empty() {
            self.recovery.losses.observe(lost.into_iter());
        }
    }
}
