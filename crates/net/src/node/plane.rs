//! The way of a frame: from whoever received it through its link and a forwarder to the links it leaves by.
//!
//! ```text
//!   socket ── task that received ──▶ LinkSender::open ── lock ── Forwarder ── unlock ──▶ LinkSender::send ──▶ socket
//! ```
//!
//! Whoever received frames carries them all the way: no packet waits for another task to wake up. A lock is held only
//! while a forwarder works, which is a small part of what the system calls on both sides of it take. Where several threads
//! are to work at once there are several forwarders, each for its share of all names.

mod exits;
mod news;
mod strangers;
mod totals;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use namecast_forward::{
    Destination, Dispatcher, FaceConfig, FaceId, Forwarder, Shard, StrategyKind, Transmit,
};
use namecast_units::Instant;
use tokio::sync::Notify;

use super::NodeError;
use super::tap::Tap;
use crate::hops::Hops;
use crate::link::{Arrival, Challenge, LinkSender, Strangers};
use crate::{Clock, StrangersConfig};
use exits::Exits;
use news::News;

/// A node's forwarders, and where each face's frames leave.
#[derive(Debug)]
pub(crate) struct Plane {
    pub(crate) clock: Clock,
    /// At least one. All have the same faces, routes and strategies.
    workers: Vec<Worker>,
    /// Strategies of the program's own.
    pub(super) own_strategies: Vec<StrategyKind>,
    dispatcher: Dispatcher,
    /// Tells the task that keeps time that a deadline came nearer.
    earlier: Notify,
    /// None once the node has stopped. Looking at it changes no memory that threads share, which each frame would wait for;
    /// a change replaces all.
    exits: ArcSwapOption<Exits>,
    news: News,
    strangers: Arc<Mutex<Strangers>>,
    /// Who traces frames.
    pub(super) tap: Tap,
    /// What links have counted that are gone.
    past_links: Mutex<namecast_forward::LinkCounters>,
    /// The bounds of links.
    pub(crate) bounds: Arc<namecast_forward::Config>,
    /// What strangers have to return.
    pub(crate) challenge: Challenge,
}

/// One forwarder, for one thread at a time, in lines of the processors' caches that it shares with no other.
#[derive(Debug)]
#[repr(align(128))]
struct Worker(Mutex<State>);

#[derive(Debug)]
struct State {
    forwarder: Forwarder,
    /// When the task that keeps time looks after this forwarder by itself, if ever.
    armed: Option<Instant>,
}

impl Plane {
    /// A node with so many forwarders, which share the bounds of `config`, each with hops of its own.
    pub(crate) fn new(
        clock: Clock,
        config: &namecast_forward::Config,
        (forwarders, hops): (usize, &Hops),
        strangers: StrangersConfig,
    ) -> Self {
        let most = usize::from(Shard::MOST);
        let count = u16::try_from(forwarders.clamp(1, most)).unwrap_or(1);
        let mut own_strategies = Vec::new();
        let worker = |index| {
            let shard = Shard { index, count };
            let mut forwarder = Forwarder::new(config.for_shard(shard));
            own_strategies = hops.add_to(&mut forwarder, shard);
            let state = State {
                forwarder,
                armed: None,
            };
            Worker(Mutex::new(state))
        };
        Self {
            clock,
            workers: (0..count).map(worker).collect(),
            own_strategies,
            dispatcher: Dispatcher::new(config.hash_key, count),
            earlier: Notify::new(),
            exits: ArcSwapOption::from_pointee(Exits::default()),
            news: News::default(),
            strangers: Arc::new(Mutex::new(Strangers::new(strangers))),
            tap: Tap::default(),
            past_links: Mutex::default(),
            bounds: Arc::new(config.clone()),
            challenge: Challenge::new(crate::key_store::random()),
        }
    }

    /// Whether the face is there.
    pub(crate) fn has_face(&self, face: FaceId) -> bool {
        let exits = self.exits.load();
        (exits.as_ref()).is_some_and(|exits| exits.get(face).is_some())
    }

    /// Hands the forwarders frames that came in on `face`, and sends what comes of it.
    ///
    /// # Errors
    /// If the face has ended, or the node has stopped.
    pub(crate) fn deliver(
        &self,
        face: FaceId,
        frames: impl IntoIterator<Item = Bytes>,
    ) -> Result<(), NodeError> {
        let exits = self.exits.load();
        let exits = exits.as_ref().ok_or(NodeError::Stopped)?;
        let sender = exits.get(face).ok_or(NodeError::NoSuchFace(face))?;
        let now = self.clock.now();
        let frames = frames.into_iter();
        let frames = frames.inspect(|frame| self.tap.record(now, face, false, frame));
        if sender.is_stranger() {
            let frames: Vec<Bytes> = frames.collect();
            self.hear_stranger(now, face, &frames);
            self.process(
                now,
                face,
                frames.into_iter().filter_map(|it| sender.open(now, it)),
            );
        } else {
            self.process(now, face, frames.filter_map(|it| sender.open(now, it)));
        }
        Ok(())
    }

