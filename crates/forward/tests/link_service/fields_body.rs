//! Three nodes with rate feedback and path labels, and neighbours that say anything in their fields. No panic, and nobody hears a
//! field who does not speak it. Body of a fuzz target (see `fuzz/`), run here on random scripts.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use namecast_forward::{
    AnyNext, AnyNextConfig, Config, ExtensionFields, FaceConfig, FaceId, Node, PathLabels,
    PconProfile, Piggyback, RateFeedback, RateFeedbackConfig, StrategyKind,
};
use namecast_packet::lp::NackReason;
use namecast_packet::signature::NullSigner;
use namecast_packet::{
    AnyNextRequest, Data, Extensions, Interest, LpPacket, Name, Nonce, PathLabel,
};
use namecast_units::Instant;

/// Frames that one event may bring about.
const MAX_AT_ONCE: usize = 200;
/// Field that asks and answers whether fields are spoken.
const SUPPORT: u32 = Extensions::SUPPORT;
/// Field with an Interest that comes with Data.
const PIGGYBACKED_INTEREST: u32 = 872;

/// Who is at the other end of a face.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Other {
    Node(usize, FaceId),
    /// An application, or a neighbour that speaks, played by the script.
    Speaks,
    /// A neighbour of which nothing is known until the script has it say something.
    Unknown,
    /// A neighbour that does not speak.
    Mute,
}

/// What came of a script.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    /// Data with a hop count, and with a path, that reached who speaks.
    pub(crate) counts: u64,
    pub(crate) paths: u64,
    /// Copies of Data for requests for any next packets.
    pub(crate) any_next: u64,
    /// Rates that content stores told.
    pub(crate) tags: u64,
}

struct Net {
    now: Instant,
    nodes: [Node; 3],
    faces: Vec<(usize, FaceId, Other)>,
    heard: Heard,
    /// A path that Data came with.
    known: Option<PathLabel>,
}

/// Runs a script: octets that say who sends what next.
pub(crate) fn fields(script: &[u8]) -> Heard {
    let mut net = Net::new();
    let mut script = script.iter().copied();
    while let Some(event) = script.next() {
        net.now += Duration::from_micros(u64::from(script.next().unwrap_or(0)) * 50);
        net.step(event, &mut script);
    }
    for node in &net.nodes {
        net.heard.tags += node.counters().feedback.rate_tags_set;
    }
    net.heard
}

impl Net {
    fn new() -> Self {
        let node = |seed| {
            let mut node = Node::new(Config {
                seed,
                ..Config::default()
            });
            let feedback = RateFeedback::new(RateFeedbackConfig {
                window: 3,
                max_flows: 2,
                ..RateFeedbackConfig::default()
            });
            let forwarder = &mut node.forwarder;
            forwarder.install(Box::new(feedback.expect("within its bounds")));
            forwarder.install(Box::new(PathLabels::default()));
            forwarder.install(Box::<Piggyback>::default());
            forwarder.install(Box::new(AnyNext::new(AnyNextConfig {
                max_flows_of_face: 2,
                max_counters: 5,
            })));
            let strategy = StrategyKind::Pcon(PconProfile::Published);
            let prefix = "/b".parse().expect("a name");
            forwarder.set_strategy(prefix, strategy).expect("room");
            node
        };
        let mut net = Self {
            now: Instant::ZERO,
            nodes: [node(1), node(2), node(3)],
            faces: Vec::new(),
            heard: Heard::default(),
            known: None,
        };
        for (near, far) in [(0, 1), (1, 2), (0, 2)] {
            net.link(near, far);
        }
        for node in 0..3 {
            for (fields, other) in [
                (ExtensionFields::On, Other::Speaks),
                (ExtensionFields::Auto, Other::Unknown),
                (ExtensionFields::Off, Other::Mute),
            ] {
                net.end(node, fields, other);
            }
            let application = FaceConfig::application("");
            let face = net.nodes[node].add_face(application).expect("room");
            net.faces.push((node, face, Other::Speaks));
            net.route(node, face, "/a");
        }
        net
    }

    fn link(&mut self, near: usize, far: usize) {
        let config = FaceConfig {
            extension_fields: ExtensionFields::Auto,
            ..FaceConfig::default()
        };
        let here = self.nodes[near].add_face(config.clone()).expect("room");
        let there = self.nodes[far].add_face(config).expect("room");
        self.faces.push((near, here, Other::Node(far, there)));
        self.faces.push((far, there, Other::Node(near, here)));
        self.route(near, here, "/");
        self.route(far, there, "/b");
    }

    fn end(&mut self, node: usize, extension_fields: ExtensionFields, other: Other) {
        let config = FaceConfig {
            extension_fields,
            ..FaceConfig::default()
        };
        let face = self.nodes[node].add_face(config).expect("room");
        self.faces.push((node, face, other));
        self.route(node, face, "/b");
    }

    fn route(&mut self, node: usize, face: FaceId, prefix: &str) {
        let prefix = prefix.parse().expect("a name");
        let forwarder = &mut self.nodes[node].forwarder;
        forwarder
            .add_route(prefix, face, face.number())
            .expect("room");
    }

