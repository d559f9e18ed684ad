//! The forwarder: what its driver sees.

use core::fmt;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use namecast_packet::{Data, LpPacket, Name};
use namecast_units::{ByteSize, Instant, Random};

use crate::config::Config;
use crate::counters::{Counters, DropReason, FaceCounters, StrategyCounters};
use crate::extension::Extension;
use crate::face::{AddFaceError, Face, FaceConfig, FaceId, FaceInfo, FaceTable, MIN_MTU};
use crate::pipeline::{LEARNED_COST, LearnedNews};
use crate::strategy::StrategyKind;
use crate::table::{
    AddRouteError, CacheOptions, ContentStore, DeadNonceList, Erased, ExpiryQueue, Fib, Learned,
    Measurements, NameHasher, NextHop, Pit, StrategyChoices,
};

/// Something to send, for the driver of a face.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Face to send it on.
    pub face: FaceId,
    /// One link packet. It is a frame if the face [takes it whole](FaceConfig::takes_whole), or came out of its link.
    pub frame: Bytes,
}

/// The strategy of a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrategyChoice {
    /// Names it is for.
    pub prefix: Name,
    /// The strategy.
    pub kind: StrategyKind,
    /// What became of their Interests since it was chosen.
    pub counters: StrategyCounters,
}

/// A route that was made from a prefix announcement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LearnedRoute {
    /// Names it is for.
    pub prefix: Name,
    /// Where it leads.
    pub face: FaceId,
    /// Which of several to take: the lowest.
    pub cost: u64,
    /// When it ends, unless it is used before.
    pub expires: Instant,
}

/// One node's forwarding plane.
///
/// Whole packets go into [`handle_frame`](Self::handle_frame). After that, after a change of faces or
/// routes, and after [`handle_timeout`](Self::handle_timeout), take packets from [`poll_output`](Self::poll_output) until
/// there are none, and call `handle_timeout` when [`poll_timeout`](Self::poll_timeout) says so. Early or repeated calls
/// are harmless, and a late one is made up for by the next frame. The same calls with the same seed give the same packets.
/// Faces that fragment, or acknowledge, need a [`Link`](crate::Link) each; [`Node`](crate::Node) has both.
///
/// Packets are kept in the output queue until they are polled; whatever keeps packets longer copies them, unless
/// [`Config::keep`] says otherwise.
#[repr(C)]
pub struct Forwarder {
    // First what each packet touches: a simulation has more nodes than the processor's caches hold.
    /// Latest time that the driver told.
    pub(crate) now: Instant,
    pub(crate) config: Arc<Config>,
    pub(crate) hasher: NameHasher,
    /// Only while some prefix has a strategy that measures.
    pub(crate) measurements: Option<Box<Measurements>>,
    /// Only while some prefix has a strategy that learns routes.
    pub(crate) learned: Option<Box<Learned>>,
    pub(crate) extensions: Vec<Box<dyn Extension>>,
    pub(crate) expiries: ExpiryQueue,
    pub(crate) output: VecDeque<Transmit>,
    pub(crate) faces: FaceTable,
    /// What Interests carry, so that Data come back to this one of the node's forwarders.
    pub(crate) token: Option<Bytes>,
    pub(crate) dead_nonces: DeadNonceList,
    pub(crate) pit: Pit,
    pub(crate) content_store: ContentStore,
    pub(crate) fib: Fib,
    pub(crate) strategies: StrategyChoices,
    pub(crate) counters: Counters,
    pub(crate) random: Random,
    /// What the node's other forwarders are to know.
    pub(crate) news: Vec<LearnedNews>,
    next_face: FaceId,
}

// A simulation has tens of thousands of nodes, most of them idle: with three faces, 7 KiB each at most. What an idle node
// allocates besides is a few hundred octets for each route.
const _: () = assert!(size_of::<Forwarder>() + 4 * size_of::<Face>() <= 4 << 10);

impl Forwarder {
    /// A node without faces or routes.
    pub fn new(config: Config) -> Self {
        let seed = config.seed;
        Self::sharing(Arc::new(config), seed)
    }

