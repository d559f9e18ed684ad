//! Set-ups of an attacker: each is refused by the name of its reason, and nothing rings.

use bytes::Bytes;
use namecast_packet::signature::NullSigner;
use namecast_packet::tlv::Writer;
use namecast_packet::{Data, Interest, Name, Nonce, Packet};
use namecast_units::{Duration, Instant};

use super::super::handshake::{IK, PROOF, XX};
use super::super::*;
use super::pipe::{A, B, Pipe, both, endpoint, key, ms, sent};
use crate::Application;
use crate::discovery::Trust;

fn config() -> EndpointConfig {
    EndpointConfig {
        answers: true,
        ..EndpointConfig::default()
    }
}

fn element(kind: u32, value: &[u8]) -> Bytes {
    let mut writer = Writer::default();
    writer.element(kind, value);
    writer.finish()
}

/// A set-up under the names of two sides.
fn setup(callee: &str, caller: &str, parameters: Bytes) -> Bytes {
    let name: Name = format!("{callee}/call{caller}").parse().unwrap();
    let interest = Interest::builder(name).parameters(parameters);
    interest.build(Nonce([1; 4])).wire().clone()
}

fn data(name: &Name, content: impl Into<Bytes>) -> Bytes {
    let data = Data::builder(name.clone()).content(content.into());
    data.sign(&NullSigner).wire().clone()
}

/// Alice calls; her first packet.
fn called(alice: &mut Endpoint) -> Interest {
    let callee = "/bob/talk".parse().unwrap();
    alice.call(both(Instant::ZERO), callee, Trust::FirstUse);
    match &sent(alice)[..] {
        [Packet::Interest(interest)] => interest.clone(),
        other => panic!("{other:?}"),
    }
}

fn give(end: &mut Endpoint, frame: Bytes) -> Vec<Packet> {
    end.handle_frame(both(Instant::ZERO), frame);
    sent(end)
}

/// The message in parameters or a content, without its element's header.
fn message(octets: &Bytes) -> Bytes {
    let header = if octets[1] < 253 { 2 } else { 4 };
    let length = match octets[1] {
        253 => usize::from(u16::from_be_bytes([octets[2], octets[3]])),
        length => usize::from(length),
    };
    octets.slice(header..header + length)
}

/// Two endpoints that know each other's static keys.
fn acquainted() -> [Endpoint; 2] {
    let mut pipe = Pipe::with(|config| {
        config.limits.max_known_setups = 10_000;
        config.limits.max_known_setups_per_key = 10_000;
    });
    let call = pipe.connect();
    pipe.with_end(A, |end, now| end.close(now, call, ""));
    pipe.run_for(Duration::from_secs(10));
    pipe.ends
}

/// A set-up goes in; it is refused for `refusal` alone, and answered by nothing but `answers` packets.
fn assert_refused(end: &mut Endpoint, frame: Bytes, refusal: Refusal, answers: usize) {
    let before = *end.counters();
    let answered = give(end, frame);
    let after = *end.counters();
    for ((reason, before), (_, after)) in before.refused.iter().zip(after.refused.iter()) {
        assert_eq!(after - before, u64::from(reason == refusal), "{reason}");
    }
    assert_eq!(answered.len(), answers, "{answered:?}");
    assert_eq!(before.established, after.established);
}

#[test]
fn captured() {
    for [mut alice, mut bob] in [acquainted(), strangers()] {
        let frame = called(&mut alice).wire().clone();
        assert_eq!(give(&mut bob, frame.clone()).len(), 2, "answer, question");
        // The answer may have been lost.
        assert_eq!(give(&mut bob, frame.clone()).len(), 1, "the answer again");
        bob.handle_timeout(both(Instant::ZERO + Duration::from_secs(6)));
        assert_refused(&mut bob, frame, Refusal::Replayed, 0);
    }
}

fn strangers() -> [Endpoint; 2] {
    [
        endpoint("/alice", 1, config()),
        endpoint("/bob", 2, config()),
    ]
}

#[test]
fn reflected() {
    for [mut alice, _] in [acquainted(), strangers()] {
        let interest = called(&mut alice);
        let parameters = interest.parameters().unwrap();
        // Back to her as a call of his.
        let frame = setup("/alice/talk", "/bob/talk", parameters.clone());
        assert_refused(&mut alice, frame, Refusal::Reflected, 0);
        // And as his answer.
        let kind = u32::from(parameters[0]);
        let message = [&message(&parameters)[..32], &[0; 100]].concat();
        let answer = data(interest.name(), element(kind, &message));
        assert_refused(&mut alice, answer, Refusal::Reflected, 0);
    }
}

