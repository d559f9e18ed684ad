//! Streams that come and go while others are watched.

use namecast_apps::live::watcher::{Event, RungChoice, WatcherConfig};
use namecast_stream::StreamKind;

use crate::world::{Show, World, at, ms};

fn config() -> WatcherConfig {
    WatcherConfig {
        rung: RungChoice::Highest,
        target: ms(100),
        ..World::config()
    }
}

/// Sound comes and goes ten times, a second each: whoever watches has each picture once, and sound of each time. 30 pictures a second, from 4 s to
/// 24 s.
#[test]
fn pictures_go_on_while_sound_comes_and_goes() {
    let mut world = World::new(Show::default());
    let both = world.join(config());
    let pictures = world.join(WatcherConfig {
        audio: false,
        ..config()
    });
    world.run_until(at(4_000));
    let count = |world: &World, peer, kind| world.frames(peer, kind).len();
    let before = count(&world, pictures, StreamKind::Video);
    for round in 0..10 {
        let sound = count(&world, both, StreamKind::Audio);
        for (audio, millis) in [(true, 1_000), (false, 2_000)] {
            world.change(Show {
                audio,
                ..Show::default()
            });
            world.run_until(at(4_000 + 2_000 * round + millis));
        }
        // 50 packets a second, from when the new catalogue is noticed.
        let heard = count(&world, both, StreamKind::Audio) - sound;
        assert!(
            (1..=51).contains(&heard),
            "{heard} packets in round {round}"
        );
    }
    for peer in [both, pictures] {
        let frames = world.frames(peer, StreamKind::Video);
        let positions: Vec<u64> = frames.iter().map(|(_, frame)| frame.position).collect();
        let first = positions[0];
        let expected: Vec<u64> = (first..first + positions.len() as u64).collect();
        assert_eq!(positions, expected, "lost, twice or out of order");
        let watched = positions.len() - before;
        assert!((598..=602).contains(&watched), "{watched} pictures in 20 s");
        let resets = &world.peers[peer].resets;
        assert!(resets.iter().all(|(_, kind)| *kind == StreamKind::Audio));
    }
    let mut events = world.peers[pictures].events.iter();
    let rejoined = events.find(|(_, event)| matches!(event, Event::Rejoining(_)));
    assert_eq!(rejoined, None);
}

/// A publisher that starts again has the same streams, and other numbers: everything is pulled anew.
#[test]
fn a_publisher_that_starts_again_ends_all_streams() {
    let mut world = World::new(Show::default());
    let peer = world.join(config());
    world.run_until(at(4_000));
    world.start_publisher(7);
    world.run_until(at(8_000));
    let mut events = world.peers[peer].events.iter();
    assert!(events.any(|(_, event)| matches!(event, Event::Rejoining(_))));
    let frames = world.frames(peer, StreamKind::Video);
    assert!(frames.len() > 180, "{} pictures", frames.len());
}
