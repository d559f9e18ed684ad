//! Room for one more face, for which another may have to end.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use namecast_forward::FaceId;
use namecast_units::{Duration, Instant, Pauses};

use super::event_loop::EventLoop;
use super::face_table::FaceEntry;
use super::{NewFace, Persistency};
use crate::admission::{Occupants, Source};
use crate::link::{Admission, LinkDrop, ListenerId};

/// Faces that share places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    /// Those that datagrams made, over all listeners.
    Datagrams,
    /// Those of one listener's connections.
    Connections(ListenerId),
}

/// First and longest pause of a peer whose face gave way before it was of use.
const PAUSES: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(60));
/// Time after which such a peer begins anew.
const FORGOTTEN: Duration = Duration::from_secs(120);
/// Such peers that are remembered: as many as an address has ports.
const MAX_PAUSED: usize = 65_536;

/// Why the sender of a datagram gets no face.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FaceRefusal {
    pub reason: LinkDrop,
    /// Time until it may get one.
    pub wait: Duration,
}

impl FaceRefusal {
    const fn full(wait: Duration) -> Self {
        let reason = LinkDrop::TooManyFaces;
        Self { reason, wait }
    }
}

impl From<LinkDrop> for FaceRefusal {
    fn from(reason: LinkDrop) -> Self {
        let wait = Duration::ZERO;
        Self { reason, wait }
    }
}

/// Faces of others that may end each second for one source's newcomers, so that a flood does not have the node make faces all the
/// time: one takes some 100 µs.
const MAX_EVICTIONS: u32 = 400;
const EVICTION_WINDOW: Duration = Duration::from_secs(1);

/// Faces that ended for newcomers of each source in this window.
#[derive(Debug, Default)]
struct Evictions {
    began_at: Duration,
    counts: BTreeMap<Source, u32>,
}

impl Evictions {
    /// Returns whether one more face may end for `newcomer`.
    fn may(&mut self, now: Duration, newcomer: Source) -> bool {
        if now.saturating_sub(self.began_at) >= EVICTION_WINDOW {
            self.counts.clear();
            self.began_at = now;
        }
        self.counts.get(&newcomer).copied().unwrap_or(0) < MAX_EVICTIONS
    }

    fn record(&mut self, newcomer: Source) {
        *self.counts.entry(newcomer).or_default() += 1;
    }
}

/// Which sources have how many faces, in each group.
#[derive(Debug)]
pub(super) struct FaceSources {
    groups: BTreeMap<Group, Occupants<FaceId>>,
    /// Pauses of proven peers whose faces gave way unused. Without them, useless peers that keep sending would take places from one
    /// another, and from newcomers before they register.
    pauses: Pauses<SocketAddr>,
    evictions: Evictions,
}

impl Default for FaceSources {
    fn default() -> Self {
        Self {
            groups: BTreeMap::new(),
            pauses: Pauses::new(PAUSES.0, PAUSES.1, FORGOTTEN, MAX_PAUSED),
            evictions: Evictions::default(),
        }
    }
}

impl FaceSources {
    fn of(entry: &FaceEntry) -> Option<Group> {
        match (entry.origin, entry.listener) {
            (Some(_), _) => Some(Group::Datagrams),
            (None, listener) => listener.map(Group::Connections),
        }
    }

    /// Adds a face of `source`, of no use yet.
    pub(super) fn add(&mut self, now: Instant, face: FaceId, entry: &FaceEntry, source: Source) {
        if let Some(group) = Self::of(entry) {
            let occupants = self.groups.entry(group).or_default();
            occupants.insert(now, face, source);
        }
    }

    /// Forgets a face: it has ended, or gives way to none any more.
    pub(super) fn remove(&mut self, face: FaceId, entry: &FaceEntry) {
        if let Some(group) = Self::of(entry)
            && let Some(occupants) = self.groups.get_mut(&group)
        {
            occupants.remove(face);
            if occupants.is_empty() {
                self.groups.remove(&group);
            }
        }
    }

    /// Returns whether a face was ever of use.
    fn was_used(&self, face: FaceId, entry: &FaceEntry) -> bool {
        let occupants = Self::of(entry).and_then(|group| self.groups.get(&group));
        occupants.is_some_and(|it| it.used_at(face).is_some())
    }

    /// Number of faces of each source, those with most first.
    pub(super) fn sources(&self) -> Vec<(Source, usize)> {
        let mut counts = BTreeMap::<Source, usize>::new();
        for (source, count) in self.groups.values().flat_map(Occupants::sources) {
            *counts.entry(source).or_default() += count;
        }
        let mut sources: Vec<_> = counts.into_iter().collect();
        sources.sort_by_key(|&(_, count)| core::cmp::Reverse(count));
        sources
    }
}

impl NewFace {
    /// Where the peer comes from, if it came by a network.
    pub(super) fn source(&self) -> Option<Source> {
        let of_remote = || self.remote.address().map(Source::of);
        self.source.or_else(of_remote)
    }
}

