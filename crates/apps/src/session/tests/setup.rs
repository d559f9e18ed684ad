//! Who is connected with whom, and what strangers, replays and changed packets bring about.

use bytes::Bytes;
use namecast_packet::{LpPacket, Packet};
use namecast_units::{Duration, Instant};

use super::super::*;
use super::pipe::{A, B, Pipe, at, both, endpoint, key, ms, packet};
use crate::Application;
use crate::discovery::Trust;

/// One way takes 25 ms: the answer is here after 50, what shows the keys there after 75.
#[test]
fn a_call_takes_one_round_trip_and_a_half() {
    let mut pipe = Pipe::new(Flow::VOICE);
    pipe.call();
    pipe.run_for(ms(200));
    let when = |side: usize| pipe.events[side].first().map(|(at, _)| *at);
    assert_eq!([when(A), when(B)], [Some(at(50)), Some(at(75))]);
    let (
        _,
        Event::Established {
            call,
            peer,
            was_called,
        },
    ) = &pipe.events[B][0]
    else {
        panic!("{:?}", pipe.events[B]);
    };
    assert!(*was_called);
    assert_eq!(peer.identity.to_string(), "/alice");
    assert_eq!(peer.signer.key_digest, digest("/alice", 1));
    assert_eq!(pipe.established(A), Some(*call));
    // Not before the callee takes it.
    assert_eq!((pipe.events[A].len(), pipe.events[B].len()), (1, 1));
    let call = *call;
    pipe.with_end(B, |end, now| end.accept(now, call));
    pipe.run_for(ms(25));
    assert_eq!(pipe.events[A][1], (at(225), Event::Accepted(call)));
}

fn digest(identity: &str, seed: u8) -> [u8; 32] {
    key(identity, seed).1.public_key().unwrap().digest()
}

/// With half of all packets lost, and one in two out of order.
#[test]
fn a_call_is_set_up_over_a_bad_path() {
    for seed in 0..20 {
        let mut pipe = Pipe::new(Flow::bulk());
        (pipe.loss, pipe.jitter) = ([0.5; 2], ms(40));
        pipe.random = namecast_units::Random::from_seed(seed);
        pipe.call();
        pipe.run_for(Duration::from_secs(20));
        let counts = pipe.ends.each_ref().map(|end| *end.counters());
        assert_eq!(counts[A].established, 1, "seed {seed}: {counts:?}");
        assert!(counts[B].established <= 1, "seed {seed}: {counts:?}");
        let changed = counts.map(|it| it.refused[Refusal::Changed]);
        assert_eq!(changed, [0, 0], "seed {seed}");
    }
}

/// Three of ten packets are lost: the caller still hears that the call is taken, and the other side why it is over, each once and
/// within the four seconds that who hangs up still answers for. Neither speaks meanwhile: nothing follows what was lost.
#[test]
fn a_call_is_taken_and_ended_over_a_lossy_path() {
    for seed in 0..100 {
        let mut pipe = Pipe::new(Flow::VOICE);
        pipe.loss = [0.3; 2];
        pipe.random = namecast_units::Random::from_seed(seed);
        pipe.call();
        pipe.run_for(Duration::from_secs(6));
        let call = pipe.established(B).expect("the call rings");
        pipe.with_end(B, |end, now| end.accept(now, call));
        pipe.run_for(Duration::from_secs(4));
        let is_accepted = |(_, event): &&(Instant, Event)| *event == Event::Accepted(call);
        let accepted = pipe.events[A].iter().filter(is_accepted).count();
        assert_eq!(accepted, 1, "seed {seed}");
        pipe.with_end(A, |end, now| end.close(now, call, "bye"));
        pipe.run_for(Duration::from_secs(5));
        let last = pipe.events[B].last().map(|(_, event)| event.clone());
        let why = End::Other("bye".to_owned());
        assert_eq!(last, Some(Event::Ended(call, why)), "seed {seed}");
        let last = pipe.events[A].last().map(|(_, event)| event.clone());
        assert_eq!(last, Some(Event::Ended(call, End::Own)), "seed {seed}");
    }
}

