use std::collections::VecDeque;

use bytes::Bytes;
use namecast_apps::live::publisher::{EncodedFrame, Publisher, PublisherConfig};
use namecast_apps::object::{Server, ServerConfig};
use namecast_forward::Config;
use namecast_packet::signature::{Ed25519Signer, KeyPair};
use namecast_packet::{Certificate, KeyLocator, Validity};
use namecast_stream::{ProducerConfig, Reading, Rung, SampleRate, StreamInfo, StreamKind};
use namecast_units::{Bitrate, Timestamp};

use super::*;
use crate::config::{DataStream, PublicationConfig, WatchConfig};

#[path = "publication_tests.rs"]
mod publication;

/// Wall clock at time zero.
const WALL: Timestamp = Timestamp::from_micros(1_790_000_000_000_000);
/// One way between node and tab.
const DELAY: Duration = Duration::from_millis(5);
const TICK: Duration = Duration::from_millis(1);
/// Octets of a frame: 10 segments, in datagrams of 1200.
const FRAME_SIZE: usize = 10_000;
const KEY_INTERVAL: u64 = 30;

/// A node with a publisher, joined to a tab by a link with delay; all in virtual time.
struct World {
    now: Instant,
    node: Node,
    publisher: Publisher,
    producer_face: FaceId,
    files: Server,
    files_face: FaceId,
    to_tab: VecDeque<(Instant, FaceId, Bytes)>,
    to_node: VecDeque<(Instant, FaceId, Bytes)>,
    /// The link's two ends, while it is up.
    link: Option<(FaceId, FaceId)>,
    tab: Tab,
    watch: u32,
    frames: Vec<Seen>,
    discontinuities: usize,
    events: Vec<String>,
    /// Numbers and contents of objects.
    fetched: Vec<(f64, Vec<u8>)>,
    published: u64,
    next_frame_at: Instant,
}

/// A frame that came out of the tab.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    position: u64,
    key: bool,
    payload: Vec<u8>,
}

/// As the tests' tabs have it.
const TRANSPORT: Transport<'_> = Transport {
    description: "webtransport",
    mtu: Some(1_200),
    is_local: false,
};

fn config() -> WatchConfig {
    WatchConfig {
        in_room: false,
        root: "/demo".to_owned(),
        key: None,
        remembered: None,
        rung: None,
        target_ms: 100.0,
        streams: Vec::new(),
        audio: false,
        controller: None,
    }
}

fn identity() -> (Ed25519Signer, Certificate) {
    let locator = KeyLocator::Name("/demo/KEY/1".parse().unwrap());
    let signer = Ed25519Signer::from_seed([7; 32], locator);
    let validity = Validity {
        not_before: Timestamp::from_micros(0),
        not_after: Timestamp::from_micros(u64::MAX / 2),
    };
    let certificate =
        Certificate::self_signed(&"/demo".parse().unwrap(), b"1", 9, validity, &signer);
    (signer, certificate)
}

fn publisher() -> Publisher {
    let (signer, certificate) = identity();
    let video = StreamInfo {
        name: "video".to_owned(),
        kind: StreamKind::Video,
        codec: "h264".to_owned(),
        rungs: vec![Rung {
            name: "3M".to_owned(),
            bitrate: Bitrate::mbps(3),
            width: Some(1_280),
            height: Some(720),
            rate: SampleRate::new(30, 1),
            key_interval: 30,
            reorder_delay: 0,
            codec_string: "avc1.42E01F".to_owned(),
            sample_rate: None,
            channels: None,
            inter_frame: None,
            description: None,
        }],
        segment_size: 1_000,
        parity_percent: 20,
        reading: Reading::default(),
    };
    let config = PublisherConfig {
        root: "/demo".parse().unwrap(),
        streams: vec![video],
        producer: ProducerConfig::default(),
        shared_since: None,
    };
    Publisher::new(config, WALL, Box::new(signer), &certificate).unwrap()
}

fn payload(position: u64) -> Vec<u8> {
    (0..FRAME_SIZE as u64)
        .map(|at| (position * 31 + at * 7) as u8)
        .collect()
}

