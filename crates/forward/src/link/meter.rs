//! What a link measures and knows, for those who do not hold it.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use core::time::Duration;

use namecast_units::{ByteSize, Instant};

use super::FrameCount;
use super::neighbour::Neighbour;
use crate::face::FaceConfig;

/// Where forwarders and hops read what a link has sent, how long its queue is, and what its neighbour speaks, whichever thread
/// drives the link.
///
/// Frames that pass the link by while nothing waits are counted by the forwarder that sent them, in
/// [`FaceCounters::outgoing`](crate::FaceCounters::outgoing); a link counts those that it makes.
#[derive(Debug, Default)]
pub struct LinkMeter {
    frames: AtomicU64,
    octets: AtomicU64,
    queued: AtomicU64,
    /// When the next frame was queued, in nanoseconds and one more; 0 while none waits.
    waits_since: AtomicU64,
    /// Octets of the largest datagram that reaches the neighbour; 0 where the link does not look for it.
    path_mtu: AtomicUsize,
    pub(crate) neighbour: Neighbour,
}

impl LinkMeter {
    /// Returns the frames that the link has made and queued, ever: two readings give a rate.
    pub fn sent(&self) -> FrameCount {
        FrameCount {
            frames: self.frames.load(Relaxed),
            octets: ByteSize::bytes(self.octets.load(Relaxed)),
        }
    }

    /// Returns the octets that wait.
    pub fn queued(&self) -> ByteSize {
        ByteSize::bytes(self.queued.load(Relaxed))
    }

    /// Returns for how long the next frame has waited.
    pub fn queueing_delay(&self, now: Instant) -> Duration {
        match self.waits_since.load(Relaxed).checked_sub(1) {
            Some(nanos) => now.since(Instant::from_nanos(nanos)),
            None => Duration::ZERO,
        }
    }

    /// Returns whether the neighbour speaks extension fields, as it was found out; `None` as long as that is unknown.
    pub fn speaks_extensions(&self) -> Option<bool> {
        self.neighbour.speaks()
    }

    /// Returns octets of the largest datagram that reaches the neighbour; `None` where the link does not look for it.
    pub fn path_mtu(&self) -> Option<usize> {
        let octets = self.path_mtu.load(Relaxed);
        (octets > 0).then_some(octets)
    }

    pub(super) fn set_path_mtu(&self, octets: Option<usize>) {
        self.path_mtu.store(octets.unwrap_or(0), Relaxed);
    }

    /// The link's part, which has a lock around it: nobody else writes.
    pub(super) fn set(&self, sent: FrameCount, queued: ByteSize, waits_since: Option<Instant>) {
        self.frames.store(sent.frames, Relaxed);
        self.octets.store(sent.octets.as_bytes(), Relaxed);
        self.queued.store(queued.as_bytes(), Relaxed);
        let since = waits_since.map_or(0, |since| since.as_nanos() + 1);
        self.waits_since.store(since, Relaxed);
    }
}

/// Octets of the largest frame that a face's neighbour gets, with what its link measures, if it has one.
pub(crate) fn mtu_of(face: &FaceConfig, meter: Option<&LinkMeter>) -> usize {
    let path = meter.and_then(LinkMeter::path_mtu);
    let all = path.into_iter().chain(face.mtu);
    all.min().unwrap_or(usize::MAX)
}
