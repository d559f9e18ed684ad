//! Hot failover: of two routers and of two producers of one stream, one fails, and the consumer notices nothing.

use std::time::Duration;

use crate::live_world::{LiveWorld, link, ms, multicast, root, watch};
use namecast_sim::live::{LivePublisher, LivePublisherConfig, LiveWatcherConfig, Media};
use namecast_sim::{ApplicationId, HostClock, NodeConfig};
use namecast_stream::StreamKind;
use namecast_units::{Instant, Timestamp};

/// Wall clock at the start of virtual time.
fn epoch() -> Timestamp {
    HostClock::default().read(Instant::ZERO).wall
}

/// What every failover must come to: of all frames from 2 s to 19 s none is missing, late or shown twice, nothing was
/// joined again, and nothing wrong came.
#[track_caller]
fn assert_unnoticed(world: &LiveWorld, watcher: ApplicationId) {
    for (kind, rate) in [(StreamKind::Video, 30), (StreamKind::Audio, 50)] {
        let rendered = world.rendered(watcher, kind, ms(2_000)..ms(19_000));
        let expected: Vec<u64> = (2 * rate..19 * rate).collect();
        let missing: Vec<u64> = expected
            .iter()
            .copied()
            .filter(|p| !rendered.contains(p))
            .collect();
        assert_eq!(missing, Vec::<u64>::new(), "{kind:?}");
        assert_eq!(rendered, expected, "{kind:?}");
    }
    let stats = world.watcher(watcher).stats(world.now()).unwrap();
    let video = stats.video.unwrap();
    assert_eq!((stats.rejoins, stats.verification_failures), (0, 0));
    assert_eq!((video.lost, video.skips), (0, 0));
}

fn watch_both() -> LiveWatcherConfig {
    let mut config = watch();
    config.watcher.target = ms(150);
    config
}

/// Both ways are used all the time: what comes second is dropped by the node, and a way that fails costs nothing.
#[test]
fn a_router_fails_and_comes_back() {
    for delay in [ms(5), ms(40)] {
        let links = [("P", "R1"), ("P", "R2"), ("R1", "C"), ("R2", "C")];
        let mut world = LiveWorld::of(&links, &link(delay), |_| multicast());
        world.publish_everywhere("P", vec![Media::video(), Media::audio()]);
        let watcher = world.watch("C", watch());
        world.node_down("R1", ms(8_000)..ms(11_000));
        world.node_down("R2", ms(14_000)..ms(30_000));
        world.run_until(ms(20_000));
        assert_unnoticed(&world, watcher);
        // The watcher's face gets every packet once, however many ways it came.
        let traffic = world.watcher(watcher).traffic();
        assert!(traffic.data <= traffic.interests, "{traffic:?}");
    }
}

/// Two producers of one stream, each behind a router of its own.
struct Twins {
    world: LiveWorld,
    producers: [ApplicationId; 2],
    watcher: ApplicationId,
}

/// The second producer's clock is `ahead` by so many microseconds, which may be negative.
fn twins(ahead: i64, configure: impl Fn(&mut LivePublisherConfig)) -> Twins {
    let links = [("P1", "R1"), ("P2", "R2"), ("R1", "C"), ("R2", "C")];
    let mut world = LiveWorld::of(&links, &link(ms(20)), |node| NodeConfig {
        clock: HostClock {
            wall_offset_micros: if node == "P2" { ahead } else { 0 },
            ..HostClock::default()
        },
        ..multicast()
    });
    let media = vec![Media::video(), Media::audio()];
    let producers = ["P1", "P2"].map(|host| {
        let mut config = LivePublisherConfig {
            shared_since: Some(epoch()),
            ..LivePublisherConfig::new(root(), media.clone())
        };
        if host == "P2" {
            configure(&mut config);
        }
        world.publish_as(host, config)
    });
    let watcher = world.watch("C", watch_both());
    Twins {
        world,
        producers,
        watcher,
    }
}

/// The first producer dies at 8 s and comes back at 11 s; the second dies at 14 s.
fn fail(twins: &mut Twins) {
    let [first, second] = twins.producers;
    let die = |publisher: &mut LivePublisher, _| publisher.die();
    twins.world.with_publisher(ms(8_000), first, die);
    twins
        .world
        .with_publisher(ms(11_000), first, LivePublisher::restart);
    twins.world.with_publisher(ms(14_000), second, die);
    twins.world.run_until(ms(20_000));
}

#[test]
fn a_producer_fails_and_comes_back() {
    let mut twins = twins(0, |_| {});
    fail(&mut twins);
    assert_unnoticed(&twins.world, twins.watcher);
    // Both answered as long as they lived.
    for producer in twins.producers {
        let traffic = twins.world.publisher(producer).traffic();
        assert!(traffic.data > 1_500, "{traffic:?}");
    }
}

/// Clocks that disagree by less than the playout target.
#[test]
fn producers_whose_clocks_disagree_take_over_all_the_same() {
    for ahead in [-50_000, -5_000, 5_000, 50_000] {
        let mut twins = twins(ahead, |_| {});
        fail(&mut twins);
        assert_unnoticed(&twins.world, twins.watcher);
    }
}

/// The second producer is started in the middle: it counts as the first does, which it has never heard of.
#[test]
fn a_producer_that_starts_later_counts_alike() {
    let mut twins = twins(0, |_| {});
    let [first, second] = twins.producers;
    twins
        .world
        .with_publisher(Duration::from_nanos(1), second, |publisher, _| {
            publisher.die()
        });
    twins
        .world
        .with_publisher(ms(5_333), second, LivePublisher::restart);
    twins
        .world
        .with_publisher(ms(9_000), first, |publisher, _| publisher.die());
    twins.world.run_until(ms(20_000));
    assert_unnoticed(&twins.world, twins.watcher);
}
