//! What tests do with the body of a fuzz target, whose crate they belong to: run it on the target's seeds, and on damaged ones.

#![allow(dead_code, reason = "each test needs some of it")]

use std::path::{Path, PathBuf};

use namecast_units::Random;

/// The starting points of the fuzz target `target`, each of some octets.
pub(crate) fn seeds(target: &str) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(directory(target)).expect("there are seeds");
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    let read = |path| std::fs::read(path).expect("a file");
    paths.iter().map(read).collect()
}

/// Asserts that the file `name` of the target's seeds has the octets `seed`. With the environment variable `NAMECAST_WRITE_SEEDS` it is
/// written first.
pub(crate) fn is_kept(target: &str, name: &str, seed: &[u8]) {
    let directory = directory(target);
    let path = directory.join(name);
    if std::env::var_os("NAMECAST_WRITE_SEEDS").is_some() {
        std::fs::create_dir_all(&directory).expect("a directory");
        std::fs::write(&path, seed).expect("a file");
    }
    let kept = std::fs::read(&path).expect("a seed");
    assert!(kept == seed, "{} differs", path.display());
}

fn directory(target: &str) -> PathBuf {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    seeds.join(target)
}

/// Any octet.
pub(crate) fn any(random: &mut Random) -> u8 {
    random.next_u64() as u8
}

/// `octets` with one to three changes: octets that are lost, added, or others, as `octet` draws them, or the end cut off.
pub(crate) fn damaged(
    random: &mut Random,
    octets: &[u8],
    octet: impl Fn(&mut Random) -> u8,
) -> Vec<u8> {
    let mut octets = octets.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(octets.len() as u64 + 1) as usize;
        let octet = octet(random);
        match random.below(3) {
            0 if at < octets.len() => drop(octets.remove(at)),
            1 => octets.insert(at, octet),
            _ if at < octets.len() => octets[at] = octet,
            _ => octets.truncate(at),
        }
    }
    octets
}

/// Environment variable with the number of damaged copies of each seed, for longer runs.
const COPIES_VARIABLE: &str = "NAMECAST_DAMAGED_COPIES";

/// Runs `body` on each seed of `target`, and on so many damaged copies of each. The first octet of a seed says what it is: there
/// must be some of each of `kinds`.
pub(crate) fn harm_nothing(
    target: &str,
    kinds: u8,
    copies: u32,
    octet: impl Fn(&mut Random) -> u8,
    body: impl Fn(&[u8]),
) {
    let mut random = Random::from_seed(11);
    let seeds = seeds(target);
    let wished = std::env::var(COPIES_VARIABLE).ok();
    let copies = wished.and_then(|it| it.parse().ok()).unwrap_or(copies);
    for kind in 0..kinds {
        let is_there = seeds.iter().any(|seed| seed.first() == Some(&kind));
        assert!(is_there, "{target} {kind}");
    }
    for seed in &seeds {
        body(seed);
        for _ in 0..copies {
            body(&damaged(&mut random, seed, &octet));
        }
    }
}
