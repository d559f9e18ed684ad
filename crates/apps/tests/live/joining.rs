//! How fast, and by whose word, a watcher joins.

use namecast_apps::live::watcher::{
    Event, Liveness, Pin, Refusal, RejoinReason, Trust, Verdict, WatcherConfig,
};
use namecast_apps::trust::schema::{Limits, Schema};
use namecast_apps::trust::template::Template;
use namecast_apps::trust::{Anchor, ChainConfig, Chains, Moment, SharedChains};
use namecast_stream::StreamKind;

use crate::world::{ROOT, Show, WALL, World, at, key_digest, ms};

/// RTT 50 ms; the stream runs for 5.5 s, so the newest key frame is half a second old. Metadata takes one round trip,
/// certificate and key frame the second: 100 ms, plus at most one frame period.
#[test]
fn the_first_frame_is_there_after_two_round_trips() {
    let mut world = World::new(Show::default());
    world.run_until(at(5_510));
    let peer = world.join(WatcherConfig {
        audio: false,
        ..World::config()
    });
    world.run_until(at(5_510 + 1_000));
    let join = world.peers[peer].watcher.stats(world.now).join_ms.unwrap();
    assert!((100.0..=134.0).contains(&join), "{join} ms");
    let frames = world.frames(peer, StreamKind::Video);
    World::assert_decodable(&frames);
    assert_eq!(frames[0].1.position, 150);
    // The samples since the key frame need the third round trip; then playback is live.
    let live = frames.iter().find(|(at, frame)| *at <= frame.render_at);
    assert!(
        live.unwrap().0 <= at(5_510 + 150 + 34),
        "{:?}",
        live.unwrap().0
    );
    let steps: Vec<_> = world.peers[peer].events.iter().map(|(_, e)| e).collect();
    assert!(
        matches!(
            steps[..],
            [
                Event::AskingForMetadata,
                Event::AskingForCertificate { .. },
                Event::StartingAt { .. },
                Event::Catalogue { .. },
                Event::FirstFrame { .. },
                Event::Liveness(Liveness::Live)
            ]
        ),
        "{steps:?}"
    );
}

#[test]
fn a_stream_that_starts_later_is_joined_when_it_does() {
    let mut world = World::new(Show::default());
    world.silent = true;
    let peer = world.join(World::config());
    world.run_until(at(3_000));
    assert!(world.peers[peer].frames.is_empty());
    world.silent = false;
    world.run_until(at(3_700));
    let frames = world.frames(peer, StreamKind::Video);
    World::assert_decodable(&frames);
    assert_eq!(frames[0].1.position, 0);
    assert!(frames.len() >= 10, "{}", frames.len());
}

/// The publisher names version 3 of the roster from 1 s on; a relay holds it back, and the reader has version 2. It is said once within 30 s, and
/// not again when version 3 is here.
#[test]
fn a_roster_held_back_is_noticed() {
    let rules = Template::Streams.rules(&ROOT.parse().unwrap());
    let schema = Schema::compile(&rules, &Limits::default()).unwrap();
    let anchor = Anchor::Digest(key_digest(7));
    let chains = Chains::new(schema.into(), 1, anchor, ChainConfig::default());
    let chains = SharedChains::new(chains);
    let revoke = |version| {
        chains.with(|it| {
            it.tell(Moment::Live(WALL));
            it.set_revoked(version, [].into()).unwrap();
        });
    };
    revoke(2);
    let mut world = World::new(Show::default());
    let peer = world.join(WatcherConfig {
        trust: Trust::Schema(chains.clone()),
        ..World::config()
    });
    world.run_until(at(1_000));
    assert!(!world.peers[peer].frames.is_empty());
    let publisher = world.publisher.as_mut().unwrap();
    publisher.set_roster_version(Some(3));
    let held_back = |world: &World| {
        let events = world.peers[peer].events.iter();
        let held_back =
            events.filter(|(_, event)| *event == Event::RosterHeldBack { known: 2, told: 3 });
        held_back.map(|(at, _)| *at).collect::<Vec<_>>()
    };
    world.run_until(at(40_000));
    let noticed = held_back(&world);
    assert_eq!(noticed.len(), 1, "{noticed:?}");
    assert!(
        (at(21_000)..=at(31_000)).contains(&noticed[0]),
        "{noticed:?}"
    );
    revoke(3);
    world.run_until(at(80_000));
    assert_eq!(held_back(&world).len(), 1);
    assert_eq!(
        world.peers[peer].watcher.stats(world.now).rosters_held_back,
        1
    );
}

