//! Two nodes and a link of which anything can be expected.
#![no_main]

#[path = "../../crates/forward/tests/link_service/body.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| {
    body::link_service(octets);
});