impl EventLoop {
    /// Makes room for a face of a datagram's source, for which another may have to end.
    pub(super) fn make_room(
        &mut self,
        remote: SocketAddr,
        is_proven: bool,
    ) -> Result<(), FaceRefusal> {
        let places = self.spawner.config.udp.max_faces;
        let room = places.saturating_sub(self.faces.datagram_faces());
        let (now, source) = (self.clock.now(), Source::of(remote.ip()));
        let admission = (self.plane.strangers()).admission(now, remote.ip(), room, is_proven);
        match admission {
            Admission::Welcome => return Ok(()),
            Admission::InsteadOf(face) if self.may_evict(now, source) => {
                self.evict(face, source);
                return Ok(());
            }
            Admission::Challenge if is_proven => {
                let wait = self.sources.pauses.remaining(self.elapsed(now), remote);
                if !wait.is_zero() {
                    return Err(FaceRefusal::full(wait));
                }
                if self.end_idlest(Group::Datagrams, source) {
                    return Ok(());
                }
            }
            Admission::InsteadOf(_) | Admission::Challenge => {}
        }
        Err(FaceRefusal::full(Duration::ZERO))
    }

    /// Ends a face of a listener for one more of `source`; false if none gives way.
    pub(super) fn end_idlest_connection(&mut self, listener: ListenerId, source: Source) -> bool {
        self.end_idlest(Group::Connections(listener), source)
    }

    fn may_evict(&mut self, now: Instant, newcomer: Source) -> bool {
        let elapsed = self.elapsed(now);
        self.sources.evictions.may(elapsed, newcomer)
    }

    fn evict(&mut self, face: FaceId, newcomer: Source) {
        self.sources.evictions.record(newcomer);
        self.remove_face(face);
    }

    fn end_idlest(&mut self, group: Group, newcomer: Source) -> bool {
        let now = self.clock.now();
        if !self.may_evict(now, newcomer) {
            return false;
        }
        loop {
            let occupants = self.sources.groups.get(&group);
            let Some(face) = occupants.and_then(|it| it.gives_way(now, newcomer)) else {
                return false;
            };
            let serves = self.routes.keys().any(|(_, to)| *to == face);
            if !self.note_use(now, face, serves) {
                self.pause_useless(now, face);
                self.evict(face, newcomer);
                return true;
            }
        }
    }

    /// Starts the pause of a peer whose face ends unused.
    fn pause_useless(&mut self, now: Instant, face: FaceId) {
        let Some(entry) = self.faces.get(face) else {
            return;
        };
        // Somebody else may have written a stranger's address.
        if entry.sender.is_stranger() || self.sources.was_used(face, entry) {
            return;
        }
        if let Some((_, path)) = entry.origin {
            let elapsed = self.elapsed(now);
            self.sources.pauses.record(elapsed, path.remote);
        }
    }

    fn elapsed(&self, now: Instant) -> Duration {
        now.since(self.started)
    }

    /// Records whether a face was used since it was last looked at, and returns it. Of use is who serves a prefix or gets Data.
    fn note_use(&mut self, now: Instant, face: FaceId, serves: bool) -> bool {
        let counters = self.plane.face_counters(face);
        let Some(entry) = self.faces.get_mut(face) else {
            return false;
        };
        let is_heard = entry.note_frames(now, counters.incoming.frames);
        let data = counters.outgoing.data;
        let gets_more = core::mem::replace(&mut entry.data_sent, data) != data;
        let is_used = serves || gets_more || is_heard && data > 0;
        let group = FaceSources::of(entry).filter(|_| is_used);
        let occupants = group.and_then(|group| self.sources.groups.get_mut(&group));
        let Some(occupants) = occupants else {
            return false;
        };
        let was_idle = occupants.used_at(face) < Some(now);
        occupants.touch(now, face);
        was_idle
    }

    /// Records which faces were used since the last time.
    pub(super) fn note_uses(&mut self, now: Instant) {
        let serving: BTreeSet<FaceId> = self.routes.keys().map(|(_, face)| *face).collect();
        let faces: Vec<_> = self.faces.iter().map(|(face, _)| face).collect();
        for face in faces {
            self.note_use(now, face, serving.contains(&face));
        }
    }

    /// Ends faces whose peers come from where nobody may come from.
    pub(super) fn end_denied(&mut self) {
        let deny = self.spawner.config.deny.clone();
        let denied: Vec<_> = (self.faces.iter())
            .filter(|(_, entry)| {
                let address = entry.remote.address();
                entry.persistency == Persistency::OnDemand
                    && address.is_some_and(|address| deny.contains(address))
            })
            .map(|(face, _)| face)
            .collect();
        denied.into_iter().for_each(|face| self.remove_face(face));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The 401st face of a second ends for no newcomer of the same source, and for one of elsewhere.
    #[test]
    fn each_source_has_so_many_faces_end_in_a_second() {
        let [flood, other] =
            ["192.0.2.1", "198.51.100.1"].map(|address| Source::of(address.parse().unwrap()));
        let mut evictions = Evictions::default();
        let mut now = Duration::from_secs(7);
        for _ in 0..2 {
            for _ in 0..MAX_EVICTIONS {
                assert!(evictions.may(now, flood));
                evictions.record(flood);
                now += Duration::from_millis(1);
            }
            assert!(!evictions.may(now, flood));
            assert!(evictions.may(now, other));
            now += EVICTION_WINDOW - Duration::from_millis(u64::from(MAX_EVICTIONS));
        }
        assert!(evictions.may(now, flood));
    }
}
