//! Controlled delay.

use core::time::Duration;

use crate::Instant;

/// CoDel of \[RFC8289\], section 5, one frame at a time: where the RFC's `deque` drops a frame and takes the next, the next call
/// continues it.
///
/// | RFC                 | here                |
/// |---------------------|---------------------|
/// | `first_above_time_` | `act_from`          |
/// | `dropping_`         | `is_acting`         |
/// | `drop_next_`        | `next_at`           |
/// | `count_`            | `count`             |
/// | `lastcount_`        | `last_count`        |
/// | `MAXPACKET`         | `largest` seen      |
///
/// Where the RFC lets the frame behind the first drop of an episode pass, the control law does: its next time lies ahead.
/// When it marks, it takes no second frame for one that it marked, as Linux does.
#[derive(Clone, Debug)]
pub struct CoDel {
    target: Duration,
    interval: Duration,
    marks: bool,
    act_from: Option<Instant>,
    is_acting: bool,
    next_at: Instant,
    count: u32,
    last_count: u32,
    largest: usize,
    /// A frame was dropped in an episode, and the time of the next drop is to be set by the frame behind it.
    is_unfinished: bool,
}

/// Time after which an episode is a new one, in intervals.
const MEMORY: u32 = 16;

impl CoDel {
    /// Marks what was queued for longer than `target` all the time for `interval`, ever more often while that lasts. The RFC
    /// recommends 5 ms and 100 ms.
    pub const fn marking(target: Duration, interval: Duration) -> Self {
        Self::new(target, interval, true)
    }

    /// Drops it instead.
    pub const fn dropping(target: Duration, interval: Duration) -> Self {
        Self::new(target, interval, false)
    }

    const fn new(target: Duration, interval: Duration, marks: bool) -> Self {
        Self {
            target,
            interval,
            marks,
            act_from: None,
            is_acting: false,
            next_at: Instant::ZERO,
            count: 0,
            last_count: 0,
            largest: 0,
            is_unfinished: false,
        }
    }

    /// Returns whether it drops, and does not mark.
    pub const fn drops(&self) -> bool {
        !self.marks
    }

    /// Returns whether to mark, or to drop, a frame of so many octets that was queued at `since` and leaves now; so many octets stay
    /// behind it.
    pub fn acts(&mut self, now: Instant, since: Instant, octets: usize, left: u64) -> bool {
        let is_late = self.is_late(now, since, octets, left);
        let is_unfinished = core::mem::take(&mut self.is_unfinished);
        if !self.is_acting {
            if is_late {
                self.begin(now);
            }
            return is_late;
        }
        if !is_late {
            self.is_acting = false;
            return false;
        }
        if is_unfinished {
            self.next_at = self.after(self.next_at);
        }
        if now < self.next_at {
            return false;
        }
        self.count = self.count.saturating_add(1);
        match self.marks {
            true => self.next_at = self.after(self.next_at),
            false => self.is_unfinished = true,
        }
        true
    }

    /// Returns the RFC's `dodequeue`: whether frames have been late for an interval.
    fn is_late(&mut self, now: Instant, since: Instant, octets: usize, left: u64) -> bool {
        self.largest = self.largest.max(octets);
        if now.since(since) < self.target || left <= self.largest as u64 {
            self.act_from = None;
            return false;
        }
        let from = *self.act_from.get_or_insert(now + self.interval);
        now >= from
    }

    /// The first drop or mark of an episode; soon after another, it goes on at the pace that held the queue then.
    fn begin(&mut self, now: Instant) {
        self.is_acting = true;
        let since_last = now.since(self.next_at);
        let delta = self.count.saturating_sub(self.last_count);
        let goes_on = delta > 1 && since_last < self.interval * MEMORY;
        self.count = if goes_on { delta } else { 1 };
        self.last_count = self.count;
        self.next_at = self.after(now);
    }

    /// Returns the control law: `interval/√count` after `at`.
    fn after(&self, at: Instant) -> Instant {
        let nanos = self.interval.as_nanos() as f64 / f64::from(self.count).sqrt();
        at + Duration::from_nanos(nanos as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codel(marks: bool) -> CoDel {
        CoDel::new(Duration::from_millis(5), Duration::from_millis(100), marks)
    }

    /// A frame of 1000 octets leaves at `at` milliseconds after it waited for `waited`, and `left` octets still wait.
    fn acts_at(codel: &mut CoDel, at: u64, waited: u64, left: u64) -> bool {
        let time = |millis| Instant::ZERO + Duration::from_millis(millis);
        codel.acts(time(at), time(at - waited), 1_000, left)
    }

    /// Returns the milliseconds of `range` at which something is done, when each frame waited for `waited` and one leaves each millisecond.
    fn acts(codel: &mut CoDel, range: core::ops::Range<u64>, waited: u64) -> Vec<u64> {
        let mut acts = Vec::new();
        for at in range {
            while acts_at(codel, at, waited, 9_000) {
                acts.push(at);
                if codel.marks {
                    break;
                }
            }
        }
        acts
    }

    /// Above target from 10 ms on, so first at 110 ms; then after 100/√1 = 100, 100/√2 = 70.71, 57.74, 50, 44.72 ms: at 210,
    /// 280.71, 338.45, 388.45, 433.17 ms, each with the first frame after that.
    const FIRST: [u64; 6] = [110, 210, 281, 339, 389, 434];

    #[test]
    fn drops_follow_the_control_law() {
        assert_eq!(acts(&mut codel(false), 10..440, 10), FIRST);
    }

    #[test]
    fn marks_come_when_drops_would() {
        assert_eq!(acts(&mut codel(true), 10..440, 10), FIRST);
    }

    /// Six drops, of which five came after the first: with count 5, the next episode begins at 541 ms (late since 441) and goes
    /// on after 100/√5 = 44.72 and 100/√6 = 40.82 ms: 585.72, 626.55.
    #[test]
    fn a_new_episode_goes_on_at_the_old_pace() {
        let mut codel = codel(false);
        acts(&mut codel, 10..440, 10);
        assert!(!acts_at(&mut codel, 440, 4, 9_000));
        assert_eq!(acts(&mut codel, 441..640, 10), [541, 586, 627]);
    }

    /// The last drop would have been due at 433.17 + 40.82 = 474 ms: 1600 ms later all is forgotten.
    #[test]
    fn an_old_episode_is_forgotten() {
        for (begins, second) in [(1_973, 2_118), (1_975, 2_175)] {
            let mut codel = codel(false);
            acts(&mut codel, 10..440, 10);
            acts_at(&mut codel, 440, 4, 9_000);
            let acts = acts(&mut codel, begins..begins + 201, 10);
            assert_eq!(acts[..2], [begins + 100, second], "{begins}");
        }
    }

    /// Nothing is done below 5 ms, at 5 ms it is; nor if at most one frame of the largest size seen waits behind.
    #[test]
    fn a_short_queue_is_left_alone() {
        assert_eq!(acts(&mut codel(false), 10..400, 4), []);
        assert_eq!(acts(&mut codel(false), 10..120, 5), [110]);
        for (left, expected) in [(1_000, false), (1_001, true)] {
            let mut codel = codel(false);
            let acts = (10..=110).map(|at| acts_at(&mut codel, at, 10, left));
            assert_eq!(acts.last(), Some(expected));
        }
    }
}
