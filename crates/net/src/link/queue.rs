//! Frames on their way to one link.
//!
//! A link that is slow loses its own frames, the newest first, and never holds up the node: whoever has a frame for it
//! tries to send it or to put it in the queue, and goes on.

use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use namecast_forward::{CongestionMarker, Keep, SojournMarker};
use namecast_packet::LpPacket;
use namecast_units::{ByteSize, Instant};
use tokio::sync::mpsc;

use super::counters::{LinkCounters, LinkDrop};
use super::udp::UdpLink;
use crate::Clock;

/// Makes a queue that holds at most `frames` frames and `size` octets, and has packets marked as `marker` says.
pub(crate) fn link_queue(
    frames: usize,
    size: ByteSize,
    marker: CongestionMarker,
    counters: Arc<LinkCounters>,
) -> (LinkSender, LinkReceiver) {
    let (sender, receiver) = mpsc::channel(frames.max(1));
    let queued = Arc::new(AtomicUsize::new(0));
    let size = usize::try_from(size.as_bytes()).unwrap_or(usize::MAX);
    let sojourn = SojournMarker::new(marker.rule.interval);
    let sender = LinkSender {
        sender,
        queued: Arc::clone(&queued),
        size,
        counters,
        marker: Mutex::new(marker),
        is_at_rest: AtomicBool::new(true),
        is_stranger: AtomicBool::new(false),
        socket: ArcSwapOption::empty(),
    };
    let receiver = LinkReceiver {
        receiver,
        queued,
        taken: Vec::new(),
        sojourn,
    };
    (sender, receiver)
}

/// A frame that waits.
#[derive(Debug)]
struct Waiting {
    frame: Bytes,
    /// Since when, if that decides about its mark.
    since: Option<Instant>,
}

/// The node's end.
#[derive(Debug)]
pub(crate) struct LinkSender {
    sender: mpsc::Sender<Waiting>,
    queued: Arc<AtomicUsize>,
    size: usize,
    counters: Arc<LinkCounters>,
    marker: Mutex<CongestionMarker>,
    /// Whether the marker has seen no queue since it last rested, so that it need not be told again.
    is_at_rest: AtomicBool,
    /// Whether what is sent is bounded, as the peer may not be where it says it is.
    is_stranger: AtomicBool,
    /// Where frames go at once while none is queued. Several threads look at it for each packet, which costs none of them
    /// the memory that others use.
    socket: ArcSwapOption<(Arc<UdpLink>, SocketAddr)>,
}

impl LinkSender {
    /// Sends frames at once if the link can, and queues what the system has no room for.
    pub(crate) fn send(&self, clock: Clock, frames: Vec<Bytes>) {
        let sent = match self.queued().as_bytes() {
            0 => self.send_now(&frames),
            _ => 0,
        };
        if sent == frames.len() {
            if !self.is_at_rest.load(Ordering::Relaxed) {
                self.marker(|marker| {
                    marker.rest();
                    self.is_at_rest.store(true, Ordering::Relaxed);
                });
            }
            return;
        }
        let mut marker = self.marker.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_at_rest.store(false, Ordering::Relaxed);
        for frame in frames.into_iter().skip(sent) {
            let is_congested = marker.marks(|| clock.now(), self.queued());
            let frame = match is_congested {
                true => LpPacket::marked(frame),
                // What waits must not keep the buffer that a small frame was cut from.
                false => Keep::LargeFrames.own(frame),
            };
            let since = marker.stamp(|| clock.now());
            self.push(Waiting { frame, since });
        }
    }

    /// How many frames need no queue, since the socket took them or never will.
    fn send_now(&self, frames: &[Bytes]) -> usize {
        match self.socket.load().as_deref() {
            Some((socket, remote)) => socket.try_send(*remote, frames, &self.counters),
            None => 0,
        }
    }

    /// Sends frames over `socket` to `remote` from now on, past the queue while that is empty; none: only through it.
    pub(crate) fn set_socket(&self, socket: Option<(Arc<UdpLink>, SocketAddr)>) {
        self.socket.store(socket.map(Arc::new));
    }

