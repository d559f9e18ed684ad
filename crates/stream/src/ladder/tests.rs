//! The ladder on a fluid link: frames are work, leads wait for what is left of it.

use namecast_units::{ByteSize, Random};

use super::*;

const RUNGS: [Bitrate; 3] = [
    Bitrate::kbps(200),
    Bitrate::kbps(1_000),
    Bitrate::kbps(3_000),
];
/// Headers and parity.
const SHARE: f64 = 1.25;
const SECOND: Duration = Duration::from_secs(1);
const FRAMES_A_SECOND: u64 = 30;
const SEGMENT: f64 = 1_060.0;

/// A link, a stream of 30 frames a second with a key frame each second, and its watcher.
struct World {
    ladder: Ladder,
    random: Random,
    /// Rate of the link, bit/s.
    rate: f64,
    /// Delay added by the way.
    way: Duration,
    /// Share of segments lost, which make trains look slower.
    loss: f64,
    /// Work that waits, s.
    backlog: f64,
    frame: u64,
    upcoming: Option<usize>,
    /// Rung of every frame, and how long its lead waited.
    shown: Vec<(usize, f64)>,
}

impl World {
    fn new(rate: f64) -> Self {
        let mut ladder = Ladder::new(Instant::ZERO, Config::default(), &RUNGS, 0, SECOND).unwrap();
        ladder.set_target(Duration::from_millis(250));
        Self {
            ladder,
            random: Random::from_seed(7),
            rate,
            way: Duration::ZERO,
            loss: 0.0,
            backlog: 0.0,
            frame: 0,
            upcoming: None,
            shown: Vec::new(),
        }
    }

    fn now(&self) -> Instant {
        Instant::ZERO + Duration::from_nanos(self.frame * 1_000_000_000 / FRAMES_A_SECOND)
    }

    fn step(&mut self) {
        let (now, is_key) = (self.now(), self.frame.is_multiple_of(FRAMES_A_SECOND));
        if let Some(rung) = self.upcoming.filter(|_| is_key) {
            self.upcoming = None;
            self.ladder.on_moved(now, rung);
        }
        let rung = self.ladder.current();
        let delta = RUNGS[rung].as_bps() as f64 * SHARE / 33.0 * if is_key { 4.0 } else { 1.0 };
        let bits = delta * (0.8 + 0.4 * self.random.unit());
        self.shown.push((rung, self.backlog));
        let queueing = self.way + Duration::from_secs_f64(self.backlog);
        self.ladder.on_sign(now, Sign::Lead { queueing });
        let segments = (bits / 8.0 / SEGMENT).ceil() as u32;
        let lost = (0..segments)
            .filter(|_| self.random.chance(self.loss))
            .count() as u32;
        let span = f64::from(segments - 1) * SEGMENT * 8.0 / self.rate;
        let here = segments - lost.min(segments - 1);
        self.ladder.on_sign(
            now,
            Sign::Train(Train {
                segments: here,
                size: ByteSize::bytes((f64::from(here - 1) * SEGMENT) as u64),
                span: Duration::from_secs_f64(span),
            }),
        );
        self.backlog = (self.backlog + bits / self.rate - 1.0 / FRAMES_A_SECOND as f64).max(0.0);
        if let Some(next) = self.ladder.decide(now, SHARE) {
            self.upcoming = Some(next);
        }
        self.frame += 1;
    }

    fn run(&mut self, seconds: u64) {
        (0..seconds * FRAMES_A_SECOND).for_each(|_| self.step());
    }

    /// Changes of rung from the frame at second `from` on: second, and rung.
    fn changes(&self, from: u64) -> Vec<(u64, usize)> {
        let from = (from * FRAMES_A_SECOND) as usize;
        let numbered = self.shown.windows(2).enumerate().skip(from);
        let changed = numbered.filter(|(_, pair)| pair[0].0 != pair[1].0);
        changed
            .map(|(n, pair)| ((n as u64 + 1) / FRAMES_A_SECOND, pair[1].0))
            .collect()
    }
}

