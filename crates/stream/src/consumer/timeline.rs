//! When samples are published, could be here, and are shown.
//!
//! ```text
//!           sample clock            base delay                 target
//!  number ───────────────▶ published ─────────▶ earliest arrival ─────▶ shown
//!                                                        └────▶ leaves ──┘ decode lead time
//! ```
//!
//! What is published when is known from leads, by the publisher's clock; the difference of the two clocks is part of the base delay.

use std::cmp::Reverse;

use core::time::Duration;

use namecast_units::{Instant, Timestamp, WindowedMinimum};

use crate::metadata::Latest;
use crate::sample::SampleHeader;

use super::clock::SampleClock;
use super::order::SampleKey;
use super::playout::{BaseDelay, Playout};

/// Nothing that is still wanted was published so long ago.
pub(super) const CLOCK_WAS_SET: Duration = Duration::from_secs(10);

/// The times of one stream's samples.
#[derive(Clone, Debug)]
pub struct Timeline {
    period: Duration,
    key_interval: u32,
    clock: SampleClock,
    /// The most by which samples were published after the time that the clock told lately: encoders do not keep time.
    unpunctual: WindowedMinimum<Reverse<Duration>>,
    base: BaseDelay,
    playout: Playout,
    /// Nobody gave a base, so this stream's own is used.
    follows_own_base: bool,
    /// Samples leave this long before they are to be shown.
    decode_lead: Duration,
    /// The latest time that the publisher is known to have reached.
    newest: Timestamp,
}

/// How the lead of a sample came.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeadArrival {
    /// By the publisher's clock.
    pub published_at: Timestamp,
    /// It was requested before it was known to exist.
    pub asked_ahead: bool,
    /// Its Interest was there in time, so that nothing but the path delayed it.
    pub is_live: bool,
    /// Samples of its class arrive as early as they can.
    pub tells_base: bool,
    /// What was known of the base does not hold any more.
    pub rebuffers: bool,
    /// Packets queue, which may be why it is late.
    pub is_queued: bool,
}

impl Timeline {
    /// A timeline of samples every `period`, every `key_interval`-th of them a key sample, of which nothing is known.
    pub(super) fn new(period: Duration, key_interval: u32) -> Self {
        let key_period = period.saturating_mul(key_interval.max(1));
        Self {
            period,
            key_interval,
            clock: SampleClock::new(period, key_interval),
            unpunctual: WindowedMinimum::new((key_period * 2).max(Duration::from_secs(2)), 10),
            base: BaseDelay::default(),
            playout: Playout {
                wall_at_zero: Timestamp::default(),
                base: None,
                target: Duration::from_millis(100),
            },
            follows_own_base: true,
            decode_lead: Duration::ZERO,
            newest: Timestamp::default(),
        }
    }

    /// Forgets the numbering, which is another one now. The publisher has reached `served_at`.
    pub(super) fn restart(&mut self, served_at: Timestamp) {
        self.clock = SampleClock::new(self.period, self.key_interval);
        self.newest = served_at;
    }

    /// Takes over what `other`, of another rung of the stream, knows of delays.
    pub(super) fn learn_from(&mut self, other: &Self) {
        self.base = other.base.clone();
        self.unpunctual = other.unpunctual.clone();
    }

    /// Sets the playout clock and the decode lead time. Returns whether the target is another one; `None` if nothing has changed.
    pub(super) fn set_playout(
        &mut self,
        now: Instant,
        playout: Playout,
        decode_lead: Duration,
    ) -> Option<bool> {
        self.follows_own_base = playout.base.is_none();
        let playout = Playout {
            base: playout.base.or_else(|| self.base.estimate(now)),
            ..playout
        };
        if self.playout == playout && self.decode_lead == decode_lead {
            return None;
        }
        let moved = self.playout.target != playout.target;
        self.playout = playout;
        self.decode_lead = decode_lead;
        Some(moved)
    }

    /// Returns the time from the earliest possible arrival to showing.
    pub(super) const fn target(&self) -> Duration {
        self.playout.target
    }

