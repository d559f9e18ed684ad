//! A consumer against scripts of anything that can happen.

mod body;
#[path = "../../../../fuzz/damaged_seeds.rs"]
mod damaged_seeds;

use namecast_stream::consumer::Counters;
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
    let mut total = Counters::default();
    for _ in 0..40 {
        let mut script = Vec::new();
        for _ in 0..150 {
            script.extend(USUAL);
            let mut trouble = vec![0; random.below(6) as usize];
            random.fill(&mut trouble);
            script.extend(trouble);
        }
        total += body::consumer(&script);
    }
    assert!(total.complete > 100, "{total:?}");
}

/// Scripts that play all the time and lose one packet in eight, with lies about inter-frame FEC: it is requested,
/// and gives back what was lost where it is the right one.
#[test]
fn lies_in_inter_frame_fec_harm_nothing() {
    let mut random = Random::from_seed(13);
    let mut total = Counters::default();
    for _ in 0..20 {
        let mut script = Vec::new();
        for _ in 0..300 {
            script.extend([0x85, 0, u8::from(random.below(8) == 0)]);
            if random.below(8) == 0 {
                // Thirty octets of a shard, of whatever size.
                script.extend([0x8c + 0x40 * u8::from(random.chance(0.5)), 0, 30]);
                script.extend((0..30).map(|_| random.below(256) as u8));
            }
        }
        total += body::consumer(&script);
    }
    assert!(total.recovered_inter_frame > 100, "{total:?}");
    assert!(total.drop_inter_frame > 20, "{total:?}");
}

/// Starting points for the fuzzer, which are scripts as above: none of them fails.
#[test]
fn seeds_of_the_fuzzer_pass() {
    let seeds = damaged_seeds::seeds("consumer");
    for seed in &seeds {
        body::consumer(seed);
    }
    assert!(seeds.len() >= 8, "{}", seeds.len());
}
