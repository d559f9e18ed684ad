use namecast_units::{Duration, Random};

use super::*;

fn config(window: usize, estimator: RateEstimator) -> RateFeedbackConfig {
    RateFeedbackConfig {
        window,
        estimator,
        ..RateFeedbackConfig::default()
    }
}

fn at(micros: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(micros)
}

/// A flow after Data of 1000 bytes at these times, in microseconds, each requested 20 ms before.
fn flow(config: &RateFeedbackConfig, times: impl IntoIterator<Item = u64>) -> Flow {
    let mut flow = Flow::new(config);
    for micros in times {
        let (now, asked_at) = (at(micros + 20_000), at(micros));
        flow.on_data(now, asked_at, ByteSize::bytes(1_000), config);
    }
    flow
}

/// 1000 bytes each millisecond are 8 Mbit/s: from the first of 48 to the last, 47 ms. As printed, 48 packets in 47 ms are
/// 8.170 213 Mbit/s, 2.1 % too much.
#[test]
fn the_rate_is_that_of_the_intervals_and_as_printed_one_packet_more() {
    let resolved = config(48, RateEstimator::Intervals);
    let steady = || (0..48).map(|n| n * 1_000);
    assert_eq!(flow(&resolved, steady()).capacity(), Some(Bitrate::mbps(8)));
    assert_eq!(flow(&resolved, steady().take(47)).capacity(), None);
    let printed = config(48, RateEstimator::Packets);
    assert_eq!(
        flow(&printed, steady()).capacity(),
        Some(Bitrate::bps(8_170_213))
    );
}

/// With N = 3: at 0, 1, 2 ms 2000 bytes in 2 ms, 8 Mbit/s. Then one 4 ms later: 2000 bytes in 5 ms, 3.2 Mbit/s, and
/// c = 0.75 · 3.2 + 0.25 · 8 = 4.4. The intervals 1 and 4 have the mean 2.5 and the deviation √4.5 = 2.12, so Cv = 0.85.
#[test]
fn the_newest_measurement_has_three_quarters_of_the_weight() {
    let config = config(3, RateEstimator::Intervals);
    assert_eq!(
        flow(&config, [0, 1_000, 2_000, 6_000]).capacity(),
        Some(Bitrate::kbps(4_400))
    );
}

/// Of 47 intervals one is g times as long as the others: Cv = 1 at g = (46 + √47) / (√47 − 1) = 9.026. While it is among the
/// last 47 the rate stays what it was, and is measured again with the 48th Data after the pause.
#[test]
fn one_pause_of_nine_intervals_silences_the_flow_for_as_long_as_it_is_seen() {
    let config = config(48, RateEstimator::Intervals);
    let with_pause = |pause: u64, after: u64| {
        let before = (0..48).map(|n| n * 1_000);
        let after = (0..=after).map(|n| 47_000 + pause + n * 500);
        flow(&config, before.chain(after)).capacity()
    };
    assert_eq!(with_pause(9_030, 0), Some(Bitrate::mbps(8)));
    assert_ne!(with_pause(9_020, 0), Some(Bitrate::mbps(8)));
    assert_eq!(with_pause(100_000, 46), Some(Bitrate::mbps(8)));
    // 16 Mbit/s with a weight of 0.75, and of the measurement before, with the pause, 47000 · 8 bit / 123 ms = 3.06, and so on.
    let after = with_pause(100_000, 47).expect("measured");
    assert!(
        (Bitrate::kbps(12_700)..=Bitrate::kbps(12_800)).contains(&after),
        "{after}"
    );
}

/// Interests in bursts of eight, whose Data the link spaces: only the Interests vary.
#[test]
fn bursts_of_interests_silence_it_too() {
    let config = config(48, RateEstimator::Intervals);
    let mut flow = Flow::new(&config);
    for number in 0..480 {
        let asked_at = at(number / 8 * 8_000);
        flow.on_data(
            at(20_000 + number * 1_000),
            asked_at,
            ByteSize::bytes(1_000),
            &config,
        );
    }
    assert_eq!(flow.capacity(), None);
    assert!(flow.data.are_steady() && !flow.interests.are_steady());
}

#[test]
fn data_that_all_come_at_once_have_no_rate() {
    let config = config(3, RateEstimator::Packets);
    let mut flow = flow(&config, [5; 10]);
    assert_eq!(flow.capacity(), None);
    // The clock of a caller that goes back, and the end of time.
    for now in [Instant::ZERO, Instant::from_nanos(u64::MAX), Instant::ZERO] {
        flow.on_data(now, Instant::ZERO, ByteSize::bytes(u64::MAX), &config);
    }
    assert!(!flow.data.are_steady());
}

/// The equations as they are written, over all times that there were.
fn naive(packets: &[(u64, u64, u64)], config: &RateFeedbackConfig) -> Option<f64> {
    let cv = |times: &[u64]| {
        let gaps: Vec<f64> = times
            .windows(2)
            .map(|pair| pair[1].saturating_sub(pair[0]) as f64)
            .collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let squares: f64 = gaps.iter().map(|gap| (gap - mean) * (gap - mean)).sum();
        (squares / (gaps.len() - 1) as f64).sqrt() / mean
    };
    let (mut rate, mut capacity) = (None, None);
    for window in packets.windows(config.window) {
        let [asked, came]: [Vec<u64>; 2] =
            [|it: &(u64, u64, u64)| it.0, |it: &(u64, u64, u64)| it.1]
                .map(|of| window.iter().map(of).collect());
        let skipped = usize::from(config.estimator == RateEstimator::Intervals);
        let octets: u64 = window[skipped..].iter().map(|it| it.2).sum();
        let sample = (octets * 8) as f64 * 1e6 / (came[came.len() - 1] - came[0]) as f64;
        let next = rate.map_or(sample, |last: f64| 0.75 * sample + 0.25 * last);
        rate = Some(next);
        if cv(&asked) < 1.0 && cv(&came) < 1.0 {
            capacity = rate;
        }
    }
    capacity
}

#[test]
fn a_flow_is_what_the_equations_say() {
    let mut random = Random::from_seed(7);
    for (window, estimator) in [
        (3, RateEstimator::Packets),
        (16, RateEstimator::Intervals),
        (48, RateEstimator::Packets),
    ] {
        let config = config(window, estimator);
        let mut flow = Flow::new(&config);
        let (mut asked, mut came, mut packets) = (0, 100_000, Vec::new());
        for _ in 0..600 {
            let pause = |random: &mut Random| {
                if random.chance(0.02) {
                    20_000
                } else {
                    200 + random.below(1_500)
                }
            };
            asked += pause(&mut random);
            came = (came + pause(&mut random)).max(asked + 1_000);
            let size = 500 + random.below(8_000);
            packets.push((asked, came, size));
            flow.on_data(at(came), at(asked), ByteSize::bytes(size), &config);
            let expected = naive(&packets, &config);
            let expected = expected.map(|rate| Bitrate::bps(rate.round() as u64));
            let is_near = |(a, b): (Bitrate, Bitrate)| a.as_bps().abs_diff(b.as_bps()) <= 1;
            assert!(
                flow.capacity()
                    .zip(expected)
                    .map_or(flow.capacity() == expected, is_near),
                "{:?} instead of {expected:?}",
                flow.capacity()
            );
        }
    }
}