/// 3 · 1.25 = 3.75 Mbit/s are 0.9 of 4.17: what is below holds 1 Mbit/s, what is above 3. Key frames alone tell at
/// first, one train each: three are there after two seconds, and the change is made at the next.
#[test]
fn the_highest_rung_that_fits_is_reached_within_ten_seconds_and_held() {
    for (rate, best) in [
        (0.4e6, 0),
        (1.2e6, 0),
        (1.4e6, 1),
        (4.1e6, 1),
        (4.25e6, 2),
        (20e6, 2),
    ] {
        let mut world = World::new(rate);
        world.run(60);
        assert_eq!(world.ladder.current(), best, "{rate}");
        let changes = world.changes(0);
        assert!(changes.len() <= 2, "{rate}: {changes:?}");
        assert!(
            changes.iter().all(|(second, _)| *second <= 5),
            "{rate}: {changes:?}"
        );
    }
}

/// From 8 to 2 Mbit/s in the middle of a group: asked for within two frames of the first that had to wait.
#[test]
fn it_goes_down_as_soon_as_the_link_becomes_narrow() {
    let mut world = World::new(8e6);
    world.run(20);
    assert_eq!(world.ladder.current(), 2);
    (0..7).for_each(|_| world.step());
    world.rate = 2e6;
    let mut frames = 0;
    while world.upcoming.is_none() {
        world.step();
        frames += 1;
    }
    // The first takes 58 ms of 33, so the second waits 25 and the third 50.
    assert!((2..=4).contains(&frames), "{frames}");
    assert_eq!(world.upcoming, Some(1));
    // Once the link is wide again, so is the picture.
    world.run(10);
    world.rate = 8e6;
    world.run(15);
    assert_eq!(world.ladder.current(), 2);
}

/// 20 % of all segments are lost, on a link that is wide enough.
#[test]
fn it_does_not_go_down_for_losses() {
    let mut world = World::new(8e6);
    world.run(10);
    world.loss = 0.2;
    world.run(60);
    assert_eq!((world.changes(10), world.ladder.current()), (vec![], 2));
}

/// The way becomes 120 ms longer, and back.
#[test]
fn it_does_not_go_down_for_a_longer_way() {
    let mut world = World::new(8e6);
    world.run(10);
    for way in [150, 0, 130, 20] {
        world.way = Duration::from_millis(way);
        world.run(8);
        assert_eq!(world.changes(10), vec![], "{way} ms");
    }
}

/// Trains say 8 Mbit/s, but what is left is 2.5 Mbit/s: each trial fails, and they become rare.
#[test]
fn a_rung_that_failed_is_tried_ever_less() {
    let mut world = World::new(8e6);
    let mut trials = Vec::new();
    for second in 0..240 {
        for _ in 0..FRAMES_A_SECOND {
            let now = world.now();
            let was = world.ladder.current();
            world.step();
            // Somebody else's traffic takes its part of the time.
            let others = if world.ladder.current() == 2 {
                0.02
            } else {
                0.0
            };
            world.backlog += others;
            if was < 2 && world.ladder.current() == 2 {
                trials.push(now.as_nanos() / 1_000_000_000);
            }
        }
        assert!(world.backlog < 1.0, "{second}");
    }
    let pauses: Vec<_> = trials.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!((4..=8).contains(&trials.len()), "{trials:?}");
    assert!(
        pauses.is_sorted() && pauses.last() >= Some(&60),
        "{pauses:?}"
    );
}

#[test]
fn one_rung_is_no_ladder() {
    let one = &RUNGS[..1];
    assert!(Ladder::new(Instant::ZERO, Config::default(), one, 0, SECOND).is_none());
    assert!(Ladder::new(Instant::ZERO, Config::default(), &[], 0, SECOND).is_none());
    assert!(Ladder::new(Instant::ZERO, Config::default(), &RUNGS, 3, SECOND).is_none());
}

/// Nothing is asked for twice while a change is under way; one that never comes counts as a failure.
#[test]
fn one_change_at_a_time() {
    let mut world = World::new(8e6);
    (0..120).for_each(|_| {
        if world.upcoming.is_none() {
            world.step();
        }
    });
    let upcoming = world.upcoming.unwrap();
    let now = world.now();
    assert_eq!(world.ladder.decide(now, SHARE), None);
    world.ladder.on_stayed(now, upcoming);
    assert_eq!(
        world.ladder.decide(now, SHARE),
        Some(1),
        "the one below was not tried yet"
    );
}
