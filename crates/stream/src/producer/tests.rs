use core::time::Duration;

use namecast_packet::signature::{Ed25519Signer, KeyPair};
use namecast_packet::{InterestBuilder, KeyLocator, SignatureInfo};
use namecast_units::{Bitrate, Random};

mod asked;
mod inter_frame;

use super::*;
use crate::catalogue::{Reading, Rung, SampleRate, StreamInfo, StreamKind};
use crate::inter_frame::InterFrameFec;
use crate::metadata::Latest;
use crate::{Lead, SegmentError};

const FIRST: u64 = 1_000;
const WALL: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

fn ed25519() -> Ed25519Signer {
    let key = "/demo/KEY/1".parse().unwrap();
    Ed25519Signer::from_seed([7; 32], KeyLocator::Name(key))
}

/// Signs without the cost, for tests of many packets.
struct Cheap;

impl Signer for Cheap {
    fn info(&self) -> SignatureInfo {
        ed25519().info()
    }

    fn sign(&self, _: &[u8]) -> Bytes {
        Bytes::from_static(&[0; 64])
    }
}

fn catalogue(version: u64) -> Catalogue {
    let rung = Rung {
        name: "1M".to_owned(),
        bitrate: Bitrate::mbps(1),
        width: None,
        height: None,
        rate: SampleRate::new(30, 1),
        key_interval: 30,
        reorder_delay: 0,
        codec_string: "avc1.42E01E".to_owned(),
        sample_rate: None,
        channels: None,
        inter_frame: None,
        description: None,
    };
    let stream = StreamInfo {
        name: "video".to_owned(),
        kind: StreamKind::Video,
        codec: "h264".to_owned(),
        rungs: vec![rung],
        segment_size: 1_000,
        parity_percent: 20,
        reading: Reading::default(),
    };
    Catalogue {
        version,
        starts: Default::default(),
        title: None,
        streams: vec![stream],
        signer: "/demo/KEY/1".to_owned(),
    }
}

/// A producer with one rung, driven by hand.
struct Desk {
    producer: Producer,
    rung: RungId,
    now: Instant,
    nonce: u32,
}

impl Desk {
    fn new(config: ProducerConfig) -> Self {
        Self::signed(config, Box::new(Cheap))
    }

    fn signed(config: ProducerConfig, signer: Box<dyn Signer + Send>) -> Self {
        let mut producer = Producer::new("/demo".parse().unwrap(), signer, config);
        let config = RungConfig {
            first_sequence: FIRST,
            inter_frame: Some(InterFrameFec {
                samples: 4,
                parity: 2,
            }),
            periods: [
                Duration::from_secs(1),
                Duration::from_nanos(1_000_000_000 / 30),
            ],
            ..RungConfig::default()
        };
        let rung = producer.add_rung("video", "1M", config).unwrap();
        producer.set_catalogue(&catalogue(5)).unwrap();
        Self {
            producer,
            rung,
            now: Instant::ZERO,
            nonce: 0,
        }
    }

    fn wall(&self) -> Timestamp {
        WALL + self.now.since(Instant::ZERO)
    }

    fn advance(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
    }

    fn interest(&mut self, name: &str) -> InterestBuilder {
        self.nonce += 1;
        Interest::builder(name.parse().unwrap()).lifetime(Duration::from_secs(1))
    }

    fn ask(&mut self, name: &str) {
        let builder = self.interest(name);
        self.send(builder);
    }

    /// Asks as for metadata: with CanBePrefix and MustBeFresh.
    fn discover(&mut self, name: &str) {
        let builder = self.interest(name).can_be_prefix().must_be_fresh();
        self.send(builder);
    }

    fn send(&mut self, builder: InterestBuilder) {
        let interest = builder.build(Nonce::from(self.nonce));
        let wall = self.wall();
        self.producer
            .handle_interest(self.now, wall, &interest, Arrival::default())
            .ok();
    }

    fn publish(&mut self, class: SampleClass, sequence: u64, size: usize) {
        self.try_publish(class, sequence, size).unwrap();
    }

