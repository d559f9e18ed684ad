//! Two nodes and a link between them that does anything: fragments, Acks, losses, copies, damage, lies. No panic, an end, bounds
//! kept, and as long as nobody lies nothing arrives that was not sent. Body of a fuzz target (see `fuzz/`), run here on random
//! scripts.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use namecast_forward::{
    Config, ContentStoreConfig, FaceConfig, FaceId, Keep, LinkConfig, Node, PitConfig,
    ReassemblyConfig, ReliabilityConfig,
};
use namecast_packet::signature::NullSigner;
use namecast_packet::{Data, Interest, LpPacket, Name, Nonce, Packet};
use namecast_units::{ByteSize, Instant};

/// Frames on the link each way; further ones are lost.
const MAX_FRAMES: usize = 256;
const MAX_PENDING: usize = 20;
const CACHE: ByteSize = ByteSize::bytes(30_000);
/// Frames that one event may bring about, by the bounds below: every fragment that is kept, and as many Acks.
const MAX_AT_ONCE: usize = 2_000;
/// Timers that may go off until a node that hears nothing is at rest.
const MAX_TIMERS: usize = 20_000;

/// What came of a script.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Data that reached the consumer.
    pub(crate) received: u64,
    /// Interests that the producer got.
    pub(crate) asked: u64,
}

/// A script: octets that say what happens next.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn octet(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> u64 {
        u64::from(self.octet().unwrap_or(0))
    }

    /// A number of any size, small ones mostly.
    fn any_number(&mut self) -> u64 {
        match self.number() {
            high @ 224.. => u64::MAX - high,
            low => low,
        }
    }

    fn octets(&mut self) -> Bytes {
        let count = (self.number() as usize).min(self.0.len());
        let (octets, rest) = self.0.split_at(count);
        self.0 = rest;
        Bytes::copy_from_slice(octets)
    }
}

/// A node, its face to the link, and its face to the application.
struct End {
    node: Node,
    link: FaceId,
    application: FaceId,
}

impl End {
    fn new(mtu: usize) -> Self {
        let mut node = Node::new(Config {
            keep: Keep::Frames,
            pit: PitConfig {
                capacity: MAX_PENDING,
                ..PitConfig::default()
            },
            content_store: ContentStoreConfig::with_capacity(CACHE),
            link: LinkConfig {
                max_fragments: 64,
                reassembly: ReassemblyConfig {
                    max_packets: 4,
                    max_octets: ByteSize::bytes(20_000),
                    ..ReassemblyConfig::default()
                },
                reliability: ReliabilityConfig {
                    max_frames: 128,
                    max_octets: ByteSize::bytes(30_000),
                    ..ReliabilityConfig::default()
                },
                ..LinkConfig::default()
            },
            ..Config::default()
        });
        let link = FaceConfig {
            mtu: Some(mtu),
            reliability: true,
            ..FaceConfig::default()
        };
        let mut add = |config| node.add_face(config).expect("there is room");
        let (link, application) = (add(link), add(FaceConfig::application("")));
        Self {
            node,
            link,
            application,
        }
    }
}

struct Scene {
    now: Instant,
    mtu: usize,
    ends: [End; 2],
    /// Frames to each end.
    flying: [VecDeque<Bytes>; 2],
    /// Interests that the producer has not answered.
    wanted: VecDeque<Name>,
    sent: BTreeMap<Name, Data>,
    next: u64,
    /// Anything may arrive once somebody lied.
    is_honest: bool,
    outcome: Outcome,
}

/// Plays a script to its end, and lets both nodes come to rest.
pub(crate) fn link_service(octets: &[u8]) -> Outcome {
    let mut script = Script(octets);
    let mtu = 64 + 8 * script.number() as usize;
    let mut scene = Scene {
        now: Instant::ZERO,
        mtu,
        ends: [End::new(mtu), End::new(mtu)],
        flying: Default::default(),
        wanted: VecDeque::new(),
        sent: BTreeMap::new(),
        next: 0,
        is_honest: true,
        outcome: Outcome::default(),
    };
    for (place, to) in [(0, scene.ends[0].link), (1, scene.ends[1].application)] {
        let node = &mut scene.ends[place].node;
        node.forwarder
            .add_route(Name::root(), to, 0)
            .expect("there is room");
    }
    while let Some(what) = script.octet() {
        scene.step(what, &mut script);
        scene.drain();
    }
    scene.rest();
    scene.outcome
}

impl Scene {
    fn step(&mut self, what: u8, script: &mut Script<'_>) {
        let to = usize::from(what >> 7);
        match what & 0x7F {
            0..=15 => self.ask(),
            16..=31 => self.answer(script.number() as usize * 40),
            32..=71 => self.deliver(to, script.number() as usize),
            72..=79 => drop(self.flying[to].pop_front()),
            80..=87 => {
                let copy = self.flying[to].front().cloned();
                self.flying[to].extend(copy);
            }
            88..=95 => self.damage(to, script),
            96..=103 => self.lie(to, script.octets()),
            104..=111 => self.lie(to, fragment(script).encode()),
            _ => self.wait(script.number()),
        }
    }