#[test]
fn words_reach_the_other_side_and_the_end_says_why() {
    let mut pipe = Pipe::new(Flow::interactive());
    let call = pipe.connect();
    pipe.say(A, call, "hello");
    pipe.say(B, call, "good day");
    pipe.run_for(ms(100));
    pipe.with_end(A, |end, now| end.close(now, call, "bye\nnow"));
    pipe.run_for(Duration::from_secs(6));
    let texts = |side| -> Vec<Bytes> { pipe.heard(side).into_iter().map(|it| it.1).collect() };
    assert_eq!(texts(B), ["hello"]);
    assert_eq!(texts(A), ["good day"]);
    let last = |side: usize| pipe.events[side].last().map(|(_, event)| event.clone());
    assert_eq!(last(A), Some(Event::Ended(call, End::Own)));
    let why = End::Other("bye\nnow".to_owned());
    assert_eq!(last(B), Some(Event::Ended(call, why)));
    assert_eq!([A, B].map(|side| pipe.ends[side].stats(call)), [None, None]);
    assert_eq!(pipe.ends[A].poll_timeout(), None, "nothing is left");
}

/// A caller's set-up, as somebody on the path saw it.
fn seen_setup(pipe: &Pipe) -> Bytes {
    pipe.sent[A][0].1.clone()
}

#[test]
fn a_replayed_setup_rings_nowhere() {
    let mut pipe = Pipe::new(Flow::interactive());
    let call = pipe.connect();
    let setup = seen_setup(&pipe);
    pipe.inject(B, setup.clone());
    assert_eq!(
        pipe.ends[B].counters().refused[Refusal::Replayed],
        1,
        "while it lasts"
    );
    pipe.with_end(A, |end, now| end.close(now, call, ""));
    pipe.run_for(Duration::from_secs(10));
    let (events, sent) = (pipe.events[B].len(), pipe.sent[B].len());
    pipe.inject(B, setup.clone());
    pipe.run_for(Duration::from_secs(10));
    assert_eq!(
        pipe.ends[B].counters().refused[Refusal::Replayed],
        2,
        "when it is over"
    );
    assert_eq!((pipe.events[B].len(), pipe.sent[B].len()), (events, sent));
    // Who has forgotten everything answers, and hears no proof of the keys, whatever else is replayed.
    let config = EndpointConfig {
        answers: true,
        secret: [99; 32],
        ..EndpointConfig::default()
    };
    pipe.ends[B] = endpoint("/bob", 2, config);
    let replayed: Vec<_> = pipe.sent[A].iter().map(|it| it.1.clone()).collect();
    for frame in replayed {
        pipe.inject(B, frame);
    }
    pipe.run_for(Duration::from_secs(10));
    let counters = pipe.ends[B].counters();
    assert_eq!((counters.answered, counters.established), (1, 0));
    let changed = counters.refused[Refusal::Changed];
    assert_eq!((counters.unconfirmed, changed), (1, 1));
    assert_eq!(pipe.events[B].len(), events);
}

/// The caller learns from a sealed packet that its key is not admitted; the other side never rings.
#[test]
fn a_key_that_is_not_authorised_is_told_so() {
    for (authorised, is_let_in) in [
        (vec![], false),
        (vec![[0; 32]], false),
        (vec![digest("/alice", 3)], false),
        (vec![[0; 32], digest("/alice", 1)], true),
    ] {
        let mut pipe = Pipe::with(|config| config.authorised = Some(authorised.clone()));
        pipe.call();
        pipe.run_for(Duration::from_secs(2));
        let counters = *pipe.ends[B].counters();
        assert_eq!(counters.established, u64::from(is_let_in), "{authorised:?}");
        if is_let_in {
            continue;
        }
        assert_eq!(counters.refused[Refusal::Untrusted], 1);
        let [(_, Event::Refused(peer))] = &pipe.events[B][..] else {
            panic!("{:?}", pipe.events[B]);
        };
        assert_eq!(peer.signer.key_digest, digest("/alice", 1));
        let (when, Event::Ended(_, End::Other(why))) = &pipe.events[A][1] else {
            panic!("{:?}", pipe.events[A]);
        };
        assert_eq!(
            (*when, &why[..]),
            (at(100), "this key is not admitted here")
        );
        assert_eq!(pipe.ends[B].poll_timeout(), None, "nothing is left");
    }
}

/// Others are refused as often as they call, and reported once a second.
#[test]
fn refused_callers_are_reported_once_a_second() {
    let mut pipe = Pipe::with(|config| config.authorised = Some(Vec::new()));
    for _ in 0..20 {
        pipe.call();
        pipe.run_for(ms(200));
    }
    let refused = pipe.ends[B].counters().refused[Refusal::Untrusted];
    assert_eq!((refused, pipe.events[B].len()), (20, 4));
}

