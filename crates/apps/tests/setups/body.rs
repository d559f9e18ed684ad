//! An endpoint that gets any octets as a message of a set-up. Body of a fuzz target (see `fuzz/`), run here on damaged seeds.

use std::sync::OnceLock;

use bytes::Bytes;
use namecast_apps::live::watcher::Trust;
use namecast_apps::session::{Endpoint, EndpointConfig, Event, KnownPeer, SetupLimits};
use namecast_apps::{Application, Now, Output};
use namecast_packet::signature::{Ed25519Signer, NullSigner};
use namecast_packet::{Certificate, Data, Interest, KeyLocator, Name, Nonce, Packet, Validity};
use namecast_units::{Duration, Instant, Timestamp};

/// What the first octet of an input chooses.
pub(crate) const KINDS: u8 = 4;
/// The octets are parameters of a call: the first message.
const FIRST: u8 = 0;
/// The octets are the content that answers a call: the second message, a refusal, or a puzzle.
const SECOND: u8 = 1;
/// The octets are the content that confirms a call: the third message.
const THIRD: u8 = 2;

/// The caller knows the callee's static key.
const KNOWN: u8 = 1;
/// The callee sets a puzzle.
const PUZZLED: u8 = 2;
/// The callee takes nobody's calls.
const CLOSED: u8 = 4;
/// The callee has another static key than before.
const OTHER_STATIC: u8 = 8;
/// Ways to set up of which there are seeds.
const WAYS: [u8; 6] = [
    0,
    KNOWN,
    PUZZLED,
    CLOSED,
    KNOWN | CLOSED,
    KNOWN | OTHER_STATIC,
];

const ALICE: &str = "/alice/talk";
const BOB: &str = "/bob/talk";
const CAROL: &str = "/carol/talk";
/// Turns that a set-up takes at most.
const MAX_TURNS: usize = 200;

/// The first octet says which message the others are, the second one between whom. Returns whether caller and callee have a call then.
pub(crate) fn setup(octets: &[u8]) -> [bool; 2] {
    let &[kind, way, ref octets @ ..] = octets else {
        return [false; 2];
    };
    let octets = Bytes::copy_from_slice(octets);
    let mut hostile = Hostile::new(way);
    match kind % KINDS {
        FIRST => hostile.give_bob(call(&octets)),
        SECOND => {
            let name = hostile.called.name().clone();
            hostile.give_alice(content(&name, &octets));
        }
        THIRD => {
            hostile.give_bob(hostile.called.wire().clone());
            if let Some(name) = hostile.confirmation.clone() {
                hostile.give_bob(content(&name, &octets));
            }
        }
        _ => hostile.give_frames(&octets),
    }
    hostile.check(way, &octets)
}

/// Alice, who has called Bob, and Bob.
struct Hostile {
    alice: Endpoint,
    bob: Endpoint,
    called: Interest,
    /// Name of what confirms the call, if Bob has asked for it.
    confirmation: Option<Name>,
    /// Whether Alice and Bob have established the call.
    is_established: [bool; 2],
}

impl Hostile {
    fn new(way: u8) -> Self {
        let [mut alice, bob] = ends(way);
        alice.call(at(0), BOB.parse().expect("a name"), Trust::FirstUse);
        let called = taken(&mut alice, 0).0.into_iter().find_map(interest);
        Self {
            alice,
            bob,
            called: called.expect("a call"),
            confirmation: None,
            is_established: [false; 2],
        }
    }

    fn give_alice(&mut self, frame: Bytes) {
        self.alice.handle_frame(at(0), frame);
        let (_, established) = taken(&mut self.alice, 0);
        self.is_established[0] |= established > 0;
    }

    fn give_bob(&mut self, frame: Bytes) {
        self.bob.handle_frame(at(0), frame);
        let (packets, established) = taken(&mut self.bob, 0);
        self.is_established[1] |= established > 0;
        let asked = packets.into_iter().filter_map(interest).next_back();
        self.confirmation = asked
            .map(|it| it.name().clone())
            .or(self.confirmation.take());
    }

