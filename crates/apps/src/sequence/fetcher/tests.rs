//! The fetcher on paths that lose, reorder, refuse and forge.

use core::time::Duration;
use namecast_packet::signature::{DigestVerifier, NullSigner};

use namecast_packet::{Name, Nonce};
use namecast_stream::path::NumberedConfig;
use namecast_stream::rate::RateControl;
use namecast_units::Random;

use super::*;

const MS: Duration = Duration::from_millis(1);

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn prefix() -> Name {
    "/p/q".parse().unwrap()
}

fn data(number: u64) -> Bytes {
    let name = prefix().builder().sequence(number).finish();
    let data = Data::builder(name).content(vec![0; 1_000]);
    data.sign(&NullSigner).wire().clone()
}

fn control(text: &str) -> RateControl {
    text.parse().unwrap()
}

fn config(controller: &str) -> NumberedConfig {
    NumberedConfig {
        control: control(controller),
        ..NumberedConfig::default()
    }
}

/// Numbers and Nonces of the Interests that are sent.
fn asks(fetcher: &mut Fetcher) -> Vec<(u64, Nonce)> {
    core::iter::from_fn(|| fetcher.poll_output())
        .map(|wire| {
            let interest = Interest::decode(wire).unwrap();
            let last = interest.name().last().unwrap();
            let number = last.number_of(Component::SEQUENCE).unwrap();
            assert_eq!(interest.name().parent(), prefix());
            assert_eq!(interest.lifetime(), Duration::from_secs(2));
            (number, interest.nonce().unwrap())
        })
        .collect()
}

fn numbers(fetcher: &mut Fetcher) -> Vec<u64> {
    asks(fetcher)
        .into_iter()
        .map(|(number, _)| number)
        .collect()
}

fn started(requests: NumberedConfig) -> Fetcher {
    begun(FetcherConfig::new(prefix(), requests))
}

fn begun(config: FetcherConfig) -> Fetcher {
    let mut fetcher = Fetcher::new(config);
    assert_eq!(fetcher.poll_timeout(), None);
    fetcher.start(at(0));
    fetcher
}

#[test]
fn a_window_is_kept_full() {
    let mut fetcher = started(config("window:3"));
    assert_eq!(numbers(&mut fetcher), [0, 1, 2]);
    fetcher.handle_packet(at(20), data(0));
    assert_eq!(numbers(&mut fetcher), [3]);
    fetcher.handle_packet(at(21), data(1));
    fetcher.handle_packet(at(21), data(2));
    assert_eq!(numbers(&mut fetcher), [4, 5]);
    let figures = fetcher.figures();
    assert_eq!(
        (figures.requests.interests, figures.data, figures.in_flight),
        (6, 3, 3)
    );
    assert_eq!(figures.content, ByteSize::bytes(3_000));
    assert_eq!((figures.requests.gaps, figures.rtt_samples), (0, 3));
    assert_eq!(figures.min_rtt, Some(20 * MS));
    assert_eq!(figures.greatest_rtt, Some(21 * MS));
    assert_eq!(figures.rtt_sum_nanos, 62_000_000);
}

/// 1 Mbit/s and 1250 octets: an Interest each 10 ms, exactly.
#[test]
fn a_rate_is_paced_to_the_nanosecond() {
    let mut fetcher = started(NumberedConfig {
        expected_size: ByteSize::bytes(1_250),
        ..config("rate:1M")
    });
    for step in 0..20 {
        assert_eq!(numbers(&mut fetcher), [step]);
        assert_eq!(fetcher.poll_timeout(), Some(at(step * 10 + 10)));
        // Early and repeated calls are harmless.
        fetcher.handle_timeout(at(step * 10 + 5));
        assert!(numbers(&mut fetcher).is_empty());
        fetcher.handle_timeout(at(step * 10 + 10));
    }
}

#[test]
fn an_object_with_an_end_is_done_at_its_end() {
    let mut fetcher = started(NumberedConfig {
        first: 5,
        count: Some(3),
        ..config("unlimited")
    });
    assert_eq!(numbers(&mut fetcher), [5, 6, 7]);
    assert!(!fetcher.is_done());
    for number in 5..8 {
        fetcher.handle_packet(at(1), data(number));
    }
    assert!(fetcher.is_done());
    assert_eq!(
        (numbers(&mut fetcher), fetcher.poll_timeout()),
        (vec![], None)
    );
}

