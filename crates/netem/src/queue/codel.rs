//! Controlled delay.

use namecast_units::{Duration, Instant};

use super::{Departure, Verdict};

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
    /// Marks what was queued for longer than `target` all the time for `interval`, ever more often while that lasts. For a
    /// queue that is not emulated; the RFC recommends 5 ms and 100 ms.
    pub const fn marking(target: Duration, interval: Duration) -> Self {
        Self::new(target, interval, true)
    }

    /// Whether to mark a frame of so many octets that leaves the queue now, after it waited for `sojourn`; so many octets
    /// stay behind it.
    pub fn marks(&mut self, now: Instant, sojourn: Duration, octets: usize, left: u64) -> bool {
        let departure = Departure {
            now,
            since: now.saturating_sub(sojourn),
            octets,
            octets_left: left,
            // The law goes by octets.
            waiting: 0,
        };
        self.on_departure(&departure) == Verdict::Mark
    }

    pub(crate) const fn new(target: Duration, interval: Duration, marks: bool) -> Self {
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

    pub(crate) const fn drops(&self) -> bool {
        !self.marks
    }

    pub(crate) fn on_departure(&mut self, departure: &Departure) -> Verdict {
        let now = departure.now;
        let is_late = self.is_late(departure);
        let is_unfinished = core::mem::take(&mut self.is_unfinished);
        if !self.is_acting {
            return match is_late {
                true => self.begin(now),
                false => Verdict::Pass,
            };
        }
        if !is_late {
            self.is_acting = false;
            return Verdict::Pass;
        }
        if is_unfinished {
            self.next_at = self.after(self.next_at);
        }
        if now < self.next_at {
            return Verdict::Pass;
        }
        self.count = self.count.saturating_add(1);
        if self.marks {
            self.next_at = self.after(self.next_at);
            return Verdict::Mark;
        }
        self.is_unfinished = true;
        Verdict::Drop
    }

    /// The RFC's `dodequeue`: whether frames have been late for an interval.
    fn is_late(&mut self, departure: &Departure) -> bool {
        self.largest = self.largest.max(departure.octets);
        let sojourn = departure.now.since(departure.since);
        if sojourn < self.target || departure.octets_left <= self.largest as u64 {
            self.act_from = None;
            return false;
        }
        let from = *self.act_from.get_or_insert(departure.now + self.interval);
        departure.now >= from
    }

    /// The first drop or mark of an episode; soon after another, it goes on at the pace that held the queue then.
    fn begin(&mut self, now: Instant) -> Verdict {
        self.is_acting = true;
        let since_last = now.since(self.next_at);
        let delta = self.count.saturating_sub(self.last_count);
        let goes_on = delta > 1 && since_last < self.interval * MEMORY;
        self.count = if goes_on { delta } else { 1 };
        self.last_count = self.count;
        self.next_at = self.after(now);
        match self.marks {
            true => Verdict::Mark,
            false => Verdict::Drop,
        }
    }

    /// The control law: `interval/√count` after `at`.
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

    /// A frame of 1000 octets leaves at `at` milliseconds after it waited for `waited`, and `octets_left` still wait.
    fn departure(at: u64, waited: u64, octets_left: u64) -> Departure {
        Departure {
            now: Instant::ZERO + Duration::from_millis(at),
            since: Instant::ZERO + Duration::from_millis(at - waited),
            octets: 1_000,
            octets_left,
            waiting: 10,
        }
    }

    /// The milliseconds of `range` at which something is done, when each frame waited for `waited` and one leaves each millisecond.
    fn acts(codel: &mut CoDel, range: core::ops::Range<u64>, waited: u64) -> Vec<u64> {
        let mut acts = Vec::new();
        for at in range {
            while codel.on_departure(&departure(at, waited, 9_000)) != Verdict::Pass {
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

    #[test]
    fn a_queue_that_is_not_emulated_is_marked_by_the_same_law() {
        let mut codel = CoDel::marking(Duration::from_millis(5), Duration::from_millis(100));
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut marks =
            |millis: u64| codel.marks(at(millis), Duration::from_millis(10), 1_000, 9_000);
        let marked: Vec<_> = (10..440).filter(|&millis| marks(millis)).collect();
        assert_eq!(marked, FIRST);
    }

    /// Six drops, of which five came after the first: with count 5, the next episode begins at 541 ms (late since 441) and goes
    /// on after 100/√5 = 44.72 and 100/√6 = 40.82 ms: 585.72, 626.55.
    #[test]
    fn a_new_episode_goes_on_at_the_old_pace() {
        let mut codel = codel(false);
        acts(&mut codel, 10..440, 10);
        assert_eq!(codel.on_departure(&departure(440, 4, 9_000)), Verdict::Pass);
        assert_eq!(acts(&mut codel, 441..640, 10), [541, 586, 627]);
    }

    /// The last drop would have been due at 433.17 + 40.82 = 474 ms: 1600 ms later all is forgotten.
    #[test]
    fn an_old_episode_is_forgotten() {
        for (begins, second) in [(1_973, 2_118), (1_975, 2_175)] {
            let mut codel = codel(false);
            acts(&mut codel, 10..440, 10);
            codel.on_departure(&departure(440, 4, 9_000));
            let acts = acts(&mut codel, begins..begins + 201, 10);
            assert_eq!(acts[..2], [begins + 100, second], "{begins}");
        }
    }

    /// Nothing is done below 5 ms, at 5 ms it is; nor if at most one frame of the largest size seen waits behind.
    #[test]
    fn a_short_queue_is_left_alone() {
        assert_eq!(acts(&mut codel(false), 10..400, 4), []);
        assert_eq!(acts(&mut codel(false), 10..120, 5), [110]);
        for (octets_left, expected) in [(1_000, Verdict::Pass), (1_001, Verdict::Drop)] {
            let mut codel = codel(false);
            let verdicts = (10..=110).map(|at| codel.on_departure(&departure(at, 10, octets_left)));
            assert_eq!(verdicts.last(), Some(expected));
        }
    }
}
