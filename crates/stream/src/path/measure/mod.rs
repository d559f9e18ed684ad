//! What a path carries, and what waits on it, as arrivals show.
//!
//! ```text
//!  published ──base──▶ ideal ──queueing──▶ arrival
//!  Interest  ──RTT───▶
//! ```
//!
//! A packet's *ideal* is when it would have arrived had nothing queued: the later of publication plus base delay, and Interest plus
//! round trip. What it is later than that is queueing; two packets of which the second was at the queue before the first had left
//! it show the link's rate.

mod longer;

use std::collections::VecDeque;

use core::time::Duration;

use namecast_units::{Bitrate, ByteSize, Instant, WindowedMinimum};

use super::budget::PACKET;
use super::history::{History, PairSum};
use super::in_flight::Survey;

use longer::Hold;

/// Capacity before anything was measured.
const FIRST_CAPACITY: f64 = 1e6;
/// The least that a path is taken to carry.
const MIN_CAPACITY: f64 = 20e3;
/// Faster than that, gaps between packets are the clock's.
const MAX_CAPACITY: f64 = 1e9;
/// Share of a new measurement in the capacity.
const CAPACITY_GAIN: f64 = 0.1;
/// Pairs that make a measurement: so many over so long, or many.
const MIN_PAIRS: u32 = 8;
const MIN_PAIR_GAP: f64 = 0.008;
const MANY_PAIRS: u32 = 30;
/// Samples of capacity are taken so often, and kept so long.
const SAMPLE: Duration = Duration::from_millis(250);
const SAMPLES_KEPT: Duration = Duration::from_secs(5);
/// Without an arrival for so long, the path is silent.
const FLOWING: Duration = Duration::from_millis(60);
/// Of the last so many packets, if they came within that time, each has waited in a queue if there is one.
const FEW: usize = 6;
const RECENT: Duration = Duration::from_millis(100);
/// So many that are late together are in a queue.
const MANY_LATE: usize = 8;
/// A pause as long as this was a stall.
const STALL: Duration = Duration::from_millis(100);
/// A queue of so long may be full, in seconds.
const FULL: f64 = 0.02;
/// What is left of the longest queue after each tick: half of it after 7 s.
const FORGETTING: f64 = 0.9995;
/// Delays that differ by less than that over seconds are no queue.
const STILL: f64 = 0.012;
/// Round trips that are longer for so long, and as many as that, without a queue, are of a longer path.
const LONG_ENOUGH: Duration = Duration::from_secs(1);
const MANY_ENOUGH: u32 = 10;
/// How long a fade must last until it counts in full.
const FADE: f64 = 0.3;

/// Constants that depend on what is played.
#[derive(Clone, Copy, Debug)]
pub struct PathConfig {
    /// Playout target: what queues may take of it is decided elsewhere.
    pub target: Duration,
}

/// The last packet that came.
#[derive(Clone, Copy, Debug)]
struct Last {
    at: Instant,
    ideal: Instant,
    queue: f64,
    /// One Interest was sent for it.
    once: bool,
}

/// Lindley's recursion: what the queue should be if all work were ours.
#[derive(Clone, Copy, Debug)]
struct Work {
    ideal: Instant,
    queue: f64,
    service: f64,
}

/// A packet that came.
#[derive(Clone, Copy, Debug)]
pub(in crate::path) struct Arrived {
    /// When its Interest left.
    pub sent_at: Instant,
    /// Whether that was the only one.
    pub once: bool,
    /// When it could be here at the earliest.
    pub available_at: Option<Instant>,
    /// Its size.
    pub size: ByteSize,
}

/// State of one path: round trip, queueing, capacity, cross traffic, loss.
#[derive(Clone, Debug)]
pub struct Path {
    history: History,
    /// Round trips to the producer, and to whoever answers.
    live: WindowedMinimum<Duration>,
    /// All are longer than the least of the last seconds: since when, how many, and the least of those.
    longer: Option<(Instant, u32, Duration)>,
    plain: WindowedMinimum<Duration>,
    largest: ByteSize,
    newest_ideal: Instant,
    last: Option<Last>,
    /// When the last few packets came, and how long they queued.
    recent: VecDeque<(Instant, f64)>,
    work: Option<Work>,
    capacity: f64,
    is_measured: bool,
    samples: VecDeque<(Instant, f64)>,
    open: PairSum,
    open_since: Instant,
    proven: f64,
    proved_at: Instant,
    backlogged_since: Option<Instant>,
    resumed_at: Option<Instant>,
    /// Of what is in flight and should be here: bits, by how much the oldest is late, packets.
    queued: f64,
    overdue: f64,
    late_count: usize,
    queue_now: f64,
    /// The same of what has come.
    queue_seen: f64,
    /// The longest queue of the last seconds.
    highest_queue: f64,
    jitter: f64,
    fast: f64,
    hold: Option<Hold>,
    rebased_at: Instant,
    /// By how much the path was found to be longer last, and its round trip before.
    grown: Option<(Duration, Duration)>,
    marked: f64,
    offered: Option<(Instant, Bitrate)>,
    target: Duration,
}

