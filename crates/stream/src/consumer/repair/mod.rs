//! Repairs samples that lost segments: notices what is missing, decides what to ask for, insures Interests.

mod across;
mod config;
mod loss;
mod odds;
mod paper;
mod patience;
mod plan;
mod progress;
mod retransmit;

use std::cmp::Reverse;

use core::time::Duration;

use namecast_units::{Instant, Timestamp};

use crate::names::{SampleClass, SegmentId, SegmentKind};
use crate::rate::Loss;

use super::Consumer;
use super::assembly::{Asked, Assembly, Slot};
use super::claims::FEW;
use super::clock::SampleClock;
use super::order::SampleKey;
use super::window::WindowedMinimum;

use loss::LossEstimator;
use patience::{Patience, Room};
pub(super) use plan::LONG_QUEUE;
use plan::Outlook;

pub(super) use across::Groups;

pub use config::{ParseRecoveryError, RecoveryConfig, RecoveryProfile};

/// Bounds of the margin after the time at which a sample should be here.
const LEAST_MARGIN: Duration = Duration::from_millis(3);
/// The margin before anything was seen.
const FIRST_MARGIN: Duration = Duration::from_millis(10);
/// Bounds of the time from an Interest to another one that makes up for its loss: beyond what forwarders hold back
/// (NFD: 10 ms, then 20 ms), and long enough for a burst of losses to end.
const BURST: (Duration, Duration) = (Duration::from_millis(25), Duration::from_millis(40));
/// Loss to reckon with once anything is missing.
const LEAST_LOSS: f64 = 0.01;
/// Below this loss nothing is asked for in advance.
const CLEAN: f64 = 0.001;
/// Samples that may be taken for published although nothing of them came, beyond those asked for ahead.
const MOST_UNSEEN: u64 = 8;

/// Name of a lead.
const LEAD: (SegmentKind, u64) = (SegmentKind::Data, 0);

/// What a consumer knows of losses.
#[derive(Clone, Debug)]
pub(super) struct Recovery {
    pub(super) clock: SampleClock,
    losses: LossEstimator,
    /// Of Interests alone, as far as insured ones show it.
    interests: LossEstimator,
    /// The most by which segments of key and delta samples came after the earliest time lately (a minimum in reverse).
    lags: [WindowedMinimum<Reverse<Duration>>; 2],
    /// The most by which samples were published after the time that the clock told lately: encoders do not keep time.
    unpunctual: WindowedMinimum<Reverse<Duration>>,
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
            clock: SampleClock::new(period, key_interval),
            losses: LossEstimator::default(),
            interests: LossEstimator::default(),
            lags: spans.map(window),
            unpunctual: window((key_period * 2).max(Duration::from_secs(2))),
            progress: progress::Progress::default(),
            patience: Patience::default(),
        }
    }

    /// Takes over what `other` knows of the way.
    pub(super) fn learn_from(&mut self, other: &Self) {
        let clock = self.clock;
        *self = Self {
            clock,
            ..other.clone()
        };
    }
}

