//! Golden vectors, damaged at random: what fuzzing does, in every test run and without its tools.

use bytes::Bytes;
use namecast_packet::signature::NullSigner;
use namecast_packet::{
    AnyNextRequest, ChunksHad, Data, Extensions, Interest, LpPacket, Name, Nonce,
};
use namecast_units::Random;
use serde_json::Value;

use crate::bodies;

/// Every packet of every vector file.
fn corpus() -> Vec<Vec<u8>> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors");
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .collect();
    files.sort();
    let mut packets = Vec::new();
    for file in files {
        let json: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        for vector in json["vectors"].as_array().into_iter().flatten() {
            packets.extend(vector["wire"].as_str().map(unhex));
        }
    }
    packets.extend(any_next().map(|wire| wire.to_vec()));
    packets
}

/// A request for any next packet, its answer, and an announcement of chunks.
fn any_next() -> [Bytes; 3] {
    let name: Name = "/f/v=1".parse().unwrap();
    let with = |number, value: &[u8], packet: Option<&Bytes>| {
        let mut link = LpPacket {
            fragment: packet.cloned(),
            ..LpPacket::default()
        };
        link.extensions.set(number, value);
        link.encode()
    };
    let request = AnyNextRequest {
        pending: 5,
        seen: 7,
        refresh: true,
    };
    let had = ChunksHad {
        flow: name.clone(),
        chunk_size: 100,
        hops_left: 2,
        expiry: 60,
        ranges: vec![(0, 3), (5, 9)],
    };
    let interest = Interest::builder(name.clone()).build(Nonce([1; 4]));
    let data = Data::builder(name).sign(&NullSigner);
    [
        with(
            Extensions::ANY_NEXT,
            &request.encode(),
            Some(interest.wire()),
        ),
        with(Extensions::ANY_NEXT, &[0, 0, 0, 9], Some(data.wire())),
        with(Extensions::CHUNKS_HAD, &had.encode(), None),
    ]
}

fn unhex(text: &str) -> Vec<u8> {
    let octet = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(octet).collect()
}

fn below(random: &mut Random, bound: usize) -> usize {
    usize::try_from(random.below(bound as u64)).unwrap()
}

/// Damages `packet` in one to four places. Most damage is near the start, where the structure is.
fn mutate(random: &mut Random, packet: &mut Vec<u8>, corpus: &[Vec<u8>]) {
    for _ in 0..=below(random, 4) {
        if packet.is_empty() {
            packet.push(5);
        }
        let end = if random.chance(0.7) {
            packet.len().min(64)
        } else {
            packet.len()
        };
        let at = below(random, end);
        match random.below(8) {
            0 | 1 => packet[at] ^= 1 << random.below(8),
            2 => packet[at] = packet[at].wrapping_add(1),
            3 => packet[at] = packet[at].wrapping_sub(1),
            4 => drop(packet.remove(at)),
            5 => {
                // Numbers at which the grammar changes its mind.
                const EDGES: [u8; 8] = [0, 1, 31, 32, 126, 252, 253, 255];
                packet.insert(at, EDGES[below(random, EDGES.len())]);
            }
            6 => packet.truncate(at),
            _ => {
                let other = &corpus[below(random, corpus.len())];
                let from = below(random, other.len().max(1)).min(other.len());
                let to = (from + below(random, 40)).min(other.len());
                packet.splice(at..at, other[from..to].iter().copied());
            }
        }
    }
    // Damage inside would otherwise stop at the outer length, which no longer fits.
    if random.chance(0.5) && packet.len() > 2 && packet[1] < 253 {
        packet[1] = u8::try_from((packet.len() - 2).min(252)).unwrap();
    }
}

/// Runs `count` damaged packets; returns how many of them still decode.
fn run(count: u64, seed: u64) -> u64 {
    let corpus = corpus();
    let mut random = Random::from_seed(seed);
    let mut decoded = 0;
    for _ in 0..count {
        let mut packet = corpus[below(&mut random, corpus.len())].clone();
        mutate(&mut random, &mut packet, &corpus);
        bodies::packet(&packet);
        bodies::lp(&packet);
        bodies::name_uri(&packet);
        let link = namecast_packet::LpPacket::decode(packet.into());
        let network = link.ok().and_then(|link| link.fragment);
        decoded += u64::from(network.is_some_and(|p| namecast_packet::Packet::decode(p).is_ok()));
    }
    decoded
}

/// A share of the packets must survive, or the damage is too great to reach any depth; and some must not.
#[test]
fn damaged_packets_are_decoded_or_refused() {
    let decoded = run(10_000, 1);
    assert!((500..9_000).contains(&decoded), "{decoded}");
}

/// The same, a hundred times longer: `cargo test --release -p namecast-packet --test properties -- --ignored`.
#[test]
#[ignore = "takes some seconds, and finds what the short one does"]
fn a_million_damaged_packets_are_decoded_or_refused() {
    let decoded = run(1_000_000, 2);
    assert!((50_000..900_000).contains(&decoded), "{decoded}");
}
