//! The way of a frame: from whoever received it through a forwarder to the links it leaves by.
//!
//! ```text
//!   socket ── task that received ──▶ Plane::deliver ── lock ── Forwarder ── unlock ──▶ LinkSender ──▶ socket
//! ```
//!
//! Whoever received frames carries them all the way: no packet waits for another task to wake up. A lock is held only
//! while a forwarder works, which is a small part of what the system calls on both sides of it take. Where several threads
//! are to work at once there are several forwarders, each for its share of all names.

mod news;
mod strangers;
mod totals;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use namecast_forward::{Destination, Dispatcher, FaceConfig, FaceId, Forwarder, Shard, Transmit};
use namecast_units::Instant;
use tokio::sync::Notify;

use super::NodeError;
use crate::Clock;
use crate::link::{Challenge, LinkSender, Strangers, StrangersConfig};
use news::News;

/// A node's forwarders, and where each face's frames leave.
#[derive(Debug)]
pub(crate) struct Plane {
    pub(crate) clock: Clock,
    /// At least one. All have the same faces, routes and strategies.
    workers: Vec<Worker>,
    dispatcher: Dispatcher,
    /// Tells the task that keeps time that a deadline came nearer.
    earlier: Notify,
    /// None once the node has stopped. Looking at it changes no memory that threads share, which each frame would wait for;
    /// a change replaces all.
    exits: ArcSwapOption<Exits>,
    news: News,
    strangers: Mutex<Strangers>,
    /// What strangers have to return.
    pub(crate) challenge: Challenge,
}

/// Where each face's frames leave.
type Exits = BTreeMap<FaceId, Exit>;

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

/// Where the frames of a face leave.
#[derive(Clone, Debug)]
struct Exit {
    sender: Arc<LinkSender>,
    /// Whether all frames go through the link service of one forwarder.
    is_reliable: bool,
}

impl Plane {
    /// A node with as many forwarders as `config` says, which share its bounds.
    pub(crate) fn new(
        clock: Clock,
        config: &namecast_forward::Config,
        forwarders: usize,
        strangers: StrangersConfig,
    ) -> Self {
        let most = usize::from(Shard::MOST);
        let count = u16::try_from(forwarders.clamp(1, most)).unwrap_or(1);
        let worker = |index| {
            let shard = Shard { index, count };
            let state = State {
                forwarder: Forwarder::new(config.for_shard(shard)),
                armed: None,
            };
            Worker(Mutex::new(state))
        };
        Self {
            clock,
            workers: (0..count).map(worker).collect(),
            dispatcher: Dispatcher::new(config.hash_key, count),
            earlier: Notify::new(),
            exits: ArcSwapOption::from_pointee(Exits::new()),
            news: News::default(),
            strangers: Mutex::new(Strangers::new(strangers)),
            challenge: Challenge::new(crate::key_store::random()),
        }
    }

    /// Whether the face is there.
    pub(crate) fn has_face(&self, face: FaceId) -> bool {
        let exits = self.exits.load();
        (exits.as_ref()).is_some_and(|exits| exits.contains_key(&face))
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
        let is_stranger = match &*self.exits.load() {
            None => return Err(NodeError::Stopped),
            Some(exits) => {
                let exit = exits.get(&face).ok_or(NodeError::NoSuchFace(face))?;
                exit.sender.is_stranger()
            }
        };
        let now = self.clock.now();
        if is_stranger {
            let frames: Vec<Bytes> = frames.into_iter().collect();
            self.hear_stranger(now, face, &frames);
            self.process(now, face, frames);
        } else {
            self.process(now, face, frames);
        }
        Ok(())
    }

    /// Takes frames through the forwarders.
    fn process(&self, now: Instant, face: FaceId, frames: impl IntoIterator<Item = Bytes>) {
        if self.workers.len() == 1 {
            let handle = |forwarder: &mut Forwarder| receive(forwarder, now, face, frames);
            self.send(self.work(0, handle).1);
            return;
        }
        let mut shares = vec![Vec::new(); self.workers.len()];
        for frame in frames {
            match self.dispatcher.destination(&frame) {
                Destination::One(index) => shares[index].push(frame),
                Destination::Waiting(otherwise) => {
                    for index in self.waiting_for(&frame, otherwise) {
                        shares[index].push(frame.clone());
                    }
                }
                Destination::LinkService => self.deliver_through_link(now, face, frame),
            }
        }
        // What leaves by one face leaves together, whichever forwarder it comes from.
        self.send(self.handle_shares(now, face, shares));
    }

