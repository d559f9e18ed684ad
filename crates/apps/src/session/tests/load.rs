//! More set-ups than an endpoint can answer: an authorised caller still gets its session.

use bytes::Bytes;
use namecast_packet::tlv::Writer;
use namecast_packet::{Interest, Name, Nonce, Packet};
use namecast_units::{Duration, Instant, Random};

use super::super::handshake::{IK, XX};
use super::super::*;
use super::pipe::{A, B, Pipe, at, both, endpoint, key, ms, packet};
use crate::discovery::Trust;
use crate::{Application, Output};

/// What arrives at Bob in each millisecond of an attack: 3 000 set-ups a second.
const EACH_MILLISECOND: usize = 3;

/// Ways to make Bob work.
#[derive(Clone, Copy, Debug)]
enum Attack {
    /// Ephemeral keys alone.
    Keys,
    /// Those, each with a solution that is none.
    Guesses,
    /// Messages sealed for Bob's static key by somebody with a key of her own, whom he does not know.
    Strangers,
    /// Messages for another static key.
    Noise,
    /// All of them in turn.
    All,
}

struct Attacker {
    attack: Attack,
    random: Random,
    /// Set-ups by strangers who know Bob's static key.
    prepared: Vec<Bytes>,
    sent: usize,
}

impl Attacker {
    fn new(attack: Attack, bob: &KnownPeer) -> Self {
        let config = EndpointConfig {
            known: vec![bob.clone()],
            ..EndpointConfig::default()
        };
        let mut eve = endpoint("/eve", 9, config);
        let prepared = (0..500).map(|_| {
            eve.call(both(Instant::ZERO), bob.root.clone(), Trust::FirstUse);
            let outputs = core::iter::from_fn(|| eve.poll_output());
            let frames = outputs.filter_map(|it| match it {
                Output::Send(frame) => Some(frame),
                Output::Event(_) => None,
            });
            frames.last().expect("a call")
        });
        Self {
            attack,
            random: Random::from_seed(11),
            prepared: prepared.collect(),
            sent: 0,
        }
    }

    fn next(&mut self) -> Bytes {
        self.sent += 1;
        let attack = match (self.attack, self.sent % 4) {
            (Attack::All, 0) => Attack::Keys,
            (Attack::All, 1) => Attack::Guesses,
            (Attack::All, 2) => Attack::Strangers,
            (Attack::All, _) => Attack::Noise,
            (attack, _) => attack,
        };
        let mut octets = [0; 700];
        self.random.fill(&mut octets);
        let mut parameters = Writer::default();
        match attack {
            Attack::Strangers => return self.prepared[self.sent % self.prepared.len()].clone(),
            Attack::Noise => parameters.element(IK, &octets),
            Attack::Keys | Attack::All => parameters.element(XX, &octets[..32]),
            Attack::Guesses => {
                parameters.element(XX, &octets[..32]);
                parameters.element(139, &octets[32..56])
            }
        };
        let name: Name = "/bob/talk/call/eve/talk".parse().unwrap();
        let interest = Interest::builder(name).parameters(parameters.finish());
        interest.build(Nonce([1; 4])).wire().clone()
    }
}

/// Alice's key is the only one that is authorised. Returns how long it takes her to be in, under attack for two seconds already.
fn login_under(attack: Attack, is_known: bool) -> (Duration, EndpointCounters) {
    let alices = key("/alice", 1).1.public_key().unwrap().digest();
    let mut pipe = Pipe::with(|config| config.authorised = Some(vec![alices]));
    let call = pipe.connect();
    pipe.with_end(A, |end, now| end.close(now, call, ""));
    pipe.run_for(Duration::from_secs(10));
    let bob = pipe.ends[A].known().last().expect("Bob is known").clone();
    if !is_known {
        let config = EndpointConfig {
            secret: [77; 32],
            ..EndpointConfig::default()
        };
        pipe.ends[A] = endpoint("/alice", 1, config);
    }
    let mut attacker = Attacker::new(attack, &bob);
    let before = pipe.events[B].len();
    let begin = pipe.now;
    let is_in = |pipe: &Pipe| {
        let mut events = pipe.events[B][before..].iter();
        events
            .find(|(_, it)| matches!(it, Event::Established { .. }))
            .map(|it| it.0)
    };
    for millisecond in 0..7_000 {
        if millisecond == 2_000 {
            pipe.call();
        }
        for _ in 0..EACH_MILLISECOND {
            let frame = attacker.next();
            pipe.inject(B, frame);
        }
        pipe.run_for(ms(1));
        pipe.sent[B].clear();
        if let Some(when) = is_in(&pipe) {
            return (when.since(begin + ms(2_000)), *pipe.ends[B].counters());
        }
    }
    panic!("{attack:?}: {:?}", pipe.ends[B].counters());
}

/// One round trip and a half, as without the attack: the callee remembers the caller's static key.
#[test]
fn who_was_there_before_is_in_at_once() {
    for attack in [Attack::Strangers, Attack::Noise, Attack::All] {
        let (took, counters) = login_under(attack, true);
        assert_eq!(took, ms(75), "{attack:?}");
        assert!(
            counters.refused.iter().any(|(_, count)| count > 2_000),
            "{attack:?}"
        );
    }
}

/// One more round trip, for the puzzle; the callee answered no more than 20 strangers a second meanwhile.
#[test]
fn who_is_new_is_in_for_a_puzzle() {
    for attack in [Attack::Keys, Attack::Guesses, Attack::All] {
        let (took, counters) = login_under(attack, false);
        assert!(took >= ms(75) && took <= ms(125), "{attack:?}: {took:?}");
        assert!(counters.answered <= 3 * 20 + 2, "{attack:?}: {counters:?}");
        let is_free = matches!(attack, Attack::Guesses);
        assert_eq!(counters.solved, u64::from(!is_free), "{attack:?}");
    }
}

