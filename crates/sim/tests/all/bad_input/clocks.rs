//! Clocks that jump, and clocks that drift apart.

use namecast_sim::HostClock;
use namecast_units::Instant;

use crate::bad_input::stage::{LOSSES, Stage};
use crate::live_world::ms;

const HOUR: i64 = 3_600_000_000;

/// The publisher's wall clock jumps while it runs: sequence numbers go on, timestamps jump.
#[test]
fn a_publisher_whose_clock_jumps_is_shown_again_within_half_a_second() {
    for loss in LOSSES {
        for micros in [HOUR, -HOUR] {
            let (mut stage, _) = Stage::playing(loss);
            let host = stage.world.node("P");
            let network = &mut stage.world.network;
            network.schedule(Instant::ZERO + ms(10_400), move |network| {
                network.set_wall_offset(host, micros);
            });
            stage.run_until(ms(25_000));
            let gap = stage.longest_gap(ms(9_000)..ms(15_000));
            // Ahead: frames with the new time look as if they had come early, and follow at once. Back: they look late, for
            // half a second.
            let most = ms(if micros > 0 { 250 } else { 550 });
            assert!(gap <= most + stage.slack(), "{loss} {micros}: {gap:?}");
            stage.assert_steady(ms(12_000)..ms(24_500));
            stage.assert_decodable();
            assert_eq!(stage.stats().rejoins, 0);
            let offset = stage.stats().clock_offset_ms.unwrap();
            // Streams run on a time of their own, whatever the clock does.
            assert!(offset.abs() <= 1.0, "{offset}");
        }
    }
}

/// The watcher's wall clock jumps while it runs; it goes by its monotonic clock, so nothing is lost.
#[test]
fn a_watcher_whose_clock_jumps_loses_nothing() {
    for micros in [HOUR, -HOUR] {
        let (mut stage, _) = Stage::playing(0.0);
        let host = stage.world.node("C");
        let network = &mut stage.world.network;
        network.schedule(Instant::ZERO + ms(10_400), move |network| {
            network.set_wall_offset(host, micros);
        });
        stage.run_until(ms(20_000));
        stage.assert_steady(ms(2_000)..ms(19_500));
        assert_eq!(stage.longest_gap(ms(2_000)..ms(19_500)).as_millis(), 33);
        assert_eq!(stage.stats().rejoins, 0);
    }
}

/// 200 ppm between the two are 120 ms in ten minutes: playback follows, and neither delay nor tables grow.
#[test]
fn clocks_that_drift_apart_cost_nothing() {
    let [clean, lossy] = LOSSES;
    for (loss, signs) in [(clean, &[1, -1][..]), (lossy, &[1])] {
        for &sign in signs {
            let clock = |sign: i32| HostClock {
                drift_ppb: sign * 100_000,
                ..HostClock::default()
            };
            let mut stage = Stage::quick(loss, [clock(-sign), clock(sign)]);
            stage
                .world
                .publish("P", vec![namecast_sim::live::Media::video()]);
            stage.run_until(ms(30_000));
            let early = stage.delay(ms(20_000)..ms(29_000));
            stage.run_until(ms(600_000));
            let late = stage.delay(ms(589_000)..ms(599_000));
            let grown = late.abs_diff(early);
            assert!(grown <= ms(4), "{early:?} to {late:?}");
            assert!(stage.peak.consumers.samples <= 40, "{:?}", stage.peak);
            assert!(stage.starved().is_empty());
            assert_eq!(stage.stats().rejoins, 0);
            stage.assert_whole(ms(2_000)..ms(599_000));
        }
    }
}
