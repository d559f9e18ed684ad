//! Fragments and Acks over a link, and fields of neighbours, of which anything can be expected.

mod body;
mod bundle_body;
mod fields_body;

#[path = "../../../../fuzz/damaged_seeds.rs"]
mod damaged_seeds;

use namecast_units::Random;

/// An Interest that goes through and is answered by Data in several fragments, all of which arrive.
const USUAL: [u8; 30] = [
    0, 160, 0, 160, 0, 20, 20, 32, 0, 32, 0, 32, 0, 32, 0, 160, 0, 160, 0, 120, 6, 32, 0, 32, 0,
    160, 0, 160, 0, 120,
];

#[test]
fn random_scripts_harm_nothing() {
    let mut random = Random::from_seed(21);
    for length in [16, 64, 256, 1_024, 4_096] {
        for _ in 0..20 {
            let mut script = vec![0; length];
            random.fill(&mut script);
            body::link_service(&script);
        }
    }
}

/// Scripts that carry Data most of the time; losses, copies and disorder but no lies: what arrives is what was sent.
#[test]
fn packets_arrive_whole_over_a_bad_link() {
    let mut random = Random::from_seed(22);
    let (mut received, mut asked) = (0, 0);
    for _ in 0..40 {
        let mut script = vec![random.below(40) as u8];
        for _ in 0..60 {
            script.extend(USUAL);
            let to = 128 * random.below(2) as u8;
            let trouble = [
                [72 + to, 32 + to, 201],
                [80 + to, 32 + to, 203],
                [120, 255, 72 + to],
            ];
            script.extend(trouble[random.below(3) as usize]);
        }
        let outcome = body::link_service(&script);
        received += outcome.received;
        asked += outcome.asked;
    }
    assert!(received > 200 && asked > 1_000, "{received} {asked}");
}

/// Scripts long enough that paths are found and taken, and content stores tell rates.
#[test]
fn fields_of_any_kind_harm_nobody_and_reach_nobody_who_does_not_speak() {
    let mut random = Random::from_seed(23);
    let mut sum = fields_body::Heard::default();
    for length in [64, 1_024, 8_192] {
        for _ in 0..20 {
            let mut script = vec![0; length];
            random.fill(&mut script);
            let heard = fields_body::fields(&script);
            sum.counts += heard.counts;
            sum.paths += heard.paths;
            sum.tags += heard.tags;
        }
    }
    assert!(
        sum.counts > 100 && sum.paths > 100 && sum.tags > 10,
        "{sum:?}"
    );
}

#[test]
fn whatever_comes_with_data_the_data_get_through() {
    damaged_seeds::harm_nothing("bundle", 0, 2_000, damaged_seeds::any, bundle_body::bundle);
}
