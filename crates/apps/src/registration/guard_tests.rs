use namecast_packet::lp::NackReason;
use namecast_packet::signature::DigestSigner;

use super::*;

/// The face that leads to the neighbour.
const FACE: u64 = 300;

fn at(millis: u64) -> Now {
    Now {
        monotonic: Instant::ZERO + Duration::from_millis(millis),
        wall: Timestamp::default(),
    }
}

fn claim(since: u64, key: &str, taken_over_at: Option<u64>) -> Claim {
    Claim {
        taken_over_at: taken_over_at.map(Timestamp::from_micros),
        version: Reverse(since),
        key: Reverse(key.parse().unwrap()),
    }
}

fn guard(claim: Claim) -> NameGuard {
    NameGuard::new("/cam".parse().unwrap(), claim, 7)
}

/// Returns the Interests sent by `millis`, each with its time, and the events.
fn run(guard: &mut NameGuard, millis: u64) -> (Vec<(u64, Interest)>, Vec<GuardEvent>) {
    let (mut sent, mut events) = (Vec::new(), Vec::new());
    let mut now = 0;
    loop {
        while let Some(output) = guard.poll_output() {
            match output {
                Output::Send(frame) => {
                    let packet = LpPacket::decode(frame).unwrap();
                    assert_eq!(packet.next_hop_face, Some(FACE));
                    let packet = Packet::decode(packet.fragment.unwrap()).unwrap();
                    let Packet::Interest(interest) = packet else {
                        panic!("only Interests are sent");
                    };
                    sent.push((now, interest));
                }
                Output::Event(event) => events.push(event),
            }
        }
        match guard.poll_timeout() {
            Some(due) if due <= at(millis).monotonic => {
                now = due.since(Instant::ZERO).as_millis() as u64;
                guard.handle_timeout(at(now));
            }
            _ => return (sent, events),
        }
    }
}

/// Returns the answer of a publisher with this claim.
fn answer(interest: &Interest, claim: &Claim) -> Bytes {
    struct Signs(Name);
    impl namecast_packet::Signer for Signs {
        fn info(&self) -> namecast_packet::SignatureInfo {
            namecast_packet::SignatureInfo {
                key_locator: Some(KeyLocator::Name(self.0.clone())),
                ..DigestSigner.info()
            }
        }
        fn sign(&self, signed: &[u8]) -> Bytes {
            DigestSigner.sign(signed)
        }
    }
    let catalogue = Name::root().builder().generic("cam").generic("catalogue");
    let metadata = Metadata {
        catalogue_name: catalogue.version(claim.version.0).finish(),
        catalogue: None,
        latest: Vec::new(),
        nonce: None,
        taken_over_at: claim.taken_over_at,
        roster_version: None,
    };
    let data = Data::builder(interest.name().clone()).content(metadata.encode());
    data.sign(&Signs(claim.key.0.clone())).wire().clone()
}

fn taken(key: &str, is_same_key: bool, took_over: bool) -> Vec<GuardEvent> {
    vec![GuardEvent::Taken(Rival {
        key_name: key.parse().unwrap(),
        is_same_key,
        took_over,
    })]
}

/// A neighbour that knows nobody sends the Interest back, and the name is free in that moment; over a dead route nothing
/// comes, and it is free after 300 ms.
#[test]
fn a_name_that_nobody_else_publishes_is_free_after_one_round_trip() {
    let mut alone = guard(claim(5, "/k", None));
    alone.set_neighbour(at(0).monotonic, Some(FACE));
    let (sent, events) = run(&mut alone, 3);
    assert_eq!((sent.len(), events.len()), (1, 0));
    let nack = face::refusal(&sent[0].1, None, NackReason::NoRoute);
    alone.handle_frame(at(3), nack);
    assert_eq!(run(&mut alone, 3).1, [GuardEvent::Free]);

    let mut unanswered = guard(claim(5, "/k", None));
    unanswered.set_neighbour(at(0).monotonic, Some(FACE));
    assert_eq!(run(&mut unanswered, 299).1, []);
    assert_eq!(run(&mut unanswered, 300).1, [GuardEvent::Free]);
}

