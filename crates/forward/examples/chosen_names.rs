//! What names cost that somebody chose who knows how names are hashed, but not the node's key, as a ratio to ordinary ones.
//!
//! `cargo run --release -p namecast-forward --example chosen_names`
//!
//! 64 000 Interests become pending and are answered, by a node with one forwarder; the best of several runs counts, as others on
//! the machine can only slow it down. At most 1.5 is wanted.

use bytes::Bytes;
use namecast_forward::{Config, ContentStoreConfig, FaceConfig, Forwarder, HashKey, PitConfig};
use namecast_packet::signature::NullSigner;
use namecast_packet::{Component, Data, Interest, Name, Nonce};
use namecast_units::{ByteSize, Instant};
use rustix::time::{ClockId, clock_gettime};

const COUNT: u64 = 64_000;
const RUNS: usize = 7;
/// What the hash before this one made zero of, whatever its seed.
const ZEROING: [u8; 8] = [0xc9, 0xac, 0x47, 0xc2, 0xd6, 0x26, 0x76, 0xc0];

/// The octets of a component, by its number.
type Make = fn(u64) -> [u8; 16];

fn main() {
    let kinds: [(&str, Make); 4] = [
        ("ordinary", |number| {
            u128::from(number.wrapping_mul(0x9E37_79B9_7F4A_7C15)).to_le_bytes()
        }),
        ("end in what made zero", |number| {
            let mut value = [0; 16];
            value[..8].copy_from_slice(&number.to_le_bytes());
            value[8..].copy_from_slice(&ZEROING);
            value
        }),
        ("multiples of the modulus", |number| {
            (u128::from(number) * ((1 << 61) - 1)).to_le_bytes()
        }),
        ("differ in high bits only", |number| {
            (u128::from(number) << 100).to_le_bytes()
        }),
    ];
    let ordinary = seconds(kinds[0].1);
    for (kind, make) in kinds {
        println!("{kind}: {:.2} times ordinary", seconds(make) / ordinary);
    }
}

/// The least of several runs.
fn seconds(make: Make) -> f64 {
    let names = (0..COUNT).map(|number| {
        let value = &make(number);
        let kind = Component::GENERIC;
        Name::root().child(Component { kind, value })
    });
    let names: Vec<_> = names.collect();
    let interests = names.iter().map(|name| {
        let interest = Interest::builder(name.clone()).build(Nonce([0; 4]));
        interest.wire().clone()
    });
    let interests: Vec<_> = interests.collect();
    let data = names.iter().map(|name| {
        let data = Data::builder(name.clone()).content("content");
        data.sign(&NullSigner).wire().clone()
    });
    let data: Vec<_> = data.collect();
    let runs = (0..RUNS).map(|run| forward(run as u64, &interests, &data));
    runs.fold(f64::MAX, f64::min)
}

fn forward(key: u64, interests: &[Bytes], data: &[Bytes]) -> f64 {
    let mut node = Forwarder::new(Config {
        hash_key: HashKey::from_words(
            [1, 2, 3].map(|word| (key * 3 + word) << 50 | 0x5EED << word),
        ),
        pit: PitConfig {
            face_capacity: COUNT as usize,
            ..PitConfig::default()
        },
        content_store: ContentStoreConfig::with_capacity(ByteSize::mebibytes(256)),
        ..Config::default()
    });
    let mut face = || node.add_face(FaceConfig::default()).expect("there is room");
    let (consumer, producer) = (face(), face());
    node.add_route(Name::root(), producer, 0)
        .expect("there is room");
    let start = processor_seconds();
    for (face, frames) in [(consumer, interests), (producer, data)] {
        for frame in frames {
            node.handle_frame(Instant::ZERO, face, frame.clone());
            while node.poll_output().is_some() {}
        }
    }
    let seconds = processor_seconds() - start;
    assert_eq!(node.counters().satisfied, COUNT);
    seconds
}

/// Time that this thread has run so far.
fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