#[test]
fn after_a_stop_what_is_under_way_still_counts() {
    let mut fetcher = started(NumberedConfig {
        retransmit: true,
        ..config("window:2")
    });
    asks(&mut fetcher);
    fetcher.stop(at(1));
    fetcher.handle_packet(at(20), data(1));
    fetcher.handle_timeout(at(2_000));
    assert_eq!((numbers(&mut fetcher), fetcher.figures().data), (vec![], 1));
    assert!(!fetcher.is_done());
    fetcher.start(at(2_001));
    assert_eq!(numbers(&mut fetcher), [0, 2]);
}

/// 0 and 1 are overtaken by 2; with a tolerance of one packet only 0 is lost, since 1 might yet come behind 2.
#[test]
fn what_is_overtaken_is_lost() {
    for (reordering_tolerance, gaps, next) in [(0, 2, vec![4, 5, 6]), (1, 1, vec![4, 5])] {
        let mut fetcher = started(NumberedConfig {
            reordering_tolerance,
            ..config("window:4")
        });
        asks(&mut fetcher);
        fetcher.handle_packet(at(20), data(2));
        assert_eq!(fetcher.figures().requests.gaps, gaps);
        assert_eq!(numbers(&mut fetcher), next);
        // It was only late; that it is here is good all the same.
        fetcher.handle_packet(at(21), data(0));
        let figures = fetcher.figures();
        assert_eq!((figures.data, figures.late, figures.rtt_samples), (2, 1, 2));
        assert_eq!(figures.requests.gaps, gaps);
    }
}

/// Nothing follows, so only the timer tells: 1 s before anything was measured, then 100 ms at least.
#[test]
fn the_last_packets_are_lost_by_their_timer() {
    let mut fetcher = started(NumberedConfig {
        count: Some(3),
        ..config("window:2")
    });
    assert_eq!(fetcher.poll_timeout(), Some(at(1_000)));
    fetcher.handle_packet(at(10), data(0));
    assert_eq!(numbers(&mut fetcher), [0, 1, 2]);
    assert_eq!(fetcher.poll_timeout(), Some(at(100)));
    fetcher.handle_timeout(at(99));
    assert_eq!(fetcher.figures().requests.timeouts, 0);
    fetcher.handle_timeout(at(100));
    assert_eq!(
        (
            fetcher.figures().requests.timeouts,
            fetcher.figures().in_flight
        ),
        (1, 1)
    );
    // Backed off: 200 ms for the other, which was sent at 10 ms.
    assert_eq!(fetcher.poll_timeout(), Some(at(210)));
    fetcher.handle_timeout(at(210));
    assert_eq!(fetcher.figures().requests.timeouts, 2);
    assert!(fetcher.is_done());
}

#[test]
fn a_lost_number_is_asked_for_again_with_another_nonce() {
    let requests = NumberedConfig {
        retransmit: true,
        ..config("window:3")
    };
    let mut fetcher = begun(FetcherConfig {
        max_fetched: 10,
        ..FetcherConfig::new(prefix(), requests)
    });
    let first = asks(&mut fetcher);
    fetcher.handle_packet(at(20), data(1));
    let again = asks(&mut fetcher);
    assert_eq!((again[0].0, again[1].0, again.len()), (0, 3, 2));
    assert_ne!(again[0].1, first[0].1);
    assert_eq!(fetcher.figures().requests.retransmissions, 1);
    // Which transmission was answered is not known, so nothing is measured and nothing overtaken.
    fetcher.handle_packet(at(45), data(0));
    let figures = fetcher.figures();
    assert_eq!(
        (figures.rtt_samples, figures.requests.gaps, figures.late),
        (1, 1, 1)
    );
    let fetched: Vec<_> = core::iter::from_fn(|| fetcher.poll_fetched()).collect();
    let expected = Fetched {
        sequence: 0,
        delay: 25 * MS,
        full_delay: 45 * MS,
        transmissions: 2,
        size: ByteSize::bytes(1_000),
    };
    assert_eq!(fetched[1], expected);
    assert_eq!((fetched[0].sequence, fetched[0].transmissions), (1, 1));
    fetcher.handle_packet(at(46), data(0));
    assert_eq!(fetcher.figures().duplicates, 1);
}

