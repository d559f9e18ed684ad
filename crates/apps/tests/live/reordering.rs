//! Pictures that are decoded in another order than they are shown in.

use std::collections::BTreeSet;

use namecast_apps::live::watcher::{Event, Frame, RungChoice, Seek, WatcherConfig};
use namecast_stream::StreamKind;
use namecast_units::{Bitrate, Instant};

use crate::world::{ENCODE, Pyramid, Show, WALL, World, at, ms};

/// 25 pictures a second at two rungs; the higher one, `copy`, has B-frames. 24 pictures a group if groups are open.
fn show(pyramid: Pyramid) -> Show {
    Show {
        fps: 25,
        key_interval: match pyramid {
            Pyramid::Closed => 25,
            Pyramid::Open => 24,
        },
        rungs: vec![("300k", 5_000, 1_200), ("copy", 12_000, 3_900)],
        pyramid: Some(pyramid),
        ..Show::default()
    }
}

fn watch(pyramid: Pyramid, rung: RungChoice) -> (World, usize) {
    let mut world = World::new(show(pyramid));
    world.run_until(at(2_300));
    let peer = world.join(WatcherConfig {
        rung,
        target: ms(150),
        ..World::config()
    });
    (world, peer)
}

/// The number of a picture in the order of presentation: the first is shown two periods after it is decoded.
fn picture(frame: &Frame) -> u64 {
    let since = frame.presented_at().micros_since(WALL) + ENCODE.as_micros() as i64;
    let number = since / 40_000;
    assert_eq!(since % 40_000, 0, "not a picture's time");
    number as u64 - Pyramid::DEPTH
}

/// The pictures that are shown, in the order of their times, but for the last ones, which may be on their way.
fn shown(world: &World, peer: usize) -> Vec<(Instant, u64, String)> {
    let frames = world.frames(peer, StreamKind::Video);
    let frames = frames.iter().filter(|(_, frame)| !frame.decode_only);
    let mut shown: Vec<_> = frames
        .map(|(_, frame)| (frame.render_at, picture(frame), frame.rung.clone()))
        .collect();
    shown.sort();
    shown.truncate(shown.len().saturating_sub(4));
    shown
}

/// Each picture from the first to the last is shown once, in order, at even times; only `missing` ones are not there.
fn assert_continuous(shown: &[(Instant, u64, String)], missing: &BTreeSet<u64>) {
    for pair in shown.windows(2) {
        let [(at, before, _), (next_at, next, rung)] = pair else {
            unreachable!("windows of two");
        };
        let expected = (before + 1..).find(|it| !missing.contains(it)).unwrap();
        assert_eq!(*next, expected, "after {before}, at {rung}");
        let apart = next_at.since(*at).abs_diff(ms(40) * (next - before) as u32);
        assert!(apart <= ms(8), "{before} and {next} are {apart:?} off");
    }
}

/// Joined at the key frame of a closed group, all pictures come, in decoding order and by their decoding time, and are shown in
/// order, each 150 ms and two pictures after it could be here.
#[test]
fn a_rung_with_b_frames_is_delivered_whole() {
    let (mut world, peer) = watch(Pyramid::Closed, RungChoice::Highest);
    world.run_until(at(6_000));
    let frames = world.frames(peer, StreamKind::Video);
    World::assert_decodable(&frames);
    assert!(frames.len() > 90, "{}", frames.len());
    for pair in frames.windows(2) {
        assert_eq!(pair[1].1.position, pair[0].1.position + 1);
    }
    // Frames that catch up are late.
    let live = frames.iter().filter(|(_, frame)| frame.position > 75);
    for (delivered, frame) in live {
        let decoded_at = frame.render_at.saturating_sub(frame.composition_offset);
        assert!(*delivered <= decoded_at, "{} is late", frame.position);
    }
    let shown = shown(&world, peer);
    assert_continuous(&shown, &BTreeSet::new());
    let (at_time, number, _) = shown.last().unwrap();
    // Published when it is decoded, or later, 25 ms of way, 150 ms of target.
    let earliest = Instant::ZERO + ms(40) * (*number + Pyramid::DEPTH) as u32 + ms(25 + 150);
    assert!(at_time.since(earliest) <= ms(8), "{at_time} {earliest}");
    // From capture: encoding, way, target, and the five pictures from the capture of P₄ to its showing.
    let now = world.now;
    let stats = world.peers[peer].watcher.stats(now);
    let expected = (ENCODE + ms(25 + 150 + 200)).as_secs_f64() * 1e3;
    assert!(
        (stats.latency.p50_ms - expected).abs() < 8.0,
        "{}",
        stats.latency.p50_ms
    );
    assert!((stats.reorder_ms - 200.0).abs() < 1e-9);
    assert!((stats.target_ms - 350.0).abs() < 1e-9);
}

/// The leading pictures of the group that is joined need the group before it: they are left out. Those of later groups are shown.
#[test]
fn an_open_group_is_joined_without_its_leading_pictures() {
    let (mut world, peer) = watch(Pyramid::Open, RungChoice::Highest);
    world.run_until(at(6_000));
    let frames = world.frames(peer, StreamKind::Video);
    let (_, first) = frames[0];
    assert!(first.key && picture(first) == 48, "{}", picture(first));
    assert_eq!(
        frames[1].1.position,
        first.position + 4,
        "three leading ones"
    );
    let shown = shown(&world, peer);
    assert!(shown.len() > 90, "{}", shown.len());
    assert_continuous(&shown, &BTreeSet::new());
}

