//! Playback of a healthy publisher, over good and bad links.

use core::time::Duration;

use namecast_apps::live::watcher::{Event, RungChoice, WatcherConfig};
use namecast_stream::StreamKind;
use namecast_units::Bitrate;

use crate::world::{Show, World, at, ms};

/// Nothing is lost and nothing late on a link without loss; no Interest is sent twice; and those for frames are there
/// before the frames, so each frame arrives half a round trip after it was published.
#[test]
fn a_good_link_gives_every_frame_in_time_at_the_least_delay() {
    let mut world = World::new(Show::default());
    let peer = world.join(WatcherConfig {
        target: ms(45),
        ..World::config()
    });
    world.run_until(at(20_000));
    let frames = world.frames(peer, StreamKind::Video);
    World::assert_decodable(&frames);
    let live: Vec<_> = frames
        .iter()
        .filter(|(_, frame)| frame.position >= 10)
        .collect();
    assert!(live.len() >= 585, "{}", live.len());
    assert!(
        live.iter()
            .all(|(at, frame)| !frame.late && *at <= frame.render_at)
    );
    let stats = world.peers[peer].watcher.stats(world.now);
    let video = stats.video.unwrap();
    assert_eq!((video.lost, video.late, video.skips), (0, 0, 0));
    assert_eq!(stats.interests_retransmitted, 0);
    assert_eq!(stats.interests_timed_out, 0);
    // RTT 50 ms, 5 to spare, 33 ms a frame: ⌈55 / 33.3⌉ = 2.
    assert_eq!(video.interest_lead, 2);
    let rtt = stats.rtt_ms.unwrap();
    assert!((49.9..=50.5).contains(&rtt), "{rtt}");
    assert!(stats.cache_hit_share < 0.02, "{}", stats.cache_hit_share);
    // 1 Mbit/s of payload.
    assert!(
        (930_000..=1_080_000).contains(&stats.goodput_bps),
        "{}",
        stats.goodput_bps
    );
}

/// 2 % loss in each direction, RTT 50 ms, target 3·RTT.
#[test]
fn two_percent_loss_costs_hardly_a_frame() {
    let mut world = World::new(Show::default());
    let peer = world.join(WatcherConfig {
        target: ms(150),
        ..World::config()
    });
    world.run_until(at(1_000));
    world.loss = 0.02;
    world.run_until(at(31_500));
    World::assert_decodable(&world.frames(peer, StreamKind::Video));
    let share = world.share_in_time(peer, 30, 930);
    assert!(share >= 0.995, "{share}");
    let stats = world.peers[peer].watcher.stats(world.now);
    let video = stats.video.unwrap();
    assert!(video.recovered_retransmission > 50, "{video:?}");
    // Up to 4 % of segments are lost; each is retransmitted about once.
    let share = stats.interests_retransmitted as f64 / stats.interests_sent as f64;
    assert!(share < 0.05, "{share}");
}

#[test]
fn jitter_within_the_target_harms_nothing() {
    let mut world = World::new(Show::default());
    world.jitter = ms(20);
    let peer = world.join(World::config());
    world.run_until(at(12_000));
    let share = world.share_in_time(peer, 30, 330);
    assert!(share >= 0.999, "{share}");
    let stats = world.peers[peer].watcher.stats(world.now);
    let again = stats.interests_retransmitted as f64 / stats.interests_sent as f64;
    assert!(again < 0.05, "reordering is taken for loss: {again}");
}

