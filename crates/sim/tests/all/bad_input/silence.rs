//! Publishers that fall silent, and watchers that nobody calls.

use std::time::Duration;

use namecast_apps::live::watcher::{RejoinReason, TableSizes};
use namecast_sim::HostClock;
use namecast_sim::live::Media;
use namecast_units::Instant;

use crate::bad_input::stage::{LOSSES, Stage};
use crate::live_world::ms;

/// The watcher says within 0.55 s that it is starved. It requests metadata four times a second, and again for the segments
/// of the next six samples when their Interests' lifetimes end (67 every 2 s), for an hour; nothing grows.
#[test]
fn a_publisher_that_stays_dead_is_waited_for() {
    for loss in LOSSES {
        let (mut stage, publisher) = Stage::playing(loss);
        stage
            .world
            .with_publisher(ms(10_400), publisher, |publisher, _| publisher.die());
        stage.run_until(ms(70_000));
        let starved = stage.starved();
        assert!(
            matches!(starved[..], [at] if at <= ms(10_960)),
            "{starved:?}"
        );
        assert_eq!(stage.stats().state, "starved");
        let before = stage.live().traffic().interests;
        let sizes = stage.live().table_sizes();
        stage.run_until(ms(3_670_000));
        let sent = stage.live().traffic().interests - before;
        assert!((4 * 3_600..38 * 3_600).contains(&sent), "{sent}");
        let queued = |sizes: TableSizes| sizes.consumers.outstanding + sizes.consumers.queued;
        let after = stage.live().table_sizes();
        assert!(queued(after).abs_diff(queued(sizes)) <= 2, "{after:?}");
        assert_eq!(after.consumers.samples, sizes.consumers.samples);
        assert_eq!((after.outputs, after.frames), (sizes.outputs, sizes.frames));
        assert!(sizes.consumers.outstanding <= 130, "{sizes:?}");
        assert_eq!(stage.stats().rejoins, 0);
    }
}

/// The publisher's host stops for 5 s, a minute, an hour, and goes on with the next key frame, 0.6 s later. A probe (every
/// 0.25 s) tells within a round trip; frames are shown from the first that comes in time on, or from the next key frame: while
/// nothing comes, Interests for the one that is awaited leave only every second or two.
#[test]
fn a_publisher_that_paused_is_live_again() {
    for loss in LOSSES {
        for pause in [ms(5_000), ms(60_000), ms(3_600_000)] {
            let (mut stage, _) = Stage::playing(loss);
            let back = ms(10_400) + pause;
            stage.world.node_down("P", ms(10_400)..back);
            stage.run_until(back + ms(10_000));
            assert_eq!((stage.starved().len(), stage.recovered().len()), (1, 1));
            let recovered = stage.recovered()[0] - back;
            assert!(recovered <= ms(1_300), "{loss} {pause:?}: {recovered:?}");
            let first = stage.shown(back..back + ms(3_000))[0].render_at;
            let first = first.since(Instant::ZERO + back);
            let most = if pause > ms(5_000) { 2_300 } else { 1_300 };
            assert!(first <= ms(most), "{loss} {pause:?}: {first:?}");
            stage.assert_steady(back + ms(2_500)..back + ms(9_500));
            stage.assert_decodable();
        }
    }
}

/// Nobody calls the watcher for an hour: its host sleeps. Then it joins the live edge: one probe (0.1 s), one key frame
/// (0.1 s), at most the target (0.25 s).
#[test]
fn a_watcher_that_slept_for_an_hour_is_live_within_half_a_second() {
    for loss in LOSSES {
        for sleep in [ms(60_000), Duration::from_secs(3_600)] {
            let mut stage = Stage::quick(loss, [HostClock::default(); 2]);
            stage.world.publish("P", vec![Media::video()]);
            let back = ms(10_400) + sleep;
            stage.world.node_down("C", ms(10_400)..back);
            stage.run_until(back + ms(10_000));
            let first = stage.shown(back..back + ms(3_000))[0].render_at;
            let first = first.since(Instant::ZERO + back);
            assert!(first <= ms(450), "{first:?}");
            assert_eq!(stage.rejoined(RejoinReason::FarBehind).len(), 1);
            stage.assert_steady(back + ms(2_500)..back + ms(9_500));
            stage.assert_decodable();
        }
    }
}
