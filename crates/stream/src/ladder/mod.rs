//! Which rung of a stream to pull: the highest that the way there carries.
//!
//! ```text
//!  trains of segments ─▶ Capacity ──┐                 rung above fits: go up at its next key sample
//!  delay of leads ──┬─▶ queueing ───┼──▶ Ladder ──▶
//!                   └─▶ SourceChange┘                 queue grows: go down at once
//! ```
//!
//! Plain values: they are told what came when, and answer which rung to pull. Who pulls it is not their business.

mod capacity;
pub mod challenge;
mod config;
mod source_change;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use core::time::Duration;

use namecast_units::{Bitrate, ByteSize, Instant};

use crate::consumer::WindowedMinimum;
use crate::rate::{Arrival, Lost};

pub use capacity::{Capacity, Train};
pub use challenge::Challenge;
pub use config::{LadderConfig, LadderProfile, ParseLadderError};
pub use source_change::SourceChange;

/// Constants of [`Ladder`].
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Share of the capacity that a rung may need to be tried.
    pub most_load: f64,
    /// Trains that must agree before a higher rung is tried.
    pub least_trains: usize,
    /// Queueing at which congestion is suspected. More is looked into, less is the jitter of a quiet path.
    pub suspicious: Duration,
    /// First time for which a rung is not tried again after it had to be left.
    pub first_wait: Duration,
    /// What that grows to, doubling with each failure.
    pub most_wait: Duration,
    /// A rung that held for so long is no failure of the past any more.
    pub proven: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            most_load: 0.9,
            least_trains: 3,
            suspicious: Duration::from_millis(20),
            first_wait: Duration::from_secs(4),
            most_wait: Duration::from_secs(64),
            proven: Duration::from_secs(10),
        }
    }
}

/// What a consumer noticed of the way that its samples take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Segments came one right after the other.
    Train(Train),
    /// The lead of a sample that was waited for came so much later than at best.
    Lead {
        /// Time in queues, or behind others in our own.
        queueing: Duration,
    },
    /// A packet came, of so many octets of content.
    Data(Arrival),
    /// One did not.
    Lost(Lost),
}

/// One rung, as far as a ladder cares.
#[derive(Clone, Copy, Debug)]
struct Rung {
    bitrate: Bitrate,
    failures: u32,
    barred_until: Instant,
}

/// Signs of congestion looked at together: two in a row prove it where trains agree, three alone.
const MOST_DELAYS: usize = 3;

/// Share of the capacity at which segments are asked for: what waits at the narrowest link becomes less, not more.
const PACE: f64 = 0.95;
/// What even delays differ by.
const NO_GROWTH: Duration = Duration::from_millis(5);
/// Parts of the window in which a queue must have been empty once.
const STANDING_PARTS: u32 = 4;

/// Chooses a rung.
///
/// ```text
/// need(r) = bitrate(r) · wire/payload
///
/// up to r:     the way is calm, no trial of r failed lately, and need(r) ≤ load · C, where C is what most trains had
/// down:        no train of late carried need(current), and of two leads that were queued the second was so for longer, or
///              three were queued for four fifths of the playout target;
///              or a queue stood for a whole key period: its least was a quarter of the playout target, or more;
///              or three leads were so late that nothing of the target was left, and ever later
/// to:          the highest r below with need(r) ≤ load · C of late, or the lowest
/// ```
///
/// Losses count for nothing: a way that loses packets and does not queue is no narrower for it.
///
/// The higher rung is pulled from its next key sample on, and the current one no further than that, so both are never paid
/// for at once: a trial is the change itself. One that fails ends with a change down, and the rung is barred for a time that
/// doubles.
#[derive(Clone, Debug)]
pub struct Ladder {
    config: Config,
    /// By bitrate.
    rungs: Vec<Rung>,
    current: usize,
    since: Instant,
    is_moving: bool,
    capacity: Capacity,
    change: SourceChange,
    /// Queueing of the last leads.
    delays: VecDeque<Duration>,
    /// The least of it in a key period: key samples are so large that what comes after them is queued even where all is well.
    standing: WindowedMinimum<Duration>,
    key_period: Duration,
    target: Duration,
}

impl Ladder {
    /// A ladder of `bitrates`, lowest first, on rung number `current`. There is a key sample every `key_period`.
    ///
    /// Gives `None` if there is no choice.
    pub fn new(
        now: Instant,
        config: Config,
        bitrates: &[Bitrate],
        current: usize,
        key_period: Duration,
    ) -> Option<Self> {
        let is_ladder = bitrates.len() > 1 && bitrates.is_sorted() && current < bitrates.len();
        let rung = |&bitrate| Rung {
            bitrate,
            failures: 0,
            barred_until: Instant::ZERO,
        };
        is_ladder.then(|| Self {
            config,
            rungs: bitrates.iter().map(rung).collect(),
            current,
            since: now,
            is_moving: false,
            capacity: Capacity::default(),
            change: SourceChange::default(),
            delays: VecDeque::with_capacity(MOST_DELAYS),
            standing: standing(key_period),
            key_period,
            target: Duration::from_millis(100),
        })
    }

    /// The rung that playback is on.
    pub const fn current(&self) -> usize {
        self.current
    }

    /// What the way carries, if enough is known.
    pub fn capacity(&self, now: Instant) -> Option<Bitrate> {
        self.capacity.usual(now, self.config.least_trains)
    }

