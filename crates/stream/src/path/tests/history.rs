//! What is kept of the last seconds.

use core::time::Duration;

use namecast_units::Random;

use super::*;
use crate::path::history::{History, PairSum};

const SECOND: Duration = Duration::from_secs(1);

fn same(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

/// Queues of 10, 40 and 10 ms: the mean is 60/3 = 20 ms. Of the last 50 ms there are the last two only.
#[test]
fn queues_are_those_of_the_span() {
    let mut history = History::default();
    for (millis, queue) in [(1_000, 0.01), (1_060, 0.04), (1_080, 0.01)] {
        history.on_arrival(at(millis), 8_640.0, queue);
    }
    let now = at(1_080);
    assert!(same(history.queue_mean(now, SECOND), 0.02));
    assert!(same(history.queue_max(now, SECOND), 0.04));
    assert_eq!(history.queue_min(now, SECOND), Some(0.01));
    assert!(same(history.queue_mean(now, ms(50)), 0.025));
    assert!(same(history.queue_max(now, ms(15)), 0.01));
    assert_eq!(history.queue_min(at(3_000), SECOND), None);
    assert!(same(history.queue_max(at(3_000), SECOND), 0.0));
}

/// Of 5 packets one was lost: 20 %, once 5 are enough to say so. Those lost to a full queue count among 20 at least.
#[test]
fn losses_are_shares_of_enough_packets() {
    let mut history = History::default();
    for _ in 0..4 {
        history.on_arrival(at(1_000), 8_640.0, 0.0);
    }
    history.on_loss(at(1_000), true);
    assert!(same(history.loss(at(1_000), SECOND, 5), 0.2));
    assert!(same(history.loss(at(1_000), SECOND, 6), 0.0));
    assert!(same(history.squeezed(at(1_000), SECOND), 0.05));

    history.on_loss(at(1_000), false);
    assert!(same(history.squeezed(at(1_000), SECOND), 0.05));
    assert!(same(history.loss(at(1_000), SECOND, 6), 2.0 / 6.0));
}

/// A path that is found to be 30 ms longer: queues of 50 and 30 ms were of 20 and none, and no queue is below zero.
#[test]
fn a_longer_path_shortens_all_queues_and_forgets_pairs() {
    let mut history = History::default();
    for (millis, queue) in [(1_000, 0.05), (1_010, 0.03), (1_020, 0.01)] {
        history.on_arrival(at(millis), 8_640.0, queue);
        history.on_pair(at(millis), 8_640.0, 0.002);
    }
    let now = at(1_020);
    assert_eq!(history.pairs(now, SECOND).count, 3);
    history.rebase(0.03);
    assert_eq!(history.pairs(now, SECOND), PairSum::default());
    assert!(same(history.queue_max(now, SECOND), 0.02));
    assert_eq!(history.queue_min(now, SECOND), Some(0.0));
    assert!(same(history.queue_mean(now, SECOND), 0.02 / 3.0));
}

/// Against a list of all that came: spans are exact but for the bin of 5 ms in which they begin.
#[test]
fn a_span_holds_what_came_within_it() {
    let mut random = Random::from_seed(7);
    let mut history = History::default();
    let mut all: Vec<Instant> = Vec::new();
    let mut now = at(1_000);
    for _ in 0..2_000 {
        now += Duration::from_micros(random.below(3_000));
        history.on_arrival(now, 1.0, 0.0);
        all.push(now);
        let span = ms(10 + random.below(800));
        let count = |span| {
            all.iter()
                .rev()
                .take_while(|at| now.since(**at) < span)
                .count() as f64
        };
        let found = history.delivered(now, span);
        let (least, most) = (count(span - ms(5)), count(span + ms(5)));
        assert!(
            (least..=most).contains(&found),
            "{found} of {least}..={most} in {span:?}"
        );
        assert!(same(found, f64::from(history.arrivals(now, span))));
    }
}

/// One packet every 5 ms for 20 s: 200 a second, of which 6 s are kept, and not more.
#[test]
fn six_seconds_are_kept() {
    let mut history = History::default();
    for index in 0..4_000 {
        history.on_arrival(at(1_000 + 5 * index), 1.0, 0.0);
    }
    let kept = history.arrivals(at(20_995), 20 * SECOND);
    assert!((1_200..=1_201).contains(&kept), "{kept}");
}
