use core::time::Duration;

use namecast_packet::lp::NackReason;
use namecast_packet::signature::{Ed25519Signer, KeyPair};
use namecast_packet::{Data, Interest, KeyLocator, LpPacket, Nonce, Validity};
use namecast_stream::{Lead, Metadata, Reading, SampleRate, SegmentError, StreamKind};
use namecast_units::{Bitrate, Random};

use super::*;

/// 100 s after the epoch of sequences: at 30 a second they start at 3 000, at 50 at 5 000.
const WALL: Timestamp = Timestamp::from_micros(1_735_689_700_000_000);
const FRAME: Duration = Duration::from_nanos(33_333_333);

fn signer(seed: u8) -> Ed25519Signer {
    let key = "/demo/KEY/1".parse().unwrap();
    Ed25519Signer::from_seed([seed; 32], KeyLocator::Name(key))
}

fn certificate(identity: &str) -> Certificate {
    let validity = Validity {
        not_before: Timestamp::from_micros(0),
        not_after: Timestamp::from_micros(u64::MAX / 2),
    };
    Certificate::self_signed(&identity.parse().unwrap(), b"1", 9, validity, &signer(7))
}

fn stream(name: &str, kind: StreamKind, rate: u32, rungs: &[&str]) -> StreamInfo {
    let rung = |name: &&str| Rung {
        name: (*name).to_owned(),
        bitrate: Bitrate::mbps(1),
        width: None,
        height: None,
        rate: SampleRate::new(rate, 1),
        key_interval: 30,
        reorder_delay: 0,
        codec_string: "x".to_owned(),
        sample_rate: None,
        channels: None,
        inter_frame: None,
        description: None,
    };
    StreamInfo {
        name: name.to_owned(),
        kind,
        codec: "x".to_owned(),
        rungs: rungs.iter().map(rung).collect(),
        segment_size: 1_000,
        parity_percent: 20,
        reading: Reading::default(),
    }
}

fn config() -> PublisherConfig {
    PublisherConfig {
        root: "/demo".parse().unwrap(),
        streams: vec![
            stream("video", StreamKind::Video, 30, &["1M", "3M"]),
            stream("audio", StreamKind::Audio, 50, &["32k"]),
        ],
        producer: ProducerConfig::default(),
        shared_since: None,
    }
}

fn publisher() -> Publisher {
    Publisher::new(config(), WALL, Box::new(signer(7)), &certificate("/demo")).unwrap()
}

fn frame(position: u64, key: bool, size: usize) -> EncodedFrame {
    EncodedFrame {
        position,
        key,
        captured_at: WALL,
        composition_offset: Duration::ZERO,
        encoded_at: WALL + Duration::from_millis(5),
        payload: vec![position as u8; size].into(),
    }
}

fn interest(name: &str) -> Interest {
    let name = name.parse().unwrap();
    Interest::builder(name)
        .can_be_prefix()
        .build(Nonce::from(1))
}

/// Requests `name` and takes what comes at once.
fn fetch(publisher: &mut Publisher, name: &str) -> Option<Data> {
    publisher.handle_packet(Instant::ZERO, WALL, interest(name).wire().clone());
    publisher
        .poll_output()
        .and_then(|wire| Data::decode(wire).ok())
}

fn lead(publisher: &mut Publisher, name: &str) -> Lead {
    Lead::decode(&fetch(publisher, name).unwrap()).unwrap()
}

#[test]
fn key_and_delta_frames_are_numbered_apart_and_point_at_each_other() {
    let mut publisher = publisher();
    let rung = publisher.rung("video", "3M").unwrap();
    for (position, key) in [(0, true), (1, false), (2, false), (3, true), (4, false)] {
        let frame = frame(position, key, 10);
        publisher
            .publish_frame(Instant::ZERO, WALL, rung, frame)
            .unwrap();
    }
    let mut check = |name: &str, other_sequence, position| {
        let lead = lead(&mut publisher, &format!("/demo/video/3M/{name}/data/seg=0"));
        let header = lead.header();
        assert_eq!(
            (header.other_sequence, header.position),
            (other_sequence, position),
            "{name}"
        );
    };
    check("key/seq=3000", 3_000, 0);
    check("delta/seq=3000", 3_000, 1);
    check("delta/seq=3001", 3_000, 2);
    check("key/seq=3001", 3_002, 3);
    check("delta/seq=3002", 3_001, 4);
    assert!(fetch(&mut publisher, "/demo/video/3M/key/seq=3002/data/seg=0").is_none());
    assert_eq!(publisher.pending(), 1);
}

