//! What a frame costs: `cargo run --release -p namecast-netem --example cost`.
//!
//! Processor time of this thread for each frame end to end: handed in, its timer, taken out.

use namecast_netem::{Bytes, Config, Jitter, Link, Loss, Output, Queue, Schedule};
use namecast_units::{Bitrate, Duration, Instant};

const FRAMES: u32 = 2_000_000;
const BYTES: usize = 1_074;

fn main() {
    let plain = Config {
        rate: Some(Bitrate::mbps(10).into()),
        delay: Duration::from_millis(8),
        queue: Queue::DropTail { packets: 50 },
        ..Config::default()
    };
    let with = |change: fn(&mut Config)| {
        let mut config = plain.clone();
        change(&mut config);
        config
    };
    let cases = [
        ("rate, delay, drop-tail", plain.clone()),
        ("without a rate", with(|config| config.rate = None)),
        (
            "a trace of 60 000 lines",
            with(|config| {
                let times = (1..=60_000).map(|line| line * 6 / 5).collect();
                let schedule = Schedule::from_deliveries(times);
                config.rate = Some(schedule.expect("the times are in order").into());
            }),
        ),
        (
            "random loss",
            with(|config| config.loss = Loss::Random { share: 0.01 }),
        ),
        (
            "jitter",
            with(|config| config.jitter.spread = Duration::from_millis(1)),
        ),
        (
            "jitter that reorders",
            with(|config| {
                config.jitter = Jitter {
                    spread: Duration::from_millis(1),
                    reorder: true,
                    ..Jitter::default()
                };
            }),
        ),
        (
            "CoDel",
            with(|config| config.queue = Queue::codel(50, false)),
        ),
        ("RED", with(|config| config.queue = Queue::red(50))),
        ("PI2", with(|config| config.queue = Queue::pi2(50))),
        ("ramp", with(|config| config.queue = Queue::ramp(50))),
    ];
    println!("ns of processor time per frame offered, at 90 % and at 110 % of 10 Mbit/s");
    for (name, config) in cases {
        let [light, heavy] = [90, 110].map(|percent| {
            let mut costs: Vec<f64> = (0..3).map(|_| cost(&config, percent)).collect();
            costs.sort_by(f64::total_cmp);
            costs[0]
        });
        println!("{name:<24} {light:>6.1} {heavy:>6.1}");
    }
}

/// Nanoseconds per frame, when `percent` of 10 Mbit/s are offered.
fn cost(config: &Config, percent: u64) -> f64 {
    let mut link = Link::new(config.clone(), 1);
    let frame = Bytes::from(vec![0; BYTES]);
    let gap = Duration::from_nanos(BYTES as u64 * 800 * 100 / percent);
    let mut send_at = Instant::ZERO;
    let mut arrived = 0_u64;
    let before = cpu_nanos();
    for _ in 0..FRAMES {
        while let Some(at) = link.poll_timeout()
            && at <= send_at
        {
            link.handle_timeout(at);
            arrived += drain(&mut link);
        }
        link.handle_frame(send_at, frame.clone());
        arrived += drain(&mut link);
        send_at += gap;
    }
    let spent = cpu_nanos() - before;
    assert!(arrived > u64::from(FRAMES) * 8 / 10, "{arrived}");
    spent as f64 / f64::from(FRAMES)
}

fn drain(link: &mut Link) -> u64 {
    let mut arrived = 0;
    while let Some(output) = link.poll_output() {
        arrived += u64::from(matches!(output, Output::Delivered { .. }));
    }
    arrived
}

/// Processor time of this thread so far, as Linux accounts it.
fn cpu_nanos() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("this is Linux");
    let first = text
        .split_whitespace()
        .next()
        .expect("it has three numbers");
    first.parse().expect("it has three numbers")
}
