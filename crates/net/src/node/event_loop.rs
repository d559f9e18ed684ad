//! The one task that owns the forwarder.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use namecast_forward::{FaceId, Forwarder, Scope, Transmit};
use namecast_packet::Name;
use namecast_units::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::time::Sleep;

use super::command::NextHops;
use super::events::{FaceEventKind, FaceEvents};
use super::face_table::{FaceEntry, FaceTable};
use super::{Command, ListenerEntry, NewFace, NodeError, Spawner};
use crate::link::{
    CongestionMarker, Inbound, LinkCounters, LinkDrop, LinkEnd, ListenerId, link_queue, marked,
    spawn_on_demand_sender,
};
use crate::{Clock, FaceUri};

/// Batches of frames that are handled before anything else gets its turn.
const BATCHES_PER_TURN: usize = 16;
/// How often faces are looked through for those that have ended.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// The forwarder with its links.
pub(super) struct EventLoop {
    pub(super) spawner: Spawner,
    pub(super) clock: Clock,
    pub(super) started: Instant,
    pub(super) forwarder: Forwarder,
    pub(super) faces: FaceTable,
    pub(super) listeners: BTreeMap<ListenerId, ListenerEntry>,
    /// For status only: the forwarder has its own table.
    pub(super) routes: NextHops,
    /// What links lost that are gone.
    pub(super) past_drops: LinkCounters,
    pub(super) face_events: FaceEvents,
}

impl EventLoop {
    pub(super) fn new(spawner: Spawner, forwarder: Forwarder) -> Self {
        let clock = Clock::new();
        Self {
            spawner,
            clock,
            started: clock.now(),
            forwarder,
            faces: FaceTable::default(),
            listeners: BTreeMap::new(),
            routes: BTreeMap::new(),
            past_drops: LinkCounters::default(),
            face_events: FaceEvents::new(),
        }
    }

    /// Runs until the node is told to stop; then handles what has arrived, and lets the links send what is queued.
    pub(super) async fn run(
        mut self,
        mut inbound: mpsc::Receiver<Inbound>,
        mut commands: mpsc::Receiver<Command>,
    ) {
        let stopping = self.spawner.stopping.clone();
        let mut batches = Vec::with_capacity(BATCHES_PER_TURN);
        let mut sweep = tokio::time::interval(SWEEP_INTERVAL);
        sweep.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let timer = tokio::time::sleep(Duration::ZERO);
        tokio::pin!(timer);
        loop {
            let armed = self.arm(timer.as_mut());
            tokio::select! {
                biased;
                () = stopping.cancelled() => break,
                Some(command) = commands.recv() => self.handle_command(command),
                () = timer.as_mut(), if armed => self.forwarder.handle_timeout(self.clock.now()),
                _ = sweep.tick() => self.sweep(),
                _ = inbound.recv_many(&mut batches, BATCHES_PER_TURN) => {
                    batches.drain(..).for_each(|batch| self.handle_inbound(batch));
                }
            }
            self.transmit();
        }
        inbound.close();
        while let Ok(batch) = inbound.try_recv() {
            self.handle_inbound(batch);
        }
        self.transmit();
    }

    /// Sets the timer to the forwarder's deadline; false if it has none.
    ///
    /// A timer that fires early does no harm, so it is moved only if it would fire late: most deadlines are overtaken
    /// by Data long before they come.
    fn arm(&self, timer: core::pin::Pin<&mut Sleep>) -> bool {
        let Some(deadline) = self.forwarder.poll_timeout() else {
            return false;
        };
        let deadline = self.clock.deadline(deadline);
        if deadline < timer.deadline() || timer.is_elapsed() {
            timer.reset(deadline);
        }
        true
    }

    fn handle_inbound(&mut self, batch: Inbound) {
        let now = self.clock.now();
        let (face, frames) = match batch {
            Inbound::Frames { face, frames } => (Some(face), frames),
            Inbound::Datagrams {
                listener,
                remote,
                frames,
            } => (self.datagram_face(listener, remote, now), frames),
        };
        let Some(face) = face else { return };
        for frame in frames {
            self.forwarder.handle_frame(now, face, frame);
        }
        self.transmit();
    }

    /// Moves everything the forwarder has to send into the links' queues.
    fn transmit(&mut self) {
        while let Some(Transmit { face, frame }) = self.forwarder.poll_output() {
            let Some(entry) = self.faces.get_mut(face) else {
                continue;
            };
            let queued = entry.sender.queued();
            let is_congested = entry.marker.marks(|| self.clock.now(), queued);
            entry.sender.push(match is_congested {
                true => marked(frame),
                false => frame,
            });
        }
    }

