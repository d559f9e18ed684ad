//! Files, cameras and encoders as frames, and frames as files. Encoding and decoding is ffmpeg's.
//!
//! ```text
//!  camera, file, test picture ─▶ ingest ─ MediaFrame ─▶ a publisher     streams: how its catalogue describes them
//!                                                       a watcher ─ Frame ─▶ record ─▶ file, pipe
//! ```

mod annex_b;
mod clock;
pub mod ingest;
pub mod nut;
pub mod record;
pub mod streams;
#[cfg(feature = "whip")]
pub mod whip;
