//! Brings a consumer from whatever caches hold to the live edge of a stream, and keeps it there.
//!
//! ```text
//!             start                  live                        (by gaps only)
//!  Inactive ─▶ WaitInitial ─▶ Chasing ───▶ Adjusting ───▶ Fetching ◀──▶ Challenge
//!                   ▲             └──────── namecast ────────▲
//!                   └─────────────── nothing comes: all start again
//! ```
//!
//! | profile      | newest samples are told by                       | samples in flight                          |
//! |--------------|--------------------------------------------------|--------------------------------------------|
//! | `namecast`   | what answers say of themselves                    | as many as leave just in time ([`Margin`]) |
//! | `paper`, `code-1.4.4` | gaps between arrivals ([`StabilityEstimator`]) | λ_p, by trial ([`ByGaps`])          |

mod by_gaps;
mod change;
mod config;
mod margin;
mod stability;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use core::time::Duration;

use namecast_units::Instant;

use crate::names::SampleClass;

pub use by_gaps::{ByGaps, FirstSegment};
pub use change::ChangeEstimator;
pub use config::{StabilityClass, SynchroniserConfig, SynchroniserProfile};
pub use margin::Margin;
pub use stability::{Stability, StabilityEstimator};

/// Silence after which a consumer that fetches starts again (NDN-RTC 1.4.4).
const IDLE_FETCHING: Duration = Duration::from_millis(500);
/// The same before that.
const IDLE_BEFORE: Duration = Duration::from_millis(3_000);

/// Where a consumer is on its way to the newest samples (\[RTSD\] Fig. 10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Nobody has requested the stream.
    #[default]
    Inactive,
    /// Waits to be told of a sample to begin with.
    WaitInitial,
    /// Requests more and more, until what comes is the newest there is.
    Chasing,
    /// Requests less and less, while it still is.
    Adjusting,
    /// Requests as much as is needed.
    Fetching,
    /// Samples are fetched, and a higher bitrate is tried at the same time.
    Challenge,
}

/// What the first segment of the last sample showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// How many there were before it.
    pub index: u64,
    /// When it came.
    pub at: Instant,
    /// Its class.
    pub class: SampleClass,
    /// D_arr: time since that of another sample came.
    pub gap: Option<Duration>,
    /// DRD′: time from its first Interest.
    pub drd: Duration,
    /// λ after it.
    pub lead: u64,
    /// ŝ after it; by gaps only.
    pub is_stable: bool,
    /// State after it.
    pub state: State,
}

/// How the last start went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bootstrap {
    /// Time spent chasing.
    pub chasing: Duration,
    /// Time spent adjusting.
    pub adjusting: Duration,
    /// Of that and after it, time while older samples came: the back-off of \[RTSD\] Table 1. By gaps only.
    pub backoff: Duration,
}

/// One consumer's synchroniser: a plain value that is told of starts and first segments, and knows λ and the state.
#[derive(Clone, Debug)]
pub struct Synchroniser {
    state: State,
    since: Instant,
    last_arrival: Instant,
    by_gaps: Option<ByGaps>,
    /// Samples requested ahead of which nothing has come: λ_p − λ_s.
    in_flight: BTreeSet<(SampleClass, u64)>,
    observed: Option<Observation>,
    bootstrap: Bootstrap,
    /// How long before the last moment Interests leave.
    margin: Margin,
    period: Duration,
    /// What is known of the base delay does not hold any more.
    rebuffers: bool,
    /// The first adjusting after a start is not over, or older samples came in it and still do.
    is_first: bool,
}

impl Synchroniser {
    /// One for samples every `period`, some of them delta samples if `has_deltas`; λ never exceeds `most`.
    pub fn new(config: &SynchroniserConfig, period: Duration, has_deltas: bool, most: u64) -> Self {
        let by_gaps = config
            .profile
            .goes_by_gaps()
            .then(|| ByGaps::new(config, period, has_deltas, most));
        Self {
            state: State::Inactive,
            since: Instant::ZERO,
            last_arrival: Instant::ZERO,
            by_gaps,
            in_flight: BTreeSet::new(),
            observed: None,
            bootstrap: Bootstrap::default(),
            margin: Margin::new(period),
            period,
            rebuffers: false,
            is_first: true,
        }
    }

    /// Begins, or begins again, from a sample that is known now. Data takes `delay`.
    pub fn start(&mut self, now: Instant, delay: Duration) {
        if let Some(by_gaps) = &mut self.by_gaps {
            by_gaps.start(now, delay);
        }
        self.margin = Margin::new(self.period);
        self.in_flight.clear();
        self.last_arrival = now;
        self.bootstrap = Bootstrap::default();
        self.is_first = true;
        if self.state == State::Inactive {
            self.enter(now, State::WaitInitial);
        }
        self.enter(now, State::Chasing);
    }

    /// Returns the state.
    pub const fn state(&self) -> State {
        self.state
    }

    /// Returns what the last first segment showed.
    pub const fn observed(&self) -> Option<&Observation> {
        self.observed.as_ref()
    }

    /// Returns how the last start went.
    pub const fn bootstrap(&self) -> &Bootstrap {
        &self.bootstrap
    }

    /// λ_p by the gaps between arrivals; `None` where that is not the profile.
    pub fn lead(&self) -> Option<u64> {
        self.by_gaps.as_ref().map(ByGaps::lead)
    }