/// Audio is a stream of key samples; both streams follow one clock.
#[test]
fn audio_and_video_are_in_step() {
    let mut world = World::new(Show {
        audio: true,
        ..Show::default()
    });
    world.jitter = ms(10);
    let peer = world.join(World::config());
    world.run_until(at(8_000));
    let of = |stream| -> Vec<_> {
        world
            .frames(peer, stream)
            .into_iter()
            .map(|(_, f)| f)
            .collect()
    };
    let offset = |frame: &&namecast_apps::live::watcher::Frame| {
        frame.render_at.as_nanos() as i64 / 1_000
            - (frame.captured_at.as_micros() - crate::world::WALL.as_micros()) as i64
    };
    let video: Vec<_> = of(StreamKind::Video).iter().skip(60).map(offset).collect();
    let audio: Vec<_> = of(StreamKind::Audio).iter().skip(100).map(offset).collect();
    assert!(
        video.len() > 150 && audio.len() > 250,
        "{} {}",
        video.len(),
        audio.len()
    );
    let all = || video.iter().chain(&audio);
    let (least, most) = (all().min().unwrap(), all().max().unwrap());
    assert!(most - least <= 10_000, "{least}..{most} µs");
}

/// The knob: from 100 to 500 and back to 100 ms. No frame is lost or repeated, and frames are re-timed at once.
#[test]
fn a_new_target_acts_at_once_and_loses_nothing() {
    let mut world = World::new(Show::default());
    let peer = world.join(World::config());
    world.run_until(at(3_000));
    let now = world.now;
    world.peers[peer].watcher.set_target(now, ms(500));
    world.run_until(at(6_000));
    let now = world.now;
    let buffer = world.peers[peer]
        .watcher
        .stats(now)
        .video
        .unwrap()
        .buffer_ms;
    assert!((420.0..=500.0).contains(&buffer), "{buffer}");
    world.peers[peer].watcher.set_target(now, ms(100));
    world.run_until(at(9_000));
    let frames = world.frames(peer, StreamKind::Video);
    World::assert_decodable(&frames);
    let positions: Vec<_> = frames.iter().map(|(_, frame)| frame.position).collect();
    let last = *positions.last().unwrap();
    assert_eq!(positions, (positions[0]..=last).collect::<Vec<_>>());
    assert!(last >= 266, "{last}");
    assert!(world.peers[peer].resets.is_empty());
    // What a frame waits for from publication: 25 ms on the way, then the target.
    let wait = |frame: &namecast_apps::live::watcher::Frame| {
        let published = crate::world::at(0)
            + (frame.captured_at + crate::world::ENCODE).since(crate::world::WALL);
        frame.render_at.since(published)
    };
    for (handed_out, frame) in &frames {
        let expected = match handed_out {
            t if *t < at(500) => continue,
            t if *t > at(3_000) && *t < at(6_000) => ms(525),
            _ => ms(125),
        };
        let off = wait(frame).abs_diff(expected);
        assert!(off <= ms(1), "{handed_out}: {:?}", wait(frame));
    }
    // Going back, frames whose time has passed all come at once.
    let at_once = frames.iter().filter(|(t, _)| *t == at(6_000)).count();
    assert!((11..=13).contains(&at_once), "{at_once}");
}

/// Two watchers behind one node: the publisher sends each packet once. Joining costs the newcomer's own answers.
#[test]
fn a_second_watcher_costs_the_publisher_nothing() {
    let run = |watchers: usize| {
        let mut world = World::new(Show::default());
        for seed in 0..watchers {
            world.join(WatcherConfig {
                seed: seed as u64,
                ..World::config()
            });
        }
        world.run_until(at(2_000));
        let before = world.data_sent;
        world.run_until(at(22_000));
        for peer in 0..watchers {
            assert!(world.share_in_time(peer, 30, 600) > 0.999);
        }
        world.data_sent - before
    };
    let (one, two) = (run(1), run(2));
    let ratio = two as f64 / one as f64;
    assert!((0.99..=1.01).contains(&ratio), "{one} {two}");
}

fn ladder() -> Show {
    Show {
        rungs: vec![("200k", 2_400, 780), ("1M", 12_000, 3_900)],
        ..Show::default()
    }
}

#[test]
fn rungs_change_at_a_key_frame_without_a_gap() {
    for target in [World::config().target, Duration::from_millis(20)] {
        let changes = rungs_change_at(target, RungChoice::Highest);
        assert_eq!(changes, [(120, "200k".to_owned()), (210, "1M".to_owned())]);
    }
}

