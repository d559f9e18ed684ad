use namecast_packet::signature::{Ed25519Signer, KeyPair as _};
use namecast_packet::{Component, Name, Validity};
use namecast_units::Timestamp;

use super::super::join::TOKEN_SIZE;
use super::super::{Host, HostEvent};
use super::*;

const ROOT: &str = "/calls/fox";
const OWN: u8 = 1;

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn pair(seed: u8, locator: &str) -> Ed25519Signer {
    Ed25519Signer::from_seed([seed; 32], KeyLocator::Name(name(locator)))
}

fn anchor(seed: u8) -> Certificate {
    let validity = Validity::of_own_key(Timestamp::from_micros(0));
    Certificate::self_signed(&name(ROOT), b"1", 1, validity, &pair(seed, ROOT))
}

fn link() -> Link {
    Link {
        root: name(ROOT),
        anchor: pair(100, "/").public_key().digest(),
        token: [9; TOKEN_SIZE],
    }
}

fn joiner() -> Joiner {
    let key = pair(OWN, "/").public_key();
    let signer = pair(OWN, "/calls/fox/32=join");
    Joiner::new(link(), (key, [7; 32]), "Ann".to_owned(), &signer, 3)
}

/// The host whose anchor has the key of `seed`.
fn host(seed: u8) -> Host {
    let signer = pair(seed, &anchor(seed).name().to_string());
    let mut host = Host::new(name(ROOT), Box::new(signer), anchor(seed)).unwrap();
    host.set_invitations(&[InvitationSecret::of_token(&link().token)]);
    host
}

/// A certificate of the key of `own` by the anchor with the key of `seed`.
fn welcome(own: u8, seed: u8) -> Welcome {
    let signer = pair(seed, &anchor(seed).name().to_string());
    let uri = name("/calls/fox/ann/KEY").child(Component::generic("1"));
    let uri = uri.builder().generic("fox").version(1).finish();
    let key = pair(own, "/").public_key();
    let validity = Validity::of_own_key(Timestamp::from_micros(0));
    Welcome {
        schema_version: 1,
        roster_version: 2,
        certificate: Certificate::issue(uri, &key, validity, &[], &signer).unwrap(),
    }
}

fn at(milliseconds: u64) -> Now {
    Now {
        monotonic: Instant::ZERO + Duration::from_millis(milliseconds),
        wall: Timestamp::from_micros(1_760_000_000_000_000),
    }
}

fn drain(joiner: &mut Joiner) -> (Vec<Bytes>, Vec<JoinEvent>) {
    let (mut sent, mut events) = (Vec::new(), Vec::new());
    while let Some(output) = joiner.poll_output() {
        match output {
            Output::Send(packet) => sent.push(packet),
            Output::Event(event) => events.push(event),
        }
    }
    (sent, events)
}

/// Passes packets between both until nothing moves; the front-end answers requests as `decide` does. Returns the events, and the number of Interests.
fn run(joiner: &mut Joiner, host: &mut Host, decide: &Welcome) -> (Vec<JoinEvent>, usize) {
    let (mut all, mut interests) = (Vec::new(), 0);
    joiner.handle_timeout(at(1));
    loop {
        let (sent, events) = drain(joiner);
        all.extend(events);
        if sent.is_empty() {
            return (all, interests);
        }
        interests += sent.len();
        for packet in sent {
            host.handle_frame(at(1), packet);
        }
        while let Some(output) = host.poll_output() {
            match output {
                Output::Send(packet) => joiner.handle_frame(at(1), packet),
                Output::Event(HostEvent::Join(join)) => host.welcome(join.key.digest(), decide),
                Output::Event(HostEvent::Leave(name)) => panic!("{name} leaves"),
            }
        }
    }
}

/// Two round trips: the certificate, and that of the anchor.
#[test]
fn joining_takes_two_round_trips() {
    let (mut joiner, mut host) = (joiner(), host(100));
    let expected = welcome(OWN, 100);
    let (events, interests) = run(&mut joiner, &mut host, &expected);
    let joined = Joined {
        welcome: expected,
        anchor: anchor(100),
    };
    assert_eq!(events, [JoinEvent::Joined(Box::new(joined))]);
    assert_eq!(interests, 2);
    assert_eq!(joiner.poll_timeout(), None);
}

