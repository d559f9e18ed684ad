//! Clocks go wrong in virtual time.

use namecast_units::Random;

use super::*;

const KEEP: Duration = Duration::from_hours(3);
const CHUNK: Duration = Duration::from_secs(10);
const HOUR: i128 = 3_600_000_000;
/// The true time at the monotonic clock's zero.
const TRUE: i128 = 1_760_000_000_000_000;

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

/// Both clocks, `seconds` after zero, of a host whose wall clock is `wrong` microseconds ahead.
fn moment(seconds: u64, wrong: i128) -> Moment {
    let micros = TRUE + i128::from(seconds) * 1_000_000 + wrong;
    Moment {
        monotonic: at(seconds),
        wall: Timestamp::from_micros(u64::try_from(micros).unwrap()),
    }
}

fn retention(now: Moment) -> Retention {
    Retention::new(
        now,
        RetentionConfig {
            keep: Some(KEEP),
            ..RetentionConfig::default()
        },
    )
}

/// A chunk that was begun `seconds` before the true time at zero.
fn found(seconds: u64, writer: u32) -> ChunkId {
    let micros = u64::try_from(TRUE).unwrap() - seconds * 1_000_000;
    ChunkId {
        begun_at: Timestamp::from_micros(micros),
        writer,
    }
}

/// When a chunk expires, in seconds after zero, if `wrong(second)` is how far the wall clock is ahead.
fn expiry(chunk: ChunkId, received_at: Option<Instant>, wrong: impl Fn(u64) -> i128) -> u64 {
    let mut retention = retention(moment(0, wrong(0)));
    if received_at.is_none() {
        retention.on_found(chunk);
        // The same writer went on for a while.
        let mut last = chunk;
        last.begun_at = last.begun_at + Duration::from_secs(60);
        retention.on_found(last);
    }
    (0..100_000)
        .find(|&second| {
            retention.handle_time(moment(second, wrong(second)));
            retention.is_expired(retention.age(at(second), chunk, received_at), CHUNK)
        })
        .expect("it expires some day")
}

/// Whatever the wall clock shows, for however long, a chunk that came at 500 s is deleted at 500 s + 3 h + 10 s = 11 310 s,
/// once that is over: at 11 311 s.
#[test]
fn no_wall_clock_touches_what_came_while_the_archive_runs() {
    let id = found(0, 1);
    for wrong in [2 * HOUR, -2 * HOUR, 8_760 * HOUR, -8_760 * HOUR] {
        for span in [0..10, 0..3_600, 600..610, 600..4_200, 0..100_000] {
            let wrong = |second| if span.contains(&second) { wrong } else { 0 };
            assert_eq!(expiry(id, Some(at(500)), wrong), 11_311, "{span:?}");
        }
    }
}

/// Random steps of the wall clock, every minute or so.
#[test]
fn a_clock_that_never_settles_deletes_nothing_early() {
    for seed in 0..20 {
        let mut random = Random::from_seed(seed);
        let steps: Vec<_> = (0..2_000)
            .map(|_| i128::from(random.below(40_000)) * 1_000_000 - 20_000_000_000)
            .collect();
        let wrong = |second: u64| steps[usize::try_from(second / 60).unwrap()];
        assert_eq!(
            expiry(found(0, 1), Some(at(500)), wrong),
            11_311,
            "seed {seed}"
        );
        // 2 h old at opening: due after one more hour, but nobody can say so before the clock has settled; its writer
        // went on for a minute, which is 2 h 59 min after opening at most.
        let due = expiry(found(7_200, 1), None, wrong);
        assert!((3_611..=10_751).contains(&due), "seed {seed}: {due}");
    }
}

/// A chunk begun 2 h before opening, right clock: due 1 h + 10 s after opening, exactly. The same if the clock goes wrong
/// later, by whatever, for however long: the archive knows by then how long it did not run.
#[test]
fn chunks_found_at_opening_are_deleted_on_time() {
    for wrong in [2 * HOUR, -2 * HOUR, 8_760 * HOUR, -8_760 * HOUR] {
        for span in [0..0, 0..10, 700..710, 700..4_300] {
            let wrong = |second| if span.contains(&second) { wrong } else { 0 };
            assert_eq!(expiry(found(7_200, 1), None, wrong), 3_611, "{span:?}");
        }
        // Due 16 s after opening, when nobody can know: ten minutes late at most, and never early.
        let due = found(10_785 + 10, 1);
        let wrong = |second| if second < 10 { wrong } else { 0 };
        assert!((16..=611).contains(&expiry(due, None, wrong)));
    }
}

/// A clock that is behind what was kept is not accepted, for however long: nothing is deleted early, and once it is put
/// right the rest follows after ten minutes.
#[test]
fn a_clock_that_contradicts_what_was_kept_is_not_accepted() {
    let chunk = found(7_200, 1);
    for wrong in [-3 * HOUR, -8_760 * HOUR] {
        let wrong = |second| if second < 3_600 { wrong } else { 0 };
        // Due at 3 611 s; the clock is right from 3 600 s, and accepted from 4 200 s on.
        assert_eq!(expiry(chunk, None, wrong), 4_200);
    }
}

#[test]
fn names_follow_a_clock_after_ten_minutes_and_never_go_back() {
    let mut retention = retention(moment(0, -HOUR));
    let shown = |retention: &Retention, second| {
        i128::from(retention.stamp(at(second), None).as_micros())
            - TRUE
            - i128::from(second) * 1_000_000
    };
    assert_eq!(shown(&retention, 5), -HOUR);
    retention.handle_time(moment(10, 0));
    retention.handle_time(moment(609, 0));
    assert_eq!(shown(&retention, 609), -HOUR);
    retention.handle_time(moment(610, 0));
    assert_eq!(shown(&retention, 610), 0);
    let newest = moment(700, HOUR).wall;
    let after = retention.stamp(at(700), Some(newest));
    assert_eq!(after.micros_since(newest), 1);
}

#[test]
fn a_bounded_number_is_deleted_each_minute() {
    let mut retention = retention(moment(0, 0));
    assert_eq!(retention.allowance(at(1)), 120);
    (0..120).for_each(|_| retention.on_deleted());
    assert_eq!(retention.allowance(at(59)), 0);
    assert_eq!(retention.allowance(at(60)), 120);
}
