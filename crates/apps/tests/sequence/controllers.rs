//! What each controller makes of a link of 10 Mbit/s with room for 50 packets.

use core::ops::RangeInclusive;
use core::time::Duration;

use namecast_stream::path::NumberedConfig;
use namecast_stream::rate::{RateControl, arc};
use namecast_units::Bitrate;

use crate::path::{Measured, Path, at, config};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// One flow alone, measured from 20 s to 60 s.
fn alone(controller: &str, base_rtt: u64) -> Measured {
    let mut path = Path::new();
    path.add(config(controller), ms(base_rtt));
    path.run(at(20_000));
    path.measure(at(60_000))
}

#[track_caller]
fn check(
    controller: &str,
    base_rtt: u64,
    utilisation: RangeInclusive<f64>,
    queued: RangeInclusive<f64>,
) {
    let measured = alone(controller, base_rtt);
    assert!(
        utilisation.contains(&measured.utilisation) && queued.contains(&measured.queued),
        "{controller} at {base_rtt} ms: {measured:?}"
    );
}

/// Independent simulations of the same gave 0.983 and 2.0 ms at 20 ms, 0.873 and 1.4 ms at 200 ms.
#[test]
fn arc_uses_the_link_and_keeps_its_queue_short() {
    check("arc", 20, 0.98..=0.995, 1.5..=3.0);
    check("arc", 200, 0.85..=0.89, 0.9..=1.9);
    check("arc-literal", 20, 0.97..=0.995, 1.5..=3.0);
}

/// An ideal AIMD with a buffer of 50 packets uses 1.00, 0.949 and 0.842 of the link at 20, 100 and 300 ms, with 28.7, 15.6
/// and 6.8 ms of queue; at 300 ms its sawtooth is longer than what is measured.
#[test]
fn aimd_does_as_well_as_it_can() {
    check("aimd-gap", 20, 0.99..=1.001, 26.0..=32.0);
    check("aimd-gap", 100, 0.93..=0.96, 13.0..=18.0);
    check("aimd-gap", 300, 0.80..=0.90, 5.0..=14.0);
}

/// The authors' timer makes it a little worse than the ideal, and no worse than that.
#[test]
fn aimd_by_timers_comes_near() {
    check("aimd-icp", 20, 0.98..=1.001, 20.0..=33.0);
    check("aimd-icp", 100, 0.92..=0.97, 12.0..=18.0);
    check("aimd-ndnsim", 20, 0.90..=0.97, 18.0..=27.0);
    check("aimd-ndnsim", 100, 0.92..=0.97, 12.0..=19.0);
}

/// Both were made for long paths, on which AIMD takes too long.
#[test]
fn cubic_and_bic_fill_long_paths() {
    check("cubic", 20, 0.99..=1.001, 28.0..=38.0);
    check("cubic", 300, 0.94..=0.98, 4.0..=12.0);
    check("bic", 20, 0.99..=1.001, 33.0..=41.0);
    check("bic", 300, 0.97..=1.001, 10.0..=20.0);
}

/// A packet or two of its own wait, 0.9 ms each at 10 Mbit/s, whatever the round trip.
#[test]
fn copa_fills_the_link_with_a_short_queue_at_any_delay() {
    for base_rtt in [4, 20, 100, 300] {
        check("copa", base_rtt, 0.97..=1.001, 0.5..=4.0);
    }
}

/// Losses that have nothing to do with queues: at 2 %, ARC uses a third of the link.
#[test]
fn copa_keeps_the_link_under_random_loss() {
    for base_rtt in [20, 150] {
        let mut path = Path::new();
        path.loss = 0.02;
        path.add(config("copa"), ms(base_rtt));
        path.run(at(20_000));
        let measured = path.measure(at(60_000));
        let range = 0.90..=1.0;
        assert!(
            range.contains(&measured.utilisation),
            "{base_rtt} ms: {measured:?}"
        );
        assert!(measured.queued <= 4.0, "{base_rtt} ms: {measured:?}");
    }
}

/// Base RTTs of 20, 40, 60 and 80 ms: nearly the same share for each.
#[test]
fn copa_is_fair_whatever_the_round_trip() {
    let (jain, utilisation) = fairness("copa");
    assert!((0.97..=1.0).contains(&jain), "{jain}");
    assert!((0.97..=1.001).contains(&utilisation), "{utilisation}");
}

