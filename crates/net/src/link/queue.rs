//! A face's link between whoever has a packet for it and the task that drives its socket.
//!
//! ```text
//!   packet ── LinkSender::send ─┬─▶ socket, if it is UDP, has room, and nothing waits
//!                               └─▶ Link (its own lock: queue, marks, fragments, Acks) ── LinkReceiver ── link task ──▶ socket
//!
//! Frames for UDP stay in the queue until the socket has room, so that marks see all that wait.
//! ```
//!
//! A link that is slow loses its own frames, the newest first, and never holds up the node: whoever has a packet for it
//! tries to send it or to put it in the queue, and goes on.

use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use namecast_forward::{FaceId, Link};
use namecast_packet::LpPacket;
use namecast_units::{ByteSize, Instant};
use tokio::sync::Notify;

use super::counters::{LinkCounters, LinkDrop};
use super::strangers::Strangers;
use super::udp::{Sent, UdpLink, UdpPath};
use crate::Clock;

/// Room for any frame: that the socket has none shows only when it is tried.
const ANY: ByteSize = ByteSize::bytes(u64::MAX);

/// Frames that had to wait which one call of the system takes. The kernel counts several that leave as one for little more than
/// their octets, of each alone for twice as much: it would hold twice as many before any is marked. And CoDel looks at a frame
/// when it leaves, not at those before which the kernel has no room any more.
const ONE_BY_ONE: usize = 1;

/// Returns both ends of a link.
pub(crate) fn link_queue(link: Link, counters: Arc<LinkCounters>) -> (LinkSender, LinkReceiver) {
    let shared = Arc::new(Shared {
        longest: AtomicUsize::new(link.longest_whole()),
        state: Mutex::new(State { link, armed: None }),
        is_empty: AtomicBool::new(true),
        is_at_rest: AtomicBool::new(true),
        is_stranger: AtomicBool::new(false),
        account: Mutex::new(None),
        ready: Notify::new(),
        has_ended: AtomicBool::new(false),
        is_closed: AtomicBool::new(false),
        counters,
    });
    let receiver = LinkReceiver {
        shared: Arc::clone(&shared),
        taken: Vec::new(),
    };
    let sender = LinkSender {
        shared,
        socket: ArcSwapOption::empty(),
    };
    (sender, receiver)
}

/// What both ends of a link share.
#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Whether no frame waits, and octets of the longest packet that needs nothing of the link: looked at for each packet,
    /// which the lock would be dear for.
    is_empty: AtomicBool,
    longest: AtomicUsize,
    /// Whether the marks have seen no queue since the link last rested, so that it need not be told again.
    is_at_rest: AtomicBool,
    /// Whether what is sent is bounded, as the peer may not be where it says it is.
    is_stranger: AtomicBool,
    account: Mutex<Option<Account>>,
    /// Tells the link's task that frames wait, that a deadline came nearer, or that the face has ended.
    ready: Notify,
    has_ended: AtomicBool,
    /// Whether nobody takes frames any more.
    is_closed: AtomicBool,
    counters: Arc<LinkCounters>,
}

#[derive(Debug)]
struct State {
    link: Link,
    /// When the link's task looks after it by itself, if ever.
    armed: Option<Instant>,
}

/// Where it is counted what a stranger may be sent.
#[derive(Debug)]
pub(crate) struct Account {
    /// His face.
    pub(crate) face: FaceId,
    /// All accounts.
    pub(crate) strangers: Arc<Mutex<Strangers>>,
}

/// A whole packet from a link, for a forwarder.
#[derive(Clone, Debug)]
pub(crate) enum Arrival {
    /// As its frame brought it: most are.
    Frame(Bytes),
    /// As the link put it together, or took it from what says something about frames.
    Packet(Box<LpPacket>),
}

