//! How several forwarders share the work of one node.
//!
//! ```text
//!   Interest ── hash of its name ──▶ one of them ── PIT token that names it ──▶ neighbour
//!                                        ▲                                          │
//!                                        └──────────── the same PIT token ── Data ──┘
//! ```
//!
//! Each has tables of its own, and none knows of the others, so that they may work at the same time. All have the same faces,
//! routes and strategies; the driver sees to that, and takes what came in pieces, or is acknowledged, through the face's link first.

use bytes::Bytes;
use namecast_packet::{ChunksHad, Component, Extensions, LpPacket, lp, tlv};

use crate::name_hash::{HashKey, NameHasher};

/// Octets of a PIT token; ndnd's forwarder takes no other number.
const TOKEN_SIZE: usize = 6;
/// All tokens, which need no counting of who uses them: that would cost threads dear.
static TOKENS: [[u8; TOKEN_SIZE]; Shard::MOST as usize] = tokens();

const fn tokens() -> [[u8; TOKEN_SIZE]; Shard::MOST as usize] {
    let mut tokens = [[0; TOKEN_SIZE]; Shard::MOST as usize];
    let mut index = 0;
    while index < Shard::MOST {
        [tokens[index as usize][0], tokens[index as usize][1]] = index.to_be_bytes();
        index += 1;
    }
    tokens
}

/// One of several forwarders that share the work of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which one, from 0.
    pub index: u16,
    /// How many there are, at least 1 and at most [`MOST`](Self::MOST).
    pub count: u16,
}

impl Shard {
    /// The only forwarder of its node.
    pub const ONLY: Self = Self { index: 0, count: 1 };
    /// How many there may be.
    pub const MOST: u16 = 256;

    /// What Interests carry, so that Data come back to this forwarder: its index, and zeros. None if there is no other.
    pub(crate) fn token(self) -> Option<Bytes> {
        let token = TOKENS.get(usize::from(self.index))?;
        (self.count > 1).then(|| Bytes::from_static(token))
    }

    /// Part of a bound that all forwarders of the node keep together; never nothing of something.
    pub(crate) fn part_of(self, bound: usize) -> usize {
        bound.div_ceil(usize::from(self.count.max(1)))
    }
}

/// Which of a node's forwarders a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// This one.
    One(usize),
    /// Data that do not tell who asked for them: those that [await](crate::Forwarder::awaits) them; if none does, this one.
    Waiting(usize),
}

/// Tells which forwarder a frame is for.
#[derive(Clone, Debug)]
pub struct Dispatcher {
    hasher: NameHasher,
    count: usize,
}

impl Dispatcher {
    /// For `count` forwarders. Without the key, nobody can aim at one of them.
    pub const fn new(key: HashKey, count: u16) -> Self {
        Self {
            hasher: NameHasher::new(key.for_shards()),
            count: count as usize,
        }
    }

    /// Which forwarder a frame with a whole packet is for. One that breaks the format is for the first, which counts it.
    pub fn destination(&self, frame: &[u8]) -> Destination {
        match Glance::at(frame) {
            Some(glance) if glance.packet.is_empty() => self.of_chunks_had(glance.chunks_had),
            Some(glance) => self.of_network_packet(glance.packet, glance.token),
            None => Destination::One(0),
        }
    }

    /// Which forwarder a whole packet is for that came out of a link.
    pub fn destination_of(&self, packet: &LpPacket) -> Destination {
        match &packet.fragment {
            Some(wire) => self.of_network_packet(wire, packet.pit_token.as_deref()),
            None => self.of_chunks_had(packet.extensions.get(Extensions::CHUNKS_HAD)),
        }
    }

    /// Chunks of a flow are for the forwarder that gets Interests for its segments.
    fn of_chunks_had(&self, value: Option<&[u8]>) -> Destination {
        let flow = value.and_then(ChunksHad::flow_in);
        Destination::One(flow.map_or(0, |flow| self.by_name(flow)))
    }

