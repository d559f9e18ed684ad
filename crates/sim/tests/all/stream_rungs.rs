//! Rungs that are chosen by themselves, over a link that the highest one just fits on (\[RTSD\] §5.2.3).

use core::convert::Infallible;
use std::time::Duration;

use crate::live_world::{LiveWorld, link, ms, watch};
use bytes::Bytes;
use namecast_netem as netem;
use namecast_sim::live::{FrameRecord, LiveWatcher, LiveWatcherConfig, Media, MediaRung};
use namecast_sim::{Application, ApplicationId, Now, Output};
use namecast_units::{Bitrate, Instant};

/// The video of Table 2, with the same frames in three bitrates.
fn media() -> Media {
    let rung = |(name, kbps)| MediaRung::new(name, Bitrate::kbps(kbps));
    Media {
        rungs: [("200k", 200), ("1M", 1_000), ("3M", 3_000)]
            .map(rung)
            .to_vec(),
        ..Media::video()
    }
}

/// One watcher behind a bottleneck.
struct Scene {
    world: LiveWorld,
    watcher: ApplicationId,
}

/// When its watcher joins.
const JOINS: Duration = ms(1_000);

impl Scene {
    /// P – R – C: the link between R and C has this rate, and the round trip takes `delay`.
    fn new(rate: Bitrate, delay: Duration, schedule: Vec<netem::Step>) -> Self {
        let bottleneck = netem::Config {
            rate: Some(rate.into()),
            schedule,
            ..link(delay / 2)
        };
        let mut world = LiveWorld::behind(&bottleneck);
        world.publish("P", vec![media()]);
        let mut config = LiveWatcherConfig {
            start: JOINS,
            ..watch()
        };
        config.watcher.target = ms(250);
        let watcher = world.watch("C", config);
        Self { world, watcher }
    }

    fn records(&self) -> impl DoubleEndedIterator<Item = &FrameRecord> {
        self.world.watcher(self.watcher).records().iter()
    }

    /// From joining to the first frame shown of a rung.
    fn reached(&self, rung: &str) -> Option<Duration> {
        let first = self
            .records()
            .find(|record| record.is_rendered() && record.rung == rung)?;
        Some(first.render_at.since(namecast_units::Instant::ZERO + JOINS))
    }

    /// Share of frames captured in these seconds that were shown, of that rung.
    fn share(&self, rung: &str, seconds: std::ops::Range<u64>) -> f64 {
        let positions = seconds.start * 30..seconds.end * 30;
        let count = positions.end - positions.start;
        let shown = self.records().filter(|record| {
            record.is_rendered() && record.rung == rung && positions.contains(&record.position)
        });
        shown.count() as f64 / count as f64
    }

    /// Frames, and time in them, that the bottleneck has delivered to the watcher so far.
    fn queued(&self) -> (u64, u64) {
        let counters = self.world.network.direction(1, false).counters();
        (counters.delivered, counters.queued_nanos)
    }

    /// Mean wait at the bottleneck since `before`, in milliseconds.
    fn queueing(&self, before: (u64, u64)) -> f64 {
        let (frames, nanos) = self.queued();
        (nanos - before.1) as f64 / (frames - before.0) as f64 / 1e6
    }

    /// Interests that were sent more than once.
    fn asked_again(&self) -> u64 {
        let now = namecast_units::Instant::ZERO + ms(60_000);
        let stats = self.world.watcher(self.watcher).stats(now);
        stats.unwrap().interests_retransmitted
    }

    /// The rungs shown, in order, each with its first position.
    fn changes(&self) -> Vec<(u64, String)> {
        let mut changes: Vec<(u64, String)> = Vec::new();
        for record in self.records() {
            if changes.last().is_none_or(|(_, rung)| *rung != record.rung) {
                changes.push((record.position, record.rung.clone()));
            }
        }
        changes
    }
}

/// The highest rung that fits is reached within ten seconds and held, with hardly a queue; each frame is delivered once,
/// whatever rung it is of.
fn reaches_and_holds(rate: Bitrate, rung: &str) {
    for delay in [0, 50, 150] {
        let mut scene = Scene::new(rate, ms(delay), Vec::new());
        scene.world.run_until(ms(12_000));
        let before = scene.queued();
        scene.world.run_until(ms(42_000));
        let (reached, changes) = (scene.reached(rung), scene.changes());
        let (share, queueing) = (scene.share(rung, 12..41), scene.queueing(before));
        println!(
            "{delay} ms: reached after {reached:?}, on time {share:.4}, queueing {queueing:.2} ms, {changes:?}"
        );
        assert!(reached.is_some_and(|after| after <= ms(10_000)), "{delay}");
        assert!(share >= 0.99, "{delay} ms: {share}");
        assert!(queueing <= 25.0, "{delay} ms: {queueing}");
        // Nothing is lost, so hardly anything may be taken for lost, not even the six segments of one sample: what is asked for
        // in vain from then on would fill the link.
        assert!(scene.asked_again() < 6, "{delay} ms");
        let positions: Vec<u64> = scene.records().map(|record| record.position).collect();
        let steps = positions.windows(2).filter(|pair| pair[1] != pair[0] + 1);
        assert_eq!(steps.count(), 0, "{delay} ms: {changes:?}");
    }
}

