//! A receiver against a next node that the test plays.

use std::collections::BTreeSet;

use namecast_units::ByteSize;

use super::*;
use crate::rate::RateControl;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn receiver(window: u32) -> AnyNext {
    let mut receiver = AnyNext::new(NumberedConfig {
        control: RateControl::Window { window },
        ..NumberedConfig::default()
    });
    receiver.start(at(0));
    receiver
}

fn received(spare: u16) -> Received {
    let mut received = Received::new(ByteSize::bytes(1_000), false);
    received.feedback.spare = Some(spare);
    received
}

/// What is sent: pending, seen and refresh of requests, and how many numbers.
fn sent(receiver: &mut AnyNext) -> (Vec<(u16, u32, bool)>, Vec<u64>) {
    let (mut requests, mut numbers) = (Vec::new(), Vec::new());
    while let Some(output) = receiver.poll_output() {
        match output {
            AnyNextOutput::AnyNext(it, _) => requests.push((it.pending, it.seen, it.refresh)),
            AnyNextOutput::Number(it) => numbers.push(it.number),
        }
    }
    (requests, numbers)
}

fn take(receiver: &mut AnyNext, millis: u64, number: u64, link: u32) -> bool {
    let data = (number, Some(link));
    let answer = receiver.handle_data(at(millis), data, &received(0));
    answer.is_ok()
}

/// Numbers jump, as others had them alone; the count on the link does not, until a packet is lost there.
#[test]
fn requests_are_renewed_as_data_come() {
    let mut receiver = receiver(3);
    assert_eq!(sent(&mut receiver).0, [(3, 0, false)]);
    assert!(take(&mut receiver, 10, 5, 1));
    assert_eq!(sent(&mut receiver).0, [(3, 1, false)]);
    // Two were lost.
    assert!(take(&mut receiver, 20, 9, 4));
    assert_eq!(
        (sent(&mut receiver).0, receiver.in_flight()),
        (vec![(3, 4, false)], 3)
    );
    // One of them was late only, and changes no counter; another comes twice.
    assert!(take(&mut receiver, 21, 7, 3) && !take(&mut receiver, 22, 7, 3));
    assert_eq!(sent(&mut receiver).0, []);
    assert_eq!((receiver.holes(), receiver.in_flight()), (7, 3));
}

#[test]
fn silence_is_answered_by_refreshes_that_become_rare() {
    let mut receiver = receiver(3);
    sent(&mut receiver);
    assert!(take(&mut receiver, 100, 0, 1));
    sent(&mut receiver);
    let mut times = Vec::new();
    for millis in 100..4_000 {
        receiver.handle_timeout(at(millis));
        let requests = sent(&mut receiver).0;
        times.extend(requests.iter().map(|_| millis));
        assert!(requests.iter().all(|it| *it == (3, 1, true)));
    }
    assert_eq!(times, [350, 850, 1_850, 2_850, 3_850]);
    assert_eq!(receiver.poll_timeout(), Some(at(4_850)));
    receiver.stop();
    assert_eq!(receiver.poll_timeout(), None);
}

/// 0, 1 and 4 came so; the others are fetched by number from 5 on, until any next Data come again.
#[test]
fn where_nobody_counts_requests_numbers_are_fetched() {
    let mut receiver = receiver(2);
    for (number, link) in [(0, 1), (1, 2), (4, 3)] {
        assert!(take(&mut receiver, 10, number, link));
    }
    sent(&mut receiver);
    receiver.handle_refusal(at(20));
    assert!(receiver.has_fallen_back());
    assert_eq!(sent(&mut receiver), (vec![], vec![5, 6]));
    let data = |receiver: &mut AnyNext, millis, number| {
        let plain = Received::new(ByteSize::bytes(1_000), false);
        receiver.handle_data(at(millis), (number, None), &plain)
    };
    assert!(data(&mut receiver, 30, 5).is_ok());
    assert_eq!(data(&mut receiver, 30, 5), Err(Unanswered::Duplicate));
    assert_eq!(sent(&mut receiver).1, [7]);
    receiver.handle_timeout(at(519));
    assert_eq!(sent(&mut receiver).0, []);
    receiver.handle_timeout(at(520));
    assert_eq!(sent(&mut receiver).0, [(1, 3, true)]);
    receiver.handle_refusal(at(530));
    assert!(take(&mut receiver, 600, 9, 4) && !receiver.has_fallen_back());
    assert_eq!(sent(&mut receiver).0, [(2, 4, false)]);
}