#[test]
fn each_rung_counts_for_itself_by_its_own_rate() {
    let mut publisher = publisher();
    let audio = publisher.rung("audio", "32k").unwrap();
    publisher
        .publish_frame(Instant::ZERO, WALL, audio, frame(0, true, 80))
        .unwrap();
    lead(&mut publisher, "/demo/audio/32k/key/seq=5000/data/seg=0");
    assert_eq!(publisher.rung("audio", "64k"), None);
    assert_eq!(publisher.rung("video", "32k"), None);
}

/// Started again a second later, no name is the same.
#[test]
fn a_publisher_that_starts_again_reuses_no_name() {
    let mut first = publisher();
    let rung = first.rung("video", "1M").unwrap();
    for position in 0..30 {
        first
            .publish_frame(Instant::ZERO, WALL, rung, frame(position, true, 10))
            .unwrap();
    }
    let later = WALL + FRAME * 30 + Duration::from_millis(1);
    let again = Publisher::new(config(), later, Box::new(signer(7)), &certificate("/demo"));
    let mut again = again.unwrap();
    again
        .publish_frame(Instant::ZERO, later, rung, frame(0, true, 10))
        .unwrap();
    let metadata = |publisher: &mut Publisher| {
        let data = fetch(publisher, "/demo/32=metadata").unwrap();
        Metadata::decode(&data.content().unwrap()).unwrap()
    };
    let (before, after) = (metadata(&mut first), metadata(&mut again));
    assert_eq!(before.latest[0].key_sequence, Some(3_029));
    assert_eq!(after.latest[0].key_sequence, Some(3_030));
    assert_ne!(before.catalogue_name, after.catalogue_name);
    assert_eq!(again.catalogue().version, later.as_micros());
}

#[test]
fn everything_is_signed_by_the_key_whose_certificate_is_served() {
    let mut publisher = publisher();
    let rung = publisher.rung("video", "1M").unwrap();
    publisher
        .publish_frame(Instant::ZERO, WALL, rung, frame(0, true, 10))
        .unwrap();
    let metadata = fetch(&mut publisher, "/demo/32=metadata").unwrap();
    let signer_name = publisher.catalogue().signer.clone();
    let served = Certificate::decode(fetch(&mut publisher, &signer_name).unwrap()).unwrap();
    assert_eq!(served, certificate("/demo"));
    let key = served.public_key().unwrap();
    assert_eq!(metadata.verify(&key), Ok(()));
    let names = ["/demo/catalogue", "/demo/video/1M/key/seq=3000/data/seg=0"];
    for name in names {
        assert_eq!(
            fetch(&mut publisher, name).unwrap().verify(&key),
            Ok(()),
            "{name}"
        );
    }
    assert!(metadata.verify(&signer(8).public_key()).is_err());
}

#[test]
fn another_keys_certificate_is_refused() {
    let made = Publisher::new(config(), WALL, Box::new(signer(7)), &certificate("/other"));
    assert!(matches!(made, Err(SetupError::Certificate(_))));
    let mut twice = config();
    twice.streams[1].name = "video".to_owned();
    let made = Publisher::new(twice, WALL, Box::new(signer(7)), &certificate("/demo"));
    assert!(matches!(
        made,
        Err(SetupError::Publish(PublishError::Catalogue(_)))
    ));
}

