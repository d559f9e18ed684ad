//! Live streams over simulated networks: the publisher and watcher that run on sockets, end to end.

use std::time::Duration;

use crate::live_world::{LiveWorld, link, ms, watch};
use namecast_netem as netem;
use namecast_sim::live::{LiveWatcher, LiveWatcherConfig, Media, Signing};
use namecast_sim::{HostClock, NodeConfig};
use namecast_stream::StreamKind;

/// P – R – C with 25 ms each: the round trip is 100 ms, so the first frame is there after 200 ms and what 15 kB take on
/// 100 Mbit/s. From then on nothing is missing, nothing late, and each octet leaves the producer once.
#[test]
fn a_good_network_shows_every_frame() {
    let mut world = LiveWorld::line(ms(25));
    let publisher = world.publish("P", vec![Media::video(), Media::audio()]);
    let watcher = world.watch(
        "C",
        LiveWatcherConfig {
            start: ms(2_000),
            ..watch()
        },
    );
    world.run_until(ms(12_000));
    let live = world.watcher(watcher);
    let stats = live.stats(world.now()).unwrap();
    let join = stats.join_ms.unwrap();
    assert!((200.0..=230.0).contains(&join), "{join}");
    assert_eq!(stats.rejoins, 0);
    for (kind, rate) in [(StreamKind::Video, 30), (StreamKind::Audio, 50)] {
        // Published from 3 s to 11 s.
        let expected: Vec<u64> = (3 * rate..11 * rate).collect();
        let rendered = world.rendered(watcher, kind, ms(3_000)..ms(11_000));
        assert_eq!(rendered, expected);
    }
    let first = live
        .records()
        .iter()
        .find(|r| r.stream == StreamKind::Video)
        .unwrap();
    assert!(first.key && first.position == 60, "{first:?}");
    let traffic = live.traffic();
    assert_eq!(traffic.nacks, 0);
    let (published, produced) = world.publisher(publisher).counters().unwrap();
    assert_eq!((published.frames, published.frames_refused), (962, 0));
    // No packet leaves the producer twice: those on the way at the end, and metadata, make up the difference.
    let sent = produced.data_sent;
    assert!(
        (traffic.data..traffic.data + 50).contains(&sent),
        "{sent} of {traffic:?}"
    );
    assert!(live.table_sizes().frames < 30);
}

/// Who comes a second after the publisher began gets all of the sound, as of the pictures, whose first group still runs; who comes six
/// seconds later gets the newest.
#[test]
fn sound_begins_with_the_publisher_if_that_has_just_begun() {
    for (start, is_whole) in [(1_000, true), (7_000, false)] {
        let mut world = LiveWorld::line(ms(5));
        world.publish("P", vec![Media::video(), Media::audio()]);
        let config = LiveWatcherConfig {
            start: ms(start),
            ..watch()
        };
        let watcher = world.watch("C", config);
        world.run_until(ms(start + 3_000));
        let records = world.watcher(watcher).records().iter();
        let sound = records.filter(|it| it.stream == StreamKind::Audio);
        let positions: Vec<_> = sound.map(|it| it.position).collect();
        let newest = start / 1_000 * 50;
        let expected = if is_whole { 0..1 } else { newest..newest + 10 };
        assert!(expected.contains(&positions[0]), "{positions:?}");
        assert!(positions.windows(2).all(|pair| pair[1] == pair[0] + 1));
    }
}

/// A tenth of the packets is lost, with 240 ms to repair it: of what is to be recorded every frame comes, late or not; who looks on passes over some.
#[test]
fn what_is_recorded_is_waited_for() {
    let positions = |is_recorded: bool, kind: StreamKind| {
        let lossy = netem::Config {
            loss: netem::Loss::Random { share: 0.1 },
            ..link(ms(60))
        };
        let mut world = LiveWorld::behind(&lossy);
        world.publish("P", vec![Media::video(), Media::audio()]);
        let mut config = watch();
        config.start = ms(2_000);
        if is_recorded {
            config.watcher.prefer_completeness();
        }
        let watcher = world.watch("C", config);
        world.run_until(ms(14_000));
        let records = world.watcher(watcher).records().iter();
        let of_kind = records.filter(|it| it.stream == kind);
        of_kind.map(|it| it.position).collect::<Vec<_>>()
    };
    let is_whole = |positions: &[u64]| positions.windows(2).all(|it| it[1] == it[0] + 1);
    let kinds = [StreamKind::Video, StreamKind::Audio];
    for kind in kinds {
        let recorded = positions(true, kind);
        assert!(is_whole(&recorded) && recorded.len() >= 300, "{recorded:?}");
    }
    assert!(kinds.iter().any(|kind| !is_whole(&positions(false, *kind))));
}

/// The same run twice is the same to the octet; another seed of the media is not; HMACs change no frame.
#[test]
fn runs_repeat() {
    let run = |seed, signing| {
        let mut world = LiveWorld::line(ms(25));
        world.signing = signing;
        let media = Media {
            seed,
            ..Media::video()
        };
        world.publish("P", vec![media]);
        let watcher = world.watch("C", watch());
        world.run_until(ms(3_000));
        let live = world.watcher(watcher);
        (live.records().clone(), *live.traffic())
    };
    let (first, again, other) = (
        run(1, Signing::default()),
        run(1, Signing::default()),
        run(2, Signing::default()),
    );
    assert_eq!(first, again);
    assert_ne!(first.1, other.1);
    let (frames, traffic) = run(1, Signing::Hmac);
    assert_eq!(frames.len(), first.0.len());
    assert!(traffic.data_size < first.1.data_size);
}

