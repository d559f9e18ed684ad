//! Gaps in numbers, positions and time, and frames that are too large.

use std::time::Duration;

use namecast_sim::ApplicationId;
use namecast_sim::live::Media;

use crate::bad_input::stage::{LOSSES, Stage, viewer};
use crate::bad_input::studio::{Encoder, Studio, frame_at};
use crate::live_world::ms;

/// The frames that something happens to: delta 10 of a group, 20 before the next key frame, and that key frame.
const DELTA_AT: u32 = 310;
const KEY_AT: u32 = 330;
/// Key and delta, in [`Encoder::next`].
const KEY: usize = 0;
const DELTA: usize = 1;

/// A publisher whose encoder is changed before frame `at`.
fn changed(loss: f64, at: u32, change: impl Fn(&mut Encoder) + 'static) -> (Stage, ApplicationId) {
    let mut stage = Stage::new(loss, viewer());
    let studio = Studio::new(Media::video(), move |frame, encoder| {
        if frame == u64::from(at) {
            change(encoder);
        }
    });
    let publisher = stage.produce(studio);
    (stage, publisher)
}

/// Runs for 10 s beyond frame `at`: how many of the five seconds around it were not shown, and the longest time without
/// a picture. Before, and from 2.5 s after, all is well.
fn cost(stage: &mut Stage, at: u32) -> (u64, Duration) {
    let at = frame_at(at);
    stage.run_until(at + ms(10_000));
    stage.assert_steady(ms(2_000)..at - ms(500));
    stage.assert_steady(at + ms(2_500)..at + ms(9_500));
    let span = at - ms(1_000)..at + ms(4_000);
    (stage.missing(span.clone()), stage.longest_gap(span))
}

/// The encoder leaves frames out and numbers the others on: only they are missing, and they count as lost.
#[test]
fn frames_that_were_never_encoded_cost_themselves_alone() {
    for loss in LOSSES {
        for count in [1, 15] {
            let mut stage = Stage::new(loss, viewer());
            let span = u64::from(DELTA_AT)..u64::from(DELTA_AT) + count;
            let studio = Studio::new(Media::video(), move |frame, encoder| {
                encoder.is_dropped = span.contains(&frame);
            });
            stage.produce(studio);
            let (missing, gap) = cost(&mut stage, DELTA_AT);
            stage.assert_about(missing, count);
            assert!(gap <= frame_at(count as u32 + 1) + stage.slack(), "{gap:?}");
            let video = stage.stats().video.unwrap();
            assert_eq!((video.lost, video.skips), (count, 0));
        }
    }
}

/// Numbers of delta frames are skipped within a group: what follows looks like loss, so its 20 frames are passed over. A
/// skip beyond what consumers accept is noticed by the next probe.
#[test]
fn numbers_skipped_within_a_group_cost_the_group() {
    for loss in LOSSES {
        for count in [1, 30, 1_000, 100_000] {
            let (mut stage, _) = changed(loss, DELTA_AT, move |encoder| {
                encoder.next[DELTA] += count;
            });
            let (missing, gap) = cost(&mut stage, DELTA_AT);
            // Who joins again and loses a packet of that waits for a timer: of 32 seeds one costs 8 frames more.
            let rejoins = u32::from(count > 4_096);
            let retry = if loss > 0.0 { rejoins * 8 } else { 0 };
            match missing {
                28 if retry > 0 => {}
                _ => stage.assert_about(missing, 20),
            }
            assert!(
                gap <= frame_at(21 + retry) + stage.slack(),
                "{count}: {gap:?}"
            );
            stage.assert_decodable();
            let stats = stage.stats();
            assert_eq!(stats.rejoins, u64::from(rejoins), "{count} at {loss}");
            // Without a skip it is 5400.
            assert!(stats.interests_sent < 12_000, "{}", stats.interests_sent);
        }
    }
}