/// 3 Mbit/s take 3.2 with headers: four fifths of the link.
#[test]
fn the_highest_rung_that_fits_is_reached_and_held() {
    reaches_and_holds(Bitrate::mbps(4), "3M");
}

/// As if packets of 1060 octets had 1230, which is one reading of the paper's figures: 3 Mbit/s take 0.93 of the link. Either
/// rung is as good, as long as all is in time and nothing lower is shown once one of them is.
#[test]
fn a_rung_that_just_fits_is_held_or_left_alone() {
    for delay in [0, 50, 150] {
        let mut scene = Scene::new(Bitrate::kbps(3_447), ms(delay), Vec::new());
        scene.world.run_until(ms(42_000));
        let share = scene.share("1M", 12..41) + scene.share("3M", 12..41);
        println!("{delay} ms: {share:.4}, {:?}", scene.changes());
        assert!(share >= 0.99, "{delay} ms: {share}");
        assert!(scene.asked_again() < 6, "{delay} ms");
    }
}

/// 3 Mbit/s take 0.97 of the link.
#[test]
fn a_rung_that_does_not_fit_is_left_alone() {
    reaches_and_holds(Bitrate::kbps(3_300), "1M");
}

/// Half the link is left from 20.4 s on, in the middle of a group: another rung is shown within one key period of it.
#[test]
fn it_goes_down_within_a_key_period() {
    let half = netem::Step {
        at: ms(20_400),
        rate: Some(Bitrate::mbps(2)),
        delay: None,
    };
    let mut scene = Scene::new(Bitrate::mbps(4), ms(50), vec![half]);
    scene.world.run_until(ms(60_000));
    let changes = scene.changes();
    let (position, rung) = changes.iter().find(|(at, _)| *at > 612).unwrap();
    println!("{changes:?}, held {:.4}", scene.share("1M", 30..59));
    assert!(*position <= 612 + 30 && rung == "1M", "{changes:?}");
    let share = scene.share("1M", 30..59);
    assert!(share >= 0.99, "{share}: {changes:?}");
}

/// What is lost, and a way that becomes longer at once, are no reason to change the rung.
#[test]
fn a_longer_path_changes_nothing() {
    let longer = netem::Step {
        at: ms(20_400),
        rate: None,
        delay: Some(ms(75)),
    };
    let mut scene = Scene::new(Bitrate::mbps(8), ms(50), vec![longer]);
    scene.world.run_until(ms(50_000));
    let changes = scene.changes();
    println!("{changes:?}");
    assert!(changes.iter().all(|(at, _)| *at < 300), "{changes:?}");
    assert_eq!(changes.last().map(|(_, rung)| &**rung), Some("3M"));
}

/// A watcher on a busy machine, whose timers come late: at the next multiple of this.
struct Late(LiveWatcher, Duration);

impl Application for Late {
    type Event = Infallible;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        self.0.handle_frame(now, frame);
    }

    fn handle_timeout(&mut self, now: Now) {
        self.0.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let grid = self.1.as_nanos() as u64;
        let due = self.0.poll_timeout()?.since(Instant::ZERO).as_nanos() as u64;
        Some(Instant::ZERO + Duration::from_nanos(due.div_ceil(grid) * grid))
    }

    fn poll_output(&mut self) -> Option<Output<Self::Event>> {
        self.0.poll_output()
    }
}

/// Rungs change on a link with room for all: no frame is missing where they do, however late timers are.
#[test]
fn late_timers_lose_no_frame_where_rungs_change() {
    for grid in [20, 35, 50, 70, 90, 110] {
        let mut world = LiveWorld::behind(&link(ms(5)));
        world.publish("P", vec![media()]);
        let mut config = LiveWatcherConfig {
            start: JOINS,
            ..watch()
        };
        config.watcher.adaptive_target = None;
        config.signing = world.signing;
        let node = world.node("C");
        let late = Late(LiveWatcher::new(config), ms(grid));
        let watcher = world.network.add_application(node, late);
        world.run_until(ms(20_000));
        let late: &Late = world.network.application(watcher).unwrap();
        let frames: Vec<_> = late.0.records().iter().collect();
        let rungs = frames.windows(2).filter(|it| it[0].rung != it[1].rung);
        assert!(rungs.count() > 0, "{grid} ms: no change");
        let positions = frames.iter().map(|it| it.position);
        let mut missing = Vec::new();
        positions.reduce(|last, next| {
            missing.extend(last + 1..next);
            next.max(last)
        });
        assert!(missing.is_empty(), "{grid} ms: without {missing:?}");
    }
}
