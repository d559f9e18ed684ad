//! Cues, reports, logs, and scripts of desks and a device.
#![no_main]

#[path = "../../crates/apps/tests/cues/body.rs"]
#[allow(dead_code, reason = "the body of another target")]
mod body;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| {
    body::cues(octets);
});
