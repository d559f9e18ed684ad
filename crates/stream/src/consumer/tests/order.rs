//! In which order samples are delivered, and which are passed over.

use super::*;

/// Key 5, delta 100 that does not come, key 6. Base 60 ms, target 150 ms: delta 100, published at 40 ms, is due at 250 ms
/// and may be 100 ms late; key 6, published at 80 ms, is due at 290 ms and waits for it.
fn desk_that_waits_for_delta_100() -> Desk {
    let mut desk = Desk::started(Config::default());
    desk.asks();
    desk.give_key(at(60));
    let next = desk.cut((SampleClass::Key, 6), 101, 500, stamp(80));
    desk.give(at(140), &next.data[0]);
    for now in [210, 290, 349] {
        desk.consumer.handle_timeout(at(now));
        desk.asks();
        assert_eq!(desk.samples.len(), 1, "{now}");
    }
    desk
}

#[test]
fn a_missing_sample_holds_up_the_next_key_sample_for_the_tolerance() {
    let mut desk = desk_that_waits_for_delta_100();
    desk.consumer.handle_timeout(at(350));
    desk.asks();
    let positions: Vec<_> = desk.samples.iter().map(|s| s.header.position).collect();
    assert_eq!(positions, [0, 2]);
    let counters = desk.consumer.counters();
    assert_eq!((counters.lost, counters.skips), (1, 1));
}

#[test]
fn a_sample_that_is_late_within_the_tolerance_is_handed_out() {
    let mut desk = desk_that_waits_for_delta_100();
    let late = desk.cut((SampleClass::Delta, 100), 5, 500, stamp(40));
    desk.give(at(349), &late.data[0]);
    desk.asks();
    let delivered: Vec<_> = desk
        .samples
        .iter()
        .map(|sample| (sample.header.position, sample.late))
        .collect();
    assert_eq!(delivered, [(0, false), (1, true), (2, false)]);
    let counters = desk.consumer.counters();
    assert_eq!((counters.lost, counters.late), (0, 1));
}

/// After a decoder error, samples of the group in hand are of no use: they are not kept.
#[test]
fn samples_that_cannot_be_decoded_are_dropped() {
    let mut desk = Desk::started(Config::default());
    desk.asks();
    desk.give_key(at(60));
    let deltas = [100, 101, 102].map(|delta| {
        let at = stamp((delta - 99) * 40);
        desk.cut((SampleClass::Delta, delta), 5, 500, at)
    });
    desk.give(at(100), &deltas[0].data[0]);
    desk.consumer.handle_timeout(at(210));
    desk.consumer.handle_decoder_error(at(210));
    assert_eq!(desk.consumer.sizes().complete, 0);
    desk.give(at(211), &deltas[1].data[0]);
    desk.give(at(212), &deltas[2].data[0]);
    assert_eq!(desk.consumer.sizes().complete, 0);
    assert_eq!(desk.consumer.counters().drop_undecodable, 3);
    let next = desk.cut((SampleClass::Key, 6), 103, 500, stamp(160));
    desk.give(at(220), &next.data[0]);
    desk.consumer.handle_timeout(at(400));
    desk.asks();
    let keys: Vec<_> = desk.samples.iter().map(|sample| sample.key).collect();
    assert_eq!(keys, [true, true]);
}

/// A delta sample never comes, its group is long and the table small: the group is given up rather than the stream.
#[test]
fn a_full_table_does_not_stop_the_stream() {
    let config = Config {
        max_samples: 8,
        ..Config::default()
    };
    let mut desk = Desk::started(config);
    desk.asks();
    desk.give_key(at(60));
    desk.consumer.handle_timeout(at(210));
    let mut asked = Vec::new();
    for delta in 101..=130 {
        let now = at(delta * 40);
        let sample = desk.cut((SampleClass::Delta, delta), 5, 500, stamp(0));
        desk.give(now, &sample.data[0]);
        asked.extend(desk.asks().into_iter().map(|ask| ask.id.sequence));
        assert!(desk.consumer.sizes().samples <= 8);
    }
    assert!(asked.contains(&131), "{asked:?}");
    let next = desk.cut((SampleClass::Key, 6), 131, 500, stamp(0));
    desk.give(at(5_300), &next.data[0]);
    desk.asks();
    assert_eq!(desk.samples.len(), 2);
}

/// A rung that is prepared beside the one shown keeps nothing of what the other has shown.
#[test]
fn what_another_rung_has_shown_is_passed_over() {
    let mut desk = Desk::started(Config::default());
    desk.consumer.set_held(at(0), true);
    desk.asks();
    desk.give_key(at(60));
    let delta = desk.cut((SampleClass::Delta, 100), 5, 500, stamp(40));
    desk.give(at(100), &delta.data[0]);
    let next = desk.cut((SampleClass::Key, 6), 101, 500, stamp(80));
    desk.give(at(140), &next.data[0]);
    desk.consumer.handle_timeout(at(1_000));
    desk.asks();
    assert!(desk.samples.is_empty(), "held");
    assert_eq!(desk.consumer.sizes().complete, 3);
    let ready = |consumer: &Consumer, after| {
        let key = consumer.ready_key(at(140), after)?;
        Some((key.position, key.leaves_at))
    };
    assert_eq!(ready(&desk.consumer, None), Some((0, at(210))));
    desk.consumer.pass_over(at(140), 1);
    assert_eq!(desk.consumer.sizes().complete, 1);
    let shown = Shown {
        position: Some(1),
        presented_at: WALL,
    };
    assert_eq!(ready(&desk.consumer, Some(shown)), Some((2, at(290))));
    desk.consumer.begin_at(at(290), 2);
    desk.consumer.set_held(at(290), false);
    desk.asks();
    assert_eq!(desk.samples[0].header.position, 2);
}
