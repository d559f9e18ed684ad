//! Anything in front of Data that somebody has requested, at a node with bundles.
#![no_main]

#[path = "../../crates/forward/tests/link_service/bundle_body.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| {
    body::bundle(octets);
});
