//! The one task that changes what a node has: faces, listeners, routes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use namecast_forward::{ExtensionFields, FaceId, Link, Scope, SendQueueConfig};
use namecast_packet::Name;
use namecast_units::{Duration, Instant};
use tokio::sync::mpsc;

use super::command::NextHops;
use super::datagrams::serve_peer;
use super::events::{FaceEventKind, FaceEvents};
use super::face_table::{FaceEntry, FaceTable};
use super::room::{FaceRefusal, FaceSources};
use super::{Command, LinkEnd, ListenerEntry, NewFace, NodeError, Plane, Spawner};
use crate::link::{KeepAlive, LinkCounters, LinkDrop, ListenerId, UdpLink, UdpPath, link_queue};
use crate::{Clock, FaceUri};

/// How often faces are looked through for those that have ended.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// What a node has, but for its forwarder, through which frames pass without this task.
pub(super) struct EventLoop {
    pub(super) spawner: Spawner,
    pub(super) clock: Clock,
    pub(super) started: Instant,
    pub(super) plane: Arc<Plane>,
    pub(super) faces: FaceTable,
    pub(super) sources: FaceSources,
    pub(super) listeners: BTreeMap<ListenerId, ListenerEntry>,
    /// For status only: the forwarder has its own table.
    pub(super) routes: NextHops,
    /// What links lost that are gone.
    pub(super) past_drops: LinkCounters,
    pub(super) face_events: FaceEvents,
}

impl EventLoop {
    pub(super) fn new(spawner: Spawner) -> Self {
        let plane = Arc::clone(&spawner.plane);
        Self {
            clock: plane.clock,
            started: plane.clock.now(),
            plane,
            spawner,
            faces: FaceTable::default(),
            sources: FaceSources::default(),
            listeners: BTreeMap::new(),
            routes: BTreeMap::new(),
            past_drops: LinkCounters::default(),
            face_events: FaceEvents::new(),
        }
    }

