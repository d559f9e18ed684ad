//! What a face knows of bundles: their counts, and whether its packets come in pairs.

use namecast_units::{Duration, Instant};
use smallvec::SmallVec;

use crate::counters::{BundleCounters, PacketKind};
use crate::face::FaceId;

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
    /// Records that a packet to `to` waited in vain.
    pub(crate) fn miss(&mut self, to: FaceId, (kind, until): (PacketKind, Instant)) {
        let habit = self.habits.iter_mut().find(|habit| habit.to == to);
        if let Some(habit) = habit {
            habit.miss(kind, until);
        }
    }

    /// Records a packet; returns whether those of its kind mostly come with one of the other, which is behind them.
    pub(crate) fn is_paired(
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
