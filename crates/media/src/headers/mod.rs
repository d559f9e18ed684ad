//! Parsers of codec headers: size, profile and reordering of pictures, sample rate and channels of sound.

mod picture;
mod sound;

#[cfg(any(feature = "whip", feature = "hostile", test))]
pub(crate) use picture::vp8;
pub(crate) use picture::{Picture, av1, av1_sequence_header, av1_whole, h264, hevc, vp9};
pub(crate) use sound::{AAC_RATES, Sound, aac, ac3, flac, opus};
