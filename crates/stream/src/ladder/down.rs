//! What to do when frames are about to be late.

use core::time::Duration;

use namecast_units::Instant;

use super::{Ladder, Reaction, View};

/// Reactions are so far apart, at least.
const REST: Duration = Duration::from_millis(120);
/// After a pause in which nothing came, what came then says nothing yet.
const AFTER_STALL: Duration = Duration::from_millis(80);
/// A change must show so much more before the next key sample.
const GAIN: f64 = 0.1;
/// A lower rung must show so much more than a higher one.
const GAIN_PER_RUNG: f64 = 0.15;
/// After a gap in which nothing was requested, playback must go on so soon for a lower rung to be worth it.
const SOON: f64 = 0.35;
/// After so many groups in a row whose rest was not fetched, one is fetched whole.
const MAX_BLANK_GROUPS: u32 = 2;

/// How things stand, in seconds.
#[derive(Clone, Copy, Debug)]
struct Standing {
    lag: f64,
    /// The lag at which frames are late.
    limit: f64,
    /// What the current rung takes of the link.
    load: f64,
    until_key: f64,
    is_contended: bool,
}

impl Ladder {
    /// Returns what to do now, in mid-group, if something is.
    ///
    /// ```text
    /// acts if    lag ≥ half the target, and lag + what it grows by until the next key sample ≥ 0.8 targets
    /// value      of a plan: time shown in time before the next key sample
    /// ```
    pub fn react(&mut self, now: Instant, view: &View<'_>) -> Option<Reaction> {
        let path = view.path;
        let resumed = path
            .resumed_at()
            .is_some_and(|at| now.since(at) < AFTER_STALL);
        if self.is_recent(now, REST) || resumed || !path.is_flowing(now) {
            return None;
        }
        if self.is_blank {
            return self.end_blank(now, view);
        }
        let standing = self.standing(now, view);
        if !Self::is_urgent(&standing, view.path.target().as_secs_f64()) {
            return None;
        }
        let stay = Self::value_of_staying(&standing);
        if let Some(rung) = self.best_catch_up(view, &standing, stay) {
            self.react_by(now, view);
            self.current = rung;
            return Some(Reaction::CatchUp(rung));
        }
        let target = view.path.target().as_secs_f64();
        let recovers = standing.load < 0.99
            && (standing.lag - standing.limit) / (1.0 - standing.load) < standing.until_key - 0.1;
        // Without any picture nothing shows whether the path carries one again.
        // What this machine has no time for, no path carries sooner.
        let may_blank = self.blank_groups < MAX_BLANK_GROUPS && !path.is_overloaded();
        if standing.lag > 1.5 * target && !recovers && may_blank {
            self.react_by(now, view);
            self.is_blank = true;
            return Some(Reaction::Blank);
        }
        None
    }

    fn standing(&self, now: Instant, view: &View<'_>) -> Standing {
        let path = view.path;
        let target = path.target().as_secs_f64();
        let growth = view.base_growth.as_secs_f64();
        let need = self.rungs[self.current].need;
        let fast = path.fast_capacity();
        let mut standing = Standing {
            lag: self.lag(view) + growth,
            limit: 0.8 * target,
            load: need / self.room(fast, self.current, view),
            until_key: view.until_key.as_secs_f64(),
            is_contended: path.is_contended(now),
        };
        if path.cross(now) > 0.25 {
            // Of several, those on high rungs yield first.
            standing.limit = target * (0.9 - 0.08 * self.current as f64).max(0.4);
        }
        if path.queue_min(now, Duration::from_millis(80)) < 0.008 {
            standing.load = standing.load.min(0.9);
        }
        if standing.is_contended {
            standing.limit = 0.9 * target;
            standing.lag = path.queue_now() + growth + view.backlog / fast.max(need);
            standing.load = standing.load.min(0.9);
        }
        standing
    }

    fn is_urgent(standing: &Standing, target: f64) -> bool {
        let Standing {
            lag, load, limit, ..
        } = *standing;
        let enough = lag >= 0.5 * target || load >= 2.0 && lag >= 0.3 * target;
        let grows = ((load - 1.0) * standing.until_key).clamp(0.0, standing.until_key);
        enough && lag + grows >= limit
    }

