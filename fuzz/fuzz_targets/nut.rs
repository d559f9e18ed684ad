//! NUT, the container in which ffmpeg hands over what it reads.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| namecast_media::hostile::nut(octets));