impl Consumer {
    pub(super) fn follows_paper(&self) -> bool {
        self.config.recovery.profile == RecoveryProfile::Paper
    }

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
            match self.follows_paper() {
                true => self.repair_like_paper(now, key),
                false => self.repair(now, key),
            }
        }
    }

    /// When `published_at` could be here at the earliest.
    pub(super) fn earliest(&self, now: Instant, published_at: Timestamp) -> Instant {
        let base = self.base.estimate(now).or(self.playout.base);
        let base = base.unwrap_or_else(|| self.playout.delay(now, published_at));
        self.playout.arrival(published_at, base)
    }

    /// When a sample was or will be published, by its lead or by the stream's clock.
    pub(super) fn published_at(&self, key: SampleKey) -> Option<Timestamp> {
        let lead = self.samples.get(&key).and_then(Assembly::lead);
        let told = lead.map(|lead| lead.header().published_at());
        told.or_else(|| self.recovery.clock.published_at(key.0, key.1))
    }

    /// When a sample could be here at the earliest.
    fn expected_at(&self, now: Instant, key: SampleKey) -> Instant {
        match self.published_at(key) {
            Some(published_at) => self.earliest(now, published_at),
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

    /// When what was asked for of a sample before it existed should be here, if it is not lost.
    pub(super) fn due_at(&self, now: Instant, key: SampleKey) -> Instant {
        let wait = self.wait(now, self.margin(now, key.0));
        self.expected_at(now, key) + wait + self.unpunctuality(now, key)
    }

    /// By how much a sample of which nothing is known may be published after its time.
    fn unpunctuality(&self, now: Instant, key: SampleKey) -> Duration {
        let is_seen = self.samples.get(&key).and_then(Assembly::lead).is_some();
        let late = self.recovery.unpunctual.minimum(now).filter(|_| !is_seen);
        late.map_or(Duration::ZERO, |late| late.0 * 5 / 4)
    }

    /// How long what is late is waited for, from the earliest time on: for `margin`, or what links take that repeat it.
    fn wait(&self, now: Instant, margin: Duration) -> Duration {
        let wait = self.recovery.patience.wait(now, self.room(now));
        wait.map_or(margin, |wait| wait.max(margin))
    }

    /// Whether copies of a sample's lead are asked for before the lead itself is again. To find out by a key sample would risk
    /// all that needs it.
    fn prefers_copies(&self, (class, sequence): SampleKey) -> bool {
        let patience = &self.recovery.patience;
        let may_test = class == SampleClass::Delta || self.source.is_standalone();
        patience.is_trusted() || may_test && patience.is_test(sequence)
    }

    /// How long after the earliest time what is late may be waited for.
    fn room(&self, now: Instant) -> Room {
        let deadline = self.playout.target.saturating_sub(self.decode_lead);
        let round = self.delay.estimate(now) + LEAST_MARGIN;
        Room {
            last_call: deadline.saturating_sub(round),
            deadline,
        }
    }

    /// Whether something came lately. A stream that stands still is not asked for again and again.
    fn is_alive(&self, now: Instant, round_trip: Duration) -> bool {
        let patience = round_trip + self.source.rate.period() * 4;
        self.last_arrival.is_none_or(|last| now <= last + patience)
    }

    /// Reckons with the loss of what was asked for now that a lead told of it.
    pub(super) fn hedge_missing(&mut self, now: Instant, key: SampleKey) {
        // Where segments are asked for one by one, all of them in one burst of losses are few; where links repeat them, none.
        let is_clean = self.recovery.losses.share() < CLEAN;
        if is_clean || self.recovery.patience.is_trusted() {
            return;
        }
        let hedge_at = self.outlook(now, key).hedge_at();
        if let Some((at, sample)) = hedge_at.zip(self.samples.get_mut(&key)) {
            sample.hedge_at = Some(sample.hedge_at.map_or(at, |before| before.min(at)));
            sample.wake_by(at);
        }
    }

    fn outlook(&self, now: Instant, key: SampleKey) -> Outlook<'_> {
        let expected_at = self.expected_at(now, key);
        let margin = self.margin(now, key.0);
        let wait = self.wait(now, margin);
        let round_trip = self.delay.timeout(now, 0);
        let deadline = match self.published_at(key) {
            Some(published_at) => self.playout.render_at(now, published_at),
            None => expected_at + self.playout.target,
        };
        Outlook {
            now,
            due_at: expected_at + wait + self.unpunctuality(now, key),
            expected_at,
            margin,
            wait,
            repeats: self.recovery.patience.is_trusted(),
            prefers_copies: self.prefers_copies(key),
            queueing: self.outlook.queueing,
            jitter: self.outlook.jitter,
            progress: self.progress(),
            delay: self.delay.estimate(now),
            least_delay: self.least_delay(now),
            round_trip,
            hedge_after: self.burst(),
            deadline,
            hurry_until: deadline + self.late_tolerance(),
            is_alive: self.is_alive(now, round_trip),
            is_published: self.is_published(key),
            losses: self.recovery.losses.losses(LEAST_LOSS).of_round_trip(),
            most_attempts: self.config.most_attempts,
            config: &self.config.recovery,
        }
    }

    fn repair(&mut self, now: Instant, key: SampleKey) {
        self.insure(now, key);
        self.rebuild(now, key);
        if let Some(until) = self.waits_for_across(now, key) {
            if let Some(sample) = self.samples.get_mut(&key) {
                sample.wake = sample.next_insurance().into_iter().chain([until]).min();
            }
            return;
        }
        let outlook = self.outlook(now, key);
        let Some(sample) = self.samples.get(&key).filter(|s| s.complete.is_none()) else {
            if let Some(sample) = self.samples.get_mut(&key) {
                sample.wake = None;
            }
            return;
        };
        let mut round = outlook.plan(sample);
        if sample.is_doubtful {
            // What may not exist is not worth more.
            round.ask.truncate(FEW);
        }
        for &(kind, index) in &round.lost {
            self.note_lost(now, key, (kind, index));
        }
        if let Some(sample) = self.samples.get_mut(&key) {
            sample.hedge_at = round.hedge_at;
            let insured = sample.next_insurance().into_iter();
            sample.wake = insured.chain(round.next_look).min();
        }
        for &(kind, index) in &round.ask {
            if let Some(slot) = self.slot_mut(key, (kind, index)) {
                slot.is_repair = true;
            }
            self.queue_repair(key, kind, index);
        }
        if round.give_up {
            self.give_up(key);
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

    /// Time from an Interest to the one that insures it, while losses warrant one.
    pub(super) fn insurance(&self) -> Option<Duration> {
        let warranted = !self.follows_paper()
            && !self.recovery.patience.is_trusted()
            && self.loss() >= self.config.recovery.insure_from;
        warranted.then(|| self.burst())
    }

    /// Time after which another Interest is not lost in the same burst: about one sample.
    fn burst(&self) -> Duration {
        let (least, most) = BURST;
        self.source.rate.period().clamp(least, most)
    }

    /// When to insure the Interest for `id` that leaves now; `None` if the second one would come too late to wait for the
    /// segment.
    pub(super) fn insure_at(&self, now: Instant, id: SegmentId) -> Option<Instant> {
        let at = now + self.insurance()?;
        let expected_at = self.expected_at(now, (id.class, id.sequence));
        (at + self.delay.estimate(now) <= expected_at).then_some(at)
    }

    /// Sends Interests of a sample a second time that are due for it.
    fn insure(&mut self, now: Instant, key: SampleKey) {
        let Some(sample) = self.samples.get(&key) else {
            return;
        };
        let due: Vec<_> = sample
            .slots()
            .chain(sample.across())
            .filter(|(_, _, slot)| slot.insure_at.is_some_and(|at| at <= now))
            .map(|(kind, index, _)| (kind, index))
            .collect();
        for (kind, index) in due {
            let Some(slot) = self.slot_mut(key, (kind, index)) else {
                continue;
            };
            slot.insure_at = None;
            if slot.is_missing()
                && let Some(asked) = &mut slot.asked
            {
                asked.is_insured = true;
                self.queue_repair(key, kind, index);
            }
        }
    }

    /// Whether what turns out to be missing of a sample of `class` can still come before its time.
    pub(super) fn has_time_to_repair(&self, now: Instant, class: SampleClass) -> bool {
        let left = (self.playout.target)
            .saturating_sub(self.decode_lead)
            .saturating_sub(self.margin(now, class));
        self.delay.timeout(now, 0) <= left
    }

    /// Parity segments of a sample of `data` segments to ask for ahead: none where a repair round fits before its time,
    /// else as many as make it unlikely that it misses it.
    pub(super) fn parity_ahead(&self, now: Instant, class: SampleClass, data: u32) -> u32 {
        let losses = self.recovery.losses.losses(0.0);
        if losses.share < CLEAN || self.has_time_to_repair(now, class) {
            return 0;
        }
        let most = self.segments.estimate(class).parity;
        (0..most)
            .find(|&more| {
                let (sent, needed) = ((data + more) as usize, data as usize);
                losses.fewer(sent, needed) <= self.config.recovery.miss
            })
            .unwrap_or(most)
    }

    /// Moves the pipeline on past samples that should be here, although nothing of them came.
    pub(super) fn pass_unseen(&mut self, now: Instant) {
        if self.follows_paper() || !self.is_alive(now, self.delay.timeout(now, 0)) {
            return;
        }
        for class in SampleClass::ALL {
            let Some(newest) = self.pipeline.newest(class) else {
                continue;
            };
            let known = self.pipeline.assumed(class).max(newest);
            for sequence in known.saturating_add(1)..=newest.saturating_add(MOST_UNSEEN) {
                let key = (class, sequence);
                if self.published_at(key).is_none() || self.due_at(now, key) > now {
                    break;
                }
                self.pipeline.assume(class, sequence);
            }
        }
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
            let from = self.earliest(now, published_at).max(asked.last_at + delay);
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
        (class, sequence): SampleKey,
        header: &crate::sample::SampleHeader,
    ) {
        let told = self.recovery.clock.published_at(class, sequence);
        if let Some(told) = told {
            let late = header.published_at().since(told);
            let most = self.source.rate.period() * 2;
            self.recovery.unpunctual.push(now, Reverse(late.min(most)));
        }
        self.recovery.clock.on_lead(class, sequence, header);
        self.note_group((class, sequence), header);
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

    /// Forgets the numbering, which is another one now.
    pub(super) fn forget_clock(&mut self) {
        let rate = self.source.rate.period();
        self.recovery.clock = SampleClock::new(rate, self.source.key_interval);
    }
}
