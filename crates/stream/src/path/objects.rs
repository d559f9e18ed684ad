//! Objects that are requested until they come: what all else waits for, and what is kept of the past.
//!
//! They are never paced, and their Data tells nothing of the path.

use std::collections::{BTreeMap, BTreeSet};

use core::time::Duration;

use namecast_packet::{Interest, InterestBuilder, Name, Nonce};
use namecast_units::Instant;

use super::in_flight::Out;
use super::queue::count_down;
use super::want::{ClientId, Selectors, Token, Tokens};

/// Lifetime of Interests, where what they request exists. Those that wait longer for the first answer have that as their lifetime.
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
pub(super) struct Pending {
    object: Object,
    /// Interests that left.
    pub attempts: u32,
    due_at: Option<Instant>,
    /// The last of them, and when it left, for this token or for another one.
    sent: Option<(Interest, Instant)>,
    /// It left for this token, and its Data may be on the way.
    is_out: bool,
}

impl Pending {
    /// Returns whose it is.
    pub(super) const fn token(&self) -> Token {
        self.object.token
    }

    /// Returns the name that is requested.
    pub(super) fn name(&self) -> Option<&Name> {
        self.sent.as_ref().map(|(interest, _)| interest.name())
    }

    /// Returns when the last Interest left, for this token or for another one.
    pub(super) fn sent_at(&self) -> Option<Instant> {
        self.sent.as_ref().map(|(_, sent_at)| *sent_at)
    }

    /// Returns the Interest, if it is like `selectors` and its Data may be on the way.
    pub(super) fn out(&self, now: Instant, selectors: &Selectors) -> Option<Out> {
        let (interest, sent_at) = self.sent.as_ref().filter(|_| self.is_out)?;
        let expires_at = *sent_at + LIFETIME;
        let is_like = expires_at > now && Selectors::of(interest) == *selectors;
        Some(Out {
            nonce: interest.nonce().filter(|_| is_like)?,
            sent_at: *sent_at,
            expires_at,
        })
    }
}

/// Those that did not come yet. Whoever requests them bounds their number.
#[derive(Clone, Debug, Default)]
pub(super) struct Objects {
    pending: BTreeMap<Token, Pending>,
    of_clients: BTreeMap<ClientId, usize>,
    /// Those that longer names answer.
    prefixes: BTreeSet<Token>,
}

impl Objects {
    /// Adds `object`. Returns whether it takes the place of another request.
    pub(super) fn insert(&mut self, object: Object) -> bool {
        let pending = Pending {
            attempts: 0,
            due_at: None,
            sent: None,
            is_out: false,
            object,
        };
        let token = pending.object.token;
        let is_again = self.pending.insert(token, pending).is_some();
        *self.of_clients.entry(token.client).or_default() += usize::from(!is_again);
        is_again
    }

    pub(super) fn remove(&mut self, token: Token) -> Option<Pending> {
        self.prefixes.remove(&token);
        let pending = self.pending.remove(&token)?;
        count_down(&mut self.of_clients, token.client);
        Some(pending)
    }

    /// Removes and returns those of `tokens`.
    pub(super) fn take(&mut self, tokens: &Tokens) -> Vec<Pending> {
        let gone = self.pending.range(tokens.clone()).map(|(token, _)| *token);
        let gone: Vec<_> = gone.collect();
        gone.into_iter()
            .filter_map(|token| self.remove(token))
            .collect()
    }

    /// Adds what was taken from others.
    pub(super) fn put(&mut self, pending: Pending) {
        let token = pending.token();
        if pending
            .sent
            .as_ref()
            .is_some_and(|(interest, _)| interest.can_be_prefix())
        {
            self.prefixes.insert(token);
        }
        *self.of_clients.entry(token.client).or_default() += 1;
        self.pending.insert(token, pending);
    }

    pub(super) fn get(&self, token: Token) -> Option<&Pending> {
        self.pending.get(&token)
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
            pending.is_out = false;
            pending.due_at = pending.due_at.map(|_| now);
        }
    }

    pub(super) fn count(&self, client: ClientId) -> usize {
        self.of_clients.get(&client).copied().unwrap_or(0)
    }

    pub(super) fn len(&self) -> usize {
        self.pending.len()
    }

    /// Returns the tokens that `name` answers as it is longer than theirs.
    pub(super) fn prefixes_of(&self, name: &Name) -> impl Iterator<Item = Token> {
        let is_longer = move |of: &Name| of.is_prefix_of(name) && of != name;
        let is_answered = move |pending: &Pending| pending.name().is_some_and(is_longer);
        let prefixes = self.prefixes.iter().copied();
        prefixes.filter(move |token| self.get(*token).is_some_and(is_answered))
    }

    /// Records that `interest` is out since `sent_at`, for `token` itself or, if it `rides`, for another one.
    pub(super) fn on_sent(
        &mut self,
        token: Token,
        (interest, sent_at): (Interest, Instant),
        rides: bool,
    ) {
        if let Some(pending) = self.pending.get_mut(&token) {
            if interest.can_be_prefix() {
                self.prefixes.insert(token);
            } else {
                self.prefixes.remove(&token);
            }
            pending.sent = Some((interest, sent_at));
            pending.is_out = !rides;
        }
    }

    /// Takes the Interest for `token` for answered. Returns when it left; `None`: no object is requested for it.
    pub(super) fn on_answer(&mut self, token: Token) -> Option<Option<Instant>> {
        let pending = self.pending.get_mut(&token)?;
        pending.is_out = false;
        Some(pending.sent_at())
    }

    /// Expects no Data any more for the Interest that had `nonce`.
    pub(super) fn on_nack(&mut self, token: Token, nonce: Option<Nonce>) {
        if let Some(pending) = self.pending.get_mut(&token)
            && let Some((interest, _)) = &pending.sent
            && interest.nonce() == nonce
        {
            pending.is_out = false;
        }
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
        let wait = retry.map_or(LIFETIME, |retry| retry.first_wait);
        let interest = interest.clone().lifetime(wait.max(LIFETIME));
        let archived = delegation.as_ref().filter(|_| pending.attempts % 2 == 0);
        pending.attempts += 1;
        Some(match archived {
            Some(delegation) => interest.forwarding_hint(delegation.clone()),
            None => interest,
        })
    }
}
