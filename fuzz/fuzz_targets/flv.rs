//! RTMP pushes, as the tags of an FLV file.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| namecast_media::hostile::flv(octets));
