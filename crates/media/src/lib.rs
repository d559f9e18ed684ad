//! Files, cameras and encoders as frames, and frames as files. Encoding and decoding is ffmpeg's.
//!
//! ```text
//!  camera, file, test picture ─▶ ingest ─ MediaFrame ─▶ a publisher     streams: how its catalogue describes them
//!                                      │                a watcher ─ Frame ─▶ record ─▶ file, pipe
//!                                      └──────────────▶ package ─▶ playlists and segments, to be published as objects
//! ```

mod annex_b;
mod clock;
mod devices;
pub mod flv;
pub mod found;
mod headers;
pub mod hls;
pub mod ingest;
pub mod nut;
pub mod package;
mod parameters;
pub mod record;
pub mod streams;
pub mod voice;
#[cfg(feature = "whip")]
pub mod whip;

pub use clock::wall as capture_clock;
pub use devices::NoDefaultDevice;
