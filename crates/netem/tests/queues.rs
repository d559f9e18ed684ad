//! Queue disciplines in a link: who is marked or dropped, and what a sender that listens makes of it.

use std::collections::BTreeMap;

use namecast_netem::{Bytes, Config, DropReason, Link, Output, Queue};
use namecast_units::{Bitrate, Duration, Instant, Random};

/// 1250 octets: 1 ms at 10 Mbit/s.
fn frame() -> Bytes {
    Bytes::from(vec![0; 1_250])
}

fn link(queue: Queue) -> Link {
    let config = Config {
        rate: Some(Bitrate::mbps(10).into()),
        // Not a multiple of a frame's time: nothing arrives when another leaves.
        delay: Duration::from_micros(20_300),
        queue,
        ..Config::default()
    };
    assert_eq!(config.validate(), Ok(()));
    Link::new(config, 1)
}

fn at(micros: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(micros)
}

/// Of 400 seeds, how many mark a frame that waited so many microseconds: it comes that long before one of 2 ms is out.
fn marked_after(waited: u64) -> usize {
    let is_marked = |seed: &u64| {
        let config = Config {
            rate: Some(Bitrate::mbps(10).into()),
            queue: Queue::ramp(50),
            ..Config::default()
        };
        let mut link = Link::new(config, *seed);
        link.handle_frame(at(0), Bytes::from(vec![0; 2_500]));
        link.handle_frame(at(2_000 - waited), frame());
        link.handle_timeout(at(100_000));
        assert_eq!(link.counters().delivered, 2);
        link.counters().marked == 1
    };
    (0..400).filter(is_marked).count()
}

/// Never at 0.8 ms, always from 1.2 ms on; at 1 ms half of them: 200, σ 10.
#[test]
fn the_ramp_marks_by_the_wait() {
    assert_eq!(marked_after(800), 0);
    assert_eq!(marked_after(1_200), 400);
    let half = marked_after(1_000);
    assert!((160..=240).contains(&half), "{half}");
}

/// A ninth more than the link takes, for 1.8 s: CoDel drops, and says so when it happens, not when the next frame arrives.
#[test]
fn codel_reports_drops_when_they_happen() {
    let mut link = link(Queue::codel(1_000, false));
    let mut dropped = Vec::new();
    for step in 0..2_000 {
        let now = at(step * 900);
        while let Some(timeout) = link.poll_timeout()
            && timeout <= now
        {
            link.handle_timeout(timeout);
            while let Some(output) = link.poll_output() {
                let (Output::Delivered { at, .. } | Output::Dropped { at, .. }) = &output;
                assert_eq!(*at, timeout);
                if let Output::Dropped { at, reason, .. } = output {
                    assert_eq!(reason, DropReason::ActiveQueue);
                    dropped.push(at.as_nanos() / 1_000);
                }
            }
        }
        link.handle_frame(now, frame());
    }
    // The n-th frame leaves at 1000·n µs and came at 900·n: late by 5 ms from 50 ms on, so 150 ms is the first drop.
    assert_eq!(dropped[0], 150_000);
    // One at once and n more in the remaining 1650 ms: 100·(1/√1 + … + 1/√n) ≈ 100·(2√n − 1.46), so n = 80.6.
    assert!((80..=83).contains(&dropped.len()), "{}", dropped.len());
    assert_eq!(link.counters().active_queue, dropped.len() as u64);
}

/// w = 1/2 and nine at once, which find 0, 0, 1, 2, … 7 waiting: the average goes 0, 0, 0.5, 1.25, … to 6.0078. The last leaves the
/// queue at 8 ms; at 9 ms one frame could have passed since, so 3.0039: above 3 everything is marked, and below at 10 ms (1.502) not.
#[test]
fn red_counts_idle_time_from_when_the_queue_was_empty() {
    let marks_of_last = |last| {
        let mut link = link(Queue::Red {
            packets: 50,
            min: 3.0,
            max: 3.003,
            max_probability: 1.0,
            weight: 0.5,
            gentle: false,
        });
        (0..9).for_each(|_| link.handle_frame(at(0), frame()));
        let before = link.counters().marked;
        link.handle_frame(at(last), frame());
        link.counters().marked - before
    };
    assert_eq!((marks_of_last(9_000), marks_of_last(10_000)), (1, 0));
}

/// A few senders with windows as in Reno: one frame more for each window that arrives, half of it for a mark or a drop, at most
/// once a round trip. The way back takes 20 ms, as the way there.
struct Senders {
    windows: Vec<f64>,
    in_flight: Vec<u32>,
    deaf_until: Vec<Instant>,
    answers: BTreeMap<(Instant, u64), (usize, bool)>,
    sent: u64,
}

const BACK: Duration = Duration::from_millis(20);