    /// Takes what came through the link of a face through the forwarders.
    fn process(&self, now: Instant, face: FaceId, arrivals: impl Iterator<Item = Arrival>) {
        if self.workers.len() == 1 {
            let handle = |forwarder: &mut Forwarder| receive(forwarder, now, face, arrivals);
            self.send(self.work(0, handle).1);
            return;
        }
        let mut shares = vec![Vec::new(); self.workers.len()];
        for arrival in arrivals {
            let (destination, wire) = match &arrival {
                Arrival::Frame(frame) => (self.dispatcher.destination(frame), Some(frame)),
                Arrival::Packet(packet) => (
                    self.dispatcher.destination_of(packet),
                    packet.fragment.as_ref(),
                ),
            };
            match (destination, wire) {
                (Destination::Waiting(otherwise), Some(wire)) => {
                    for index in self.waiting_for(wire, otherwise) {
                        shares[index].push(arrival.clone());
                    }
                }
                (Destination::One(index) | Destination::Waiting(index), _) => {
                    shares[index].push(arrival);
                }
            }
        }
        // What leaves by one face leaves together, whichever forwarder it comes from.
        self.send(self.handle_shares(now, face, shares));
    }

    /// What forwarders have to send after each got its share of frames. Those that no other thread works with come first, so
    /// that threads with shares for the same ones seldom wait for each other.
    fn handle_shares(
        &self,
        now: Instant,
        face: FaceId,
        shares: Vec<Vec<Arrival>>,
    ) -> Vec<Transmit> {
        let mut outputs = Vec::new();
        let mut handle = |state, share: Vec<Arrival>| {
            let handle = |forwarder: &mut Forwarder| receive(forwarder, now, face, share);
            outputs.extend(self.work_with(state, handle).1);
        };
        let mut busy = Vec::new();
        let shares = shares.into_iter().enumerate();
        for (index, share) in shares.filter(|(_, share)| !share.is_empty()) {
            match self.workers[index].lock_if_free() {
                Some(state) => handle(state, share),
                None => busy.push((index, share)),
            }
        }
        for (index, share) in busy {
            handle(self.workers[index].lock(), share);
        }
        outputs
    }

    /// The forwarders that wait for the Data in a frame; if none does, this one.
    fn waiting_for(&self, frame: &Bytes, otherwise: usize) -> Vec<usize> {
        let awaits = |&index: &usize| self.workers[index].lock().forwarder.awaits(frame);
        let waiting: Vec<_> = (0..self.workers.len()).filter(awaits).collect();
        match waiting.is_empty() {
            true => vec![otherwise],
            false => waiting,
        }
    }

    /// Adds a face to all forwarders.
    ///
    /// # Errors
    /// If there are too many, or it cannot be so.
    pub(crate) fn add_face(
        &self,
        config: &FaceConfig,
    ) -> Result<FaceId, namecast_forward::AddFaceError> {
        // All give the same numbers, as they are asked for the same faces in the same order.
        self.change(|forwarder| forwarder.add_face(config.clone()))
    }

    /// Changes what a face is, in all forwarders and its link.
    ///
    /// # Errors
    /// If it cannot be so.
    pub(crate) fn reconfigure_face(
        &self,
        face: FaceId,
        config: &FaceConfig,
    ) -> Result<(), namecast_forward::AddFaceError> {
        self.change(|forwarder| forwarder.reconfigure_face(face, config.clone()))?;
        self.with_sender(face, |sender| {
            sender.with_link(|link| link.reconfigure(config))
        });
        Ok(())
    }

    /// Does the same with each forwarder, sends what comes of it, and tells what came of it in the first.
    pub(crate) fn change<T>(&self, mut change: impl FnMut(&mut Forwarder) -> T) -> T {
        let (first, outputs) = self.work(0, &mut change);
        self.send(outputs);
        for index in 1..self.workers.len() {
            let (_, outputs) = self.work(index, &mut change);
            self.send(outputs);
        }
        first
    }

    /// Works with one forwarder, and tells what there is to send.
    fn work<T>(&self, index: usize, work: impl FnOnce(&mut Forwarder) -> T) -> (T, Vec<Transmit>) {
        self.work_with(self.workers[index].lock(), work)
    }