/// Changes from one rung to the other and back, `phase` frames after each third second. Returns the pictures shown.
fn change_rungs(pyramid: Pyramid, phase: u64) -> (Vec<(Instant, u64, String)>, usize) {
    let (mut world, peer) = watch(pyramid, RungChoice::Highest);
    let changes = [
        (4, RungChoice::Lowest),
        (7, RungChoice::Highest),
        (10, RungChoice::Lowest),
    ];
    for (seconds, rung) in changes {
        world.run_until(at(seconds * 1_000 + phase * 40));
        let now = world.now;
        world.peers[peer].watcher.set_rung(now, rung);
    }
    world.run_until(at(13_000));
    let shown = shown(&world, peer);
    let changes = shown.windows(2).filter(|pair| pair[0].2 != pair[1].2);
    (shown.clone(), changes.count())
}

#[test]
fn rungs_change_over_at_closed_groups_without_losing_a_picture() {
    for phase in 0..25 {
        let (shown, changes) = change_rungs(Pyramid::Closed, phase);
        assert_eq!(changes, 3, "{phase}");
        assert_continuous(&shown, &BTreeSet::new());
    }
}

/// Only the three leading pictures of the group may be missing where the change is.
#[test]
fn rungs_change_over_at_open_groups_in_order() {
    for phase in 0..24 {
        let (shown, changes) = change_rungs(Pyramid::Open, phase);
        assert_eq!(changes, 3, "{phase}");
        let keys = shown.iter().filter(|(_, number, _)| number % 24 == 0);
        let leading = keys.flat_map(|(_, key, _)| key.saturating_sub(3)..*key);
        let leading: BTreeSet<_> = leading.collect();
        let there: BTreeSet<_> = shown.iter().map(|(_, number, _)| *number).collect();
        let missing: BTreeSet<_> = leading.difference(&there).copied().collect();
        assert!(missing.len() <= 9, "{missing:?}");
        assert_continuous(&shown, &missing);
    }
}

/// A slow link makes a watcher that chooses by itself change down in mid-group and up again: still nothing is out of order, and
/// playback does not stand for longer than without B-frames.
#[test]
fn a_link_that_becomes_slow_is_followed() {
    let (mut world, peer) = watch(Pyramid::Closed, RungChoice::Auto);
    world.run_until(at(8_000));
    world.rate = Some(Bitrate::kbps(600));
    world.run_until(at(16_000));
    world.rate = None;
    world.run_until(at(30_000));
    let mut frames = world.frames(peer, StreamKind::Video);
    frames.retain(|(_, frame)| !frame.decode_only);
    let rungs: BTreeSet<_> = frames.iter().map(|(_, frame)| frame.rung.clone()).collect();
    assert_eq!(rungs.len(), 2);
    let shown = shown(&world, peer);
    for pair in shown.windows(2) {
        assert!(pair[1].1 > pair[0].1, "{:?} after {:?}", pair[1], pair[0]);
    }
    let after = shown.iter().filter(|(shown_at, ..)| *shown_at > at(20_000));
    let after: Vec<_> = after.cloned().collect();
    assert!(after.len() > 240, "{}", after.len());
}

/// Each picture of a group is found by its time, and by one 30 ms later, wherever it is in decoding order, and those after it
/// follow without a gap.
fn pictures_are_found(pyramid: Pyramid) {
    for number in 52..76_u64 {
        let (mut world, peer) = watch(pyramid, RungChoice::Highest);
        world.run_until(at(6_300));
        let after = if number % 2 == 0 { 0 } else { 30 };
        let presented_at = ms(40) * (number + Pyramid::DEPTH) as u32 + ms(after);
        let now = world.now;
        let to = WALL + (presented_at - ENCODE);
        world.peers[peer].watcher.seek(now, Seek::To(to));
        world.run_until(at(9_000));
        let events = &world.peers[peer].events;
        let plays = |(at, event): &(Instant, Event)| {
            matches!(event, Event::PlayingFrom { .. }).then_some(*at)
        };
        let begins = events.iter().find_map(plays).unwrap();
        let frames = world.frames(peer, StreamKind::Video);
        let shown = frames
            .iter()
            .filter(|(at, frame)| *at >= begins && !frame.decode_only);
        let mut shown: Vec<_> = shown
            .map(|(_, frame)| (frame.render_at, picture(frame), String::new()))
            .collect();
        shown.sort();
        shown.truncate(shown.len() - 4);
        assert_eq!(shown[0].1, number);
        assert!(shown.len() > 40, "{}", shown.len());
        assert_continuous(&shown, &BTreeSet::new());
    }
}

#[test]
fn rewinding_finds_each_picture_of_closed_groups() {
    pictures_are_found(Pyramid::Closed);
}

#[test]
fn rewinding_finds_each_picture_of_open_groups() {
    pictures_are_found(Pyramid::Open);
}