impl Path {
    /// A path of which nothing is known.
    pub fn new(config: PathConfig) -> Self {
        Self {
            history: History::default(),
            live: new_window(),
            longer: None,
            plain: new_window(),
            largest: ByteSize::ZERO,
            newest_ideal: Instant::ZERO,
            last: None,
            recent: VecDeque::with_capacity(FEW),
            work: None,
            capacity: FIRST_CAPACITY,
            is_measured: false,
            samples: VecDeque::new(),
            open: PairSum::default(),
            open_since: Instant::ZERO,
            proven: 0.0,
            proved_at: Instant::ZERO,
            backlogged_since: None,
            resumed_at: None,
            queued: 0.0,
            overdue: 0.0,
            late_count: 0,
            queue_now: 0.0,
            queue_seen: 0.0,
            highest_queue: 0.0,
            jitter: 0.0,
            fast: FIRST_CAPACITY,
            hold: None,
            rebased_at: Instant::ZERO,
            grown: None,
            marked: 0.0,
            offered: None,
            target: config.target,
        }
    }

    /// Sets the playout target.
    pub const fn set_target(&mut self, target: Duration) {
        self.target = target;
    }

    /// Returns the playout target.
    pub const fn target(&self) -> Duration {
        self.target
    }

    /// Returns the round trip without queues: to the producer if its Data tells, else to whoever answers.
    pub fn round_trip(&self, now: Instant) -> Duration {
        let known = self.live.minimum(now).or_else(|| self.plain.minimum(now));
        known.unwrap_or(Duration::from_millis(50))
    }

    /// Records a round trip to the producer, as a verified lead shows it: without the time that the Interest waited.
    ///
    /// Returns whether the path was taken for longer by mistake.
    pub(in crate::path) fn on_round_trip(&mut self, now: Instant, rtt: Duration) -> bool {
        let least = self.live.minimum(now).unwrap_or(rtt);
        if rtt <= least + Duration::from_secs_f64(STILL) {
            self.longer = None;
        } else {
            let (since, count, before) = self.longer.unwrap_or((now, 0, rtt));
            let longer = (since, count + 1, before.min(rtt));
            self.longer = Some(longer);
            let excess = longer.2.saturating_sub(least).as_secs_f64();
            if now.since(since) > LONG_ENOUGH
                && longer.1 >= MANY_ENOUGH
                && self.queue_mean(now, LONG_ENOUGH) < 0.5 * excess
            {
                // No queue explains it.
                self.live = new_window();
                self.longer = None;
            }
        }
        self.live.push(now, rtt);
        // Nothing but this would show it: what is requested later comes later.
        let is_back = |(shift, before): &(Duration, Duration)| rtt < *before + *shift / 4;
        self.grown.take_if(|grown| is_back(grown)).is_some()
    }

    /// Returns when something requested at `sent_at`, available at the earliest at `available_at`, would arrive if nothing queued.
    pub(in crate::path) fn ideal(
        &self,
        now: Instant,
        sent_at: Instant,
        available_at: Option<Instant>,
    ) -> Instant {
        let asked = sent_at + self.round_trip(now);
        available_at.map_or(asked, |at| at.max(asked))
    }