/// The retransmission is lost as well: the next packet that was asked for after it shows that.
#[test]
fn a_retransmission_can_be_lost_too() {
    let mut fetcher = started(NumberedConfig {
        retransmit: true,
        ..config("window:2")
    });
    asks(&mut fetcher);
    fetcher.handle_packet(at(20), data(1));
    assert_eq!(numbers(&mut fetcher), [0, 2]);
    fetcher.handle_packet(at(40), data(2));
    assert_eq!(numbers(&mut fetcher), [0, 3]);
    assert_eq!(
        (
            fetcher.figures().requests.gaps,
            fetcher.figures().requests.retransmissions
        ),
        (2, 2)
    );
}

/// What answers before its second Interest leaves needs none.
#[test]
fn what_comes_late_is_not_asked_for_again() {
    let mut fetcher = started(NumberedConfig {
        retransmit: true,
        ..config("rate:8k")
    });
    let step = Duration::from_millis(1_024);
    let mut now = Instant::ZERO;
    for _ in 0..2 {
        now += step;
        fetcher.handle_timeout(now);
    }
    // The first timer ran out, and its turn to be sent again comes with the next interval.
    assert_eq!(numbers(&mut fetcher), [0, 0, 1]);
    fetcher.handle_packet(now, data(0));
    fetcher.handle_timeout(now + 2 * step);
    assert_eq!(numbers(&mut fetcher).first(), Some(&1));
}

#[test]
fn nacks_are_counted_once_and_keep_their_place_in_the_window() {
    let mut fetcher = started(NumberedConfig {
        retransmit: true,
        ..config("window:1")
    });
    let asked = asks(&mut fetcher);
    let nack = |nonce| {
        let interest = Interest::builder(prefix().builder().sequence(0).finish());
        let packet = LpPacket {
            nack: Some(NackReason::Congestion),
            ..LpPacket::carrying(interest.build(nonce).wire().clone())
        };
        packet.encode()
    };
    fetcher.handle_packet(at(1), nack(Nonce([0; 4])));
    assert_eq!(
        (fetcher.figures().requests.nacks, fetcher.figures().unasked),
        (0, 1)
    );
    for _ in 0..2 {
        fetcher.handle_packet(at(1), nack(asked[0].1));
    }
    assert_eq!(
        (fetcher.figures().requests.nacks, fetcher.figures().unasked),
        (1, 2)
    );
    assert!(numbers(&mut fetcher).is_empty());
    fetcher.handle_timeout(at(1_000));
    assert_eq!(numbers(&mut fetcher), [0]);
    // Its timer was not the first sign.
    assert_eq!(fetcher.figures().requests.timeouts, 0);
}

#[test]
fn foreign_damaged_and_forged_packets_are_counted() {
    let verifier = std::sync::Arc::new(DigestVerifier);
    let mut fetcher =
        Fetcher::new(FetcherConfig::new(prefix(), config("window:2"))).verifying(verifier);
    fetcher.start(at(0));
    fetcher.handle_packet(at(1), data(0));
    assert_eq!(
        (fetcher.figures().unverified, fetcher.figures().data),
        (1, 0)
    );

    let mut fetcher = started(config("window:2"));
    let far = [5, u64::MAX].map(data);
    let other: Name = "/p/x/seq=0".parse().unwrap();
    let other = Data::builder(other).sign(&NullSigner).wire().clone();
    let shorter = Data::builder(prefix()).sign(&NullSigner).wire().clone();
    for wire in [far[0].clone(), far[1].clone(), other, shorter] {
        fetcher.handle_packet(at(1), wire);
    }
    assert_eq!((fetcher.figures().unasked, fetcher.figures().data), (4, 0));
    let whole = data(0);
    // Cut anywhere; without a signature; something else.
    for length in 0..whole.len() {
        fetcher.handle_packet(at(1), whole.slice(..length));
    }
    for wire in [
        &[6, 4, 7, 0, 21, 0][..],
        &[6, 0],
        &[100, 4, 80, 2, 6, 0],
        &[9, 9],
    ] {
        fetcher.handle_packet(at(1), Bytes::copy_from_slice(wire));
    }
    assert_eq!(fetcher.figures().malformed, whole.len() as u64 + 4);
    assert_eq!(fetcher.figures().in_flight, 2);
}

