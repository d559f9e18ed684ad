//! What is wanted and has not left.

use std::collections::BTreeMap;

use namecast_units::Instant;

use super::in_flight::first;
use super::want::{Client, Group, Kind, Token, Want};

/// Order of urgency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    Sound,
    Repair,
    Media,
    Spare,
}

impl Rank {
    pub(super) const fn of(kind: Kind) -> Self {
        match kind {
            Kind::Sound => Self::Sound,
            Kind::Repair => Self::Repair,
            Kind::Key | Kind::Delta | Kind::Parity => Self::Media,
            Kind::Probe => Self::Spare,
        }
    }
}

/// Rank, time of availability, order of arrival.
type Key = (Rank, Instant, u64);

/// Wants, in order of urgency: those of one rank in the order in which their Data is published.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    wants: BTreeMap<Key, Want>,
    keys: BTreeMap<Token, Key>,
    count: u64,
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.wants.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.wants.is_empty()
    }

    /// Adds a want, in place of an earlier one of the same token.
    pub(super) fn insert(&mut self, now: Instant, want: Want) {
        self.remove(want.token);
        self.count += 1;
        let key = (
            Rank::of(want.kind),
            want.available_at.unwrap_or(now),
            self.count,
        );
        self.keys.insert(want.token, key);
        self.wants.insert(key, want);
    }

    pub(super) fn remove(&mut self, token: Token) -> Option<Want> {
        let key = self.keys.remove(&token)?;
        self.wants.remove(&key)
    }

    /// Returns the most urgent one of `rank`.
    pub(super) fn peek(&self, rank: Rank) -> Option<&Want> {
        self.of(rank).next()
    }

    /// Those of `rank`, the most urgent first.
    pub(super) fn of(&self, rank: Rank) -> impl Iterator<Item = &Want> {
        let wants = self.wants.range((rank, Instant::ZERO, 0)..);
        let wants = wants.take_while(move |(key, _)| key.0 == rank);
        wants.map(|(_, want)| want)
    }

    pub(super) fn remove_group(&mut self, group: Group) {
        let of_group = self.keys.range(first(group)..);
        let of_group = of_group.take_while(|(token, _)| token.group() == group);
        let gone: Vec<Token> = of_group.map(|(token, _)| *token).collect();
        for token in gone {
            self.remove(token);
        }
    }

    pub(super) fn remove_client(&mut self, client: Client) {
        self.keys.retain(|token, _| token.client != client);
        self.wants.retain(|_, want| want.token.client != client);
    }

    /// Sets when the sample of `group` could be here. If that is sooner than was thought, it goes before what comes later; else its
    /// place in the order stays.
    pub(super) fn revise(&mut self, group: Group, available_at: Instant) {
        let of_group = self.keys.range_mut(first(group)..);
        for (_, key) in of_group.take_while(|(token, _)| token.group() == group) {
            let Some(mut want) = self.wants.remove(key) else {
                continue;
            };
            key.1 = key.1.min(available_at);
            want.not_before = want.not_before.map(|_| available_at);
            want.available_at = Some(available_at);
            self.wants.insert(*key, want);
        }
    }

    /// Takes out what is of no use any more.
    pub(super) fn expire(&mut self, now: Instant) -> Vec<Token> {
        let over = |want: &&Want| want.deadline.is_some_and(|deadline| deadline <= now);
        let gone: Vec<Token> = self
            .wants
            .values()
            .filter(over)
            .map(|want| want.token)
            .collect();
        for token in &gone {
            self.remove(*token);
        }
        gone
    }

    /// Bits that are published, and not requested for want of room.
    pub(super) fn backlog(&self, now: Instant) -> f64 {
        let is_due = |want: &&Want| {
            matches!(Rank::of(want.kind), Rank::Media | Rank::Repair)
                && want.available_at.is_none_or(|at| at <= now)
        };
        let due = self.wants.values().filter(is_due);
        due.map(|want| want.size.as_bits() as f64).sum()
    }

    /// Returns whether anything waits that is paced.
    pub(super) fn has_paced(&self) -> bool {
        self.wants.keys().any(|(rank, ..)| *rank != Rank::Sound)
    }
}