/// A rung that is chosen while another one is about to be changed over to.
#[test]
fn a_choice_takes_the_place_of_one_that_was_made_by_itself() {
    for target in [World::config().target, Duration::from_millis(20)] {
        let changes = rungs_change_at(target, RungChoice::Auto);
        assert_eq!(changes.last(), Some(&(210, "1M".to_owned())), "{changes:?}");
    }
}

/// Left to itself again before the rung that was chosen by hand is shown, the stream is soon at the top.
#[test]
fn a_choice_that_is_taken_back_at_once_leaves_the_ladder_where_it_is() {
    let mut world = World::new(ladder());
    let peer = world.join(WatcherConfig {
        rung: RungChoice::Highest,
        ..World::config()
    });
    world.run_until(at(3_200));
    let now = world.now;
    for rung in [RungChoice::Lowest, RungChoice::Auto] {
        world.peers[peer].watcher.set_rung(now, rung);
    }
    world.run_until(at(20_000));
    let frames = world.frames(peer, StreamKind::Video);
    World::assert_decodable(&frames);
    assert_eq!(frames.last().unwrap().1.rung, "1M");
}

/// Changes to the lowest rung and to `1M`, both without a gap. Gives all changes, with the position that each began at.
fn rungs_change_at(target: Duration, first: RungChoice) -> Vec<(u64, String)> {
    let mut world = World::new(ladder());
    let peer = world.join(WatcherConfig {
        target,
        rung: first,
        ..World::config()
    });
    world.run_until(at(3_200));
    let change = |world: &mut World, rung| {
        let now = world.now;
        world.peers[peer].watcher.set_rung(now, rung);
    };
    change(&mut world, RungChoice::Lowest);
    world.run_until(at(6_500));
    change(&mut world, RungChoice::Label("1M".to_owned()));
    world.run_until(at(10_000));
    let frames = world.frames(peer, StreamKind::Video);
    World::assert_decodable(&frames);
    let positions: Vec<_> = frames.iter().map(|(_, frame)| frame.position).collect();
    let all: Vec<_> = (positions[0]..=*positions.last().unwrap()).collect();
    assert_eq!(positions, all, "a gap, or a frame twice");
    let mut changes = Vec::new();
    for pair in frames.windows(2) {
        if pair[0].1.rung != pair[1].1.rung {
            assert!(pair[1].1.key);
            changes.push((pair[1].1.position, pair[1].1.rung.clone()));
        }
    }
    // How large key samples are is known once the first was requested ahead: that of the second group.
    assert!(
        frames
            .iter()
            .skip(31)
            .all(|(at, frame)| *at <= frame.render_at)
    );
    assert!(world.peers[peer].resets.is_empty());
    let switched = |e: &&Event| matches!(e, Event::SwitchedRung { .. });
    let events = world.peers[peer].events.iter().map(|(_, event)| event);
    assert_eq!(events.filter(switched).count(), changes.len());
    changes
}

/// Two rungs in groups of a second, which begin at full seconds of the publisher's clock, as probes of metadata do.
fn lagging_ladder(lag: u64) -> World {
    World::new(Show {
        fps: 25,
        key_interval: 25,
        rungs: vec![("200k", 2_900, 940), ("1M", 14_500, 4_700)],
        lag,
        ..Show::default()
    })
}

/// Whenever metadata comes, the newest key frame of the higher rung, which is encoded 400 ms later, is one of the group before.
#[test]
fn a_rung_whose_encoder_lags_is_changed_to() {
    let mut world = lagging_ladder(10);
    world.run_until(at(4_020));
    let peer = world.join(WatcherConfig {
        target: ms(500),
        ..World::config()
    });
    world.run_until(at(12_000));
    let frames = world.frames(peer, StreamKind::Video);
    World::assert_decodable(&frames);
    let first = frames.iter().find(|(_, frame)| frame.rung == "1M").unwrap();
    // The path is known well enough to try it with the third group.
    assert_eq!(first.1.position, 175);
    assert!(world.peers[peer].resets.is_empty());
    let video = world.peers[peer].watcher.stats(world.now).video.unwrap();
    assert_eq!((video.lost, video.late, video.skips), (0, 0, 0));
}