    fn of_network_packet(&self, wire: &[u8], token: Option<&[u8]>) -> Destination {
        let index = token.and_then(|token| self.index_in(token));
        match (name_of(wire), index) {
            (Some((tlv::INTEREST, name)), _) => Destination::One(self.by_name(name)),
            (Some(_), Some(index)) => Destination::One(index),
            (Some((_, name)), None) => Destination::Waiting(self.by_name(name)),
            (None, _) => Destination::One(0),
        }
    }

    fn index_in(&self, token: &[u8]) -> Option<usize> {
        let token: [u8; TOKEN_SIZE] = token.try_into().ok()?;
        let index = usize::from(u16::from_be_bytes([token[0], token[1]]));
        (index < self.count).then_some(index)
    }

    /// By the hash of a name without the number of a segment, so that the segments of one object meet and stay a burst.
    fn by_name(&self, name: &[u8]) -> usize {
        let mut reader = tlv::Reader::new(name);
        let components = core::iter::from_fn(|| {
            let component = reader.element("Name component").ok()??;
            let is_segment = component.element_type == u32::from(Component::SEGMENT);
            let is_left_out = is_segment && reader.is_empty();
            (!is_left_out).then(|| &name[component.whole()])
        });
        let hash = self.hasher.hash_of(components);
        // The high half of the hash, scaled, so that any count gets equal shares.
        (((hash >> 32) * self.count as u64) >> 32) as usize
    }
}

/// What can be seen of a frame without taking it apart.
#[derive(Debug, Default)]
struct Glance<'a> {
    token: Option<&'a [u8]>,
    chunks_had: Option<&'a [u8]>,
    packet: &'a [u8],
}

impl<'a> Glance<'a> {
    fn at(frame: &'a [u8]) -> Option<Self> {
        let mut reader = tlv::Reader::new(frame);
        let whole = reader.element("frame").ok()??;
        if whole.element_type != lp::LP_PACKET {
            return Some(Self {
                packet: frame,
                ..Self::default()
            });
        }
        let mut glance = Self::default();
        let mut fields = tlv::Reader::within(frame, whole.value);
        while let Some(field) = fields.element("link header").ok()? {
            match field.element_type {
                lp::FRAGMENT => glance.packet = &frame[field.value],
                lp::PIT_TOKEN => glance.token = Some(&frame[field.value]),
                Extensions::CHUNKS_HAD => glance.chunks_had = Some(&frame[field.value]),
                _ => {}
            }
        }
        Some(glance)
    }
}

