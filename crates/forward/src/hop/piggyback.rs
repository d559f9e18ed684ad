//! Bundles: an Interest that travels with Data. What the pipeline carries out, and what it remembers for that.

use std::collections::VecDeque;

use namecast_packet::Interest;
use namecast_units::{Duration, Instant};
use smallvec::SmallVec;
use smart_default::SmartDefault;

use super::Hop;
use crate::counters::{BundleCounters, PacketKind};
use crate::face::FaceId;
use crate::name_hash::NameHashes;
use crate::table::{NextHop, Tables};

/// What a node does about bundles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SmartDefault)]
pub struct PiggybackConfig {
    /// How long a packet of an application waits for another to travel with; zero: not at all.
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
    /// In the order in which they came.
    waiting: VecDeque<Waiting>,
    /// Whether an Interest came with the Data that are on their way now.
    pub(crate) has_interest: bool,
}

/// What a node with bundles remembers of a face.
#[derive(Debug, Default)]
pub(crate) struct FaceBundles {
    pub(crate) counters: BundleCounters,
    /// Of an application's packets, by where they go.
    habits: SmallVec<[Habit; 1]>,
}

/// Whether packets of an application to one neighbour come in pairs.
#[derive(Clone, Copy, Debug)]
struct Habit {
    to: FaceId,
    /// The last packet.
    kind: PacketKind,
    at: Instant,
    /// Of Interests, and of Data.
    misses: [Misses; 2],
}

/// Waits in vain of packets that were first, since the last that came with another.
#[derive(Clone, Copy, Debug, Default)]
struct Misses {
    count: u8,
    /// When the last of them ended.
    at: Instant,
}

/// Waits in vain after which packets of that kind wait no more: the first Interests of a talk have no Data to go with.
const MAX_MISSES: u8 = 2;

/// Neighbours of an application of whose packets it is known whether they come in pairs.
const MAX_HABITS: usize = 8;

impl Bundling {
    pub(crate) fn new(config: PiggybackConfig) -> Self {
        Self {
            config,
            flows: vec![None; config.max_flows.max(1)],
            waiting: VecDeque::new(),
            has_interest: false,
        }
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
        let is_paired = face.bundles().is_paired((kind, now), to, self.config.wait);
        let has_room = self.waiting.len() < self.config.max_waiting;
        (is_paired && has_room && !self.config.wait.is_zero()).then(|| now + self.config.wait)
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
            |it: &Waiting| it.held.0 > now && (it.from, it.to) == (from, to) && it.kind != kind;
        let place = self.waiting.iter().position(is_it)?;
        self.waiting.remove(place).map(|it| it.held)
    }

    /// Those that waited in vain; their applications are not waited for until they send a pair again.
    fn forget_released(&mut self, now: Instant, tables: &mut Tables) {
        while let Some(first) = self.waiting.front()
            && first.held.0 <= now
        {
            if let Some(face) = tables.faces.get_mut(first.from) {
                let mut habits = face.bundles().habits.iter_mut();
                let habit = habits.find(|habit| habit.to == first.to);
                habit
                    .into_iter()
                    .for_each(|habit| habit.miss(first.kind, first.held.0));
            }
            self.waiting.pop_front();
        }
    }
}

impl Habit {
    /// Records that packets of a kind waited in vain until `at`: those that waited together count once.
    fn miss(&mut self, kind: PacketKind, at: Instant) {
        let misses = &mut self.misses[place(kind)];
        if misses.at != at {
            misses.at = at;
            misses.count = misses.count.saturating_add(1);
        }
    }
}

/// Where what is known of packets of a kind is.
const fn place(kind: PacketKind) -> usize {
    match kind {
        PacketKind::Data => 1,
        PacketKind::Interest | PacketKind::Nack(_) => 0,
    }
}

impl FaceBundles {
    /// Records a packet; returns whether those of its kind mostly come with one of the other, which is behind them.
    fn is_paired(
        &mut self,
        (kind, now): (PacketKind, Instant),
        to: FaceId,
        wait: Duration,
    ) -> bool {
        let known = self.habits.iter_mut().find(|habit| habit.to == to);
        let Some(habit) = known else {
            if self.habits.len() == MAX_HABITS {
                self.habits.remove(0);
            }
            self.habits.push(Habit {
                to,
                kind,
                at: now,
                misses: Default::default(),
            });
            return true;
        };
        if habit.kind != kind && now.since(habit.at) < wait {
            habit.misses[place(habit.kind)].count = 0;
        }
        let is_paired = habit.misses[place(kind)].count < MAX_MISSES;
        (habit.kind, habit.at) = (kind, now);
        is_paired
    }
}
