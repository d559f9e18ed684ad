//! Controlled delay.

use namecast_units::{Duration, Instant};

use super::{Departure, Verdict};

/// CoDel of [RFC8289], section 5, one frame at a time: where the RFC's `deque` drops a frame and takes the next, the next call
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
/// When it marks, it takes no second frame for one that it marked, as Linux does.
#[derive(Clone, Debug)]
pub(crate) struct CoDel {
    target: Duration,
    interval: Duration,
    marks: bool,
    act_from: Option<Instant>,
    is_acting: bool,
    next_at: Instant,
    count: u32,
    last_count: u32,
    largest: usize,
    unfinished: Unfinished,
}

/// What a drop leaves to be done with the frame behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unfinished {
    Nothing,
    /// The drop was the first: the frame behind it is let through.
    First,
    /// One of many: the frame behind it may be the next.
    Another,
}

/// Time after which an episode is a new one, in intervals.
const MEMORY: u32 = 16;

impl CoDel {
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
            unfinished: Unfinished::Nothing,
        }
    }

    pub(crate) const fn drops(&self) -> bool {
        !self.marks
    }

    pub(crate) fn on_departure(&mut self, departure: &Departure) -> Verdict {
        let now = departure.now;
        let is_late = self.is_late(departure);
        let unfinished = core::mem::replace(&mut self.unfinished, Unfinished::Nothing);
        if unfinished == Unfinished::First {
            return Verdict::Pass;
        }
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
        if unfinished == Unfinished::Another {
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
        self.unfinished = Unfinished::Another;
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
            false => {
                self.unfinished = Unfinished::First;
                Verdict::Drop
            }
        }
    }

    /// The control law: `interval/√count` after `at`.
    fn after(&self, at: Instant) -> Instant {
        let nanos = self.interval.as_nanos() as f64 / f64::from(self.count).sqrt();
        at + Duration::from_nanos(nanos as u64)
    }
}