    /// Returns whether another sample may be requested, λ_s > 0; `None` where that is not the profile.
    pub fn has_free_slot(&self) -> Option<bool> {
        let in_flight = self.in_flight.len() as u64;
        self.lead().map(|lead| in_flight < lead)
    }

    /// Returns whether samples are not to be shown yet, as they are older than need be.
    pub const fn holds_playback(&self) -> bool {
        self.by_gaps.is_some() && matches!(self.state, State::WaitInitial | State::Chasing)
    }

    /// Returns whether nothing has come for so long that the consumer must be started again.
    pub const fn waits_for_start(&self) -> bool {
        self.by_gaps.is_some() && matches!(self.state, State::WaitInitial)
    }

    /// Records that `sample` was requested ahead.
    pub fn on_asked(&mut self, sample: (SampleClass, u64)) {
        self.in_flight.insert(sample);
    }

    /// Records that `sample` is no longer waited for. Whether it was.
    pub fn on_gone(&mut self, sample: (SampleClass, u64)) -> bool {
        self.in_flight.remove(&sample)
    }

    /// Returns the time before the last moment at which Interests leave, for what varies on the path.
    pub fn margin(&self, now: Instant) -> Duration {
        self.margin.current(now)
    }

    /// Records that the Interest for sample `sequence` left with `margin`.
    pub fn on_left(&mut self, sequence: u64, margin: Duration) {
        self.margin.on_left(sequence, margin);
    }

    /// Records how long that Interest waited for its sample.
    pub fn on_waited(&mut self, now: Instant, sequence: u64, waited: Duration) {
        self.margin.on_waited(now, sequence, waited);
    }

    /// Records that it came `late` after its sample was published, at most.
    pub fn on_late(&mut self, now: Instant, sequence: u64, late: Duration) {
        self.margin.on_late(now, sequence, late);
    }

    /// Returns once whether what is known of the base delay does not hold any more, as playback starts anew.
    pub const fn take_rebuffers(&mut self) -> bool {
        core::mem::replace(&mut self.rebuffers, false)
    }

    /// Takes the time that Data took which existed, or from whose wait d_gen is known.
    pub fn on_delay(&mut self, delay: Duration) {
        if let Some(by_gaps) = &mut self.by_gaps {
            by_gaps.on_delay(delay);
        }
    }

    /// Takes the first segment of a sample for which [`on_gone`](Self::on_gone) was true; `lead` is λ where it is not by
    /// gaps.
    pub fn on_first_segment(&mut self, now: Instant, first: &FirstSegment, lead: u64) {
        let (class, _) = first.sample;
        let gap = self.observed.map(|before| now.since(before.at));
        let index = self.observed.map_or(0, |before| before.index + 1);
        let was_stable = self.observed.is_some_and(|before| before.is_stable);
        let mut observation = Observation {
            index,
            at: now,
            class,
            gap,
            drd: first.drd,
            lead,
            is_stable: false,
            state: self.state,
        };
        if let Some(by_gaps) = &mut self.by_gaps {
            let state = by_gaps.on_first_segment(now, self.state, first);
            observation.lead = by_gaps.lead();
            observation.is_stable = by_gaps.is_stable();
            self.count_backoff(gap.unwrap_or_default(), was_stable);
            // The trial with too small a λ has cost playing time: the buffer is built up anew.
            self.rebuffers |= (self.state, state) == (State::Adjusting, State::Fetching);
            self.enter(now, state);
            observation.state = state;
        }
        self.last_arrival = now;
        self.observed = Some(observation);
    }

    /// Records that a sample came as soon as it could: everything before it is over.
    pub fn on_live(&mut self, now: Instant) {
        if self.by_gaps.is_none() && self.state == State::Chasing {
            self.enter(now, State::Fetching);
        }
    }

    /// Sets whether a higher bitrate is being tried at the same time.
    pub fn set_challenging(&mut self, now: Instant, is_challenging: bool) {
        match (self.state, is_challenging) {
            (State::Fetching, true) => self.enter(now, State::Challenge),
            (State::Challenge, false) => self.enter(now, State::Fetching),
            _ => {}
        }
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) would start again.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let idle = match self.state {
            _ if self.by_gaps.is_none() => return None,
            State::Inactive | State::WaitInitial => return None,
            State::Chasing | State::Adjusting => IDLE_BEFORE,
            State::Fetching | State::Challenge => IDLE_FETCHING,
        };
        Some(self.last_arrival + idle)
    }

    /// Waits for a new start once nothing has come for too long. Early calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.poll_timeout().is_some_and(|at| at <= now) {
            self.enter(now, State::WaitInitial);
        }
    }

    /// While the first adjusting lasts, and until what it broke is mended.
    fn count_backoff(&mut self, gap: Duration, was_stable: bool) {
        let counts = match self.state {
            State::Adjusting => true,
            State::Fetching | State::Challenge => self.is_first,
            _ => false,
        };
        if counts && !was_stable && self.is_first {
            self.bootstrap.backoff += gap;
        }
        if matches!(self.state, State::Fetching | State::Challenge) && was_stable {
            self.is_first = false;
        }
    }

    fn enter(&mut self, now: Instant, state: State) {
        if state == self.state {
            return;
        }
        let spent = now.since(self.since);
        match self.state {
            State::Chasing => self.bootstrap.chasing += spent,
            State::Adjusting if self.is_first => self.bootstrap.adjusting += spent,
            _ => {}
        }
        self.state = state;
        self.since = now;
    }
}
