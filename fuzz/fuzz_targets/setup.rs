//! Messages of a set-up, at an endpoint of either side.
#![no_main]

#[path = "../../crates/apps/tests/setups/body.rs"]
#[allow(dead_code, reason = "what only the tests use")]
mod body;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| {
    body::setup(octets);
});
