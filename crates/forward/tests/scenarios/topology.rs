//! Forwarders joined by links without delay, in virtual time.

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use namecast_forward::{Config, FaceConfig, FaceId, Node};
use namecast_packet::lp::NackReason;
use namecast_packet::signature::NullSigner;
use namecast_packet::{Data, Interest, LpPacket, Name, Nonce, Packet};
use namecast_units::Instant;

/// One end of a link: a node and its face.
pub(crate) type End = (usize, FaceId);

/// What an application got.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seen {
    /// The link header, without the packet.
    pub(crate) header: LpPacket,
    /// The packet.
    pub(crate) packet: Packet,
}

/// Nodes, links between them, and applications that only keep what they get.
#[derive(Default)]
pub(crate) struct Net {
    pub(crate) now: Instant,
    pub(crate) nodes: Vec<Node>,
    links: BTreeMap<End, End>,
    seen: BTreeMap<End, VecDeque<Seen>>,
    /// Link packets that carried nothing.
    bare: BTreeMap<End, Vec<LpPacket>>,
}

impl Net {
    /// `count` nodes with the default configuration.
    pub(crate) fn new(count: usize) -> Self {
        let nodes = (0..count as u64).map(|seed| Config {
            seed,
            ..Config::default()
        });
        Self {
            nodes: nodes.map(Node::new).collect(),
            ..Self::default()
        }
    }

    /// One node.
    pub(crate) fn with(config: Config) -> Self {
        Self {
            nodes: vec![Node::new(config)],
            ..Self::default()
        }
    }

    /// Joins two nodes by a point-to-point link; returns the face on each.
    pub(crate) fn link(&mut self, a: usize, b: usize) -> (FaceId, FaceId) {
        self.link_with(a, b, FaceConfig::default())
    }

    pub(crate) fn link_with(&mut self, a: usize, b: usize, config: FaceConfig) -> (FaceId, FaceId) {
        let on_a = self.nodes[a].add_face(config.clone()).unwrap();
        let on_b = self.nodes[b].add_face(config).unwrap();
        self.links.insert((a, on_a), (b, on_b));
        self.links.insert((b, on_b), (a, on_a));
        (on_a, on_b)
    }

    /// Lets a link carry nothing any more, of which nobody is told.
    pub(crate) fn cut(&mut self, end: End) {
        if let Some(other) = self.links.remove(&end) {
            self.links.remove(&other);
        }
    }

    /// Joins two faces by a link, as one that was cut had them.
    pub(crate) fn mend(&mut self, a: End, b: End) {
        self.links.insert(a, b);
        self.links.insert(b, a);
    }

    /// Adds a local application to a node.
    pub(crate) fn app(&mut self, node: usize) -> End {
        self.face(node, FaceConfig::application("test"))
    }

    /// Adds a face with nobody behind it but the test.
    pub(crate) fn face(&mut self, node: usize, config: FaceConfig) -> End {
        (node, self.nodes[node].add_face(config).unwrap())
    }

    pub(crate) fn route(&mut self, node: usize, prefix: &str, face: FaceId, cost: u64) {
        self.nodes[node]
            .forwarder
            .add_route(name(prefix), face, cost)
            .unwrap();
    }

    /// Hands a frame to a node and lets everything settle.
    pub(crate) fn send(&mut self, (node, face): End, frame: Bytes) {
        self.nodes[node].handle_frame(self.now, face, frame);
        self.settle();
    }

    pub(crate) fn ask(&mut self, from: End, interest: &Interest) {
        self.send(from, interest.wire().clone());
    }

    pub(crate) fn answer(&mut self, from: End, data: &Data) {
        self.send(from, data.wire().clone());
    }

    pub(crate) fn nack(&mut self, from: End, interest: &Interest, reason: NackReason) {
        let mut packet = LpPacket::carrying(interest.wire().clone());
        packet.nack = Some(reason);
        self.send(from, packet.encode());
    }

    /// Lets time pass, stopping wherever a node asked to be called.
    pub(crate) fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        while let Some(at) = self.nodes.iter().filter_map(Node::poll_timeout).min()
            && at <= end
        {
            self.now = self.now.max(at);
            self.nodes
                .iter_mut()
                .for_each(|node| node.handle_timeout(self.now));
            self.settle();
        }
        self.now = end;
    }

    pub(crate) fn settle(&mut self) {
        let mut budget = 100_000;
        while let Some((node, transmit)) = self.next_frame() {
            budget -= 1;
            assert!(budget > 0, "the network never falls silent");
            let end = (node, transmit.face);
            match self.links.get(&end) {
                Some(&(to, face)) => self.nodes[to].handle_frame(self.now, face, transmit.frame),
                None => match see(transmit.frame) {
                    Ok(seen) => self.seen.entry(end).or_default().push_back(seen),
                    Err(bare) => self.bare.entry(end).or_default().push(*bare),
                },
            }
        }
    }

    fn next_frame(&mut self) -> Option<(usize, namecast_forward::Transmit)> {
        let mut nodes = self.nodes.iter_mut().enumerate();
        nodes.find_map(|(index, node)| Some((index, node.poll_output()?)))
    }

    /// All that an application got since the last call.
    pub(crate) fn seen(&mut self, end: End) -> Vec<Seen> {
        self.seen.remove(&end).unwrap_or_default().into()
    }

    /// All link packets without a packet that an application got since the last call.
    pub(crate) fn bare(&mut self, end: End) -> Vec<LpPacket> {
        self.bare.remove(&end).unwrap_or_default()
    }

    pub(crate) fn interests(&mut self, end: End) -> Vec<Interest> {
        self.seen(end).into_iter().map(Seen::interest).collect()
    }

    pub(crate) fn data(&mut self, end: End) -> Vec<Data> {
        self.seen(end).into_iter().map(Seen::data).collect()
    }

    pub(crate) fn nacks(&mut self, end: End) -> Vec<NackReason> {
        let seen = self.seen(end).into_iter();
        seen.map(|seen| seen.header.nack.expect("a Nack")).collect()
    }
}

impl Seen {
    pub(crate) fn interest(self) -> Interest {
        match self.packet {
            Packet::Interest(interest) if self.header.nack.is_none() => interest,
            other => panic!("not an Interest: {other:?}"),
        }
    }

    pub(crate) fn data(self) -> Data {
        match self.packet {
            Packet::Data(data) => data,
            Packet::Interest(other) => panic!("not Data: {other:?}"),
        }
    }
}

/// What is in a frame; a link packet that carries nothing is an error.
fn see(frame: Bytes) -> Result<Seen, Box<LpPacket>> {
    let mut header = LpPacket::decode(frame).unwrap();
    match header.fragment.take() {
        Some(wire) => Ok(Seen {
            packet: Packet::decode(wire).unwrap(),
            header,
        }),
        None => Err(Box::new(header)),
    }
}

pub(crate) fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

pub(crate) fn interest(uri: &str, nonce: u32) -> Interest {
    Interest::builder(name(uri)).build(Nonce::from(nonce))
}

pub(crate) fn data(uri: &str) -> Data {
    Data::builder(name(uri))
        .content("content")
        .sign(&NullSigner)
}

pub(crate) fn fresh_data(uri: &str, freshness: Duration) -> Data {
    Data::builder(name(uri))
        .freshness(freshness)
        .sign(&NullSigner)
}

pub(crate) const fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}