impl Shared {
    /// A panic of another task, which is a defect, leaves counters at worst: the link goes on.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes at most `limit` frames that may leave.
    fn take(&self, now: Instant, link: &mut Link, batch: &mut Vec<Bytes>, limit: usize) {
        let is_stranger = self.is_stranger.load(Ordering::Relaxed);
        let mut count = 0;
        while count < limit
            && let Some(frame) = link.poll_frame(now, ANY)
        {
            if is_stranger && !self.may_leave(now, &frame) {
                self.counters.dropped(LinkDrop::Unproven, 1);
                continue;
            }
            batch.push(frame);
            count += 1;
        }
    }

    /// Sends frames that wait as long as the socket has room, at most `limit` in a call of the system.
    fn send_waiting(
        &self,
        now: Instant,
        link: &mut Link,
        (socket, path): (&UdpLink, UdpPath),
        limit: usize,
    ) {
        let mut frames = Vec::new();
        while socket.may_have_room() {
            self.take(now, link, &mut frames, limit);
            if frames.is_empty() {
                return;
            }
            let sent = socket.try_send(path, &frames, &self.counters);
            let mut unsent = frames.drain(sent.frames..);
            if sent.is_too_large
                && let Some(frame) = unsent.next()
            {
                link.on_too_large(now, frame.len(), socket.limit());
                // It was cut for what the path took before.
                let is_lost = !Link::is_probe(&frame);
                self.counters
                    .dropped(LinkDrop::TooLarge, u64::from(is_lost));
            }
            link.put_back(now, unsent);
            if link.is_empty() {
                return;
            }
            frames.clear();
        }
    }

    /// Whether a stranger may be sent a frame.
    fn may_leave(&self, now: Instant, frame: &Bytes) -> bool {
        let account = self.account.lock();
        let account = account.unwrap_or_else(PoisonError::into_inner);
        account.as_ref().is_none_or(|Account { face, strangers }| {
            let mut strangers = strangers.lock().unwrap_or_else(PoisonError::into_inner);
            strangers.may_send(now, *face, frame.len() as u64)
        })
    }

    /// Threads read it for each packet, so it is written only when it changes.
    fn update_longest(&self, link: &Link) {
        let longest = link.longest_whole();
        if self.longest.load(Ordering::Relaxed) != longest {
            self.longest.store(longest, Ordering::Relaxed);
        }
    }

    /// Records how the link is left, and wakes its task if there is something to do.
    fn leave(&self, state: &State) {
        let is_empty = state.link.is_empty();
        self.is_empty.store(is_empty, Ordering::Relaxed);
        self.update_longest(&state.link);
        let due = state.link.poll_timeout();
        let is_nearer = due.is_some_and(|due| state.armed.is_none_or(|armed| due < armed));
        if !is_empty || is_nearer {
            self.ready.notify_one();
        }
    }
}

/// The node's end.
#[derive(Debug)]
pub(crate) struct LinkSender {
    shared: Arc<Shared>,
    /// Where frames go at once while none is queued. Several threads look at it for each packet, which costs none of them
    /// the memory that others use.
    socket: ArcSwapOption<(Arc<UdpLink>, UdpPath)>,
}

impl LinkSender {
    /// Takes a frame that the link delivered. Returns the packet that it carries or completes.
    pub(crate) fn open(&self, now: Instant, frame: Bytes) -> Option<Arrival> {
        if !Link::concerns(&frame) {
            return Some(Arrival::Frame(frame));
        }
        let mut state = self.shared.lock();
        let packet = state.link.handle_frame(now, frame);
        self.shared.leave(&state);
        packet.map(|packet| Arrival::Packet(Box::new(packet)))
    }

    /// Sends link packets at once if the link can, and queues what the system has no room for.
    pub(crate) fn send(&self, clock: Clock, packets: Vec<Bytes>) {
        let shared = &*self.shared;
        let may_pass = shared.is_empty.load(Ordering::Relaxed) && !self.is_stranger();
        let longest = match may_pass {
            true => shared.longest.load(Ordering::Relaxed),
            false => 0,
        };
        let passing = packets.iter().take_while(|it| it.len() <= longest);
        let passing = passing.count();
        let sent = self.send_now(&packets[..passing]);
        if let Some(next) = packets.get(sent.frames) {
            let now = clock.now();
            if sent.is_too_large {
                self.refused(now, next.len());
            }
            let has_room = sent.frames == passing || sent.is_too_large;
            return self.enqueue(now, packets.into_iter().skip(sent.frames), has_room);
        }
        if !shared.is_at_rest.load(Ordering::Relaxed) {
            shared.lock().link.rest();
            shared.is_at_rest.store(true, Ordering::Relaxed);
        }
    }

