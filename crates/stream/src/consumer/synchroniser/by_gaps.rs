//! Synchronises as \[RTSD\] does: by the gaps between arrivals.
//!
//! ```text
//!              D_arr stable               stale, or as small as it may be
//!  Chasing ─────────────────▶ Adjusting ──────────────────────────────────▶ Fetching
//!  λ grows                    λ shrinks ◀───────────────────────────────────
//!                                          stale, or the buffer runs low: λ grows
//! ```

use core::time::Duration;

use namecast_units::Instant;

use crate::names::SampleClass;

use super::State;
use super::change::ChangeEstimator;
use super::config::{SynchroniserConfig, SynchroniserProfile};
use super::stability::{Stability, StabilityEstimator};

/// Time that an adjustment is given to show its effect: NDN-RTC 1.4.4's; \[RTSD\] names none.
const DETECTION_PERIOD: Duration = Duration::from_millis(1_000);
/// Playing time in the buffer, as a share of what it should be, below which it runs low (NDN-RTC 1.4.4).
const LOW_BUFFER: f64 = 0.5;
/// NDN-RTC 1.4.4 starts at 2.5 times the demand, and bursts up to 4 times of it.
const FIRST_PERCENT: u64 = 250;
const MAX_BURST: u64 = 4;
/// λ that NDN-RTC 1.4.4 takes for too small before it has tried.
const FAILED: u64 = 2;

/// What is known when the first segment of a sample arrives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FirstSegment {
    /// Class and sequence number of the sample.
    pub sample: (SampleClass, u64),
    /// DRD′: time from its first Interest.
    pub drd: Duration,
    /// Playing time in the buffer as a share of the playout target.
    pub buffer: f64,
}

/// λ by the gaps between arrivals.
#[derive(Clone, Debug)]
pub struct ByGaps {
    profile: SynchroniserProfile,
    constants: Stability,
    detection: Duration,
    /// The class that fills the pipeline.
    clocked: SampleClass,
    period: Duration,
    initial: Option<u64>,
    least: u64,
    most: u64,
    /// λ_p.
    lead: u64,
    stability: StabilityEstimator,
    change: ChangeEstimator,
    /// Mean of all DRDs so far, d_gen taken off, and their number.
    delay: (f64, u64),
    acted_at: Instant,
    /// `paper`: λ before the last withholding.
    before: Option<u64>,
    /// `code-1.4.4`: the last withholding has not shown in DRD′ yet.
    waits_for_change: bool,
    /// `code-1.4.4`: a λ that was too small.
    failed: u64,
}

impl ByGaps {
    /// Samples come every `period`; λ never exceeds `most`. With deltas, one slot is always the next key sample's.
    pub fn new(config: &SynchroniserConfig, period: Duration, has_deltas: bool, most: u64) -> Self {
        let least = 1 + u64::from(has_deltas);
        let constants = match config.profile {
            SynchroniserProfile::Code144 => Stability::code(config.stability),
            _ => Stability::paper(config.stability),
        };
        Self {
            profile: config.profile,
            constants,
            clocked: if has_deltas {
                SampleClass::Delta
            } else {
                SampleClass::Key
            },
            detection: config.detection_period.unwrap_or(DETECTION_PERIOD),
            period: period.max(Duration::from_nanos(1)),
            initial: config.initial_lead,
            least,
            most: most.max(least),
            lead: least,
            stability: StabilityEstimator::new(constants, period),
            change: ChangeEstimator::default(),
            delay: (0.0, 0),
            acted_at: Instant::ZERO,
            before: None,
            waits_for_change: false,
            failed: FAILED,
        }
    }

    /// Begins to chase: the first sample is known, and Data takes `delay`.
    pub fn start(&mut self, now: Instant, delay: Duration) {
        self.on_delay(delay);
        let demand = self.demand();
        let lead = self.initial.unwrap_or(match self.profile {
            SynchroniserProfile::Code144 => (demand * FIRST_PERCENT + 50) / 100,
            _ => demand,
        });
        self.lead = lead.clamp(self.least, self.most);
        self.stability = StabilityEstimator::new(self.constants, self.period);
        self.change = ChangeEstimator::default();
        self.acted_at = now;
        self.before = None;
        self.waits_for_change = false;
        self.failed = FAILED;
    }

    /// λ_p: samples that may be in flight.
    pub const fn lead(&self) -> u64 {
        self.lead
    }

