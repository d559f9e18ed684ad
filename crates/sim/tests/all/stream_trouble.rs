//! What a stream must survive: publishers that start anew, catalogues that change, clocks that jump, numbers that are missing.

use std::time::Duration;

use crate::live_world::{LiveWorld, ms, root, watch};
use namecast_apps::live::watcher::{Event, RejoinReason, RungChoice};
use namecast_sim::HostClock;
use namecast_sim::live::{LivePublisher, LivePublisherConfig, LiveWatcherConfig, Media, MediaRung};
use namecast_stream::StreamKind;
use namecast_units::{Bitrate, Instant};

/// Frames shown between two times, as the watcher's clock has them.
fn shown(world: &LiveWorld, id: namecast_sim::ApplicationId, from: u64, until: u64) -> usize {
    let span = Instant::ZERO + ms(from)..Instant::ZERO + ms(until);
    let records = world.watcher(id).records().iter();
    let shown = records.filter(|r| {
        r.stream == StreamKind::Video && r.is_rendered() && span.contains(&r.render_at)
    });
    shown.count()
}

fn reasons(world: &LiveWorld, id: namecast_sim::ApplicationId) -> Vec<RejoinReason> {
    let events = world.watcher(id).events().iter();
    let reasons = events.filter_map(|(_, event)| match event {
        Event::Rejoining(reason) => Some(*reason),
        _ => None,
    });
    reasons.collect()
}

/// The publisher is killed at 5 s and started at 6 s. It counts from another number on, says so with a new catalogue, and
/// the watcher shows it within three seconds.
#[test]
fn a_publisher_that_counts_otherwise_is_joined_again() {
    let mut world = LiveWorld::line(ms(25));
    let publisher = world.publish("P", vec![Media::video()]);
    let watcher = world.watch("C", watch());
    world.with_publisher(ms(5_000), publisher, |publisher, _| publisher.die());
    world.with_publisher(ms(6_000), publisher, LivePublisher::restart);
    world.run_until(ms(15_000));
    assert_eq!(reasons(&world, watcher), [RejoinReason::NewCatalogue]);
    assert!(shown(&world, watcher, 6_000, 9_000) >= 1);
    assert_eq!(shown(&world, watcher, 9_000, 14_000), 150);
    assert_eq!(
        world
            .publisher(publisher)
            .counters()
            .unwrap()
            .0
            .frames_refused,
        0
    );
}

/// The same without a pause, and with a clock that was set back by an hour meanwhile: version and numbers are lower than
/// before.
#[test]
fn a_publisher_that_counts_from_lower_numbers_is_joined_again() {
    let mut world = LiveWorld::line(ms(25));
    let publisher = world.publish("P", vec![Media::video()]);
    let watcher = world.watch("C", watch());
    let host = world.node("P");
    world
        .network
        .schedule(Instant::ZERO + ms(5_000), move |network| {
            network.set_wall_offset(host, -3_600_000_000);
            network.with_application(publisher, LivePublisher::restart);
        });
    world.run_until(ms(15_000));
    assert_eq!(reasons(&world, watcher), [RejoinReason::NewCatalogue]);
    assert_eq!(shown(&world, watcher, 9_000, 14_000), 150);
}

/// The publisher starts anew with other rungs, other segments, another rate, and audio; then without audio, and with the
/// first rungs again.
#[test]
fn a_catalogue_may_change_under_way() {
    let mut world = LiveWorld::line(ms(25));
    let publisher = world.publish("P", vec![Media::video()]);
    let mut config = watch();
    config.watcher.rung = RungChoice::Highest;
    let watcher = world.watch("C", config);
    let other = Media {
        rate: namecast_stream::SampleRate::new(50, 1),
        key_interval: 25,
        segment_size: 4_000,
        rungs: vec![
            MediaRung::new("500k", Bitrate::kbps(500)),
            MediaRung::new("2M", Bitrate::mbps(2)),
        ],
        ..Media::video()
    };
    let both = vec![other, Media::audio()];
    world.with_publisher(ms(5_000), publisher, move |publisher, now| {
        publisher.restart_with(now, both);
    });
    world.with_publisher(ms(12_000), publisher, |publisher, now| {
        publisher.restart_with(now, vec![Media::video()]);
    });
    world.run_until(ms(20_000));
    let twice = [RejoinReason::NewCatalogue; 2];
    assert_eq!(reasons(&world, watcher), twice);
    assert_eq!(shown(&world, watcher, 8_000, 11_000), 150);
    assert_eq!(shown(&world, watcher, 15_000, 19_000), 120);
    let live = world.watcher(watcher);
    let rung_at = |millis: u64| {
        let at = Instant::ZERO + ms(millis);
        let mut records = live.records().iter();
        let first = records.find(|r| r.stream == StreamKind::Video && r.render_at >= at);
        first.unwrap().rung.clone()
    };
    assert_eq!(
        [rung_at(2_000), rung_at(9_000), rung_at(16_000)],
        ["1M", "2M", "1M"]
    );
    let audio = live
        .records()
        .iter()
        .filter(|r| r.stream == StreamKind::Audio);
    assert!(audio.count() > 50 * 5);
}