/// Any octets, and any single octet changed in a valid packet.
#[test]
fn garbage_is_survived() {
    let mut random = Random::from_seed(5);
    let mut fetcher = started(NumberedConfig {
        retransmit: true,
        ..config("arc")
    });
    let mut now = Instant::ZERO;
    for round in 0..20_000 {
        let mut octets = match round % 2 {
            0 => vec![0; usize::try_from(random.below(40)).unwrap()],
            _ => data(random.below(100)).to_vec(),
        };
        if round % 2 == 0 {
            random.fill(&mut octets);
            if let Some(first) = octets.first_mut() {
                *first = [5, 6, 100][usize::try_from(random.below(3)).unwrap()];
            }
        } else {
            let place = usize::try_from(random.below(30)).unwrap();
            octets[place] = random.next_u64() as u8;
        }
        now += Duration::from_micros(random.below(3_000));
        fetcher.handle_timeout(now);
        fetcher.handle_packet(now, octets.into());
        while fetcher.poll_output().is_some() {}
    }
    let figures = fetcher.figures();
    assert!(
        figures.malformed > 1_000 && figures.data > 10,
        "{figures:?}"
    );
    let (lost, out) = (
        figures.requests.gaps + figures.requests.timeouts,
        figures.in_flight,
    );
    assert!(figures.requests.interests <= figures.data + lost + out + figures.requests.nacks);
}

#[test]
fn marks_of_the_link_are_heard() {
    let mut fetcher = started(config("window:2"));
    let packet = LpPacket {
        congestion_mark: 1,
        ..LpPacket::carrying(data(0))
    };
    fetcher.handle_packet(at(1), packet.encode());
    assert_eq!(
        (fetcher.figures().congestion_marks, fetcher.figures().data),
        (1, 1)
    );
}

/// Three intervals of 10 ms: nothing, two arrivals, nothing; then a window of 2 at an RTT of 11 ms and 1000 octets is
/// 1.4545 Mbit/s.
#[test]
fn samples_tell_what_each_interval_brought() {
    let mut fetcher = started(config("window:2"));
    fetcher.handle_packet(at(11), data(0));
    fetcher.handle_packet(at(11), data(1));
    fetcher.handle_timeout(at(30));
    let samples = fetcher.samples();
    let ends: Vec<_> = samples.iter().map(|sample| sample.at).collect();
    assert_eq!(ends, [at(10), at(20), at(30)]);
    let brought = samples.iter().map(|sample| sample.content.as_bytes());
    assert_eq!(brought.collect::<Vec<_>>(), [0, 2_000, 0]);
    let rtts: Vec<_> = samples.iter().map(|sample| sample.rtt).collect();
    assert_eq!(rtts, [None, Some(11 * MS), None]);
    let estimates: Vec<_> = samples.iter().map(|sample| sample.estimate).collect();
    let estimate = Some(Bitrate::bps(1_454_545));
    assert_eq!(estimates, [None, estimate, estimate]);
    assert_eq!((samples[1].window, samples[1].in_flight), (Some(2), 2));

    let mut bounded = begun(FetcherConfig {
        max_samples: 2,
        ..FetcherConfig::new(prefix(), config("window:2"))
    });
    bounded.handle_timeout(at(1_000));
    assert_eq!(bounded.samples().len(), 2);
}

/// Nothing comes for a minute: memory stays bounded, and in the end everything is forgotten.
#[test]
fn silence_fills_no_memory() {
    let mut fetcher = started(NumberedConfig {
        max_in_flight: 100,
        ..config("unlimited")
    });
    assert_eq!(numbers(&mut fetcher).len(), 100);
    let mut sent = 0;
    let mut now = at(0);
    while now < at(60_000) {
        now = fetcher.poll_timeout().unwrap();
        fetcher.handle_timeout(now);
        sent += numbers(&mut fetcher).len();
        assert!(fetcher.figures().in_flight <= 100);
    }
    assert!((100..=60 * 100).contains(&sent), "{sent}");
}
