//! How many pairs of Interest and Data of unique names a node forwards in a second on one core, and what an idle node
//! weighs.
//!
//! `cargo run --release -p namecast-forward --example throughput`; a number of pairs may follow, and the label of the one
//! case to measure.
//!
//! Packets are made a window at a time, as in a simulator they would have been made moments ago; making them does not
//! count, getting rid of them does. Counted is the time that the thread ran and not the time that passed, so that other
//! load on the machine disturbs less.

use std::time::Duration;

use bytes::Bytes;
use namecast_forward::{Config, ContentStoreConfig, FaceConfig, Forwarder, Keep};
use namecast_packet::signature::{NullSigner, Signer};
use namecast_packet::{Component, Data, DataTemplate, Interest, InterestTemplate, Name, Nonce};
use namecast_units::{ByteSize, Instant};
use rustix::time::{ClockId, clock_gettime};

const PAIRS: u32 = 400_000;
/// Interests that are pending at a time.
const WINDOW: u32 = 1_000;
const SECONDS_OF_VIRTUAL_TIME_PER_PAIR: f64 = 3e-6;
/// Each case runs this often; the best run counts, as others on the machine can only slow it down.
const RUNS: usize = 5;
const PREFIXES: [(&str, &str); 2] = [
    ("2 components", "/p7"),
    ("7 components", "/demo/video/1M/delta/seq=300/data"),
];
/// Size, and whether somebody asked for a prefix once, so that names are kept in order.
const CACHES: [(&str, ByteSize, bool); 3] = [
    ("no cache", ByteSize::ZERO, false),
    ("cache 64 MiB", ByteSize::mebibytes(64), false),
    ("ordered cache 64 MiB", ByteSize::mebibytes(64), true),
];
const KEEPS: [(&str, Keep); 2] = [("copies", Keep::Copies), ("frames", Keep::Frames)];

fn main() {
    let pairs = std::env::args().nth(1).and_then(|count| count.parse().ok());
    let pairs = pairs.unwrap_or(PAIRS);
    println!("idle node with 3 faces: {} octets", idle_node());
    for (prefix_label, prefix) in PREFIXES {
        for (keep_label, keep) in KEEPS {
            for (cache_label, content_store, is_ordered) in CACHES {
                let label = format!("{prefix_label}, {cache_label}, keeps {keep_label}");
                if std::env::args().nth(2).is_some_and(|only| only != label) {
                    continue;
                }
                let config = Config {
                    content_store: ContentStoreConfig::with_capacity(content_store),
                    keep,
                    ..Config::default()
                };
                let mut best = f64::MAX;
                for _ in 0..RUNS {
                    best = best.min(forward(pairs, prefix, config.clone(), is_ordered));
                }
                let each = best / f64::from(pairs);
                println!(
                    "{label}: {:.0} k pairs/s, {:.2} us each",
                    1e-3 / each,
                    each * 1e6
                );
            }
        }
    }
}

/// Makes the packets of `/prefix/seq=n`.
struct Source {
    prefix: Name,
    interests: InterestTemplate,
    data: DataTemplate,
}

impl Source {
    fn new(prefix: Name) -> Self {
        Self {
            interests: Interest::builder(prefix.clone()).template(Component::SEQUENCE),
            data: Data::builder(Name::root())
                .content(vec![0; 1_000])
                .template(NullSigner.info(), 0),
            prefix,
        }
    }

    fn interest(&self, number: u32) -> Bytes {
        let interest = self.interests.build(number.into(), Nonce::from(number));
        interest.wire().clone()
    }

    fn data(&self, number: u32) -> Bytes {
        let name = self.prefix.builder().sequence(number.into()).finish();
        self.data.build(name).wire().clone()
    }
}

/// Seconds that it takes to forward `pairs` pairs.
fn forward(pairs: u32, prefix: &str, config: Config, is_ordered: bool) -> f64 {
    let mut node = Forwarder::new(config);
    let mut face = || node.add_face(FaceConfig::default()).expect("there is room");
    let (consumer, producer) = (face(), face());
    let prefix: Name = prefix.parse().expect("a valid name");
    node.add_route(prefix.prefix(1), producer, 0)
        .expect("there is room");
    if is_ordered {
        let other = Interest::builder("/other".parse().expect("a valid name")).can_be_prefix();
        let other = other.build(Nonce::from(0));
        node.handle_frame(Instant::ZERO, consumer, other.wire().clone());
    }
    let source = Source::new(prefix);
    let mut now = Instant::ZERO;
    let step = Duration::from_secs_f64(SECONDS_OF_VIRTUAL_TIME_PER_PAIR);
    let mut seconds = 0.0;
    for first in (0..pairs).step_by(WINDOW as usize) {
        let window = || first..pairs.min(first + WINDOW);
        let interests: Vec<_> = window().map(|number| source.interest(number)).collect();
        let answers: Vec<_> = window().map(|number| source.data(number)).collect();
        let start = processor_seconds();
        for frame in interests {
            now += step;
            node.handle_frame(now, consumer, frame);
            while node.poll_output().is_some() {}
        }
        for frame in answers {
            node.handle_frame(now, producer, frame);
            while node.poll_output().is_some() {}
        }
        seconds += processor_seconds() - start;
    }
    assert_eq!(node.counters().satisfied, u64::from(pairs));
    seconds
}

/// Resident memory that a node with three faces and two routes takes.
fn idle_node() -> u64 {
    const NODES: u64 = 10_000;
    let before = resident_bytes();
    let nodes: Vec<_> = (0..NODES).map(new_idle_node).collect();
    let after = resident_bytes();
    assert!(nodes.iter().all(|node| node.faces().count() == 3));
    after.saturating_sub(before) / NODES
}

fn new_idle_node(seed: u64) -> Forwarder {
    let mut node = Forwarder::new(Config {
        seed,
        ..Config::default()
    });
    let faces = [(); 3].map(|()| node.add_face(FaceConfig::default()).expect("there is room"));
    for (prefix, face) in ["/p7", "/p8"].into_iter().zip(faces) {
        let prefix = prefix.parse().expect("a valid name");
        node.add_route(prefix, face, 0).expect("there is room");
    }
    node
}

fn resident_bytes() -> u64 {
    const PAGE: u64 = 4_096;
    let sizes = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = sizes.split(' ').nth(1).and_then(|n| n.parse::<u64>().ok());
    pages.expect("the second number is resident pages") * PAGE
}

/// Time that this thread has run so far.
fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