/// A host's wall clock jumps by an hour either way while the stream runs. The watcher's does nothing at all; the publisher's
/// costs at most two seconds, after which all frames are in time again and as old as before.
#[test]
fn clocks_may_jump_by_an_hour() {
    for (host, hour) in [("P", 1), ("P", -1), ("C", 1), ("C", -1)] {
        let mut world = LiveWorld::line(ms(25));
        world.publish("P", vec![Media::video()]);
        let watcher = world.watch("C", watch());
        let node = world.node(host);
        world
            .network
            .schedule(Instant::ZERO + ms(5_000), move |network| {
                network.set_wall_offset(node, hour * 3_600_000_000);
            });
        world.run_until(ms(15_000));
        let affected = shown(&world, watcher, 4_000, 8_000);
        let least = if host == "C" { 120 } else { 60 };
        assert!(affected >= least, "{host} {hour}: {affected}");
        assert_eq!(shown(&world, watcher, 8_000, 14_000), 180, "{host} {hour}");
        let live = world.watcher(watcher);
        let last = live.records().iter().rfind(|r| r.is_rendered()).unwrap();
        // Shown 100 ms after it could be here: complete that long before, less what a key frame takes.
        let early = last.render_at.since(last.complete_at);
        assert!(
            (ms(95)..=ms(101)).contains(&early),
            "{host} {hour}: {early:?}"
        );
    }
}

/// A publisher of a shared stream is away for three seconds: its numbers go on where the others' would be, 90 further, with
/// no new catalogue. The watcher goes on with the next key frame.
#[test]
fn numbers_may_be_missing() {
    let mut world = LiveWorld::line(ms(25));
    let config = LivePublisherConfig {
        shared_since: Some(HostClock::default().read(Instant::ZERO).wall),
        ..LivePublisherConfig::new(root(), vec![Media::video()])
    };
    let publisher = world.publish_as("P", config);
    let watcher = world.watch("C", watch());
    world.with_publisher(ms(5_000), publisher, |publisher, _| publisher.die());
    world.with_publisher(ms(8_100), publisher, LivePublisher::restart);
    world.run_until(ms(15_000));
    // From the key frame at 9 s on, all of them.
    let rendered = world.rendered(watcher, StreamKind::Video, ms(9_000)..ms(14_000));
    let expected: Vec<u64> = (270..420).collect();
    let missing = expected.iter().filter(|p| !rendered.contains(p)).count();
    assert!(missing <= 30, "{missing} of {expected:?}");
    assert_eq!(rendered.last(), Some(&419));
}

/// Nothing that a watcher holds grows while it waits for a publisher that is gone, and it asks little.
#[test]
fn waiting_costs_little() {
    let mut world = LiveWorld::line(ms(25));
    let publisher = world.publish("P", vec![Media::video(), Media::audio()]);
    let config = LiveWatcherConfig {
        max_records: 100,
        ..watch()
    };
    let watcher = world.watch("C", config);
    world.with_publisher(ms(5_000), publisher, |publisher, _| publisher.die());
    world.run_until(ms(10_000));
    let (sizes, traffic) = {
        let live = world.watcher(watcher);
        (live.table_sizes(), *live.traffic())
    };
    world.run_until(ms(10_000) + Duration::from_secs(600));
    let live = world.watcher(watcher);
    let after = live.table_sizes();
    assert!(
        after.consumers.samples <= sizes.consumers.samples.max(20),
        "{after:?}"
    );
    let per_second = (live.traffic().interests - traffic.interests) / 600;
    assert!(per_second <= 100, "{per_second}");
    assert!(live.records().len() <= 100);
}