/// A catalogue of 15 packets does not travel in metadata. It costs two round trips, for the first packet and for the
/// others, and one for metadata again: 250 ms in all.
#[test]
fn a_long_catalogue_is_fetched_in_segments() {
    let mut world = World::new(Show {
        spare_streams: 6,
        ..Show::default()
    });
    world.run_until(at(2_510));
    let peer = world.join(World::config());
    world.run_until(at(4_000));
    let frames = world.frames(peer, StreamKind::Video);
    World::assert_decodable(&frames);
    let join = world.peers[peer].watcher.stats(world.now).join_ms.unwrap();
    assert!((250.0..=300.0).contains(&join), "{join} ms");
    let live = frames.iter().filter(|(at, frame)| *at <= frame.render_at);
    assert!(live.count() > 25);
    assert_eq!(
        world.peers[peer]
            .watcher
            .stats(world.now)
            .verification_failures,
        0
    );
}

fn join_with(trust: Trust) -> World {
    let mut world = World::new(Show::default());
    let config = WatcherConfig {
        trust,
        ..World::config()
    };
    world.join(config);
    world.run_until(at(3_000));
    world
}

#[test]
fn the_signer_is_named_with_a_verdict() {
    let first_use = join_with(Trust::FirstUse);
    assert_eq!(first_use.peers[0].signers.len(), 1);
    let signer = &first_use.peers[0].signers[0];
    assert_eq!(signer.verdict, Verdict::FirstUse);
    assert_eq!(signer.key_digest, key_digest(7));
    assert_eq!(signer.key_name.to_string(), "/demo/KEY/k7");

    let pinned = join_with(Trust::Pinned(Pin::Digest(key_digest(7))));
    assert_eq!(pinned.peers[0].signers[0].verdict, Verdict::Pinned);
    assert!(pinned.peers[0].frames.len() > 60);
    let remembered = join_with(Trust::Remembered(key_digest(7)));
    assert_eq!(remembered.peers[0].signers[0].verdict, Verdict::Remembered);
    assert!(remembered.peers[0].frames.len() > 60);
}

#[test]
fn another_key_than_the_pinned_or_remembered_one_shows_nothing() {
    for (trust, refusal) in [
        (Trust::Pinned(Pin::Digest([9; 32])), Refusal::OtherKey),
        (Trust::Remembered([9; 32]), Refusal::ChangedKey),
    ] {
        let world = join_with(trust);
        let peer = &world.peers[0];
        assert_eq!(peer.signers.len(), 1, "said once, not at every attempt");
        assert_eq!(peer.signers[0].verdict, Verdict::Refused(refusal));
        assert!(peer.frames.is_empty());
        // Two joins, each until the certificate is there: about 8 samples of 6 segments.
        assert!(peer.interests < 120, "{}", peer.interests);
        assert!(peer.watcher.stats(world.now).verification_failures > 0);
    }
}

#[test]
fn a_publisher_that_starts_again_is_joined_within_three_seconds() {
    let mut world = World::new(Show {
        audio: true,
        ..Show::default()
    });
    let peer = world.join(World::config());
    world.run_until(at(5_000));
    world.publisher = None;
    world.run_until(at(8_000));
    let before = world.peers[peer].frames.len();
    world.start_publisher(7);
    world.run_until(at(11_000));
    let first = world.peers[peer].frames[before..]
        .iter()
        .find(|(_, frame)| frame.stream == StreamKind::Video && frame.position == 0);
    let (first, _) = first.expect("plays again");
    assert!(*first < at(8_600), "{first}");
    let events: Vec<_> = world.peers[peer].events.iter().map(|(_, e)| e).collect();
    assert!(events.contains(&&Event::Starved) && events.contains(&&Event::Recovered));
    assert!(events.contains(&&Event::Rejoining(RejoinReason::NewCatalogue)));
    let stats = world.peers[peer].watcher.stats(world.now);
    assert_eq!((stats.rejoins, stats.state), (1, "playing"));
    assert_eq!(stats.verification_failures, 0);
    assert!(world.peers[peer].resets.len() >= 2);
}

