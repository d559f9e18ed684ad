//! Bounds of a producer, and why it refuses to publish.

use core::time::Duration;

use namecast_packet::Name;
use namecast_units::Timestamp;
use smart_default::SmartDefault;

use super::CacheConfig;
use crate::catalogue::CatalogueError;
use crate::inter_frame::InterFrameFec;
use crate::metadata::MAX_LATEST;
use crate::segmenter::{SegmentError, SegmenterConfig};

/// Bounds of a producer.
#[derive(Clone, Debug, PartialEq, Eq, SmartDefault)]
pub struct ProducerConfig {
    /// How much of each rung is kept.
    pub cache: CacheConfig,
    /// Most Interests held.
    #[default(8_192)]
    pub max_pending: usize,
    /// Most Interests held for one segment. Forwarders aggregate, so more than a few are retransmissions.
    #[default(8)]
    pub max_pending_per_segment: usize,
    /// Longest that an Interest is held, whatever its lifetime.
    #[default(Duration::from_secs(10))]
    pub max_lifetime: Duration,
    /// How many samples ahead of the newest of its class an Interest may ask.
    #[default(300)]
    pub max_ahead: u64,
    /// How long metadata and newest-sample answers count as fresh (whole milliseconds), and are given again.
    #[default(Duration::from_millis(10))]
    pub freshness: Duration,
    /// Most answers for one consumer alone that are signed in a second.
    #[default(2_000)]
    pub max_challenges: u32,
    /// Most answers that wait for the driver.
    #[default(8_192)]
    pub max_output: usize,
    /// Octets of headers that each segment but a lead has at least: see [`Segmenter::with_headers`](crate::Segmenter::with_headers).
    pub headers: usize,
    /// When the name was taken over from another producer, which metadata says; `None` if it was not.
    pub taken_over_at: Option<Timestamp>,
    /// Most members of families.
    #[default(4_096)]
    pub max_members: usize,
    /// Most packets of catalogue and certificates.
    #[default(256)]
    pub max_objects: usize,
}

/// What a new rung starts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RungConfig {
    /// How samples are cut.
    pub segmenter: SegmenterConfig,
    /// First sequence number, key and delta: see
    /// [`SampleRate::first_sequence`](crate::SampleRate::first_sequence).
    pub first_sequence: u64,
    /// Inter-frame FEC that is made when somebody requests it: what the catalogue offers.
    pub inter_frame: Option<InterFrameFec>,
    /// Usual time from one sample to the next, key and delta; zero if it is not known.
    pub periods: [Duration; 2],
}

/// Why nothing was published.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The sample could not be cut.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// The catalogue is not valid.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// A sample with this number, or a later one, was published before.
    #[error("sequence number {got} was used; {next} is next")]
    SequenceUsed {
        /// Number of the sample.
        got: u64,
        /// Smallest number that may be published.
        next: u64,
    },
    /// The rung is not one of this producer's.
    #[error("no such rung")]
    NoSuchRung,
    /// The producer has as many rungs as metadata can list.
    #[error("more than {MAX_LATEST} rungs")]
    TooManyRungs,
    /// There are as many members of families as the configuration allows.
    #[error("{0} members of families: no room for another")]
    TooManyMembers(usize),
    /// A rung with this name is already there, or its name is reserved or has characters that it must not have.
    #[error(
        "rung {0} is already there, or its name is reserved, or not 1 to 64 of A-Z, a-z, 0-9, '.', '_', '-'"
    )]
    RungName(Name),
    /// There are as many objects as the configuration allows.
    #[error("no room for another {0} catalogue or certificate packets")]
    TooManyObjects(usize),
}