#[test]
fn frames_that_need_a_key_frame_that_is_missing_are_refused() {
    let mut publisher = publisher();
    let rung = publisher.rung("video", "1M").unwrap();
    let mut publish = |frame| publisher.publish_frame(Instant::ZERO, WALL, rung, frame);
    assert!(matches!(
        publish(frame(0, false, 1)),
        Err(FrameError::NeedsKey(0))
    ));
    publish(frame(1, true, 1)).unwrap();
    publish(frame(2, false, 1)).unwrap();
    let refused = publish(frame(3, true, 500_000));
    let Err(FrameError::Publish(PublishError::Segment(SegmentError::TooLarge { .. }))) = refused
    else {
        panic!("{refused:?}");
    };
    assert!(matches!(
        publish(frame(4, false, 1)),
        Err(FrameError::NeedsKey(4))
    ));
    publish(frame(5, true, 1)).unwrap();
    publish(frame(6, false, 1)).unwrap();
    let counters = publisher.counters();
    assert_eq!((counters.frames, counters.frames_refused), (4, 3));
    // What was refused used no number.
    lead(&mut publisher, "/demo/video/1M/key/seq=3001/data/seg=0");
    lead(&mut publisher, "/demo/video/1M/delta/seq=3001/data/seg=0");
}

#[test]
fn an_interest_in_a_link_packet_gets_its_token_back() {
    let mut publisher = publisher();
    let name = "/demo/video/1M/key/seq=3000/data/seg=0";
    let asked = LpPacket {
        pit_token: Some(Bytes::from_static(b"token!")),
        ..LpPacket::carrying(interest(name).wire().clone())
    };
    publisher.handle_packet(Instant::ZERO, WALL, asked.encode());
    assert!(publisher.poll_output().is_none());
    assert!(publisher.poll_timeout().is_some());
    let rung = publisher.rung("video", "1M").unwrap();
    publisher
        .publish_frame(Instant::ZERO, WALL, rung, frame(0, true, 10))
        .unwrap();
    let answer = LpPacket::decode(publisher.poll_output().unwrap()).unwrap();
    assert_eq!(answer.pit_token, asked.pit_token);
    let data = Data::decode(answer.fragment.unwrap()).unwrap();
    assert_eq!(data.name().to_string(), name);
    assert_eq!(publisher.poll_timeout(), None);
}

/// Published are keys 3000 and 3001; held are up to 300 samples ahead, and MAX_SEGMENTS segments. What is not, is refused at once
/// by a Nack with its token, which gives no reason that would cost a route.
#[test]
fn what_will_never_exist_is_refused_at_once() {
    let mut publisher = publisher();
    let rung = publisher.rung("video", "1M").unwrap();
    for position in 0..2 {
        let frame = frame(position, true, 10);
        publisher
            .publish_frame(Instant::ZERO, WALL, rung, frame)
            .unwrap();
    }
    let mut answer = |name: &str| {
        let asked = LpPacket {
            pit_token: Some(Bytes::from_static(b"token!")),
            ..LpPacket::carrying(interest(name).wire().clone())
        };
        publisher.handle_packet(Instant::ZERO, WALL, asked.encode());
        let answer = publisher.poll_output()?;
        assert!(publisher.poll_output().is_none());
        let answer = LpPacket::decode(answer).unwrap();
        assert_eq!(answer.pit_token, asked.pit_token);
        let is_same = answer.fragment == asked.fragment;
        assert_eq!(is_same, answer.nack.is_some());
        Some(answer.nack)
    };
    let refused = Some(Some(NackReason::None));
    for impossible in [
        "/demo/nothing",
        "/demo/video/9M/key/seq=3002/data/seg=0",
        "/demo/sound/1M/key/seq=3002/data/seg=0",
        "/demo/video/1M/other/seq=3002/data/seg=0",
        "/demo/video/1M/key/seq=3302/data/seg=0",
        "/demo/video/1M/key/seq=18446744073709551615/data/seg=0",
        "/demo/video/1M/key/seq=3002/data/seg=100000",
        "/demo/video/1M/key/seq=2999/data/seg=0",
    ] {
        assert_eq!(answer(impossible), refused, "{impossible}");
    }
    assert_eq!(answer("/demo/video/1M/key/seq=3001/data/seg=0"), Some(None));
    for early in [
        // What consumers request ahead of what they know is not refused one by one.
        "/demo/video/1M/key/seq=3001/data/seg=7",
        "/demo/video/1M/key/seq=3002/data/seg=0",
        "/demo/video/1M/key/seq=3301/data/seg=0",
    ] {
        assert_eq!(answer(early), None, "{early}");
    }
    assert_eq!(publisher.pending(), 2);
}