impl World {
    fn new(config: &WatchConfig) -> Self {
        let mut node = Node::new(Config::default());
        let producer_face = node.add_face(FaceConfig::application("publisher")).unwrap();
        node.forwarder
            .add_route("/demo".parse().unwrap(), producer_face, 0)
            .unwrap();
        let files_face = node.add_face(FaceConfig::application("files")).unwrap();
        let prefix: Name = "/demo/hls".parse().unwrap();
        (node.forwarder)
            .add_route(prefix.clone(), files_face, 0)
            .unwrap();
        let (signer, certificate) = identity();
        let files = Server::new(ServerConfig::new(prefix), Box::new(signer), certificate);
        let now = Instant::from_nanos(1_000_000_000);
        let mut tab = Tab::new(WALL, 3);
        let watch = tab.watch(now, config).unwrap();
        Self {
            now,
            node,
            publisher: publisher(),
            producer_face,
            files: files.unwrap(),
            files_face,
            to_tab: VecDeque::new(),
            to_node: VecDeque::new(),
            link: None,
            tab,
            watch,
            frames: Vec::new(),
            discontinuities: 0,
            events: Vec::new(),
            fetched: Vec::new(),
            published: 0,
            next_frame_at: Instant::from_nanos(1_000_000_000),
        }
    }

    /// One that has played for two seconds.
    fn playing() -> Self {
        let mut world = Self::new(&config());
        world.connect();
        world.run_for(Duration::from_secs(2));
        assert!(world.frames.len() >= 55, "{} frames", world.frames.len());
        world
    }

    fn wall(&self) -> Timestamp {
        WALL + self.now.since(Instant::ZERO)
    }

    fn connect(&mut self) {
        let theirs = FaceConfig {
            mtu: Some(1_200),
            ..FaceConfig::default()
        };
        let node_face = self.node.add_face(theirs).unwrap();
        let tab_face = self.tab.face_up(self.now, &TRANSPORT).unwrap();
        self.link = Some((node_face, tab_face));
    }

    fn disconnect(&mut self) {
        let (node_face, tab_face) = self.link.take().unwrap();
        self.node.remove_face(self.now, node_face);
        self.tab.face_down(self.now, tab_face);
        self.to_node.clear();
        self.to_tab.clear();
    }

    fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            self.now += TICK;
            self.publish();
            self.turn_node();
            self.turn_tab();
        }
    }

    fn publish(&mut self) {
        if self.now < self.next_frame_at {
            return;
        }
        let position = self.published;
        let frame = EncodedFrame {
            position,
            key: position.is_multiple_of(KEY_INTERVAL),
            captured_at: self.wall(),
            composition_offset: Duration::ZERO,
            encoded_at: self.wall(),
            payload: payload(position).into(),
        };
        let rung = self.publisher.rung("video", "3M").unwrap();
        self.publisher
            .publish_frame(self.now, self.wall(), rung, frame)
            .unwrap();
        self.published += 1;
        self.next_frame_at += Duration::from_nanos(33_333_333);
    }

    fn turn_node(&mut self) {
        let now = self.now;
        while self.to_node.front().is_some_and(|(at, ..)| *at <= now) {
            let (_, face, frame) = self.to_node.pop_front().unwrap();
            self.node.handle_frame(now, face, frame);
        }
        self.node.handle_timeout(now);
        self.publisher.handle_timeout(now);
        loop {
            if let Some(transmit) = self.node.poll_output() {
                if transmit.face == self.producer_face {
                    self.publisher
                        .handle_packet(now, self.wall(), transmit.frame);
                } else if transmit.face == self.files_face {
                    self.files.handle_packet(now, transmit.frame);
                } else if let Some((_, tab_face)) = self.link {
                    self.to_tab
                        .push_back((now + DELAY, tab_face, transmit.frame));
                }
            } else if let Some(packet) = self.publisher.poll_output() {
                self.node.handle_frame(now, self.producer_face, packet);
            } else if let Some(packet) = self.files.poll_output() {
                self.node.handle_frame(now, self.files_face, packet);
            } else {
                return;
            }
        }
    }

    fn turn_tab(&mut self) {
        let now = self.now;
        while self.to_tab.front().is_some_and(|(at, ..)| *at <= now) {
            let (_, face, frame) = self.to_tab.pop_front().unwrap();
            self.tab.handle_frame(now, face, frame.to_vec());
        }
        if self.tab.poll_timeout().is_some_and(|at| at <= now) {
            self.tab.handle_timeout(now);
        }
        self.read_records();
    }

    /// Reads the tab's records as the page does.
    fn read_records(&mut self) {
        for (kind, fields) in records(&self.tab.drain()) {
            match kind {
                1 => self.take_transmit(&fields),
                2 => {
                    let fields = self.of_watch(&fields);
                    assert_eq!(fields[0], 0, "video");
                    self.frames.push(read_frame(fields));
                }
                3 => self.discontinuities += 1,
                4 => self.events.push(String::from_utf8(fields).unwrap()),
                5 => {
                    let fields = self.of_watch(&fields);
                    let (number, rest) = fields.split_first_chunk::<8>().unwrap();
                    let number = f64::from_le_bytes(*number);
                    self.fetched.push((number, rest[8..].to_vec()));
                }
                other => panic!("record of kind {other}"),
            }
        }
    }

    /// Fields of a record after the number of the only watch.
    fn of_watch<'a>(&self, fields: &'a [u8]) -> &'a [u8] {
        let (watch, rest) = fields.split_first_chunk().unwrap();
        assert_eq!(u32::from_le_bytes(*watch), self.watch);
        rest
    }

    fn take_transmit(&mut self, fields: &[u8]) {
        let (face, frame) = fields.split_first_chunk::<4>().unwrap();
        assert!(frame.len() <= 1_200, "{} octets", frame.len());
        if let Some((node_face, tab_face)) = self.link {
            assert_eq!(u64::from(u32::from_le_bytes(*face)), tab_face.number());
            let frame = Bytes::copy_from_slice(frame);
            self.to_node.push_back((self.now + DELAY, node_face, frame));
        }
    }

    fn stats(&self) -> serde_json::Value {
        serde_json::from_str(&self.tab.stats(self.now, self.watch)).unwrap()
    }

    /// Every frame is the one that was published at its position, and comes in order.
    fn check_frames(&self) {
        for seen in &self.frames {
            assert_eq!(
                seen.payload,
                payload(seen.position),
                "frame {}",
                seen.position
            );
            assert_eq!(seen.key, seen.position.is_multiple_of(KEY_INTERVAL));
        }
        assert!(self.frames.is_sorted_by(|a, b| a.position < b.position));
    }
}

/// Kinds and fields of the records in a batch.
fn records(batch: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let (mut rest, mut records) = (batch, Vec::new());
    while let Some((length, tail)) = rest.split_first_chunk::<4>() {
        let (record, tail) = tail.split_at(u32::from_le_bytes(*length) as usize);
        let (kind, fields) = record.split_first().unwrap();
        records.push((*kind, fields.to_vec()));
        rest = tail;
    }
    assert!(rest.is_empty());
    records
}

fn read_frame(fields: &[u8]) -> Seen {
    let [_, key, rung] = *fields.first_chunk::<3>().unwrap();
    let numbers = &fields[3 + usize::from(rung)..];
    let (position, rest) = numbers.split_first_chunk::<8>().unwrap();
    Seen {
        position: f64::from_le_bytes(*position) as u64,
        key: key == 1,
        payload: rest[16 + 16..].to_vec(),
    }
}