    /// Lets the link have packets. What it makes of them leaves at once if the socket may have room.
    fn enqueue(&self, now: Instant, packets: impl Iterator<Item = Bytes>, has_room: bool) {
        let shared = &*self.shared;
        if self.is_closed() {
            return shared
                .counters
                .dropped(LinkDrop::LinkDown, packets.count() as u64);
        }
        let mut state = shared.lock();
        shared.is_at_rest.store(false, Ordering::Relaxed);
        let socket = self.socket.load();
        let socket = socket
            .as_deref()
            .filter(|_| has_room && !self.is_stranger());
        for packet in packets {
            let limit = match state.link.is_empty() {
                true => usize::MAX,
                false => ONE_BY_ONE,
            };
            state.link.enqueue(now, packet);
            if let Some((socket, path)) = socket {
                shared.send_waiting(now, &mut state.link, (socket, *path), limit);
            }
        }
        shared.leave(&state);
    }

    /// Sends a frame of the node's own, of which the link makes nothing.
    pub(crate) fn send_frame(&self, clock: Clock, frame: Bytes) {
        let mut state = self.shared.lock();
        state.link.enqueue_frame(clock.now(), frame);
        self.shared.leave(&state);
    }

    /// Sends packets past the link, if it has a socket for that. Those that the socket took or never will need no queue.
    fn send_now(&self, packets: &[Bytes]) -> Sent {
        match self.socket.load().as_deref() {
            Some((socket, path)) => socket.try_send(*path, packets, &self.shared.counters),
            None => Sent::default(),
        }
    }

    /// The socket refused a packet of `octets` as too large.
    fn refused(&self, now: Instant, octets: usize) {
        let socket = self.socket.load();
        let limit = socket.as_deref().and_then(|(socket, _)| socket.limit());
        self.with_link(|link| link.on_too_large(now, octets, limit));
    }

    /// A router reported that a datagram was too large for the path, after which the system's limit is `limit`.
    pub(crate) fn on_path_report(&self, now: Instant, limit: Option<usize>) {
        self.with_link(|link| link.on_path_report(now, limit));
    }

    /// Sends frames over `socket` by a path from now on, past the queue while that is empty; none: only through it. What the path takes is
    /// found anew.
    pub(crate) fn set_socket(&self, socket: Option<(Arc<UdpLink>, UdpPath)>) {
        if let Some((socket, path)) = &socket {
            let (now, limit) = (Clock::new().now(), socket.limit());
            self.with_link(|link| {
                link.discover_path_mtu(path.mtu_discovery());
                link.set_system_limit(now, limit);
            });
        }
        self.socket.store(socket.map(Arc::new));
    }

    /// Looks at the link, or changes it.
    pub(crate) fn with_link<T>(&self, with: impl FnOnce(&mut Link) -> T) -> T {
        let mut state = self.shared.lock();
        let result = with(&mut state.link);
        self.shared.leave(&state);
        result
    }

    /// Whether the peer is one of the node's strangers.
    pub(crate) fn is_stranger(&self) -> bool {
        self.shared.is_stranger.load(Ordering::Relaxed)
    }

    /// Makes the peer one of the node's strangers, who has an account, or none any more.
    pub(crate) fn set_stranger(&self, account: Option<Account>) {
        let shared = &self.shared;
        let is_stranger = account.is_some();
        *shared
            .account
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = account;
        shared.is_stranger.store(is_stranger, Ordering::Relaxed);
    }

    /// Whether nobody takes frames any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.shared.is_closed.load(Ordering::Relaxed)
    }
}