    /// Gives Bob's answer to Alice and his question, then frames, each behind a side and its length.
    fn give_frames(&mut self, mut octets: &[u8]) {
        self.give_bob(self.called.wire().clone());
        while let &[side, high, low, ref rest @ ..] = octets {
            let length = usize::from(u16::from_be_bytes([high, low]));
            let (frame, after) = rest.split_at(length.min(rest.len()));
            octets = after;
            match side % 2 {
                0 => self.give_alice(Bytes::copy_from_slice(frame)),
                _ => self.give_bob(Bytes::copy_from_slice(frame)),
            }
        }
    }

    /// Only what the other side sent establishes a call, and afterwards Bob takes the call of somebody else.
    fn check(mut self, way: u8, octets: &[u8]) -> [bool; 2] {
        let is_genuine = || {
            seeds_of(way)
                .iter()
                .any(|(_, seed)| carries(octets, &seed[2..]))
        };
        assert!(!self.is_established.contains(&true) || is_genuine());
        if way & CLOSED == 0 {
            let mut carol = end(CAROL, 3, Vec::new(), EndpointConfig::default());
            carol.call(at(10), BOB.parse().expect("a name"), Trust::FirstUse);
            let heard = converse([&mut carol, &mut self.bob], 10);
            assert!(heard.established[1], "an honest caller does not get in");
        }
        self.is_established
    }
}

fn carries(octets: &[u8], genuine: &[u8]) -> bool {
    octets.windows(genuine.len().max(1)).any(|it| it == genuine)
}

/// Alice and Bob, who set up a call in a `way`.
fn ends(way: u8) -> [Endpoint; 2] {
    let known = match way & KNOWN {
        0 => Vec::new(),
        _ => acquainted(),
    };
    let static_key = match way & OTHER_STATIC {
        0 => 0x12,
        _ => 0x13,
    };
    let bob = EndpointConfig {
        answers: true,
        static_key: Some([static_key; 32]),
        authorised: (way & CLOSED != 0).then(Vec::new),
        limits: SetupLimits {
            max_strangers: if way & PUZZLED == 0 { 20 } else { 0 },
            min_difficulty: 1,
            ..SetupLimits::default()
        },
        ..EndpointConfig::default()
    };
    let alice = EndpointConfig {
        static_key: Some([0x11; 32]),
        ..EndpointConfig::default()
    };
    [end(ALICE, 1, known, alice), end(BOB, 2, Vec::new(), bob)]
}

/// Bob, as Alice knows him after a call.
fn acquainted() -> Vec<KnownPeer> {
    static KNOWN_PEERS: OnceLock<Vec<KnownPeer>> = OnceLock::new();
    let known = KNOWN_PEERS.get_or_init(|| {
        let [mut alice, mut bob] = ends(0);
        alice.call(at(0), BOB.parse().expect("a name"), Trust::FirstUse);
        converse([&mut alice, &mut bob], 0);
        alice.known().cloned().collect()
    });
    assert_eq!(known.len(), 1);
    known.clone()
}

fn end(root: &str, seed: u8, known: Vec<KnownPeer>, config: EndpointConfig) -> Endpoint {
    let root: Name = root.parse().expect("a name");
    let identity = root.prefix(1);
    let signer = Ed25519Signer::from_seed([seed; 32], KeyLocator::Name(identity.clone()));
    let validity = Validity::of_own_key(at(0).wall);
    let certificate = Certificate::self_signed(&identity, &[seed; 8], 1, validity, &signer);
    let locator = KeyLocator::Name(certificate.key_name());
    let config = EndpointConfig {
        root,
        known,
        secret: [seed + 0x20; 32],
        seed: u64::from(seed),
        ..config
    };
    let signer = Ed25519Signer::from_seed([seed; 32], locator);
    Endpoint::new(config, &signer, &certificate)
}

/// What went between two, and whether each side has established the call.
#[derive(Default)]
struct Heard {
    packets: Vec<Packet>,
    established: [bool; 2],
}