    /// A node without faces or routes whose configuration others share, all but the seed: for drivers of many nodes.
    pub fn sharing(config: Arc<Config>, seed: u64) -> Self {
        let hasher = NameHasher::new(config.hash_key);
        Self {
            random: Random::from_seed(seed),
            token: config.shard.token(),
            faces: FaceTable::default(),
            next_face: FaceId::FIRST,
            fib: Fib::new(hasher, config.max_prefixes),
            strategies: StrategyChoices::new(hasher, config.max_prefixes),
            measurements: None,
            learned: None,
            news: Vec::new(),
            pit: Pit::new(config.pit_capacity, config.pit_octets),
            content_store: ContentStore::new(
                config.keep,
                config.content_store_policy,
                config.content_store,
                config.content_store_versions,
            ),
            dead_nonces: DeadNonceList::new(config.dead_nonce_lifetime, config.dead_nonce_capacity),
            expiries: ExpiryQueue::default(),
            output: VecDeque::new(),
            counters: Counters::default(),
            extensions: Vec::new(),
            now: Instant::ZERO,
            hasher,
            config,
        }
    }

    /// Adds a face; its number is given to no other face ever.
    ///
    /// # Errors
    /// If there are too many faces, or the MTU is below [`MIN_MTU`].
    pub fn add_face(&mut self, config: FaceConfig) -> Result<FaceId, AddFaceError> {
        if self.faces.len() >= self.config.max_faces {
            return Err(AddFaceError::TooManyFaces(self.config.max_faces));
        }
        check_mtu(config.mtu)?;
        let id = self.next_face;
        self.next_face = FaceId::from_number(id.number() + 1);
        let face = Face {
            config,
            counters: FaceCounters::default(),
            queued: 0,
            share: self.pit.add_face(id),
            interests_full_at: Instant::ZERO,
        };
        self.faces.push(id, face);
        Ok(id)
    }

    /// Removes a face with its routes, its pending Interests and its frames in the output queue.
    ///
    /// Interests that others wait for too stay pending, and so do those that were sent on it, until they expire. An unknown
    /// face is no error.
    pub fn remove_face(&mut self, now: Instant, face: FaceId) {
        self.advance(now);
        self.forget_downstream(face);
        let Some(removed) = self.faces.remove(face) else {
            return;
        };
        self.fib.remove_face(face);
        self.pit.remove_face(face, removed.share);
        if let Some(measurements) = &mut self.measurements {
            measurements.remove_face(face);
        }
        if let Some(learned) = &mut self.learned {
            learned.remove_face(face);
        }
        self.output.retain(|transmit| transmit.face != face);
    }

    /// Changes what a face is. An unknown face is no error.
    ///
    /// # Errors
    /// If the MTU is below [`MIN_MTU`]; then nothing changes.
    pub fn reconfigure_face(
        &mut self,
        face: FaceId,
        config: FaceConfig,
    ) -> Result<(), AddFaceError> {
        check_mtu(config.mtu)?;
        let Some(entry) = self.faces.get_mut(face) else {
            return Ok(());
        };
        entry.config = config;
        Ok(())
    }

