//! Web servers of nodes against requests of anybody.

mod body;
#[path = "../../../../fuzz/damaged_seeds.rs"]
mod damaged_seeds;

use namecast_units::Random;

#[test]
fn damaged_seeds_harm_nothing() {
    damaged_seeds::harm_nothing("web_request", 3, 100, damaged_seeds::any, body::web_request);
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
