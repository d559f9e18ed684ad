//! What the path is found to be like.

use core::time::Duration;

use namecast_units::{Bitrate, ByteSize};

use super::*;

fn bench(rate: Bitrate) -> Bench {
    Bench::new(Link::new(rate, ms(20), 100))
}

/// By how much the path was reported to have grown, and when.
fn growths(bench: &Bench) -> Vec<(Instant, Duration)> {
    let growth = |(at, event): &(Instant, Event)| match event {
        Event::PathGrew(shift) => Some((*at, *shift)),
        _ => None,
    };
    bench.events.iter().filter_map(growth).collect()
}

/// Samples that are published at once come as fast as the link carries them, however little of it they take.
#[test]
fn capacity_is_the_rate_within_bursts() {
    for (link, media) in [
        (1_000, 500),
        (4_000, 1_000),
        (4_000, 2_000),
        (4_000, 3_800),
        (10_000, 3_000),
    ] {
        let mut bench = bench(Bitrate::kbps(link));
        bench.play(Bitrate::kbps(media), ms(3_000));
        let path = bench.uplink.path();
        let rate = (link * 1_000) as f64;
        let range = 0.9 * rate..=1.1 * rate;
        assert!(range.contains(&path.capacity()), "{}", path.capacity());
        assert!(range.contains(&path.fast_capacity()));
        assert!(range.contains(&path.quantile(0.5)));
        assert!(path.cross(bench.now) < 0.05, "there is nobody else");
        assert_eq!(bench.link.overflows, 0);
    }
}

/// A machine wakes up after 10 to 61 ms, so that packets come in bursts and late. If it says so, the path stays what it was: 4 Mbit/s without queue
/// and loss. If not, bursts are taken for a faster link.
#[test]
fn late_wake_ups_tell_nothing_of_the_path() {
    for wake_delay in [Duration::ZERO, ms(61)] {
        let mut bench = bench(Bitrate::mbps(4));
        bench.play(Bitrate::mbps(1), ms(3_000));
        bench.uplink.set_wake_delay(wake_delay);
        bench.wake_periods = [10, 47, 23, 61].map(ms).to_vec();
        bench.play(Bitrate::mbps(1), ms(5_000));
        let (now, path) = (bench.now, bench.uplink.path());
        assert_eq!(path.is_overloaded(), !wake_delay.is_zero());
        if wake_delay.is_zero() {
            assert!(path.capacity() > 5e6, "{}", path.capacity());
            continue;
        }
        assert!((3.9e6..4.1e6).contains(&path.capacity()));
        assert!(path.queue_max(now, ms(4_000)) < 0.005);
        assert!(path.loss(now, ms(4_000)) < 1e-9);
        assert_eq!(growths(&bench), []);
        // With time again, it measures as before.
        bench.uplink.set_wake_delay(Duration::ZERO);
        bench.wake_periods.clear();
        bench.link.rate = Bitrate::mbps(2);
        bench.play(Bitrate::mbps(1), ms(5_000));
        let capacity = bench.uplink.path().capacity();
        assert!((1.8e6..2.2e6).contains(&capacity), "{capacity}");
    }
}

/// Two Interests of 20 ms, and 2.16 ms on the link.
#[test]
fn round_trip_is_without_queues() {
    let mut bench = bench(Bitrate::mbps(4));
    bench.play(Bitrate::mbps(2), ms(2_000));
    let rtt = bench.uplink.path().round_trip(bench.now);
    assert_eq!(rtt, Duration::from_micros(42_160));
}

/// The link falls from 4 to 1 Mbit/s under media of 2 Mbit/s.
///
/// Within 400 ms three quarters of the fall are found, and after a second no more than a fifth is missing or too much; that
/// it is as bad as 0.8 Mbit/s is never accepted.
#[test]
fn fast_capacity_follows_a_fall() {
    let mut bench = bench(Bitrate::mbps(4));
    bench.play(Bitrate::mbps(2), ms(5_000));
    bench.link.rate = Bitrate::mbps(1);
    let mut least = f64::INFINITY;
    for millis in (10..=1_500).step_by(10) {
        bench.play(Bitrate::mbps(2), ms(10));
        let fast = bench.uplink.path().fast_capacity();
        least = least.min(fast);
        assert!(fast > 0.8e6, "{fast} after {millis} ms");
        assert!(millis != 400 || least < 1.75e6, "{least}");
        assert!(millis < 1_000 || fast < 1.2e6, "{fast} after {millis} ms");
    }
}