    /// λ_d = ⌈DRD_est / T⌉ (\[RTSD\] Eq. 1), over the mean of all DRDs; 2 if that is 0 (NDN-RTC 1.4.4).
    pub fn demand(&self) -> u64 {
        let (mean, _) = self.delay;
        let demand = (mean / self.period.as_secs_f64()).ceil();
        if demand < 1.0 {
            2
        } else {
            (demand as u64).min(self.most)
        }
    }

    /// ŝ: what arrives is the newest there is.
    pub fn is_stable(&self) -> bool {
        self.stability.is_stable()
    }

    /// Takes a DRD, with the time that the Interest waited taken off.
    pub fn on_delay(&mut self, delay: Duration) {
        let (mean, count) = self.delay;
        let count = count + 1;
        self.delay = (mean + (delay.as_secs_f64() - mean) / count as f64, count);
    }

    /// Takes the first segment of a sample. Gives the state after it.
    pub fn on_first_segment(&mut self, now: Instant, state: State, first: &FirstSegment) -> State {
        self.stability.on_arrival(now);
        if first.sample.0 == self.clocked {
            self.change.on_value(first.drd);
        }
        match state {
            State::Chasing => self.chase(now),
            State::Adjusting => match self.profile {
                SynchroniserProfile::Code144 => self.adjust_as_code(now),
                _ => self.adjust_as_paper(now),
            },
            State::Fetching | State::Challenge => self.watch(now, state, first.buffer),
            State::Inactive | State::WaitInitial => state,
        }
    }

    fn may_act(&self, now: Instant) -> bool {
        now.since(self.acted_at) >= self.detection
    }

    fn chase(&mut self, now: Instant) -> State {
        if self.is_stable() {
            self.acted_at = now;
            return State::Adjusting;
        }
        if self.may_act(now) {
            self.burst(now);
        }
        State::Chasing
    }

    /// Shrinks λ until older samples come, then takes the last value without them.
    fn adjust_as_paper(&mut self, now: Instant) -> State {
        if !self.is_stable() {
            if let Some(before) = self.before.take() {
                self.lead = before;
                self.acted_at = now;
                return State::Fetching;
            }
            if self.may_act(now) {
                self.burst(now);
            }
            return State::Adjusting;
        }
        if !self.may_act(now) {
            return State::Adjusting;
        }
        let lead = (self.lead * 3 / 4).max(self.least);
        if lead == self.lead {
            return State::Fetching;
        }
        self.before = Some(self.lead);
        self.lead = lead;
        self.acted_at = now;
        State::Adjusting
    }

    /// Halves λ each time DRD′ has answered to the last halving, down to the demand.
    fn adjust_as_code(&mut self, now: Instant) -> State {
        if self.change.is_steady() {
            if !self.waits_for_change {
                self.change.forget_change();
                self.waits_for_change = true;
                return self.withhold_as_code(now);
            }
            if self.change.has_changed() {
                self.waits_for_change = false;
                self.acted_at = now;
            } else if self.may_act(now) {
                return self.withhold_as_code(now);
            }
        } else if !self.is_stable() && self.may_act(now) {
            self.failed = self.lead;
            self.burst(now);
        }
        State::Adjusting
    }

    fn withhold_as_code(&mut self, now: Instant) -> State {
        self.acted_at = now;
        let lead = self.lead - self.lead.div_ceil(2);
        if lead <= self.failed {
            return State::Fetching;
        }
        let demand = self.demand().max(self.least);
        self.lead = lead.max(demand);
        if lead < demand {
            State::Fetching
        } else {
            State::Adjusting
        }
    }

    /// Goes back to adjusting once older samples come, or the buffer runs low.
    fn watch(&mut self, now: Instant, state: State, buffer: f64) -> State {
        let is_low = buffer < LOW_BUFFER;
        if !self.may_act(now) || (self.is_stable() && !is_low) {
            return state;
        }
        if is_low && self.is_stable() {
            self.failed = FAILED;
        }
        self.before = None;
        self.waits_for_change = false;
        self.burst(now);
        State::Adjusting
    }

    fn burst(&mut self, now: Instant) {
        let lead = match self.profile {
            SynchroniserProfile::Code144 => {
                let most = (MAX_BURST * self.demand()).max(self.lead);
                (self.lead + self.lead.div_ceil(2)).min(most)
            }
            _ => self.lead * 2,
        };
        self.lead = lead.min(self.most);
        self.acted_at = now;
    }
}
