//! One case of forwarding pairs of Interest and Data, for a count of the processor's instructions, which no other load on the
//! machine changes.
//!
//! ```sh
//! cargo build --release -p namecast-forward --example instructions
//! valgrind --tool=callgrind --toggle-collect='*::forward_window' target/release/examples/instructions asf 10000
//! ```
//!
//! The last line that callgrind prints, over the number of pairs, is what one takes. Cases are `plain`, `token` (Interests with PIT
//! tokens), `asf`, `hit` (all but the first thousand Interests are answered from the cache), `exchange` (two neighbours that send each other
//! Data and Interests) and `bundles` (the same in one packet each).

use std::time::Duration;

use bytes::Bytes;
use namecast_forward::{
    AsfConfig, Config, ContentStoreConfig, ExtensionFields, FaceConfig, FaceId, Forwarder,
    Piggyback, StrategyKind,
};
use namecast_packet::signature::{NullSigner, Signer};
use namecast_packet::{Component, Data, Interest, LpPacket, Name, Nonce, piggyback};
use namecast_units::{ByteSize, Instant};

/// Interests that are pending at a time.
const WINDOW: u32 = 1_000;
const STEP: Duration = Duration::from_micros(3);

fn main() {
    let mut arguments = std::env::args().skip(1);
    let case = arguments.next().unwrap_or_else(|| "plain".to_owned());
    let pairs = arguments.next().and_then(|count| count.parse().ok());
    let pairs: u32 = pairs.unwrap_or(10_000);
    if matches!(case.as_str(), "exchange" | "bundles") {
        return exchange(case == "bundles", pairs);
    }
    let prefix: Name = "/demo/video/1M/delta/seq=300/data"
        .parse()
        .expect("a valid name");
    let (mut node, consumer, producer) = node(&prefix, &case);
    let interests = Interest::builder(prefix.clone()).template(Component::SEQUENCE);
    let data = Data::builder(Name::root()).content(vec![0; 1_000]);
    let data = data.template(NullSigner.info(), 0);
    let interest = |number: u32| {
        let name = match case.as_str() {
            "hit" => number % WINDOW,
            _ => number,
        };
        let interest = interests.build(name.into(), Nonce::from(number));
        let mut packet = LpPacket::carrying(interest.wire().clone());
        packet.pit_token = (case == "token").then(|| Bytes::from_static(b"answer"));
        packet.encode()
    };
    let answer = |number: u32| {
        let name = prefix.builder().sequence(number.into()).finish();
        data.build(name).wire().clone()
    };
    let mut now = Instant::ZERO;
    for first in (0..pairs).step_by(WINDOW as usize) {
        let window = || first..pairs.min(first + WINDOW);
        now = forward_window(&mut node, now, consumer, window().map(interest).collect());
        if case != "hit" || first == 0 {
            now = forward_window(&mut node, now, producer, window().map(answer).collect());
        }
    }
    let counters = node.counters();
    let answered = counters.satisfied + counters.content_store_hits;
    assert_eq!(answered, u64::from(pairs));
}

/// Two neighbours answer each other's Interests and send the next ones, `pairs` of both in all.
fn exchange(is_bundled: bool, pairs: u32) {
    let mut node = Forwarder::new(Config {
        content_store: ContentStoreConfig::with_capacity(ByteSize::mebibytes(4)),
        ..Config::default()
    });
    if is_bundled {
        node.install(Box::<Piggyback>::default());
    }
    let face = FaceConfig {
        extension_fields: ExtensionFields::On,
        ..FaceConfig::default()
    };
    let faces = [(); 2].map(|()| node.add_face(face.clone()).expect("there is room"));
    let names: [Name; 2] = [
        "/com/abc/alice/voice/call/bob",
        "/edu/xyz/bob/voice/call/alice",
    ]
    .map(|uri| uri.parse().expect("a valid name"));
    for (name, face) in names.iter().zip(faces) {
        node.add_route(name.prefix(3), face, 0)
            .expect("there is room");
    }
    let interests = names
        .clone()
        .map(|name| Interest::builder(name).template(Component::SEQUENCE));
    let data = Data::builder(Name::root()).content(vec![0; 1_000]);
    let data = data.template(NullSigner.info(), 0);
    // The first window of Interests comes by itself, and their Data come with the next.
    let asked =
        |side: usize, number: u32| interests[side].build(number.into(), Nonce::from(number));
    let first = (0..WINDOW).map(|number| asked(0, number).wire().clone());
    let mut now = forward_window(&mut node, Instant::ZERO, faces[1], first.collect());
    let mut numbers = [0, 0];
    let mut side = 0;
    for _ in (0..pairs).step_by(WINDOW as usize) {
        let start = numbers[side];
        numbers[side] += WINDOW;
        let next = numbers[1 - side];
        let frames = (0..WINDOW).flat_map(|more| {
            let name = names[side]
                .builder()
                .sequence(u64::from(start + more))
                .finish();
            let answer = data.build(name);
            let next = asked(1 - side, next + more);
            let value = piggyback::encode(&next, answer.name());
            match is_bundled {
                true => vec![LpPacket::bundle(answer.wire(), &value)],
                false => vec![answer.wire().clone(), next.wire().clone()],
            }
        });
        let frames: Vec<_> = frames.collect();
        now = forward_window(&mut node, now, faces[side], frames);
        side = 1 - side;
    }
    assert!(node.counters().satisfied >= u64::from(pairs) - 1);
    assert!(!is_bundled || node.counters().bundles.sent >= u64::from(pairs) - 1);
}

/// A node, with a face to a consumer and one to a producer.
fn node(prefix: &Name, case: &str) -> (Forwarder, FaceId, FaceId) {
    let mut node = Forwarder::new(Config {
        content_store: ContentStoreConfig::with_capacity(ByteSize::mebibytes(4)),
        ..Config::default()
    });
    let [consumer, producer, other] =
        [(); 3].map(|()| node.add_face(FaceConfig::default()).expect("there is room"));
    let routed = prefix.prefix(1);
    let added = node.add_route(routed.clone(), producer, 0);
    added.expect("there is room");
    if case == "asf" {
        let added = node.add_route(routed.clone(), other, 1);
        added.expect("there is room");
        let asf = StrategyKind::Asf(AsfConfig::DEFAULT);
        node.set_strategy(routed, asf).expect("there is room");
    }
    (node, consumer, producer)
}

/// What is counted.
#[inline(never)]
fn forward_window(
    node: &mut Forwarder,
    mut now: Instant,
    from: FaceId,
    frames: Vec<Bytes>,
) -> Instant {
    for frame in frames {
        now += STEP;
        node.handle_frame(now, from, frame);
        while node.poll_output().is_some() {}
    }
    now
}
