//! What the event loop knows about each face's link.

use std::collections::BTreeMap;
use std::sync::Arc;

use namecast_forward::{FaceId, Scope};
use namecast_units::{Duration, Instant};
use serde::Serialize;
use tokio::sync::watch;

use super::NewFace;
use crate::FaceUri;
use crate::link::{KeepAlive, LinkCounters, LinkDrop, LinkSender, ListenerId, UdpPath};
use crate::web::Visitor;

/// What ends a face.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Persistency {
    /// The end of its connection, or long silence.
    OnDemand,
    /// Only being removed: a lost connection is made anew.
    Persistent,
    /// The same. NFD makes a difference: there, trouble with its socket ends a persistent face.
    Permanent,
}

impl Persistency {
    /// NFD's number.
    pub const fn number(self) -> u64 {
        match self {
            Self::Persistent => 0,
            Self::OnDemand => 1,
            Self::Permanent => 2,
        }
    }

    /// What NFD's number stands for, if it is one.
    pub const fn from_number(number: u64) -> Option<Self> {
        match number {
            0 => Some(Self::Persistent),
            1 => Some(Self::OnDemand),
            2 => Some(Self::Permanent),
            _ => None,
        }
    }
}

/// Whether a face's peer can be reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkState {
    /// The first attempt to connect is under way.
    Connecting,
    /// Frames reach the peer, as far as this node can tell.
    Up,
    /// They do not; the reason is for people.
    Down(String),
}

/// One face's link.
#[derive(Debug)]
pub(crate) struct FaceEntry {
    pub(crate) remote: FaceUri,
    pub(crate) local: Option<FaceUri>,
    pub(crate) persistency: Persistency,
    /// Whom the peer came to, if it came.
    pub(crate) listener: Option<ListenerId>,
    /// Who came by the web, if it is a face of the web.
    pub(crate) visitor: Option<Visitor>,
    /// Whether the peer is on this host.
    pub(crate) scope: Scope,
    /// Longest frame that the link takes, in octets; none: any.
    pub(crate) link_mtu: Option<usize>,
    pub(crate) state: watch::Sender<LinkState>,
    pub(crate) sender: Arc<LinkSender>,
    pub(crate) counters: Arc<LinkCounters>,
    /// Datagram socket and peer, if a datagram made this face.
    pub(crate) origin: Option<(ListenerId, UdpPath)>,
    /// Whether it has a datagram socket of its own.
    pub(crate) has_own_socket: bool,
    /// None: nothing is sent to keep it alive.
    pub(crate) keep_alive: Option<KeepAlive>,
    /// When it was last noticed that the peer had sent.
    pub(crate) last_heard: Instant,
    /// Frames that it had sent by then.
    frames_heard: u64,
    /// Data that it had been sent when that was last looked at.
    pub(crate) data_sent: u64,
}

impl FaceEntry {
    /// A link that was made at `now`.
    pub(crate) fn new(
        new: NewFace,
        sender: Arc<LinkSender>,
        counters: Arc<LinkCounters>,
        now: Instant,
    ) -> Self {
        Self {
            remote: new.remote,
            local: new.local,
            persistency: new.persistency,
            listener: new.listener,
            visitor: new.visitor,
            scope: new.config.scope,
            link_mtu: new.config.mtu,
            state: new.state.unwrap_or_else(|| watch::channel(LinkState::Up).0),
            sender,
            counters,
            origin: None,
            has_own_socket: false,
            keep_alive: None,
            last_heard: now,
            frames_heard: 0,
            data_sent: 0,
        }
    }
}

impl FaceEntry {
    /// What the link lost, and why.
    pub(crate) fn losses(&self) -> LinkCounters {
        let losses = LinkCounters::default();
        losses.add(&self.counters);
        let queue_full = self.sender.with_link(|link| link.counters().queue_full);
        losses.dropped(LinkDrop::QueueFull, queue_full);
        losses
    }

    /// Records how many `frames` the peer has sent by `now`, and returns whether it sent any since the last time.
    pub(crate) const fn note_frames(&mut self, now: Instant, frames: u64) -> bool {
        let is_heard = self.frames_heard != frames;
        if is_heard {
            (self.frames_heard, self.last_heard) = (frames, now);
        }
        is_heard
    }

    /// Whether a peer that is silent for long ends the face.
    pub(crate) fn ends_by_silence(&self) -> bool {
        self.origin.is_some() && self.persistency == Persistency::OnDemand
    }
}

/// All faces' links, and which of them belong to which datagram peer.
#[derive(Debug, Default)]
pub(crate) struct FaceTable {
    faces: BTreeMap<FaceId, FaceEntry>,
    datagram_peers: BTreeMap<(ListenerId, UdpPath), FaceId>,
}

impl FaceTable {
    pub(crate) fn insert(&mut self, id: FaceId, entry: FaceEntry) {
        if let Some(origin) = entry.origin {
            self.datagram_peers.insert(origin, id);
        }
        self.faces.insert(id, entry);
    }

    pub(crate) fn remove(&mut self, id: FaceId) -> Option<FaceEntry> {
        let entry = self.faces.remove(&id)?;
        if let Some(origin) = entry.origin {
            self.datagram_peers.remove(&origin);
        }
        Some(entry)
    }

