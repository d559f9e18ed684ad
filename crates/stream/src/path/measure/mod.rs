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

mod capacity;
mod cross;
mod longer;
mod queueing;
mod round_trips;

use core::time::Duration;

use namecast_units::{Bitrate, ByteSize, Instant};

use crate::feedback::Feedback;

use super::delay::PathOutlook;
use super::history::{History, PairSum};
use super::in_flight::Survey;

use capacity::{Capacity, rate_of};
use cross::CrossTraffic;
use longer::Hold;
use queueing::Queueing;
use round_trips::RoundTrips;

/// Without an arrival for so long, the path is silent.
const FLOWING: Duration = Duration::from_millis(60);
/// A pause as long as this was a stall.
const STALL: Duration = Duration::from_millis(100);
/// With later wake-ups, gaps between packets are this machine's.
const PUNCTUAL: Duration = Duration::from_millis(4);
/// With later wake-ups, what does not come may have been dropped here.
const OVERLOADED: Duration = Duration::from_millis(20);
/// Delays that differ by less than that over seconds are no queue.
const STILL: f64 = 0.012;

/// The last packet that came.
#[derive(Clone, Copy, Debug)]
struct Last {
    at: Instant,
    ideal: Instant,
    queue: f64,
    /// One Interest was sent for it.
    once: bool,
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
    round_trips: RoundTrips,
    capacity: Capacity,
    queueing: Queueing,
    cross: CrossTraffic,
    largest: ByteSize,
    newest_ideal: Instant,
    last: Option<Last>,
    resumed_at: Option<Instant>,
    hold: Option<Hold>,
    rebased_at: Instant,
    marked: f64,
    offered: Option<(Instant, Bitrate)>,
    target: Duration,
    wake_delay: Duration,
}

