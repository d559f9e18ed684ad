//! Messages of sessions and of exchanges. The former are private to the crate, so its files are compiled here.
#![no_main]

#[path = "../../crates/apps/src/session/tests/body.rs"]
mod body;
#[path = "../../crates/apps/src/session/exchange.rs"]
#[allow(dead_code, reason = "what only the command uses")]
mod exchange;
#[path = "../../crates/apps/src/session/message.rs"]
mod message;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| body::session(octets));
