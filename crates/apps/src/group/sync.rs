//! State Vector Sync v3: who sends its state vector when.
//!
//! ```text
//!          vector that lacks something of ours
//!  steady ─────────────────────────────────────▶ suppression ─ all of ours was heard ─▶ steady
//!    │  ▲        after 0 to 200 ms: still lacking │
//!    │  └───────────────── send ◀─────────────────┘
//!    └ 1 s ± 10 % without an equal vector, or a publication of ours: send
//! ```

use core::time::Duration;
use std::collections::BTreeMap;

use namecast_packet::Name;
use namecast_units::{Instant, Random};

use super::vector::StateVector;

/// Mean time between two vectors of a group in which nothing happens. The specification has 30 s: members that were cut apart are to find each other
/// within 2 s.
const PERIOD: Duration = Duration::from_secs(1);
/// Longest wait for somebody else to answer an outdated vector; entries that changed within it are not answered for.
const SUPPRESSION: Duration = Duration::from_millis(200);
/// Least time between two vectors of ours.
pub(super) const MIN_SPACING: Duration = Duration::from_millis(100);
/// Boot times may lie this far ahead of our clock, in seconds.
const MAX_AHEAD: u64 = 86_400;
/// Largest number that counts. Members make four publications a second for 34 years.
pub(super) const MAX_NUMBER: u64 = u32::MAX as u64;

/// Counters of state vectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncCounters {
    /// Vectors merged.
    pub merged: u64,
    /// Vectors refused: a boot time is over 24 hours ahead.
    pub boot_ahead: u64,
    /// Entries ignored: the number is over 2^32 − 1.
    pub number_too_large: u64,
    /// Entries ignored: their member does not belong to the group.
    pub strangers: u64,
    /// Entries ignored: no room.
    pub full: u64,
}

/// State vectors of one group, from one member's view.
#[derive(Debug)]
pub(super) struct Sync {
    vector: StateVector,
    /// When entries changed last.
    changed: BTreeMap<(Name, u64), Instant>,
    /// In suppression: all that was heard since it began.
    heard: Option<StateVector>,
    send_at: Instant,
    sent_at: Option<Instant>,
    random: Random,
    pub(super) counters: SyncCounters,
}

impl Sync {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            vector: StateVector::default(),
            changed: BTreeMap::new(),
            heard: None,
            send_at: Instant::ZERO,
            sent_at: None,
            random: Random::from_seed(seed),
            counters: SyncCounters::default(),
        }
    }

    pub(super) const fn vector(&self) -> &StateVector {
        &self.vector
    }

    /// Takes a publication of our own, which others are to hear of now.
    pub(super) fn publish(&mut self, now: Instant, (member, boot): (&Name, u64), number: u64) {
        if self.vector.raise(member, boot, number) {
            self.changed.insert((member.detached(), boot), now);
        }
        self.heard = None;
        self.send_at = self.earliest(now);
    }

    /// Returns the first moment from `at` on at which the next vector may leave.
    fn earliest(&self, at: Instant) -> Instant {
        self.sent_at.map_or(at, |sent| at.max(sent + MIN_SPACING))
    }

    fn settle(&mut self, now: Instant) {
        self.heard = None;
        self.send_at = now + PERIOD.mul_f64(0.9 + 0.2 * self.random.unit());
    }

    /// Takes a vector at the second `wall` of the wall clock, and merges entries of members. Returns those that were news.
    pub(super) fn handle_vector(
        &mut self,
        (now, wall): (Instant, u64),
        received: &StateVector,
        is_member: impl Fn(&Name) -> bool,
    ) -> Vec<(Name, u64, u64)> {
        let latest = wall.saturating_add(MAX_AHEAD);
        if received.entries().any(|(_, boot, _)| boot > latest) {
            self.counters.boot_ahead += 1;
            return Vec::new();
        }
        self.counters.merged += 1;
        self.vector.retain(&is_member);
        let (mut news, mut counted) = (Vec::new(), StateVector::default());
        for (member, boot, number) in received.entries() {
            if !is_member(member) {
                self.counters.strangers += 1;
            } else if number > MAX_NUMBER {
                self.counters.number_too_large += 1;
            } else if !self.vector.has_room(member, boot) {
                self.counters.full += 1;
            } else {
                counted.raise(member, boot, number);
                if self.vector.raise(member, boot, number) {
                    let member = member.detached();
                    self.changed.insert((member.clone(), boot), now);
                    news.push((member, boot, number));
                }
            }
        }
        let vector = &self.vector;
        self.changed
            .retain(|(member, boot), _| vector.get(member, *boot) > 0);
        self.answer(now, counted);
        news
    }

    /// Decides whether a vector is answered with ours.
    fn answer(&mut self, now: Instant, received: StateVector) {
        let outdated: Vec<_> = self.lacking(&received).collect();
        // Entries that changed just now are on their way to the sender as well.
        let is_long_known = outdated.iter().any(|(member, boot, _)| {
            let changed = self.changed.get(&((*member).clone(), *boot));
            changed.is_none_or(|at| *at + SUPPRESSION <= now)
        });
        if outdated.is_empty() {
            self.settle(now);
            return;
        }
        if let Some(heard) = &mut self.heard {
            heard.merge(&received);
        } else if is_long_known {
            self.heard = Some(received);
            // v is uniform in [0, c]: c · (1 − e^((v − c) / (c / 10))).
            let part = 1.0 - libm::exp(10.0 * (self.random.unit() - 1.0));
            self.send_at = self.earliest(now + SUPPRESSION.mul_f64(part));
        }
    }

    /// Returns entries of ours that `other` lacks, or has a smaller number of.
    fn lacking<'a>(&'a self, other: &'a StateVector) -> impl Iterator<Item = (&'a Name, u64, u64)> {
        let own = self.vector.entries();
        own.filter(|(member, boot, number)| other.get(member, *boot) < *number)
    }

    /// Returns whether a vector is to be sent now. Early calls do nothing.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> bool {
        if self.send_at > now {
            return false;
        }
        let heard = self.heard.take();
        let is_answered = heard.is_some_and(|heard| self.lacking(&heard).next().is_none());
        self.settle(now);
        if !is_answered {
            self.sent_at = Some(now);
        }
        !is_answered
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next.
    pub(super) const fn poll_timeout(&self) -> Instant {
        self.send_at
    }
}