#[test]
fn who_answers_with_another_key_is_refused() {
    let mut pipe = Pipe::new(Flow::interactive());
    let trust = Trust::Remembered(digest("/bob", 3));
    pipe.with_end(A, |end, now| {
        end.call(now, "/bob/talk".parse().unwrap(), trust);
    });
    pipe.run_for(Duration::from_secs(70));
    let [(_, Event::Failed(NoCall::Untrusted(peer)))] = &pipe.events[A][..] else {
        panic!("{:?}", pipe.events[A]);
    };
    assert_eq!(peer.signer.key_digest, digest("/bob", 2));
    assert_eq!(pipe.ends[B].counters().established, 0);
}

/// Changes one octet of the frames that `side` sends and `is_it` chooses, each in its turn.
fn changed_setups(side: usize, is_it: impl Fn(&Packet) -> bool) {
    let mut length = 1;
    let mut at_octet = 0;
    while at_octet < length {
        let mut pipe = Pipe::new(Flow::interactive());
        pipe.loss[side] = 1.0;
        pipe.call();
        for _ in 0..120 {
            let before = pipe.sent[side].len();
            pipe.run_for(ms(1));
            for (_, frame) in pipe.sent[side]
                .clone()
                .into_iter()
                .skip(before.min(1) * before)
            {
                let mut octets = frame.to_vec();
                if packet(&frame).is_some_and(|it| is_it(&it)) {
                    length = octets.len();
                    octets[at_octet] ^= 0x04;
                }
                pipe.inject(1 - side, octets.into());
            }
        }
        let counters = pipe.ends.each_ref().map(|end| *end.counters());
        assert_eq!(counters[B].established, 0, "octet {at_octet}: {counters:?}");
        at_octet += 7;
    }
}

#[test]
fn a_changed_setup_connects_nobody() {
    changed_setups(
        A,
        |it| matches!(it, Packet::Interest(it) if it.parameters().is_some()),
    );
}

#[test]
fn a_changed_answer_connects_nobody() {
    changed_setups(
        B,
        |it| matches!(it, Packet::Data(it) if it.content().is_some_and(|it| it.len() > 150)),
    );
}

#[test]
fn a_changed_confirmation_connects_nobody() {
    changed_setups(
        A,
        |it| matches!(it, Packet::Data(it) if it.name().to_string().contains("32=confirm")),
    );
}

/// A set-up by `eve`, who answers to nothing.
fn call_bob(bob: &mut Endpoint, eve: &mut Endpoint, time: u64) -> EndpointCounters {
    let now = both(at(time));
    eve.call(now, "/bob/talk".parse().unwrap(), Trust::FirstUse);
    let frame = core::iter::from_fn(|| eve.poll_output()).last();
    let Some(crate::Output::Send(frame)) = frame else {
        panic!("no call");
    };
    bob.handle_frame(now, frame);
    *bob.counters()
}

/// Strangers' set-ups that are not confirmed displace each other, the oldest first, and are forgotten after five seconds.
#[test]
fn half_open_calls_of_strangers_are_few() {
    let config = EndpointConfig {
        answers: true,
        limits: SetupLimits {
            max_half_open: 4,
            ..SetupLimits::default()
        },
        ..EndpointConfig::default()
    };
    let mut bob = endpoint("/bob", 2, config);
    let mut eve = endpoint("/eve", 3, EndpointConfig::default());
    for time in 1..=6 {
        call_bob(&mut bob, &mut eve, time);
    }
    let counters = *bob.counters();
    assert_eq!((counters.answered, counters.evicted), (6, 2));
    bob.handle_timeout(both(at(5_100)));
    assert_eq!(bob.counters().unconfirmed, 4);
}

#[test]
fn strangers_are_answered_so_many_times_a_second() {
    let config = EndpointConfig {
        answers: true,
        limits: SetupLimits {
            max_strangers: 3,
            ..SetupLimits::default()
        },
        ..EndpointConfig::default()
    };
    let mut bob = endpoint("/bob", 2, config);
    let mut eve = endpoint("/eve", 3, EndpointConfig::default());
    for (second, unsolved) in [(1, 2), (2, 4)] {
        for number in 0..5 {
            call_bob(&mut bob, &mut eve, second * 1_000 + number);
        }
        assert_eq!(bob.counters().refused[Refusal::Unsolved], unsolved);
    }
    assert_eq!(bob.counters().answered, 6);
}

/// The first packet of a set-up that says who calls.
fn is_ik(frame: &Bytes) -> bool {
    let Some(Packet::Interest(interest)) = packet(frame) else {
        return false;
    };
    interest.parameters().is_some_and(|it| it[0] == 137)
}