    /// What forwarders have to send after each got its share of frames. Those that no other thread works with come first, so
    /// that threads with shares for the same ones seldom wait for each other.
    fn handle_shares(&self, now: Instant, face: FaceId, shares: Vec<Vec<Bytes>>) -> Vec<Transmit> {
        let mut outputs = Vec::new();
        let mut handle = |index, state, share: Vec<Bytes>| {
            let handle = |forwarder: &mut Forwarder| receive(forwarder, now, face, share);
            outputs.extend(self.work_with(index, state, handle).1);
        };
        let mut busy = Vec::new();
        let shares = shares.into_iter().enumerate();
        for (index, share) in shares.filter(|(_, share)| !share.is_empty()) {
            match self.workers[index].lock_if_free() {
                Some(state) => handle(index, state, share),
                None => busy.push((index, share)),
            }
        }
        for (index, share) in busy {
            handle(index, self.workers[index].lock(), share);
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

    /// Hands a frame to the forwarder with the face's link service, and the packet that it completes to those it is for.
    fn deliver_through_link(&self, now: Instant, face: FaceId, frame: Bytes) {
        let home = self.home(face);
        let open = |forwarder: &mut Forwarder| forwarder.open(now, face, frame);
        let (packet, outputs) = self.work(home, open);
        self.send(outputs);
        let Some(packet) = packet else { return };
        let destinations = match (self.dispatcher.destination_of(&packet), &packet.fragment) {
            (Destination::One(index), _) => vec![index],
            (Destination::Waiting(otherwise), Some(wire)) => self.waiting_for(wire, otherwise),
            _ => vec![home],
        };
        for index in destinations {
            let handle = |forwarder: &mut Forwarder| {
                forwarder.handle_packet(now, face, packet.clone());
            };
            let ((), outputs) = self.work(index, handle);
            self.send(outputs);
        }
    }

    /// Which forwarder has the link service of a face, where that has state.
    fn home(&self, face: FaceId) -> usize {
        (face.number() % self.workers.len() as u64) as usize
    }

    /// Adds a face to all forwarders.
    ///
    /// # Errors
    /// If there are too many, or it cannot be so.
    pub(crate) fn add_face(
        &self,
        config: &FaceConfig,
    ) -> Result<FaceId, namecast_forward::AddFaceError> {
        // All give the same numbers, as they are asked for the same faces in the same order; home depends on the number.
        let add = |forwarder: &mut Forwarder| forwarder.add_face(config.clone());
        let face = self.change(add)?;
        if config.reliability {
            self.reconfigure_face(face, config)?;
        }
        Ok(face)
    }

    /// Changes what a face is, in all forwarders.
    ///
    /// # Errors
    /// If it cannot be so.
    pub(crate) fn reconfigure_face(
        &self,
        face: FaceId,
        config: &FaceConfig,
    ) -> Result<(), namecast_forward::AddFaceError> {
        let home = self.home(face);
        let elsewhere = FaceConfig {
            reliability: false,
            mtu: None,
            is_relayed: true,
            ..config.clone()
        };
        for index in 0..self.workers.len() {
            let config = match config.reliability && index != home {
                true => &elsewhere,
                false => config,
            };
            let change =
                |forwarder: &mut Forwarder| forwarder.reconfigure_face(face, config.clone());
            let (changed, outputs) = self.work(index, change);
            self.send(outputs);
            changed?;
        }
        self.change_exits(|exits| {
            if let Some(exit) = exits.get_mut(&face) {
                exit.is_reliable = config.reliability;
            }
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
        self.work_with(index, self.workers[index].lock(), work)
    }

    /// The same with that forwarder's lock taken.
    fn work_with<T>(
        &self,
        index: usize,
        state: MutexGuard<'_, State>,
        work: impl FnOnce(&mut Forwarder) -> T,
    ) -> (T, Vec<Transmit>) {
        let (result, outputs) = self.work_alone(state, work);
        match self.workers.len() {
            1 => (result, outputs),
            _ => {
                self.share_news();
                (result, self.through_link(index, outputs))
            }
        }
    }

    fn work_alone<T>(
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
        (result, outputs)
    }

    /// Looks at the first forwarder, for what is the same in all.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Forwarder) -> T) -> T {
        look(&self.workers[0].lock().forwarder)
    }

    /// Sends a face's frames through `sender` from now on.
    pub(crate) fn add_exit(&self, face: FaceId, sender: Arc<LinkSender>, is_reliable: bool) {
        let exit = Exit {
            sender,
            is_reliable,
        };
        self.change_exits(|exits| {
            exits.insert(face, exit.clone());
        });
    }

    /// A face's link has nothing more to send than what it has queued.
    pub(crate) fn remove_exit(&self, face: FaceId) {
        self.change_exits(|exits| {
            exits.remove(&face);
        });
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
            let due = async {
                match deadline {
                    Some(deadline) => tokio::time::sleep_until(self.clock.deadline(deadline)).await,
                    None => core::future::pending().await,
                }
            };
            tokio::select! {
                () = due => self.change(|forwarder| forwarder.handle_timeout(self.clock.now())),
                () = self.earlier.notified() => {}
            }
        }
    }

    /// Sends frames, each face's together and in their order.
    fn send(&self, mut outputs: Vec<Transmit>) {
        if outputs.is_empty() {
            return;
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
            if let Some(exit) = exits.get(&face) {
                self.send_within_bounds(face, &exit.sender, frames);
            }
        }
    }

    /// Lets whole packets of the forwarder `from` go through the one that has the link service of their face, where that has
    /// state.
    fn through_link(&self, from: usize, outputs: Vec<Transmit>) -> Vec<Transmit> {
        let exits = self.exits.load();
        let Some(exits) = &*exits else { return outputs };
        let is_elsewhere = |output: &Transmit| {
            let exit = exits.get(&output.face);
            exit.is_some_and(|exit| exit.is_reliable) && self.home(output.face) != from
        };
        if !outputs.iter().any(is_elsewhere) {
            return outputs;
        }
        let (elsewhere, mut here): (Vec<_>, Vec<_>) = outputs.into_iter().partition(is_elsewhere);
        let now = self.clock.now();
        for Transmit { face, frame } in elsewhere {
            let home = &self.workers[self.home(face)];
            let ((), frames) =
                self.work_alone(home.lock(), |forwarder| forwarder.relay(now, face, frame));
            here.extend(frames);
        }
        here
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

/// Hands a forwarder frames that came in on a face.
fn receive(
    forwarder: &mut Forwarder,
    now: Instant,
    face: FaceId,
    frames: impl IntoIterator<Item = Bytes>,
) {
    for frame in frames {
        forwarder.handle_frame(now, face, frame);
    }
}
