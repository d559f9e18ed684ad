//! Sealed streams: readers see all of them, and nobody else anything.

use std::collections::BTreeSet;

use namecast_apps::live::publisher::{Publisher, PublisherConfig, SetupError};
use namecast_apps::live::watcher::{Event, WatcherConfig};
use namecast_apps::sealed::{Opener, OpenerConfig, Unopened, decode_entries, parse_box_name};
use namecast_apps::trust::ExchangeSecret;
use namecast_packet::Data;
use namecast_stream::{Lead, ProducerConfig, RungNames, StreamKind};
use namecast_units::{Instant, Timestamp};

use crate::world::{ROOT, Show, WALL, World, at, certificate, ms, payload, signer};

fn secret(seed: u8) -> ExchangeSecret {
    ExchangeSecret::of_seed(&[seed; 32])
}

fn public(seeds: &[u8]) -> BTreeSet<[u8; 32]> {
    seeds.iter().map(|seed| secret(*seed).public()).collect()
}

/// A publisher of sealed pictures and sound for these readers.
fn sealed(readers: &[u8]) -> World {
    let mut world = World::new(Show {
        audio: true,
        ..Show::default()
    });
    world.readers = Some(public(readers));
    world.start_publisher(7);
    world
}

/// A watcher with these keys.
fn join(world: &mut World, keys: &[u8]) -> usize {
    world.join(WatcherConfig {
        reader: keys.iter().map(|seed| secret(*seed)).collect(),
        seed: 1 + keys.first().map_or(0, |seed| u64::from(*seed)),
        ..World::config()
    })
}

fn set_readers(world: &mut World, readers: &[u8]) {
    let now = world.now;
    let publisher = world.publisher.as_mut().unwrap();
    publisher.set_readers(now, &public(readers));
}

/// Capture times of the frames that a peer was given of a stream.
fn captured(world: &World, peer: usize, stream: StreamKind) -> Vec<Timestamp> {
    let frames = world.frames(peer, stream);
    frames.iter().map(|(_, frame)| frame.captured_at).collect()
}

/// Asserts that no frame of a stream from the first one on is missing.
fn assert_all(world: &World, peer: usize, stream: StreamKind, count: usize) {
    let frames = world.frames(peer, stream);
    let positions: Vec<_> = frames.iter().map(|(_, frame)| frame.position).collect();
    let first = positions[0];
    let expected: Vec<_> = (first..first + positions.len() as u64).collect();
    assert_eq!(positions, expected);
    assert!(positions.len() >= count, "{} of {count}", positions.len());
}

/// The publisher's wall clock at `instant`.
fn wall(instant: Instant) -> Timestamp {
    WALL + instant.since(Instant::ZERO)
}

/// Opens the leads of `captured` with the key of `seed` and all boxes of `captured`. Returns how many opened, and the failures.
fn opened(captured: &[Data], seed: u8) -> (usize, BTreeSet<String>) {
    let root = ROOT.parse().unwrap();
    let mut opener = Opener::new(
        ROOT.parse().unwrap(),
        vec![secret(seed)],
        OpenerConfig::default(),
    );
    let (mut count, mut failures) = (0, BTreeSet::new());
    for data in captured {
        let Some((rung, id)) = RungNames::of_segment(data.name()) else {
            continue;
        };
        let lead = Lead::decode(data).ok().filter(|_| id.is_lead());
        let Some(lead) = lead.filter(|lead| lead.data_count() == 1) else {
            continue;
        };
        let sequence = rung.builder().generic(id.class.word()).finish();
        let seal = lead.header().seal.unwrap();
        let open = |opener: &mut Opener| {
            let opened = opener.open(&sequence, (id.sequence, &seal), lead.share());
            opened.map(drop)
        };
        let mut result = open(&mut opener);
        if let Err(Unopened::MissingBox(name)) = &result {
            let packet = captured.iter().find(|it| name.is_prefix_of(it.name()));
            let packet = packet.unwrap();
            let (of, _) = parse_box_name(&root, packet.name()).unwrap();
            let entries = decode_entries(&packet.content().unwrap()).unwrap();
            assert!(opener.take(&of, &entries, (0, 1)));
            result = open(&mut opener);
        }
        match result {
            Ok(()) => count += 1,
            Err(why) => drop(failures.insert(why.to_string())),
        }
    }
    (count, failures)
}

