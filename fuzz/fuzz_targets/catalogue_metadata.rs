//! Catalogues, metadata, newest samples and time indexes, and a consumer of what they describe.
#![no_main]

#[path = "../../crates/stream/tests/published/body.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| body::catalogue_metadata(octets));
