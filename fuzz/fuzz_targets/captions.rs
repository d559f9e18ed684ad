//! Captions of an input, as pictures, tracks and ffmpeg carry them.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| namecast_media::hostile::captions(octets));