/// The source moves 20 ms farther away at 30 s, as in the paper's last figure, but packets are late by up to `jitter`. Gives
/// the utilisation of the next 30 s.
fn after_source_change(config: arc::Config, jitter: Duration) -> f64 {
    let mut path = Path::new();
    path.jitter = jitter;
    let control = RateControl::Arc(config);
    let fetcher = NumberedConfig {
        control,
        ..crate::path::config("arc")
    };
    path.add(fetcher, ms(20));
    path.run(at(30_000));
    path.set_base_rtt(0, ms(40));
    path.measure(at(60_000)).utilisation
}

#[test]
fn arc_with_the_source_rule_stays_after_a_source_change_where_the_literal_one_collapses() {
    for micros in [0, 50, 5_000] {
        let jitter = Duration::from_micros(micros);
        let utilisation = after_source_change(arc::Config::with_source_rule(), jitter);
        assert!(
            (0.95..=1.0).contains(&utilisation),
            "{micros} µs: {utilisation}"
        );
    }
    let literal = after_source_change(arc::Config::literal(), Duration::from_micros(50));
    assert!((0.02..=0.2).contains(&literal), "{literal}");
    // The window of 10 s alone forgets too late: pps has fallen to α/β by then.
    let windowed = after_source_change(arc::Config::resolved(), Duration::from_micros(50));
    assert!((0.4..=0.7).contains(&windowed), "{windowed}");
}

/// Jain's index and the utilisation of four flows with base RTTs of 20, 40, 60 and 80 ms.
fn fairness(controller: &str) -> (f64, f64) {
    let mut path = Path::new();
    for flow in 0..4 {
        path.add(config(controller), ms(20 + 20 * flow));
        path.run(at(3 * (flow + 1)));
    }
    path.run(at(20_000));
    let measured = path.measure(at(70_000));
    let shares = path.shares();
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    (
        sum * sum / (squares * shares.len() as f64),
        measured.utilisation,
    )
}

/// The same share for each.
#[test]
fn arc_is_fair_whatever_the_round_trip() {
    let (jain, utilisation) = fairness("arc");
    assert!((0.998..=1.0).contains(&jain), "{jain}");
    assert!((0.94..=1.0).contains(&utilisation), "{utilisation}");
}

/// From 10 to 5 Mbit/s of the link, 9.53 to 4.77 of content: an independent simulation took 0.41 s. Then back: 7.9 s.
#[test]
fn arc_follows_the_bandwidth_down_and_up() {
    let mut path = Path::new();
    path.add(config("arc"), ms(20));
    path.run(at(20_000));
    path.rate = Bitrate::mbps(5);
    path.run(at(40_000));
    path.rate = Bitrate::mbps(10);
    path.run(at(60_000));
    let samples = path.fetcher(0).samples();
    let reached = |from: u64, is_there: &dyn Fn(u64) -> bool| {
        let mut after = samples.iter().filter(|sample| sample.at >= at(from));
        let found = after.find(|sample| is_there(sample.estimate.unwrap().as_bps()));
        found.unwrap().at.since(at(from)).as_secs_f64()
    };
    let down = reached(20_000, &|bps| bps <= 4_767_000);
    assert!((0.2..=0.5).contains(&down), "{down}");
    let up = reached(40_000, &|bps| bps >= 9_058_000);
    assert!((7.0..=9.0).contains(&up), "{up}");
}

/// At 2 % loss every number comes, and only what was lost is retransmitted.
#[test]
fn everything_lost_comes_in_the_end() {
    for controller in ["window:20", "arc", "aimd-gap"] {
        let mut path = Path::new();
        path.loss = 0.02;
        let fetcher = NumberedConfig {
            retransmit: true,
            count: Some(5_000),
            ..config(controller)
        };
        path.add(fetcher, ms(20));
        path.run(at(120_000));
        let figures = path.fetcher(0).figures();
        assert!(path.fetcher(0).is_done(), "{controller}: {figures:?}");
        assert_eq!((figures.data, figures.duplicates), (5_000, 0));
        assert_eq!(figures.requests.retransmissions, path.drops);
        assert!((60..=150).contains(&path.drops), "{}", path.drops);
    }
}