    /// How fast Interests may be sent for segments to come no faster than they pass the narrowest link: hardly less than its
    /// rate, and the size of a segment.
    pub fn pace(&self, now: Instant) -> Option<(Bitrate, ByteSize)> {
        let rate = self.capacity(now)?.as_bps() as f64 * PACE;
        Some((Bitrate::bps(rate as u64), self.capacity.segment()?))
    }

    /// Sets the playout target, of which queues may not take much.
    pub const fn set_target(&mut self, target: Duration) {
        self.target = target;
    }

    /// Takes note of what was noticed.
    pub fn on_sign(&mut self, now: Instant, sign: Sign) {
        match sign {
            Sign::Train(train) => {
                self.change.on_sample(train.span);
                self.capacity.push(now, train);
            }
            Sign::Lead { queueing } => {
                let queueing = self.change.on_delay(now, queueing);
                if self.change.has_changed() {
                    // Another source: nothing that was measured holds for the way to it.
                    self.delays.clear();
                    self.capacity = Capacity::default();
                }
                if self.delays.len() == MOST_DELAYS {
                    self.delays.pop_front();
                }
                self.delays.push_back(queueing);
                self.standing.push(now, queueing);
            }
            Sign::Data(_) | Sign::Lost(_) => {}
        }
    }

    /// Takes note that playback has changed over to rung number `rung`.
    pub fn on_moved(&mut self, now: Instant, rung: usize) {
        self.current = rung.min(self.rungs.len() - 1);
        self.since = now;
        self.is_moving = false;
        self.standing = standing(self.key_period);
    }

    /// Takes note that the rung last asked for has not come.
    pub fn on_stayed(&mut self, now: Instant, rung: usize) {
        self.bar(now, rung);
        self.is_moving = false;
    }

    /// The rung to change over to, if there is a better one. `wire_share` is what the current rung takes on the wire per
    /// octet of its payload, headers and parity included. Nothing is answered until the last change is reported as done.
    pub fn decide(&mut self, now: Instant, wire_share: f64) -> Option<usize> {
        if self.is_moving {
            return None;
        }
        if now.since(self.since) >= self.config.proven {
            self.rungs[self.current].failures = 0;
        }
        let next = if self.is_congested(now, wire_share) {
            self.below(now, wire_share)
        } else {
            self.above(now, wire_share)
        }?;
        if next < self.current {
            self.bar(now, self.current);
        }
        self.is_moving = true;
        self.delays.clear();
        Some(next)
    }

    fn need(&self, rung: usize, wire_share: f64) -> f64 {
        self.rungs[rung].bitrate.as_bps() as f64 * wire_share.max(1.0)
    }

    fn fits(&self, rung: usize, capacity: Bitrate, wire_share: f64) -> bool {
        self.need(rung, wire_share) <= capacity.as_bps() as f64 * self.config.most_load
    }

    fn is_congested(&self, now: Instant, wire_share: f64) -> bool {
        let delays: Vec<_> = self.delays.iter().copied().collect();
        let carries = self.capacity.best_of_late(now);
        let is_narrow = carries
            .is_some_and(|best| (best.as_bps() as f64) < self.need(self.current, wire_share));
        let grows = |pair: &[Duration]| pair[0] < pair[1] && pair[0] >= self.config.suspicious;
        let is_growing = delays.windows(2).next_back().is_some_and(grows);
        let stood = self.standing.minimum(now).unwrap_or_default();
        let limit = self.config.suspicious.max(self.target / 4);
        let is_standing = stood >= limit && now.since(self.since) >= self.key_period * 5 / 4;
        let is_long = |delay: &Duration| *delay >= self.target * 4 / 5;
        let are_long = delays.len() == MOST_DELAYS && delays.iter().all(is_long);
        // Delays that are long and even are those of a longer way.
        let rise =
            |delays: &[Duration]| delays.last() > delays.first().map(|d| *d + NO_GROWTH).as_ref();
        let is_rising = are_long && delays.is_sorted() && rise(&delays);
        (is_narrow && (is_growing || are_long)) || is_standing || is_rising
    }

    /// The highest rung below the current one that fits what came of late, else the lowest.
    fn below(&self, now: Instant, wire_share: f64) -> Option<usize> {
        let highest = self.current.checked_sub(1)?;
        let carries = self.capacity.best_of_late(now);
        let fits = |&rung: &usize| carries.is_none_or(|best| self.fits(rung, best, wire_share));
        Some((0..=highest).rev().find(fits).unwrap_or(0))
    }

    /// The highest rung above the current one that fits and is not barred.
    fn above(&self, now: Instant, wire_share: f64) -> Option<usize> {
        let above = self.current + 1..self.rungs.len();
        let is_calm = self
            .delays
            .back()
            .is_none_or(|delay| *delay < self.target / 4);
        if above.is_empty() || !is_calm {
            return None;
        }
        let capacity = self.capacity(now)?;
        let may = |&rung: &usize| {
            self.rungs[rung].barred_until <= now && self.fits(rung, capacity, wire_share)
        };
        above.rev().find(may)
    }

    fn bar(&mut self, now: Instant, rung: usize) {
        let (first, most) = (self.config.first_wait, self.config.most_wait);
        if let Some(rung) = self.rungs.get_mut(rung) {
            let wait = first.saturating_mul(1 << rung.failures.min(16)).min(most);
            rung.barred_until = now + wait;
            rung.failures += 1;
        }
    }
}

/// Covers a key period and up to a quarter more.
fn standing(key_period: Duration) -> WindowedMinimum<Duration> {
    WindowedMinimum::new(key_period / STANDING_PARTS, u64::from(STANDING_PARTS) + 1)
}