    fn try_publish(
        &mut self,
        class: SampleClass,
        sequence: u64,
        size: usize,
    ) -> Result<(), PublishError> {
        let sample = Sample {
            class,
            sequence,
            other_sequence: FIRST,
            position: 77,
            captured_at: self.wall(),
            composition_offset: Duration::ZERO,
            encoded_at: self.wall(),
            payload: vec![1; size].into(),
            seal: None,
        };
        let wall = self.wall();
        self.producer.publish(self.now, wall, self.rung, &sample)
    }

    fn output(&mut self) -> Vec<Data> {
        core::iter::from_fn(|| self.producer.poll_output().map(|reply| reply.data)).collect()
    }

    fn names(&mut self) -> Vec<String> {
        self.output()
            .iter()
            .map(|data| data.name().to_string())
            .collect()
    }

    fn dropped(&self, reason: DropReason) -> u64 {
        self.producer.counters().dropped(reason)
    }

    /// Each Interest ended once, or is held.
    fn check_balance(&self) {
        let counters = self.producer.counters();
        let ended = counters.answered_at_once
            + counters.answered_after_waiting
            + counters.dropped.iter().sum::<u64>();
        let held = self.producer.pending() as u64;
        assert_eq!(counters.interests, ended + held, "{counters:?}");
    }
}

const LEAD: &str = "/demo/video/1M/key/seq=1000/data/seg=0";

/// Two in one millisecond get an answer each, with their own Nonce; of 3 in a second, where 2 are the most, the third gets none.
#[test]
fn each_challenge_is_signed_anew_up_to_a_bound() {
    let config = ProducerConfig {
        max_challenges: 2,
        ..ProducerConfig::default()
    };
    let mut desk = Desk::signed(config, Box::new(ed25519()));
    let dropped = |desk: &Desk| {
        let reason = DropReason::TooManyChallenges;
        desk.producer.counters().dropped(reason)
    };
    let names = StreamNames::new("/demo".parse().unwrap());
    desk.advance(5_000);
    for (random, answered) in [(0, true), (u64::MAX, true), (7, false)] {
        let name = names.challenge(random);
        desk.ask(&name.to_string());
        let output = desk.output();
        assert_eq!(output.len(), usize::from(answered), "{name}");
        for data in output {
            assert_eq!(*data.name(), name);
            assert_eq!(data.verify(&ed25519().public_key()), Ok(()));
            let metadata = Metadata::decode(&data.content().unwrap()).unwrap();
            assert_eq!(metadata.nonce, Some(Nonce::from(desk.nonce)));
            assert_eq!(metadata.latest[0].served_at, desk.wall());
        }
    }
    assert_eq!(dropped(&desk), 1);
    desk.advance(1_000);
    desk.ask("/demo/32=metadata/0123456789abcdef");
    assert_eq!((desk.output().len(), dropped(&desk)), (1, 1));
    for other in ["0123456789abcde", "0123456789abcdef0", "32=123456789abcde"] {
        desk.ask(&format!("/demo/32=metadata/{other}"));
    }
    assert_eq!((desk.output().len(), dropped(&desk)), (0, 1));
}

