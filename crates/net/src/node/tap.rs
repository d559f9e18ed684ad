//! Every frame that a node's forwarders take and give, for whoever writes a trace.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use namecast_forward::FaceId;
use namecast_units::Instant;

/// A frame at a face of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedFrame {
    /// When it came or left, by the node's clock.
    pub at: Instant,
    /// The face, of a peer or of an application.
    pub face: FaceId,
    /// Whether it left.
    pub is_sent: bool,
    /// As it is on the link: bare Interest or Data, or link packet.
    pub frame: Bytes,
}

/// Frames of a node, as they come and leave.
#[derive(Debug)]
pub struct Trace {
    /// The frames.
    pub frames: Receiver<TracedFrame>,
    missed: Arc<AtomicU64>,
}

impl Trace {
    /// Returns how many frames found no room.
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }
}

/// Where frames go besides; nowhere, until somebody wants them.
#[derive(Debug, Default)]
pub(crate) struct Tap {
    frames: OnceLock<SyncSender<TracedFrame>>,
    missed: Arc<AtomicU64>,
}

impl Tap {
    /// From now on, frames go to the receiver, of which so many may wait; `None`: somebody has one already.
    pub(crate) fn open(&self, capacity: usize) -> Option<Trace> {
        let (frames, receiver) = mpsc::sync_channel(capacity);
        self.frames.set(frames).ok()?;
        Some(Trace {
            frames: receiver,
            missed: Arc::clone(&self.missed),
        })
    }

    /// Whether anybody wants frames.
    pub(crate) fn is_open(&self) -> bool {
        self.frames.get().is_some()
    }

    /// Passes a frame on, without waiting.
    pub(crate) fn record(&self, at: Instant, face: FaceId, is_sent: bool, frame: &Bytes) {
        let Some(frames) = self.frames.get() else {
            return;
        };
        let traced = TracedFrame {
            at,
            face,
            is_sent,
            frame: frame.clone(),
        };
        if let Err(TrySendError::Full(_)) = frames.try_send(traced) {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_beyond_the_capacity_are_counted_and_nobody_waits() {
        let (tap, frame) = (Tap::default(), Bytes::from_static(b"frame"));
        let record = |nanos| {
            let at = Instant::from_nanos(nanos);
            tap.record(at, FaceId::CONTENT_STORE, true, &frame);
        };
        record(1);
        let trace = tap.open(2).unwrap();
        assert!(tap.open(2).is_none());
        (2..6).for_each(record);
        let times: Vec<_> = trace.frames.try_iter().map(|it| it.at.as_nanos()).collect();
        assert_eq!((times, trace.missed()), (vec![2, 3], 2));
    }
}