    /// The same with that forwarder's lock taken.
    fn work_with<T>(
        &self,
        mut state: MutexGuard<'_, State>,
        work: impl FnOnce(&mut Forwarder) -> T,
    ) -> (T, Vec<Transmit>) {
        let result = work(&mut state.forwarder);
        let outputs = core::iter::from_fn(|| state.forwarder.poll_output()).collect();
        if let Some(deadline) = state.forwarder.poll_timeout()
            && state.armed.is_none_or(|armed| deadline < armed)
        {
            state.armed = Some(deadline);
            self.earlier.notify_one();
        }
        self.news.add(state.forwarder.take_news());
        drop(state);
        if self.workers.len() > 1 {
            self.share_news();
        }
        (result, outputs)
    }

    /// Looks at the first forwarder, for what is the same in all.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Forwarder) -> T) -> T {
        look(&self.workers[0].lock().forwarder)
    }

    /// Sends a face's packets through `sender` from now on.
    pub(crate) fn add_exit(&self, face: FaceId, sender: &Arc<LinkSender>) {
        self.change_exits(|exits| {
            exits.insert(face, Arc::clone(sender));
        });
    }

    /// A face's link has nothing more to send than what it has queued.
    pub(crate) fn remove_exit(&self, face: FaceId) {
        self.with_sender(face, |sender| {
            let past = self.past_links.lock();
            *past.unwrap_or_else(PoisonError::into_inner) += link_counters(sender);
        });
        self.change_exits(|exits| {
            exits.remove(face);
        });
    }

    /// A router reported that a datagram was too large for the path of a face, after which the system's limit is `limit`.
    pub(crate) fn on_path_report(&self, face: FaceId, limit: Option<usize>) {
        let now = self.clock.now();
        self.with_sender(face, |sender| sender.on_path_report(now, limit));
    }

    /// Looks at where a face's packets leave, if there is such a face.
    fn with_sender<T>(&self, face: FaceId, look: impl FnOnce(&LinkSender) -> T) -> Option<T> {
        let exits = self.exits.load();
        let exits = exits.as_ref()?;
        exits.get(face).map(|sender| look(sender))
    }

    /// Takes no more frames, and lets links send what they have queued.
    pub(crate) fn stop(&self) {
        self.exits.store(None);
    }

    /// Calls forwarders whenever one of their deadlines comes; ends only by being cancelled.
    ///
    /// Waking up early does no harm, so the timer is moved only if it would fire late: most deadlines are overtaken by Data
    /// long before they come.
    pub(crate) async fn keep_time(&self) {
        loop {
            let deadlines = self.workers.iter().map(|worker| {
                let mut state = worker.lock();
                state.armed = state.forwarder.poll_timeout();
                state.armed
            });
            let deadline = deadlines.flatten().min();
            tokio::select! {
                () = self.clock.sleep_until(deadline) => {
                    self.change(|forwarder| forwarder.handle_timeout(self.clock.now()));
                }
                () = self.earlier.notified() => {}
            }
        }
    }

    /// Sends frames, each face's together and in their order.
    fn send(&self, mut outputs: Vec<Transmit>) {
        if outputs.is_empty() {
            return;
        }
        if self.tap.is_open() {
            let now = self.clock.now();
            let record = |output: &Transmit| self.tap.record(now, output.face, true, &output.frame);
            outputs.iter().for_each(record);
        }
        outputs.sort_by_key(|output| output.face);
        let exits = self.exits.load();
        let Some(exits) = &*exits else { return };
        let mut outputs = outputs.into_iter().peekable();
        while let Some(Transmit { face, frame }) = outputs.next() {
            let others = core::iter::from_fn(|| outputs.next_if(|output| output.face == face));
            let frames: Vec<Bytes> = core::iter::once(frame)
                .chain(others.map(|output| output.frame))
                .collect();
            if let Some(sender) = exits.get(face) {
                sender.send(self.clock, frames);
            }
        }
    }

    fn change_exits(&self, change: impl Fn(&mut Exits)) {
        self.exits.rcu(|exits| {
            let mut exits = exits.as_deref()?.clone();
            change(&mut exits);
            Some(Arc::new(exits))
        });
    }
}

impl Worker {
    /// A panic of another task, which is a defect, leaves counters at worst: the forwarder goes on.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lock, unless another thread has it.
    fn lock_if_free(&self) -> Option<MutexGuard<'_, State>> {
        match self.0.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(state)) => Some(state.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// What a link has counted, but for what found no room: that is among what the link lost.
fn link_counters(sender: &LinkSender) -> namecast_forward::LinkCounters {
    let counters = sender.with_link(|link| link.counters());
    namecast_forward::LinkCounters {
        queue_full: 0,
        ..counters
    }
}

/// Hands a forwarder what came in on a face.
fn receive(
    forwarder: &mut Forwarder,
    now: Instant,
    face: FaceId,
    arrivals: impl IntoIterator<Item = Arrival>,
) {
    for arrival in arrivals {
        match arrival {
            Arrival::Frame(frame) => forwarder.handle_frame(now, face, frame),
            Arrival::Packet(packet) => forwarder.handle_packet(now, face, *packet),
        }
    }
}
