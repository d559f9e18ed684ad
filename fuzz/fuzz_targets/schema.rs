//! Trust schemas as text and as models, and names that are checked by them.
#![no_main]

#[path = "../../crates/apps/tests/schemas/body.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| {
    body::schema(octets);
});
