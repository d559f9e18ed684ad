//! Tries what the next rung would add, before its key sample.

use core::time::Duration;

use namecast_units::{Bitrate, Instant};

use super::{FREE_MARGIN, Ladder, View};
use crate::path::PACKET;

/// A probe begins and ends so long before a key sample.
const BEFORE_KEY: (Duration, Duration) = (Duration::from_millis(750), Duration::from_millis(550));
/// How long it takes at most.
const LENGTH: Duration = Duration::from_millis(500);
/// First and longest time from one that failed to the next.
const FIRST_WAIT: Duration = Duration::from_secs(4);
const MAX_WAIT: Duration = Duration::from_secs(12);
const MIN_WAIT: Duration = Duration::from_secs(3);

/// A probe that is under way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probe {
    /// The rung that is tried.
    pub rung: usize,
    /// Rate to request in addition to what is played.
    pub rate: Bitrate,
    /// Since when.
    pub since: Instant,
    /// Queueing before it, in seconds.
    queue_before: f64,
}

/// When to try, and what came of it.
#[derive(Clone, Debug)]
pub(super) struct Prober {
    current: Option<Probe>,
    proven: Option<usize>,
    next_at: Instant,
    wait: Duration,
}

impl Prober {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            current: None,
            proven: None,
            next_at: now + Duration::from_secs(1),
            wait: FIRST_WAIT,
        }
    }

    pub(super) const fn cancel(&mut self) {
        self.current = None;
        self.proven = None;
    }

    /// Forgets what was found: the rung was chosen by it.
    pub(super) const fn forget(&mut self) {
        self.proven = None;
    }

    pub(super) fn has_proven(&self, rung: usize) -> bool {
        self.proven.is_some_and(|proven| proven >= rung)
    }
}

impl Ladder {
    /// Returns the probe under way, if there should be one now.
    pub fn probe(&mut self, now: Instant, view: &View<'_>) -> Option<Probe> {
        match self.prober.current {
            Some(probe) => self.watch_probe(now, view, probe),
            None => {
                if self.may_probe(now, view) {
                    self.begin_probe(now, view);
                }
            }
        }
        self.prober.current
    }

    fn may_probe(&self, now: Instant, view: &View<'_>) -> bool {
        let path = view.path;
        let target = path.target().as_secs_f64();
        let share = if path.is_contended(now) { 0.4 } else { 0.15 };
        let above = self.current + 1;
        let in_time = view.until_key < BEFORE_KEY.0 && view.until_key > BEFORE_KEY.1;
        above < self.rungs.len()
            && in_time
            && now > self.prober.next_at
            && !self.is_blank
            && self.lag(view) < share * target + 0.01
            && !self.is_recent(now, Duration::from_secs(2))
            && now > self.rungs[above].barred_until
    }

    fn begin_probe(&mut self, now: Instant, view: &View<'_>) {
        let path = view.path;
        let capacity = path.capacity().min(path.quantile(self.config.up_quantile));
        let above = self.current + 1;
        let room = |capacity| self.room(capacity, above, view);
        let free = room(capacity * (1.0 - path.cross(now)));
        let need = self.rungs[above].need;
        let is_sure = need * FREE_MARGIN <= free && need * 1.03 <= room(capacity);
        let is_stale = path.recent_rate(now).is_none();
        let usual = path.capacity().min(path.quantile(0.5));
        // Where delays vary by more than a few of our own packets in a row make them, pairs show too little.
        let is_steady = path.jitter() < (1.5 * PACKET / path.capacity()).max(0.009);
        let is_hopeless = !is_stale
            && path.samples() >= 3
            && is_steady
            && !path.is_contended(now)
            && need * self.config.up_margin > room(usual);
        if is_hopeless || is_sure && !is_stale && path.samples() >= 3 {
            self.prober.next_at = now + Duration::from_secs(1);
            return;
        }
        let rate = need * FREE_MARGIN - self.rungs[self.current].need;
        let before = path.queue_min(now, Duration::from_millis(500));
        self.prober.current = Some(Probe {
            rung: above,
            rate: Bitrate::bps(rate as u64),
            since: now,
            queue_before: before.min(0.5 * path.target().as_secs_f64()),
        });
    }

    fn watch_probe(&mut self, now: Instant, view: &View<'_>, probe: Probe) {
        let path = view.path;
        let target = path.target().as_secs_f64();
        let contended = path.is_contended(now);
        let limit = match contended {
            true => 0.5 * target - view.base_growth.as_secs_f64().min(0.4 * target),
            false => {
                (0.12 * target).max(0.03) + probe.queue_before + 2.0 * PACKET / path.capacity()
            }
        };
        let queue = path.queue_min(now, Duration::from_millis(60));
        let share = if contended { 0.6 } else { 0.35 };
        let is_bad = queue > limit
            || path.loss(now, Duration::from_millis(500)) > 0.15
            || self.lag(view) > share * target;
        if is_bad {
            let most = if contended {
                Duration::from_secs(2)
            } else {
                MAX_WAIT
            };
            self.prober.cancel();
            self.prober.wait = self.prober.wait.mul_f64(1.7).min(most);
            self.prober.next_at = now + self.prober.wait;
        } else if now.since(probe.since) >= LENGTH {
            self.prober.current = None;
            self.prober.proven = Some(probe.rung);
            self.prober.wait = self.prober.wait.mul_f64(0.8).max(MIN_WAIT);
            self.prober.next_at = now + Duration::from_secs(1);
        }
    }
}
