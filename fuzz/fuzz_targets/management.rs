//! Commands, responses and lists of NFD's management, as strangers send them.
#![no_main]

#[path = "../../crates/net/tests/management/body.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| body::management(octets));
