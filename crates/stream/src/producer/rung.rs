//! One rung of a producer: what it has published, and under which numbers.

use core::time::Duration;

use namecast_units::{Instant, Timestamp};

use super::answers::FreshAnswer;
use super::{ProducerConfig, RungConfig, SegmentCache};
use crate::inter_frame::InterFrameFec;
use crate::metadata::Latest;
use crate::names::{RungNames, SegmentId};
use crate::segmenter::Segmenter;

/// What a producer knows of one rung.
#[derive(Debug)]
pub(super) struct RungState {
    pub(super) segmenter: Segmenter,
    pub(super) cache: SegmentCache,
    pub(super) inter_frame: Option<InterFrameFec>,
    /// Smallest sequence number that may be published, key and delta.
    pub(super) next: [u64; 2],
    /// Newest sequence number that was published, key and delta.
    pub(super) newest: [Option<u64>; 2],
    /// Playback position of the newest key sample.
    pub(super) key_position: Option<u64>,
    /// The delta sample that follows it.
    pub(super) next_delta: Option<u64>,
    pub(super) answer: FreshAnswer,
    /// When a sample of it was requested last.
    pub(super) asked_at: Option<Instant>,
    /// It is a member of a family: its numbers are those of another rung.
    pub(super) is_member: bool,
    periods: [Duration; 2],
}

impl RungState {
    pub(super) fn new(names: RungNames, config: &RungConfig, of_all: &ProducerConfig) -> Self {
        Self {
            segmenter: Segmenter::new(names, config.segmenter).with_headers(of_all.headers),
            cache: SegmentCache::new(of_all.cache),
            inter_frame: config.inter_frame,
            next: [config.first_sequence; 2],
            newest: [None; 2],
            key_position: None,
            next_delta: None,
            answer: FreshAnswer::default(),
            asked_at: None,
            is_member: false,
            periods: config.periods,
        }
    }

    /// Returns how long it usually takes until the sample of a segment is published.
    pub(super) fn time_until(&self, id: &SegmentId) -> Duration {
        let class = id.class.index();
        let ahead = id.sequence.saturating_sub(self.next[class]);
        let ahead = u32::try_from(ahead).unwrap_or(u32::MAX);
        self.periods[class].saturating_mul(ahead)
    }

    pub(super) fn latest(&self, wall: Timestamp) -> Latest {
        let [key_sequence, delta_sequence] = self.newest;
        Latest {
            rung: self.segmenter.names().prefix().clone(),
            key_sequence,
            delta_sequence,
            key_position: self.key_position,
            served_at: wall,
            next_delta: self.next_delta,
        }
    }
}
