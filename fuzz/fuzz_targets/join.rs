//! Requests to join a room, answers, and links.
#![no_main]

#[path = "../../crates/apps/tests/joins/body.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| {
    body::join(octets);
});
