//! OSC packets, and TCP streams of them.
#![no_main]

#[path = "../../crates/apps/tests/cues/body.rs"]
#[allow(dead_code, reason = "the body of another target")]
mod body;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| {
    body::osc(octets);
});
