//! How consumers find the live edge and stay there, over the set-up of \[RTSD\] §5.2: RTT 100 ms, 30 frames a second.

use std::time::Duration;

use crate::live_world::{LiveWorld, ms, watch};
use namecast_apps::live::WatcherConfig;
use namecast_sim::ApplicationId;
use namecast_sim::live::{LiveWatcherConfig, Media};
use namecast_stream::consumer::synchroniser::{State, SynchroniserConfig, SynchroniserProfile};
use namecast_stream::{SampleClass, StreamKind};
use namecast_units::Instant;

const START: Duration = ms(10_000);

/// P – R – C, RTT 100 ms; the watcher joins after 10 s and some part of a second.
fn joined(
    config: SynchroniserConfig,
    after: Duration,
    run: Duration,
) -> (LiveWorld, ApplicationId) {
    let mut world = LiveWorld::line(ms(25));
    world.publish("P", vec![Media::video()]);
    let mut watcher = WatcherConfig {
        target: ms(200),
        ..watch().watcher
    };
    watcher.consumer.synchroniser = config;
    let start = START + after;
    let id = world.watch(
        "C",
        LiveWatcherConfig {
            watcher,
            start,
            ..watch()
        },
    );
    world.run_until(start + run);
    (world, id)
}

/// DRD′ of delta samples that came in the last `span`, in milliseconds: mean and greatest.
fn drd(world: &LiveWorld, id: ApplicationId, span: Duration) -> (f64, f64) {
    let now = world.now();
    let recent = world.watcher(id).observations().iter().rev();
    let recent = recent.take_while(|seen| now.since(seen.at) <= span);
    let values: Vec<_> = recent
        .filter(|seen| seen.class == SampleClass::Delta)
        .map(|seen| seen.drd.as_secs_f64() * 1e3)
        .collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (mean, values.iter().fold(0.0, |most: f64, v| most.max(*v)))
}

/// Ours joins within two round trips, a frame and 50 ms wherever in the group of frames it begins and whatever λ₀ is. From
/// then on Interests leave just in time: DRD′ stays within RTT + 10 ms, and nothing is late.
#[test]
fn a_join_takes_two_round_trips_and_interests_leave_just_in_time() {
    // What is out before anything has come is bounded, so that an old group takes another round trip to catch up with.
    let starts = [
        (None, 0, 284),
        (Some(30), 130, 284),
        (Some(2), 450, 384),
        (Some(4), 970, 384),
    ];
    for (lead, after, live_within) in starts {
        let config = SynchroniserConfig {
            initial_lead: lead,
            ..SynchroniserConfig::default()
        };
        let (world, id) = joined(config, ms(after), ms(15_000));
        let live = world.watcher(id);
        let stats = live.stats(world.now()).unwrap();
        let join = stats.join_ms.unwrap();
        assert!((200.0..=283.4).contains(&join), "{lead:?} {after}: {join}");
        // All that was published since the key frame came with it, so that what is shown is live.
        let mut records = live.records().iter();
        let first = records.find(|record| !record.catching_up).unwrap();
        let first = first.complete_at.since(Instant::ZERO + START + ms(after));
        assert!((ms(200)..=ms(live_within)).contains(&first), "{first:?}");
        let (mean, most) = drd(&world, id, ms(10_000));
        assert!((100.0..=110.0).contains(&mean), "{lead:?} {after}: {mean}");
        assert!(most <= 110.0, "{lead:?} {after}: {most}");
        let video = stats.video.unwrap();
        assert_eq!((video.late, video.lost, video.skips), (0, 0, 0));
    }
}

/// λ₀ of Table 1 of \[RTSD\], and what it prints: DRD′ and time of chasing in milliseconds, final λ.
const TABLE_1: [(u64, f64, u64, u64); 6] = [
    (30, 110.0, 700, 4),
    (15, 110.0, 700, 4),
    (5, 140.0, 1_100, 5),
    (4, 110.0, 2_000, 4),
    (3, 110.0, 2_500, 4),
    (2, 110.0, 3_800, 4),
];

/// λ_d: a round trip of 103 ms in frames.
const DEMAND: u64 = 4;
/// Instants within the second between key frames at which a consumer joins.
const JOINS: u64 = 5;

/// With a first sample that is 0.3 s old, λ and DRD′ of Table 1 come out at any instant of joining. The time of chasing does, within a
/// factor of two, for λ₀ above the demand; from the demand itself or below it is one of two, by chance, and
/// `namecast experiment run rtsd/table1` tells how often.
#[test]
fn table_1_of_rtsd() {
    for (lead, drd_printed, chasing, last) in TABLE_1 {
        let comes_out = |join: u64| {
            let config = SynchroniserConfig {
                profile: SynchroniserProfile::Paper,
                initial_lead: Some(lead),
                staleness: ms(300),
                ..SynchroniserConfig::default()
            };
            let (world, id) = joined(config, ms(join * 1_000 / JOINS + 30), ms(20_000));
            let watcher = world.watcher(id).watcher().unwrap();
            let consumer = watcher.consumer(StreamKind::Video).unwrap();
            let synchroniser = consumer.schedule().synchroniser();
            assert_eq!(synchroniser.state(), State::Fetching, "{lead} {join}");
            let (mean, _) = drd(&world, id, ms(3_000));
            let spent = synchroniser.bootstrap().chasing;
            [
                synchroniser.lead() == Some(last),
                (mean - drd_printed).abs() <= 10.0,
                (ms(chasing) / 2..=ms(chasing) * 2).contains(&spent),
            ]
        };
        let all: Vec<_> = (0..JOINS).map(comes_out).collect();
        let counts = [0, 1, 2].map(|index| all.iter().filter(|found| found[index]).count());
        let chased = if lead > DEMAND { all.len() } else { 1 };
        assert_eq!(counts[..2], [all.len(); 2], "{lead}: λ, DRD′");
        assert!(counts[2] >= chased, "{lead}: chasing {}", counts[2]);
    }
}
