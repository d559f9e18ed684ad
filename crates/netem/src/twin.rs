//! The link against a twin that takes one event after another, none of them lazily.

mod scene;

use bytes::Bytes;
use namecast_units::{Bitrate, Duration, Instant, Random};

use crate::config::{Config, Queue};
use crate::fate::{Chance, Fate};
use crate::link::Link;
use crate::output::{DropReason, Output};
use crate::rate::Rate;
use scene::{Traffic, some_config, some_traffic};

/// What became of a frame: its number, when, and the wait and mark, or why it did not arrive.
type Event = (u32, u64, Result<(u64, bool), DropReason>);

#[derive(Clone, Debug)]
struct Frame {
    number: u32,
    octets: usize,
    since: u64,
    fate: Fate,
}

/// The RFC's pseudo-code, with its loop over the queue.
#[derive(Debug, Default)]
struct CoDel {
    first_above: u64,
    dropping: bool,
    drop_next: u64,
    count: u32,
    last_count: u32,
    max_packet: usize,
}

#[derive(Debug)]
struct Twin {
    config: Config,
    now: u64,
    queue: Vec<Frame>,
    busy_until: u64,
    /// Arrival, order of sending, frame, wait, mark.
    flying: Vec<(u64, usize, Frame, u64, bool)>,
    sent: usize,
    last_arrival: u64,
    codel: CoDel,
    /// Of a schedule: each opportunity, with the octets that it has left.
    opportunities: Vec<(u64, usize)>,
    events: Vec<Event>,
}

impl Twin {
    fn new(config: &Config) -> Self {
        Self {
            opportunities: opportunities(config),
            config: config.clone(),
            now: 0,
            queue: Vec::new(),
            busy_until: 0,
            flying: Vec::new(),
            sent: 0,
            last_arrival: 0,
            codel: CoDel::default(),
            events: Vec::new(),
        }
    }

    fn rate(&self, at: u64) -> Option<Bitrate> {
        let steps = self.config.schedule.iter();
        let passed = steps.filter(|step| nanos(step.at) <= at);
        let first = self.config.rate.as_ref().and_then(Rate::constant);
        passed.fold(first, |rate, step| step.rate.or(rate))
    }

    /// Returns when the head can leave the queue.
    fn departure(&self) -> u64 {
        let at = self.busy_until.max(self.now);
        let mut later = self.opportunities.iter().filter(|next| next.0 >= at);
        match self.opportunities.is_empty() {
            true => at,
            false => later
                .find(|next| next.1 > 0)
                .map_or(u64::MAX, |next| next.0),
        }
    }

    /// Sends octet by octet, as long as there is one; when the last one is sent.
    fn transmit(&mut self, octets: usize) -> u64 {
        if self.opportunities.is_empty() {
            let bits = (octets + self.headers()) as u64 * 8;
            return self.now
                + self
                    .rate(self.now)
                    .map_or(0, |rate| bits * 1_000_000_000 / rate.as_bps());
        }
        let (now, headers) = (self.now, self.headers());
        let mut later = self
            .opportunities
            .iter_mut()
            .filter(|next| next.0 >= now && next.1 > 0);
        let mut place = later.next().expect("the twin has enough of them");
        for _ in 0..octets + headers {
            if place.1 == 0 {
                place = later.next().expect("the twin has enough of them");
            }
            place.1 -= 1;
        }
        place.0
    }

    fn delay(&self, at: u64) -> u64 {
        let steps = self.config.schedule.iter();
        let passed = steps.filter(|step| nanos(step.at) <= at);
        let last = passed.fold(self.config.delay, |delay, step| step.delay.unwrap_or(delay));
        nanos(last)
    }

    fn headers(&self) -> usize {
        usize::try_from(self.config.headers.as_bytes()).unwrap()
    }

    fn queued_bytes(&self) -> usize {
        let charged = |frame: &Frame| (frame.octets + self.headers()).max(1);
        self.queue.iter().map(charged).sum()
    }

    fn is_out(&self) -> bool {
        let mut outages = self.config.outages.iter();
        outages.any(|outage| nanos(outage.from) <= self.now && self.now < nanos(outage.until))
    }

    fn lose(&mut self, number: u32, reason: DropReason) {
        self.events.push((number, self.now, Err(reason)));
    }

    /// Returns the next time at which something happens, up to `until`.
    fn next(&self, until: u64) -> u64 {
        let arrivals = self.flying.iter().map(|flying| flying.0);
        let departure = (!self.queue.is_empty()).then(|| self.departure());
        let outages = self.config.outages.iter().map(|outage| nanos(outage.from));
        let all = arrivals.chain(departure).chain(outages);
        all.filter(|&at| at > self.now)
            .min()
            .unwrap_or(until)
            .min(until)
    }

    fn run(&mut self, until: u64) {
        loop {
            self.happen();
            if self.now == until {
                return;
            }
            self.now = self.next(until);
        }
    }