/// The second call of two endpoints takes as long as the first, and says in its first packet who calls.
#[test]
fn who_was_there_before_is_called_by_its_key() {
    let mut pipe = Pipe::new(Flow::VOICE);
    let call = pipe.connect();
    assert!(!is_ik(&pipe.sent[A][0].1));
    pipe.with_end(A, |end, now| end.close(now, call, ""));
    pipe.run_for(Duration::from_secs(10));
    let (begin, sent) = (pipe.now, pipe.sent[A].len());
    let heard = pipe.events.each_ref().map(Vec::len);
    pipe.call();
    pipe.run_for(ms(200));
    assert!(is_ik(&pipe.sent[A][sent].1));
    for (side, took) in [(A, 50), (B, 75)] {
        let (
            when,
            Event::Established {
                call: again, peer, ..
            },
        ) = &pipe.events[side][heard[side]]
        else {
            panic!("{:?}", pipe.events[side]);
        };
        assert_eq!(when.since(begin), ms(took));
        assert_ne!(*again, call);
        let identity = ["/bob", "/alice"][side];
        assert_eq!(peer.identity.to_string(), identity);
    }
}

/// A callee that was started again has another static key: it says so, and the caller does without.
#[test]
fn who_has_another_key_is_called_without() {
    let mut pipe = Pipe::new(Flow::VOICE);
    let call = pipe.connect();
    pipe.with_end(A, |end, now| end.close(now, call, ""));
    pipe.run_for(Duration::from_secs(10));
    let config = EndpointConfig {
        answers: true,
        secret: [99; 32],
        ..EndpointConfig::default()
    };
    pipe.ends[B] = endpoint("/bob", 2, config);
    let (begin, heard) = (pipe.now, pipe.events[A].len());
    pipe.call();
    pipe.run_for(ms(300));
    let counters = pipe.ends[B].counters();
    assert_eq!(counters.refused[Refusal::OtherStatic], 1);
    assert_eq!(counters.established, 1);
    assert_eq!(pipe.events[A][heard].0.since(begin), ms(100));
    // From now on that key is known.
    let known = pipe.ends[A].known().last().map(|it| it.static_key);
    let (_, Event::Established { peer, .. }) = &pipe.events[A][heard] else {
        panic!("{:?}", pipe.events[A]);
    };
    assert_eq!(known, Some(peer.static_key));
}

/// What a forger may send to who waits: nothing is taken, nothing panics.
#[test]
fn random_octets_change_nothing() {
    let mut pipe = Pipe::new(Flow::interactive());
    let call = pipe.connect();
    let frames: Vec<_> = pipe.sent.concat().into_iter().map(|it| it.1).collect();
    let mut random = namecast_units::Random::from_seed(3);
    for round in 0..20_000 {
        let frame = &frames[random.below(frames.len() as u64) as usize];
        let mut octets = frame.to_vec();
        for _ in 0..=random.below(3) {
            let place = random.below(octets.len() as u64) as usize;
            octets[place] = random.next_u64() as u8;
        }
        if random.chance(0.2) {
            octets.truncate(random.below(octets.len() as u64) as usize);
        }
        pipe.inject(round % 2, octets.into());
    }
    pipe.say(A, call, "still here");
    pipe.run_for(ms(200));
    assert_eq!(pipe.heard(B).len(), 1);
    let counters = pipe.ends[B].counters();
    assert!(
        counters.refused[Refusal::Malformed] > 100 && counters.unknown > 100,
        "{counters:?}"
    );
    assert_eq!(counters.established, 1);
}

/// A token comes back with each answer, as forwarders expect.
#[test]
fn tokens_come_back() {
    let mut pipe = Pipe::new(Flow::interactive());
    pipe.call();
    let setup = LpPacket::decode(seen_setup(&pipe)).unwrap();
    let mut bob = endpoint(
        "/bob",
        2,
        EndpointConfig {
            answers: true,
            ..EndpointConfig::default()
        },
    );
    let token = Bytes::from_static(b"token");
    let asked = LpPacket {
        pit_token: Some(token.clone()),
        ..setup
    };
    bob.handle_frame(both(Instant::ZERO), asked.encode());
    let Some(crate::Output::Send(answer)) = bob.poll_output() else {
        panic!("no answer");
    };
    assert_eq!(LpPacket::decode(answer).unwrap().pit_token, Some(token));
}