/// Another anchor of that name, a certificate of somebody else's key, and one that the anchor did not sign.
#[test]
fn answers_of_others_are_refused() {
    for (decided, of_host, failure) in [
        (welcome(2, 100), 100, JoinFailure::NotRequested),
        (welcome(OWN, 101), 100, JoinFailure::NotRequested),
    ] {
        let (mut joiner, mut host) = (joiner(), host(of_host));
        let (events, _) = run(&mut joiner, &mut host, &decided);
        assert_eq!(events, [JoinEvent::Failed(failure)]);
    }
    // A host with another key knows no tag for it, so a relay would have to answer itself.
    let mut joiner = joiner();
    joiner.handle_timeout(at(1));
    drain(&mut joiner);
    let answer = Data::builder(joiner.interest.name().clone()).content(welcome(OWN, 101).encode());
    let answer = answer.sign(&pair(101, &anchor(101).name().to_string()));
    joiner.handle_frame(at(2), answer.wire().clone());
    assert_eq!(drain(&mut joiner).0.len(), 1);
    joiner.handle_frame(at(3), anchor(101).data().wire().clone());
    let failed = JoinEvent::Failed(JoinFailure::OtherAnchor);
    assert_eq!(drain(&mut joiner).1, [failed]);
}

fn nack(joiner: &mut Joiner, milliseconds: u64, reason: NackReason) {
    let packet = face::refusal(&joiner.interest, None, reason);
    joiner.handle_frame(at(milliseconds), packet);
}

/// The request is sent each second; the reason to wait is reported when it changes.
#[test]
fn a_newcomer_learns_why_it_waits() {
    let mut joiner = joiner();
    joiner.handle_timeout(at(1));
    assert_eq!(drain(&mut joiner).0.len(), 1);
    nack(&mut joiner, 2, NackReason::NoRoute);
    nack(&mut joiner, 3, NackReason::NoRoute);
    let waiting = |reason| vec![JoinEvent::Waiting(reason)];
    assert_eq!(drain(&mut joiner), (vec![], waiting(WaitReason::HostAway)));
    joiner.handle_timeout(at(1_000));
    assert_eq!(drain(&mut joiner), (vec![], vec![]));
    joiner.handle_timeout(at(1_001));
    assert_eq!(drain(&mut joiner).0.len(), 1);
    nack(&mut joiner, 1_002, NackReason::Congestion);
    assert_eq!(drain(&mut joiner).1, waiting(WaitReason::Crowded));
    for second in 0..3 {
        assert_eq!(drain(&mut joiner).1, []);
        nack(&mut joiner, 2_100 + 1_000 * second, NackReason::None);
    }
    let refused = JoinEvent::Failed(JoinFailure::Refused);
    assert_eq!(drain(&mut joiner).1, [refused]);
}

/// Silence: the host has to say yes.
#[test]
fn silence_means_that_somebody_has_to_decide() {
    let mut joiner = joiner();
    for second in 0..4 {
        joiner.handle_timeout(at(1 + 1_000 * second));
    }
    let (sent, events) = drain(&mut joiner);
    assert_eq!(sent.len(), 4);
    assert_eq!(events, [JoinEvent::Waiting(WaitReason::Undecided)]);
}

/// Five Interests for the anchor's certificate, then an error.
#[test]
fn an_answer_without_its_anchor_is_given_up() {
    let mut joiner = joiner();
    joiner.handle_timeout(at(1));
    let answer = Data::builder(joiner.interest.name().clone());
    let answer = answer.sign(&pair(100, &anchor(100).name().to_string()));
    joiner.handle_frame(at(2), answer.wire().clone());
    for second in 0..6 {
        joiner.handle_timeout(at(2 + 1_000 * second));
    }
    let (sent, events) = drain(&mut joiner);
    assert_eq!(sent.len(), 1 + 5);
    assert_eq!(events, [JoinEvent::Failed(JoinFailure::NoAnchor)]);
}
