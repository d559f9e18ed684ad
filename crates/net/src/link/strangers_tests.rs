use super::*;
use namecast_units::Bitrate;
use namecast_units::Random;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn face(number: u64) -> FaceId {
    FaceId::from_number(number)
}

fn address(text: &str) -> SocketAddr {
    SocketAddr::new(text.parse().unwrap(), 6363)
}

fn challenge() -> Challenge {
    Challenge::new([7; 16])
}

fn add(strangers: &mut Strangers, now: Instant, number: u64, from: SocketAddr) {
    strangers.add(now, face(number), from, challenge().echo(from));
}

fn frames(octets: usize) -> [Bytes; 1] {
    [Bytes::from(vec![0; octets])]
}

/// A budget of 8 kbit/s, which is 1000 octets a second.
fn small() -> Strangers {
    Strangers::new(StrangersConfig {
        budget: Bitrate::kbps(8),
        max_per_prefix: 2,
        ..StrangersConfig::default()
    })
}

/// After 33 octets in: 99 out are always free, however the budget stands; the next go on the budget of 1000 and end with it.
#[test]
fn three_times_what_came_is_free_and_the_rest_is_the_budgets() {
    let mut strangers = small();
    add(&mut strangers, at(0), 1, address("192.0.2.1"));
    strangers.hear(at(0), face(1), &frames(33));
    assert!(strangers.may_send(at(0), face(1), 99));
    assert!(strangers.may_send(at(1), face(1), 900));
    assert!(!strangers.may_send(at(1), face(1), 101));
    assert!(strangers.may_send(at(1), face(1), 100));
    assert!(!strangers.may_send(at(999), face(1), 1));
    // More octets in are three times as many out, with the budget spent.
    strangers.hear(at(999), face(1), &frames(10));
    assert!(!strangers.may_send(at(999), face(1), 31));
    assert!(strangers.may_send(at(999), face(1), 30));
    assert!(strangers.may_send(at(1_000), face(1), 1_000));
    assert!(!strangers.may_send(at(1_000), face(1), 1));
}

/// Two prefixes that want all have 500 octets each from the second window on; many addresses of one have no more than one.
#[test]
fn the_budget_is_shared_evenly_by_prefix() {
    let mut strangers = small();
    for (number, from) in [(1, "192.0.2.1"), (2, "192.0.2.2"), (3, "198.51.100.1")] {
        add(&mut strangers, at(0), number, address(from));
    }
    let mut sent = [0; 3];
    for millis in 0..2_000 {
        for (index, sent) in sent.iter_mut().enumerate() {
            let may = strangers.may_send(at(millis), face(index as u64 + 1), 10);
            *sent += u64::from(may && millis >= 1_000) * 10;
        }
    }
    assert_eq!([sent[0] + sent[1], sent[2]], [500, 500]);
}

#[test]
fn whoever_is_no_stranger_is_sent_what_there_is() {
    let mut strangers = small();
    let from = address("192.0.2.1");
    add(&mut strangers, at(0), 1, from);
    assert!(!strangers.may_send(at(0), face(1), 1_001));
    let echo = challenge().frame(from);
    assert!(!strangers.hear(at(0), face(1), &frames(100)));
    assert!(strangers.hear(at(0), face(1), &[echo]));
    assert!(strangers.may_send(at(0), face(1), 1_000_000));
    assert_eq!(strangers.len(), 0);
}

/// A peer at another address, or one that guesses, returns something else.
#[test]
fn only_what_was_sent_to_an_address_proves_it() {
    let challenge = challenge();
    let (here, there) = (address("192.0.2.1"), address("192.0.2.2"));
    assert!(challenge.echo(here).is_in(&challenge.frame(here)));
    assert!(!challenge.echo(here).is_in(&challenge.frame(there)));
    let port = SocketAddr::new(here.ip(), 6364);
    assert!(!challenge.echo(here).is_in(&challenge.frame(port)));
    let other = Challenge::new([8; 16]);
    assert!(!challenge.echo(here).is_in(&other.frame(here)));
    assert!(!challenge.echo(here).is_in(&[]));
}

/// An Interest has 33 octets or more; a challenge has at most three times as many, and is not sent for fewer.
#[test]
fn a_challenge_is_no_reflection() {
    let from = address("192.0.2.1");
    let size = challenge().frame(from).len();
    assert!(size <= 99, "{size}");
    assert!(challenge().frame_for(from, 33).is_some());
    assert!(challenge().frame_for(from, size / 3 - 1).is_none());
}

/// Heard last at 2 s, a stranger's face ends at 7 s and not a nanosecond before.
#[test]
fn a_stranger_ends_five_seconds_after_his_last_packet() {
    let mut strangers = small();
    add(&mut strangers, at(0), 1, address("192.0.2.1"));
    strangers.hear(at(2_000), face(1), &frames(1));
    let just_before = at(7_000).saturating_sub(Duration::from_nanos(1));
    assert_eq!(strangers.silent(just_before), []);
    assert_eq!(strangers.silent(at(7_000)), [face(1)]);
    strangers.remove(face(1));
    assert_eq!(strangers.silent(at(7_000)), []);
}

