//! Link packets, and what they carry.
#![no_main]

#[path = "../../crates/packet/tests/properties/bodies.rs"]
#[allow(dead_code, reason = "each target has one body")]
mod bodies;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| bodies::lp(octets));
