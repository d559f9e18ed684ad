//! A consumer, and anything that can happen to it in any order.
#![no_main]

#[path = "../../crates/stream/tests/hostile/body.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| {
    body::consumer(octets);
});