/// Ann and Bob read. Eve has a key that nobody sealed for, and Mallory has none: they are told so. Nothing of the first 32 octets of a frame is in
/// any packet, and Eve opens nothing of all that passed. The first frame takes a round trip more than an open one: that of the box.
#[test]
fn readers_see_all_and_others_nothing() {
    let mut world = sealed(&[1, 2]);
    world.captured = Some(Vec::new());
    world.run_until(at(2_010));
    let [ann, bob, eve, mallory] = [&[1][..], &[2], &[9], &[]].map(|keys| join(&mut world, keys));
    world.run_until(at(5_000));
    for peer in [ann, bob] {
        assert_all(&world, peer, StreamKind::Video, 85);
        assert_all(&world, peer, StreamKind::Audio, 140);
        let stats = world.peers[peer].watcher.stats(world.now);
        let join = stats.join_ms.unwrap();
        assert!((150.0..=184.0).contains(&join), "{join} ms");
        assert_eq!((stats.sealed.not_a_reader, stats.sealed.boxes), (0, 1));
        assert!(stats.sealed.opened >= 225);
    }
    for peer in [eve, mallory] {
        assert_eq!(world.peers[peer].frames.len(), 0);
        let stats = world.peers[peer].watcher.stats(world.now);
        assert!(stats.sealed.not_a_reader > 200, "{:?}", stats.sealed);
        let events = world.peers[peer].events.iter();
        let told = events.filter(|(_, event)| *event == Event::Unopened(Unopened::NotAReader));
        assert_eq!(told.count(), 1);
    }
    let captured = world.captured.take().unwrap();
    let begins = |position: u64, size: usize| payload(position, size)[..32].to_vec();
    let is_in_clear = |start: &[u8]| {
        let mut packets = captured.iter();
        packets.any(|it| it.wire().windows(32).any(|octets| octets == start))
    };
    assert!(!(61..150).any(|position| is_in_clear(&begins(position, 3_900))));
    let (count, failures) = opened(&captured, 9);
    assert_eq!(count, 0);
    let expected = [Unopened::NotAReader.to_string()];
    assert_eq!(failures, expected.into());
    let (count, failures) = opened(&captured, 1);
    assert!(count > 100 && failures.is_empty(), "{count}: {failures:?}");
}

/// Eve watches from the start and becomes a reader at 3 s: she is given nothing captured before, and pictures from the next key frame on. Bob
/// loses nothing by it.
#[test]
fn a_newcomer_sees_nothing_from_before() {
    let mut world = sealed(&[2]);
    let [bob, eve] = [2, 9].map(|seed| join(&mut world, &[seed]));
    world.run_until(at(3_010));
    assert_eq!(world.peers[eve].frames.len(), 0);
    let came = wall(world.now);
    set_readers(&mut world, &[2, 9]);
    world.run_until(at(6_000));
    for stream in [StreamKind::Video, StreamKind::Audio] {
        let captured = captured(&world, eve, stream);
        // A frame is captured 7 ms before it is sealed.
        assert!(captured[0] + ms(7) >= came, "{stream:?}");
        World::assert_decodable(&world.frames(eve, stream));
        let first = captured[0].since(came);
        let latest = [ms(20), ms(1_000)][usize::from(stream == StreamKind::Video)];
        assert!(first <= latest, "{stream:?}: {first:?}");
    }
    let events = &world.peers[eve].events;
    assert!(events.iter().any(|(_, event)| *event == Event::Opened));
    assert_all(&world, bob, StreamKind::Video, 175);
    assert_all(&world, bob, StreamKind::Audio, 290);
    // One box when she joins, and one more when a step follows that she had no box of.
    let stats = world.peers[eve].watcher.stats(world.now);
    assert_eq!(stats.sealed.boxes, 2);
    let (sealing, readers) = world.publisher.as_ref().unwrap().sealing().unwrap();
    assert_eq!((sealing.boxes, sealing.generations, readers), (2, 0, 2));
}

/// Ann leaves at 3 s and keeps watching. She receives nothing captured 0.8 s later, after which a new generation is in force, though she has all
/// packets and all boxes. Bob loses nothing: the box of the new generation reaches him before its first sample.
#[test]
fn a_leaver_sees_nothing_from_after() {
    let mut world = sealed(&[1, 2]);
    world.captured = Some(Vec::new());
    let [ann, bob] = [1, 2].map(|seed| join(&mut world, &[seed]));
    world.run_until(at(3_010));
    let left = wall(world.now);
    set_readers(&mut world, &[2]);
    world.run_until(at(7_000));
    for stream in [StreamKind::Video, StreamKind::Audio] {
        let captured = captured(&world, ann, stream);
        let last = captured.last().unwrap().since(left);
        assert!((ms(700)..=ms(800)).contains(&last), "{stream:?}: {last:?}");
    }
    assert_all(&world, bob, StreamKind::Video, 205);
    assert_all(&world, bob, StreamKind::Audio, 340);
    let late = world.frames(bob, StreamKind::Video);
    assert!(
        late.iter()
            .skip(10)
            .all(|(at, frame)| *at <= frame.render_at)
    );
    let captured = world.captured.take().unwrap();
    let since = |data: &&Data| {
        let lead = Lead::decode(data).ok();
        lead.is_none_or(|it| it.header().captured_at.since(left) >= ms(1_500))
    };
    let after: Vec<_> = captured.iter().filter(since).cloned().collect();
    let (count, failures) = opened(&after, 1);
    assert_eq!(count, 0);
    assert_eq!(failures, [Unopened::NotAReader.to_string()].into());
    assert!(opened(&after, 2).0 > 100);
}