/// Whoever recorded Alice's set-ups of before has nothing that opens a call, and displaces nobody.
#[test]
fn replays_displace_nobody() {
    let mut pipe = Pipe::new(Flow::VOICE);
    let call = pipe.connect();
    pipe.with_end(A, |end, now| end.close(now, call, ""));
    pipe.run_for(Duration::from_secs(10));
    // Her set-ups of before, replayed by the thousand while she calls again.
    let mut captured: Vec<Bytes> = pipe.sent[A].iter().map(|it| it.1.clone()).collect();
    for _ in 0..3 {
        pipe.call();
        pipe.run_for(ms(300));
        let call = pipe.events[A].iter().rev().find_map(|(_, it)| match it {
            Event::Established { call, .. } => Some(*call),
            _ => None,
        });
        let call = call.expect("established");
        pipe.with_end(A, |end, now| end.close(now, call, ""));
        pipe.run_for(Duration::from_secs(10));
    }
    captured.extend(pipe.sent[A].iter().map(|it| it.1.clone()));
    captured.retain(
        |frame| matches!(packet(frame), Some(Packet::Interest(it)) if it.parameters().is_some()),
    );
    let before = pipe.ends[B].counters().established;
    pipe.call();
    let end = pipe.now + ms(200);
    for number in 0.. {
        pipe.inject(B, captured[number % captured.len()].clone());
        if number % 3 == 0 {
            pipe.run_for(ms(1));
        }
        if pipe.now >= end {
            break;
        }
    }
    let counters = pipe.ends[B].counters();
    assert_eq!(counters.established, before + 1);
    assert!(counters.refused[Refusal::Replayed] > 400, "{counters:?}");
}

/// Half-open calls of other strangers displace one only so fast that a round trip of a second is completed, after one for the
/// puzzle.
#[test]
fn a_stranger_has_time_to_confirm() {
    let mut pipe = Pipe::new(Flow::VOICE);
    pipe.delay = ms(500);
    let bob = KnownPeer {
        root: "/bob/talk".parse().unwrap(),
        key_digest: [0; 32],
        static_key: [1; 32],
    };
    let mut attacker = Attacker::new(Attack::Keys, &bob);
    pipe.call();
    for _ in 0..2_000 {
        let frame = attacker.next();
        pipe.inject(B, frame);
        pipe.run_for(ms(2));
        pipe.sent[B].clear();
    }
    assert_eq!(pipe.ends[B].counters().established, 1);
    let first = pipe.events[B].first().map(|it| it.0);
    assert_eq!(first, Some(at(2_500)));
}

/// A known peer that sets up calls by the hundred is answered four times a second, and then solves puzzles as a stranger does: those
/// whose key was admitted once cannot have more computed than others.
#[test]
fn a_known_peer_has_its_share() {
    let mut pipe = Pipe::new(Flow::VOICE);
    let call = pipe.connect();
    pipe.with_end(A, |end, now| end.close(now, call, ""));
    pipe.run_for(Duration::from_secs(10));
    let before = *pipe.ends[B].counters();
    for _ in 0..300 {
        let now = both(pipe.now);
        pipe.ends[A].call(now, "/bob/talk".parse().unwrap(), Trust::FirstUse);
        while let Some(output) = pipe.ends[A].poll_output() {
            if let Output::Send(frame) = output {
                pipe.ends[B].handle_frame(now, frame);
            }
        }
        pipe.now += ms(1);
    }
    let after = pipe.ends[B].counters();
    assert_eq!(after.answered - before.answered, 4 + 20);
    assert_eq!(after.refused[Refusal::Unsolved], 300 - 24);
}

/// Whoever claims Alice's static key, which those she called know, displaces no half-open call of hers: the rest of such a message is
/// not sealed with her secret.
#[test]
fn a_claimed_key_displaces_nobody() {
    let mut pipe = Pipe::with(|config| config.limits.max_half_open_per_key = 1);
    let call = pipe.connect();
    pipe.with_end(A, |end, now| end.close(now, call, ""));
    pipe.run_for(Duration::from_secs(10));
    let before = *pipe.ends[B].counters();
    // Messages of hers that never arrived, with another end.
    let mut claims = Vec::new();
    for _ in 0..3 {
        let now = both(pipe.now);
        pipe.ends[A].call(now, "/bob/talk".parse().unwrap(), Trust::FirstUse);
        let outputs = core::iter::from_fn(|| pipe.ends[A].poll_output());
        let frames = outputs.filter_map(|it| match it {
            Output::Send(frame) => packet(&frame),
            Output::Event(_) => None,
        });
        let Some(Packet::Interest(interest)) = frames.last() else {
            panic!("no call");
        };
        let mut parameters = interest.parameters().unwrap().to_vec();
        *parameters.last_mut().unwrap() ^= 1;
        let name: Name = "/bob/talk/call/alice/talk".parse().unwrap();
        let claim = Interest::builder(name).parameters(parameters);
        claims.push(claim.build(Nonce([1; 4])).wire().clone());
    }
    pipe.call();
    pipe.run_for(ms(30));
    for claim in claims {
        pipe.inject(B, claim);
    }
    pipe.run_for(ms(100));
    let after = pipe.ends[B].counters();
    assert_eq!(
        after.refused[Refusal::Changed] - before.refused[Refusal::Changed],
        3
    );
    assert_eq!(
        (after.evicted, after.established),
        (0, before.established + 1)
    );
}
