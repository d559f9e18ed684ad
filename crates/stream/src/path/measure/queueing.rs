//! What waits on the path now.

use std::collections::VecDeque;

use core::time::Duration;

use namecast_units::{ByteSize, Instant};

use super::super::budget::PACKET;
use super::super::in_flight::Survey;
use super::{History, Last};

/// Of the last so many packets, if they came within that time, each has waited in a queue if there is one.
const FEW: usize = 6;
const RECENT: Duration = Duration::from_millis(100);
/// So many that are late together are in a queue.
const MANY_LATE: usize = 8;
/// A queue of so long may be full, in seconds.
const FULL: f64 = 0.02;
/// What is left of the longest queue after each tick: half of it after 7 s.
const FORGETTING: f64 = 0.9995;

/// The queue on the path as packets show it that have come, and those that should have. Times in seconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Queueing {
    /// When the last few packets came, and how long they queued.
    recent: VecDeque<(Instant, f64)>,
    /// Of what is in flight and should be here: bits, by how much the oldest is late, packets.
    queued: f64,
    overdue: f64,
    late_count: usize,
    /// As what has come shows it.
    seen: f64,
    /// The longest queue of the last seconds.
    highest: f64,
    jitter: f64,
    backlogged_since: Option<Instant>,
}

impl Queueing {
    /// Records a packet that queued for `queue`.
    pub(super) fn on_arrival(&mut self, now: Instant, queue: f64) {
        if self.recent.len() == FEW {
            self.recent.pop_front();
        }
        self.recent.push_back((now, queue));
    }

    /// Records what is in flight and should be here, after `last`, and how much of it the link carries at once: packets up to
    /// `largest`, at `capacity`.
    pub(super) fn on_tick(
        &mut self,
        now: Instant,
        survey: &Survey,
        (history, last): (&History, Option<&Last>),
        (largest, capacity): (ByteSize, f64),
    ) {
        self.queued = survey.queued;
        self.overdue = survey.overdue;
        self.late_count = survey.late_count;
        let step = history.step_mean(now, Duration::from_millis(500), 60);
        self.jitter = (2.0 * step).min(0.05);
        self.seen = last.map_or(0.0, |last| {
            let silence = now.since(last.at);
            if silence >= Duration::from_millis(50) {
                // A queue is gone after as long again, not before.
                (last.queue - silence.as_secs_f64()).max(0.0)
            } else if self.jitter > 0.008 {
                let least = history.queue_min(now, Duration::from_millis(30));
                least.unwrap_or(0.0)
            } else {
                last.queue
            }
        });
        // One large packet is no queue.
        let few = (2.5 * PACKET).max(1.25 * largest.as_bits() as f64);
        let limit = few.max(capacity * (0.012 + 2.0 * self.jitter));
        if self.queued > limit || self.overdue > 0.02 + self.jitter {
            self.backlogged_since.get_or_insert(now);
        } else {
            self.backlogged_since = None;
        }
        let queue = history.queue_max(now, Duration::from_millis(100));
        self.highest = (self.highest * FORGETTING).max(queue);
    }

    /// Every delay is longer by `shift` from now on, and that is no queue.
    pub(super) fn rebase(&mut self, shift: f64) {
        for (_, queue) in &mut self.recent {
            *queue = (*queue - shift).max(0.0);
        }
    }

    /// Returns the queueing delay of the last packet, or of one that is late.
    pub(super) const fn now(&self) -> f64 {
        self.overdue.max(self.seen)
    }

    /// Returns the queueing delay of everything, unlike that of single packets which a link repeated.
    pub(super) fn of_all(&self, now: Instant) -> f64 {
        let is_recent = |(at, _): &&(Instant, f64)| now.since(*at) <= RECENT;
        let recent = self.recent.iter().filter(is_recent);
        let least = recent.map(|(_, queue)| *queue).reduce(f64::min);
        let overdue = if self.are_many_late() {
            self.overdue
        } else {
            0.0
        };
        least.map_or(self.now(), |least| least.max(overdue))
    }

    /// Returns the queueing delay now, where a few packets that are late alone may as well be lost.
    pub(super) fn of_many(&self) -> f64 {
        if self.are_many_late() {
            self.now()
        } else {
            self.seen
        }
    }

    const fn are_many_late(&self) -> bool {
        self.late_count >= MANY_LATE
    }