/// Two places for each prefix: the third is challenged until one of them is silent for a second. Another prefix has its own.
#[test]
fn each_prefix_has_its_bound() {
    let mut strangers = small();
    add(&mut strangers, at(0), 1, address("192.0.2.1"));
    add(&mut strangers, at(100), 2, address("192.0.2.2"));
    let ask = |strangers: &Strangers, millis, from: &str| {
        strangers.admission(at(millis), from.parse().unwrap(), 9, false)
    };
    assert_eq!(ask(&strangers, 999, "192.0.2.3"), Admission::Challenge);
    assert_eq!(
        ask(&strangers, 1_000, "192.0.2.3"),
        Admission::InsteadOf(face(1))
    );
    assert_eq!(ask(&strangers, 999, "192.0.3.3"), Admission::Welcome);
    let proven = strangers.admission(at(999), "192.0.2.3".parse().unwrap(), 9, true);
    assert_eq!(proven, Admission::Welcome);
    // A site with IPv6 has a /56.
    add(&mut strangers, at(0), 3, address("2001:db8:0:100::1"));
    add(&mut strangers, at(0), 4, address("2001:db8:0:1ff::1"));
    assert_eq!(
        ask(&strangers, 1, "2001:db8:0:123::1"),
        Admission::Challenge
    );
    assert_eq!(ask(&strangers, 1, "2001:db8:0:200::1"), Admission::Welcome);
}

/// Without room, whoever proved himself takes the place of the stranger who is silent for longest, if there is one.
#[test]
fn strangers_go_first_when_places_run_short() {
    let mut strangers = small();
    let from = "203.0.113.1".parse().unwrap();
    assert_eq!(
        strangers.admission(at(0), from, 0, true),
        Admission::Challenge
    );
    add(&mut strangers, at(0), 1, address("192.0.2.1"));
    add(&mut strangers, at(1), 2, address("198.51.100.1"));
    strangers.hear(at(2), face(1), &frames(1));
    assert_eq!(
        strangers.admission(at(3), from, 0, true),
        Admission::InsteadOf(face(2))
    );
    assert_eq!(
        strangers.admission(at(3), from, 0, false),
        Admission::Challenge
    );
}

/// 50 000 made-up sources at 10 000 a second. An honest peer, who repeats his command as a node does, after 1.75 s at most, and
/// returns challenges after 100 ms, has a face when he does so: within 2 s. What is kept is bounded by the places.
#[test]
fn a_flood_of_made_up_sources_locks_nobody_out() {
    const PLACES: usize = 1_024;
    for seed in 0..10 {
        let mut random = Random::from_seed(seed);
        let mut strangers = Strangers::new(StrangersConfig::default());
        let mut faces = 0;
        let mut admit = |strangers: &mut Strangers, now, from: SocketAddr, is_proven| {
            let room = PLACES - strangers.len();
            match strangers.admission(now, from.ip(), room, is_proven) {
                Admission::Challenge => return false,
                Admission::Welcome => {}
                Admission::InsteadOf(face) => strangers.remove(face),
            }
            faces += 1;
            add(strangers, now, faces, from);
            true
        };
        let honest = address("203.0.113.9");
        let came_at = 1_000 + random.below(3_000);
        let mut has_face_at = None;
        for tick in 0..50_000 {
            let now = Instant::ZERO + Duration::from_micros(100 * tick);
            for face in strangers.silent(now) {
                strangers.remove(face);
            }
            let made_up = std::net::Ipv4Addr::from_bits(random.below(1 << 32) as u32);
            admit(
                &mut strangers,
                now,
                SocketAddr::new(made_up.into(), 9),
                false,
            );
            assert!(strangers.len() <= PLACES, "seed {seed}");
            assert!(strangers.by_silence.len() == strangers.len(), "seed {seed}");
            assert!(strangers.per_source.len() <= strangers.len(), "seed {seed}");
            let is_due = has_face_at.is_none() && now == at(came_at + 100);
            if is_due && admit(&mut strangers, now, honest, true) {
                has_face_at = Some(now);
            }
        }
        assert_eq!(has_face_at, Some(at(came_at + 100)), "seed {seed}");
    }
}

/// Whatever strangers send and whatever is to be sent to them: in no second more than three times what ever came from each,
/// and the budget of two windows.
#[test]
fn reflection_is_bounded_by_what_came_and_the_budget() {
    for seed in 0..20 {
        let mut random = Random::from_seed(seed);
        let mut strangers = Strangers::new(StrangersConfig {
            budget: Bitrate::kbps(80),
            ..StrangersConfig::default()
        });
        for number in 0..20 {
            let from = std::net::Ipv4Addr::from_bits(random.below(1 << 12) as u32);
            add(
                &mut strangers,
                at(0),
                number,
                SocketAddr::new(from.into(), 9),
            );
        }
        let (mut received, mut sent) = (0, 0);
        for millis in 0..10_000 {
            let peer = face(random.below(20));
            if random.below(4) == 0 {
                let octets = 1 + random.below(100);
                strangers.hear(at(millis), peer, &frames(octets as usize));
                received += octets;
            }
            let octets = 1 + random.below(8_000);
            sent += u64::from(strangers.may_send(at(millis), peer, octets)) * octets;
        }
        // Ten windows of 10 000 octets.
        assert!(
            sent <= 3 * received + 100_000,
            "seed {seed}: {sent} for {received}"
        );
        assert!(sent >= 10_000, "seed {seed}: {sent}");
    }
}
