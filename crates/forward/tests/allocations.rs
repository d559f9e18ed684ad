//! What a node asks the allocator for: nothing, once as much leaves as comes. And what it keeps is its own.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

use allocation_counter::measure;
use bytes::{Bytes, BytesMut};
use namecast_forward::{Config, ContentStoreConfig, FaceConfig, FaceId, Keep, Node};
use namecast_packet::signature::{NullSigner, Signer};
use namecast_packet::{Component, Data, Interest, LpPacket, Name, Nonce};
use namecast_units::{ByteSize, Duration, Instant};

/// An Interest and its Data, as a socket's buffer is cut into frames.
type Exchange = (Bytes, Bytes);

struct Ends {
    node: Node,
    now: Instant,
    consumer: FaceId,
    producer: FaceId,
}

impl Ends {
    /// A node with room for some fifty packets, many times over in use.
    fn in_its_stride() -> Self {
        let mut node = Node::new(Config {
            keep: Keep::LargeFrames,
            content_store: ContentStoreConfig::with_capacity(ByteSize::bytes(64 << 10)),
            ..Config::default()
        });
        let mut add = || node.add_face(FaceConfig::default()).unwrap();
        let (consumer, producer) = (add(), add());
        node.forwarder.add_route(Name::root(), producer, 0).unwrap();
        let mut ends = Self {
            node,
            now: Instant::ZERO,
            consumer,
            producer,
        };
        ends.exchange(exchanges(0..5_000));
        ends
    }

    /// Hands in frames; tells how many came out.
    fn handle(&mut self, face: FaceId, frame: Bytes) -> usize {
        self.now += Duration::from_millis(1);
        self.node.handle_timeout(self.now);
        self.node.handle_frame(self.now, face, frame);
        core::iter::from_fn(|| self.node.poll_output()).count()
    }

    fn exchange(&mut self, exchanges: Vec<Exchange>) {
        for (interest, data) in exchanges {
            assert_eq!(self.handle(self.consumer, interest), 1);
            assert_eq!(self.handle(self.producer, data), 1);
        }
    }
}

fn exchanges(numbers: core::ops::Range<u64>) -> Vec<Exchange> {
    let name: Name = "/demo/video/1M/delta".parse().unwrap();
    let interests = Interest::builder(name).template(Component::SEQUENCE);
    let data = Data::builder(Name::root()).content(vec![7; 1_000]);
    let data = data.template(NullSigner.info(), 32);
    let mut buffer = BytesMut::with_capacity(8 << 20);
    let mut cut = |octets: &[u8]| {
        buffer.extend_from_slice(octets);
        buffer.split().freeze()
    };
    numbers
        .map(|number| {
            let interest = interests.build(number, Nonce::from(number as u32));
            let data = data.build(interest.name().clone());
            (cut(interest.wire()), cut(data.wire()))
        })
        .collect()
}

#[test]
fn new_names_take_no_allocation() {
    let mut ends = Ends::in_its_stride();
    let exchanges = exchanges(5_000..6_000);
    let allocations = measure(|| ends.exchange(exchanges));
    assert_eq!(allocations.count_total, 0);
    assert_eq!(ends.node.counters().satisfied, 6_000);
}

#[test]
fn cached_data_takes_no_allocation() {
    let mut ends = Ends::in_its_stride();
    let again = exchanges(4_970..5_000);
    let allocations = measure(|| {
        for (interest, _) in again {
            assert_eq!(ends.handle(ends.consumer, interest), 1);
        }
    });
    assert_eq!(allocations.count_total, 0);
    assert_eq!(ends.node.counters().content_store_hits, 30);
}

/// A pending Interest, cached Data, a fragment that waits for others, and what waits to be acknowledged.
#[test]
fn what_is_kept_does_not_keep_the_buffer_it_was_cut_from() {
    let mut ends = Ends::in_its_stride();
    let reliable = FaceConfig {
        reliability: true,
        mtu: Some(1_400),
        ..FaceConfig::default()
    };
    let reliable = ends.node.add_face(reliable).unwrap();
    let (interest, data) = exchanges(9_000..9_001).remove(0);
    let fragment = LpPacket {
        sequence: Some(7),
        fragment_count: Some(2),
        ..LpPacket::carrying(data.slice(..500))
    };
    let arrivals = [
        (reliable, interest),
        (ends.producer, data),
        (ends.consumer, exchanges(9_001..9_002).remove(0).0),
        (ends.consumer, fragment.encode()),
    ];
    for (place, (face, frame)) in arrivals.into_iter().enumerate() {
        let buffer = Bytes::from([&frame[..], &[0; 60_000]].concat());
        ends.handle(face, buffer.slice(..frame.len()));
        assert!(buffer.is_unique(), "arrival {place}");
    }
    assert_eq!(ends.node.forwarder.pending_interests(), 1);
    assert_eq!(ends.node.counters().satisfied, 5_001);
}

/// Their entries end by time.
#[test]
fn interests_that_nobody_answers_take_no_allocation() {
    let mut ends = Ends::in_its_stride();
    let mut ask = |numbers| {
        let exchanges = exchanges(numbers);
        measure(|| {
            for (interest, _) in exchanges {
                assert_eq!(ends.handle(ends.consumer, interest), 1);
            }
        })
    };
    // Four seconds of a thousand Interests a second are pending from then on, and six of their Nonces remembered. Hash tables of arm64
    // reuse fewer places of what was removed, and grow once more.
    ask(10_000..40_000);
    assert_eq!(ask(50_000..51_000).count_total, 0);
    assert!(ends.node.counters().expired > 8_000);
}
