//! Streams that nobody watches cost nothing, and come back at once.

use namecast_apps::live::watcher::{RungChoice, WatcherConfig};
use namecast_stream::StreamKind;

use crate::world::{Show, World, at, ms};

fn joined() -> (World, usize) {
    let mut world = World::new(Show {
        audio: true,
        ..Show::default()
    });
    let peer = world.join(WatcherConfig {
        rung: RungChoice::Highest,
        target: ms(100),
        ..World::config()
    });
    world.run_until(at(4_000));
    (world, peer)
}

fn set_wanted(world: &mut World, peer: usize, video: bool, audio: bool) {
    let now = world.now;
    world.peers[peer].watcher.set_wanted(now, video, audio);
}

fn counts(world: &World, peer: usize) -> [usize; 2] {
    [StreamKind::Video, StreamKind::Audio].map(|kind| world.frames(peer, kind).len())
}

/// Probes alone are left: one every 2 s, a proof every 10 s.
#[test]
fn a_watcher_that_wants_nothing_sends_hardly_an_interest() {
    let (mut world, peer) = joined();
    set_wanted(&mut world, peer, false, false);
    world.run_until(at(4_500));
    let before = counts(&world, peer);
    let sent = world.peers[peer].watcher.stats(world.now).interests_sent;
    world.run_until(at(24_500));
    assert_eq!(counts(&world, peer), before);
    let sent = world.peers[peer].watcher.stats(world.now).interests_sent - sent;
    assert!((5..=20).contains(&sent), "{sent} Interests in 20 s");
}

/// RTT 50 ms: metadata, key sample, 100 ms of target.
#[test]
fn video_that_is_wanted_again_is_back_within_half_a_second() {
    let (mut world, peer) = joined();
    set_wanted(&mut world, peer, false, true);
    world.run_until(at(9_000));
    let [video, audio] = counts(&world, peer);
    set_wanted(&mut world, peer, true, true);
    world.run_until(at(12_000));
    let frames = world.frames(peer, StreamKind::Video);
    let (back_at, first) = &frames[video];
    assert!(first.key, "it starts at a key frame");
    assert!(*back_at <= at(9_500), "{back_at:?}");
    let positions: Vec<_> = frames.iter().map(|(_, frame)| frame.position).collect();
    assert!(positions.is_sorted_by(|one, next| one < next));
    assert!(frames.len() > video + 75, "{} frames", frames.len() - video);
    // 50 packets a second, all the while.
    let heard = world.frames(peer, StreamKind::Audio).len() - audio;
    assert!((145..=155).contains(&heard), "{heard} packets in 3 s");
}

/// The packets that are requested already come all the same.
#[test]
fn sound_that_is_not_wanted_is_not_requested() {
    let (mut world, peer) = joined();
    set_wanted(&mut world, peer, true, false);
    world.run_until(at(4_500));
    let [video, audio] = counts(&world, peer);
    world.run_until(at(8_500));
    let [more_video, same_audio] = counts(&world, peer);
    assert_eq!(same_audio, audio);
    assert!((115..=125).contains(&(more_video - video)));
    set_wanted(&mut world, peer, true, true);
    world.run_until(at(10_500));
    let heard = world.frames(peer, StreamKind::Audio).len() - audio;
    assert!(heard > 75, "{heard} packets in 2 s");
}