    /// Records one packet.
    pub(in crate::path) fn on_arrival(&mut self, now: Instant, arrived: &Arrived) {
        self.largest = self.largest.max(arrived.size);
        // Small packets are sooner through a slow link.
        if arrived.once && arrived.size.as_bytes() * 2 > self.largest.as_bytes() {
            self.plain.push(now, now.since(arrived.sent_at));
        }
        let ideal = self.ideal(now, arrived.sent_at, arrived.available_at);
        let queue = now.since(ideal).as_secs_f64();
        let bits = arrived.size.as_bits() as f64;
        // What comes before its time was published early.
        self.newest_ideal = self.newest_ideal.max(ideal.min(now));
        if let Some(last) = self.last {
            let gap = now.since(last.at);
            if gap > STALL {
                self.resumed_at = Some(now);
            }
            let left = (last.queue - ideal.since(last.ideal).as_secs_f64()).max(0.0);
            self.history.on_rise(now, queue - left);
            // Which of several Interests is answered is a guess.
            if arrived.once && last.once {
                self.history.on_step(now, (queue - last.queue).abs());
            }
            // What could have been here together was sent together: where the link is too fast for a queue, they tell as much.
            if ideal + Duration::from_micros(100) < last.at || ideal <= last.ideal {
                self.on_pair(now, bits, gap.as_secs_f64());
            }
        }
        self.history.on_arrival(now, bits, queue);
        if let Some(hold) = &mut self.hold {
            hold.on_arrival(ideal, queue);
        }
        self.close_sample(now);
        self.learn_cross(now, ideal, queue, bits);
        if self.recent.len() == FEW {
            self.recent.pop_front();
        }
        self.recent.push_back((now, queue));
        self.last = Some(Last {
            at: now,
            ideal,
            queue,
            once: arrived.once,
        });
        let pairs = self.history.pairs(now, Duration::from_secs(1));
        if !self.is_measured && pairs.count >= MIN_PAIRS {
            // Anything is better than a guess.
            self.is_measured = true;
            self.capacity =
                (pairs.bits / pairs.gap.max(pairs.bits / MAX_CAPACITY)).min(MAX_CAPACITY);
        } else if let Some(rate) = rate_of(pairs, MIN_PAIRS) {
            self.capacity += CAPACITY_GAIN * (rate - self.capacity);
        }
    }

    fn on_pair(&mut self, now: Instant, bits: f64, gap: f64) {
        self.history.on_pair(now, bits, gap);
        self.open.count += 1;
        self.open.bits += bits;
        self.open.gap += gap;
    }

    fn close_sample(&mut self, now: Instant) {
        if now.since(self.open_since) < SAMPLE {
            return;
        }
        if let Some(rate) = rate_of(self.open, MIN_PAIRS) {
            self.samples.push_back((now, rate));
        }
        self.open = PairSum::default();
        self.open_since = now;
        let kept = |(at, _): &(Instant, f64)| now.since(*at) <= SAMPLES_KEPT;
        while self.samples.front().is_some_and(|sample| !kept(sample)) {
            self.samples.pop_front();
        }
    }

    /// What queueing is not explained by our own packet before it is others' work. A lower bound.
    fn learn_cross(&mut self, now: Instant, ideal: Instant, queue: f64, bits: f64) {
        let service = bits / self.capacity.max(1e5);
        let Some(before) = self.work else {
            self.work = Some(Work {
                ideal,
                queue,
                service,
            });
            return;
        };
        if ideal > before.ideal {
            let apart = ideal.since(before.ideal).as_secs_f64();
            let own = (before.queue + before.service - apart).max(0.0);
            let others = queue - own;
            if others > 0.002 {
                self.history.on_cross(now, others.min(apart));
            }
        }
        self.work = Some(Work {
            ideal: before.ideal.max(ideal),
            queue,
            service,
        });
    }

    fn pair_rate(&self, now: Instant, span: Duration, min_count: u32) -> Option<f64> {
        rate_of(self.history.pairs(now, span), min_count)
    }

    /// Records the loss of a packet.
    pub(in crate::path) fn on_loss(&mut self, now: Instant) {
        let is_squeezed = self.is_full(now);
        self.history.on_loss(now, is_squeezed);
    }

    /// Returns the share of packets lost while a queue was full, where 20 were sent.
    pub fn congestive_loss(&self, now: Instant, span: Duration) -> f64 {
        self.history.squeezed(now, span)
    }

    /// Returns whether the queue is as long as it ever gets.
    pub(in crate::path) fn is_full(&self, now: Instant) -> bool {
        let queue = self.queue_max(now, Duration::from_millis(100));
        queue > FULL && queue > 0.6 * self.highest_queue
    }

    /// Records whether a node marked a packet: F of \[DCTCP\], smoothed over some 100 packets.
    pub(in crate::path) fn on_mark(&mut self, is_marked: bool) {
        self.marked += (f64::from(u8::from(is_marked)) - self.marked) / 64.0;
    }

    /// Records the rate that the nodes on the path offer.
    pub(in crate::path) const fn on_offer(&mut self, now: Instant, rate: Bitrate) {
        self.offered = Some((now, rate));
    }