/// Killed and started within half a second, and its clock set back by an hour: only the periodic probe can tell.
#[test]
fn a_quick_restart_with_a_wrong_clock_is_noticed_as_well() {
    let mut world = World::new(Show::default());
    let peer = world.join(World::config());
    world.run_until(at(5_000));
    world.skew = -3_600_000_000;
    world.start_publisher(7);
    world.run_until(at(8_000));
    let frames = world.frames(peer, StreamKind::Video);
    let again = frames
        .iter()
        .rfind(|(_, frame)| frame.position == 0)
        .unwrap();
    assert!(again.0 < at(7_500), "{}", again.0);
    let last = frames.last().unwrap();
    assert!(last.0 > at(7_900) && !last.1.late);
}

/// Trust on first use holds on to the first key: whoever comes with another one is refused, and named.
#[test]
fn another_publisher_under_the_same_name_is_refused() {
    let mut world = World::new(Show::default());
    let peer = world.join(World::config());
    world.run_until(at(3_000));
    world.start_publisher(8);
    world.run_until(at(3_200));
    let before = world.peers[peer].frames.len();
    world.run_until(at(7_000));
    assert_eq!(world.peers[peer].frames.len(), before);
    let last = world.peers[peer].signers.last().unwrap();
    assert_eq!(last.verdict, Verdict::Refused(Refusal::ChangedKey));
    assert_eq!(last.key_digest, key_digest(8));
    // The real one comes back.
    world.start_publisher(7);
    world.run_until(at(8_500));
    assert!(world.peers[peer].frames.len() > before + 20);
}

#[test]
fn the_clock_offset_is_found_and_stages_add_up() {
    let mut world = World::new(Show::default());
    world.skew = 5_000_000;
    world.run_until(at(700));
    let peer = world.join(WatcherConfig {
        target: ms(80),
        ..World::config()
    });
    world.run_until(at(10_000));
    let stats = world.peers[peer].watcher.stats(world.now);
    let offset = stats.clock_offset_ms.unwrap();
    assert!((4_999.0..=5_001.0).contains(&offset), "{offset}");
    // Encoding 7 ms, network 25 ms, then the target of 80 ms from the earliest arrival.
    let latency = &stats.latency;
    assert!((111.0..=113.0).contains(&latency.p50_ms), "{latency:?}");
    let stages = latency.stages;
    let near = |value: f64, expected: f64| (value - expected).abs() <= 1.0;
    assert!(
        near(stages.encode, 7.0) && near(stages.network, 25.0),
        "{stages:?}"
    );
    assert!(
        near(stages.buffer + stages.reassembly, 78.0) && near(stages.decode, 2.0),
        "{stages:?}"
    );
    let sum = stages.encode + stages.publish + stages.network + stages.reassembly + stages.buffer;
    assert!(near(sum + stages.decode, latency.p50_ms), "{stages:?}");
}

/// RTT 50 ms. At any frame rate, with sound and without, the first picture is there after three round trips at most, and nobody is
/// told that nothing arrives.
#[test]
fn slow_and_fast_sources_are_simply_live() {
    for fps in [1, 2, 5, 30, 120] {
        for audio in [false, true] {
            let mut world = World::new(Show {
                fps,
                audio,
                key_interval: fps,
                ..Show::default()
            });
            world.run_until(at(5_510));
            let peer = world.join(WatcherConfig {
                audio,
                ..World::config()
            });
            world.run_until(at(20_000));
            let first = world.frames(peer, StreamKind::Video)[0].0;
            assert!(first <= at(5_510 + 150), "{fps} a second: {first:?}");
            let events = &world.peers[peer].events;
            let starved = events.iter().find(|(_, it)| matches!(it, Event::Starved));
            assert_eq!(starved, None, "{fps} a second, sound: {audio}");
        }
    }
}
