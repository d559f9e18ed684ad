//! Chunks and indexes of an archive. Their readers are private to the crate, so its files are compiled here.
#![no_main]

#[path = "../../crates/archive/src/hostile/body.rs"]
mod body;
#[path = "../../crates/archive/src/index.rs"]
#[allow(dead_code, reason = "what only the store uses")]
mod index;
#[path = "../../crates/archive/src/record.rs"]
#[allow(dead_code, reason = "what only the store uses")]
mod record;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| body::archive_record(octets));