/// Carries what two send to each other from the second `begun` on, until they have a call or nothing more to send.
fn converse(ends: [&mut Endpoint; 2], begun: u64) -> Heard {
    let mut heard = Heard::default();
    for _ in 0..MAX_TURNS {
        for side in [0, 1] {
            let (packets, established) = taken(ends[side], begun);
            heard.established[side] |= established > 0;
            for packet in packets {
                let wire = match &packet {
                    Packet::Interest(interest) => interest.wire().clone(),
                    Packet::Data(data) => data.wire().clone(),
                };
                ends[1 - side].handle_frame(at(begun), wire);
                heard.packets.push(packet);
            }
        }
        if heard.established == [true; 2] {
            break;
        }
    }
    heard
}

/// What an endpoint sends at the second `now`, and how many calls it reports.
fn taken(end: &mut Endpoint, now: u64) -> (Vec<Packet>, usize) {
    end.handle_timeout(at(now));
    let (mut packets, mut established) = (Vec::new(), 0);
    while let Some(output) = end.poll_output() {
        match output {
            Output::Send(frame) => packets.extend(packet(frame)),
            Output::Event(Event::Established { .. }) => established += 1,
            Output::Event(_) => {}
        }
    }
    assert!(packets.len() <= 64, "{} packets at once", packets.len());
    (packets, established)
}

fn packet(frame: Bytes) -> Option<Packet> {
    let packet = namecast_packet::LpPacket::decode(frame).expect("what is sent reads");
    Packet::decode(packet.fragment?).ok()
}

fn interest(packet: Packet) -> Option<Interest> {
    match packet {
        Packet::Interest(interest) => Some(interest),
        Packet::Data(_) => None,
    }
}

/// A call of Alice with these parameters.
fn call(parameters: &Bytes) -> Bytes {
    let name: Name = format!("{BOB}/call{ALICE}").parse().expect("a name");
    let interest = Interest::builder(name).parameters(parameters.clone());
    interest.build(Nonce([1; 4])).wire().clone()
}

fn content(name: &Name, octets: &Bytes) -> Bytes {
    let data = Data::builder(name.clone()).content(octets.clone());
    data.sign(&NullSigner).wire().clone()
}

fn at(seconds: u64) -> Now {
    Now {
        monotonic: Instant::ZERO + Duration::from_secs(seconds),
        wall: Timestamp::from_micros((1_700_000_000 + seconds) * 1_000_000),
    }
}

/// The messages of set-ups between two honest sides, as inputs, by name.
pub(crate) fn seeds() -> Vec<(String, Vec<u8>)> {
    WAYS.into_iter().flat_map(seeds_of).collect()
}

fn seeds_of(way: u8) -> Vec<(String, Vec<u8>)> {
    let [mut alice, mut bob] = ends(way);
    alice.call(at(0), BOB.parse().expect("a name"), Trust::FirstUse);
    let heard = converse([&mut alice, &mut bob], 0);
    let mut frames = Vec::new();
    let mut seeds = Vec::new();
    let mut add = |kind: u8, octets: &[u8]| {
        let name = format!("{kind}-{way}-{}", seeds.len());
        seeds.push((name, [&[kind, way], octets].concat()));
    };
    for packet in &heard.packets {
        let (to, wire) = match packet {
            Packet::Interest(interest) => {
                if let Some(parameters) = interest.parameters() {
                    add(FIRST, &parameters);
                }
                let is_call = interest.parameters().is_some();
                (u8::from(is_call), interest.wire())
            }
            Packet::Data(data) => {
                let content = data.content().unwrap_or_default();
                let is_answer = data.name().len() > 4;
                let is_confirmation = data.name().to_string().ends_with("32=confirm");
                match (is_answer, is_confirmation) {
                    (_, true) => add(THIRD, &content),
                    (true, false) => add(SECOND, &content),
                    (false, false) => {}
                }
                (u8::from(is_confirmation), data.wire())
            }
        };
        frames.push(to);
        frames.extend_from_slice(&(wire.len() as u16).to_be_bytes());
        frames.extend_from_slice(wire);
    }
    add(3, &frames);
    seeds
}
