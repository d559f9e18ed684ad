//! A publisher that starts again and counts otherwise.

use std::time::Duration;

use namecast_apps::live::watcher::RejoinReason;
use namecast_sim::live::LivePublisher;
use namecast_units::Instant;

use crate::bad_input::stage::{LOSSES, Stage};
use crate::live_world::ms;

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3_600 * SECOND;
const YEAR: i64 = 365 * 24 * HOUR;

/// The publisher is started again at 10.4 s, its clock moved by `micros`, which moves its numbers by 30 a second.
fn restarted(loss: f64, micros: i64) -> Stage {
    let (mut stage, publisher) = Stage::playing(loss);
    let host = stage.world.node("P");
    let network = &mut stage.world.network;
    network.schedule(Instant::ZERO + ms(10_400), move |network| {
        network.set_wall_offset(host, micros);
        network.with_application(publisher, LivePublisher::restart);
    });
    stage.run_until(ms(20_000));
    stage
}

/// Numbers that are lower, higher, much higher. Nothing answers for half a second, which is starvation; the probe finds
/// another catalogue within a round trip (0.1 s), the key frame takes another (0.1 s) and is shown after the target
/// (0.25 s) at the latest: 0.95 s, and what it takes to notice (a frame), and 0.3 s more where packets are lost.
#[test]
fn other_numbers_cost_a_second() {
    for loss in LOSSES {
        for micros in [-YEAR, -HOUR, 0, 2 * SECOND, HOUR, YEAR] {
            let stage = restarted(loss, micros);
            let gap = stage.longest_gap(ms(9_000)..ms(14_000));
            let most = ms(if loss > 0.0 { 1_300 } else { 1_000 });
            assert!(gap <= most, "{micros} at {loss}: {gap:?}");
            assert_eq!(stage.rejoined(RejoinReason::NewCatalogue).len(), 1);
            assert_eq!(stage.stats().rejoins, 1, "{micros} at {loss}");
            assert_eq!(stage.stats().verification_failures, 0);
            stage.assert_steady(ms(2_000)..ms(10_000));
            stage.assert_steady(ms(13_000)..ms(19_500));
            stage.assert_decodable();
        }
    }
}

/// The clock was set back by less than the first run lasted, so that the second takes names under which caches still hold
/// Data of the first. The watcher sees the clock, and asks past the caches for as long: it costs no more than any restart.
///
/// Set back by all of the first run, the second has even the catalogue of the first, and all its names: nothing tells them
/// apart, and positions that were shown are not shown again, so that is over when the first run's are.
#[test]
fn names_that_come_again_harm_no_longer_than_they_were_used() {
    for loss in LOSSES {
        for micros in [-2 * SECOND, -8 * SECOND, -10 * SECOND - SECOND * 2 / 5] {
            let mut stage = restarted(loss, micros);
            stage.run_until(ms(28_000));
            let is_another_run = !stage.rejoined(RejoinReason::NewCatalogue).is_empty();
            assert!(is_another_run || micros < -10 * SECOND);
            let over = ms(10_400) + Duration::from_micros(micros.unsigned_abs()) + ms(2_000);
            stage.assert_steady(over..ms(27_500));
            if is_another_run {
                let gap = stage.longest_gap(ms(9_000)..ms(14_000));
                let most = ms(if loss > 0.0 { 1_300 } else { 1_000 });
                assert!(gap <= most, "{micros} at {loss}: {gap:?}");
                stage.assert_steady(ms(13_000)..ms(27_500));
            }
        }
    }
}
