//! Requests to join at the host: checked, bounded, and held until they are decided.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use namecast_packet::{Data, Interest, Name};
use namecast_units::{Duration, Instant};

use super::join::{InvitationSecret, Join};

/// Requests that wait to be decided.
const MAX_PENDING: usize = 64;
/// Of those, the requests that came in on one face, which may lead to a forwarder that many share.
const MAX_PER_FACE: usize = 32;
/// Interests of one request that are answered once it is decided.
const MAX_WAITERS: usize = 4;
/// Answers that are kept for requests that are sent again.
const MAX_ANSWERED: usize = 1_024;
/// Time for which a request waits to be decided, after it was sent last.
const DECISION_TIME: Duration = Duration::from_secs(60);

/// Counters of requests to join.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JoinCounters {
    /// Requests received, those sent again included.
    pub requests: u64,
    /// Of those, answered with a certificate.
    pub welcomed: u64,
    /// Of those, refused by the front-end.
    pub refused: u64,
    /// Of those, dropped: malformed.
    pub malformed: u64,
    /// Of those, dropped: no such invitation.
    pub unknown_invitation: u64,
    /// Of those, dropped: the tag is not one of the invitation's.
    pub wrong_tag: u64,
    /// Of those, dropped: not signed with the key that they are for.
    pub wrong_signature: u64,
    /// Of those, dropped: too many wait, or too many of their face.
    pub dropped_full: u64,
    /// Of those, dropped: nobody decided them in time.
    pub expired: u64,
}

/// An Interest that waits for an answer.
#[derive(Clone, Debug)]
struct Waiter {
    interest: Interest,
    pit_token: Option<Bytes>,
}

/// A request that waits to be decided.
#[derive(Debug)]
struct Pending {
    face: Option<u64>,
    waiters: Vec<Waiter>,
    expires_at: Instant,
}

/// Action for an Interest.
#[derive(Debug)]
pub(super) enum Step {
    /// Answer it with this content.
    Answer(Bytes),
    /// Refuse it.
    Refuse,
    /// There is no room for it now.
    Full,
    /// It waits. `Some`: the front-end is to decide.
    Wait(Option<Box<Join>>),
}

/// An Interest to answer.
pub(super) type Due = (Interest, Option<Bytes>);

/// Requests to join one room.
#[derive(Debug)]
pub(super) struct Door {
    root: Name,
    anchor: [u8; 32],
    invitations: BTreeMap<[u8; 8], InvitationSecret>,
    /// By the digest of the newcomer's key.
    pending: BTreeMap<[u8; 32], Pending>,
    answered: BTreeMap<[u8; 32], Bytes>,
    order: VecDeque<[u8; 32]>,
    pub(super) counters: JoinCounters,
}

impl Door {
    pub(super) const fn new(root: Name, anchor: [u8; 32]) -> Self {
        Self {
            root,
            anchor,
            invitations: BTreeMap::new(),
            pending: BTreeMap::new(),
            answered: BTreeMap::new(),
            order: VecDeque::new(),
            counters: JoinCounters {
                requests: 0,
                welcomed: 0,
                refused: 0,
                malformed: 0,
                unknown_invitation: 0,
                wrong_tag: 0,
                wrong_signature: 0,
                dropped_full: 0,
                expired: 0,
            },
        }
    }

    /// Sets the invitations whose requests are taken. Answers are forgotten: a key may be revoked by now.
    pub(super) fn set_invitations(&mut self, secrets: &[InvitationSecret]) {
        self.invitations = secrets.iter().map(|it| (it.id(), *it)).collect();
        self.answered.clear();
        self.order.clear();
    }

    /// Takes an Interest to join, which came in on `face`. A tag is checked before a signature: whoever has no token costs one hash.
    pub(super) fn handle_interest(
        &mut self,
        now: Instant,
        interest: &Interest,
        (face, pit_token): (Option<u64>, Option<Bytes>),
    ) -> Step {
        self.counters.requests += 1;
        self.handle_timeout(now);
        let join = interest.parameters().map(|it| Join::decode(&it));
        let Some(Ok(join)) = join else {
            self.counters.malformed += 1;
            return Step::Refuse;
        };
        let Some(secret) = self.invitations.get(&join.invitation) else {
            self.counters.unknown_invitation += 1;
            return Step::Refuse;
        };
        if !join.is_by((&self.root, &self.anchor), secret) {
            self.counters.wrong_tag += 1;
            return Step::Refuse;
        }
        let digest = join.key.digest();
        if let Some(content) = self.answered.get(&digest) {
            self.counters.welcomed += 1;
            return Step::Answer(content.clone());
        }
        let known = self.pending.contains_key(&digest);
        let of_face = self.pending.values().filter(|it| it.face == face).count();
        let is_full =
            self.pending.len() >= MAX_PENDING || (face.is_some() && of_face >= MAX_PER_FACE);
        if !known && is_full {
            self.counters.dropped_full += 1;
            return Step::Full;
        }
        if interest.verify(&join.key).is_err() {
            self.counters.wrong_signature += 1;
            return Step::Refuse;
        }
        let pending = self.pending.entry(digest).or_insert(Pending {
            face,
            waiters: Vec::new(),
            expires_at: now,
        });
        pending.expires_at = now + DECISION_TIME;
        let waiter = Waiter {
            interest: interest.clone(),
            pit_token,
        };
        let is_same = |it: &Waiter| {
            it.interest.name() == waiter.interest.name() && it.pit_token == waiter.pit_token
        };
        if !pending.waiters.iter().any(is_same) {
            if pending.waiters.len() == MAX_WAITERS {
                pending.waiters.remove(0);
            }
            pending.waiters.push(waiter);
        }
        Step::Wait((!known).then(|| Box::new(join)))
    }

    /// Decides the request of the key with this digest: `content` answers it, and `None` refuses it. Returns the Interests that waited.
    pub(super) fn decide(&mut self, digest: [u8; 32], content: Option<Bytes>) -> Vec<Due> {
        let pending = self.pending.remove(&digest);
        let waiters = pending.map_or_else(Vec::new, |it| it.waiters);
        match content {
            Some(content) => {
                self.counters.welcomed += waiters.len() as u64;
                if self.answered.insert(digest, content).is_none() {
                    self.order.push_back(digest);
                }
                if self.order.len() > MAX_ANSWERED
                    && let Some(oldest) = self.order.pop_front()
                {
                    self.answered.remove(&oldest);
                }
            }
            None => self.counters.refused += waiters.len() as u64,
        }
        let waiters = waiters.into_iter();
        waiters.map(|it| (it.interest, it.pit_token)).collect()
    }

    /// Returns the digests of the keys whose requests wait.
    pub(super) fn pending(&self) -> impl Iterator<Item = &[u8; 32]> {
        self.pending.keys()
    }

    /// Drops requests that nobody decided in time.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        let before = self.pending.len();
        self.pending.retain(|_, pending| pending.expires_at > now);
        self.counters.expired += (before - self.pending.len()) as u64;
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.pending.values().map(|it| it.expires_at).min()
    }

    /// The answer to `interest`: its name is the Interest's whole.
    pub(super) fn answer(interest: &Interest, content: Bytes) -> namecast_packet::DataBuilder {
        Data::builder(interest.name().detached()).content(content)
    }
}