/// What an attacker sends that has her own static key, under any ephemeral one.
#[test]
fn reflected_static_key() {
    let (signer, certificate) = key("/alice", 1);
    let static_key = Some([7; 32]);
    let twin = |known| {
        let config = EndpointConfig {
            root: "/alice/talk".parse().unwrap(),
            static_key,
            known,
            ..config()
        };
        Endpoint::new(config, &signer, &certificate)
    };
    let mut alice = twin(Vec::new());
    let public = x25519_dalek::PublicKey::from(&x25519_dalek::StaticSecret::from([7; 32]));
    let mut other = twin(vec![KnownPeer {
        root: "/alice/talk".parse().unwrap(),
        key_digest: [0; 32],
        static_key: public.to_bytes(),
    }]);
    let callee = "/alice/talk".parse().unwrap();
    other.call(both(Instant::ZERO), callee, Trust::FirstUse);
    let [Packet::Interest(interest)] = &sent(&mut other)[..] else {
        panic!("no call");
    };
    assert_refused(&mut alice, interest.wire().clone(), Refusal::Reflected, 0);
}

/// Every length of each message: below the shortest it is cut, above it is sealed otherwise.
#[test]
fn cut() {
    for ([mut alice, mut bob], [first, second]) in
        [(strangers(), [32, 96]), (acquainted(), [96, 48])]
    {
        let interest = called(&mut alice);
        let parameters = interest.parameters().unwrap();
        let (kind, whole) = (u32::from(parameters[0]), message(&parameters));
        for length in 0..whole.len() {
            let frame = setup("/bob/talk", "/alice/talk", element(kind, &whole[..length]));
            let refusal = if length < first {
                Refusal::Cut
            } else {
                Refusal::Changed
            };
            assert_refused(&mut bob, frame, refusal, 0);
        }
        let answers = give(&mut bob, interest.wire().clone());
        let [Packet::Data(answer), Packet::Interest(question)] = &answers[..] else {
            panic!("{answers:?}");
        };
        let whole = message(&answer.content().unwrap());
        for length in 0..whole.len() {
            let frame = data(interest.name(), element(kind, &whole[..length]));
            let refusal = if length < second {
                Refusal::Cut
            } else {
                Refusal::Changed
            };
            assert_refused(&mut alice, frame, refusal, 0);
        }
        give(&mut alice, answer.wire().clone());
        let confirmed = give(&mut alice, question.wire().clone());
        let Some(Packet::Data(confirmation)) = confirmed.last() else {
            panic!("{confirmed:?}");
        };
        cut_confirmation(&mut bob, confirmation);
        // What is whole still counts.
        bob.handle_timeout(both(Instant::ZERO + ms(250)));
        bob.handle_frame(both(Instant::ZERO + ms(250)), confirmation.wire().clone());
        assert_eq!(bob.counters().refused[Refusal::Malformed], 0);
        let last = bob.counters().established;
        assert!(last > 0, "established");
    }
}

/// A third message that was cut, and then a proof; each is read once for one Interest.
fn cut_confirmation(bob: &mut Endpoint, confirmation: &Data) {
    let content = confirmation.content().unwrap();
    let mut forged = Writer::default();
    let refusal = if u32::from(content[0]) == XX {
        forged.element(XX, &message(&content)[..63]);
        Refusal::Cut
    } else {
        Refusal::Changed
    };
    forged.element(PROOF, &[0; 16]);
    let frame = data(confirmation.name(), forged.finish());
    assert_refused(bob, frame.clone(), refusal, 0);
    let before = *bob.counters();
    give(bob, frame);
    let after = *bob.counters();
    assert_eq!(before.refused, after.refused, "nobody asked again");
    assert_eq!(before.unknown + 1, after.unknown);
}