#[test]
fn metadata_tells_catalogue_and_newest_samples() {
    let mut desk = Desk::signed(ProducerConfig::default(), Box::new(ed25519()));
    desk.discover("/demo/32=metadata");
    desk.publish(SampleClass::Key, FIRST, 10);
    desk.publish(SampleClass::Delta, FIRST, 10);
    desk.publish(SampleClass::Delta, FIRST + 1, 10);
    desk.advance(10);
    desk.discover("/demo/32=metadata");
    let nonce = Nonce::from(desk.nonce);
    let [before, after] = &desk.output()[..] else {
        panic!("not two answers");
    };
    assert_eq!(
        after.name().to_string(),
        "/demo/32=metadata/v=1800000000010000/seg=0"
    );
    assert_eq!(after.verify(&ed25519().public_key()), Ok(()));
    assert_eq!(after.freshness(), Duration::from_millis(10));
    let read = |data: &Data| Metadata::decode(&data.content().unwrap()).unwrap();
    let metadata = read(after);
    assert_eq!(metadata.catalogue_name.to_string(), "/demo/catalogue/v=5");
    let read_catalogue = Catalogue::decode(&metadata.catalogue.unwrap()).unwrap();
    assert_eq!(read_catalogue, catalogue(5));
    assert_eq!(metadata.nonce, Some(nonce));
    let expected = Latest {
        rung: "/demo/video/1M".parse().unwrap(),
        key_sequence: Some(FIRST),
        delta_sequence: Some(FIRST + 1),
        key_position: Some(77),
        served_at: desk.wall(),
        next_delta: Some(FIRST),
    };
    assert_eq!(metadata.latest, [expected]);
    assert_eq!(read(before).latest[0].key_sequence, None);
}

#[test]
fn answers_of_the_moment_are_signed_once_per_freshness_period() {
    let mut desk = Desk::new(ProducerConfig::default());
    for name in ["/demo/32=metadata", "/demo/video/1M/32=latest"] {
        let start = desk.now;
        desk.discover(name);
        desk.now += Duration::from_nanos(9_999_999);
        desk.discover(name);
        let [first, second] = &desk.output()[..] else {
            panic!("not two answers");
        };
        assert_eq!(first, second);
        desk.now = start + Duration::from_millis(10);
        desk.discover(name);
        let third = desk.output().remove(0);
        assert_ne!(&third, first);
        assert!(third.name() > first.name());
        // Its exact name is answered too, that of the one before no longer; nor is the prefix alone.
        desk.ask(&third.name().to_string());
        assert_eq!(desk.output(), [third]);
        let unknown = desk.dropped(DropReason::UnknownName);
        desk.ask(&first.name().to_string());
        desk.ask(name);
        assert_eq!(desk.dropped(DropReason::UnknownName), unknown + 2);
    }
    desk.check_balance();
}

#[test]
fn the_newest_sample_is_told_even_if_the_clock_was_set_back() {
    let mut desk = Desk::new(ProducerConfig::default());
    desk.publish(SampleClass::Key, FIRST, 10);
    desk.discover("/demo/video/1M/32=latest");
    let nonce = Nonce::from(desk.nonce);
    let first = desk.output().remove(0);
    let newest = NewestSample::decode(&first.content().unwrap()).unwrap();
    assert_eq!(newest.nonce, Some(nonce));
    assert_eq!(newest.latest.key_sequence, Some(FIRST));
    let interest = Interest::builder("/demo/video/1M/32=latest".parse().unwrap())
        .can_be_prefix()
        .build(Nonce::from(99));
    let later = desk.now + Duration::from_secs(1);
    let set_back = Timestamp::from_micros(5);
    desk.producer
        .handle_interest(later, set_back, &interest, Arrival::default())
        .unwrap();
    let second = desk.output().remove(0);
    assert!(second.name() > first.name());
}

#[test]
fn a_large_catalogue_is_served_in_segments_and_replaced_whole() {
    let mut desk = Desk::new(ProducerConfig::default());
    let mut large = catalogue(6);
    let rung = large.streams[0].rungs[0].clone();
    large.streams[0].rungs = (0..16)
        .map(|n| Rung {
            name: format!("rung-{n}"),
            ..rung.clone()
        })
        .collect();
    desk.producer.set_catalogue(&large).unwrap();
    desk.discover("/demo/catalogue/v=6");
    let first = desk.output().remove(0);
    assert_eq!(first.name().to_string(), "/demo/catalogue/v=6/seg=0");
    let last = first
        .final_block()
        .unwrap()
        .get(0)
        .unwrap()
        .number()
        .unwrap();
    assert!(last >= 1);
    (0..=last).for_each(|n| desk.ask(&format!("/demo/catalogue/v=6/seg={n}")));
    let json: Vec<u8> = desk
        .output()
        .iter()
        .flat_map(|data| data.content().unwrap())
        .collect();
    assert_eq!(Catalogue::decode(&json).unwrap(), large);
    desk.ask(&format!("/demo/catalogue/v=6/seg={}", last + 1));
    desk.ask("/demo/catalogue/v=5/seg=0");
    assert_eq!(desk.dropped(DropReason::UnknownName), 2);
}

