//! Headers of codecs, from the size of pictures to the channels of sound.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| namecast_media::hostile::codec_headers(octets));
