//! Consumers against catalogues and metadata of any octets.
#![expect(
    clippy::unwrap_used,
    reason = "a test that meets an error has failed, in helpers as well"
)]

mod body;

use std::path::Path;

use namecast_stream::{Catalogue, SampleRate};
use namecast_units::Random;

/// The starting points of the fuzz target.
fn seeds() -> Vec<Vec<u8>> {
    let directory =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/catalogue_metadata");
    let mut paths: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect()
}

fn damage(random: &mut Random, octets: &[u8]) -> Vec<u8> {
    let mut octets = octets.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(octets.len() as u64 + 1) as usize;
        // Digits, so that numbers become others and JSON stays JSON.
        let octet = match random.chance(0.5) {
            true => b'0' + random.below(10) as u8,
            false => random.next_u64() as u8,
        };
        match random.below(3) {
            0 if at < octets.len() => drop(octets.remove(at)),
            1 => octets.insert(at, octet),
            _ if at < octets.len() => octets[at] = octet,
            _ => octets.truncate(at),
        }
    }
    octets
}

#[test]
fn damaged_seeds_harm_nothing() {
    let mut random = Random::from_seed(11);
    let seeds = seeds();
    for what in 0..5 {
        assert!(
            seeds.iter().any(|seed| seed.first() == Some(&what)),
            "{what}"
        );
    }
    for seed in &seeds {
        body::catalogue_metadata(seed);
        for _ in 0..150 {
            body::catalogue_metadata(&damage(&mut random, seed));
        }
    }
}

/// Each number of a stream at its bounds, with all others: a catalogue is refused, or harmless.
#[test]
fn numbers_at_their_bounds_harm_nothing() {
    let catalogue = |rate: SampleRate, bitrate: u64, key_interval: u32| {
        let SampleRate { num, den } = rate;
        format!(
            r#"{{"version":1,"streams":[{{"name":"v","kind":"video","codec":"h264","rungs":[{{"name":"1M",
            "bitrate":{bitrate},"rate":{{"num":{num},"den":{den}}},"key_interval":{key_interval},"codec_string":"x"}}],
            "segment_size":256,"parity_percent":100}}],"signer":""}}"#
        )
    };
    let mut accepted = 0;
    for num in [0, 1, 1_000, u32::MAX] {
        for den in [0, 1, 3_600, 3_601, u32::MAX] {
            for bitrate in [0, 1, 10_000_000_000, u64::MAX] {
                for key_interval in [0, 1, 100_000, u32::MAX] {
                    let json = catalogue(SampleRate::new(num, den), bitrate, key_interval);
                    accepted += u32::from(Catalogue::decode(json.as_bytes()).is_ok());
                    let length = u16::try_from(json.len()).unwrap().to_be_bytes();
                    body::catalogue_metadata(&[&[3], &length[..], json.as_bytes()].concat());
                }
            }
        }
    }
    // 1 and 1000 a second; 1 and 1000 in 3600 s, 1000 in 3601 s; as many as there are seconds; three bitrates, two intervals.
    assert_eq!(accepted, 6 * 3 * 2);
}