    /// Takes what is in flight and should be here.
    pub(in crate::path) fn on_tick(&mut self, now: Instant, survey: &Survey) {
        let Survey {
            queued, overdue, ..
        } = *survey;
        self.late_count = survey.late_count;
        self.queued = queued;
        self.overdue = overdue;
        let step = self.history.step_mean(now, Duration::from_millis(500), 60);
        self.jitter = (2.0 * step).min(0.05);
        let recent = self
            .last
            .filter(|last| now.since(last.at) < Duration::from_millis(50));
        let seen = match recent {
            Some(_) if self.jitter > 0.008 => self.queue_min(now, Duration::from_millis(30)),
            Some(last) => last.queue,
            // A queue is gone after as long again, not before.
            None => self.last.map_or(0.0, |last| {
                (last.queue - now.since(last.at).as_secs_f64()).max(0.0)
            }),
        };
        self.queue_seen = seen;
        self.queue_now = overdue.max(seen);
        // One large packet is no queue.
        let few = (2.5 * PACKET).max(1.25 * self.largest.as_bits() as f64);
        let limit = few.max(self.capacity * (0.012 + 2.0 * self.jitter));
        if queued > limit || overdue > 0.02 + self.jitter {
            self.backlogged_since.get_or_insert(now);
        } else {
            self.backlogged_since = None;
        }
        let queue = self.queue_max(now, Duration::from_millis(100));
        self.highest_queue = (self.highest_queue * FORGETTING).max(queue);
        self.prove(now);
        self.fast = self.measure_fast(now);
    }

    /// A rate that came through while nothing queued is carried, whatever jitter makes of pairs.
    fn prove(&mut self, now: Instant) {
        if now.since(self.proved_at) < Duration::from_millis(50) {
            return;
        }
        self.proved_at = now;
        let is_clear =
            self.is_flowing(now) && self.queue_min(now, Duration::from_millis(100)) < 0.010;
        if is_clear {
            let delivered = 0.97 * self.delivered(now, Duration::from_millis(500));
            self.proven = (self.proven * 0.99).max(delivered);
        }
        if self.queue_min(now, Duration::from_millis(150)) > 0.03 || self.overdue > 0.06 {
            self.proven = 0.0;
        }
    }

    fn measure_fast(&self, now: Instant) -> f64 {
        let mut base = self.capacity.max(self.proven);
        if let Some(rate) = self.pair_rate(now, Duration::from_millis(300), 10) {
            base = 0.5 * (rate + self.capacity);
        }
        if let Some(since) = self.backlogged_since {
            let span = now.since(since).min(Duration::from_millis(500));
            let seconds = span.as_secs_f64();
            if seconds > 0.04 {
                let came = self.history.delivered(now, span);
                let prior = base.min(self.quantile(0.25).max(0.3 * base));
                return ((came + prior * FADE) / (seconds + FADE)).max(MIN_CAPACITY);
            }
        }
        base.max(MIN_CAPACITY)
    }

    /// Returns whether Data comes.
    pub fn is_flowing(&self, now: Instant) -> bool {
        self.last.is_some_and(|last| now.since(last.at) < FLOWING)
    }

    /// Returns whether Data came in the last 30 ms.
    pub(in crate::path) fn is_flowing_now(&self, now: Instant) -> bool {
        self.last
            .is_some_and(|last| now.since(last.at) < Duration::from_millis(30))
    }

    /// Returns when Data came again after a pause.
    pub const fn resumed_at(&self) -> Option<Instant> {
        self.resumed_at
    }

    /// Returns when the last packet came.
    pub fn last_arrival(&self) -> Option<Instant> {
        self.last.map(|last| last.at)
    }

    /// Returns whether something waits on the path, and since when.
    pub const fn backlogged_since(&self) -> Option<Instant> {
        self.backlogged_since
    }

    /// Returns the least queueing delay of the last `span`, in seconds; zero if nothing came.
    pub fn queue_min(&self, now: Instant, span: Duration) -> f64 {
        self.history.queue_min(now, span).unwrap_or(0.0)
    }

    /// Returns the greatest.
    pub fn queue_max(&self, now: Instant, span: Duration) -> f64 {
        self.history.queue_max(now, span)
    }

    /// Returns the mean.
    pub fn queue_mean(&self, now: Instant, span: Duration) -> f64 {
        self.history.queue_mean(now, span)
    }

