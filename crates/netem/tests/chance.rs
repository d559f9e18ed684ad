//! Loss, jitter, copies and damage: shares within four standard deviations on both sides, and sequences that do not disturb
//! each other.

use namecast_netem::{Bytes, Config, Jitter, JitterShape, Link, Loss, Output, Queue};
use namecast_units::{Bitrate, Duration, Instant};

/// What became of frame n of those sent, one each microsecond; none if it was lost.
type Arrivals = Vec<Option<Arrival>>;

#[derive(Clone, Debug, PartialEq)]
struct Arrival {
    took: Duration,
    copies: u32,
    octets: Bytes,
}

fn frame(number: usize) -> Bytes {
    let number = u32::try_from(number).expect("there are few").to_be_bytes();
    Bytes::from([number, number, number].concat())
}

/// Whose frame it is though a bit was flipped: two of three copies of the number agree.
fn number(octets: &[u8]) -> usize {
    let word = |at: usize| {
        u32::from_be_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]])
    };
    let (a, b, c) = (word(0), word(4), word(8));
    usize::try_from(if a == b || a == c { a } else { b }).expect("32 bits fit")
}

fn send(config: &Config, seed: u64, count: usize) -> Arrivals {
    assert_eq!(config.validate(), Ok(()));
    let mut link = Link::new(config.clone(), seed);
    let mut arrivals = vec![None; count];
    let mut take = |link: &mut Link| {
        while let Some(output) = link.poll_output() {
            let Output::Delivered { at, frame, .. } = output else {
                continue;
            };
            let index = number(&frame);
            let sent = Instant::from_nanos(index as u64 * 1_000);
            let arrival = arrivals[index].get_or_insert(Arrival {
                took: at.since(sent),
                copies: 0,
                octets: frame,
            });
            arrival.copies += 1;
        }
    };
    for index in 0..count {
        link.handle_frame(Instant::from_nanos(index as u64 * 1_000), frame(index));
        take(&mut link);
    }
    link.handle_timeout(Instant::from_nanos(u64::MAX));
    take(&mut link);
    arrivals
}

fn lost(arrivals: &Arrivals) -> usize {
    arrivals.iter().filter(|arrival| arrival.is_none()).count()
}

/// 50 000 at 2 %: 1000 expected, σ = √(50 000 · 0.02 · 0.98) = 31.3.
#[test]
fn random_loss_has_its_share() {
    let config = Config {
        loss: Loss::Random { share: 0.02 },
        ..Config::default()
    };
    let lost = lost(&send(&config, 3, 50_000));
    assert!((875..=1_125).contains(&lost), "{lost}");
}

#[test]
fn all_or_nothing_is_exact() {
    for (share, expected) in [(0.0, 0), (1.0, 1_000)] {
        let config = Config {
            loss: Loss::Random { share },
            ..Config::default()
        };
        assert_eq!(lost(&send(&config, 4, 1_000)), expected);
    }
}

/// Bursts of 4 that lose 5 %: bad→good 1/4, good→bad 0.05 · 0.25 / 0.95 = 0.013158.
///
/// 200 000 frames have 200 000 · 0.95 · 0.013158 = 2500 bursts, whose length is geometric with mean 4 and σ √12 = 3.46, so the
/// mean of them lies within 4 · 3.46/√2500 = 0.277 of 4. Loss: the chain forgets by 1 − 0.25 − 0.013 = 0.737 a frame, which
/// multiplies the variance of a share by (1 + 0.737)/(1 − 0.737) = 6.6: σ = √(0.05 · 0.95 · 6.6 / 200 000) = 0.00125.
#[test]
fn bursts_have_their_share_and_length() {
    let config = Config {
        loss: Loss::bursts(0.05, 4.0),
        ..Config::default()
    };
    let arrivals = send(&config, 5, 200_000);
    let share = lost(&arrivals) as f64 / 200_000.0;
    assert!((0.045..=0.055).contains(&share), "{share}");
    let bursts = arrivals
        .windows(2)
        .filter(|pair| pair[0].is_some() && pair[1].is_none())
        .count();
    let mean = lost(&arrivals) as f64 / bursts as f64;
    assert!((3.723..=4.277).contains(&mean), "{mean}");
}

/// In the bad state, which holds 1/3 of the time (0.1 / (0.1 + 0.2)), half is lost, in the good one a tenth: 0.3·… in all
/// 1/3 · 0.5 + 2/3 · 0.1 = 0.2333. The chain forgets by 0.7 a frame: variance × 5.67 for its part, 2/9 · 0.16 = 0.0356, and × 1
/// for the rest, 0.1789 − 0.0356 = 0.1433: σ = √((0.0356 · 5.67 + 0.1433) / 100 000) = 0.00186.
#[test]
fn both_states_lose_their_own_share() {
    let loss = Loss::GilbertElliott {
        good_to_bad: 0.1,
        bad_to_good: 0.2,
        loss_good: 0.1,
        loss_bad: 0.5,
    };
    let config = Config {
        loss,
        ..Config::default()
    };
    let share = lost(&send(&config, 6, 100_000)) as f64 / 100_000.0;
    assert!((0.2259..=0.2408).contains(&share), "{share}");
}