/// 100 times in 30 s somebody comes or leaves, while 2 % of the packets are lost each way. Bob, who stays, loses no frame, and no more of
/// them are late than when nobody comes or leaves.
#[test]
fn changes_of_readers_cost_those_who_stay_no_frame() {
    let run = |changes: u64| {
        let mut world = sealed(&[2, 1]);
        world.loss = 0.02;
        let bob = join(&mut world, &[2]);
        world.run_until(at(1_000));
        for change in 0..100 {
            if change < changes {
                let readers: &[u8] = [&[2][..], &[2, 1], &[2, 1, 3], &[2, 3]][change as usize % 4];
                set_readers(&mut world, readers);
            }
            world.run_until(at(1_000 + 300 * (change + 1)));
        }
        world.run_until(at(33_000));
        assert_all(&world, bob, StreamKind::Video, 980);
        assert_all(&world, bob, StreamKind::Audio, 1_640);
        let (sealing, _) = world.publisher.as_ref().unwrap().sealing().unwrap();
        let stats = world.peers[bob].watcher.stats(world.now);
        assert_eq!(stats.sealed.box_missing + stats.sealed.damaged, 0);
        let frames = world.frames(bob, StreamKind::Video);
        let late = frames.iter().filter(|(at, frame)| *at > frame.render_at);
        (sealing.generations, late.count())
    };
    let (generations, late) = run(100);
    // 25 rounds of four changes, of which two have a leaver.
    assert!((25..=50).contains(&generations), "{generations}");
    let (none, late_without) = run(0);
    assert_eq!(none, 0);
    assert!(late <= late_without + 10, "{late} and {late_without}");
}

/// A publisher that starts again draws other keys: readers fetch the new box.
#[test]
fn readers_follow_a_publisher_that_starts_again() {
    let mut world = sealed(&[1]);
    let ann = join(&mut world, &[1]);
    world.run_until(at(2_000));
    world.publisher = None;
    world.run_until(at(3_000));
    world.start_publisher(7);
    world.run_until(at(7_000));
    let captured = captured(&world, ann, StreamKind::Video);
    assert!(captured.last().unwrap().since(wall(at(6_500))) > ms(100));
    let stats = world.peers[ann].watcher.stats(world.now);
    assert_eq!((stats.sealed.boxes, stats.sealed.damaged), (2, 0));
}

/// Two publishers that share a stream count alike, and would use a nonce twice.
#[test]
fn a_shared_stream_is_not_sealed() {
    let config = PublisherConfig {
        root: ROOT.parse().unwrap(),
        streams: vec![namecast_stream::StreamInfo::data("chat", 10, 1_000)],
        producer: ProducerConfig::default(),
        shared_since: Some(WALL),
    };
    let publisher = Publisher::new(config, WALL, Box::new(signer(7)), &certificate(7));
    let refused = publisher.unwrap().sealed([1; 32], &public(&[1]));
    assert!(matches!(refused, Err(SetupError::SealedAndShared)));
}

/// Sealing adds the tag of 16 octets and the element Seal of 9, while generations are below 256: 25 octets a sample.
#[test]
fn a_sealed_sample_is_25_octets_longer() {
    let sizes = |readers: Option<BTreeSet<[u8; 32]>>| {
        let mut world = World::new(Show {
            audio: true,
            ..Show::default()
        });
        world.readers = readers;
        world.start_publisher(7);
        world.captured = Some(Vec::new());
        join(&mut world, &[1]);
        world.run_until(at(1_000));
        let captured = world.captured.take().unwrap();
        let sound = captured.into_iter().filter(|data| {
            let id = RungNames::of_segment(data.name()).map(|(_, id)| id);
            id.is_some_and(|id| id.is_lead()) && data.name().to_string().contains("/audio/")
        });
        let sizes = sound.map(|it| {
            // The Interest that waited longest is not the same for both.
            let asked = Lead::decode(&it).unwrap().header().asked;
            (it.name().to_string(), (asked.is_some(), it.wire().len()))
        });
        sizes.collect::<std::collections::BTreeMap<_, _>>()
    };
    let (open, sealed) = (sizes(None), sizes(Some(public(&[1]))));
    let both = open
        .iter()
        .filter_map(|(name, open)| Some((open, sealed.get(name)?)));
    let same = both.filter(|(open, sealed)| open.0 == sealed.0);
    let added: Vec<_> = same
        .map(|(open, sealed)| sealed.1.abs_diff(open.1))
        .collect();
    assert!(added.len() > 20, "{}", added.len());
    let (least, most) = (added.iter().min().unwrap(), added.iter().max().unwrap());
    // An age of the Interest that needs another number of octets: three at most.
    assert!(
        (22..=28).contains(least) && (25..=28).contains(most),
        "{added:?}"
    );
}