    fn step(&mut self, event: u8, script: &mut impl Iterator<Item = u8>) {
        let mut octet = || script.next().unwrap_or(0);
        let place = usize::from(octet()) % self.faces.len();
        let (node, face, other) = self.faces[place];
        if event > 250 {
            // The face goes, and one of its kind comes.
            self.nodes[node].remove_face(self.now, face);
            if !matches!(other, Other::Node(..)) {
                self.faces.remove(place);
                self.end(node, ExtensionFields::Auto, Other::Unknown);
            }
            return self.settle();
        }
        if matches!(other, Other::Node(..)) {
            self.nodes
                .iter_mut()
                .for_each(|node| node.handle_timeout(self.now));
            return self.settle();
        }
        let number = octet();
        let uri = format!("/{}/{}", ["a", "b"][usize::from(number & 1)], number % 8);
        let name: Name = uri.parse().expect("a name");
        let nonce = Nonce::from(u32::from_be_bytes([octet(), octet(), 0, number]));
        let interest = Interest::builder(name.clone()).build(nonce);
        let data = Data::builder(name).content(vec![number]).sign(&NullSigner);
        let mut packet = LpPacket::carrying(match event % 2 {
            0 => interest.wire().clone(),
            _ => data.wire().clone(),
        });
        if event.is_multiple_of(16) {
            packet.nack = Some(NackReason::Congestion);
        }
        for _ in 0..event / 16 % 4 {
            let number = Extensions::RATE_TAG + 4 * u32::from(octet() % 9);
            let length = usize::from(octet() % 12);
            let value: Vec<u8> = (0..length).map(|_| octet()).collect();
            if Extensions::has_number(number) {
                packet.extensions.set(number, value);
            } else if number == PIGGYBACKED_INTEREST {
                packet.piggybacked_interest = Some(value.into());
            }
        }
        match event / 64 {
            1 => packet
                .extensions
                .set(Extensions::PATH_LABEL, PathLabel::DISCOVERY.as_octets()),
            2 => {
                let known = self.known.unwrap_or(PathLabel::EMPTY);
                packet
                    .extensions
                    .set(Extensions::PATH_LABEL, known.as_octets());
            }
            _ => {}
        }
        any_next(&mut packet, (event, number), &interest, &mut octet);
        if packet.extensions.get(SUPPORT).is_some() && other == Other::Unknown {
            // Whoever asks or answers speaks.
            self.faces[place].2 = Other::Speaks;
        }
        self.nodes[node].handle_frame(self.now, face, packet.encode());
        self.settle();
    }

    /// Has all frames arrive, and hears those that leave.
    fn settle(&mut self) {
        let mut frames = VecDeque::new();
        for _ in 0..MAX_AT_ONCE {
            for (place, node) in self.nodes.iter_mut().enumerate() {
                let sent = core::iter::from_fn(|| node.poll_output());
                frames.extend(sent.map(|transmit| (place, transmit.face, transmit.frame)));
            }
            let Some((node, face, frame)) = frames.pop_front() else {
                return;
            };
            let other = self.faces.iter().find(|it| (it.0, it.1) == (node, face));
            match other.map(|it| it.2) {
                Some(Other::Node(to, at)) => self.nodes[to].handle_frame(self.now, at, frame),
                Some(other) => self.hear(other, frame),
                None => panic!("a frame for a face that is gone"),
            }
        }
        panic!("the network never falls silent");
    }

    fn hear(&mut self, other: Other, frame: Bytes) {
        let packet = LpPacket::decode(frame).expect("well-formed");
        let extensions = &packet.extensions;
        match other {
            Other::Mute => {
                assert!(extensions.is_empty(), "{extensions:?}");
                assert_eq!(packet.piggybacked_interest, None);
            }
            Other::Unknown => {
                let mut fields = extensions.iter();
                let is_offer = |number, value: &[u8]| {
                    number == SUPPORT || number == Extensions::ANY_NEXT && value.is_empty()
                };
                assert!(
                    fields.all(|(number, value)| is_offer(number, value)),
                    "{extensions:?}"
                );
                let announcement = packet.piggybacked_interest.as_deref();
                assert!(announcement.is_none_or(<[u8]>::is_empty));
            }
            Other::Speaks | Other::Node(..) => {}
        }
        if let Some(value) = extensions.get(Extensions::ANY_NEXT) {
            assert!(matches!(value.len(), 0 | 4 | 7), "{value:?}");
            self.heard.any_next += u64::from(value.len() == 4);
        }
        let count = extensions.number(Extensions::HOP_COUNT);
        assert!(count.is_none_or(|count| count <= 255));
        self.heard.counts += u64::from(count.is_some());
        if let Some(octets) = extensions.get(Extensions::PATH_LABEL) {
            let path = PathLabel::decode(octets).expect("a label");
            self.heard.paths += 1;
            self.known = Some(path);
        }
        assert_ne!(extensions.number(Extensions::RATE_TAG), Some(0));
    }
}

/// Has a packet request any next ones of the flow of `interest`, or answer such a request, or neither.
fn any_next(
    packet: &mut LpPacket,
    (event, number): (u8, u8),
    interest: &Interest,
    octet: &mut impl FnMut() -> u8,
) {
    match event % 7 {
        1 => {
            let request = AnyNextRequest {
                pending: u16::from_be_bytes([octet() & 0x1F, octet()]),
                seen: u32::from(octet()),
                refresh: event & 1 == 0,
            };
            packet
                .extensions
                .set(Extensions::ANY_NEXT, request.encode());
            if number & 4 == 0 {
                let flow = interest.name().parent();
                let interest = Interest::builder(flow).build(Nonce([number; 4]));
                packet.fragment = Some(interest.wire().clone());
            }
        }
        2 => (packet.extensions).set(Extensions::ANY_NEXT, [0, 0, 0, octet()]),
        _ => {}
    }
}