impl Drop for LinkSender {
    fn drop(&mut self) {
        self.shared.has_ended.store(true, Ordering::Release);
        self.shared.ready.notify_one();
    }
}

/// The end of the link's task.
#[derive(Debug)]
pub(crate) struct LinkReceiver {
    shared: Arc<Shared>,
    /// Room for what is taken alone; empty between calls.
    taken: Vec<Bytes>,
}

impl LinkReceiver {
    /// The next frame; `None` once the face has ended and all frames are out.
    pub(crate) async fn recv(&mut self) -> Option<Bytes> {
        let mut taken = core::mem::take(&mut self.taken);
        self.recv_many(&mut taken, 1).await;
        let frame = taken.pop();
        self.taken = taken;
        frame
    }

    /// Waits for frames and appends at most `limit` to `batch`. False once the face has ended and all frames are out.
    pub(crate) async fn recv_many(&mut self, batch: &mut Vec<Bytes>, limit: usize) -> bool {
        self.wait_until(|receiver| {
            let (count, due) = receiver.take(batch, limit);
            (count > 0, due)
        })
        .await
    }

    /// Waits for frames, and sends those that the socket has room for. False once the face has ended and all frames are out.
    pub(crate) async fn send_over(&mut self, socket: &UdpLink, path: UdpPath) -> io::Result<bool> {
        let may_send =
            |receiver: &mut Self| receiver.look(Some(socket), |_, link| !link.is_empty());
        if !self.wait_until(may_send).await {
            return Ok(false);
        }
        socket.writable().await?;
        let shared = Arc::clone(&self.shared);
        self.look(Some(socket), |now, link| {
            shared.send_waiting(now, link, (socket, path), ONE_BY_ONE)
        });
        Ok(true)
    }

    /// Waits until `has_frames`, which also returns when the link is due. False once the face has ended without any.
    async fn wait_until(
        &mut self,
        mut has_frames: impl FnMut(&mut Self) -> (bool, Option<Instant>),
    ) -> bool {
        // A link that always has frames lets other tasks have their turn now and then.
        tokio::task::coop::consume_budget().await;
        loop {
            let has_ended = self.shared.has_ended.load(Ordering::Acquire);
            let (has_frames, due) = has_frames(self);
            if has_frames || has_ended {
                return has_frames;
            }
            tokio::select! {
                () = self.shared.ready.notified() => {}
                () = Clock::new().sleep_until(due) => {}
            }
        }
    }

    /// The next frame if there is one already.
    pub(crate) fn try_recv(&mut self) -> Option<Bytes> {
        let mut taken = core::mem::take(&mut self.taken);
        self.take(&mut taken, 1);
        let frame = taken.pop();
        self.taken = taken;
        frame
    }

    /// Takes frames. Returns how many, and when the link is due next.
    fn take(&self, batch: &mut Vec<Bytes>, limit: usize) -> (usize, Option<Instant>) {
        let before = batch.len();
        self.look(None, |now, link| {
            self.shared.take(now, link, batch, limit);
            batch.len() - before
        })
    }

    /// Does what the link is due for, looks at it, and returns when it is due next.
    fn look<T>(
        &self,
        socket: Option<&UdpLink>,
        look: impl FnOnce(Instant, &mut Link) -> T,
    ) -> (T, Option<Instant>) {
        let now = Clock::new().now();
        let mut state = self.shared.lock();
        if state.link.poll_timeout().is_some_and(|due| due <= now) {
            let limit = socket.and_then(UdpLink::limit);
            state.link.set_system_limit(now, limit);
            state.link.handle_timeout(now);
        }
        let looked = look(now, &mut state.link);
        self.shared.update_longest(&state.link);
        let is_empty = state.link.is_empty();
        self.shared.is_empty.store(is_empty, Ordering::Relaxed);
        state.armed = state.link.poll_timeout();
        (looked, state.armed)
    }
}

impl Drop for LinkReceiver {
    fn drop(&mut self) {
        self.shared.is_closed.store(true, Ordering::Relaxed);
    }
}

