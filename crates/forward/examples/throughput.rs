//! How many Interest and Data pairs of unique names a node forwards in a second on one core.
//!
//! `cargo run --release -p namecast-forward --example throughput`
//!
//! Counts the time that the process ran, as Linux tells it, and not the time that passed: other load on the machine
//! disturbs less.

use std::time::Duration;

use namecast_forward::{Config, FaceConfig, Forwarder};
use namecast_packet::signature::NullSigner;
use namecast_packet::{Data, Interest, Name, Nonce};
use namecast_units::{ByteSize, Instant};

const PAIRS: u32 = 400_000;
/// Interests that are pending at a time.
const WINDOW: usize = 1_000;
const SECONDS_OF_VIRTUAL_TIME_PER_PAIR: f64 = 3e-6;

fn main() {
    let packets: Vec<_> = (0..PAIRS).map(pair).collect();
    let mut best = f64::MAX;
    for (label, content_store) in [("cache 64 MiB", 64), ("no cache", 0)] {
        for _ in 0..3 {
            best = best.min(forward(&packets, ByteSize::mebibytes(content_store)));
        }
        let rate = f64::from(PAIRS) / best / 1e3;
        println!(
            "{label}: {rate:.0} k pairs/s, {:.2} us each",
            best * 1e6 / f64::from(PAIRS)
        );
        best = f64::MAX;
    }
}

fn pair(number: u32) -> (Interest, Data) {
    let name: Name = format!(
        "/demo/video/1M/delta/seq={}/data/seg={}",
        number / 4,
        number % 4
    )
    .parse()
    .expect("a valid name");
    let data = Data::builder(name.clone())
        .content(vec![0; 1_000])
        .sign(&NullSigner);
    (Interest::builder(name).build(Nonce::from(number)), data)
}

/// Seconds that it takes to forward all pairs.
fn forward(packets: &[(Interest, Data)], content_store: ByteSize) -> f64 {
    let mut node = Forwarder::new(Config {
        content_store,
        ..Config::default()
    });
    let mut face = || node.add_face(FaceConfig::default()).expect("there is room");
    let (consumer, producer) = (face(), face());
    node.add_route("/demo".parse().expect("a valid name"), producer, 0)
        .expect("there is room");
    let mut now = Instant::ZERO;
    let step = Duration::from_secs_f64(SECONDS_OF_VIRTUAL_TIME_PER_PAIR);
    let start = processor_seconds();
    for window in packets.chunks(WINDOW) {
        for (interest, _) in window {
            now += step;
            node.handle_frame(now, consumer, interest.wire().clone());
            while node.poll_output().is_some() {}
        }
        for (_, data) in window {
            node.handle_frame(now, producer, data.wire().clone());
            while node.poll_output().is_some() {}
        }
    }
    let seconds = processor_seconds() - start;
    assert_eq!(node.counters().satisfied, u64::from(PAIRS));
    seconds
}

/// Time that this thread has run so far.
fn processor_seconds() -> f64 {
    let schedule = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanos = schedule
        .split(' ')
        .next()
        .and_then(|n| n.parse::<u64>().ok());
    nanos.expect("starts with nanoseconds") as f64 / 1e9
}
