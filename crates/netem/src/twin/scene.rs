//! Links and traffic drawn from a seed.

use namecast_units::{Bitrate, ByteSize, Duration, Random};

use crate::config::{Config, Outage, Queue, Step};
use crate::jitter::{Jitter, JitterShape};
use crate::loss::Loss;
use crate::rate::Rate;
use crate::schedule::Schedule;

/// Frames to hand in: when, and how large.
pub(super) type Traffic = Vec<(u64, usize)>;

/// One of several, each equally likely.
fn pick<T: Copy>(random: &mut Random, of: &[T]) -> T {
    of[usize::try_from(random.below(of.len() as u64)).unwrap()]
}

fn some_queue(random: &mut Random) -> Queue {
    let packets = pick(random, &[0, 1, 3, 10, 50]);
    match random.below(5) {
        0 => Queue::DropTail { packets },
        1 => Queue::DropTailBytes {
            size: ByteSize::bytes(random.below(20_000)),
        },
        2 => Queue::Ramp {
            packets,
            min: Duration::from_micros(1_200) - Duration::from_nanos(1),
            max: Duration::from_micros(1_200),
        },
        _ => Queue::CoDel {
            packets: 200,
            target: pick(random, &[1, 5].map(Duration::from_millis)),
            interval: pick(random, &[2, 10, 30].map(Duration::from_millis)),
            mark: random.chance(0.5),
        },
    }
}

/// Opportunities in clumps and after pauses, repeated after some ten milliseconds.
fn some_schedule(random: &mut Random) -> Schedule {
    let mut at = 0;
    let mut times: Vec<u32> = (0..random.below(30))
        .map(|_| {
            at += pick(random, &[0, 0, 1, 1, 2, 20]);
            at
        })
        .collect();
    times.push(at + pick(random, &[1, 30]));
    Schedule::from_deliveries(times).unwrap()
}

pub(super) fn some_config(random: &mut Random) -> Config {
    let micros = |random: &mut Random, below| Duration::from_micros(random.below(below));
    let rates = [
        None,
        Some(Bitrate::mbps(7)),
        Some(Bitrate::mbps(10)),
        Some(Bitrate::kbps(900)),
    ];
    let rate = match random.chance(0.3) {
        true => Some(some_schedule(random).into()),
        false => pick(random, &rates).map(Rate::Constant),
    };
    let is_constant = !matches!(rate, Some(Rate::Schedule(_)));
    let mut start = Duration::ZERO;
    let mut later = |random: &mut Random| {
        start += micros(random, 60_000);
        start
    };
    let mut schedule = Vec::new();
    for _ in 0..random.below(4) {
        schedule.push(Step {
            at: later(random),
            rate: pick(random, &rates).filter(|_| is_constant),
            delay: random.chance(0.5).then(|| micros(random, 20_000)),
        });
    }
    start = Duration::ZERO;
    let mut outages = Vec::new();
    for _ in 0..random.below(3) {
        start += micros(random, 60_000);
        let from = start;
        start += Duration::from_micros(1) + micros(random, 10_000);
        outages.push(Outage { from, until: start });
    }
    Config {
        rate,
        delay: pick(random, &[0, 1, 8, 30].map(Duration::from_millis)),
        jitter: Jitter {
            spread: pick(random, &[0, 0, 300, 5_000].map(Duration::from_micros)),
            shape: pick(random, &[JitterShape::Uniform, JitterShape::Normal]),
            reorder: random.chance(0.5),
        },
        loss: pick(random, &[Loss::None, Loss::Random { share: 0.1 }]),
        outages,
        schedule,
        queue: some_queue(random),
        headers: pick(random, &[0, 0, 28].map(ByteSize::bytes)),
        duplicate: pick(random, &[0.0, 0.2]),
        ..Config::default()
    }
}

/// Bursts and pauses around the link's rate; some frames come at one instant, some exactly when another leaves.
pub(super) fn some_traffic(random: &mut Random) -> Traffic {
    let mut at = 0;
    let gap = pick(random, &[300_000, 900_000, 2_000_000]);
    (0..pick(random, &[20, 150]))
        .map(|_| {
            at += match random.below(8) {
                0 | 1 => 0,
                2 => 1_000_000,
                3 => random.below(gap * 6),
                _ => random.below(gap),
            };
            (at, pick(random, &[4, 125, 1_250, 1_250, 1_250]))
        })
        .collect()
}