/// Queues are 100 ms longer from one packet to the next, and stay so, whatever is requested: the path is longer.
#[test]
fn a_path_that_becomes_longer_at_once_is_reported() {
    for kbps in [200, 1_000, 2_000, 3_800] {
        let mut bench = bench(Bitrate::mbps(4));
        bench.play(Bitrate::kbps(kbps), ms(5_000));
        bench.link.data_delay += ms(100);
        while growths(&bench).is_empty() && bench.now < at(6_500) {
            bench.play(Bitrate::kbps(kbps), ms(10));
        }
        let rtt = bench.uplink.path().round_trip(bench.now);
        assert!((ms(141)..=ms(144)).contains(&rtt), "{rtt:?}");
        bench.play(Bitrate::kbps(kbps), ms(5_000));
        let growths = growths(&bench);
        assert_eq!(growths.len(), 1, "{growths:?}");
        let (reported_at, shift) = growths[0];
        assert!(
            (at(5_120)..=at(6_200)).contains(&reported_at),
            "{reported_at}"
        );
        assert!((ms(98)..=ms(102)).contains(&shift), "{shift:?}");
        let path = bench.uplink.path();
        assert!(path.queue_min(bench.now, ms(1_000)) < 0.004);
        let rtt = path.round_trip(bench.now);
        assert!((ms(141)..=ms(144)).contains(&rtt), "{rtt:?}");
    }
}

/// The link falls from 4 Mbit/s to what the media takes or less, so that it is full and packets wait for more than 40 ms.
#[test]
fn a_queue_of_a_full_link_is_no_longer_path() {
    for (link, media) in [
        (2_000, 2_000),
        (1_500, 2_000),
        (1_000, 2_000),
        (4_000, 5_000),
    ] {
        let mut bench = bench(Bitrate::mbps(4));
        bench.play(Bitrate::mbps(2), ms(5_000));
        bench.link.rate = Bitrate::kbps(link);
        let mut longest: f64 = 0.0;
        for _ in 0..30 {
            bench.play(Bitrate::kbps(media), ms(500));
            let path = bench.uplink.path();
            longest = longest.max(path.queue_max(bench.now, ms(500)));
        }
        assert!((0.04..0.2).contains(&longest), "{longest} at {link} kbit/s");
        assert_eq!(growths(&bench), []);
    }
}

/// The same of slow links, where the least window alone is a queue of some tenths of a second.
#[test]
fn a_queue_of_a_slow_link_is_no_longer_path() {
    for link in [150, 200, 250, 300, 400, 600] {
        for share in [0.5, 0.8, 0.95, 1.1, 1.5] {
            for before in [link, 4_000] {
                let mut bench = bench(Bitrate::kbps(before));
                let media = Bitrate::bps((link as f64 * 1e3 * share) as u64);
                bench.play(media, ms(5_000));
                bench.link.rate = Bitrate::kbps(link);
                bench.play(media, ms(20_000));
                // A packet takes so much longer where the link is slower.
                let packet = Duration::from_secs_f64(8.64 / link as f64);
                let growths = growths(&bench);
                let sum: Duration = growths.iter().map(|(_, shift)| *shift).sum();
                assert!(sum <= packet, "{growths:?} at {link} kbit/s");
            }
        }
    }
}

/// Data is requested at 4.1 Mbit/s, and a link of 4 Mbit/s carries it: for each second, the queue is 25 ms longer.
#[test]
fn a_queue_that_grows_slowly_is_no_longer_path() {
    let link = Link::new(Bitrate::mbps(4), ms(20), 200);
    let control: Control = "rate:4100kbps".parse().unwrap();
    let budget = control.build(at(0), Bitrate::mbps(4));
    let mut bench = Bench::with(link, UplinkConfig::default(), budget);
    for index in 0..6_000 {
        bench.want(want(token(1, 1, index), Kind::Delta), at(0));
    }
    bench.uplink.set_need(Bitrate::kbps(4_100));
    bench.run_for(ms(8_000));
    let queue = bench.uplink.path().queue_min(bench.now, ms(1_000));
    assert!((0.15..0.25).contains(&queue), "{queue}");
    assert_eq!(growths(&bench), []);
}

