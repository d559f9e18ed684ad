//! Frames on their way from the event loop to one link.
//!
//! A link that is slow loses its own frames, the newest first, and never holds up the node: the event loop only ever
//! tries to put a frame in.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;

use bytes::Bytes;
use namecast_units::ByteSize;
use tokio::sync::mpsc;

use super::counters::{LinkCounters, LinkDrop};

/// Makes a queue that holds at most `frames` frames and `size` octets.
pub(crate) fn link_queue(
    frames: usize,
    size: ByteSize,
    counters: Arc<LinkCounters>,
) -> (LinkSender, LinkReceiver) {
    let (sender, receiver) = mpsc::channel(frames.max(1));
    let queued = Arc::new(AtomicUsize::new(0));
    let size = usize::try_from(size.as_bytes()).unwrap_or(usize::MAX);
    let sender = LinkSender {
        sender,
        queued: Arc::clone(&queued),
        size,
        counters,
    };
    (sender, LinkReceiver { receiver, queued })
}

/// The event loop's end.
#[derive(Debug)]
pub(crate) struct LinkSender {
    sender: mpsc::Sender<Bytes>,
    queued: Arc<AtomicUsize>,
    size: usize,
    counters: Arc<LinkCounters>,
}

impl LinkSender {
    /// Queues a frame, or drops and counts it if there is no room or no link.
    pub(crate) fn push(&self, frame: Bytes) {
        let length = frame.len();
        if self.queued.load(Ordering::Relaxed) + length > self.size {
            self.counters.dropped(LinkDrop::QueueFull, 1);
            return;
        }
        self.queued.fetch_add(length, Ordering::Relaxed);
        if let Err(refused) = self.sender.try_send(frame) {
            self.queued.fetch_sub(length, Ordering::Relaxed);
            let reason = match refused {
                mpsc::error::TrySendError::Full(_) => LinkDrop::QueueFull,
                mpsc::error::TrySendError::Closed(_) => LinkDrop::LinkDown,
            };
            self.counters.dropped(reason, 1);
        }
    }

    /// Octets that wait.
    pub(crate) fn queued(&self) -> ByteSize {
        ByteSize::bytes(self.queued.load(Ordering::Relaxed) as u64)
    }

    /// Whether nobody takes frames any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }
}

/// The link's end.
#[derive(Debug)]
pub(crate) struct LinkReceiver {
    receiver: mpsc::Receiver<Bytes>,
    queued: Arc<AtomicUsize>,
}

impl LinkReceiver {
    /// The next frame; `None` once the face has ended and all frames are out.
    pub(crate) async fn recv(&mut self) -> Option<Bytes> {
        let frame = self.receiver.recv().await?;
        self.queued.fetch_sub(frame.len(), Ordering::Relaxed);
        Some(frame)
    }

    /// Waits for frames and appends at most `limit` to `batch`. False once the face has ended and all frames are out.
    pub(crate) async fn recv_many(&mut self, batch: &mut Vec<Bytes>, limit: usize) -> bool {
        let before = batch.len();
        let more = self.receiver.recv_many(batch, limit).await > 0;
        let octets = batch[before..].iter().map(Bytes::len).sum();
        self.queued.fetch_sub(octets, Ordering::Relaxed);
        more
    }

    /// The next frame if there is one already.
    pub(crate) fn try_recv(&mut self) -> Option<Bytes> {
        let frame = self.receiver.try_recv().ok()?;
        self.queued.fetch_sub(frame.len(), Ordering::Relaxed);
        Some(frame)
    }
}

/// Numbers that tell accepted connections apart.
pub(crate) fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(length: usize) -> Bytes {
        Bytes::from(vec![0; length])
    }

    /// Room for 4 frames and 100 octets: 60 + 40 fit, the 1 after them does not, and fits again once 40 are out.
    #[test]
    fn octets_are_bounded_and_given_back() {
        let counters = Arc::new(LinkCounters::default());
        let (sender, mut receiver) = link_queue(4, ByteSize::bytes(100), Arc::clone(&counters));
        sender.push(frame(40));
        sender.push(frame(60));
        sender.push(frame(1));
        assert_eq!(counters.drops(LinkDrop::QueueFull), 1);
        assert_eq!(receiver.try_recv().unwrap().len(), 40);
        sender.push(frame(40));
        assert_eq!(counters.drops(LinkDrop::QueueFull), 1);
        assert_eq!(receiver.try_recv().unwrap().len(), 60);
        assert_eq!(receiver.try_recv().unwrap().len(), 40);
        assert_eq!(receiver.queued.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn frames_are_bounded_and_the_newest_is_lost() {
        let counters = Arc::new(LinkCounters::default());
        let (sender, mut receiver) = link_queue(2, ByteSize::bytes(100), Arc::clone(&counters));
        (1..=3).for_each(|length| sender.push(frame(length)));
        assert_eq!(counters.drops(LinkDrop::QueueFull), 1);
        assert_eq!(receiver.try_recv().unwrap().len(), 1);
        assert_eq!(receiver.try_recv().unwrap().len(), 2);
        assert!(receiver.try_recv().is_none());
    }

    #[test]
    fn frames_for_a_link_that_is_gone_are_counted_as_such() {
        let counters = Arc::new(LinkCounters::default());
        let (sender, receiver) = link_queue(2, ByteSize::bytes(100), Arc::clone(&counters));
        drop(receiver);
        sender.push(frame(1));
        assert!(sender.is_closed());
        assert_eq!(counters.drops(LinkDrop::LinkDown), 1);
        assert_eq!(sender.queued.load(Ordering::Relaxed), 0);
    }
}
