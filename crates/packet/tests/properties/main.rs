//! What holds for every input: round trips, naive twins, and that no octets whatever make decoding panic.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod bodies;
mod generate;
mod mutation;
mod names;
mod packets;

use proptest::test_runner::{Config, RngSeed};

/// The same cases every time, and nothing written to disk: a failure prints its smallest input.
fn config() -> Config {
    Config {
        cases: 256,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(0x006E_646E),
        ..Config::default()
    }
}
