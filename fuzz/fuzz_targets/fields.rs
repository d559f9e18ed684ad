//! Three nodes and neighbours that say anything in link header fields.
#![no_main]

#[path = "../../crates/forward/tests/link_service/fields_body.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| {
    body::fields(octets);
});
