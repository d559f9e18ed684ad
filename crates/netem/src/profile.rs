//! Rate and delay as they change over time.

use namecast_units::{Bitrate, ByteSize, Duration, Instant};

use crate::config::{Config, Step};
use crate::rate::Rate;
use crate::schedule::Walk;

/// A time that never comes.
const NEVER: Instant = Instant::from_nanos(u64::MAX);

/// Rate and delay at times that never decrease. Each has its place in the schedule: a frame's rate is that of the start of
/// its serialisation, its delay that of the end.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Profile {
    rate_until: Instant,
    delay_until: Instant,
    rate: Option<Bitrate>,
    delay: Duration,
    /// The size that was divided by the rate last, and the result: neighbours are mostly of one size, and division is slow.
    last: Option<(usize, Duration)>,
    /// Instead of the rate.
    walk: Option<Box<Walk>>,
    // What follows is for changes only.
    schedule: Box<[Step]>,
    rate_steps: usize,
    first_delay: Duration,
    delay_steps: usize,
}

impl Profile {
    pub(crate) fn new(config: &Config) -> Self {
        let first = starts(&config.schedule, 0);
        Self {
            schedule: config.schedule.clone().into_boxed_slice(),
            rate: config.rate.as_ref().and_then(Rate::constant),
            walk: (config.rate.as_ref().and_then(Rate::schedule))
                .map(|schedule| Box::new(Walk::new(schedule))),
            rate_steps: 0,
            rate_until: first,
            first_delay: config.delay,
            delay: config.delay,
            delay_steps: 0,
            delay_until: first,
            last: None,
        }
    }

    /// Returns when a frame that is the first one from `at` on can leave the queue: at once, or at an opportunity.
    #[inline]
    pub(crate) fn start(&self, at: Instant) -> Instant {
        match &self.walk {
            None => at,
            Some(walk) => walk.start(at),
        }
    }

    /// Returns when the last octet of a frame of `octets` is sent that leaves the queue at `start`.
    #[inline]
    pub(crate) fn serialise(&mut self, start: Instant, octets: usize) -> Instant {
        match &mut self.walk {
            None => start + self.serialisation(start, octets),
            Some(walk) => walk.serve(start, octets as u64),
        }
    }

    /// Returns the time that a frame of `octets` takes that comes at `now`; at the mean rate of a schedule.
    pub(crate) fn usual_serialisation(&mut self, now: Instant, octets: usize) -> Duration {
        match &self.walk {
            None => self.serialisation(now, octets),
            Some(walk) => walk.mean_time(octets as u64),
        }
    }

    /// Returns when the last one of `octets` that wait is sent, if the first can be from `at` on and the rate stays, or is as
    /// scheduled.
    pub(crate) fn end(&self, at: Instant, octets: ByteSize) -> Instant {
        match (&self.walk, self.rate) {
            (Some(_), _) if octets == ByteSize::ZERO => at,
            (Some(walk), _) => walk.end(at, octets.as_bytes()),
            (None, Some(rate)) => at + octets / rate,
            (None, None) => at,
        }
    }

    /// Returns the time that serialising `octets` takes if it starts at `start`.
    #[inline]
    fn serialisation(&mut self, start: Instant, octets: usize) -> Duration {
        if start >= self.rate_until {
            self.step_rate(start);
        }
        let Some(rate) = self.rate else {
            return Duration::ZERO;
        };
        if let Some((size, takes)) = self.last
            && size == octets
        {
            return takes;
        }
        let takes = ByteSize::bytes(octets as u64) / rate;
        self.last = Some((octets, takes));
        takes
    }

    /// Returns the delay of what leaves the near end at `at`.
    #[inline]
    pub(crate) fn delay(&mut self, at: Instant) -> Duration {
        if at >= self.delay_until {
            self.step_delay(at);
        }
        self.delay
    }

    /// Lets the times at which delays are requested begin again, and those of opportunities: the end of a serialisation that
    /// was requested lay in the future, and will not come.
    pub(crate) fn rewind(&mut self) {
        if let Some(walk) = &mut self.walk {
            walk.rewind();
        }
        self.delay = self.first_delay;
        self.delay_steps = 0;
        self.delay_until = starts(&self.schedule, 0);
    }

    #[cold]
    fn step_rate(&mut self, at: Instant) {
        while at >= self.rate_until
            && let Some(step) = self.schedule.get(self.rate_steps)
        {
            self.rate = step.rate.or(self.rate);
            self.rate_steps += 1;
            self.rate_until = starts(&self.schedule, self.rate_steps);
        }
        self.last = None;
    }

    #[cold]
    fn step_delay(&mut self, at: Instant) {
        while at >= self.delay_until
            && let Some(step) = self.schedule.get(self.delay_steps)
        {
            self.delay = step.delay.unwrap_or(self.delay);
            self.delay_steps += 1;
            self.delay_until = starts(&self.schedule, self.delay_steps);
        }
    }
}

/// Returns when step `index` begins.
fn starts(schedule: &[Step], index: usize) -> Instant {
    schedule
        .get(index)
        .map_or(NEVER, |step| Instant::ZERO + step.at)
}