    /// Runs until the node is told to stop; then no frames are taken any more, and links send what they have queued.
    pub(super) async fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        let stopping = self.spawner.stopping.clone();
        let plane = Arc::clone(&self.plane);
        let keep_time = plane.keep_time();
        tokio::pin!(keep_time);
        let mut sweep = tokio::time::interval(SWEEP_INTERVAL);
        sweep.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = stopping.cancelled() => break,
                Some(command) = commands.recv() => self.handle_command(command),
                _ = sweep.tick() => self.sweep(),
                () = keep_time.as_mut() => {}
            }
        }
        self.plane.stop();
    }

    /// Adds a face to the forwarder, and gives what the task behind its link needs.
    pub(super) fn add_face(&mut self, new: NewFace) -> Result<LinkEnd, NodeError> {
        self.add_face_from(new, None)
    }

    fn add_face_from(
        &mut self,
        mut new: NewFace,
        origin: Option<(ListenerId, UdpPath)>,
    ) -> Result<LinkEnd, NodeError> {
        let extension_fields = &mut new.config.extension_fields;
        if *extension_fields == ExtensionFields::Auto {
            *extension_fields = self.spawner.config.extension_fields;
        }
        let face = self.plane.add_face(&new.config)?;
        tracing::debug!(%face, remote = %new.remote, "face up");
        let config = &self.spawner.config;
        let counters = Arc::new(LinkCounters::default());
        let bounds = SendQueueConfig {
            max_frames: config.link_queue_frames.max(1),
            max_size: config.link_queue_size,
            marking: config.congestion_marking,
        };
        let seed = u64::from_le_bytes(crate::key_store::random());
        let mut link = Link::new(Arc::clone(&self.plane.bounds), &new.config, bounds, seed);
        new.options.apply_to_marks(link.marker_mut());
        let meter = link.meter();
        (self.plane).change(|forwarder| forwarder.set_meter(face, Arc::clone(&meter)));
        let (sender, queue) = link_queue(link, Arc::clone(&counters));
        let sender = Arc::new(sender);
        let link = LinkEnd {
            face,
            queue,
            plane: Arc::clone(&self.plane),
            sender: Arc::downgrade(&sender),
            counters: Arc::clone(&counters),
        };
        self.plane.add_exit(face, &sender);
        if let Some(listener) = new.listener.and_then(|id| self.listeners.get_mut(&id)) {
            listener.accepted += 1;
        }
        let now = self.clock.now();
        let keep_alive = new.options.keep_alive.or(config.udp.keep_alive);
        let keep_alive = keep_alive.filter(|interval| new.is_udp_peer() && !interval.is_zero());
        let source = new.source();
        let mut entry = FaceEntry::new(new, sender, counters, now);
        entry.keep_alive = keep_alive.map(|interval| KeepAlive::new(now, interval));
        entry.origin = origin;
        if let Some(source) = source {
            self.sources.add(now, face, &entry, source);
        }
        self.faces.insert(face, entry);
        self.tell(face, FaceEventKind::Created);
        Ok(link)
    }

    /// Face of a datagram's sender, which is made if there is none and room for it; else the reason why it gets none.
    pub(super) fn datagram_face(
        &mut self,
        listener: ListenerId,
        path: UdpPath,
        is_proven: bool,
    ) -> Result<FaceId, FaceRefusal> {
        if let Some(face) = self.faces.datagram_face(listener, path) {
            return Ok(face);
        }
        let (face, mut others) = self.new_datagram_face(listener, path, is_proven)?;
        // Each may make a face, whose socket may receive others' frames in turn.
        while let Some((from, frame)) = others.pop() {
            let known = self.faces.datagram_face(listener, from);
            let made = known.map_or_else(
                || self.new_datagram_face(listener, from, false),
                |face| Ok((face, Vec::new())),
            );
            match made {
                Ok((to, more)) => {
                    others.extend(more);
                    // If the node has stopped meanwhile, nobody misses the frame.
                    let _ = self.plane.deliver(to, [frame]);
                }
                Err(refusal) => self.count_drop(listener, refusal.reason),
            }
        }
        Ok(face)
    }

    fn count_drop(&self, listener: ListenerId, reason: LinkDrop) {
        if let Some(entry) = self.listeners.get(&listener) {
            entry.counters.dropped(reason, 1);
        }
    }

    /// Makes a face, and gives what its socket received that others sent.
    fn new_datagram_face(
        &mut self,
        listener: ListenerId,
        path: UdpPath,
        is_proven: bool,
    ) -> Result<(FaceId, Vec<(UdpPath, Bytes)>), FaceRefusal> {
        let remote = path.remote;
        if self.spawner.config.deny.contains(remote.ip()) {
            return Err(LinkDrop::Denied.into());
        }
        // Nobody else can send from an address of this machine.
        let is_proven = is_proven || remote.ip().to_canonical().is_loopback();
        self.make_room(remote, is_proven)?;
        let listening = self.listeners.get(&listener).and_then(|entry| {
            let (socket, state) = (entry.socket.as_ref()?, entry.state.as_ref()?);
            Some((entry, Arc::clone(socket), Arc::clone(state)))
        });
        let (entry, shared, state) = listening.ok_or(LinkDrop::LinkDown)?;
        let config = &self.spawner.config;
        let uri = FaceUri::Udp(remote);
        let (scope, mtu) = match uri.is_loopback() {
            true if config.udp.loopback_is_local => (Scope::Local, config.udp.loopback_mtu),
            true => (Scope::NonLocal, config.udp.loopback_mtu),
            false => (Scope::NonLocal, config.udp.mtu),
        };
        let new = NewFace::on_demand(uri, scope, Some(mtu))
            .at(entry.uri.clone())
            .accepted_by(listener)
            .with_reliability(config.udp.reliability);
        let added = self.add_face_from(new, Some((listener, path)));
        let link = added.map_err(|_| LinkDrop::TooManyFaces)?;
        let face = link.face;
        let lane = self.spawner.lane().clone();
        // A socket belongs to the event loop that it is made in.
        let entered = lane.enter();
        let (own, others) = self.own_socket(&shared, path).unzip();
        drop(entered);
        if let Some(entry) = self.faces.get_mut(face) {
            entry.has_own_socket = own.is_some();
            if !is_proven {
                self.plane.add_stranger(face, &entry.sender, remote);
            }
        }
        let serving = serve_peer(shared, own, path, link, state);
        self.spawner.spawn_on(&lane, serving);
        Ok((face, others.unwrap_or_default()))
    }

    /// Asks strangers to show where they are.
    fn challenge_strangers(&self) {
        for (face, entry) in self.faces.iter() {
            if let Some((_, path)) = entry.origin {
                self.plane.challenge_peer(face, path.remote);
            }
        }
    }

    /// A socket for one peer, if it may have one, and what it received before it was for that peer only.
    fn own_socket(
        &self,
        shared: &UdpLink,
        path: UdpPath,
    ) -> Option<(UdpLink, Vec<(UdpPath, Bytes)>)> {
        // Only Linux prefers the socket that is connected to a datagram's sender.
        let may = cfg!(target_os = "linux")
            && self.faces.own_sockets() < self.spawner.config.udp.peer_sockets;
        // Where there are no more sockets to be had, peers share one.
        may.then(|| shared.beside(path).ok()).flatten()
    }

    /// Records what became of a face.
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
        self.past_drops.add(&entry.losses());
        self.sources.remove(face, &entry);
        self.plane.strangers().remove(face);
        self.routes.retain(|(_, to), _| *to != face);
        self.plane.remove_exit(face);
        let now = self.clock.now();
        self.plane
            .change(|forwarder| forwarder.remove_face(now, face));
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
        let now = self.clock.now();
        self.note_uses(now);
        let ended = self.faces.ended(now, self.spawner.config.udp.idle_timeout);
        let ended = ended.into_iter().chain(self.silent_strangers(now));
        ended.for_each(|face| self.remove_face(face));
        self.challenge_strangers();
        self.keep_alive();
    }

    /// Strangers whose faces end. Those that routes lead to may be silent until somebody asks them.
    fn silent_strangers(&self, now: Instant) -> impl Iterator<Item = FaceId> + use<> {
        let mut silent = self.plane.strangers().silent(now);
        if !silent.is_empty() {
            let serving: BTreeSet<FaceId> = self.routes.keys().map(|(_, face)| *face).collect();
            silent.retain(|face| !serving.contains(face));
        }
        silent.into_iter()
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
        self.plane
            .change(|forwarder| forwarder.add_route(prefix.clone(), face, cost))?;
        self.routes.insert((prefix, face), cost);
        Ok(())
    }
}