/// Numbers are skipped where a group begins: the key frame tells where deltas go on, deltas tell where keys do. Skips of
/// so many that nobody could catch up with them are asked for neither.
#[test]
fn numbers_skipped_between_groups_cost_nothing_unless_they_are_absurd() {
    for loss in LOSSES {
        // Numbers that jump too far are accepted when metadata says so, which is asked for every 2 s.
        let cases = [
            (DELTA, 1, 0),
            (DELTA, 30, 0),
            (DELTA, 1_000, 0),
            (DELTA, 100_000, 60),
            (KEY, 1, 0),
            (KEY, 30, 0),
            (KEY, 1_000, 0),
            (KEY, 100_000, 60),
        ];
        for (class, count, most) in cases {
            let (mut stage, _) = changed(loss, KEY_AT, move |encoder| {
                encoder.next[class] += count;
            });
            let (missing, _) = cost(&mut stage, KEY_AT);
            assert!(
                missing <= most + stage.allowance(),
                "{class} {count}: {missing}"
            );
            stage.assert_decodable();
            let stats = stage.stats();
            assert!(stats.rejoins <= 1);
            assert!(stats.interests_sent < 16_000, "{}", stats.interests_sent);
        }
    }
}

/// Positions jump ahead and back, as of an encoder that was reset; numbers go on, so nothing is missing. What lies between
/// is lost only if it is little enough to have existed.
#[test]
fn positions_may_jump() {
    for loss in LOSSES {
        for at in [DELTA_AT, KEY_AT] {
            for position in [0, 200, 400, 1 << 40, u64::MAX - 10_000] {
                let (mut stage, _) = changed(loss, at, move |encoder| encoder.position = position);
                let (missing, gap) = cost(&mut stage, at);
                stage.assert_about(missing, 0);
                assert!(gap <= ms(34) + stage.slack(), "{gap:?}");
                let lost = stage.stats().video.unwrap().lost;
                let expected = match position {
                    400 => 400 - u64::from(at),
                    _ => 0,
                };
                assert_eq!(lost, expected, "{position} at {at}");
                assert_eq!(stage.stats().rejoins, 0);
            }
        }
    }
}

/// A frame of some 4000 segments: the producer refuses it and says which size fits; what needs it is not published, and
/// the next key frame goes on. The watcher counts what is missing as lost, and says that nothing comes.
#[test]
fn a_frame_that_is_too_large_costs_its_group() {
    for loss in LOSSES {
        for (at, expected) in [(KEY_AT, 30), (DELTA_AT, 20)] {
            let (mut stage, publisher) =
                changed(loss, at, |encoder| encoder.size = Some(4_000 * 1_000));
            let (missing, gap) = cost(&mut stage, at);
            stage.assert_about(missing, expected);
            assert!(gap <= frame_at(expected as u32 + 1) + stage.slack());
            stage.assert_decodable();
            let studio: &Studio = stage.world.network.application(publisher).unwrap();
            let [refused] = &studio.refused[..] else {
                panic!("{:?}", studio.refused)
            };
            assert!(
                refused.starts_with("sample of 4000000 octets is larger than the 39928"),
                "{refused}"
            );
            let stats = stage.stats();
            assert_eq!(stats.video.unwrap().lost, expected);
            assert_eq!((stage.starved().len(), stage.recovered().len()), (1, 1));
        }
    }
}

/// The largest frame that there can be, 400 data segments and 80 parity: it comes whole and in time. One octet more than
/// the bound that a refusal names is refused.
#[test]
fn the_largest_frame_is_shown_in_time() {
    for loss in LOSSES {
        let run = |size| {
            let (mut stage, publisher) =
                changed(loss, KEY_AT, move |encoder| encoder.size = Some(size));
            let (missing, _) = cost(&mut stage, KEY_AT);
            let studio: &Studio = stage.world.network.application(publisher).unwrap();
            let refused = studio.refused.clone();
            let at = u64::from(KEY_AT);
            let found = stage.live().records().iter().find(|r| r.position == at);
            let found = found.map(|r| (r.size, r.is_rendered()));
            (missing, refused, found, stage)
        };
        let (.., refused, _, _) = run(400_000);
        // "sample of 400000 octets is larger than the 399…"
        let largest = refused[0].split(' ').find_map(|word| {
            let number = word.parse::<usize>().ok()?;
            (number != 400_000).then_some(number)
        });
        let largest = largest.unwrap();
        assert!((399_200..399_300).contains(&largest), "{refused:?}");
        let (missing, refused, found, stage) = run(largest);
        stage.assert_about(missing, 0);
        assert_eq!((refused.len(), found), (0, Some((largest, true))));
        // Of 480, those that come first make room for those that wait at the requester.
        let peak = stage.peak.consumers;
        assert!(peak.outstanding + peak.queued >= 400, "{peak:?}");
        let (missing, refused, found, stage) = run(largest + 1);
        stage.assert_about(missing, 30);
        assert_eq!((refused.len(), found), (1, None));
    }
}
