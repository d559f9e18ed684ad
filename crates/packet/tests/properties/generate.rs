//! Strategies for names and packets.

use std::time::Duration;

use bytes::Bytes;
use namecast_packet::{Component, Extensions, LpPacket, Name, lp::NackReason};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop_oneof};

/// A component as a plain pair, for naive twins.
pub(crate) type Pair = (u16, Vec<u8>);

/// A component: short values from a small alphabet meet often, long ones need longer lengths.
pub(crate) fn pair() -> impl Strategy<Value = Pair> {
    let kind = prop_oneof![
        4 => Just(Component::GENERIC),
        3 => prop_oneof![Just(7_u16), Just(9), Just(32), Just(50), Just(252), Just(253), Just(u16::MAX)],
        1 => 3..=u16::MAX,
    ];
    let value = prop_oneof![
        6 => vec(prop_oneof![Just(b'.'), Just(b'A'), Just(0), Just(0xFF)], 0..4),
        2 => vec(any::<u8>(), 0..10),
        1 => vec(any::<u8>(), 250..256),
    ];
    let digest = (1..=2_u16, vec(any::<u8>(), 32));
    prop_oneof![12 => (kind, value), 1 => digest]
}

pub(crate) fn pairs() -> impl Strategy<Value = Vec<Pair>> {
    vec(pair(), 0..5)
}

pub(crate) fn name_of(pairs: &[Pair]) -> Name {
    pairs
        .iter()
        .fold(Name::root().builder(), |name, (kind, value)| {
            name.component(Component { kind: *kind, value })
        })
        .finish()
}

/// A name fit for an Interest: not empty, without a parameters digest.
pub(crate) fn name() -> impl Strategy<Value = Name> {
    vec(pair(), 1..5).prop_map(|mut pairs| {
        pairs.retain(|(kind, _)| *kind != Component::PARAMETERS_DIGEST);
        pairs.push((Component::GENERIC, b"end".to_vec()));
        name_of(&pairs)
    })
}

pub(crate) fn octets(most: usize) -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..=most).prop_map(Bytes::from)
}

pub(crate) fn millis() -> impl Strategy<Value = Duration> {
    prop_oneof![0..5_000_u64, any::<u64>()].prop_map(Duration::from_millis)
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..300_u64, any::<u64>()]
}

fn reason() -> impl Strategy<Value = NackReason> {
    prop_oneof![Just(0), Just(50), Just(100), Just(150), number()].prop_map(NackReason::from)
}

/// A link packet as a sender may make it. Its fragment is no Data, which a Nack could not carry.
pub(crate) fn link_packet() -> impl Strategy<Value = LpPacket> {
    let fragmentation = (any::<u64>(), 1..400_u64, any::<u64>())
        .prop_map(|(sequence, count, index)| (sequence, index % count, count));
    let fragment = vec(any::<u8>(), 1..300).prop_map(|mut octets| {
        octets[0] = 5;
        Bytes::from(octets)
    });
    let local = (option::of(number()), option::of(number()), any::<bool>());
    let token = vec(any::<u8>(), 1..=32).prop_map(Bytes::from);
    let reliability = (vec(any::<u64>(), 0..3), option::of(any::<u64>()));
    let learning = (any::<bool>(), option::of(octets(40)));
    let hop = (option::of(token), option::of(reason()), number());
    let extensions = vec((0..25_usize, octets(20)), 0..4);
    let ours = (option::of(number()), option::of(octets(40)), extensions);
    let hop = (hop, ours);
    let parts = (option::of(fragmentation), local, reliability, learning, hop);
    (parts, option::of(fragment)).prop_map(
        |(
            (
                pieces,
                local,
                reliability,
                learning,
                (hop, (avoid_face, piggybacked_interest, extensions)),
            ),
            fragment,
        )| {
            LpPacket {
                sequence: pieces.map(|(sequence, ..)| sequence),
                fragment_index: pieces.map_or(0, |(_, index, _)| index),
                fragment_count: pieces.map(|(.., count)| count),
                incoming_face: local.0,
                next_hop_face: local.1,
                no_cache: local.2,
                acks: reliability.0,
                tx_sequence: reliability.1,
                non_discovery: learning.0,
                prefix_announcement: learning.1,
                pit_token: hop.0,
                nack: hop.1,
                congestion_mark: hop.2,
                avoid_face,
                piggybacked_interest,
                extensions: extensions_of(extensions),
                fragment,
            }
        },
    )
}

/// Extension fields, by place of their number among all that there are.
fn extensions_of(fields: Vec<(usize, Bytes)>) -> Extensions {
    let numbers: Vec<_> = (0..1_000)
        .filter(|&number| Extensions::has_number(number))
        .collect();
    let mut extensions = Extensions::default();
    for (place, octets) in fields {
        extensions.set(numbers[place], octets);
    }
    extensions
}
