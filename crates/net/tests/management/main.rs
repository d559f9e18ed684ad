//! Management against messages of strangers.
#![expect(
    clippy::unwrap_used,
    reason = "a test that meets an error has failed, in helpers as well"
)]

mod body;

use std::path::Path;

use namecast_units::Random;

/// The starting points of the fuzz target.
fn seeds() -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/management");
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
    // All four readers have some.
    for who in 0..4 {
        assert!(seeds.iter().any(|seed| seed.first() == Some(&who)), "{who}");
    }
    for seed in &seeds {
        body::management(seed);
        for _ in 0..200 {
            body::management(&damage(&mut random, seed));
        }
    }
}

/// Recipes of signed commands of every kind: accepted exactly if they should be.
#[test]
fn commands_are_accepted_as_their_recipes_say() {
    for how in 0..8 {
        for seconds in [0_i16, 120, 121, -120, -121] {
            for nonce in [0, 1, 8] {
                let [high, low] = seconds.to_be_bytes();
                body::management(&[2, high, low, how, nonce, 0, 0, 104, 0]);
            }
        }
    }
}