    pub(crate) fn get_mut(&mut self, id: FaceId) -> Option<&mut FaceEntry> {
        self.faces.get_mut(&id)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (FaceId, &mut FaceEntry)> {
        self.faces.iter_mut().map(|(&id, entry)| (id, entry))
    }

    pub(crate) fn get(&self, id: FaceId) -> Option<&FaceEntry> {
        self.faces.get(&id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (FaceId, &FaceEntry)> {
        self.faces.iter().map(|(&id, entry)| (id, entry))
    }

    /// Face of a datagram peer.
    pub(crate) fn datagram_face(&self, listener: ListenerId, path: UdpPath) -> Option<FaceId> {
        self.datagram_peers.get(&(listener, path)).copied()
    }

    /// Datagram faces with sockets of their own.
    pub(crate) fn own_sockets(&self) -> usize {
        (self.faces.values())
            .filter(|entry| entry.has_own_socket)
            .count()
    }

    /// Number of faces that datagrams made.
    pub(crate) fn datagram_faces(&self) -> usize {
        self.datagram_peers.len()
    }

    /// Faces that a datagram to `listener` made.
    pub(crate) fn of_listener(&self, listener: ListenerId) -> Vec<FaceId> {
        self.iter()
            .filter(|(_, entry)| entry.origin.is_some_and(|(id, _)| id == listener))
            .map(|(id, _)| id)
            .collect()
    }

    /// Faces that have come to their end by `now`: nobody drives the link, or a datagram peer was silent for too long.
    pub(crate) fn ended(&self, now: Instant, idle_timeout: Duration) -> Vec<FaceId> {
        self.iter()
            .filter(|(_, entry)| {
                let idle = entry.ends_by_silence() && now.since(entry.last_heard) >= idle_timeout;
                idle || entry.sender.is_closed()
            })
            .map(|(id, _)| id)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    use crate::link::{LinkReceiver, link_queue};
    use namecast_forward::{FaceConfig, Link, SendQueueConfig};

    const IDLE: Duration = Duration::from_secs(600);

    fn entry(origin: Option<(ListenerId, UdpPath)>) -> (FaceEntry, LinkReceiver) {
        let counters = Arc::new(LinkCounters::default());
        let (config, queue) = (FaceConfig::default(), SendQueueConfig::default());
        let link = Link::new(Arc::default(), &config, queue, 0);
        let (sender, receiver) = link_queue(link, Arc::clone(&counters));
        let new = NewFace::on_demand(FaceUri::Accepted(1), Scope::Local, None);
        let mut entry = FaceEntry::new(new, Arc::new(sender), counters, Instant::ZERO);
        entry.origin = origin;
        (entry, receiver)
    }

    fn id(number: u64) -> FaceId {
        FaceId::from_number(number)
    }

    /// Heard at second 10, a peer is idle at second 610 and not a nanosecond before. Faces that no datagram made do not
    /// become idle.
    #[test]
    fn datagram_faces_end_after_exactly_the_idle_timeout() {
        let remote: SocketAddr = "127.0.0.1:9".parse().unwrap();
        let origin = (ListenerId(1), remote.into());
        let mut table = FaceTable::default();
        let (datagram, _queue) = entry(Some(origin));
        let (connection, _other) = entry(None);
        table.insert(id(1), datagram);
        table.insert(id(2), connection);
        let heard = Instant::ZERO + Duration::from_secs(10);
        let peer = table.get_mut(id(1)).unwrap();
        assert!(peer.note_frames(heard, 1));
        assert!(!peer.note_frames(heard + IDLE / 2, 1));
        let expiry = heard + IDLE;
        let just_before = expiry.saturating_sub(Duration::from_nanos(1));
        assert_eq!(table.ended(just_before, IDLE), []);
        assert_eq!(table.ended(expiry, IDLE), [id(1)]);
    }

    #[test]
    fn a_datagram_face_that_was_made_persistent_outlives_silence() {
        let remote: SocketAddr = "127.0.0.1:9".parse().unwrap();
        let origin = (ListenerId(1), remote.into());
        let mut table = FaceTable::default();
        let (datagram, _queue) = entry(Some(origin));
        table.insert(id(1), datagram);
        table.get_mut(id(1)).unwrap().persistency = Persistency::Persistent;
        assert_eq!(table.ended(Instant::ZERO + IDLE * 2, IDLE), []);
        table.get_mut(id(1)).unwrap().persistency = Persistency::OnDemand;
        assert_eq!(table.ended(Instant::ZERO + IDLE * 2, IDLE), [id(1)]);
    }

    #[test]
    fn a_face_whose_link_is_gone_has_ended() {
        let mut table = FaceTable::default();
        let (connection, queue) = entry(None);
        table.insert(id(1), connection);
        assert_eq!(table.ended(Instant::ZERO, IDLE), []);
        drop(queue);
        assert_eq!(table.ended(Instant::ZERO, IDLE), [id(1)]);
    }

    #[test]
    fn a_removed_datagram_face_is_forgotten_by_its_address_too() {
        let remote: SocketAddr = "127.0.0.1:9".parse().unwrap();
        let origin = (ListenerId(1), remote.into());
        let mut table = FaceTable::default();
        table.insert(id(1), entry(Some(origin)).0);
        assert_eq!(table.datagram_faces(), 1);
        assert_eq!(table.of_listener(ListenerId(1)), [id(1)]);
        assert_eq!(table.of_listener(ListenerId(2)), []);
        assert!(table.remove(id(1)).is_some());
        assert_eq!(table.datagram_face(origin.0, origin.1), None);
        assert_eq!(table.datagram_faces(), 0);
    }
}
