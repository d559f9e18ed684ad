//! Random links, faults and calls from a seed; a failure names it.

use namecast_apps::live::watcher::{RungChoice, WatcherConfig};
use namecast_stream::StreamKind;
use namecast_units::{Instant, Random};

use crate::world::{Show, World, at, ms};

/// Something goes wrong, or somebody does something.
fn disturb(world: &mut World, random: &mut Random) {
    let (now, watcher) = (world.now, 0);
    let watcher = &mut world.peers[watcher].watcher;
    match random.below(12) {
        0 => world.cut = !world.cut,
        1 => world.silent = !world.silent,
        2 => world.loss = random.unit() * 0.2,
        3 => world.jitter = ms(random.below(60)),
        4 => world.delay = ms(random.below(150)),
        5 => watcher.set_target(now, ms(random.below(800))),
        6 => watcher.set_rung(now, RungChoice::Lowest),
        7 => watcher.set_rung(now, RungChoice::Highest),
        8 => watcher.handle_decoder_error(now, StreamKind::Video),
        9 => watcher.handle_link_change(now),
        10 => world.peers[0].asleep = !world.peers[0].asleep,
        _ => match world.publisher.take() {
            Some(_) => {}
            None => world.start_publisher(7),
        },
    }
}

/// After all faults have gone, playback is live within three seconds; until then, whatever is delivered decodes.
fn survive(seed: u64) {
    let mut random = Random::from_seed(seed);
    let mut world = World::new(Show {
        fps: 15,
        key_interval: 8,
        rungs: vec![("200k", 2_400, 780), ("400k", 4_800, 1_560)],
        audio: true,
        ..Show::default()
    });
    world.join(WatcherConfig {
        seed,
        ..World::config()
    });
    while world.now < at(12_000) {
        let pause = ms(random.below(500));
        world.run_until(world.now + pause);
        disturb(&mut world, &mut random);
        // Early and repeated calls are harmless.
        let now = world.now;
        world.peers[0].watcher.handle_timeout(now);
    }
    (world.cut, world.silent, world.loss) = (false, false, 0.0);
    (world.jitter, world.delay) = (ms(5), ms(20));
    world.peers[0].asleep = false;
    let now = world.now;
    world.peers[0].watcher.set_target(now, ms(100));
    if world.publisher.is_none() {
        world.start_publisher(7);
    }
    world.run_until(at(17_000));
    check(&world, seed);
}

fn check(world: &World, seed: u64) {
    let is_live = |t: &Instant, render_at: Instant| *t > at(15_500) && *t <= render_at;
    for (stream, least) in [(StreamKind::Video, 20), (StreamKind::Audio, 70)] {
        let frames = world.frames(0, stream);
        let live = frames.iter().filter(|(t, f)| is_live(t, f.render_at));
        let live = live.count();
        assert!(live >= least, "seed {seed}: {live} of {stream:?}");
    }
    let frames = world.frames(0, StreamKind::Video);
    let resets = &world.peers[0].resets;
    for pair in frames.windows(2) {
        let (before, after) = (&pair[0], &pair[1]);
        let follows = after.1.position == before.1.position + 1 && after.1.rung == before.1.rung;
        let reset = resets
            .iter()
            .any(|(t, stream)| *stream == StreamKind::Video && (before.0..=after.0).contains(t));
        let switched = after.1.rung != before.1.rung;
        assert!(
            follows || after.1.key && (reset || switched),
            "seed {seed}: {} after {} at {}",
            after.1.position,
            before.1.position,
            after.0
        );
    }
    let sizes = world.peers[0].watcher.table_sizes();
    assert!(sizes.consumers.samples < 60, "seed {seed}: {sizes:?}");
    let stats = world.peers[0].watcher.stats(world.now);
    assert_eq!(stats.verification_failures, 0, "seed {seed}");
}

#[test]
fn playback_survives_what_comes() {
    (0..6).for_each(survive);
}

/// More of the same, for a long night: `SEEDS=1000 cargo test --release -- --ignored`.
#[test]
#[ignore = "takes long; run it with the number of seeds in SEEDS"]
fn playback_survives_many_seeds() {
    let seeds = std::env::var("SEEDS").map_or(200, |seeds| seeds.parse().unwrap());
    (0..seeds).for_each(survive);
}
