//! Files, cameras and encoders as frames, and frames as files. Encoding and decoding is ffmpeg's.
//!
//! ```text
//!  camera, file, test picture ─▶ ingest ─ MediaFrame ─▶ a publisher     streams: how its catalogue describes them
//!                                      │                a watcher ─ Frame ─▶ record ─▶ file, pipe
//!                                      └──────────────▶ package ─▶ playlists and segments, to be published as objects
//! ```

#![warn(
    clippy::indexing_slicing,
    reason = "media come from strangers: parsers use checked reads"
)]

mod annex_b;
mod clock;
mod devices;
pub mod flv;
pub mod found;
mod headers;
pub mod hls;
#[cfg(any(test, feature = "hostile"))]
#[doc(hidden)]
pub mod hostile;
pub mod ingest;
pub mod nut;
pub mod package;
mod parameters;
pub mod record;
#[cfg(any(test, feature = "hostile"))]
mod script;
pub mod streams;
pub mod thumbnail;
pub mod voice;
#[cfg(feature = "whip")]
pub mod whip;

pub use clock::wall as capture_clock;
pub use devices::NoDefaultDevice;
