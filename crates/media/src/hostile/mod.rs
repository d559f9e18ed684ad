//! Bodies of the fuzz targets of this crate (see `fuzz/`): parsers of media that strangers send are private, so the bodies are here.
//! Tests run them on damaged seeds.

mod codec_headers;
mod flv;
mod nut;
#[cfg(feature = "whip")]
mod whip;

#[cfg(test)]
mod tests;

pub use crate::ingest::external_hostile::{captions, packets};
pub use codec_headers::codec_headers;
pub use flv::flv;
pub use nut::nut;
#[cfg(feature = "whip")]
pub use whip::whip;
