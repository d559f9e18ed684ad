//! Offers of pushers by WebRTC, and datagrams before any key.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| namecast_media::hostile::whip(octets));