#[test]
fn bursts_of_one_are_independent_losses() {
    assert_eq!(Loss::bursts(0.1, 1.0), Loss::Random { share: 0.1 });
    assert_eq!(Loss::bursts(1.0, 9.0), Loss::Random { share: 1.0 });
}

fn jittery(shape: JitterShape, reorder: bool) -> Config {
    Config {
        delay: Duration::from_millis(10),
        jitter: Jitter {
            spread: Duration::from_millis(2),
            shape,
            reorder,
        },
        ..Config::default()
    }
}

fn times(arrivals: &Arrivals) -> Vec<f64> {
    let took = |arrival: &Option<Arrival>| {
        let arrival = arrival.as_ref().expect("nothing is lost");
        arrival.took.as_secs_f64() * 1e3 - 10.0
    };
    arrivals.iter().map(took).collect()
}

/// Uniform over 2 ms: mean 1 ms, σ 0.577 ms, of 10 000 within 4 · 0.00577 = 0.0231; both ends come within 1 %.
#[test]
fn uniform_jitter_fills_its_range() {
    let times = times(&send(&jittery(JitterShape::Uniform, true), 7, 10_000));
    let mean = times.iter().sum::<f64>() / 10_000.0;
    assert!((0.9769..=1.0231).contains(&mean), "{mean}");
    let least = times.iter().copied().fold(f64::MAX, f64::min);
    let most = times.iter().copied().fold(f64::MIN, f64::max);
    assert!((0.0..0.02).contains(&least), "{least}");
    assert!((1.98..=2.0).contains(&most), "{most}");
}

/// The upper half of a bell with σ = 2 ms: half gets nothing (σ of 10 000 coins: 50), the mean is 2/√(2π) = 0.7979 ms, and its
/// deviation √(2 − 0.6366) = 1.168 ms, of 10 000 within 0.0467. Above 2σ = 4 ms lie 2.275 %: 227.5, σ 14.9.
#[test]
fn normal_jitter_is_half_a_bell() {
    let times = times(&send(&jittery(JitterShape::Normal, true), 8, 10_000));
    let none = times.iter().filter(|&&took| took <= 0.0).count();
    assert!((4_800..=5_200).contains(&none), "{none}");
    let mean = times.iter().sum::<f64>() / 10_000.0;
    assert!((0.7512..=0.8446).contains(&mean), "{mean}");
    let far = times.iter().filter(|&&took| took > 4.0).count();
    assert!((168..=287).contains(&far), "{far}");
}

/// Frames are 1 µs apart and jitter is 2 ms: nearly everything overtakes if it may, and nothing if not.
#[test]
fn order_is_kept_unless_told_otherwise() {
    let overtaken = |reorder| {
        let arrivals = send(&jittery(JitterShape::Uniform, reorder), 9, 5_000);
        let at: Vec<f64> = (times(&arrivals).iter().enumerate())
            .map(|(index, took)| index as f64 * 1e-3 + took)
            .collect();
        at.windows(2)
            .filter(|pair| pair[1] < pair[0] - 1e-9)
            .count()
    };
    assert_eq!(overtaken(false), 0);
    let count = overtaken(true);
    assert!((2_300..=2_700).contains(&count), "{count}");
}

/// 20 000 at 10 %: σ = √(20 000 · 0.09) = 42.4.
#[test]
fn copies_have_their_share_and_are_alike() {
    let config = Config {
        duplicate: 0.1,
        ..Config::default()
    };
    let arrivals = send(&config, 10, 20_000);
    let copies = |n| {
        let has = |arrival: &&Option<Arrival>| arrival.as_ref().is_some_and(|it| it.copies == n);
        arrivals.iter().filter(has).count()
    };
    assert!((1_830..=2_170).contains(&copies(2)), "{}", copies(2));
    assert_eq!(copies(1) + copies(2), 20_000);
}

/// 20 000 at 10 %: σ = 42.4. Exactly one bit differs, and each of the 96 is hit: 20.8 times on average, σ 4.56, so 3 to 39.
#[test]
fn damage_flips_one_bit_anywhere() {
    let config = Config {
        corrupt: 0.1,
        ..Config::default()
    };
    let arrivals = send(&config, 11, 20_000);
    let mut hits = [0_u32; 96];
    let mut damaged = 0;
    for (index, arrival) in arrivals.iter().enumerate() {
        let octets = &arrival.as_ref().expect("nothing is lost").octets;
        let original = frame(index);
        let flipped: Vec<usize> = (0..96)
            .filter(|bit| (octets[bit / 8] ^ original[bit / 8]) >> (7 - bit % 8) & 1 == 1)
            .collect();
        assert!(flipped.len() <= 1, "{flipped:?}");
        flipped.iter().for_each(|&bit| hits[bit] += 1);
        damaged += flipped.len();
    }
    assert!((1_830..=2_170).contains(&damaged), "{damaged}");
    assert!(hits.iter().all(|hit| (3..=39).contains(hit)), "{hits:?}");
}