    /// Adds a face to the forwarder, and gives what the task behind its link needs.
    pub(super) fn add_face(&mut self, new: NewFace) -> Result<LinkEnd, NodeError> {
        self.add_face_from(new, None)
    }

    fn add_face_from(
        &mut self,
        new: NewFace,
        origin: Option<(ListenerId, SocketAddr)>,
    ) -> Result<LinkEnd, NodeError> {
        let face = self.forwarder.add_face(new.config.clone())?;
        tracing::debug!(%face, remote = %new.remote, "face up");
        let config = &self.spawner.config;
        let counters = Arc::new(LinkCounters::default());
        let (sender, queue) = link_queue(
            config.link_queue_frames,
            config.link_queue_size,
            Arc::clone(&counters),
        );
        let now = self.clock.now();
        let mut marker = CongestionMarker::new(config.congestion_marking);
        new.options.apply_to_marks(&mut marker);
        let mut entry = FaceEntry::new(new, sender, Arc::clone(&counters), now);
        entry.marker = marker;
        entry.origin = origin;
        self.faces.insert(face, entry);
        self.tell(face, FaceEventKind::Created);
        Ok(LinkEnd {
            face,
            queue,
            inbound: self.spawner.inbound.clone(),
            counters,
        })
    }

    /// Face of a datagram's sender, which is made if there is none and room for it.
    fn datagram_face(
        &mut self,
        listener: ListenerId,
        remote: SocketAddr,
        now: Instant,
    ) -> Option<FaceId> {
        if let Some(face) = self.faces.heard(listener, remote, now) {
            return Some(face);
        }
        let entry = self.listeners.get(&listener)?;
        let socket = Arc::clone(entry.socket.as_ref()?);
        let config = &self.spawner.config;
        let uri = FaceUri::Udp(remote);
        let (scope, mtu) = match uri.is_loopback() {
            true if config.udp_loopback_is_local => (Scope::Local, config.udp_loopback_mtu),
            true => (Scope::NonLocal, config.udp_loopback_mtu),
            false => (Scope::NonLocal, config.udp_mtu),
        };
        let new = NewFace::on_demand(uri, scope, Some(mtu))
            .at(entry.uri.clone())
            .with_reliability(config.udp_reliability);
        let counters = Arc::clone(&entry.counters);
        let room = self.faces.datagram_faces() < config.max_on_demand_faces;
        let added = match room {
            true => self.add_face_from(new, Some((listener, remote))).ok(),
            false => None,
        };
        let Some(link) = added else {
            counters.dropped(LinkDrop::TooManyFaces, 1);
            return None;
        };
        let face = link.face;
        spawn_on_demand_sender(&self.spawner, socket, remote, link);
        Some(face)
    }

    /// Takes note of what became of a face.
    pub(super) fn tell(&mut self, face: FaceId, kind: FaceEventKind) {
        if let Some(description) = self.describe(face) {
            self.face_events.add(self.clock.now(), kind, description);
        }
    }

    pub(super) fn remove_face(&mut self, face: FaceId) {
        self.tell(face, FaceEventKind::Destroyed);
        let Some(entry) = self.faces.remove(face) else {
            return;
        };
        tracing::debug!(%face, remote = %entry.remote, "face down");
        self.past_drops.add(&entry.counters);
        self.routes.retain(|(_, to), _| *to != face);
        self.forwarder.remove_face(self.clock.now(), face);
    }

    pub(super) fn remove_listener(&mut self, id: ListenerId) {
        if let Some(entry) = self.listeners.remove(&id) {
            self.past_drops.add(&entry.counters);
        }
        for face in self.faces.of_listener(id) {
            self.remove_face(face);
        }
    }

    fn sweep(&mut self) {
        let ended = self
            .faces
            .ended(self.clock.now(), self.spawner.config.udp_idle_timeout);
        ended.into_iter().for_each(|face| self.remove_face(face));
    }

    pub(super) fn add_route(
        &mut self,
        prefix: Name,
        face: FaceId,
        cost: u64,
    ) -> Result<(), NodeError> {
        if self.faces.get(face).is_none() {
            return Err(NodeError::NoSuchFace(face));
        }
        // The name may be part of a received packet, whose memory the table should not hold on to.
        let prefix = prefix.detached();
        self.forwarder.add_route(prefix.clone(), face, cost)?;
        self.routes.insert((prefix, face), cost);
        Ok(())
    }
}
