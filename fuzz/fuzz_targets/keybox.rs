//! Key boxes, seals and rosters.
#![no_main]

#[path = "../../crates/apps/tests/keybox/body.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| {
    body::key_box(octets);
});
