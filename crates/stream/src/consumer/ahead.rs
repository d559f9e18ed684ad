//! When to ask for samples that do not exist yet, and what their arrival tells.
//!
//! ```text
//!                 Interest leaves                                    sample arrives
//!  namecast  ───────────┼──── DRD + margin before the sample clock says ───┼──▶
//!  by gaps   a slot of λ_p is free: at once
//! ```

use core::time::Duration;

use namecast_units::Instant;

use crate::names::SampleClass;
use crate::sample::SampleHeader;

use super::Consumer;
use super::order::SampleKey;
use super::synchroniser::{FirstSegment, State};

/// How long, beside one more DRD, samples are asked for by the clock alone before the first has come.
const RUN_ON: Duration = Duration::from_millis(100);

impl Consumer {
    /// Asks for samples whose time has come, while tables have room.
    pub(super) fn ask_ahead(&mut self, now: Instant) {
        self.make_room();
        self.repair.pass_unseen(self, now);
        self.pipeline.wake_none();
        for class in SampleClass::ALL {
            while self.has_room(class) {
                let Some((sequence, at)) = self.next_to_ask(now, class) else {
                    break;
                };
                if at > now {
                    self.pipeline.wake_by(at);
                    break;
                }
                self.pipeline.pop(class);
                if self.passes_over(class, sequence) {
                    continue;
                }
                self.ask_sample(now, class, sequence);
            }
        }
    }

    /// The class of which a sample comes every period, but for key samples in between.
    pub(super) const fn clocked_class(&self) -> SampleClass {
        if self.source.is_standalone() {
            SampleClass::Key
        } else {
            SampleClass::Delta
        }
    }

    /// The next sample of `class`, and when to ask for it; `None` while it would be too far ahead.
    fn next_to_ask(&self, now: Instant, class: SampleClass) -> Option<(u64, Instant)> {
        let sequence = self.pipeline.peek(class)?;
        if self.is_left_to_another(class, sequence) {
            return None;
        }
        if self.handover.allowance().is_some() {
            return Some((sequence, self.soonest(now, (class, sequence))));
        }
        let ahead = self.pipeline.ahead(class);
        let is_clocked = class == self.clocked_class();
        if let Some(has_free_slot) = self.synchroniser.has_free_slot() {
            let may = if is_clocked { has_free_slot } else { ahead < 1 };
            return may.then_some((sequence, now));
        }
        if self.pipeline.newest(class).is_some_and(|n| sequence <= n) {
            return Some((sequence, now));
        }
        let before = self.ahead_by(now);
        if !is_clocked {
            let may = ahead < self.pipeline.lead(class, before);
            let at = match self.published_at((class, sequence)) {
                Some(_) => self.soonest(now, (class, sequence)).saturating_sub(before),
                None => now,
            };
            return may.then_some((sequence, at));
        }
        let config = &self.config.synchroniser;
        let is_chasing = self.synchroniser.state() == State::Chasing;
        if is_chasing && config.initial_lead.is_some_and(|first| ahead < first) {
            return Some((sequence, now));
        }
        // Until the first has come, nothing else moves the pipeline on.
        let run_on = match is_chasing {
            true => self.delay.estimate(now) + RUN_ON,
            false => Duration::ZERO,
        };
        let most = self.pipeline.lead(class, before + run_on);
        let at = self.soonest(now, (class, sequence)).saturating_sub(before);
        (ahead < most).then_some((sequence, at))
    }

    /// Time before a sample's arrival at best that its Interest must leave: DRD, a margin for what varies, and time to insure
    /// the Interest.
    pub(super) fn ahead_by(&self, now: Instant) -> Duration {
        let insurance = self.repair.insurance(self).unwrap_or_default();
        self.delay.floor(now) + self.synchroniser.margin(now) + insurance
    }

    /// When a sample that does not exist yet may arrive at the soonest.
    pub(super) fn soonest(&self, now: Instant, key: SampleKey) -> Instant {
        let since_newest = self.pipeline.expected_at(key.0, key.1);
        match self.published_at(key) {
            // Whatever clocks say, it is not long after it should follow the newest.
            Some(published_at) => self
                .timeline
                .earliest(now, published_at)
                .min(since_newest + self.source.rate.period()),
            None => since_newest,
        }
    }

    /// Takes note that the Interests for a sample are about to leave.
    pub(super) fn on_asked_ahead(&mut self, key: SampleKey, is_ahead: bool) {
        if is_ahead || self.synchroniser.lead().is_some() {
            self.synchroniser.on_asked(key);
        }
    }

    /// Records that the Interest for the lead of a sample has left.
    pub(super) fn on_lead_sent(&mut self, now: Instant, key: SampleKey) {
        // One that left later than planned, or before there was a clock to plan by, tells nothing of the path.
        let has_clock = self.published_at(key).is_some();
        let is_ahead = self
            .samples
            .get(&key)
            .is_some_and(|sample| sample.asked_ahead);
        if is_ahead && has_clock && key.0 == self.clocked_class() {
            let latest = self.soonest(now, key).saturating_sub(self.delay.floor(now));
            if latest > now {
                self.synchroniser.on_left(key.1, latest.since(now));
            }
        }
    }

    /// Takes note that a segment of a sample came, whose first Interest left at `asked_at`.
    pub(super) fn on_any_segment(&mut self, now: Instant, key: SampleKey, asked_at: Instant) {
        if !self.synchroniser.on_gone(key) {
            return;
        }
        let target = self.timeline.target().as_secs_f64().max(1e-3);
        let first = FirstSegment {
            sample: key,
            drd: now.since(asked_at),
            buffer: self.buffered_time(now).as_secs_f64() / target,
        };
        let lead = self.interest_lead(now);
        self.synchroniser.on_first_segment(now, &first, lead);
    }

    /// Whether samples of `class` say when those of the stream arrive. By gaps, key samples are asked for so early that they
    /// are ahead of the others.
    pub(super) fn tells_base(&self, class: SampleClass) -> bool {
        self.synchroniser.lead().is_none() || class == self.clocked_class()
    }

    /// Learns from a sample asked for ahead: how long our Interest waited for it, or that it came too late to wait.
    pub(super) fn learn_ahead(
        &mut self,
        now: Instant,
        key: SampleKey,
        header: &SampleHeader,
        waited: Option<Duration>,
    ) {
        let (class, sequence) = key;
        let late = self.timeline.lateness(now, header.published_at());
        if late <= self.source.rate.period() {
            self.synchroniser.on_live(now);
        }
        if class != self.clocked_class() {
            return;
        }
        match waited {
            Some(Duration::ZERO) => self.synchroniser.on_late(now, sequence, late),
            Some(waited) => self.synchroniser.on_waited(now, sequence, waited),
            None => {}
        }
    }
}