/// Two seconds of 30 frames each; the last 100 ms are still in the playout buffer.
#[test]
fn frames_come_out_whole_and_in_order() {
    let world = World::playing();
    world.check_frames();
    let positions: Vec<u64> = world.frames.iter().map(|seen| seen.position).collect();
    let first = positions[0];
    assert!(first <= KEY_INTERVAL, "began at {first}");
    assert_eq!(
        positions,
        (first..first + positions.len() as u64).collect::<Vec<_>>()
    );
    assert!(
        world
            .events
            .iter()
            .any(|event| event.contains(r#""type":"catalogue""#))
    );
    let signer = world
        .events
        .iter()
        .find(|event| event.contains(r#""type":"signer""#))
        .unwrap();
    assert!(signer.contains(r#""trusted":true"#), "{signer}");
    assert!(signer.contains("/demo/KEY/1"), "{signer}");
    assert!(signer.contains(r#""memory":"new""#), "{signer}");
}

/// The remembered key plays, and is told to be that; with another one remembered nothing is shown, and why is told.
#[test]
fn a_remembered_key_is_told_from_a_changed_one() {
    let locator = KeyLocator::Name("/demo/KEY/1".parse().unwrap());
    let key = Ed25519Signer::from_seed([7; 32], locator).public_key();
    let digits = |digest: [u8; 32]| digest.map(|octet| format!("{octet:02x}")).concat();
    for (remembered, memory, plays) in [
        (digits(key.digest()), r#""memory":"known""#, true),
        ("00".repeat(32), r#""memory":"changed""#, false),
    ] {
        let mut world = World::new(&WatchConfig {
            remembered: Some(remembered),
            ..config()
        });
        world.connect();
        world.run_for(Duration::from_secs(2));
        assert_eq!(!world.frames.is_empty(), plays, "{memory}");
        let events = &world.events;
        assert!(
            events.iter().any(|event| event.contains(memory)),
            "{events:?}"
        );
    }
}

#[test]
fn a_pinned_key_that_does_not_sign_shows_nothing() {
    let mut world = World::new(&WatchConfig {
        key: Some("00".repeat(32)),
        ..config()
    });
    world.connect();
    world.run_for(Duration::from_secs(3));
    assert_eq!(world.frames, []);
    assert!(
        world
            .events
            .iter()
            .any(|event| event.contains(r#""trusted":false"#)),
        "{:?}",
        world.events
    );
}

/// A bit is wrong in packets until twenty were found out: none comes out wrong, and no frame is missing in the end.
#[test]
fn corrupt_packets_are_counted_and_asked_for_again() {
    let mut world = World::playing();
    world.tab.corrupt(20);
    world.run_for(Duration::from_secs(3));
    world.check_frames();
    let stats = world.stats();
    let corrupted = stats["tab"]["corrupted"].as_u64().unwrap();
    let failures = stats["verification_failures"].as_u64().unwrap();
    // Packets that came before their lead are judged later, together.
    assert!((20..=corrupted).contains(&failures), "{failures}");
    assert!(corrupted <= 40, "{corrupted} damaged");
    assert!(world.frames.len() >= 145, "{} frames", world.frames.len());
}

/// The page slept for two seconds: what came meanwhile is of samples that were passed over, and nobody looks at it. Damage to
/// that goes unnoticed, as it should, and does not use up the fault.
#[test]
fn damage_to_what_nobody_waits_for_is_not_counted() {
    let mut world = World::playing();
    let end = world.now + Duration::from_secs(2);
    while world.now < end {
        world.now += TICK;
        world.publish();
        world.turn_node();
    }
    // Timers ran out before what waits is read.
    world.tab.handle_timeout(world.now);
    world.read_records();
    world.tab.corrupt(20);
    world.run_for(Duration::from_secs(3));
    world.check_frames();
    let stats = world.stats();
    let corrupted = stats["tab"]["corrupted"].as_u64().unwrap();
    let failures = stats["verification_failures"].as_u64().unwrap();
    assert!(failures >= 20, "{failures}");
    assert!(
        corrupted >= failures + 5,
        "{corrupted} damaged, {failures} found"
    );
}

#[test]
fn another_transport_takes_over() {
    let mut world = World::playing();
    world.disconnect();
    world.run_for(Duration::from_secs(5));
    let before = world.frames.len();
    world.connect();
    world.run_for(Duration::from_secs(2));
    world.check_frames();
    assert!(
        world.frames.len() >= before + 30,
        "{} frames after {before}",
        world.frames.len()
    );
    let newest = world.frames.last().unwrap().position;
    assert!(
        newest + 6 >= world.published,
        "{newest} of {}",
        world.published
    );
}

#[test]
fn after_a_decoder_error_the_next_frame_stands_alone() {
    let mut world = World::playing();
    let (before, gaps) = (world.frames.len(), world.discontinuities);
    (world.tab).decoder_error(world.now, world.watch, StreamKind::Video);
    world.run_for(Duration::from_millis(1_500));
    assert!(world.frames[before].key);
    assert_eq!(world.discontinuities, gaps + 1);
    world.check_frames();
}

/// A page that takes nothing for a minute costs a bounded amount of memory.
#[test]
fn what_waits_for_the_page_is_bounded() {
    let mut world = World::playing();
    let end = world.now + Duration::from_secs(60);
    while world.now < end {
        world.now += TICK;
        world.publish();
        world.turn_node();
        // Interests that the page does not take are answered all the same: the node hears them by this back door.
        let now = world.now;
        while world.to_tab.front().is_some_and(|(at, ..)| *at <= now) {
            let (_, face, frame) = world.to_tab.pop_front().unwrap();
            world.tab.handle_frame(now, face, frame.to_vec());
        }
        world.tab.handle_timeout(now);
        assert!(
            world.tab.outbox.len() <= MAX_OUTBOX + 64 * 1_024,
            "{}",
            world.tab.outbox.len()
        );
    }
}

/// The names that `web/src/worker/figures.ts` reads.
#[test]
fn the_figures_are_named_as_the_page_reads_them() {
    let stats = World::playing().stats();
    for name in [
        "state",
        "join_ms",
        "rtt_ms",
        "rtt_min_ms",
        "interests_sent",
        "interests_retransmitted",
        "cache_hit_share",
        "goodput_bps",
        "controller",
        "controller_rate_bps",
        "rung",
        "target_ms",
        "signer",
        "clock_offset_ms",
        "clock_offset_rtt_ms",
        "packets_unexpected",
        "video",
        "audio",
        "tab",
        "rejoins",
    ] {
        assert!(stats.get(name).is_some(), "{name}");
    }
    for name in [
        "published",
        "received",
        "lost",
        "late",
        "skips",
        "recovered_fec",
        "recovered_retransmission",
        "verification_failures",
        "buffer_ms",
    ] {
        assert!(stats["video"].get(name).is_some(), "{name}");
    }
    for name in ["key_name", "key_digest", "verdict", "trusted"] {
        assert!(stats["signer"].get(name).is_some(), "{name}");
    }
}

/// The page's player names objects; the signer is that of the stream.
#[test]
fn objects_under_the_name_are_fetched_and_no_others() {
    let mut world = World::new(&config());
    let early = (world.tab).fetch(world.now, world.watch, 1, "/demo/hls/seq=7");
    assert!(early.unwrap_err().to_string().contains("nobody is known"));
    world.connect();
    world.run_for(Duration::from_secs(1));
    let segment = vec![7; 50_000];
    let name: Name = "/demo/hls/seq=7".parse().unwrap();
    world
        .files
        .put(name, segment.clone().into(), world.wall())
        .unwrap();
    let fetch = |world: &mut World, number, uri| {
        let fetched = world.tab.fetch(world.now, world.watch, number, uri);
        fetched.map_err(|error| error.to_string())
    };
    for (uri, why) in [
        ("/other/hls/seq=7", "not under /demo"),
        ("/demo", "not under /demo"),
        ("/demo/seq=x", "is no name"),
        ("https://example.org/7.mp4", "not under /demo"),
    ] {
        let error = fetch(&mut world, 2, uri).unwrap_err();
        assert!(error.contains(why), "{uri}: {error}");
    }
    fetch(&mut world, 3, "/demo/hls/seq=7").unwrap();
    fetch(&mut world, 4, "/demo/hls/32=metadata").unwrap();
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.fetched, [(3.0, segment)]);
    let told = |what: &str| world.events.iter().any(|event| event.contains(what));
    assert!(told(r#""type":"fetching","number":3,"octets":"#));
    assert!(told(
        r#""type":"unfetched","number":4,"why":"the object does not exist"#
    ));
    world.check_frames();
}