/// A path that is back to what it was: media of 25 samples a second shows it with the next lead.
#[test]
fn a_path_that_is_not_longer_after_all_is_reported() {
    let mut bench = bench(Bitrate::mbps(4));
    bench.play(Bitrate::mbps(2), ms(5_000));
    bench.link.data_delay += ms(100);
    bench.play(Bitrate::mbps(2), ms(3_000));
    let shrank = |bench: &Bench| {
        let events = bench.events.iter();
        let shrank = events.filter(|(_, event)| *event == Event::PathShrank);
        shrank.map(|(at, _)| *at).collect::<Vec<_>>()
    };
    assert_eq!((growths(&bench).len(), shrank(&bench).len()), (1, 0));

    bench.link.data_delay = ms(20);
    bench.play(Bitrate::mbps(2), ms(2_000));
    let shrank = shrank(&bench);
    assert_eq!(shrank.len(), 1);
    assert!(
        (at(8_000)..=at(8_200)).contains(&shrank[0]),
        "{}",
        shrank[0]
    );
    let rtt = bench.uplink.path().round_trip(bench.now);
    assert!((ms(42)..=ms(43)).contains(&rtt), "{rtt:?}");
}

/// Half a second of nothing: the path neither flows nor is there anything to say that it is slower.
#[test]
fn silence_is_no_measurement() {
    let mut bench = bench(Bitrate::mbps(4));
    bench.play(Bitrate::mbps(2), ms(3_000));
    let path = bench.uplink.path();
    assert!(path.is_flowing(bench.now));
    let capacity = path.capacity();
    bench.run_for(ms(1_000));
    let last = bench.uplink.path().last_arrival();
    bench.run_for(ms(1_000));
    let path = bench.uplink.path();
    assert!(!path.is_flowing(bench.now));
    assert_eq!(path.last_arrival(), last);
    assert!((path.capacity() / capacity - 1.0).abs() < 0.01);
    assert!(path.queue_now() < 1e-9);
    assert_eq!(path.backlogged_since(), None);
}

/// What the uplink knows of its path after Data that came, and after what the consumer said of it.
fn path_after(said: impl Fn(&mut Uplink, Token)) -> String {
    let mut uplink = uplink(UplinkConfig::default());
    let token = token(1, 1, 0);
    for index in 0..2 {
        let token = self::token(1, 1, index);
        uplink.want(at(0), want(token, Kind::Delta));
    }
    assert_eq!(sent(&mut uplink, at(0)).len(), 2);
    uplink.handle_timeout(at(60));
    let before = format!("{:?}", uplink.path());
    let found = answer(
        &mut uplink,
        at(61),
        token,
        &Received::new(ByteSize::bytes(100_000), true),
    );
    assert_eq!(found.map(|it| it.token), Some(token));
    said(&mut uplink, token);
    uplink.handle_timeout(at(61));
    let after = format!("{:?}", uplink.path());
    if before == after {
        String::new()
    } else {
        after
    }
}

#[test]
fn data_that_is_rejected_is_no_measurement() {
    let bad = path_after(|uplink, token| uplink.reject(token));
    assert_eq!(bad, "");
    let good = path_after(|_, _| {});
    assert_ne!(good, "");
    let other = path_after(|uplink, _| uplink.reject(token(1, 1, 1)));
    assert_eq!(other, good);
}

/// F of \[DCTCP\] with a gain of 1/64: after one mark 1/64, and after another packet without one 63/64 of that.
#[test]
fn marks_are_smoothed() {
    let mut uplink = uplink(UplinkConfig::default());
    let mut marked = Vec::new();
    for (index, is_marked) in [(0, true), (1, false)] {
        uplink.want(at(0), want(token(1, 1, index), Kind::Sound));
        uplink.handle_timeout(at(0));
        answer(
            &mut uplink,
            at(60),
            token(1, 1, index),
            &Received::new(SIZE, is_marked),
        );
        uplink.handle_timeout(at(60));
        marked.push(uplink.path().marked());
    }
    assert!((marked[0] - 1.0 / 64.0).abs() < 1e-12);
    assert!((marked[1] - 63.0 / 64.0 / 64.0).abs() < 1e-12);
}

#[test]
fn an_offered_rate_holds_for_a_second() {
    let mut uplink = uplink(UplinkConfig::default());
    uplink.want(at(900), want(token(1, 1, 0), Kind::Sound));
    uplink.handle_timeout(at(900));
    let mut received = Received::new(SIZE, false);
    received.feedback.offered = Some(Bitrate::mbps(3));
    answer(&mut uplink, at(1_000), token(1, 1, 0), &received);
    uplink.handle_timeout(at(1_000));
    let path = uplink.path();
    assert_eq!(path.offered(at(2_000)), Some(Bitrate::mbps(3)));
    assert_eq!(path.offered(at(2_001)), None);
}