    /// Queueing delay of everything, in seconds, unlike that of single packets which a link repeated.
    pub fn queue_of_all(&self, now: Instant) -> f64 {
        let is_recent = |(at, _): &&(Instant, f64)| now.since(*at) <= RECENT;
        let recent = self.recent.iter().filter(is_recent);
        let least = recent.map(|(_, queue)| *queue).reduce(f64::min);
        let overdue = match self.late_count >= MANY_LATE {
            true => self.overdue,
            false => 0.0,
        };
        least.map_or(self.queue_now, |least| least.max(overdue))
    }

    /// Queueing delay now, in seconds: of the last packet, or of one that is late.
    pub const fn queue_now(&self) -> f64 {
        self.queue_now
    }

    /// Returns the same, where a few that are late alone may as well be lost.
    pub(in crate::path) fn queue_of_many(&self) -> f64 {
        match self.late_count >= MANY_LATE {
            true => self.queue_now,
            false => self.queue_seen,
        }
    }

    /// Bits in flight that should be here.
    pub const fn queued(&self) -> f64 {
        self.queued
    }

    /// Returns by how much neighbouring packets' delays differ, doubled, in seconds.
    pub const fn jitter(&self) -> f64 {
        self.jitter
    }

    /// Returns the rate of Data, in bits per second.
    pub fn delivered(&self, now: Instant, span: Duration) -> f64 {
        self.history.delivered(now, span) / span.as_secs_f64()
    }

    /// Returns the share of packets lost, where 20 were sent.
    pub fn loss(&self, now: Instant, span: Duration) -> f64 {
        self.history.loss(now, span, 20)
    }

    /// Returns the share of time for which others kept the link busy.
    pub fn cross(&self, now: Instant) -> f64 {
        let span = Duration::from_secs(3);
        (self.history.cross(now, span) / span.as_secs_f64()).min(0.95)
    }

    /// Returns whether others hold most of the link.
    pub fn is_contended(&self, now: Instant) -> bool {
        self.cross(now) > 0.34
    }

    /// Returns what the link carries, in bits per second.
    pub const fn capacity(&self) -> f64 {
        self.capacity
    }

    /// Returns whether the capacity was measured at all.
    pub(in crate::path) const fn is_measured(&self) -> bool {
        self.is_measured
    }

    /// Returns the same, or what came through without queueing if that is more.
    pub fn carried(&self) -> f64 {
        self.capacity.max(self.proven)
    }

    /// Returns what it carries at this moment, as far as that can be told within tenths of a second.
    pub const fn fast_capacity(&self) -> f64 {
        self.fast
    }

    /// Returns a quantile of the capacity over the last 5 s.
    pub fn quantile(&self, share: f64) -> f64 {
        if self.samples.len() < 3 {
            return self.capacity;
        }
        let mut rates: Vec<f64> = self.samples.iter().map(|(_, rate)| *rate).collect();
        rates.sort_by(f64::total_cmp);
        rates[(share * (rates.len() - 1) as f64) as usize]
    }

    /// Returns the samples of capacity over the last 5 s.
    pub fn samples(&self) -> usize {
        self.samples.len()
    }

    /// Returns what pairs of the last 2 s show, if there were enough.
    pub fn recent_rate(&self, now: Instant) -> Option<f64> {
        self.pair_rate(now, Duration::from_secs(2), 10)
    }

    /// Returns the share of packets that nodes marked lately.
    pub const fn marked(&self) -> f64 {
        self.marked
    }

    /// Returns the rate that nodes offered within the last second.
    pub fn offered(&self, now: Instant) -> Option<Bitrate> {
        let (at, rate) = self.offered?;
        (now.since(at) <= Duration::from_secs(1)).then_some(rate)
    }

    /// Returns the ideal from which on something in flight counts as queued; before it, as overtaken.
    pub(in crate::path) fn overtaken_before(&self) -> Instant {
        let slack = Duration::from_secs_f64(0.004 + 0.5 * self.jitter);
        self.newest_ideal.saturating_sub(slack)
    }

    /// Returns the newest ideal of all that has come.
    pub(in crate::path) const fn newest_ideal(&self) -> Instant {
        self.newest_ideal
    }
}

/// Round trips of the last ten seconds.
fn new_window() -> WindowedMinimum<Duration> {
    WindowedMinimum::new(Duration::from_secs(1), 10)
}

/// Returns what pairs show, if they are enough.
fn rate_of(pairs: PairSum, min_count: u32) -> Option<f64> {
    let is_enough =
        pairs.count >= min_count && pairs.gap > MIN_PAIR_GAP || pairs.count >= MANY_PAIRS;
    is_enough.then(|| pairs.bits / pairs.gap.max(pairs.bits / MAX_CAPACITY))
}