/// Type of a network packet, and the components of its name.
fn name_of(wire: &[u8]) -> Option<(u32, &[u8])> {
    let mut reader = tlv::Reader::new(wire);
    let packet = reader.element("packet").ok()??;
    let mut reader = tlv::Reader::within(wire, packet.value);
    let name = reader.element("Name").ok()??;
    let is_name = name.element_type == tlv::NAME;
    is_name.then(|| (packet.element_type, &wire[name.value]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use namecast_packet::signature::DigestSigner;
    use namecast_packet::{Data, Interest, Name, Nonce};

    fn interest(name: &str) -> Bytes {
        let interest = Interest::builder(name.parse::<Name>().unwrap());
        interest.build(Nonce([1; 4])).wire().clone()
    }

    fn data(name: &str) -> Bytes {
        let data = Data::builder(name.parse::<Name>().unwrap()).content("x");
        data.sign(&DigestSigner).wire().clone()
    }

    fn with_token(wire: Bytes, token: &[u8]) -> Bytes {
        let packet = LpPacket {
            pit_token: Some(Bytes::copy_from_slice(token)),
            ..LpPacket::carrying(wire)
        };
        packet.encode()
    }

    /// Of 9000 names, 3000 ± 5 standard deviations of √(9000 · 1/3 · 2/3) = 45 each.
    #[test]
    fn interests_are_shared_out_evenly() {
        let dispatcher = Dispatcher::new(HashKey::FIXED, 3);
        let mut counts = [0; 3];
        for number in 0..9_000 {
            match dispatcher.destination(&interest(&format!("/a/{number}"))) {
                Destination::One(index) => counts[index] += 1,
                other => panic!("{other:?}"),
            }
        }
        assert!(
            counts.iter().all(|count| (2_775..=3_225).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn segments_of_one_object_meet_and_objects_do_not() {
        let dispatcher = Dispatcher::new(HashKey::FIXED, 64);
        let of = |name: String| dispatcher.destination(&interest(&name));
        for object in 0..20 {
            let first = of(format!("/a/seq={object}/seg=0"));
            assert!((1..9).all(|segment| of(format!("/a/seq={object}/seg={segment}")) == first));
        }
        let first = of("/a/seq=0/seg=0".to_owned());
        assert!((1..20).any(|object| of(format!("/a/seq={object}/seg=0")) != first));
    }

    /// The token that one forwarder puts in front brings the Data back to it; what is no such token says nothing.
    /// What neighbours have of a flow is known where its segments are requested.
    #[test]
    fn announced_chunks_meet_interests_for_them() {
        let dispatcher = Dispatcher::new(HashKey::FIXED, 7);
        for number in 0..50 {
            let had = ChunksHad {
                flow: format!("/f/{number}/v=3").parse().unwrap(),
                chunk_size: 100,
                hops_left: 1,
                expiry: 60,
                ranges: vec![(0, 4)],
            };
            let mut packet = LpPacket::default();
            packet.extensions.set(Extensions::CHUNKS_HAD, had.encode());
            let segment = interest(&format!("/f/{number}/v=3/seg=17"));
            let expected = dispatcher.destination(&segment);
            assert_eq!(dispatcher.destination(&packet.encode()), expected);
            assert_eq!(dispatcher.destination_of(&packet), expected);
            packet.extensions.set(Extensions::CHUNKS_HAD, [1, 2, 3]);
            let damaged = dispatcher.destination(&packet.encode());
            assert_eq!(damaged, Destination::One(0));
        }
    }

    #[test]
    fn data_go_to_whom_their_token_names() {
        let dispatcher = Dispatcher::new(HashKey::FIXED, 3);
        let by_name = match dispatcher.destination(&interest("/a/b")) {
            Destination::One(index) => index,
            other => panic!("{other:?}"),
        };
        for index in 0..3 {
            let token = Shard { index, count: 3 }.token().unwrap();
            let frame = with_token(data("/a/b"), &token);
            assert_eq!(
                dispatcher.destination(&frame),
                Destination::One(usize::from(index))
            );
        }
        let nobody = Destination::Waiting(by_name);
        assert_eq!(dispatcher.destination(&data("/a/b")), nobody);
        for foreign in [&[0, 3, 0, 0, 0, 0][..], &[0], &[0; 8]] {
            assert_eq!(
                dispatcher.destination(&with_token(data("/a/b"), foreign)),
                nobody
            );
        }
        assert_eq!(Shard::ONLY.token(), None);
    }

    /// Every cut of a packet, and every octet changed: an answer, and no panic.
    #[test]
    fn what_breaks_the_format_is_for_somebody_too() {
        let dispatcher = Dispatcher::new(HashKey::FIXED, 3);
        for whole in [interest("/a/b"), with_token(data("/a/b"), &[0; 6])] {
            for end in 0..whole.len() {
                dispatcher.destination(&whole.slice(..end));
                for value in [0, 1, 0x7F, 0xFD, 0xFF] {
                    let mut changed = whole.to_vec();
                    changed[end] = value;
                    dispatcher.destination(&changed);
                }
            }
        }
        assert_eq!(dispatcher.destination(&[]), Destination::One(0));
    }
}