    /// Returns the time from the earliest possible arrival to the moment at which a sample leaves.
    pub(super) const fn time_to_leave(&self) -> Duration {
        self.playout.target.saturating_sub(self.decode_lead)
    }

    /// Returns the path's delay as the stream's own packets show it, in microseconds, clocks' difference included.
    pub fn base(&self, now: Instant) -> Option<i64> {
        self.base.estimate(now)
    }

    /// Returns by how much the base delay exceeds what it was within the last minute.
    pub fn base_growth(&self, now: Instant) -> Duration {
        self.base.growth(now)
    }

    /// Every delay is longer by `shift` from now on.
    pub(super) fn on_path_grew(&mut self, now: Instant, shift: Duration) {
        self.base.raise(now, shift);
    }

    /// The path is no longer than it was before it last grew.
    pub(super) fn on_path_shrank(&mut self, now: Instant) {
        self.base.unraise(now);
    }

    /// Records the delay of a packet that states when it was served.
    pub(super) fn on_served(&mut self, now: Instant, delay: i64) {
        self.base.on_packet(now, delay);
    }

    /// The publisher is known to have reached `served_at`.
    pub(super) fn on_news(&mut self, served_at: Timestamp) {
        self.newest = self.newest.max(served_at);
    }

    /// Returns whether `latest` is newer than all that is known.
    pub(super) fn is_news(&self, latest: &Latest) -> bool {
        latest.served_at > self.newest
    }

    /// Records when a lead came, which tells the base delay. Returns the earliest moment at which it could have come.
    pub(super) fn on_arrival(&mut self, now: Instant, lead: &LeadArrival) -> Instant {
        let delay = self.playout.delay(now, lead.published_at);
        if lead.asked_ahead && self.base.is_of_another_clock(now, delay) || lead.rebuffers {
            self.base = BaseDelay::default();
        }
        match lead.tells_base {
            true if lead.is_live => {
                let target = self.playout.target;
                self.base.on_live_sample(now, delay, target, lead.is_queued);
            }
            true => self.base.on_packet(now, delay),
            false => {}
        }
        if self.follows_own_base {
            self.playout.base = self.base.estimate(now);
        }
        self.newest = self.newest.max(lead.published_at);
        self.earliest(now, lead.published_at)
    }

    /// Records what a lead says: the clock goes by it.
    pub(super) fn on_lead(
        &mut self,
        now: Instant,
        (class, sequence): SampleKey,
        header: &SampleHeader,
    ) {
        if let Some(told) = self.clock.published_at(class, sequence) {
            let late = header.published_at().since(told);
            self.unpunctual
                .push(now, Reverse(late.min(self.period * 2)));
        }
        self.clock.on_lead(class, sequence, header);
    }

    /// Sets where the first key sample is, which was or will be published at `published_at`.
    pub(super) fn seed(&mut self, key: u64, position: u64, published_at: Timestamp) {
        self.clock.seed((key, position), (position, published_at));
    }

    /// Sets where the first delta sample is.
    pub(super) fn seed_delta(&mut self, delta: u64, position: u64) {
        self.clock.seed_delta((delta, position));
    }

    /// Returns the position of a sample by its number.
    pub(super) fn position(&self, (class, sequence): SampleKey) -> Option<u64> {
        self.clock.position(class, sequence)
    }

    /// Returns when a sample is published, by its number.
    pub(super) fn published_at(&self, (class, sequence): SampleKey) -> Option<Timestamp> {
        self.clock.published_at(class, sequence)
    }

    /// Returns when the sample at `position` is published.
    pub(super) fn time_of(&self, position: u64) -> Option<Timestamp> {
        self.clock.time_of(position)
    }

    /// Returns when the sample at `position` could be here at the earliest.
    pub fn arrives_at(&self, now: Instant, position: u64) -> Option<Instant> {
        Some(self.earliest(now, self.time_of(position)?))
    }

    /// Returns when the sample at `position` is to be shown.
    pub fn shown_at(&self, now: Instant, position: u64) -> Option<Instant> {
        Some(self.render_at(now, self.time_of(position)?))
    }