impl Senders {
    fn new(count: usize) -> Self {
        Self {
            windows: vec![2.0; count],
            in_flight: vec![0; count],
            deaf_until: vec![Instant::ZERO; count],
            answers: BTreeMap::new(),
            sent: 0,
        }
    }

    fn answer(&mut self, now: Instant, sender: usize, is_bad: bool) {
        self.in_flight[sender] -= 1;
        if !is_bad {
            self.windows[sender] += 1.0 / self.windows[sender];
        } else if now >= self.deaf_until[sender] {
            self.windows[sender] = (self.windows[sender] / 2.0).max(1.0);
            self.deaf_until[sender] = now + BACK * 2 + Duration::from_millis(15);
        }
    }

    fn send(&mut self, now: Instant, link: &mut Link, order: &mut Random) {
        let count = self.windows.len();
        let first = usize::try_from(order.below(count as u64)).expect("below a usize");
        for offset in 0..count {
            let sender = (first + offset) % count;
            while f64::from(self.in_flight[sender]) < self.windows[sender].floor() {
                let mut octets = vec![0; 1_250];
                octets[0] = u8::try_from(sender).expect("there are few");
                link.handle_frame(now, Bytes::from(octets));
                self.in_flight[sender] += 1;
            }
        }
    }

    fn take(&mut self, link: &mut Link) -> Option<Duration> {
        let mut waited = None;
        while let Some(output) = link.poll_output() {
            let (at, frame, is_bad) = match output {
                Output::Delivered {
                    at,
                    frame,
                    congestion_marked,
                    queued_for,
                } => {
                    waited = Some(queued_for);
                    (at, frame, congestion_marked)
                }
                Output::Dropped { at, frame, .. } => (at, frame, true),
            };
            self.sent += 1;
            let key = (at + BACK, self.sent);
            self.answers.insert(key, (usize::from(frame[0]), is_bad));
        }
        waited
    }
}

/// Mean wait in milliseconds and utilisation of the last 40 of 60 seconds, with five senders.
fn settle(queue: Queue) -> (f64, f64) {
    let mut link = link(queue);
    let mut senders = Senders::new(5);
    let mut order = Random::from_seed(1);
    let (mut waits, mut count) = (0.0, 0_u32);
    let mut now = Instant::ZERO;
    while now < at(60_000_000) {
        senders.send(now, &mut link, &mut order);
        let answer = senders.answers.keys().next().map(|key| key.0);
        now = [answer, link.poll_timeout()]
            .into_iter()
            .flatten()
            .min()
            .expect("somebody is always waiting");
        link.handle_timeout(now);
        if let Some(waited) = senders.take(&mut link)
            && now > at(20_000_000)
        {
            waits += waited.as_secs_f64() * 1e3;
            count += 1;
        }
        while let Some(entry) = senders.answers.first_entry()
            && entry.key().0 <= now
        {
            let (sender, is_bad) = entry.remove();
            senders.answer(now, sender, is_bad);
        }
    }
    // 40 s at 1 ms a frame.
    (waits / f64::from(count), f64::from(count) / 40_000.0)
}

/// Target 15 ms: held within a fifth, and the link stays used.
#[test]
fn pi2_holds_its_target() {
    let (wait, utilisation) = settle(Queue::pi2(1_000));
    assert!((12.0..=18.0).contains(&wait), "{wait}");
    assert!((0.95..=1.0).contains(&utilisation), "{utilisation}");
}

/// With another target, another wait: it is the controller that holds it.
#[test]
fn pi2_holds_another_target() {
    let queue = Queue::Pi2 {
        packets: 1_000,
        target: Duration::from_millis(40),
        update: Duration::from_millis(16),
        alpha: 0.16,
        beta: 3.2,
    };
    let (wait, utilisation) = settle(queue);
    assert!((34.0..=46.0).contains(&wait), "{wait}");
    assert!((0.98..=1.0).contains(&utilisation), "{utilisation}");
}

/// CoDel keeps the wait near its target of 5 ms, below what the same senders make of a plain queue of 100.
#[test]
fn codel_keeps_the_queue_short() {
    for mark in [false, true] {
        let (wait, utilisation) = settle(Queue::codel(1_000, mark));
        assert!((2.0..=12.0).contains(&wait), "{wait}");
        assert!((0.85..=1.0).contains(&utilisation), "{utilisation}");
    }
    let (wait, utilisation) = settle(Queue::DropTail { packets: 100 });
    assert!((40.0..=100.0).contains(&wait), "{wait}");
    assert!((0.99..=1.0).contains(&utilisation), "{utilisation}");
}

/// RED keeps the average between its thresholds, 5 and 15 frames of 1 ms.
#[test]
fn red_keeps_the_average_between_its_thresholds() {
    let (wait, utilisation) = settle(Queue::red(1_000));
    assert!((5.0..=15.0).contains(&wait), "{wait}");
    assert!((0.9..=1.0).contains(&utilisation), "{utilisation}");
}
