//! What comes out of a link, and what it counts.

use bytes::Bytes;
use namecast_units::{ByteSize, Duration, Instant};

/// Why a frame did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// The queue was full.
    QueueFull,
    /// The queue discipline chose it.
    ActiveQueue,
    /// Random loss.
    Loss,
    /// An outage, or the link was down.
    Down,
    /// As many frames as the configuration allows were between the queue and the far end.
    InFlightFull,
}

/// What became of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output<F = Bytes> {
    /// It arrived.
    Delivered {
        /// When.
        at: Instant,
        /// The frame, damaged if the link damages.
        frame: F,
        /// How long it waited to be serialised.
        queued_for: Duration,
        /// The queue discipline marked it.
        congestion_marked: bool,
    },
    /// It will not arrive.
    Dropped {
        /// When.
        at: Instant,
        /// The frame.
        frame: F,
        /// Why.
        reason: DropReason,
    },
}

/// What a link has seen. First what each frame counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counters {
    /// Frames that arrived, copies included.
    pub delivered: u64,
    /// Bytes of these, headers of the link included.
    pub delivered_size: ByteSize,
    /// Sum of the times that delivered frames waited to be serialised, in nanoseconds; a copy did not wait.
    pub queued_nanos: u64,
    /// Frames that arrived with one bit flipped; a copy of one counts with it.
    pub corrupted: u64,
    /// Frames marked.
    pub marked: u64,
    /// Frames dropped because the queue was full.
    pub queue_full: u64,
    /// Frames dropped by the queue discipline.
    pub active_queue: u64,
    /// Frames lost at random.
    pub lost: u64,
    /// Frames lost because the link was down.
    pub down: u64,
    /// Frames dropped because too many were in flight.
    pub in_flight_full: u64,
    /// Frames that arrived twice.
    pub duplicated: u64,
}

impl Counters {
    /// Counts a frame that will not arrive.
    pub(crate) const fn count_drop(&mut self, reason: DropReason) {
        let counter = match reason {
            DropReason::QueueFull => &mut self.queue_full,
            DropReason::ActiveQueue => &mut self.active_queue,
            DropReason::Loss => &mut self.lost,
            DropReason::Down => &mut self.down,
            DropReason::InFlightFull => &mut self.in_flight_full,
        };
        *counter += 1;
    }

    /// Frames that did not arrive, for whatever reason.
    pub const fn dropped(&self) -> u64 {
        self.queue_full + self.active_queue + self.lost + self.down + self.in_flight_full
    }
}