/// Eve has Alice's certificate, which is public, and not her key.
#[test]
fn with_anothers_certificate() {
    let (_, certificate) = key("/alice", 1);
    let (eves, _) = key("/eve", 3);
    let config = EndpointConfig {
        root: "/alice/talk".parse().unwrap(),
        ..config()
    };
    let mut pipe = Pipe::new(Flow::interactive());
    pipe.ends[A] = Endpoint::new(config, &eves, &certificate);
    pipe.call();
    pipe.run_for(Duration::from_secs(2));
    let counters = pipe.ends[B].counters();
    assert!(counters.refused[Refusal::OtherCertificate] > 0);
    assert_eq!((counters.established, pipe.events[B].len()), (0, 0));
}

/// The same from the other side: Eve answers in Bob's name.
#[test]
fn answered_with_anothers_certificate() {
    let (_, certificate) = key("/bob", 2);
    let (eves, _) = key("/eve", 3);
    let config = EndpointConfig {
        root: "/bob/talk".parse().unwrap(),
        ..config()
    };
    let mut pipe = Pipe::new(Flow::interactive());
    pipe.ends[B] = Endpoint::new(config, &eves, &certificate);
    pipe.call();
    pipe.run_for(Duration::from_secs(70));
    let counters = pipe.ends[A].counters();
    assert!(counters.refused[Refusal::OtherCertificate] > 0);
    assert_eq!(counters.established, 0);
    let failed = Event::Failed(NoCall::Unanswered);
    assert_eq!(pipe.events[A].last().map(|it| &it.1), Some(&failed));
}

/// The key under which everybody computes the same secret, in each place that has one in the clear.
#[test]
fn with_an_all_zero_key() {
    let [mut alice, mut bob] = strangers();
    let frame = setup("/bob/talk", "/alice/talk", element(XX, &[0; 32]));
    assert_refused(&mut bob, frame, Refusal::WeakKey, 0);
    let frame = setup("/bob/talk", "/alice/talk", element(IK, &[0; 200]));
    assert_refused(&mut bob, frame, Refusal::WeakKey, 0);
    let interest = called(&mut alice);
    let answer = data(interest.name(), element(XX, &[0; 200]));
    assert_refused(&mut alice, answer, Refusal::WeakKey, 0);
}

/// Sealed for the static key that Bob had before he was started again: he says that he has another.
#[test]
fn replayed_after_a_restart() {
    let [mut alice, _] = acquainted();
    let frame = called(&mut alice).wire().clone();
    let mut bob = EndpointConfig {
        secret: [99; 32],
        ..config()
    };
    let mut again = endpoint("/bob", 2, bob.clone());
    assert_refused(&mut again, frame.clone(), Refusal::OtherStatic, 1);
    // With the same static key it opens a call by half, as the caller cannot be asked for new keys in one packet; what else was
    // recorded does not fit the callee's new ephemeral key.
    bob.static_key = Some([9; 32]);
    let mut pipe = Pipe::new(Flow::interactive());
    pipe.ends[B] = endpoint("/bob", 2, bob.clone());
    let call = pipe.connect();
    pipe.with_end(A, |end, now| end.close(now, call, ""));
    pipe.run_for(Duration::from_secs(10));
    pipe.sent[A].clear();
    pipe.call();
    pipe.run_for(ms(200));
    let recorded: Vec<_> = pipe.sent[A].iter().map(|it| it.1.clone()).collect();
    bob.secret = [98; 32];
    pipe.ends[B] = endpoint("/bob", 2, bob);
    let heard = pipe.events[B].len();
    for frame in recorded {
        pipe.inject(B, frame);
    }
    pipe.run_for(Duration::from_secs(10));
    let counters = pipe.ends[B].counters();
    assert_eq!((counters.answered, counters.unconfirmed), (1, 1));
    assert!(counters.refused[Refusal::Changed] > 0);
    assert_eq!((counters.established, pipe.events[B].len()), (0, heard));
}

/// Another's set-up under one's own name: the names are part of what both sides agree on.
#[test]
fn under_another_name() {
    let [mut alice, mut bob] = acquainted();
    let parameters = called(&mut alice).parameters().unwrap();
    let frame = setup("/bob/talk", "/eve/talk", parameters);
    assert_refused(&mut bob, frame, Refusal::OtherStatic, 1);
    let mut bob = endpoint(
        "/bob",
        2,
        EndpointConfig {
            caller: Some("/alice/talk".parse().unwrap()),
            ..config()
        },
    );
    let frame = setup("/bob/talk", "/eve/talk", element(XX, &[1; 32]));
    assert_refused(&mut bob, frame, Refusal::OtherCaller, 0);
}