    /// One face.
    pub fn face(&self, id: FaceId) -> Option<FaceInfo<'_>> {
        self.faces.get(id).map(|face| FaceInfo {
            id,
            config: &face.config,
            counters: &face.counters,
        })
    }

    /// All faces, by number.
    pub fn faces(&self) -> impl Iterator<Item = FaceInfo<'_>> {
        self.faces.iter().map(|(id, face)| FaceInfo {
            id,
            config: &face.config,
            counters: &face.counters,
        })
    }

    /// Sends Interests under `prefix` to `face`, or changes the cost of doing so; lower costs are preferred.
    /// The table keeps `prefix` as it is, so that nodes can share one: detach it first if it is part of a packet.
    ///
    /// # Errors
    /// If there is no such face, the prefix has more than 32 components, or the table is full.
    pub fn add_route(
        &mut self,
        prefix: Name,
        face: FaceId,
        cost: u64,
    ) -> Result<(), AddRouteError> {
        if self.faces.get(face).is_none() {
            return Err(AddRouteError::UnknownFace);
        }
        let is_new = self.fib.add(&prefix, NextHop { face, cost })?;
        let learned = self.learned.as_mut();
        if let Some(heard) = learned.and_then(|learned| learned.get_mut(&prefix, face)) {
            heard.is_route = false;
        }
        if is_new {
            self.offer_new_next_hop(&prefix, face);
        }
        Ok(())
    }

    /// Takes a route back. One that does not exist is no error.
    pub fn remove_route(&mut self, prefix: &Name, face: FaceId) {
        self.fib.remove(prefix, face);
        if let Some(learned) = &mut self.learned {
            learned.remove(prefix, face);
        }
    }

    /// Chooses the strategy for Interests under `prefix`, unless a longer prefix has one of its own. If it is another than
    /// before, its counters begin at zero. `prefix` is kept as it is, like that of a route.
    ///
    /// # Errors
    /// If the prefix has more than 32 components, or the table is full.
    pub fn set_strategy(
        &mut self,
        prefix: Name,
        strategy: StrategyKind,
    ) -> Result<(), AddRouteError> {
        let before = self.strategies.get(&prefix);
        if let Some(replaced) = self.strategies.set(&prefix, strategy)? {
            self.pit.forget_choice(replaced);
        }
        self.reconsider_measurements(before, Some(strategy));
        self.reconsider_learning(before, Some(strategy));
        Ok(())
    }

    /// Takes a choice back, so that the next shorter prefix decides. One that does not exist is no error.
    pub fn unset_strategy(&mut self, prefix: &Name) {
        let before = self.strategies.get(prefix);
        if let Some(removed) = self.strategies.unset(prefix) {
            self.pit.forget_choice(removed);
        }
        self.reconsider_measurements(before, None);
        self.reconsider_learning(before, None);
    }

    /// Starts measurements with the first prefix whose strategy needs them, and ends them with the last.
    fn reconsider_measurements(
        &mut self,
        before: Option<StrategyKind>,
        after: Option<StrategyKind>,
    ) {
        let measures = |kind: Option<StrategyKind>| usize::from(kind.is_some_and(|k| k.measures()));
        let choices = self.measurements.as_ref().map_or(0, |m| m.choices);
        let choices = choices + measures(after) - measures(before);
        if choices == 0 {
            self.measurements = None;
            return;
        }
        let capacity = self.config.max_measurements;
        let make = || Box::new(Measurements::new(capacity));
        self.measurements.get_or_insert_with(make).choices = choices;
    }

    /// The prefixes with a strategy of their own, in canonical order; before them the root with the default one, unless
    /// another was chosen for it.
    pub fn strategies(&self) -> impl Iterator<Item = StrategyChoice> {
        let mut sorted = BTreeMap::new();
        let default = (StrategyKind::DEFAULT, self.strategies.default_counters());
        sorted.insert(Name::root(), default);
        let all = self.strategies.iter();
        sorted.extend(all.map(|(prefix, kind, counters)| (prefix.clone(), (kind, counters))));
        let choice = |(prefix, (kind, counters))| StrategyChoice {
            prefix,
            kind,
            counters,
        };
        sorted.into_iter().map(choice)
    }

    /// The routes that were learned from prefix announcements, in canonical order.
    pub fn learned_routes(&self) -> impl Iterator<Item = LearnedRoute> {
        let all = self.learned.iter().flat_map(|learned| learned.iter());
        let routes = all.filter(|(_, heard)| heard.is_route);
        let mut routes: Vec<_> = routes
            .map(|(prefix, heard)| LearnedRoute {
                prefix: prefix.clone(),
                face: heard.face,
                cost: LEARNED_COST,
                expires: heard.expiry,
            })
            .collect();
        routes.sort_by(|a, b| (&a.prefix, a.face).cmp(&(&b.prefix, b.face)));
        routes.into_iter()
    }

    /// Adds an extension, which the hooks call after those added before.
    pub fn add_extension(&mut self, extension: Box<dyn Extension>) {
        self.extensions.push(extension);
    }

    /// Takes a frame that carries a whole packet: an LpPacket, or a bare Interest or Data. Others [concern the
    /// link](crate::Link::concerns), and what comes out of it is for [`handle_packet`](Self::handle_packet).
    ///
    /// Bad frames are counted and dropped; nothing that arrives ends the face.
    pub fn handle_frame(&mut self, now: Instant, face: FaceId, frame: Bytes) {
        self.handle_timeout(now);
        self.receive(face, frame);
    }

    /// Takes a whole packet that came out of the face's link, which has counted its frames.
    pub fn handle_packet(&mut self, now: Instant, face: FaceId, packet: LpPacket) {
        self.handle_timeout(now);
        if let Err(reason) = self.receive_packet(face, packet) {
            self.count_drop(face, reason);
        }
    }

    /// Whether somebody waits for the Data in a frame.
    pub fn awaits(&self, frame: &Bytes) -> bool {
        let fragment = LpPacket::decode(frame.clone())
            .ok()
            .and_then(|it| it.fragment);
        let data = fragment.and_then(|wire| Data::decode(wire).ok());
        data.is_some_and(|data| {
            let hashes = self
                .hasher
                .hashes(data.name(), self.config.max_name_components);
            hashes.is_some_and(|hashes| !self.pit.matches(&data, &hashes).is_empty())
        })
    }

    /// Does what is due by `now`. Early calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        while let Some(entry) = self.expiries.pop_due(self.now) {
            self.expire(entry);
        }
        if self.learned.is_some() {
            self.expire_learned();
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let expiry = self.expiries.first().map(|(at, _)| at);
        let learned = self.learned.as_ref().and_then(|it| it.poll_timeout());
        let due = expiry.into_iter().chain(learned);
        due.min()
    }

    /// The next packet to send, in the order in which they came about.
    pub fn poll_output(&mut self) -> Option<Transmit> {
        self.poll_output_for_link().map(|(transmit, _)| transmit)
    }

    /// The next packet to send, and whether its face takes it whole.
    pub(crate) fn poll_output_for_link(&mut self) -> Option<(Transmit, bool)> {
        let transmit = self.output.pop_front()?;
        let face = self.faces.get_mut(transmit.face);
        let is_whole = face.is_none_or(|face| {
            face.queued -= 1;
            face.config.takes_whole(transmit.frame.len())
        });
        Some((transmit, is_whole))
    }

    /// What the node has seen.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What a face has seen.
    pub fn face_counters(&self, face: FaceId) -> Option<&FaceCounters> {
        self.faces.get(face).map(|face| &face.counters)
    }

    /// Interests pending now.
    pub fn pending_interests(&self) -> usize {
        self.pit.len()
    }

    /// Data packets in the content store.
    pub fn cached_packets(&self) -> usize {
        self.content_store.len()
    }

    /// Memory that the content store takes.
    pub const fn cached_size(&self) -> ByteSize {
        self.content_store.used()
    }

    /// How much the content store may hold, and what it does.
    pub const fn cache_options(&self) -> CacheOptions {
        self.content_store.options()
    }

    /// Changes how much the content store may hold and what it does; Data beyond a smaller capacity goes at once.
    pub fn set_cache_options(&mut self, options: CacheOptions) {
        self.content_store.set_options(options);
    }

    /// Removes at most `limit` cached Data packets whose names begin with `prefix`.
    pub fn erase_cached(&mut self, prefix: &Name, limit: usize) -> Erased {
        self.content_store.erase(prefix, limit)
    }

    /// Name prefixes with routes.
    pub fn routed_prefixes(&self) -> usize {
        self.fib.len()
    }

    /// Name prefixes that strategies have measurements of.
    pub fn measured_namespaces(&self) -> usize {
        let measurements = self.measurements.as_ref();
        measurements.map_or(0, |m| m.living_namespaces(self.now))
    }

    /// Pairs of a prefix and a next hop that strategies have measurements of.
    pub fn measured_next_hops(&self) -> usize {
        self.measurements.as_ref().map_or(0, |m| m.len())
    }

    /// The clock never goes back, whatever the driver says.
    fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }

    /// Counts a dropped packet, for the node and for the face if there is one.
    pub(crate) fn count_drop(&mut self, face: FaceId, reason: DropReason) {
        self.counters.drops.add(reason);
        if let Some(face) = self.faces.get_mut(face) {
            face.counters.drops.add(reason);
        }
    }
}

const fn check_mtu(mtu: Option<usize>) -> Result<(), AddFaceError> {
    match mtu {
        Some(mtu) if mtu < MIN_MTU => Err(AddFaceError::MtuTooSmall(mtu)),
        _ => Ok(()),
    }
}

impl fmt::Debug for Forwarder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forwarder")
            .field("now", &self.now)
            .field("faces", &self.faces.len())
            .field("pending_interests", &self.pit.len())
            .field("cached_packets", &self.content_store.len())
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}