    /// Returns the time until the next key sample that staying shows in time.
    fn value_of_staying(standing: &Standing) -> f64 {
        let Standing {
            lag,
            limit,
            load,
            until_key,
            ..
        } = *standing;
        if load < 0.99 {
            return (until_key - ((lag - limit) / (1.0 - load)).max(0.0)).max(0.0);
        }
        ((limit - lag) / (load - 1.0).max(0.02)).clamp(0.0, until_key)
    }

    fn best_catch_up(&self, view: &View<'_>, standing: &Standing, stay: f64) -> Option<usize> {
        if !self.config.catches_up {
            return None;
        }
        let path = view.path;
        let fast = path.fast_capacity();
        let waits = path.queue_now().max(path.queued() / fast);
        let mut best = (stay + GAIN, None);
        for rung in (0..self.current).rev() {
            let load = self.rungs[rung].need / self.room(fast, rung, view);
            if load > 0.85 {
                continue;
            }
            let group = self.group_bits(rung, view) / fast;
            let after = (waits + group - 0.5 * standing.limit) / (1.0 - load);
            let value = (standing.until_key - after.max(0.0)).max(0.0);
            if value > best.0 + GAIN_PER_RUNG {
                best = (value, Some(rung));
            }
        }
        best.1
    }

    /// Goes on before the next key sample if that is soon possible.
    fn end_blank(&mut self, now: Instant, view: &View<'_>) -> Option<Reaction> {
        let path = view.path;
        let until_key = view.until_key.as_secs_f64();
        // What did not fit a moment ago hardly does now.
        let pause = REST * 4_u32.saturating_pow(self.resumed);
        if self.is_recent(now, pause) {
            return None;
        }
        if !self.config.catches_up || path.queue_now() > 0.06 || until_key < 0.4 {
            return None;
        }
        let fast = path.fast_capacity();
        for rung in (0..=self.current).rev() {
            let load = self.rungs[rung].need / self.room(fast, rung, view);
            if load > 0.8 {
                continue;
            }
            let after = self.group_bits(rung, view) / fast / (1.0 - load);
            let is_soon = after < SOON.min(until_key - 0.3);
            if is_soon || rung == 0 && after < until_key - 0.3 {
                self.is_blank = false;
                self.resumed += 1;
                self.current = rung;
                self.reacted_at = Some(now);
                return Some(Reaction::CatchUp(rung));
            }
        }
        None
    }

    fn react_by(&mut self, now: Instant, view: &View<'_>) {
        self.reacted_at = Some(now);
        self.rung_before = self.current;
        self.prober.cancel();
        self.fail(now, view, view.path.fast_capacity());
    }

    /// Bars the current rung and those above, for long unless the capacity fell.
    pub(super) fn fail(&mut self, now: Instant, view: &View<'_>, capacity: f64) {
        let path = view.path;
        let cross = path.cross(now);
        let need = self.rungs[self.current].need;
        let fell = self.room(capacity, self.current, view) < 0.93 * need;
        let is_variable = path.quantile(0.15) < 0.6 * path.quantile(0.5);
        if fell && cross < 0.15 || is_variable && cross < 0.2 {
            let wait = Duration::from_millis(if fell { 1_500 } else { 3_000 });
            for rung in &mut self.rungs[self.current..] {
                rung.barred_until = rung.barred_until.max(now + wait);
            }
            return;
        }
        let most = match path.is_contended(now) {
            true => Duration::from_secs(6),
            false => self.config.max_wait,
        };
        let current = self.current;
        let own = &mut self.rungs[current];
        own.wait = own.wait.mul_f64(1.6).min(most);
        let wait = own.wait / 2;
        for (index, rung) in self.rungs.iter_mut().enumerate().skip(current) {
            let wait = if index == current {
                wait
            } else {
                Duration::from_secs(4)
            };
            rung.barred_until = rung.barred_until.max(now + wait);
        }
    }
}
