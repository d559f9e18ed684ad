//! Models against the statistics that they are made for.

use namecast_units::Instant;

use super::*;

/// Bits in each window of `millis` of a period.
fn windows(schedule: &Schedule, millis: u64) -> Vec<f64> {
    let until = |at: u64| schedule.capacity_until(Instant::from_nanos(at * 1_000_000));
    let bits = |at: u64| until(at).as_bits() as f64;
    let count = u64::try_from(schedule.period().as_millis()).unwrap() / millis;
    let windows = 0..count;
    windows
        .map(|at| bits((at + 1) * millis) - bits(at * millis))
        .collect()
}

#[derive(Debug, Default)]
struct Statistics {
    /// Mbit/s.
    mean: f64,
    /// Deviation of 1 s averages, of the mean.
    variation: f64,
    /// Correlation of 1 s averages after 1 and 5 s.
    correlation: [f64; 2],
    /// Share of windows of 100 ms without any delivery.
    empty: f64,
    /// Longest time without any delivery, seconds.
    longest: f64,
}

fn statistics(schedule: &Schedule) -> Statistics {
    let seconds = windows(schedule, 1_000);
    let count = seconds.len() as f64;
    let mean = seconds.iter().sum::<f64>() / count;
    let apart = |after: usize| {
        let pairs = seconds.iter().zip(&seconds[after..]);
        let products = pairs.map(|(a, b)| (a - mean) * (b - mean));
        products.sum::<f64>() / (seconds.len() - after) as f64
    };
    let short = windows(schedule, 100);
    let empty = short.iter().filter(|&&bits| bits <= 0.0).count();
    let times = schedule.deliveries().unwrap();
    let longest = times.windows(2).map(|pair| pair[1] - pair[0]).max();
    Statistics {
        mean: mean / 1e6,
        variation: apart(0).sqrt() / mean,
        correlation: [1, 5].map(|after| apart(after) / apart(0)),
        empty: empty as f64 / short.len() as f64,
        longest: f64::from(longest.unwrap()) / 1e3,
    }
}

fn drawn(kind: ModelKind, seed: u64) -> Schedule {
    let mean = None;
    Model { kind, seed, mean }.schedule()
}

/// Bounds on a statistic.
type Between = (f64, f64);

fn is_within(value: f64, (least, most): Between) -> bool {
    (least..=most).contains(&value)
}

/// What every seed must keep to: what five minutes of the kind vary by, around what the measured traces have.
struct Expected {
    kind: ModelKind,
    mean: f64,
    variation: Between,
    after_1: Between,
    empty: Between,
    longest: Between,
}

const fn expected() -> [Expected; 5] {
    [
        Expected {
            kind: ModelKind::Lte,
            mean: 5.0,
            variation: (0.45, 0.85),
            after_1: (0.7, 0.93),
            empty: (0.002, 0.04),
            longest: (0.3, 3.5),
        },
        Expected {
            kind: ModelKind::Umts,
            mean: 1.2,
            variation: (0.9, 1.6),
            after_1: (0.7, 0.95),
            empty: (0.3, 0.55),
            longest: (4.0, 13.0),
        },
        Expected {
            kind: ModelKind::Evdo,
            mean: 0.6,
            variation: (0.75, 1.25),
            after_1: (0.55, 0.9),
            empty: (0.25, 0.5),
            longest: (3.0, 11.0),
        },
        Expected {
            kind: ModelKind::Wifi,
            mean: 20.0,
            variation: (0.17, 0.36),
            after_1: (0.3, 0.8),
            empty: (0.0, 0.01),
            longest: (0.1, 0.35),
        },
        Expected {
            kind: ModelKind::Satellite,
            mean: 20.0,
            variation: (0.2, 0.5),
            after_1: (0.8, 0.97),
            empty: (0.0, 0.003),
            longest: (0.06, 0.12),
        },
    ]
}

