//! When samples are requested.
//!
//! ```text
//!                 Interest leaves                                    sample arrives
//!  namecast  ───────────┼──── DRD + margin before the sample clock says ───┼──▶
//!  by gaps   a slot of λ_p is free: at once
//! ```

use core::time::Duration;

use namecast_units::{ByteSize, Instant};

use crate::names::SampleClass;

use super::super::assembler::{Asked, Assembler};
use super::super::order::SampleKey;
use super::super::pipeline::demand;
use super::super::repair::{Recovery, Times};
use super::super::synchroniser::{FirstSegment, State};
use super::super::timeline::CLOCK_WAS_SET;
use super::Schedule;

/// How long, beyond one more DRD, samples are requested by the clock alone before the first has come.
const RUN_ON: Duration = Duration::from_millis(100);

impl Schedule {
    /// Returns when a sample that does not exist yet may arrive at the soonest.
    fn soonest(&self, now: Instant, key: SampleKey, samples: &Assembler) -> Instant {
        let in_turn = self.pipeline.expected_at(key.0, key.1);
        let by_clock = self.published_at(key, samples);
        let by_clock = by_clock.map(|at| self.timeline.earliest(now, at));
        // Whatever clocks say, it is not long after it should follow the newest.
        by_clock.map_or(in_turn, |at| at.min(in_turn + self.period))
    }

    /// Returns when a sample could be here at the earliest, by what is known of its publication.
    pub(in crate::consumer) fn available_at(
        &self,
        now: Instant,
        key: SampleKey,
        samples: &Assembler,
    ) -> Option<Instant> {
        let by_clock = self.published_at(key, samples);
        let by_clock = by_clock.map(|at| self.timeline.earliest(now, at));
        // A publisher's clock that was set says nothing until the base has followed.
        match by_clock.filter(|at| now.since(*at) < CLOCK_WAS_SET) {
            Some(available_at) => Some(available_at),
            None if self.is_published(key, samples) => None,
            None => Some(self.pipeline.expected_at(key.0, key.1)),
        }
    }

    /// Returns the time before a sample's arrival at best that its Interest must leave: DRD, a margin for what varies, and
    /// `hedging` for an Interest that is sent twice.
    pub(in crate::consumer) fn ahead_by(&self, now: Instant, hedging: Duration) -> Duration {
        self.path.delay.floor(now) + self.synchroniser.margin(now) + hedging
    }

    /// λ: samples that may be in flight, by the gaps between arrivals; else those that need to be, ⌈(DRD + margin)/T⌉.
    pub(in crate::consumer) fn interest_lead(&self, now: Instant, hedging: Duration) -> u64 {
        let needed = || demand(self.ahead_by(now, hedging), Duration::ZERO, self.period);
        self.synchroniser.lead().unwrap_or_else(needed)
    }