/// A publisher that answers keeps the name, with any claim and any key: a publisher that was killed does not answer.
#[test]
fn a_name_that_somebody_publishes_is_taken() {
    for (key, is_same_key) in [("/k", true), ("/l", false)] {
        let mut second = guard(claim(5, "/k", None));
        second.set_neighbour(at(0).monotonic, Some(FACE));
        let (sent, _) = run(&mut second, 0);
        let first = answer(&sent[0].1, &claim(9, key, None));
        second.handle_frame(at(3), first.clone());
        second.handle_frame(at(4), first);
        let (sent, events) = run(&mut second, 60_000);
        assert_eq!((sent.len(), events), (0, taken(key, is_same_key, false)));
    }
}

/// The earlier of two publishers keeps the name, else the publisher with the lower key, in either order of answers.
#[test]
fn of_two_that_begin_at_once_one_stays() {
    let claims = [
        claim(5, "/k", None),
        claim(6, "/j", None),
        claim(6, "/k", None),
        claim(7, "/a", None),
    ];
    for (rank_of_other, other) in claims.iter().enumerate() {
        for (rank, own) in claims.iter().enumerate() {
            let mut guard = guard(own.clone());
            guard.set_neighbour(at(0).monotonic, Some(FACE));
            run(&mut guard, 500);
            guard.on_registered(at(600).monotonic);
            let (sent, _) = run(&mut guard, 600);
            guard.handle_frame(at(610), answer(&sent.last().unwrap().1, other));
            let is_taken = !run(&mut guard, 610).1.is_empty();
            assert_eq!(is_taken, rank_of_other < rank, "{own:?} meets {other:?}");
        }
    }
}

/// Challenges follow after 0.25, 0.25, 0.5, 1, 2 and 2 s, so that a publisher that somebody takes the name over from hears of it
/// within two seconds. Who takes it over does not wait for an answer, and stays.
#[test]
fn a_name_is_taken_over_and_the_first_one_is_told() {
    let mut first = guard(claim(5, "/k", None));
    first.set_neighbour(at(0).monotonic, Some(FACE));
    run(&mut first, 300);
    let times: Vec<_> = run(&mut first, 6_400).0.iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [550, 800, 1_300, 2_300, 4_300, 6_300]);

    let second = claim(9, "/l", Some(9));
    let (sent, _) = run(&mut first, 8_300);
    first.handle_frame(at(8_310), answer(&sent[0].1, &second));
    assert_eq!(run(&mut first, 60_000).1, taken("/l", false, true));

    let mut second = guard(second);
    second.set_neighbour(at(0).monotonic, Some(FACE));
    assert_eq!(run(&mut second, 0).1, [GuardEvent::Free]);
    let (sent, _) = run(&mut second, 250);
    second.handle_frame(at(251), answer(&sent[0].1, &claim(5, "/k", None)));
    assert_eq!(run(&mut second, 60_000).1, []);
}

/// Answers to other questions, of long ago, or of nonsense count for nothing, and neither do our own.
#[test]
fn what_answers_no_challenge_is_passed_over() {
    let own = claim(5, "/k", None);
    let other = claim(1, "/l", None);
    let mut guard = guard(own.clone());
    guard.set_neighbour(at(0).monotonic, Some(FACE));
    let (sent, _) = run(&mut guard, 0);
    let challenge = &sent[0].1;
    let elsewhere = Interest::builder("/cam/32=metadata/0123456789abcdef".parse::<Name>().unwrap());
    guard.handle_frame(at(1), answer(&elsewhere.build(Nonce([0; 4])), &other));
    let empty = Data::builder(challenge.name().clone()).sign(&DigestSigner);
    guard.handle_frame(at(1), empty.wire().clone());
    guard.handle_frame(at(1), Bytes::from_static(&[6, 1]));
    guard.handle_frame(at(1), answer(challenge, &own));
    assert_eq!(run(&mut guard, 1_999).1, [GuardEvent::Free]);
    guard.handle_frame(at(2_000), answer(challenge, &other));
    assert_eq!(run(&mut guard, 2_000).1, []);
    guard.set_neighbour(at(2_001).monotonic, None);
    assert_eq!(guard.poll_timeout(), None);
    // A neighbour that comes back is asked anew.
    guard.set_neighbour(at(2_100).monotonic, Some(FACE));
    assert!(guard.poll_timeout().is_some());
}
