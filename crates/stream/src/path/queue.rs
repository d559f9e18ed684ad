//! What is wanted and has not left.

use core::cmp::Reverse;
use std::collections::btree_map::{BTreeMap, Entry};

use namecast_units::Instant;

use super::want::{ClientId, Clients, Kind, Token, Tokens, Want, Weight};

/// Order of urgency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    Sound,
    Repair,
    Media,
    ObjectRepair,
    Object,
    Spare,
}

impl Rank {
    pub(super) const fn of(kind: Kind) -> Self {
        match kind {
            Kind::Sound => Self::Sound,
            Kind::Repair => Self::Repair,
            Kind::Key | Kind::Delta | Kind::Parity => Self::Media,
            Kind::ObjectRepair => Self::ObjectRepair,
            Kind::Object => Self::Object,
            Kind::Probe => Self::Spare,
        }
    }
}

/// Rank, weight, time of availability, order of arrival.
type Key = (Rank, Reverse<Weight>, Instant, u64);

/// Wants, in order of urgency: those of one rank and weight in the order in which their Data is published.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    wants: BTreeMap<Key, Want>,
    keys: BTreeMap<Token, Key>,
    of_clients: BTreeMap<ClientId, usize>,
    /// Of owners whose weight is not one.
    weights: BTreeMap<u32, Weight>,
    count: u64,
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.wants.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.wants.is_empty()
    }

    /// Returns the number of wants of `client`.
    pub(super) fn count_of(&self, client: ClientId) -> usize {
        self.of_clients.get(&client).copied().unwrap_or(0)
    }

    pub(super) fn get(&self, token: Token) -> Option<&Want> {
        self.wants.get(self.keys.get(&token)?)
    }

    /// Gives all that is wanted from now on for an owner a weight.
    pub(super) fn weigh(&mut self, owner: u32, weight: Weight) {
        match weight {
            Weight::ONE => self.weights.remove(&owner),
            weight => self.weights.insert(owner, weight),
        };
    }

    /// Forgets the weights of owners all of whose tokens are among `tokens`.
    pub(super) fn forget_weights(&mut self, tokens: &Tokens) {
        let is_whole = |owner| {
            let all = Clients::tokens_of(owner);
            tokens.contains(all.start()) && tokens.contains(all.end())
        };
        self.weights.retain(|owner, _| !is_whole(*owner));
    }

    /// Takes the weights of the owners of `tokens` from `other`.
    pub(super) fn take_weights(&mut self, other: &mut Self, tokens: &Tokens) {
        let owners = tokens.start().client.owner()..=tokens.end().client.owner();
        self.weights
            .extend(other.weights.extract_if(owners, |_, _| true));
    }

    /// Adds a want, in place of an earlier one of the same token.
    pub(super) fn insert(&mut self, now: Instant, want: Want) {
        self.remove(want.token);
        self.count += 1;
        let owner = want.token.client.owner();
        let weight = self.weights.get(&owner).copied().unwrap_or_default();
        let key = (
            Rank::of(want.kind),
            Reverse(weight),
            want.available_at.unwrap_or(now),
            self.count,
        );
        *self.of_clients.entry(want.token.client).or_default() += 1;
        self.keys.insert(want.token, key);
        self.wants.insert(key, want);
    }

    pub(super) fn remove(&mut self, token: Token) -> Option<Want> {
        let key = self.keys.remove(&token)?;
        count_down(&mut self.of_clients, token.client);
        self.wants.remove(&key)
    }

    /// Returns the most urgent one of `rank`.
    pub(super) fn peek(&self, rank: Rank) -> Option<&Want> {
        self.of(rank).next()
    }

    /// Those of `rank`, the most urgent first.
    pub(super) fn of(&self, rank: Rank) -> impl Iterator<Item = &Want> {
        let wants = self.wants.range(Self::first(rank, Weight::MAX)..);
        let wants = wants.take_while(move |(key, _)| key.0 == rank);
        wants.map(|(_, want)| want)
    }

    /// The first one of `rank` of each weight, the heaviest first.
    pub(super) fn heads(&self, rank: Rank) -> impl Iterator<Item = &Want> {
        let mut from = Some(Self::first(rank, Weight::MAX));
        core::iter::from_fn(move || {
            let (key, want) = self.wants.range(from?..).next()?;
            from = key.1.0.below().map(|weight| Self::first(rank, weight));
            (key.0 == rank).then_some(want)
        })
    }

    const fn first(rank: Rank, weight: Weight) -> Key {
        (rank, Reverse(weight), Instant::ZERO, 0)
    }

    /// Removes and returns those of `tokens`.
    pub(super) fn take(&mut self, tokens: &Tokens) -> Vec<Want> {
        let gone = self.keys.range(tokens.clone()).map(|(token, _)| *token);
        let gone: Vec<_> = gone.collect();
        gone.into_iter()
            .filter_map(|token| self.remove(token))
            .collect()
    }

    /// Sets when `tokens` could be here. If that is sooner than was thought, it goes before what comes later; else its
    /// place in the order stays.
    pub(super) fn revise(&mut self, tokens: &Tokens, available_at: Instant) {
        for (_, key) in self.keys.range_mut(tokens.clone()) {
            let Some(mut want) = self.wants.remove(key) else {
                continue;
            };
            key.2 = key.2.min(available_at);
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

    /// Bits that are published, and not requested for want of room, of owners of this weight and of heavier ones.
    pub(super) fn backlog(&self, now: Instant, weight: Weight) -> f64 {
        let is_due = |((rank, own, ..), want): &(&Key, &Want)| {
            matches!(rank, Rank::Media | Rank::Repair)
                && own.0 >= weight
                && want.available_at.is_none_or(|at| at <= now)
        };
        let due = self.wants.iter().filter(is_due);
        due.map(|(_, want)| want.size.as_bits() as f64).sum()
    }

    /// Returns whether anything waits that is paced.
    pub(super) fn has_paced(&self) -> bool {
        self.wants.keys().any(|(rank, ..)| *rank != Rank::Sound)
    }
}

/// Takes one from the count of `client`. None is kept of zero.
pub(super) fn count_down(counts: &mut BTreeMap<ClientId, usize>, client: ClientId) {
    if let Entry::Occupied(mut count) = counts.entry(client) {
        *count.get_mut() -= 1;
        if *count.get() == 0 {
            count.remove();
        }
    }
}