    /// Returns whether a queue of `queue` is as long as it ever gets.
    pub(super) fn is_full(&self, queue: f64) -> bool {
        queue > FULL && queue > 0.6 * self.highest
    }

    /// Returns the bits in flight that should be here.
    pub(super) const fn queued(&self) -> f64 {
        self.queued
    }

    /// Returns by how much the oldest in flight is late.
    pub(super) const fn overdue(&self) -> f64 {
        self.overdue
    }

    /// Returns by how much neighbouring packets' delays differ, doubled.
    pub(super) const fn jitter(&self) -> f64 {
        self.jitter
    }

    /// Returns whether something waits on the path, and since when.
    pub(super) const fn backlogged_since(&self) -> Option<Instant> {
        self.backlogged_since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    struct Bench {
        queueing: Queueing,
        history: History,
        last: Option<Last>,
    }

    impl Bench {
        fn new() -> Self {
            Self {
                queueing: Queueing::default(),
                history: History::default(),
                last: None,
            }
        }

        fn arrive(&mut self, millis: u64, queue: f64) {
            let now = at(millis);
            self.history.on_arrival(now, 8_000.0, queue);
            self.queueing.on_arrival(now, queue);
            self.last = Some(Last {
                at: now,
                ideal: now,
                queue,
                once: true,
            });
        }

        fn tick(&mut self, millis: u64, queued: f64, overdue: f64, late_count: usize) {
            let survey = Survey {
                queued,
                overdue,
                late_count,
                window: 0.0,
            };
            let seen = (&self.history, self.last.as_ref());
            let link = (ByteSize::bytes(1_000), 1e6);
            self.queueing.on_tick(at(millis), &survey, seen, link);
        }

        fn delays(&self, millis: u64) -> [f64; 3] {
            let queueing = &self.queueing;
            [
                queueing.now(),
                queueing.of_all(at(millis)),
                queueing.of_many(),
            ]
        }
    }

    fn are_near(found: [f64; 3], expected: [f64; 3]) -> bool {
        let pairs = found.iter().zip(expected);
        pairs
            .into_iter()
            .all(|(found, expected)| (found - expected).abs() < 1e-9)
    }

    /// A packet that a link repeated queues alone; the others show that there is no queue.
    #[test]
    fn a_single_late_packet_is_no_queue_of_all() {
        let mut bench = Bench::new();
        bench.arrive(0, 0.001);
        bench.arrive(10, 0.040);
        bench.tick(10, 0.0, 0.050, 7);
        assert!(are_near(bench.delays(10), [0.050, 0.001, 0.040]));
        bench.tick(15, 0.0, 0.050, 8);
        assert!(are_near(bench.delays(15), [0.050, 0.050, 0.050]));
    }

    /// 60 ms of silence are taken off a queue of 80; for 49 ms it may still be there.
    #[test]
    fn a_queue_is_gone_after_as_long_again() {
        let mut bench = Bench::new();
        bench.arrive(0, 0.080);
        for (millis, expected) in [(49, 0.080), (60, 0.020), (100, 0.0)] {
            bench.tick(millis, 0.0, 0.0, 0);
            let seen = bench.queueing.of_many();
            assert!((seen - expected).abs() < 1e-9, "{millis}");
        }
    }

    /// At 1 Mbit/s 12 ms are less than 2.5 packets, which are no queue yet.
    #[test]
    fn a_few_packets_are_no_backlog() {
        let mut bench = Bench::new();
        bench.tick(5, 2.5 * PACKET, 0.02, 2);
        assert_eq!(bench.queueing.backlogged_since(), None);
        bench.tick(10, 2.5 * PACKET + 1.0, 0.0, 3);
        bench.tick(15, 0.0, 0.021, 1);
        assert_eq!(bench.queueing.backlogged_since(), Some(at(10)));
        bench.tick(20, 0.0, 0.0, 0);
        assert_eq!(bench.queueing.backlogged_since(), None);
    }

    #[test]
    fn a_queue_near_the_longest_is_full() {
        let mut bench = Bench::new();
        assert!(!bench.queueing.is_full(0.02), "too short");
        bench.arrive(0, 0.1);
        bench.tick(0, 0.0, 0.0, 0);
        assert!(bench.queueing.is_full(0.061));
        assert!(!bench.queueing.is_full(0.059));
    }
}
