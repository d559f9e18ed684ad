//! A consumer against scripts of anything that can happen.

mod body;

use namecast_units::Random;

/// Steps by which a stream is pulled without trouble: publish, answer, deliver.
const USUAL: [u8; 8] = [3, 0, 40, 5, 7, 6, 0, 3];

#[test]
fn random_scripts_harm_nothing() {
    let mut random = Random::from_seed(11);
    for length in [16, 64, 256, 1_024, 4_096] {
        for _ in 0..20 {
            let mut script = vec![0; length];
            random.fill(&mut script);
            body::consumer(&script);
        }
    }
}

/// Scripts that play most of the time, so that trouble finds tables that are in use.
#[test]
fn trouble_while_a_stream_plays_harms_nothing() {
    let mut random = Random::from_seed(12);
    for _ in 0..40 {
        let mut script = Vec::new();
        for _ in 0..150 {
            script.extend(USUAL);
            let mut trouble = vec![0; random.below(6) as usize];
            random.fill(&mut trouble);
            script.extend(trouble);
        }
        body::consumer(&script);
    }
}

/// Starting points for the fuzzer, which are scripts as above: none of them fails.
#[test]
fn seeds_of_the_fuzzer_pass() {
    let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/consumer");
    let mut count = 0;
    for seed in std::fs::read_dir(seeds).expect("seeds are there") {
        let octets = std::fs::read(seed.expect("an entry").path());
        body::consumer(&octets.expect("a file"));
        count += 1;
    }
    assert!(count >= 8, "{count}");
}