/// A host that is down for a second publishes nothing of that second afterwards, and goes on with a key frame.
#[test]
fn a_host_that_was_down_goes_on_at_the_next_key_frame() {
    let mut world = LiveWorld::line(ms(5));
    world.publish("P", vec![Media::video()]);
    let watcher = world.watch("C", watch());
    world.node_down("P", ms(4_500)..ms(5_500));
    world.run_until(ms(12_000));
    let rendered = world.rendered(watcher, StreamKind::Video, ms(1_000)..ms(11_000));
    let expected: Vec<u64> = (30..135).chain(180..330).collect();
    let missing = |all: &[u64], of: &[u64]| all.iter().filter(|p| !of.contains(p)).count();
    assert_eq!(missing(&rendered, &expected), 0, "{rendered:?}");
    // Those that were on the way when the host failed, and those before the watcher noticed that it is back.
    assert!(missing(&expected, &rendered) <= 20, "{rendered:?}");
}

/// Clocks that are wrong by an hour and drift by 100 ppm either way change nothing.
#[test]
fn wrong_clocks_change_nothing() {
    for sign in [1, -1] {
        let clock = HostClock {
            wall_offset_micros: i64::from(sign) * 3_600_000_000,
            drift_ppb: sign * 100_000,
        };
        let mut world = LiveWorld::line_with_clock(ms(25), "C", clock);
        world.publish("P", vec![Media::video()]);
        let watcher = world.watch("C", watch());
        world.run_until(ms(21_000));
        let rendered = world.rendered(watcher, StreamKind::Video, ms(1_000)..ms(20_000));
        assert_eq!(rendered, (30..600).collect::<Vec<_>>());
    }
}

/// A watcher that leaves requests nothing more, and keeps its figures.
#[test]
fn a_watcher_leaves() {
    let mut world = LiveWorld::line(ms(5));
    world.publish("P", vec![Media::video()]);
    let config = LiveWatcherConfig {
        stop: Some(Duration::from_secs(3)),
        ..watch()
    };
    let watcher = world.watch("C", config);
    world.run_until(ms(3_000));
    let traffic = *world.watcher(watcher).traffic();
    world.run_until(ms(6_000));
    let live = world.watcher(watcher);
    assert_eq!(live.traffic().interests, traffic.interests);
    assert!(live.watcher().is_none());
    let video = live.stats(world.now()).unwrap().video.unwrap();
    assert!((80..=90).contains(&video.rendered), "{video:?}");
}

/// Two watchers of one program want the same stream: one Interest leaves for both, and each shows all of it. One leaves after 4 s, and
/// the other goes on.
#[test]
fn two_watches_of_one_program_cost_what_one_does() {
    let run = |is_shared: bool| {
        let mut world = LiveWorld::line(ms(5));
        world.publish("P", vec![Media::video()]);
        let watching = |stop| LiveWatcherConfig { stop, ..watch() };
        let mut live = LiveWatcher::new(watching(None));
        if is_shared {
            assert_eq!(live.add(watching(Some(ms(4_000)))), 1);
        }
        let node = world.node("C");
        let id = world.network.add_application(node, live);
        world.run_until(ms(8_000));
        let shown = world.rendered(id, StreamKind::Video, ms(1_000)..ms(7_000));
        assert_eq!(shown, (30..210).collect::<Vec<_>>());
        let live = world.watcher(id);
        if is_shared {
            let other = live.shown(1);
            let shown = other.records().iter().filter(|frame| frame.is_rendered());
            let last = shown.map(|frame| frame.position).max().unwrap();
            assert!((110..120).contains(&last), "{last}");
            assert!(other.watch().is_none());
        }
        live.traffic().interests
    };
    let [alone, shared] = [false, true].map(run);
    // Beside its challenges and probes after the first second.
    assert!(
        shared.abs_diff(alone) <= alone / 100,
        "{shared} for {alone}"
    );
}

/// Twelve watchers below four routers, who join whenever they like, cost the producer what one does: all that it sends, probes
/// included, within 1 %.
#[test]
fn many_watchers_cost_the_producer_what_one_does() {
    let sent = |watchers: usize| {
        let names: Vec<[String; 2]> = (0..12)
            .map(|at| [format!("R{}", at % 4), format!("C{at}")])
            .collect();
        let upper = ["R0", "R1", "R2", "R3"].map(|router| ("P", router));
        let lower = names.iter().map(|[router, host]| (&**router, &**host));
        let links: Vec<(&str, &str)> = upper.into_iter().chain(lower).collect();
        let link = crate::live_world::link(ms(10));
        let mut world = LiveWorld::of(&links, &link, |_| NodeConfig::default());
        world.signing = Signing::Hmac;
        let publisher = world.publish("P", vec![Media::video()]);
        for at in 0..watchers {
            let mut config = LiveWatcherConfig {
                start: ms(1_000 + 317 * at as u64),
                ..watch()
            };
            config.watcher.seed = at as u64;
            world.watch(&format!("C{at}"), config);
        }
        world.run_until(ms(7_000));
        let before = *world.publisher(publisher).traffic();
        world.run_until(ms(15_000));
        let after = world.publisher(publisher).traffic();
        (after.data_size - before.data_size).as_bytes()
    };
    let (one, many) = (sent(1), sent(12));
    let ratio = many as f64 / one as f64;
    assert!((0.99..=1.01).contains(&ratio), "{one} {many}");
}