    /// Returns by how much a sample of which nothing is known may be published after its time.
    pub(super) fn unpunctuality(&self, now: Instant) -> Duration {
        let late = self.unpunctual.minimum(now);
        late.map_or(Duration::ZERO, |late| late.0 * 5 / 4)
    }

    /// Returns when what is published at `published_at` could be here at the earliest.
    pub(super) fn earliest(&self, now: Instant, published_at: Timestamp) -> Instant {
        let base = self.base.estimate(now).or(self.playout.base);
        let base = base.unwrap_or_else(|| self.playout.delay(now, published_at));
        self.playout.arrival(published_at, base)
    }

    /// Returns how much later than at the earliest something came that was published at `published_at`.
    pub(super) fn lateness(&self, now: Instant, published_at: Timestamp) -> Duration {
        let delay = self.playout.delay(now, published_at);
        let base = self.base.estimate(now).unwrap_or(delay);
        Duration::from_micros(u64::try_from(delay.saturating_sub(base)).unwrap_or(0))
    }

    /// Returns when to show what is published at `published_at`.
    pub(super) fn render_at(&self, now: Instant, published_at: Timestamp) -> Instant {
        self.playout.render_at(now, published_at)
    }

    /// Returns when it leaves for that.
    pub(super) fn leaves_at(&self, now: Instant, published_at: Timestamp) -> Instant {
        let render_at = self.playout.render_at(now, published_at);
        render_at.saturating_sub(self.decode_lead)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{PERIOD, WALL, at, ms, playout};
    use super::*;

    fn timeline() -> Timeline {
        let mut timeline = Timeline::new(PERIOD, 25);
        let playout = Playout {
            target: ms(100),
            ..playout()
        };
        timeline.set_playout(at(0), playout, ms(20));
        timeline
    }

    fn lead(millis: u64) -> LeadArrival {
        LeadArrival {
            published_at: WALL + ms(millis),
            asked_ahead: true,
            is_live: true,
            tells_base: true,
            rebuffers: false,
            is_queued: false,
        }
    }

    /// 30 ms from publication to arrival, 100 to showing, 20 less for the decoder. One 50 ms later changes none of it.
    #[test]
    fn times_follow_the_earliest_arrival() {
        let mut timeline = timeline();
        timeline.on_arrival(at(1_030), &lead(1_000));
        assert_eq!(timeline.on_arrival(at(1_120), &lead(1_040)), at(1_070));
        let published_at = WALL + ms(1_080);
        let now = at(1_120);
        assert_eq!(timeline.earliest(now, published_at), at(1_110));
        assert_eq!(timeline.render_at(now, published_at), at(1_210));
        assert_eq!(timeline.leaves_at(now, published_at), at(1_190));
        assert_eq!(timeline.lateness(at(1_125), published_at), ms(15));
        assert_eq!(timeline.time_to_leave(), ms(80));
    }

    /// By gaps, older samples come first: they tell nothing until playback starts anew.
    #[test]
    fn a_base_that_does_not_hold_is_forgotten() {
        let mut timeline = timeline();
        timeline.on_arrival(at(1_030), &lead(1_000));
        let silent = LeadArrival {
            tells_base: false,
            ..lead(1_040)
        };
        timeline.on_arrival(at(1_045), &silent);
        assert_eq!(timeline.base(at(1_045)), Some(30_000));
        let anew = LeadArrival {
            rebuffers: true,
            ..lead(1_080)
        };
        timeline.on_arrival(at(1_180), &anew);
        assert_eq!(timeline.base(at(1_180)), Some(100_000));
    }

    /// The publisher's clock is set back by an hour.
    #[test]
    fn a_clock_that_was_set_is_followed_at_once() {
        let mut timeline = timeline();
        timeline.on_arrival(at(3_700_030), &lead(3_700_000));
        let earliest = timeline.on_arrival(at(3_700_070), &lead(100_040));
        assert_eq!(earliest, at(3_700_070));
    }
}