    /// All that happens now: arrivals, departures, what departs and arrives at once; then an outage.
    fn happen(&mut self) {
        loop {
            self.flying.sort_by_key(|flying| (flying.0, flying.1));
            if self.flying.first().is_some_and(|first| first.0 <= self.now) {
                let (at, _, frame, waited, mark) = self.flying.remove(0);
                for _ in 0..=u32::from(frame.fate.has_copy) {
                    self.events.push((frame.number, at, Ok((waited, mark))));
                }
            } else if !self.queue.is_empty() && self.departure() <= self.now {
                self.depart();
            } else {
                break;
            }
        }
        let mut outages = self.config.outages.iter();
        if outages.any(|outage| nanos(outage.from) == self.now) {
            let flying = core::mem::take(&mut self.flying);
            let waiting = core::mem::take(&mut self.queue);
            let flying = flying.into_iter().map(|flying| flying.2);
            for frame in flying.chain(waiting) {
                self.lose(frame.number, DropReason::Down);
            }
            self.busy_until = self.busy_until.min(self.now);
            self.last_arrival = 0;
            let now = self.now;
            let later = self.opportunities.iter_mut().filter(|next| next.0 >= now);
            later.for_each(|next| next.1 = OPPORTUNITY);
        }
    }

    fn depart(&mut self) {
        let (frame, mark) = match self.config.queue {
            Queue::CoDel {
                target,
                interval,
                mark,
                ..
            } => self.codel_deque(nanos(target), nanos(interval), mark),
            Queue::Ramp { max, .. } => {
                let frame = self.queue.remove(0);
                let mark = self.now - frame.since >= nanos(max);
                (frame, mark)
            }
            _ => (self.queue.remove(0), false),
        };
        self.busy_until = self.transmit(frame.octets);
        let mut at = self.busy_until + self.delay(self.busy_until) + nanos(frame.fate.addition);
        if !self.config.jitter.reorder {
            at = at.max(self.last_arrival);
            self.last_arrival = at;
        }
        self.sent += 1;
        let waited = self.now - frame.since;
        self.flying.push((at, self.sent, frame, waited, mark));
    }

    fn ok_to_drop(&mut self, frame: &Frame, target: u64, interval: u64) -> bool {
        let (headers, bytes) = (self.headers(), self.queued_bytes());
        let codel = &mut self.codel;
        codel.max_packet = codel.max_packet.max(frame.octets + headers);
        if self.now - frame.since < target || bytes <= codel.max_packet {
            codel.first_above = 0;
            return false;
        }
        if codel.first_above == 0 {
            codel.first_above = self.now + interval;
            return false;
        }
        self.now >= codel.first_above
    }

    fn codel_deque(&mut self, target: u64, interval: u64, mark: bool) -> (Frame, bool) {
        let law = |t: u64, count: u32| t + (interval as f64 / f64::from(count).sqrt()) as u64;
        let mut frame = self.queue.remove(0);
        let mut ok = self.ok_to_drop(&frame, target, interval);
        if self.codel.dropping {
            if !ok {
                self.codel.dropping = false;
            }
            while self.now >= self.codel.drop_next && self.codel.dropping {
                self.codel.count += 1;
                if mark {
                    self.codel.drop_next = law(self.codel.drop_next, self.codel.count);
                    return (frame, true);
                }
                self.lose(frame.number, DropReason::ActiveQueue);
                frame = self.queue.remove(0);
                ok = self.ok_to_drop(&frame, target, interval);
                if ok {
                    self.codel.drop_next = law(self.codel.drop_next, self.codel.count);
                } else {
                    self.codel.dropping = false;
                }
            }
            return (frame, false);
        }
        if !ok {
            return (frame, false);
        }
        if !mark {
            self.lose(frame.number, DropReason::ActiveQueue);
            frame = self.queue.remove(0);
            self.ok_to_drop(&frame, target, interval);
        }
        self.codel.dropping = true;
        let delta = i64::from(self.codel.count) - i64::from(self.codel.last_count);
        self.codel.count = 1;
        if delta > 1 && self.now.saturating_sub(self.codel.drop_next) < 16 * interval {
            self.codel.count = u32::try_from(delta).unwrap();
        }
        self.codel.drop_next = law(self.now, self.codel.count);
        self.codel.last_count = self.codel.count;
        (frame, mark)
    }

