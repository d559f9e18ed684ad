//! Which rung the next group is of.

use core::time::Duration;

use namecast_units::Instant;

use crate::path::Path;

use super::{FREE_MARGIN, Ladder, Rung, View};

/// Rungs that a success is forgotten for, and the share by which waits shrink with every quiet group.
const QUIET: f64 = 0.97;
/// Share lost to a full queue at which the rung is too much.
pub(super) const SQUEEZED: f64 = 0.03;
/// The same where what is lost cannot be requested again in time, so that a frame and what follows it is late.
pub(super) const SQUEEZED_FOR_GOOD: f64 = 0.004;
/// A request again takes a round trip and so long to be noticed as necessary.
const NOTICED: Duration = Duration::from_millis(30);
/// Delays that vary by more are no queue's, in seconds.
const UNSTEADY: f64 = 0.008;
/// Loss above which nothing is tried.
const MAX_LOSS: f64 = 0.12;

impl Ladder {
    /// Chooses the rung of the next group, whose key sample is about to be requested.
    pub fn pick(&mut self, now: Instant, view: &View<'_>) -> usize {
        let before = self.current;
        self.blank_groups = if self.is_blank {
            self.blank_groups + 1
        } else {
            0
        };
        self.is_blank = false;
        self.resumed = 0;
        let next = match self.down(now, view) {
            Some(lower) => lower,
            None => self.up(now, view),
        };
        if next == before && view.path.cross(now) < 0.2 {
            for rung in &mut self.rungs {
                rung.wait = rung.wait.mul_f64(QUIET).max(self.config.first_wait);
            }
        }
        self.current = next;
        self.prober.forget();
        self.rung_before = 0;
        next
    }

    /// Returns a lower rung, if the current one is too much.
    fn down(&mut self, now: Instant, view: &View<'_>) -> Option<usize> {
        let path = view.path;
        let target = path.target().as_secs_f64();
        let carried = self.carried_for_sure(now, view);
        let is_late = self.lag(view) > 0.5 * target || self.is_recent(now, Duration::from_secs(1));
        if is_late {
            let fits =
                |rung: &usize| self.rungs[*rung].need <= 0.9 * self.room(carried, *rung, view);
            let highest = (0..=self.current).rev().find(fits).unwrap_or(0);
            if highest < self.current {
                self.fail(now, view, carried);
                return Some(highest);
            }
            return None;
        }
        if self.current > 0 && self.is_too_much(now, view) {
            self.fail(now, view, carried);
            return Some(self.current - 1);
        }
        None
    }

    /// Returns what the path carries, when it is not known whether it still does.
    fn carried_for_sure(&self, now: Instant, view: &View<'_>) -> f64 {
        let path = view.path;
        if !path.is_flowing(now) {
            let half = if path.queue_now() > 0.3 { 0.5 } else { 1.0 };
            return path.capacity().min(path.quantile(0.25)) * half;
        }
        let backlogged = path.backlogged_since().map(|since| {
            let since = path
                .resumed_at()
                .map_or(since, |resumed| since.max(resumed));
            now.since(since) > Duration::from_millis(100)
        });
        if backlogged == Some(true) {
            let floor = 0.5 * path.quantile(self.config.up_quantile);
            return path.capacity().min(path.fast_capacity().max(floor));
        }
        path.capacity()
    }

    fn is_too_much(&self, now: Instant, view: &View<'_>) -> bool {
        let path = view.path;
        let target = path.target().as_secs_f64();
        let rung = self.current as f64;
        let queue = path.queue_mean(now, Duration::from_secs(2));
        let cross = path.cross(now);
        let usual = path.capacity().min(path.quantile(0.5));
        // What is lost is requested again, and of that some is lost.
        let loss = path.loss(now, Duration::from_secs(6));
        let need = self.rungs[self.current].need * (1.0 + 1.5 * loss);
        let room = self.room(usual, self.current, view);
        if !view.others.is_empty() && need > room {
            return true;
        }
        if need > self.config.down_load * room && queue > 0.05 * target {
            return true;
        }
        let share = match cross > 0.25 && !path.is_contended(now) {
            true => 0.20 - 0.025 * rung,
            false => 0.34 - 0.03 * rung,
        };
        if queue > target * share.max(0.05) {
            return true;
        }
        if path.congestive_loss(now, Duration::from_secs(2)) > max_squeezed(now, path) {
            return true;
        }
        let base = if cross > 0.45 { 0.11 } else { 0.08 };
        cross > 0.25 && path.loss(now, Duration::from_secs(3)) > (base - 0.013 * rung).max(0.02)
    }

    /// Returns the highest rung that the path is likely to carry as well.
    fn up(&mut self, now: Instant, view: &View<'_>) -> usize {
        let path = view.path;
        let target = path.target().as_secs_f64();
        let contended = path.is_contended(now);
        let loss = path.loss(now, Duration::from_secs(3));
        let lag = self.lag(view)
            + if contended {
                view.base_growth.as_secs_f64()
            } else {
                0.0
            };
        let max_lag = if contended { 0.6 } else { 0.25 } * target;
        let squeezed =
            path.congestive_loss(now, Duration::from_secs(2)) > max_squeezed(now, path) / 2.0;
        if squeezed
            || lag >= max_lag
            || loss >= MAX_LOSS
            || self.is_recent(now, Duration::from_secs(1))
            || path.marked() > 0.01
        {
            return self.current;
        }
        let mut capacity = path.capacity().min(path.quantile(self.config.up_quantile));
        if let Some(offered) = path.offered(now) {
            capacity = capacity.min(0.95 * offered.as_bps() as f64);
        }
        let mut free = capacity * (1.0 - path.cross(now));
        if contended {
            // Against others that fill every queue, a fair share has to be claimed.
            free = free.max(0.5 * path.quantile(0.75));
            capacity = capacity.max(free);
        }
        let most = (self.current + self.config.max_step).max(self.rung_before.saturating_sub(1));
        // What is lost is requested again.
        let lossy = 1.0 + path.loss(now, Duration::from_secs(6)).max(loss);
        let mut best = self.current;
        for rung in self.current + 1..=most.min(self.rungs.len() - 1) {
            let Rung {
                need, barred_until, ..
            } = self.rungs[rung];
            let [capacity, free] = [capacity, free].map(|of| self.room(of, rung, view));
            if now < barred_until && (contended || capacity <= 1.8 * need) {
                break;
            }
            let is_next = rung == self.current + 1;
            let proven = is_next && (self.prober.has_proven(rung) || contended && loss < 0.05);
            // Others of the uplink may be about to request the rate that a probe found free.
            let is_alone = view.others.is_empty();
            let overrides = proven && is_alone && (path.jitter() > 0.003 || contended);
            if need * lossy * self.config.up_margin > capacity && !overrides {
                break;
            }
            if need * FREE_MARGIN <= free || proven {
                best = rung;
            }
        }
        best
    }
}

/// Returns the share of packets that a full queue may lose on a rung.
pub(super) fn max_squeezed(now: Instant, path: &Path) -> f64 {
    let is_repaired = path.round_trip(now) + NOTICED <= path.target().mul_f64(0.7);
    // Where delays vary much, what is lost at random seems lost to a full queue.
    match is_repaired || path.jitter() > UNSTEADY {
        true => SQUEEZED,
        false => SQUEEZED_FOR_GOOD,
    }
}
