//! Samples of people, and lines and datagrams of their positions.
#![no_main]

#[path = "../../crates/apps/tests/tracks/body.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| {
    body::tracks(octets);
});
