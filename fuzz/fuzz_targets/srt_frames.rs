//! Frames between the process that listens for SRT and its parent.
#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| namecast_srt::hostile::srt_frames(octets));
