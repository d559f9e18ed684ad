//! The counters of one flow: who has how many requests pending, and how many are pending upstream.

use bytes::Bytes;
use namecast_packet::AnyNextRequest;
use namecast_packet::any_next::{MAX_PENDING, PendingRequests};
use namecast_units::{Duration, Instant};
use smallvec::SmallVec;

use crate::face::FaceId;

/// Silence after which what was under way is lost: T. Receivers refresh their requests then.
const SILENCE: Duration = Duration::from_millis(250);
/// Silence of a flow upstream after which the node passes a refresh on: T/2, as receivers do not refresh at the same time.
const QUIET: Duration = Duration::from_millis(125);
const _: () = assert!(QUIET.as_nanos() * 2 == SILENCE.as_nanos());

/// Pending requests of one face.
#[derive(Clone, Debug)]
pub(super) struct Counter {
    pub(super) face: FaceId,
    requests: PendingRequests,
    pub(super) heard_at: Instant,
    /// PIT token that goes back with Data.
    pub(super) token: Option<Bytes>,
}

/// One copy of Data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Copy {
    pub(super) face: FaceId,
    pub(super) number: u32,
    pub(super) spare: u16,
    pub(super) token: Option<Bytes>,
}

/// One flow at one node.
///
/// ```text
/// on request (k, n, refresh) from f:  pr[f] = k                        if refresh, or nothing is known of f; sent[f] = n
///                                     pr[f] = k − (sent[f] − n)        otherwise
///                                     M = max pr > U: U = M, request (U, seen) upstream
/// on Data with number n:              U = U − (n − seen), seen = n
///                                     each f with pr[f] > 0: pr[f] −= 1, sent[f] += 1, copy
///                                     M = max pr > U: U = M, request (U, seen) upstream
/// ```
#[derive(Clone, Debug)]
pub(super) struct Flow {
    /// Where it comes from.
    pub(super) upstream: FaceId,
    /// Requests pending there: U.
    pending: u16,
    /// Number of the newest Data from there.
    seen: u32,
    /// Whether upstream has been told to forget what was under way, as nothing was known of this node's counter there.
    is_known: bool,
    requested_at: Instant,
    data_at: Instant,
    pub(super) counters: SmallVec<[Counter; 2]>,
}

impl Flow {
    /// A flow that nobody has requested.
    pub(super) fn new(upstream: FaceId) -> Self {
        Self {
            upstream,
            pending: 0,
            seen: 0,
            is_known: false,
            requested_at: Instant::ZERO,
            data_at: Instant::ZERO,
            counters: SmallVec::new(),
        }
    }

    /// Has the flow come from another face from now on.
    pub(super) const fn move_to(&mut self, upstream: FaceId) {
        self.upstream = upstream;
        self.pending = 0;
        self.is_known = false;
    }

    /// Records a request, and what its face wants back with Data.
    pub(super) fn on_request(
        &mut self,
        now: Instant,
        (face, token): (FaceId, Option<&Bytes>),
        request: &AnyNextRequest,
    ) {
        let known = self.counters.iter_mut().find(|it| it.face == face);
        let Some(counter) = known else {
            self.counters.push(Counter {
                face,
                requests: PendingRequests::new(request),
                heard_at: now,
                token: token.map(|token| Bytes::copy_from_slice(token)),
            });
            return;
        };
        counter.heard_at = now;
        if counter.token.as_ref() != token {
            counter.token = token.map(|token| Bytes::copy_from_slice(token));
        }
        counter.requests.update(request);
    }

    /// Returns what is to be requested upstream, if anything; `refresh`: a downstream has heard nothing for a while.
    pub(super) fn request(&mut self, now: Instant, refresh: bool) -> Option<AnyNextRequest> {
        let most = self.most_pending();
        let is_quiet = |since: Instant| now.since(since) >= QUIET;
        let is_lost = refresh
            && is_quiet(self.data_at)
            && (is_quiet(self.requested_at) || most != self.pending);
        let is_refresh = is_lost || !self.is_known;
        if most <= self.pending && !is_refresh {
            return None;
        }
        self.pending = most;
        self.requested_at = now;
        self.is_known = true;
        Some(AnyNextRequest {
            pending: most,
            seen: self.seen,
            refresh: is_refresh,
        })
    }

    /// Records Data from upstream with their number on the link. Returns whether the number was new.
    pub(super) const fn on_data(&mut self, now: Instant, number: u32) -> bool {
        self.data_at = now;
        let advance = number.wrapping_sub(self.seen);
        let is_new = advance != 0 && advance <= i32::MAX as u32;
        if is_new {
            let answered = if advance > MAX_PENDING as u32 {
                MAX_PENDING
            } else {
                advance as u16
            };
            self.pending = self.pending.saturating_sub(answered);
            self.seen = number;
        }
        is_new
    }

    /// Returns the copies that are sent of Data with so many requests to spare upstream.
    pub(super) fn copies(&mut self, spare: u16) -> impl Iterator<Item = Copy> {
        let upstream = self.upstream;
        let counters = self.counters.iter_mut();
        let others = counters.filter(move |it| it.face != upstream);
        others.filter_map(move |counter| {
            let number = counter.requests.answer()?;
            Some(Copy {
                face: counter.face,
                number,
                spare: spare.min(counter.requests.count()),
                token: counter.token.clone(),
            })
        })
    }

    /// Returns the most that any face has pending.
    pub(super) fn most_pending(&self) -> u16 {
        let pending = self.counters.iter().map(|it| it.requests.count());
        pending.max().unwrap_or(0)
    }

    #[cfg(test)]
    pub(super) fn pending_of(&self, face: FaceId) -> Option<u16> {
        let mut counters = self.counters.iter();
        let found = counters.find(|it| it.face == face);
        found.map(|it| it.requests.count())
    }

    #[cfg(test)]
    pub(super) const fn pending_upstream(&self) -> u16 {
        self.pending
    }
}