/// Numbers that tell accepted connections apart.
pub(crate) fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use namecast_forward::{
        Config, DropReason, FaceConfig, LinkConfig, ReassemblyConfig, SendQueueConfig,
    };

    use super::*;

    fn frame(length: usize) -> Bytes {
        Bytes::from(vec![0; length])
    }

    fn queue(max_frames: usize, counters: &Arc<LinkCounters>) -> (LinkSender, LinkReceiver) {
        let queue = SendQueueConfig {
            max_frames,
            ..SendQueueConfig::default()
        };
        let link = Link::new(
            Arc::new(Config::default()),
            &FaceConfig::default(),
            queue,
            0,
        );
        link_queue(link, Arc::clone(counters))
    }

    fn queue_full(sender: &LinkSender) -> u64 {
        sender.with_link(|link| link.counters().queue_full)
    }

    #[tokio::test]
    async fn frames_come_out_in_order_until_the_face_ends() {
        let counters = Arc::new(LinkCounters::default());
        let (sender, mut receiver) = queue(3, &counters);
        sender.send(Clock::new(), (1..=4).map(frame).collect());
        assert_eq!(queue_full(&sender), 1);
        assert_eq!(receiver.try_recv(), Some(frame(1)));
        sender.send_frame(Clock::new(), frame(5));
        drop(sender);
        let mut batch = Vec::new();
        assert!(receiver.recv_many(&mut batch, 2).await);
        assert_eq!(batch, [frame(2), frame(3)]);
        assert_eq!(receiver.recv().await, Some(frame(5)));
        assert_eq!(receiver.recv().await, None);
        assert!(!receiver.recv_many(&mut batch, 2).await);
    }

    #[tokio::test]
    async fn who_waits_hears_of_frames_and_of_the_end() {
        let counters = Arc::new(LinkCounters::default());
        let (sender, mut receiver) = queue(3, &counters);
        let waiting = tokio::spawn(async move {
            let first = receiver.recv().await;
            (first, receiver.recv().await)
        });
        tokio::task::yield_now().await;
        sender.send(Clock::new(), vec![frame(7)]);
        tokio::task::yield_now().await;
        drop(sender);
        assert_eq!(waiting.await.unwrap(), (Some(frame(7)), None));
    }

    #[test]
    fn frames_for_a_link_that_is_gone_are_counted_as_such() {
        let counters = Arc::new(LinkCounters::default());
        let (sender, receiver) = queue(2, &counters);
        drop(receiver);
        sender.send(Clock::new(), vec![frame(1)]);
        assert!(sender.is_closed());
        assert_eq!(counters.drops(LinkDrop::LinkDown), 1);
        assert_eq!(queue_full(&sender), 0);
    }

    /// A packet of which a fragment is missing is given up though nothing comes, and nobody sends.
    #[tokio::test]
    async fn the_task_behind_a_link_serves_its_timers() {
        let config = Config {
            link: LinkConfig {
                reassembly: ReassemblyConfig {
                    timeout: core::time::Duration::from_millis(1),
                    ..ReassemblyConfig::default()
                },
                ..LinkConfig::default()
            },
            ..Config::default()
        };
        let (face, queue) = (FaceConfig::default(), SendQueueConfig::default());
        let link = Link::new(Arc::new(config), &face, queue, 0);
        let (sender, mut receiver) = link_queue(link, Arc::new(LinkCounters::default()));
        let waiting = tokio::spawn(async move { receiver.recv().await });
        tokio::task::yield_now().await;
        let piece = LpPacket {
            sequence: Some(1),
            fragment_count: Some(2),
            ..LpPacket::carrying(frame(9))
        };
        assert!(sender.open(Clock::new().now(), piece.encode()).is_none());
        let given_up = || {
            let drops = sender.with_link(|link| link.counters().drops);
            drops.get(DropReason::ReassemblyTimeout)
        };
        while given_up() == 0 {
            tokio::task::yield_now().await;
        }
        drop(sender);
        assert_eq!(waiting.await.unwrap(), None);
    }
}