/// Whoever answers by number only is found out after four seconds.
#[test]
fn who_is_never_answered_requests_numbers() {
    let mut receiver = receiver(2);
    let mut numbers_at = None;
    for millis in 0..6_000 {
        receiver.handle_timeout(at(millis));
        if !sent(&mut receiver).1.is_empty() {
            numbers_at = numbers_at.or(Some(millis));
        }
    }
    assert_eq!(numbers_at, Some(4_750));
}

#[test]
fn a_flow_with_an_end_is_done_with_its_last_number() {
    let mut receiver = AnyNext::new(NumberedConfig {
        count: Some(10),
        control: RateControl::Window { window: 4 },
        ..NumberedConfig::default()
    });
    receiver.start(at(0));
    assert!(take(&mut receiver, 1, 8, 1) && !receiver.is_done());
    sent(&mut receiver);
    assert!(take(&mut receiver, 2, 9, 2) && receiver.is_done());
    assert_eq!(
        (sent(&mut receiver).0, receiver.poll_timeout()),
        (vec![], None)
    );
    assert_eq!(receiver.holes(), 8);
}

/// Against a set of all numbers, for numbers that go up by leaps, come late and come again.
#[test]
fn numbers_that_came_are_remembered_as_a_set_would() {
    let mut random = Random::from_seed(3);
    let (mut arrived, mut set) = (Arrived::new(7), BTreeSet::new());
    let mut newest = 7;
    for _ in 0..20_000 {
        let number = match random.below(3) {
            0 => newest + random.below(50),
            _ => (newest + 1).saturating_sub(random.below(300)).max(7),
        };
        newest = newest.max(number);
        assert_eq!(arrived.insert(number), set.insert(number), "{number}");
        let holes = (7..=newest).count() - set.len();
        if random.chance(0.01) {
            assert_eq!(arrived.holes(), holes as u64);
        }
    }
    // Bounded, however far a number leaps.
    for leap in [1 << 20, 1 << 40, u64::MAX - 1, u64::MAX] {
        assert!(arrived.insert(leap) && !arrived.insert(leap));
        assert!(arrived.words.len() <= 16_385, "{}", arrived.words.len());
    }
    assert!(!arrived.insert(8));
}

/// Of a window of 8, three are of use: three are pending. Once they have come, nothing is, whatever time passes.
#[test]
fn no_more_is_requested_than_is_of_use() {
    let mut receiver = AnyNext::new(NumberedConfig {
        control: RateControl::Window { window: 8 },
        ..NumberedConfig::default()
    });
    receiver.set_needed(3);
    receiver.start(at(0));
    assert_eq!(sent(&mut receiver).0, [(3, 0, false)]);
    for (link, needed) in [(1, 2), (2, 1), (3, 0)] {
        receiver.set_needed(needed);
        assert!(take(&mut receiver, 10, 10 + u64::from(link), link));
        assert_eq!(sent(&mut receiver).0, []);
    }
    assert!(receiver.is_done());
    receiver.handle_timeout(at(5_000));
    assert_eq!((sent(&mut receiver).0, receiver.in_flight()), (vec![], 0));
    receiver.set_needed(20);
    assert_eq!(sent(&mut receiver).0, [(8, 3, false)]);
}

/// A quarter of a window of 16: one Interest for four Data. A window of 3 has no whole one.
#[test]
fn requests_are_renewed_in_batches() {
    for (window, renewed) in [(16, vec![4, 8, 12]), (3, (1..13).collect())] {
        let mut receiver = receiver(window);
        receiver.renew_in_batches(4);
        sent(&mut receiver);
        let mut at_link = Vec::new();
        for link in 1..13 {
            assert!(take(&mut receiver, 10, u64::from(link), link));
            at_link.extend(sent(&mut receiver).0.iter().map(|(_, seen, _)| *seen));
        }
        assert_eq!(at_link, renewed);
    }
}

/// A naive twin: numbers that come in any order, two words and more apart.
#[test]
fn missing_numbers_are_found() {
    let mut random = Random::from_seed(3);
    let mut arrived = Arrived::new(5);
    let mut twin = std::collections::BTreeSet::new();
    for _ in 0..400 {
        let number = 5 + random.below(300);
        assert_eq!(arrived.insert(number), twin.insert(number));
        let from = 5 + random.below(320);
        let expected = (from..).find(|it| !twin.contains(it));
        assert_eq!(arrived.next_missing(from), expected);
    }
    for number in 5..5 + 192 {
        arrived.insert(number);
        twin.insert(number);
    }
    let expected = (5..).find(|it| !twin.contains(it));
    assert_eq!(arrived.next_missing(0), expected, "at the end of a word");
}