/// At 150 kbit/s not even the lowest rung fits, and the picture pauses for 190 ms, until the next key frame. That no other rung can be
/// requested, as it has not published anything, must not keep the watcher from requesting the one it had.
#[test]
fn a_picture_that_paused_goes_on_where_no_other_rung_is_available() {
    let mut world = lagging_ladder(u64::MAX);
    world.rate = Some(Bitrate::kbps(1_500));
    let peer = world.join(World::config());
    let has_paused = |world: &World| {
        let stats = world.peers[peer].watcher.stats(world.now);
        stats.picture == Some("nothing fits until the next key frame")
    };
    world.run_until(at(5_100));
    world.rate = Some(Bitrate::kbps(150));
    world.run_until(at(5_890));
    assert!(has_paused(&world));
    world.rate = Some(Bitrate::kbps(1_500));
    world.run_until(at(10_000));
    let frames = world.frames(peer, StreamKind::Video);
    World::assert_decodable(&frames);
    let next = frames.iter().find(|(_, frame)| frame.position == 150);
    let (came_at, _) = next.unwrap();
    assert!(*came_at < at(6_400), "{came_at}");
    assert!(world.share_in_time(peer, 175, 245) > 0.99);
    assert_eq!(world.peers[peer].watcher.stats(world.now).rejoins, 0);
}

/// Ten minutes at 2 % loss and 10 fps: every table stays where it was after the first minute.
#[test]
fn tables_do_not_grow() {
    let mut world = World::new(Show {
        fps: 5,
        key_interval: 5,
        rungs: vec![("200k", 2_400, 780)],
        ..Show::default()
    });
    let peer = world.join(World::config());
    world.loss = 0.02;
    for minute in 1..=10 {
        world.run_until(at(minute * 60_000));
        let sizes = world.peers[peer].watcher.table_sizes();
        let consumers = sizes.consumers;
        assert!(consumers.samples <= 10, "{sizes:?}");
        assert!(consumers.outstanding <= 30, "{sizes:?}");
        assert!(
            consumers.queued == 0 && consumers.unverified <= 10,
            "{sizes:?}"
        );
        assert!(consumers.buffered <= 20_000, "{sizes:?}");
        assert!(sizes.outputs == 0 && sizes.frames <= 3, "{sizes:?}");
        world.peers[peer].frames.clear();
    }
    let video = world.peers[peer].watcher.stats(world.now).video.unwrap();
    assert!(video.received >= 2_990, "{video:?}");
}

#[test]
fn a_wrong_clock_here_changes_nothing() {
    let mut world = World::new(Show::default());
    let hour = Duration::from_secs(3_600);
    let peer = world.join(WatcherConfig {
        wall_at_zero: crate::world::WALL + hour,
        ..World::config()
    });
    world.run_until(at(4_000));
    assert!(world.share_in_time(peer, 30, 115) > 0.999);
}

/// 1 Mbit/s of payload with parity, headers and large key samples: ARC allows twice what is asked for in a busy quarter of a
/// second, 5.4 Mbit/s, and no more. If unused leave to ask were a reason for more of it, that were 98 Mbit/s by now.
#[test]
fn adaptive_rate_control_lets_a_stream_pass_and_does_not_run_away() {
    let mut world = World::new(Show::default());
    let peer = world.join(WatcherConfig {
        control: "arc".parse().unwrap(),
        ..World::config()
    });
    world.run_until(at(20_500));
    let share = world.share_in_time(peer, 30, 600);
    assert!(share >= 0.99, "{share}");
    let stats = world.peers[peer].watcher.stats(world.now);
    assert_eq!(stats.controller, "arc");
    let allowed = stats.controller_rate_bps.unwrap();
    assert!((1_200_000..=9_000_000).contains(&allowed), "{allowed}");
}