    /// Returns an Interest's lifetime: long enough for the sample to appear, twice over, within what producers keep.
    pub(in crate::consumer) fn lifetime(
        &self,
        now: Instant,
        class: SampleClass,
        hedging: Duration,
    ) -> Duration {
        let delay = self.ahead_by(now, hedging);
        let lead = u32::try_from(self.pipeline.lead(class, delay)).unwrap_or(u32::MAX);
        let interval = match class {
            SampleClass::Key => self.key_interval,
            SampleClass::Delta => 1,
        };
        let wait = self.period.saturating_mul(interval);
        let lifetime = wait.saturating_mul(lead).saturating_mul(2) + delay;
        // Whole milliseconds are all that an Interest can say.
        Duration::from_millis(u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX))
            .clamp(*self.lifetime.start(), *self.lifetime.end())
    }

    /// Moves the pipeline on past samples that should be here, although nothing of them came, and forgets when the next sample
    /// is to be requested.
    pub(in crate::consumer) fn pass_unseen(
        &mut self,
        now: Instant,
        samples: &Assembler,
        recovery: &Recovery,
    ) {
        self.pipeline.clear_wake();
        let most = recovery.profile().max_unseen();
        let moment = self.moment(now);
        if most == 0 || !moment.is_alive {
            return;
        }
        for class in SampleClass::ALL {
            let Some(newest) = self.pipeline.newest(class) else {
                continue;
            };
            let known = self.pipeline.assumed(class).max(newest);
            for sequence in known.saturating_add(1)..=newest.saturating_add(most) {
                let times = self.times(now, (class, sequence), samples);
                let is_due = recovery.due_at(&moment, &times) <= now;
                if times.earliest.is_none() || !is_due {
                    break;
                }
                self.pipeline.assume(class, sequence);
            }
        }
    }

    /// Takes the next sample of `class` to request now. `None` if none is: when the next one is due is remembered.
    pub(in crate::consumer) fn take_next(
        &mut self,
        now: Instant,
        class: SampleClass,
        samples: &Assembler,
        hedging: Duration,
    ) -> Option<u64> {
        let (sequence, at) = self.next_to_request(now, class, samples, hedging)?;
        if at > now {
            self.pipeline.wake_by(at);
            return None;
        }
        self.pipeline.pop(class);
        Some(sequence)
    }

    /// Returns the next sample of `class`, and when to request it; `None` while it would be too far ahead.
    fn next_to_request(
        &self,
        now: Instant,
        class: SampleClass,
        samples: &Assembler,
        hedging: Duration,
    ) -> Option<(u64, Instant)> {
        let sequence = self.pipeline.peek(class)?;
        let key = (class, sequence);
        if self.is_left_to_another(key) {
            return None;
        }
        if self.handover.allowance().is_some() {
            return Some((sequence, self.soonest(now, key, samples)));
        }
        let ahead = self.pipeline.ahead(class);
        let is_clocked = class == self.pipeline.clocked();
        if let Some(has_free_slot) = self.synchroniser.has_free_slot() {
            let may = if is_clocked { has_free_slot } else { ahead < 1 };
            return may.then_some((sequence, now));
        }
        if self.pipeline.newest(class).is_some_and(|n| sequence <= n) {
            return Some((sequence, now));
        }
        let before = self.ahead_by(now, hedging);
        if !is_clocked {
            let may = ahead < self.pipeline.lead(class, before);
            let at = match self.published_at(key, samples) {
                Some(_) => self.soonest(now, key, samples).saturating_sub(before),
                None => now,
            };
            return may.then_some((sequence, at));
        }
        let is_chasing = self.synchroniser.state() == State::Chasing;
        if is_chasing && self.initial_lead.is_some_and(|first| ahead < first) {
            return Some((sequence, now));
        }
        // Until the first has come, nothing else moves the pipeline on.
        let run_on = match is_chasing {
            true => self.path.delay.estimate(now) + RUN_ON,
            false => Duration::ZERO,
        };
        let most = self.pipeline.lead(class, before + run_on);
        let at = self.soonest(now, key, samples).saturating_sub(before);
        (ahead < most).then_some((sequence, at))
    }

    /// Passes over a delta sample if the allowance has not sufficed for those before it: Interests of more than a sample
    /// period, for `waiting`, have not left. Key samples never are passed over. Returns whether it is.
    pub(in crate::consumer) fn passes_over(
        &mut self,
        (class, sequence): SampleKey,
        waiting: ByteSize,
    ) -> bool {
        let allowance = self.handover.allowance();
        let Some(allowance) = allowance.filter(|_| class == SampleClass::Delta) else {
            return false;
        };
        let newest = self.pipeline.newest(class).unwrap_or(sequence);
        // Of a stream that stands still, no more than a jump is passed over.
        let is_near = sequence.saturating_sub(newest) <= self.max_jump;
        let is_behind = waiting > allowance.rate * self.period && is_near;
        if is_behind {
            // Nothing of it will come, and others must not wait for that.
            self.pipeline.assume(class, sequence);
        }
        is_behind
    }

    /// Begins with a sample. Returns whether it is requested before it is known to exist.
    pub(in crate::consumer) fn on_begun(&mut self, key: SampleKey) -> bool {
        let newest = self.pipeline.newest(key.0);
        let asked_ahead = newest.is_none_or(|newest| key.1 > newest);
        if asked_ahead || self.goes_by_gaps() {
            self.synchroniser.on_asked(key);
        }
        asked_ahead
    }

    /// Records that the first Interest for the lead segment of a sample has left, which was requested ahead.
    pub(in crate::consumer) fn on_lead_sent(
        &mut self,
        now: Instant,
        times: &Times,
        samples: &Assembler,
    ) {
        // One that left later than planned, or before there was a clock to plan by, shows nothing of the path.
        let key = times.key;
        if times.earliest.is_some() && key.0 == self.pipeline.clocked() {
            let floor = self.path.delay.floor(now);
            let latest = self.soonest(now, key, samples).saturating_sub(floor);
            if latest > now {
                self.synchroniser.on_left(key.1, latest.since(now));
            }
        }
    }

    /// Records that a sample is no longer waited for. Returns whether it was.
    pub(in crate::consumer) fn on_gone(&mut self, key: SampleKey) -> bool {
        self.synchroniser.on_gone(key)
    }

    /// Records the first segment of a sample for which [`on_gone`](Self::on_gone) returned true.
    pub(in crate::consumer) fn on_first_segment(
        &mut self,
        now: Instant,
        first: &FirstSegment,
        hedging: Duration,
    ) {
        let lead = self.interest_lead(now, hedging);
        self.synchroniser.on_first_segment(now, first, lead);
    }

    /// Returns the time that Data took which existed when it was requested, as all does that an allowance is for. Those that are
    /// requested ahead come one behind the other, so that only a lead segment's time shows queues.
    pub(in crate::consumer) fn plain_round_trip(
        &self,
        now: Instant,
        key: SampleKey,
        asked: &Asked,
        samples: &Assembler,
    ) -> Option<Duration> {
        self.handover.allowance()?;
        let published_at = self.published_at(key, samples)?;
        let soonest = self.timeline.earliest(now, published_at);
        (asked.attempts == 1 && soonest <= asked.last_at).then(|| now.since(asked.last_at))
    }
}