    fn handle(&mut self, at: usize, face: FaceId, frame: Bytes) {
        self.ends[at].node.handle_frame(self.now, face, frame);
    }

    fn ask(&mut self) {
        let name = Name::root().builder().generic("p").segment(self.next);
        let interest = Interest::builder(name.finish()).lifetime(Duration::from_millis(400));
        self.next += 1;
        let interest = interest.build(Nonce::from(self.next as u32));
        self.handle(0, self.ends[0].application, interest.wire().clone());
    }

    fn answer(&mut self, length: usize) {
        let Some(name) = self.wanted.pop_front() else {
            return;
        };
        let length = length.min(8_000);
        let content: Vec<u8> = (0..length).map(|at| (at * 7) as u8).collect();
        let data = Data::builder(name.clone()).content(content);
        let data = data.sign(&NullSigner);
        self.sent.insert(name, data.clone());
        self.handle(1, self.ends[1].application, data.wire().clone());
    }

    /// Hands over one of the frames on the way, mostly the first.
    fn deliver(&mut self, to: usize, place: usize) {
        let flying = &mut self.flying[to];
        let place = place.saturating_sub(200);
        if let Some(frame) = flying.remove(place.min(flying.len().saturating_sub(1))) {
            self.handle(to, self.ends[to].link, frame);
        }
    }

    fn damage(&mut self, to: usize, script: &mut Script<'_>) {
        if let Some(frame) = self.flying[to].pop_front() {
            let mut octets = frame.to_vec();
            let at = script.number() as usize % octets.len().max(1);
            if let Some(octet) = octets.get_mut(at) {
                *octet ^= script.number() as u8;
            }
            self.lie(to, octets.into());
        }
    }

    fn lie(&mut self, to: usize, frame: Bytes) {
        self.is_honest = false;
        self.handle(to, self.ends[to].link, frame);
    }

    /// Lets time pass: up to a quarter of a second, or to the next timer.
    fn wait(&mut self, millis: u64) {
        let timers = self.ends.iter().filter_map(|end| end.node.poll_timeout());
        let timer = timers.min().filter(|_| millis == 255);
        let after = self.now + Duration::from_millis(millis);
        self.now = timer.map_or(after, |at| at.max(self.now));
        for end in &mut self.ends {
            end.node.handle_timeout(self.now);
        }
    }

    /// Takes what the nodes send.
    fn drain(&mut self) {
        for from in [0, 1] {
            let end = &mut self.ends[from];
            let sent: Vec<_> = core::iter::from_fn(|| end.node.poll_output()).collect();
            assert!(sent.len() <= MAX_AT_ONCE, "{}", sent.len());
            assert!(end.node.forwarder.pending_interests() <= MAX_PENDING + 1);
            assert!(end.node.forwarder.content_store().size() <= CACHE);
            let link = end.link;
            for transmit in sent {
                if transmit.face == link {
                    assert!(transmit.frame.len() <= self.mtu, "{}", transmit.frame.len());
                    if self.flying[1 - from].len() < MAX_FRAMES {
                        self.flying[1 - from].push_back(transmit.frame);
                    }
                } else {
                    self.receive(from, transmit.frame);
                }
            }
        }
    }

    /// What an application gets.
    fn receive(&mut self, at: usize, frame: Bytes) {
        let packet = LpPacket::decode(frame).expect("our own frames are right");
        let Some(Ok(packet)) = packet.fragment.map(Packet::decode) else {
            return;
        };
        match packet {
            Packet::Interest(interest) if at == 1 => {
                self.outcome.asked += 1;
                self.wanted.push_back(interest.name().clone());
                self.wanted.truncate(MAX_FRAMES);
            }
            Packet::Data(data) if self.is_honest => {
                self.outcome.received += 1;
                assert_eq!(self.sent.get(data.name()), Some(&data));
            }
            _ => {}
        }
    }

    /// The link is cut: every packet is given up, every timer ends.
    fn rest(&mut self) {
        for _ in 0..MAX_TIMERS {
            let timers = self.ends.iter().filter_map(|end| end.node.poll_timeout());
            let Some(at) = timers.min() else {
                let pending = self
                    .ends
                    .iter()
                    .map(|end| end.node.forwarder.pending_interests());
                assert_eq!(pending.sum::<usize>(), 0);
                return;
            };
            self.now = self.now.max(at);
            for end in &mut self.ends {
                end.node.handle_timeout(self.now);
                core::iter::from_fn(|| end.node.poll_output()).for_each(drop);
            }
        }
        panic!("the nodes do not come to rest");
    }
}

/// A link packet with any numbers, and some octets of a packet.
fn fragment(script: &mut Script<'_>) -> LpPacket {
    let what = script.number();
    let mut number = |bit: u64| (what & bit != 0).then(|| script.any_number());
    LpPacket {
        sequence: number(1),
        fragment_count: number(2),
        fragment_index: number(4).unwrap_or(0),
        tx_sequence: number(8),
        acks: number(16).into_iter().chain(number(32)).collect(),
        fragment: match what & 64 {
            0 => None,
            _ => Some(script.octets()),
        },
        ..LpPacket::default()
    }
}