    /// Looks at the congestion marks, or changes them.
    pub(crate) fn marker<T>(&self, change: impl FnOnce(&mut CongestionMarker) -> T) -> T {
        change(&mut self.marker.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Queues a frame, or drops and counts it if there is no room or no link.
    fn push(&self, waiting: Waiting) {
        let length = waiting.frame.len();
        if self.queued.load(Ordering::Relaxed) + length > self.size {
            self.counters.dropped(LinkDrop::QueueFull, 1);
            return;
        }
        self.queued.fetch_add(length, Ordering::Relaxed);
        if let Err(refused) = self.sender.try_send(waiting) {
            self.queued.fetch_sub(length, Ordering::Relaxed);
            let reason = match refused {
                mpsc::error::TrySendError::Full(_) => LinkDrop::QueueFull,
                mpsc::error::TrySendError::Closed(_) => LinkDrop::LinkDown,
            };
            self.counters.dropped(reason, 1);
        }
    }

    /// Whether the peer is one of the node's strangers.
    pub(crate) fn is_stranger(&self) -> bool {
        self.is_stranger.load(Ordering::Relaxed)
    }

    /// Makes the peer one of the node's strangers, or none any more.
    pub(crate) fn set_stranger(&self, is_stranger: bool) {
        self.is_stranger.store(is_stranger, Ordering::Relaxed);
    }

    /// Counts frames that were not sent.
    pub(crate) fn dropped(&self, reason: LinkDrop, frames: usize) {
        self.counters.dropped(reason, frames as u64);
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
    receiver: mpsc::Receiver<Waiting>,
    queued: Arc<AtomicUsize>,
    /// Room for what is taken in one go; empty between calls.
    taken: Vec<Waiting>,
    sojourn: SojournMarker,
}

impl LinkReceiver {
    /// The next frame; `None` once the face has ended and all frames are out.
    pub(crate) async fn recv(&mut self) -> Option<Bytes> {
        let waiting = self.receiver.recv().await?;
        Some(self.release(now, waiting))
    }

    /// Waits for frames and appends at most `limit` to `batch`. False once the face has ended and all frames are out.
    pub(crate) async fn recv_many(&mut self, batch: &mut Vec<Bytes>, limit: usize) -> bool {
        let more = self.receiver.recv_many(&mut self.taken, limit).await > 0;
        let mut taken = core::mem::take(&mut self.taken);
        batch.extend(taken.drain(..).map(|waiting| self.release(now, waiting)));
        self.taken = taken;
        more
    }

    /// The next frame if there is one already.
    pub(crate) fn try_recv(&mut self) -> Option<Bytes> {
        let waiting = self.receiver.try_recv().ok()?;
        Some(self.release(now, waiting))
    }

    /// Gives back a frame's room, and marks it if it has waited for too long.
    fn release(&mut self, now: impl FnOnce() -> Instant, waiting: Waiting) -> Bytes {
        let Waiting { frame, since } = waiting;
        let length = frame.len();
        let left = self.queued.fetch_sub(length, Ordering::Relaxed) - length;
        let is_late =
            since.is_some_and(|since| self.sojourn.marks(now(), since, length, left as u64));
        match is_late {
            true => LpPacket::marked(frame),
            false => frame,
        }
    }
}

/// The time, for frames whose mark goes by it.
fn now() -> Instant {
    Clock::new().now()
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

    fn unstamped(length: usize) -> Waiting {
        Waiting {
            frame: frame(length),
            since: None,
        }
    }

    fn queue(
        frames: usize,
        octets: u64,
        counters: &Arc<LinkCounters>,
    ) -> (LinkSender, LinkReceiver) {
        let marker = CongestionMarker::default();
        link_queue(
            frames,
            ByteSize::bytes(octets),
            marker,
            Arc::clone(counters),
        )
    }

    /// Room for 4 frames and 100 octets: 60 + 40 fit, the 1 after them does not, and fits again once 40 are out.
    #[test]
    fn octets_are_bounded_and_given_back() {
        let counters = Arc::new(LinkCounters::default());
        let (sender, mut receiver) = queue(4, 100, &counters);
        sender.push(unstamped(40));
        sender.push(unstamped(60));
        sender.push(unstamped(1));
        assert_eq!(counters.drops(LinkDrop::QueueFull), 1);
        assert_eq!(receiver.try_recv().unwrap().len(), 40);
        sender.push(unstamped(40));
        assert_eq!(counters.drops(LinkDrop::QueueFull), 1);
        assert_eq!(receiver.try_recv().unwrap().len(), 60);
        assert_eq!(receiver.try_recv().unwrap().len(), 40);
        assert_eq!(receiver.queued.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_frame_that_waits_does_not_keep_the_buffer_it_was_cut_from() {
        let (sender, mut receiver) = queue(4, 9_000, &Arc::new(LinkCounters::default()));
        let buffer = frame(60_000);
        sender.send(Clock::new(), vec![buffer.slice(..40), buffer.slice(40..90)]);
        assert!(buffer.is_unique());
        let waiting = core::iter::from_fn(|| receiver.try_recv());
        assert_eq!(waiting.collect::<Vec<_>>(), [frame(40), frame(50)]);
    }

    #[test]
    fn frames_are_bounded_and_the_newest_is_lost() {
        let counters = Arc::new(LinkCounters::default());
        let (sender, mut receiver) = queue(2, 100, &counters);
        (1..=3).for_each(|length| sender.push(unstamped(length)));
        assert_eq!(counters.drops(LinkDrop::QueueFull), 1);
        assert_eq!(receiver.try_recv().unwrap().len(), 1);
        assert_eq!(receiver.try_recv().unwrap().len(), 2);
        assert!(receiver.try_recv().is_none());
    }

    #[test]
    fn frames_for_a_link_that_is_gone_are_counted_as_such() {
        let counters = Arc::new(LinkCounters::default());
        let (sender, receiver) = queue(2, 100, &counters);
        drop(receiver);
        sender.push(unstamped(1));
        assert!(sender.is_closed());
        assert_eq!(counters.drops(LinkDrop::LinkDown), 1);
        assert_eq!(sender.queued.load(Ordering::Relaxed), 0);
    }

    /// The second frame waits behind more than the threshold, from when on an interval is counted. It is forgotten once nothing
    /// of a batch needs the queue, as of one without frames.
    #[test]
    fn a_queue_that_was_long_before_counts_for_no_mark() {
        use namecast_forward::CongestionMarking;
        let rule = CongestionMarking {
            threshold: ByteSize::bytes(10),
            ..CongestionMarking::default()
        };
        for (is_idle_between, is_marked) in [(false, true), (true, false)] {
            let counters = Arc::new(LinkCounters::default());
            let marker = CongestionMarker::new(Some(rule));
            let (sender, _receiver) = link_queue(4, ByteSize::bytes(1_000), marker, counters);
            let clock = Clock::new();
            sender.send(clock, vec![frame(100)]);
            sender.send(clock, vec![frame(100)]);
            if is_idle_between {
                sender.send(clock, Vec::new());
            }
            let later = clock.now() + rule.interval * 2;
            let marks = |marker: &mut CongestionMarker| marker.marks(|| later, sender.queued());
            assert_eq!(sender.marker(marks), is_marked);
        }
    }

    /// A packet leaves each millisecond after it has waited for ten, with others behind it: CoDel's first mark comes 100 ms
    /// after the first packet, the second 100 ms later. Packets without a time, as with NFD's rule, have none.
    #[test]
    fn packets_that_waited_for_too_long_leave_with_a_mark() {
        use namecast_units::Duration;
        let packet = LpPacket::carrying(Bytes::from_static(&[6, 1, 0])).encode();
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        for (is_stamped, expected) in [(true, &[110, 210][..]), (false, &[])] {
            let counters = Arc::new(LinkCounters::default());
            let (sender, mut receiver) = queue(512, 10_000, &counters);
            let mut marked = Vec::new();
            (0..300).for_each(|_| sender.push(unstamped(packet.len())));
            for millis in 10..250 {
                let waiting = Waiting {
                    frame: packet.clone(),
                    since: is_stamped.then(|| at(millis - 10)),
                };
                let frame = receiver.release(|| at(millis), waiting);
                if LpPacket::decode(frame).unwrap().congestion_mark > 0 {
                    marked.push(millis);
                }
            }
            assert_eq!(marked, expected);
        }
    }
}