    fn come(&mut self, number: u32, octets: usize, fate: Fate) {
        if self.is_out() {
            return self.lose(number, DropReason::Down);
        }
        if fate.is_lost {
            return self.lose(number, DropReason::Loss);
        }
        let (bytes, charged) = (self.queued_bytes(), (octets + self.headers()).max(1));
        let fits = match self.config.queue {
            Queue::DropTailBytes { size } => (bytes + charged) as u64 <= size.as_bytes(),
            Queue::DropTail { packets }
            | Queue::CoDel { packets, .. }
            | Queue::Ramp { packets, .. } => self.queue.len() < packets,
            _ => true,
        };
        let is_idle = self.queue.is_empty() && self.departure() <= self.now;
        if !fits && !is_idle {
            return self.lose(number, DropReason::QueueFull);
        }
        let since = self.now;
        self.queue.push(Frame {
            number,
            octets,
            since,
            fate,
        });
        self.happen();
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap()
}

/// Octets that one serves.
const OPPORTUNITY: usize = 1_500;

/// Returns the opportunities of the schedule, if that is what the rate is, for longer than any traffic takes.
fn opportunities(config: &Config) -> Vec<(u64, usize)> {
    let schedule = config.rate.as_ref().and_then(Rate::schedule);
    let Some(times) = schedule.as_ref().and_then(|it| it.deliveries()) else {
        return Vec::new();
    };
    let period = u64::from(times[times.len() - 1]) * 1_000_000;
    let cycles = (0..20_000_000_000).step_by(usize::try_from(period).unwrap());
    let of_cycle = |start| {
        times
            .iter()
            .map(move |&time| start + u64::from(time) * 1_000_000)
    };
    cycles
        .flat_map(of_cycle)
        .map(|at| (at, OPPORTUNITY))
        .collect()
}

/// How the link under test is driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Driver {
    /// By its timers.
    Timers,
    /// By its timers, and by calls at any other time.
    Restless,
    /// Only when a frame comes.
    Lazy,
}

fn drive(config: &Config, seed: u64, traffic: &Traffic, driver: Driver) -> Vec<Event> {
    let mut link = Link::new(config.clone(), seed);
    let mut random = Random::from_seed(seed);
    let mut events = Vec::new();
    let end = traffic.last().expect("there is some").0 + 10_000_000_000;
    let mut now = 0;
    for (number, &(at, octets)) in traffic.iter().chain(&[(end, 0)]).enumerate() {
        while driver != Driver::Lazy && now < at {
            let timeout = link.poll_timeout().map_or(at, Instant::as_nanos);
            now = timeout.clamp(now, at);
            if driver == Driver::Restless && random.chance(0.5) {
                now = at.min(now) - random.below(at.min(now) - events_end(&events).min(now) + 1);
            }
            link.handle_timeout(Instant::from_nanos(now));
            let is_over = link.poll_timeout().is_none_or(|next| next.as_nanos() > at);
            drain(&mut link, &mut events);
            if is_over {
                break;
            }
        }
        now = at;
        if at < end {
            let mut frame = vec![0; octets];
            frame[..4].copy_from_slice(&u32::try_from(number).unwrap().to_be_bytes());
            link.handle_frame(Instant::from_nanos(at), Bytes::from(frame));
        } else {
            link.handle_timeout(Instant::from_nanos(end));
        }
        drain(&mut link, &mut events);
    }
    events
}

fn events_end(events: &[Event]) -> u64 {
    events.last().map_or(0, |event| event.1)
}

fn drain(link: &mut Link, events: &mut Vec<Event>) {
    let number = |frame: &Bytes| u32::from_be_bytes(frame[..4].try_into().unwrap());
    while let Some(output) = link.poll_output() {
        events.push(match output {
            Output::Delivered {
                at,
                frame,
                queued_for,
                congestion_marked,
            } => {
                let how = (nanos(queued_for), congestion_marked);
                (number(&frame), at.as_nanos(), Ok(how))
            }
            Output::Dropped { at, frame, reason } => (number(&frame), at.as_nanos(), Err(reason)),
        });
    }
}

fn expected(config: &Config, seed: u64, traffic: &Traffic) -> Vec<Event> {
    let mut twin = Twin::new(config);
    let mut chance = Chance::new(config, seed);
    for (number, &(at, octets)) in traffic.iter().enumerate() {
        let fate = (chance.as_mut()).map_or_else(Fate::default, |chance| chance.next(octets));
        twin.run(at);
        twin.come(u32::try_from(number).unwrap(), octets, fate);
    }
    twin.run(traffic.last().expect("there is some").0 + 10_000_000_000);
    twin.events
}

#[test]
fn the_link_does_what_the_twin_does() {
    let mut seen = [0_usize; 5];
    for seed in 0..3_000 {
        let random = &mut Random::from_seed(seed);
        let (config, traffic) = (some_config(random), some_traffic(random));
        assert_eq!(config.validate(), Ok(()), "seed {seed}");
        let expected = expected(&config, seed, &traffic);
        for driver in [Driver::Timers, Driver::Restless, Driver::Lazy] {
            let events = drive(&config, seed, &traffic, driver);
            assert_eq!(events, expected, "seed {seed}, {driver:?}, {config:?}");
        }
        for (_, _, how) in &expected {
            seen[match how {
                Ok((_, false)) => 0,
                Ok((_, true)) => 1,
                Err(DropReason::QueueFull) => 2,
                Err(DropReason::ActiveQueue) => 3,
                Err(_) => 4,
            }] += 1;
        }
    }
    // Each kind of event was compared often.
    assert!(seen.iter().all(|&count| count > 500), "{seen:?}");
}
