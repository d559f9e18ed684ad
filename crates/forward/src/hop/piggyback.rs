//! Bundles: an Interest that travels with Data. What the pipeline carries out, and what it remembers for that.

use std::collections::VecDeque;

use bytes::Bytes;
use namecast_packet::{Data, DecodeError, Interest, piggyback};
use namecast_units::{Duration, Instant};
use smart_default::SmartDefault;

use super::Hop;
use crate::counters::PacketKind;
use crate::face::FaceId;
use crate::name_hash::NameHashes;
use crate::table::{NextHop, Tables};

/// What a node does about bundles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SmartDefault)]
pub struct PiggybackConfig {
    /// How long a packet of an application waits for another to travel with; zero: until the next output is taken, so that only
    /// packets that are given together travel together.
    #[default(Duration::from_millis(1))]
    pub wait: Duration,
    /// Most packets that wait; beyond, they are sent at once.
    #[default(256)]
    pub max_waiting: usize,
    /// Most flows of which is known where they go; those beyond have their routes looked up.
    #[default(1_024)]
    pub max_flows: usize,
}

/// The hop that has Data and an Interest travel in one packet, after \[PIGGYBACK\].
///
/// [Installed](crate::Forwarder::install), it is not asked about packets: the pipeline does all of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Piggyback {
    config: PiggybackConfig,
}

impl Piggyback {
    /// Returns the hop with this configuration.
    pub const fn new(config: PiggybackConfig) -> Self {
        Self { config }
    }
}

impl Hop for Piggyback {
    fn piggyback(&self) -> Option<PiggybackConfig> {
        Some(self.config)
    }
}

/// Where Interests go whose names differ in the last component only, as the FIB had it.
#[derive(Clone, Copy, Debug)]
struct Flow {
    /// Of the name without its last component.
    parent: u64,
    hop: NextHop,
    /// The FIB's then; it counts from 1.
    version: u64,
}

/// An Interest that came in a bundle, and the hashes of its name, from which those of the next one follow.
#[derive(Clone, Debug)]
struct Recent {
    flow: piggyback::Flow,
    hashes: NameHashes,
}

/// Faces of which the last Interest is kept: some 500 octets each.
const MAX_RECENT: usize = 64;

/// A packet of an application that waits for another to travel with.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    kind: PacketKind,
    from: FaceId,
    to: FaceId,
    /// Its place in the output queue.
    held: (Instant, u64),
}

/// What a node with bundles remembers.
#[derive(Debug)]
pub(crate) struct Bundling {
    config: PiggybackConfig,
    /// By hash; a flow gives way to another of its place.
    flows: Vec<Option<Flow>>,
    /// The last Interest of a bundle from each face, by its number; a face gives way to another of its place.
    recent: Vec<Option<Recent>>,
    /// In the order in which they came.
    waiting: VecDeque<Waiting>,
    /// Whether an Interest came with the Data that are on their way now.
    pub(crate) has_interest: bool,
}

impl Bundling {
    pub(crate) fn new(config: PiggybackConfig) -> Self {
        Self {
            config,
            flows: vec![None; config.max_flows.max(1)],
            recent: vec![None; MAX_RECENT],
            waiting: VecDeque::new(),
            has_interest: false,
        }
    }

    /// Whether packets wait for no time, but until the output is taken.
    pub(crate) const fn joins_at_once(&self) -> bool {
        self.config.wait.is_zero()
    }

    /// Returns the Interest that came from `face` in front of Data, and the hashes of its name if they follow from those before.
    pub(crate) fn interest(
        &mut self,
        face: FaceId,
        (value, data): (&Bytes, &Data),
        tables: &Tables,
    ) -> Result<(Interest, Option<NameHashes>), DecodeError> {
        let place = (face.number() % MAX_RECENT as u64) as usize;
        if let Some(recent) = &self.recent[place]
            && let Some(interest) = recent.flow.decode(value, data)
            && let Some(last) = interest.name().elements().last()
        {
            let hashes = recent.hashes.with_last(last);
            return Ok((interest, Some(hashes)));
        }
        let interest = piggyback::decode(value, data)?;
        let hashes = tables.hashes(interest.name());
        if let Some(hashes) = hashes.as_ref().filter(|hashes| !hashes.has_digest())
            && let Some(flow) = piggyback::Flow::new(value, data, &interest)
        {
            let hashes = hashes.clone();
            self.recent[place] = Some(Recent { flow, hashes });
        }
        Ok((interest, hashes))
    }

    /// Returns the next hop that leads to `face`, and whether the FIB was asked; `None` if it is none for the Interest.
    ///
    /// What is known of a flow holds until the FIB changes, and where no prefix in it could tell the names of the flow apart.
    pub(crate) fn next_hop(
        &mut self,
        tables: &Tables,
        (interest, hashes): (&Interest, &NameHashes),
        face: FaceId,
    ) -> (Option<NextHop>, bool) {
        let is_flow =
            interest.forwarding_hint().is_empty() && tables.fib.deepest() < hashes.depth();
        let parent = hashes.parent();
        let version = tables.fib.version();
        let place = (parent % self.flows.len() as u64) as usize;
        if is_flow
            && let Some(flow) = &self.flows[place]
            && (flow.parent, flow.version, flow.hop.face) == (parent, version, face)
        {
            return (Some(flow.hop), false);
        }
        let mut hops = tables.next_hops(interest, hashes).iter();
        let found = hops.find(|hop| hop.face == face).copied();
        if let Some(hop) = found
            && is_flow
        {
            self.flows[place] = Some(Flow {
                parent,
                hop,
                version,
            });
        }
        (found, true)
    }

    /// Returns until when a packet of an application waits for another to travel with; `None`: not at all.
    pub(crate) fn hold_until(
        &mut self,
        now: Instant,
        (kind, from, to): (PacketKind, FaceId, FaceId),
        tables: &mut Tables,
    ) -> Option<Instant> {
        self.forget_released(now, tables);
        let face = tables.faces.get_mut(from)?;
        let wait = self.config.wait;
        // What costs no time needs no reason.
        let is_paired = self.joins_at_once() || face.bundles().is_paired((kind, now), to, wait);
        let has_room = self.waiting.len() < self.config.max_waiting;
        (is_paired && has_room).then(|| now + wait)
    }

    /// Records that a packet waits.
    pub(crate) fn hold(
        &mut self,
        (kind, from, to): (PacketKind, FaceId, FaceId),
        held: (Instant, u64),
    ) {
        self.waiting.push_back(Waiting {
            kind,
            from,
            to,
            held,
        });
    }

    /// Returns the place in the output queue of the packet that has waited longest for one such as this.
    pub(crate) fn partner(
        &mut self,
        now: Instant,
        (kind, from, to): (PacketKind, FaceId, FaceId),
    ) -> Option<(Instant, u64)> {
        let is_it =
            |it: &Waiting| it.held.0 >= now && (it.from, it.to) == (from, to) && it.kind != kind;
        let place = self.waiting.iter().position(is_it)?;
        self.waiting.remove(place).map(|it| it.held)
    }

    /// Those that waited in vain; their applications are not waited for until they send a pair again.
    fn forget_released(&mut self, now: Instant, tables: &mut Tables) {
        while let Some(first) = self.waiting.front()
            && !(first.held.0 > now || self.joins_at_once() && first.held.0 == now)
        {
            if let Some(face) = tables.faces.get_mut(first.from) {
                face.bundles().miss(first.to, (first.kind, first.held.0));
            }
            self.waiting.pop_front();
        }
    }
}
