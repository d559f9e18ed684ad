//! Requests to a node's web server, as anybody writes them, and who is let in.
#![no_main]

#[path = "../../crates/net/tests/web_request/body.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| body::web_request(octets));