#[test]
fn what_is_no_interest_is_counted_and_nothing_else_happens() {
    let mut publisher = publisher();
    let wire = interest("/demo/32=metadata").wire().clone();
    let nack = LpPacket {
        nack: Some(NackReason::NoRoute),
        ..LpPacket::carrying(wire.clone())
    };
    let fragment = LpPacket {
        sequence: Some(1),
        fragment_count: Some(2),
        ..LpPacket::carrying(wire.clone())
    };
    let data = certificate("/demo").data().wire().clone();
    for unexpected in [nack.encode(), fragment.encode(), data] {
        publisher.handle_packet(Instant::ZERO, WALL, unexpected);
    }
    let mut random = Random::from_seed(3);
    for _ in 0..5_000 {
        let mut damaged = wire.to_vec();
        let at = usize::try_from(random.below(damaged.len() as u64)).unwrap();
        damaged[at] = random.next_u64() as u8;
        publisher.handle_packet(Instant::ZERO, WALL, damaged.into());
    }
    let (counters, producer) = (publisher.counters(), publisher.producer_counters());
    assert!(counters.malformed > 1_000 && counters.unexpected >= 3);
    assert_eq!(
        counters.malformed + counters.unexpected + producer.interests,
        5_003
    );
}

/// Ten minutes of a ladder of two at 30 a second that nobody watches: memory stays where the caches' bounds put it.
#[test]
fn ten_minutes_take_no_more_memory_than_the_bounds_say() {
    let mut config = config();
    config.producer.cache.size = ByteSize::bytes(200_000);
    let made = Publisher::new(config, WALL, Box::new(signer(7)), &certificate("/demo"));
    let mut publisher = made.unwrap();
    let rungs = ["1M", "3M"].map(|rung| publisher.rung("video", rung).unwrap());
    let (mut now, mut wall) = (Instant::ZERO, WALL);
    for position in 0..30 * 600 {
        let key = position % 30 == 0;
        for rung in rungs {
            let frame = frame(position, key, 300);
            publisher.publish_frame(now, wall, rung, frame).unwrap();
        }
        let next = format!("/demo/video/1M/delta/seq={}/data/seg=0", 3_010 + position);
        publisher.handle_packet(now, wall, interest(&next).wire().clone());
        now += FRAME;
        wall = wall + FRAME;
        publisher.handle_timeout(now);
        while publisher.poll_output().is_some() {}
        assert!(publisher.cache_size() <= ByteSize::bytes(400_000));
        assert!(publisher.pending() <= 30 * 4 + 1);
    }
    assert!(publisher.cache_size() >= ByteSize::bytes(390_000));
}

