//! State vectors, and publications of members of a group.
#![no_main]

#[path = "../../crates/apps/tests/groups/body.rs"]
#[allow(dead_code, reason = "the body of another target")]
mod body;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| {
    body::svs(octets);
});
