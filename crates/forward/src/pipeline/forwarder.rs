//! The forwarder: what its driver sees.

use core::fmt;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use namecast_packet::{Data, LpPacket, Name};
use namecast_units::{Instant, Random};

use super::output::Output;
use crate::config::Config;
use crate::counters::{Counters, StrategyCounters};
use crate::face::{AddFaceError, FaceConfig, FaceId, FaceInfo, MIN_MTU};
use crate::hop::{
    Bundling, Hop, Hops, LEARNED_COST, LearnedNews, Learning, StrategyChoices, StrategyKind,
};
use crate::link::{LinkMeter, Offers};
use crate::table::{AddRouteError, ContentStore, Face, NextHop, Tables};

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
    pub(super) hops: Hops,
    /// Only where bundles are on.
    pub(super) bundling: Option<Box<Bundling>>,
    pub(super) output: Output,
    /// What Interests carry, so that Data come back to this one of the node's forwarders.
    pub(super) token: Option<Bytes>,
    pub(crate) tables: Tables,
    pub(super) strategies: StrategyChoices,
    pub(super) random: Random,
    next_face: FaceId,
    /// What neighbours are to hear that this node takes.
    offers: Offers,
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
        let tables = Tables::new(config);
        let config = &tables.config;
        Self {
            now: Instant::ZERO,
            hops: Hops::default(),
            bundling: None,
            output: Output::default(),
            token: config.shard.token(),
            strategies: StrategyChoices::new(tables.hasher, config.max_prefixes),
            random: Random::from_seed(seed),
            next_face: FaceId::FIRST,
            offers: Offers::NONE,
            tables,
        }
    }

    /// Adds a face; its number is given to no other face ever.
    ///
    /// # Errors
    /// If there are too many faces, or the MTU is below [`MIN_MTU`].
    pub fn add_face(&mut self, config: FaceConfig) -> Result<FaceId, AddFaceError> {
        let max_faces = self.tables.config.max_faces;
        if self.tables.faces.len() >= max_faces {
            return Err(AddFaceError::TooManyFaces(max_faces));
        }
        check_mtu(config.mtu)?;
        let id = self.next_face;
        self.next_face = FaceId::from_number(id.number() + 1);
        let mut face = Face::new(config, self.tables.pit.add_face(id));
        face.offer(self.offers);
        self.tables.faces.push(id, face);
        Ok(id)
    }

    /// Removes a face with its routes, its pending Interests and its frames in the output queue.
    ///
    /// Interests that others wait for too stay pending, and so do those that were sent on it, until they expire. An unknown
    /// face is no error.
    pub fn remove_face(&mut self, now: Instant, face: FaceId) {
        self.advance(now);
        self.tables.remove_face(self.now, face);
        self.hops.remove_face(face);
        self.output.remove_face(face);
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
        let Some(entry) = self.tables.faces.get_mut(face) else {
            return Ok(());
        };
        entry.config = config;
        Ok(())
    }

    /// Lets hops read what the link of a face measures. An unknown face is no error.
    pub fn set_meter(&mut self, face: FaceId, meter: Arc<LinkMeter>) {
        if let Some(face) = self.tables.faces.get_mut(face) {
            face.meter = Some(meter);
            face.offer(self.offers);
        }
    }

    /// One face.
    pub fn face(&self, id: FaceId) -> Option<FaceInfo<'_>> {
        self.tables.faces.get(id).map(|face| FaceInfo {
            id,
            config: &face.config,
            counters: &face.counters,
            bundles: face.bundle_counters(),
        })
    }

    /// All faces, by number.
    pub fn faces(&self) -> impl Iterator<Item = FaceInfo<'_>> {
        self.tables.faces.iter().map(|(id, face)| FaceInfo {
            id,
            config: &face.config,
            counters: &face.counters,
            bundles: face.bundle_counters(),
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
        if self.tables.faces.get(face).is_none() {
            return Err(AddRouteError::UnknownFace);
        }
        let is_new = self.tables.fib.add(&prefix, NextHop { face, cost })?;
        self.hops.learning.on_route_added(&prefix, face);
        if is_new {
            self.offer_new_next_hop(&prefix, face);
        }
        Ok(())
    }

    /// Takes a route back. One that does not exist is no error.
    pub fn remove_route(&mut self, prefix: &Name, face: FaceId) {
        self.tables.fib.remove(prefix, face);
        self.hops.learning.on_route_removed(prefix, face);
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
            self.tables.pit.forget_choice(replaced);
        }
        let after = Some(strategy);
        self.hops.reconsider(&mut self.tables, before, after);
        Ok(())
    }

    /// Takes a choice back, so that the next shorter prefix decides. One that does not exist is no error.
    pub fn unset_strategy(&mut self, prefix: &Name) {
        let before = self.strategies.get(prefix);
        if let Some(removed) = self.strategies.unset(prefix) {
            self.tables.pit.forget_choice(removed);
        }
        self.hops.reconsider(&mut self.tables, before, None);
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
        let all = self.hops.learning.routes();
        let mut routes: Vec<_> = all
            .map(|(prefix, face, expires)| LearnedRoute {
                prefix: prefix.clone(),
                face,
                cost: LEARNED_COST,
                expires,
            })
            .collect();
        routes.sort_by(|a, b| (&a.prefix, a.face).cmp(&(&b.prefix, b.face)));
        routes.into_iter()
    }

    /// Has a hop see the packets of all names, after those that were installed before, and before the strategies.
    pub fn install(&mut self, hop: Box<dyn Hop>) {
        if let Some(config) = hop.piggyback() {
            let bundling = Bundling::new(config);
            self.output.keeps_due = bundling.joins_at_once();
            self.bundling = Some(Box::new(bundling));
            return offer(self, Offers::BUNDLES);
        }
        if hop.counts_requests() {
            offer(self, Offers::COUNTERS);
        }
        self.hops.install(hop);
    }

    /// Makes a hop a strategy, to be [chosen](Self::set_strategy) by prefix. `word` stands for it in the names of strategies.
    ///
    /// # Panics
    /// If there are 65 536 already.
    pub fn add_strategy(&mut self, word: &'static str, hop: Box<dyn Hop>) -> StrategyKind {
        self.hops.add_strategy(word, hop)
    }

    /// Takes a frame that carries a whole packet: an LpPacket, or a bare Interest or Data. Others [concern the
    /// link](crate::Link::concerns), and what comes out of it is for [`handle_packet`](Self::handle_packet).
    ///
    /// Bad frames are counted and dropped; nothing that arrives ends the face.
    pub fn handle_frame(&mut self, now: Instant, face: FaceId, frame: Bytes) {
        self.handle_timeout(now);
        if let Err(reason) = self.receive_frame(face, frame) {
            self.tables.count_drop(face, reason);
        }
    }

    /// Takes a whole packet that came out of the face's link, which has counted its frames.
    pub fn handle_packet(&mut self, now: Instant, face: FaceId, packet: LpPacket) {
        self.handle_timeout(now);
        if let Err(reason) = self.receive_packet(face, packet) {
            self.tables.count_drop(face, reason);
        }
    }

    /// Whether somebody waits for the Data in a frame.
    pub fn awaits(&self, frame: &Bytes) -> bool {
        let fragment = LpPacket::decode(frame.clone())
            .ok()
            .and_then(|it| it.fragment);
        let data = fragment.and_then(|wire| Data::decode(wire).ok());
        data.is_some_and(|data| self.tables.awaits(&data))
    }

    /// What this one has learned since it was last asked. Nothing where it is the only one of its node.
    pub fn take_news(&mut self) -> Vec<LearnedNews> {
        self.hops.learning.take_news()
    }

    /// Returns what the node learns of prefixes that others announce.
    pub fn learning(&mut self, now: Instant) -> Learning<'_> {
        self.handle_timeout(now);
        Learning::new(self.now, &mut self.hops.learning, &mut self.tables)
    }

    /// The next packet to send, in the order in which they came about.
    pub fn poll_output(&mut self) -> Option<Transmit> {
        self.poll_output_for_link().map(|(transmit, _)| transmit)
    }

    /// The next packet to send, and whether its face takes it whole.
    #[inline(always)]
    pub(crate) fn poll_output_for_link(&mut self) -> Option<(Transmit, bool)> {
        let transmit = self.output.pop(self.now)?;
        let face = self.tables.faces.get_mut(transmit.face);
        let is_whole = face.is_none_or(|face| {
            face.queued -= 1;
            face.config.takes_whole(transmit.frame.len())
        });
        Some((transmit, is_whole))
    }

    /// What the node has seen.
    pub const fn counters(&self) -> &Counters {
        &self.tables.counters
    }

    /// Interests pending now.
    pub fn pending_interests(&self) -> usize {
        self.tables.pit.len()
    }

    /// Returns the faces that wait for Data under `prefix` now. Looks at all pending Interests.
    pub fn waiting_faces(&self, prefix: &Name) -> BTreeSet<FaceId> {
        let entries = self.tables.pit.iter().map(|(_, entry)| entry);
        let entries = entries.filter(|entry| prefix.is_prefix_of(&entry.name));
        let records = entries.flat_map(|entry| &entry.in_records);
        records.map(|record| record.face).collect()
    }

    /// Returns the Data that passed and were kept.
    pub const fn content_store(&self) -> &ContentStore {
        &self.tables.content_store
    }

    /// Returns the Data that passed and were kept, to be changed or removed.
    pub const fn content_store_mut(&mut self) -> &mut ContentStore {
        &mut self.tables.content_store
    }

    /// Name prefixes with routes.
    pub fn routed_prefixes(&self) -> usize {
        self.tables.fib.len()
    }

    /// Returns how many name prefixes strategies have measurements of, and how many pairs of a prefix and a next hop.
    pub fn measured(&self) -> (usize, usize) {
        let measurements = self.hops.asf().map(|asf| &asf.measurements);
        measurements.map_or((0, 0), |all| (all.living_namespaces(self.now), all.len()))
    }
}

/// Has all neighbours hear that this node takes these.
fn offer(forwarder: &mut Forwarder, offers: Offers) {
    forwarder.offers = forwarder.offers.with(offers);
    let faces = forwarder.tables.faces.iter_mut();
    faces.for_each(|face| face.offer(offers));
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
            .field("faces", &self.tables.faces.len())
            .field("pending_interests", &self.tables.pit.len())
            .field("cached_packets", &self.tables.content_store.packets())
            .field("counters", &self.tables.counters)
            .finish_non_exhaustive()
    }
}