#[test]
fn every_seed_has_the_statistics_of_its_kind() {
    for expected in expected() {
        let mut sum = Statistics::default();
        for seed in 1..=8 {
            let found = statistics(&drawn(expected.kind, seed));
            let case = format!("{:?}, seed {seed}: {found:?}", expected.kind);
            assert!(
                is_within(found.mean / expected.mean, (0.96, 1.04)),
                "{case}"
            );
            assert!(is_within(found.variation, expected.variation), "{case}");
            assert!(is_within(found.correlation[0], expected.after_1), "{case}");
            assert!(is_within(found.empty, expected.empty), "{case}");
            assert!(is_within(found.longest, expected.longest), "{case}");
            sum.variation += found.variation / 8.0;
            sum.empty += found.empty / 8.0;
            sum.correlation[0] += found.correlation[0] / 8.0;
            sum.correlation[1] += found.correlation[1] / 8.0;
        }
        // What the measured trace has, give or take what eight draws of five minutes vary by.
        let measured = match expected.kind {
            ModelKind::Lte => (0.64, 0.84, 0.39, 0.016),
            ModelKind::Umts => (1.16, 0.89, 0.38, 0.41),
            _ => continue,
        };
        let case = format!("{:?}: {sum:?}", expected.kind);
        let (variation, after_1, after_5, empty) = measured;
        assert!(is_within(sum.variation / variation, (0.85, 1.15)), "{case}");
        assert!(
            is_within(sum.correlation[0] / after_1, (0.85, 1.1)),
            "{case}"
        );
        assert!(
            is_within(sum.correlation[1] / after_5, (0.7, 1.3)),
            "{case}"
        );
        assert!(is_within(sum.empty / empty, (0.8, 1.25)), "{case}");
    }
}

#[test]
fn a_seed_fixes_the_schedule_and_another_changes_it() {
    for kind in ModelKind::ALL {
        assert_eq!(drawn(kind, 5), drawn(kind, 5), "{kind:?}");
        assert_ne!(drawn(kind, 5), drawn(kind, 6), "{kind:?}");
        assert_eq!(drawn(kind, 5).period(), Model::PERIOD);
    }
}

/// The processes are those of the seed whatever the mean, so silences stay where they are: with four times the deliveries,
/// as many windows or fewer are empty, but all those in silences.
#[test]
fn the_mean_can_be_chosen_and_leaves_silences_as_they_are() {
    let kind = ModelKind::Umts;
    let with = |mean| {
        let mean = Some(Bitrate::kbps(mean));
        statistics(
            &Model {
                kind,
                seed: 2,
                mean,
            }
            .schedule(),
        )
    };
    let (slow, fast) = (with(1_200), with(4_800));
    assert!(is_within(fast.mean / 4.8, (0.97, 1.03)), "{fast:?}");
    assert!(
        is_within(fast.empty / slow.empty, (0.75, 1.0)),
        "{slow:?} {fast:?}"
    );
    assert!(is_within(fast.variation / slow.variation, (0.95, 1.05)));
}

/// A gap of 50 to 100 ms at each multiple of 15 s, of which the ticks of 10 ms make 40 to 110; and the rates of neighbouring
/// assignments, drawn with a deviation of 0.35, are rarely the same within 2 %.
#[test]
fn satellites_change_every_15_seconds_after_a_gap() {
    let schedule = drawn(ModelKind::Satellite, 3);
    let until = |at: u64| schedule.capacity_until(Instant::from_nanos(at * 1_000_000));
    let mut same = 0;
    for at in (15_000..300_000).step_by(15_000) {
        assert_eq!(until(at), until(at + 45), "{at}");
        assert!(until(at) < until(at + 150), "{at}");
        let before = (until(at) - until(at - 5_000)).as_bits() as f64;
        let after = (until(at + 5_100) - until(at + 100)).as_bits() as f64;
        same += u32::from((before / after - 1.0).abs() < 0.02);
    }
    assert!(same <= 4, "{same}");
}