#[test]
fn names_that_nothing_is_published_under_are_counted() {
    let mut desk = Desk::new(ProducerConfig::default());
    desk.publish(SampleClass::Key, FIRST, 10);
    let names = [
        "/other",
        "/demo",
        "/demo/video",
        "/demo/video/1M",
        "/demo/video/2M/key/seq=1000/data/seg=0",
        "/demo/video/1M/key/seq=1000",
        "/demo/video/1M/key/seq=1000/data/seg=0/more",
        "/demo/KEY/1",
    ];
    for name in names {
        desk.ask(name);
    }
    assert_eq!(desk.dropped(DropReason::UnknownName), names.len() as u64);
    assert!(desk.output().is_empty());
    desk.check_balance();
}

#[test]
fn sequence_numbers_are_used_once_and_in_order() {
    let mut desk = Desk::new(ProducerConfig::default());
    let refused = |desk: &mut Desk, sequence| match desk.try_publish(SampleClass::Key, sequence, 1)
    {
        Err(PublishError::SequenceUsed { got, next }) => (got, next),
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(&mut desk, FIRST - 1), (FIRST - 1, FIRST));
    desk.publish(SampleClass::Key, FIRST, 1);
    assert_eq!(refused(&mut desk, FIRST), (FIRST, FIRST + 1));
    assert_eq!(refused(&mut desk, u64::MAX), (u64::MAX, FIRST + 1));
    desk.publish(SampleClass::Delta, FIRST, 1);
    assert_eq!(desk.producer.counters().samples, 2);
}

#[test]
fn a_sample_that_is_too_large_changes_nothing() {
    let mut desk = Desk::new(ProducerConfig::default());
    desk.ask(LEAD);
    let refused = desk.try_publish(SampleClass::Key, FIRST, 500_000);
    let Err(PublishError::Segment(SegmentError::TooLarge {
        payload: 500_000, ..
    })) = refused
    else {
        panic!("{refused:?}");
    };
    assert_eq!(
        (desk.producer.pending(), desk.producer.counters().samples),
        (1, 0)
    );
    desk.publish(SampleClass::Key, FIRST, 5);
    assert_eq!(desk.names(), [LEAD]);
}

#[test]
fn rungs_have_names_of_their_own() {
    let mut desk = Desk::new(ProducerConfig::default());
    for (stream, rung) in [
        ("video", "1M"),
        ("catalogue", "1M"),
        ("KEY", "1M"),
        ("video", "index"),
        ("video", ""),
        ("video", "1 M"),
    ] {
        let refused = desk.producer.add_rung(stream, rung, RungConfig::default());
        assert!(
            matches!(refused, Err(PublishError::RungName(_))),
            "{stream}"
        );
    }
    for n in 1..MAX_LATEST {
        desk.producer
            .add_rung("video", &n.to_string(), RungConfig::default())
            .unwrap();
    }
    let refused = desk
        .producer
        .add_rung("video", "more", RungConfig::default());
    assert!(matches!(refused, Err(PublishError::TooManyRungs)));
    // Even then metadata is one packet.
    desk.discover("/demo/32=metadata");
    let metadata = desk.output().remove(0);
    assert!(metadata.wire().len() <= namecast_packet::MAX_PACKET_SIZE);
    assert!(Metadata::decode(&metadata.content().unwrap()).is_ok());
}

#[test]
fn output_that_nobody_fetches_is_bounded() {
    let config = ProducerConfig {
        max_output: 2,
        ..ProducerConfig::default()
    };
    let mut desk = Desk::new(config);
    for segment in 0..3 {
        desk.ask(&format!("/demo/video/1M/key/seq=1000/data/seg={segment}"));
    }
    desk.publish(SampleClass::Key, FIRST, 2_500);
    desk.ask(LEAD);
    assert_eq!(desk.dropped(DropReason::OutputFull), 2);
    assert_eq!(desk.output().len(), 2);
    desk.check_balance();
}