/// The sender may still hold the octets: a cache, another link. They stay as they were.
#[test]
fn damage_is_done_to_a_copy_and_counted() {
    let config = Config {
        corrupt: 1.0,
        duplicate: 1.0,
        ..Config::default()
    };
    let mut link = Link::new(config, 12);
    let mine = frame(5);
    link.handle_frame(Instant::ZERO, mine.clone());
    assert_eq!(mine, frame(5));
    let outputs: Vec<_> = core::iter::from_fn(|| link.poll_output()).collect();
    assert_eq!(outputs.len(), 2);
    assert_eq!(outputs[0], outputs[1]);
    assert!(matches!(&outputs[0], Output::Delivered { frame, .. } if *frame != mine));
    let counters = link.counters();
    assert_eq!(
        (counters.corrupted, counters.duplicated, counters.delivered),
        (1, 1, 2)
    );
    link.handle_frame(Instant::ZERO, Bytes::new());
    assert_eq!(link.counters().corrupted, 1);
}

fn everything() -> Config {
    Config {
        rate: Some(Bitrate::mbps(95).into()),
        delay: Duration::from_millis(3),
        jitter: Jitter {
            spread: Duration::from_micros(300),
            shape: JitterShape::Normal,
            reorder: true,
        },
        loss: Loss::bursts(0.05, 3.0),
        queue: Queue::red(30),
        duplicate: 0.05,
        corrupt: 0.05,
        ..Config::default()
    }
}

#[test]
fn a_seed_fixes_everything_and_another_changes_it() {
    let config = everything();
    assert_eq!(send(&config, 1, 3_000), send(&config, 1, 3_000));
    assert_ne!(send(&config, 1, 3_000), send(&config, 2, 3_000));
}

/// Loss, copies, damage and jitter of the n-th frame stay as they are when one of the others, or the queue, changes.
#[test]
fn impairments_do_not_disturb_each_other() {
    // Without a rate nothing waits, so that times are delay and jitter alone.
    let base = Config {
        rate: None,
        ..everything()
    };
    let all = send(&base, 1, 3_000);
    let without_loss = Config {
        loss: Loss::None,
        ..base.clone()
    };
    let mut survivors = 0;
    for (with, without) in all.iter().zip(send(&without_loss, 1, 3_000)) {
        if let Some(with) = with {
            assert_eq!(Some(with), without.as_ref());
            survivors += 1;
        }
    }
    assert!((2_500..3_000).contains(&survivors), "{survivors}");

    let alone = Config {
        loss: base.loss,
        ..Config::default()
    };
    let is_lost = |arrivals: &Arrivals| arrivals.iter().map(Option::is_none).collect::<Vec<_>>();
    assert_eq!(is_lost(&all), is_lost(&send(&alone, 1, 3_000)));

    let undamaged = Config {
        corrupt: 0.0,
        duplicate: 0.0,
        queue: Queue::pi2(30),
        ..base
    };
    let took = |arrivals: &Arrivals| {
        let took = |it: &Option<Arrival>| it.as_ref().map(|it| it.took);
        arrivals.iter().map(took).collect::<Vec<_>>()
    };
    assert_eq!(took(&all), took(&send(&undamaged, 1, 3_000)));
}

/// Half are lost and half are copied, each by itself: of 10 000, 5000 arrive and half of these twice, σ √(5000/4) = 35.4. The same
/// numbers for both would give all or none.
#[test]
fn purposes_do_not_share_their_numbers() {
    let config = Config {
        loss: Loss::Random { share: 0.5 },
        duplicate: 0.5,
        ..Config::default()
    };
    let arrivals = send(&config, 13, 10_000);
    let arrived = arrivals.iter().flatten();
    let twice = arrived.filter(|arrival| arrival.copies == 2).count();
    assert!((2_350..=2_650).contains(&twice), "{twice}");
}

/// A million frames: the link holds no more than what is under way, and all of them are accounted for.
#[test]
fn frames_are_conserved() {
    let mut link = Link::new(
        Config {
            rate: Some(Bitrate::mbps(80).into()),
            duplicate: 0.0,
            ..everything()
        },
        1,
    );
    let mut taken = 0_u64;
    for index in 0..1_000_000_u64 {
        link.handle_frame(Instant::from_nanos(index * 1_000), frame(0));
        while link.poll_output().is_some() {
            taken += 1;
        }
        assert!(index + 1 - taken < 4_000, "{index} {taken}");
    }
    let counters = *link.counters();
    assert_eq!(counters.delivered + counters.dropped(), taken);
    assert!(counters.queue_full > 100_000 && counters.marked > 10_000);
}
