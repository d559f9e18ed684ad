//! Packets of an input on their way to what is published.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| namecast_media::hostile::packets(octets));