/// Two consumers with pipelines of 30 samples, one of which loses and repeats: every sample leaves once, tables and
/// cache stay bounded, and every Interest is accounted for.
#[test]
fn a_long_stream_answers_each_segment_once() {
    let config = ProducerConfig {
        cache: CacheConfig {
            size: ByteSize::bytes(500_000),
            age: Duration::from_secs(1),
        },
        ..ProducerConfig::default()
    };
    let mut desk = Desk::new(config);
    let mut random = Random::from_seed(8);
    let mut leads = 0;
    for sequence in FIRST..FIRST + 5_000 {
        for _ in 0..2 {
            desk.ask(&format!(
                "/demo/video/1M/delta/seq={}/data/seg=0",
                sequence + 29
            ));
        }
        if random.chance(0.1) {
            desk.ask(&format!(
                "/demo/video/1M/delta/seq={}/data/seg=1",
                sequence + 5
            ));
        }
        desk.advance(33);
        let size = usize::try_from(random.below(4_000)).unwrap();
        desk.publish(SampleClass::Delta, sequence, size);
        leads += desk
            .names()
            .iter()
            .filter(|name| name.ends_with("data/seg=0"))
            .count();
        assert!(desk.producer.pending() <= 3 * 30);
        assert!(desk.producer.cache_size() <= ByteSize::bytes(500_000));
        desk.check_balance();
    }
    assert_eq!(leads, 5_000 - 29);
    assert_eq!(desk.dropped(DropReason::Expired), 0);
}

/// Key at 0 ms, deltas at 100 and 200 ms, key at 300 ms: each time finds the last sample before it; none before the first,
/// which is told.
#[test]
fn the_time_index_finds_what_is_cached() {
    let mut desk = Desk::new(ProducerConfig::default());
    let (key, delta) = (SampleClass::Key, SampleClass::Delta);
    let samples = [
        (key, FIRST),
        (delta, FIRST),
        (delta, FIRST + 1),
        (key, FIRST + 1),
    ];
    for (class, sequence) in samples {
        desk.publish(class, sequence, 100);
        desk.advance(100);
    }
    let mut at = |millis: u64| {
        let time = WALL.as_micros() + millis * 1_000;
        desk.ask(&format!("/demo/video/index/t={time}"));
        let [data] = &desk.output()[..] else {
            panic!("not one packet");
        };
        let index = crate::index::TimeIndex::decode(&data.content().unwrap()).unwrap();
        let [rung] = &index.rungs[..] else {
            panic!("not one rung");
        };
        assert_eq!(rung.newest, [Some(FIRST + 1); 2]);
        let place = |sample: crate::index::IndexedSample| (sample.class, sample.sequence);
        (
            place(rung.sample),
            rung.key.sequence,
            rung.next_key.map(place),
        )
    };
    let next = Some((key, FIRST + 1));
    assert_eq!(at(0), ((key, FIRST), FIRST, next));
    assert_eq!(at(199), ((delta, FIRST), FIRST, next));
    assert_eq!(at(200), ((delta, FIRST + 1), FIRST, next));
    assert_eq!(at(9_000), ((key, FIRST + 1), FIRST + 1, None));
    desk.ask(&format!("/demo/video/index/t={}", WALL.as_micros() - 1));
    let [early] = &desk.output()[..] else {
        panic!("not one packet");
    };
    let early = crate::index::TimeIndex::decode(&early.content().unwrap()).unwrap();
    assert_eq!((early.rungs, early.since), (vec![], Some(WALL)));
    desk.ask(&format!("/demo/audio/index/t={}", WALL.as_micros()));
    assert!(desk.output().is_empty());
    assert_eq!(desk.dropped(DropReason::UnknownName), 1);
    desk.check_balance();
}
