//! Web servers of nodes against requests of anybody.
#![expect(
    clippy::unwrap_used,
    reason = "a test that meets an error has failed, in helpers as well"
)]

mod body;

use std::path::Path;

use namecast_units::Random;

/// The starting points of the fuzz target.
fn seeds() -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/web_request");
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
        let octet = random.next_u64() as u8;
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
    for what in 0..3 {
        assert!(
            seeds.iter().any(|seed| seed.first() == Some(&what)),
            "{what}"
        );
    }
    for seed in &seeds {
        body::web_request(seed);
        for _ in 0..100 {
            body::web_request(&damage(&mut random, seed));
        }
    }
}

/// Peers, hosts, pages and what proxies add, in any mixture.
#[test]
fn nobody_is_taken_for_more_than_he_may_be() {
    let mut random = Random::from_seed(12);
    for _ in 0..100_000 {
        let mut octets = [0; 10];
        random.fill(&mut octets);
        // Half of them without further headers.
        let length = if random.chance(0.5) {
            7
        } else {
            7 + random.below(4) as usize
        };
        octets[0] = 0;
        body::web_request(&octets[..length]);
    }
}
