//! Objects that are requested until they come: what all else waits for, and what is kept of the past.
//!
//! They are never paced, and their Data tells nothing of the path.

use std::collections::BTreeMap;

use core::time::Duration;

use namecast_packet::{InterestBuilder, Name};
use namecast_units::Instant;

use super::want::{Client, Group, Token};

/// Lifetime of Interests: what they request exists.
const LIFETIME: Duration = Duration::from_secs(1);

/// When an object that does not come is requested again.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    /// Wait for the first answer; doubles.
    pub first_wait: Duration,
    /// Longest wait.
    pub max_wait: Duration,
    /// Interests before it is given up.
    pub max_interests: u32,
}

/// A request for one object.
#[derive(Clone, Debug)]
pub struct Object {
    /// Whose it is.
    pub token: Token,
    /// Its Interest.
    pub interest: InterestBuilder,
    /// Where it may be archived: the first Interest goes there, and every second one from then on.
    pub delegation: Option<Name>,
    /// `None`: it is requested once.
    pub retry: Option<Retry>,
}

impl Object {
    /// A request for what is not archived.
    pub const fn new(token: Token, interest: InterestBuilder, retry: Option<Retry>) -> Self {
        Self {
            token,
            interest,
            delegation: None,
            retry,
        }
    }
}

#[derive(Clone, Debug)]
struct Pending {
    object: Object,
    /// Interests that left.
    attempts: u32,
    due_at: Option<Instant>,
}

/// Those that did not come yet. Whoever requests them bounds their number.
#[derive(Clone, Debug, Default)]
pub(super) struct Objects {
    pending: BTreeMap<Token, Pending>,
}

impl Objects {
    /// Adds `object`. Returns whether it takes the place of another request.
    pub(super) fn insert(&mut self, object: Object) -> bool {
        let pending = Pending {
            attempts: 0,
            due_at: None,
            object,
        };
        self.pending.insert(pending.object.token, pending).is_some()
    }

    pub(super) fn remove(&mut self, token: Token) {
        self.pending.remove(&token);
    }

    pub(super) fn remove_group(&mut self, group: Group) {
        self.pending.retain(|token, _| token.group() != group);
    }

    pub(super) fn remove_client(&mut self, client: Client) {
        self.pending.retain(|token, _| token.client != client);
    }

    /// Lets no cache answer `token` from now on.
    pub(super) fn reject(&mut self, token: Token) {
        if let Some(pending) = self.pending.get_mut(&token) {
            let interest = pending.object.interest.clone();
            pending.object.interest = interest.must_be_fresh();
        }
    }

    /// Makes `token` due at `at` if that is sooner.
    pub(super) fn hasten(&mut self, token: Token, at: Instant) {
        if let Some(pending) = self.pending.get_mut(&token) {
            pending.due_at = pending.due_at.map(|due| due.min(at));
        }
    }

    /// Makes all due, as if none of their Interests had left.
    pub(super) fn restart(&mut self, now: Instant) {
        for pending in self.pending.values_mut() {
            pending.attempts = 0;
            pending.due_at = pending.due_at.map(|_| now);
        }
    }

    pub(super) fn attempts(&self, token: Token) -> u32 {
        self.pending
            .get(&token)
            .map_or(0, |pending| pending.attempts)
    }

    pub(super) fn count(&self, client: Client) -> usize {
        let tokens = self.pending.keys();
        tokens.filter(|token| token.client == client).count()
    }

    /// Returns what is to be requested again.
    pub(super) fn due(&self, now: Instant) -> Vec<Token> {
        let due = |pending: &&Pending| pending.due_at.is_some_and(|at| at <= now);
        let due = self.pending.values().filter(due);
        due.map(|pending| pending.object.token).collect()
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.pending.values().filter_map(|it| it.due_at).min()
    }

    /// Returns the Interest for `token` that leaves now; `None` once enough have left.
    pub(super) fn next(&mut self, now: Instant, token: Token) -> Option<InterestBuilder> {
        let pending = self.pending.get_mut(&token)?;
        let Object {
            interest,
            delegation,
            retry,
            ..
        } = &pending.object;
        if let Some(retry) = retry {
            if pending.attempts >= retry.max_interests.max(1) {
                return None;
            }
            let wait = retry.first_wait * (1 << pending.attempts.min(8));
            pending.due_at = Some(now + wait.min(retry.max_wait));
        }
        let interest = interest.clone().lifetime(LIFETIME);
        let archived = delegation.as_ref().filter(|_| pending.attempts % 2 == 0);
        pending.attempts += 1;
        Some(match archived {
            Some(delegation) => interest.forwarding_hint(delegation.clone()),
            None => interest,
        })
    }
}
