//! Rungs tried one beside the other, over the link of \[RTSD\] §5.2.3.

use std::time::Duration;

use crate::live_world::{LiveWorld, link, ms, watch};
use namecast_netem as netem;
use namecast_sim::ApplicationId;
use namecast_sim::live::{LiveWatcherConfig, Media, MediaRung};
use namecast_stream::StreamKind;
use namecast_stream::consumer::synchroniser::State;
use namecast_stream::consumer::{Consumer, Counters, RecoveryProfile};
use namecast_stream::ladder::{LadderConfig, challenge};
use namecast_units::Bitrate;

/// When the watcher joins.
const JOINS: Duration = ms(1_000);
/// Time from one look at it to the next.
const STEP: Duration = ms(10);
/// The share of a link of 4 Mbit/s that packets of 1230 octets would leave to ours: 3 Mbit/s with parity do not fit.
const WITH_LARGE_HEADERS: Bitrate = Bitrate::kbps(3_447);

/// What the watcher did from one look to the next.
#[derive(Clone, Debug, PartialEq)]
struct Look {
    /// State of the rung that is shown, and both rungs' bitrates in kbit/s.
    state: State,
    shown: u64,
    beside: Option<u64>,
}

/// The same for as long as it lasted.
#[derive(Clone, Debug)]
struct Stretch {
    look: Look,
    from: Duration,
    until: Duration,
    /// What both rungs' consumers had counted at the end.
    counted: (Counters, Counters),
    /// 8·χ·pps at the end.
    estimate: Bitrate,
}

struct Scene {
    world: LiveWorld,
    watcher: ApplicationId,
    at: Duration,
    stretches: Vec<Stretch>,
}

fn kbps(consumer: &Consumer) -> u64 {
    consumer.source().bitrate.as_bps() / 1_000
}

impl Scene {
    /// P – R – C: the link between R and C has this rate, and the round trip takes `delay`.
    fn new(
        (rate, schedule): (Bitrate, Vec<netem::Step>),
        delay: Duration,
        repair: RecoveryProfile,
    ) -> Self {
        let bottleneck = netem::Config {
            rate: Some(rate.into()),
            queue: netem::Queue::DropTail { packets: 64 },
            schedule,
            ..link(delay / 2)
        };
        let mut world = LiveWorld::behind(&bottleneck);
        let rung = |(name, kbps)| MediaRung::new(name, Bitrate::kbps(kbps));
        let rungs = [("200k", 200), ("1M", 1_000), ("3M", 3_000)].map(rung);
        world.publish(
            "P",
            vec![Media {
                rungs: rungs.to_vec(),
                ..Media::video()
            }],
        );
        let mut config = LiveWatcherConfig {
            start: JOINS,
            ..watch()
        };
        config.watcher.target = ms(250);
        config.watcher.ladder = LadderConfig::Paper(challenge::Config::default());
        // Challenge is to see the queue of the path, which the watcher's own controller would not let grow.
        config.watcher.control = "window:1000".parse().unwrap();
        config.watcher.consumer.recovery.profile = repair;
        let watcher = world.watch("C", config);
        Self {
            world,
            watcher,
            at: Duration::ZERO,
            stretches: Vec::new(),
        }
    }

    /// Runs on, and writes down what the watcher does.
    fn run_until(&mut self, until: Duration) {
        while self.at < until {
            self.at += STEP;
            self.world.run_until(self.at);
            let Some(live) = self.world.watcher(self.watcher).watcher() else {
                continue;
            };
            let Some(shown) = live.consumer(StreamKind::Video) else {
                continue;
            };
            let beside = live.upcoming(StreamKind::Video);
            let look = Look {
                state: shown.schedule().synchroniser().state(),
                shown: kbps(shown),
                beside: beside.map(kbps),
            };
            let counted = (
                shown.counters(),
                beside.map_or_else(Counters::default, Consumer::counters),
            );
            let watcher = self.world.watcher(self.watcher).shown(0);
            let estimate = watcher.bandwidth(StreamKind::Video);
            let last = self.stretches.last().filter(|last| last.look == look);
            let from = last.map_or(self.at, |last| last.from);
            if last.is_some() {
                self.stretches.pop();
            }
            self.stretches.push(Stretch {
                look,
                from,
                until: self.at,
                counted,
                estimate: estimate.unwrap(),
            });
        }
    }

    fn print(&self) {
        for stretch in &self.stretches {
            let Look {
                state,
                shown,
                beside,
            } = &stretch.look;
            println!(
                "{:?} … {:?}: {state:?} {shown} {beside:?} {}",
                stretch.from, stretch.until, stretch.estimate
            );
        }
    }

    /// Those of one state.
    fn of(&self, state: State) -> impl Iterator<Item = &Stretch> {
        self.stretches
            .iter()
            .filter(move |stretch| stretch.look.state == state)
    }

    /// The stretches in which the second is shown for the first time after the first.
    fn changes(&self) -> Vec<(Duration, u64, u64)> {
        let pairs = self.stretches.windows(2);
        let change = |pair: &[Stretch]| {
            let (before, after) = (&pair[0].look, &pair[1].look);
            (before.shown != after.shown).then_some((pair[1].from, before.shown, after.shown))
        };
        pairs.filter_map(change).collect()
    }

