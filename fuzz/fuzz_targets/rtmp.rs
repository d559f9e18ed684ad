//! RTMP connections, chunks and AMF. Their readers are private to the command, so its files are compiled here.
#![no_main]

#[path = "../../crates/cli/src/push/rtmp/amf.rs"]
mod amf;
#[path = "../../crates/cli/src/push/rtmp/hostile/body.rs"]
mod body;
#[path = "../../crates/cli/src/push/rtmp/chunks.rs"]
mod chunks;
#[path = "../../crates/cli/src/push/rtmp/session.rs"]
mod session;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| body::rtmp(octets));