/// 30 frames a second while the wall clock is set 3 s or half an hour forth or back in the middle: all times stay in their rhythm,
/// ServedAt too, as what matters is how old a frame is.
#[test]
fn a_wall_clock_that_is_set_leaves_the_stream_even() {
    for step in [3_000_000, -3_000_000, 1_800_000_000, -1_800_000_000_i64] {
        let mut publisher = publisher();
        let rung = publisher.rung("video", "1M").unwrap();
        let mut served = Vec::new();
        for frame in 0..60_u64 {
            let elapsed = Duration::from_millis(33) * frame as u32;
            let shown = (WALL + elapsed).as_micros();
            let set = if frame < 30 { 0 } else { step };
            let wall = Timestamp::from_micros(shown.checked_add_signed(set).unwrap());
            let now = Instant::ZERO + elapsed;
            let age = |millis: u64| Timestamp::from_micros(wall.as_micros() - millis * 1_000);
            let encoded = EncodedFrame {
                captured_at: age(20),
                encoded_at: age(5),
                ..EncodedFrame::at(wall, frame, frame % 30 == 0, vec![7; 100])
            };
            publisher.publish_frame(now, wall, rung, encoded).unwrap();
            let interest = Interest::builder(
                "/demo/32=metadata/0123456789abcdef"
                    .parse::<Name>()
                    .unwrap(),
            );
            let interest = interest.build(Nonce(frame.to_be_bytes()[4..].try_into().unwrap()));
            publisher.handle_packet(now, wall, interest.wire().clone());
            let answer = Data::decode(publisher.poll_output().unwrap()).unwrap();
            let metadata = Metadata::decode(&answer.content().unwrap()).unwrap();
            served.push((metadata.latest[0].served_at, now));
        }
        assert!(
            served
                .iter()
                .all(|(at, now)| *at == WALL + now.since(Instant::ZERO))
        );
        for frame in 0..60_u64 {
            let (class, number) = match frame % 30 {
                0 => ("key", 3_000 + frame / 30),
                _ => ("delta", 3_000 + frame - frame / 30 - 1),
            };
            let name = format!("/demo/video/1M/{class}/seq={number}/data/seg=0");
            let interest = Interest::builder(name.parse::<Name>().unwrap()).build(Nonce([9; 4]));
            let now = Instant::ZERO + Duration::from_secs(2);
            publisher.handle_packet(now, WALL, interest.wire().clone());
            let lead = Data::decode(publisher.poll_output().unwrap()).unwrap();
            let lead = Lead::decode(&lead).unwrap();
            let header = lead.header();
            let published_at = WALL + Duration::from_millis(33) * frame as u32;
            assert_eq!(header.published_at(), published_at);
            assert_eq!(
                published_at.since(header.captured_at),
                Duration::from_millis(20)
            );
        }
    }
}

/// Rungs that are equal in both go on with their numbers; one that ended begins beyond them when it comes again. The catalogue says when the
/// numbering of each stream began.
#[test]
fn streams_come_and_go_while_others_go_on() {
    let mut publisher = publisher();
    let streams = publisher.catalogue().streams.clone();
    let first = publisher.catalogue().version;
    assert!(publisher.catalogue().starts.is_empty());
    let mut wind = StreamInfo::data("wind", 10, 8);
    for round in 1..=10 {
        let wall = Timestamp::from_micros(first + 1_000_000 * round);
        let with = [streams.clone(), vec![wind.clone()]].concat();
        publisher.set_streams(wall, with).unwrap();
        let catalogue = publisher.catalogue().clone();
        assert_eq!(catalogue.version, wall.as_micros());
        assert_eq!(catalogue.start(&streams[0].name).as_micros(), first);
        assert_eq!(catalogue.start("wind"), wall);
        let json = catalogue.encode().unwrap();
        assert_eq!(Catalogue::decode(&json).unwrap(), catalogue);
        let rung = publisher.rung("wind", StreamInfo::ONLY_RUNG).unwrap();
        let expected = wind.rungs[0].rate.first_sequence(wall);
        assert_eq!(publisher.numbering[&rung].first, expected);
        // The clock did not move: the version grows all the same.
        publisher.set_streams(wall, streams.clone()).unwrap();
        assert_eq!(publisher.catalogue().version, wall.as_micros() + 1);
        let frame = EncodedFrame::at(wall, 0, true, "x");
        let ended = publisher.publish_frame(Instant::ZERO, wall, rung, frame);
        assert!(matches!(ended, Err(FrameError::NoSuchRung)));
    }
    // A rung that is described otherwise is another one.
    let wall = Timestamp::from_micros(first + 20_000_000);
    publisher.set_streams(wall, vec![wind.clone()]).unwrap();
    let before = publisher.rung("wind", StreamInfo::ONLY_RUNG);
    wind.segment_size += 1;
    let wall = Timestamp::from_micros(first + 30_000_000);
    publisher.set_streams(wall, vec![wind.clone()]).unwrap();
    assert_ne!(publisher.rung("wind", StreamInfo::ONLY_RUNG), before);
    assert_eq!(publisher.catalogue().start("wind"), wall);
    // Invalid streams change nothing.
    let catalogue = publisher.catalogue().clone();
    let twice = vec![wind.clone(), wind];
    assert!(publisher.set_streams(wall, twice).is_err());
    assert_eq!(*publisher.catalogue(), catalogue);
}