    /// Every frame was delivered once, in order.
    fn assert_seamless(&self) {
        let records = self.world.watcher(self.watcher).records();
        let positions: Vec<u64> = records.iter().map(|record| record.position).collect();
        let steps = positions.windows(2).filter(|pair| pair[1] != pair[0] + 1);
        assert_eq!(steps.count(), 0);
        let late = records.iter().filter(|record| !record.is_rendered());
        assert!(late.count() * 100 <= positions.len());
    }
}

/// 200 and 1000 kbit/s need 240 and 1200 with parity. Two seconds after the lower one's newest samples come both are fetched,
/// and once the estimate is a tenth more than 1200, the higher one alone from its next key sample on. 3000 need 3600, more
/// than the 3250 that there are for payload: it is tried again and again, and left each time.
#[test]
fn both_rungs_are_fetched_until_the_higher_one_fits() {
    let mut scene = Scene::new(
        (WITH_LARGE_HEADERS, Vec::new()),
        ms(100),
        RecoveryProfile::Paper,
    );
    scene.run_until(ms(30_000));
    scene.print();
    let states: Vec<_> = scene.stretches.iter().map(|it| it.look.clone()).collect();
    let look = |state, shown, beside| Look {
        state,
        shown,
        beside,
    };
    assert_eq!(
        states[..7],
        [
            look(State::Chasing, 200, None),
            look(State::Fetching, 200, None),
            look(State::Challenge, 200, Some(1_000)),
            look(State::Fetching, 200, Some(1_000)),
            look(State::Fetching, 1_000, None),
            look(State::Challenge, 1_000, Some(3_000)),
            look(State::Fetching, 1_000, None),
        ]
    );
    let [_, fetching, challenge, moving, moved, ..] = &scene.stretches[..] else {
        unreachable!("there are seven");
    };
    let waited = challenge.from.saturating_sub(fetching.from);
    assert!(waited >= ms(2_000) && waited <= ms(2_100), "{waited:?}");
    assert_eq!(scene.changes(), [(moved.from, 200, 1_000)]);
    assert!(moved.from <= JOINS + ms(10_000));
    // The higher rung's next key sample is at most a second and its Interests' time away.
    assert!(moved.from.saturating_sub(moving.from) <= ms(1_500));
    let enough = Bitrate::kbps(1_320);
    assert!(challenge.estimate <= enough && moving.estimate > enough);

    // Of the current rung nothing is left out meanwhile, and of the other whole samples come as well.
    let frames = challenge.counted.0.complete - fetching.counted.0.complete;
    let expected = (challenge.until.saturating_sub(fetching.until)).as_secs_f64() * 30.0;
    assert!((frames as f64 - expected).abs() <= 2.0, "{frames}");
    assert!(challenge.counted.1.complete >= 5);
    assert!(challenge.counted.1.interests_sent >= 50);

    let trials: Vec<_> = scene.of(State::Challenge).skip(1).collect();
    assert!(trials.len() >= 4);
    for pair in trials.windows(2) {
        let apart = pair[1].from.saturating_sub(pair[0].until);
        assert!(apart >= ms(2_000) && apart <= ms(2_100), "{apart:?}");
    }
    scene.assert_seamless();

    // A fifth of parity is a sixth of what comes, less where a frame has few segments and rounding up adds to it.
    let last = scene.stretches.last().unwrap().counted.0;
    let parity = last.parity_bytes as f64 / last.wire_bytes as f64;
    assert!((0.15..=0.25).contains(&parity), "{parity}");
}

/// From 9.4 s on there are 600 kbit/s. ARC's pps has to fall from some 340 to 146, by half its root at a time: 25 steps, at most
/// one a frame, and frames come half as fast as they should, which takes 1.7 s and what the first of them waited. The queue of
/// 64 packets takes 0.9 s, which metadata and then the lower rung's first key sample have to pass. Repaired as the paper does it, frames
/// come so irregularly meanwhile that a trial is begun, and it takes 0.3 s more.
#[test]
fn it_goes_down_at_once_when_the_estimate_is_too_low() {
    let narrow = netem::Step {
        at: ms(9_400),
        rate: Some(Bitrate::kbps(600)),
        delay: None,
    };
    let mut scene = Scene::new(
        (WITH_LARGE_HEADERS, vec![narrow]),
        ms(100),
        RecoveryProfile::Timers,
    );
    scene.run_until(ms(20_000));
    scene.print();
    let mut later = scene.stretches.iter().filter(|it| it.from >= narrow.at);
    let down = later.find(|it| it.look.beside == Some(200)).unwrap();
    assert!(down.from <= ms(9_400 + 2_500), "{:?}", down.from);
    let changes = scene.changes();
    assert_eq!(changes.len(), 2, "{changes:?}");
    let (at, before, after) = changes[1];
    assert_eq!((before, after), (1_000, 200));
    assert!(at <= ms(9_400 + 4_500), "{at:?}");
}
