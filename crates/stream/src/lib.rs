//! Producer and consumer of one real-time stream as plain values, and the format they share.
//!
//! ```text
//!   encoded sample ──▶ segmenter ──▶ producer ══ Interest ⇄ Data ══ consumer ──▶ sample
//!                        │    fec                                   fec │
//!                        └────── names · catalogue · metadata · sample ─┘
//! ```
//!
//! How it looks on the wire: `docs/stream-format.md`.

pub mod catalogue;
mod choice;
pub mod consumer;
pub mod fec;
mod feedback;
pub mod index;
pub mod inter_frame;
pub mod ladder;
pub mod metadata;
pub mod names;
pub mod path;
pub mod producer;
pub mod profile;
pub mod rate;
pub mod sample;
pub mod seal;
pub mod segmenter;

pub use catalogue::{Catalogue, CatalogueError, Reading, Rung, SampleRate, StreamInfo, StreamKind};
pub use choice::ParseChoiceError;
pub use inter_frame::InterFrameFec;
pub use metadata::{Latest, Metadata, NewestSample};
pub use names::{RungNames, SampleClass, SegmentId, SegmentKind, StreamNames};
pub use producer::{Producer, ProducerConfig};
pub use profile::Profile;
pub use sample::{Asked, Lead, SampleError, SampleHeader};
pub use seal::Seal;
pub use segmenter::{Sample, SegmentError, Segmenter, SegmenterConfig};