impl Path {
    /// A path of which nothing is known. What queues may take of the playout target is decided elsewhere.
    pub fn new(target: Duration) -> Self {
        Self {
            history: History::default(),
            round_trips: RoundTrips::default(),
            capacity: Capacity::default(),
            queueing: Queueing::default(),
            cross: CrossTraffic::default(),
            largest: ByteSize::ZERO,
            newest_ideal: Instant::ZERO,
            last: None,
            resumed_at: None,
            hold: None,
            rebased_at: Instant::ZERO,
            marked: 0.0,
            offered: None,
            target,
            wake_delay: Duration::ZERO,
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

    /// Sets by how much packets are handled after they arrive, as this machine is busy. That is neither a queue on the path nor
    /// loss. Zero by default.
    pub const fn set_wake_delay(&mut self, delay: Duration) {
        self.wake_delay = delay;
    }

    /// Returns by how much packets are handled after they arrive.
    pub(in crate::path) const fn wake_delay(&self) -> Duration {
        self.wake_delay
    }

    /// Returns whether this machine has too little time for its packets.
    pub fn is_overloaded(&self) -> bool {
        self.wake_delay > OVERLOADED
    }

    /// Returns the round trip without queues: to the producer if its Data shows it, else to whoever answers.
    pub fn round_trip(&self, now: Instant) -> Duration {
        self.round_trips.least(now)
    }

    /// Records a round trip to the producer, as a verified lead segment shows it: without the time that the Interest waited.
    ///
    /// Returns whether the path was taken for longer by mistake.
    pub(in crate::path) fn on_round_trip(&mut self, now: Instant, rtt: Duration) -> bool {
        self.round_trips.on_producer(now, rtt, &self.history)
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

    /// Records one packet. Returns its queueing delay in seconds.
    pub(in crate::path) fn on_arrival(&mut self, now: Instant, arrived: &Arrived) -> f64 {
        self.largest = self.largest.max(arrived.size);
        // Small packets are sooner through a slow link.
        if arrived.once && arrived.size.as_bytes() * 2 > self.largest.as_bytes() {
            self.round_trips.on_answer(now, now.since(arrived.sent_at));
        }
        let ideal = self.ideal(now, arrived.sent_at, arrived.available_at);
        let queue = now.since(ideal + self.wake_delay).as_secs_f64();
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
            // What could have been here together was sent together: where the link is too fast for a queue, that shows as much.
            let is_pair = ideal + Duration::from_micros(100) < last.at || ideal <= last.ideal;
            if is_pair && self.wake_delay < PUNCTUAL {
                let gap = gap.as_secs_f64();
                self.history.on_pair(now, bits, gap);
                self.capacity.on_pair(bits, gap);
            }
        }
        self.history.on_arrival(now, bits, queue);
        if let Some(hold) = &mut self.hold {
            hold.on_arrival(ideal, queue);
        }
        self.capacity.close_sample(now);
        let service = bits / self.capacity.smoothed().max(1e5);
        if let Some(others) = self.cross.on_arrival(ideal, queue, service) {
            self.history.on_cross(now, others);
        }
        self.queueing.on_arrival(now, queue);
        self.last = Some(Last {
            at: now,
            ideal,
            queue,
            once: arrived.once,
        });
        let pairs = self.history.pairs(now, Duration::from_secs(1));
        self.capacity.measure(pairs);
        queue
    }

    /// Records the loss of a packet.
    pub(in crate::path) fn on_loss(&mut self, now: Instant) {
        if self.is_overloaded() {
            return;
        }
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
        self.queueing.is_full(queue)
    }

    /// Records whether a node marked a packet: F of \[DCTCP\], smoothed over some 100 packets.
    pub(in crate::path) fn on_mark(&mut self, is_marked: bool) {
        self.marked += (f64::from(u8::from(is_marked)) - self.marked) / 64.0;
    }

    /// Records what the nodes on the path say of a packet: the rate that they offer.
    pub(in crate::path) const fn on_feedback(&mut self, now: Instant, feedback: &Feedback) {
        if let Some(rate) = feedback.offered {
            self.offered = Some((now, rate));
        }
    }

    /// Records what is in flight and should be here.
    pub(in crate::path) fn on_tick(&mut self, now: Instant, survey: &Survey) {
        let seen = (&self.history, self.last.as_ref());
        let link = (self.largest, self.capacity.smoothed());
        self.queueing.on_tick(now, survey, seen, link);
        let (is_flowing, overdue) = (self.is_flowing(now), self.queueing.overdue());
        self.capacity.prove(now, &self.history, is_flowing, overdue);
        let since = self.queueing.backlogged_since();
        self.capacity.measure_fast(now, &self.history, since);
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
        self.queueing.backlogged_since()
    }

    /// Returns the least queueing delay of the last `span`, in seconds; zero if nothing came.
    pub fn queue_min(&self, now: Instant, span: Duration) -> f64 {
        self.history.queue_min(now, span).unwrap_or(0.0)
    }

    /// Returns the greatest queueing delay of the last `span`, in seconds.
    pub fn queue_max(&self, now: Instant, span: Duration) -> f64 {
        self.history.queue_max(now, span)
    }

    /// Returns the mean queueing delay of the last `span`, in seconds.
    pub fn queue_mean(&self, now: Instant, span: Duration) -> f64 {
        self.history.queue_mean(now, span)
    }

    /// Returns the queueing delays of what came at one time on both paths in the last 6 s, in seconds.
    pub(in crate::path) fn common_delays(&self, other: &Self) -> Vec<(f64, f64)> {
        self.history.common(&other.history)
    }

    /// Returns the queueing delay of everything, in seconds, unlike that of single packets which a link repeated.
    pub fn queue_of_all(&self, now: Instant) -> f64 {
        self.queueing.of_all(now)
    }

    /// Returns the queueing delay now, in seconds: of the last packet, or of one that is late.
    pub const fn queue_now(&self) -> f64 {
        self.queueing.now()
    }

    /// Returns the queueing delay now, in seconds, where a few packets that are late alone may as well be lost.
    pub(in crate::path) fn queue_of_many(&self) -> f64 {
        self.queueing.of_many()
    }

    /// Returns the bits in flight that should be here.
    pub const fn queued(&self) -> f64 {
        self.queueing.queued()
    }

    /// Returns by how much neighbouring packets' delays differ, doubled, in seconds.
    pub const fn jitter(&self) -> f64 {
        self.queueing.jitter()
    }

    /// Returns what queues, and how delays vary.
    pub fn outlook(&self, now: Instant) -> PathOutlook {
        PathOutlook {
            queueing: Duration::from_secs_f64(self.queue_of_all(now)),
            jitter: Duration::from_secs_f64(self.jitter()),
        }
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
        self.capacity.smoothed()
    }

    /// Returns whether the capacity was measured at all.
    pub(in crate::path) const fn is_measured(&self) -> bool {
        self.capacity.is_measured()
    }

    /// Returns what the link carries, or what came through without queueing if that is more.
    pub fn carried(&self) -> f64 {
        self.capacity.carried()
    }

    /// Returns what the link carries at this moment, as far as that is known within tenths of a second.
    pub const fn fast_capacity(&self) -> f64 {
        self.capacity.fast()
    }

    /// Returns a quantile of the capacity over the last 5 s.
    pub fn quantile(&self, share: f64) -> f64 {
        self.capacity.quantile(share)
    }

    /// Returns the number of samples of capacity over the last 5 s.
    pub fn samples(&self) -> usize {
        self.capacity.samples()
    }

    /// Returns what pairs of the last 2 s show, if there were enough.
    pub fn recent_rate(&self, now: Instant) -> Option<f64> {
        rate_of(self.history.pairs(now, Duration::from_secs(2)), 10)
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
        let slack = Duration::from_secs_f64(0.004 + 0.5 * self.jitter());
        self.newest_ideal.saturating_sub(slack)
    }

    /// Returns the newest ideal of all that has come.
    pub(in crate::path) const fn newest_ideal(&self) -> Instant {
        self.newest_ideal
    }
}
