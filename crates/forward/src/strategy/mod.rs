//! Strategies: which next hops an Interest takes, and what Nacks mean.
//!
//! A strategy looks and returns a decision; the pipelines carry it out and keep the records. So a strategy is a pure
//! function of what it is shown and of chance, and a new one is a new file here and a few lines in [`StrategyKind`].

mod asf;
mod best_route;
mod kind;
mod multicast;
mod random;
mod self_learning;

use namecast_packet::Name;
use namecast_packet::lp::NackReason;
use namecast_units::{Instant, Random};
use smallvec::SmallVec;

use crate::counters::StrategyCounters;
use crate::face::{Face, FaceId, FaceTable};
use crate::table::pit::PendingInterest;
use crate::table::{Namespace, NextHop};

pub use asf::AsfConfig;
pub use kind::{StrategyKind, StrategyNameError};

/// Faces to send to, in order.
pub(crate) type Faces = SmallVec<[FaceId; 4]>;

/// What to do with an Interest that the content store cannot answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Send it to these faces for the first time.
    Forward(Faces),
    /// Send it to `best` for the first time, and with another Nonce to `probe`.
    Probe {
        /// Where the answer should come from.
        best: FaceId,
        /// Whose answer is measured.
        probe: FaceId,
    },
    /// Send it to these faces along routes, and say that it must not look for others.
    Follow(Faces),
    /// Send it again, to these faces.
    Retransmit(Faces),
    /// Hold it back: an equal one is on its way.
    Suppress,
    /// Keep it pending, though there is nowhere to send it now.
    Wait,
    /// Give up, and tell the face that it came from.
    Reject(NackReason),
}

impl Decision {
    /// Counts what was decided on an Interest, equal to one that `was_sent` before or not.
    #[inline]
    pub(crate) fn count(&self, was_sent: bool, counters: &mut StrategyCounters) {
        counters.interests += 1;
        match self {
            Self::Forward(_) | Self::Probe { .. } | Self::Follow(_) | Self::Retransmit(_) => {
                counters.retransmissions += u64::from(was_sent);
            }
            Self::Suppress => counters.suppressed += 1,
            Self::Wait => {}
            Self::Reject(_) => counters.rejected += 1,
        }
    }
}

/// What to do after an upstream sent a Nack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NackDecision {
    /// Nothing: others may still answer.
    Wait,
    /// Pass it to one downstream.
    ReturnTo(FaceId, NackReason),
    /// Pass it to all downstreams.
    ReturnToAll(NackReason),
}

/// A forwarding strategy.
pub(crate) trait Strategy {
    /// An Interest arrived that no cache answered; its in-record exists already.
    fn after_interest(&self, context: &InterestContext<'_>, random: &mut Random) -> Decision;

    /// A Nack arrived and stands in its out-record. Downstreams hear of it once no upstream may answer any more.
    fn after_nack(&self, now: Instant, entry: &PendingInterest) -> NackDecision {
        merge_nacks(now, entry)
    }

    /// Whether pending Interests go to a next hop that appears later.
    fn wants_new_next_hops(&self) -> bool {
        false
    }
}

/// What a strategy sees of an Interest.
pub(crate) struct InterestContext<'a> {
    pub(crate) now: Instant,
    pub(crate) name: &'a Name,
    /// Where the Interest came from.
    pub(crate) ingress: FaceId,
    pub(crate) entry: &'a PendingInterest,
    /// Cheapest first.
    pub(crate) next_hops: &'a [NextHop],
    pub(crate) faces: &'a FaceTable,
    /// Face that the asking application had a bad answer from: the last to try.
    pub(crate) avoid: Option<FaceId>,
    /// Whether the downstream forbade to look for a route.
    pub(crate) non_discovery: bool,
    /// How next hops have served names like this one, if the strategy measures that.
    pub(crate) measured: Option<&'a Namespace>,
}

impl InterestContext<'_> {
    /// The next hops that the Interest may take at all: cheapest first, but the one to avoid last.
    fn eligible_hops(&self) -> impl Iterator<Item = NextHop> + '_ {
        let hops = || self.next_hops.iter().copied();
        let is_avoided = |hop: &NextHop| Some(hop.face) == self.avoid;
        let preferred = hops().filter(move |hop| !is_avoided(hop));
        let avoided = hops().filter(is_avoided);
        preferred
            .chain(avoided)
            .filter(|hop| self.is_eligible(hop.face))
    }

    /// Their faces.
    fn eligible(&self) -> impl Iterator<Item = FaceId> + '_ {
        self.eligible_hops().map(|hop| hop.face)
    }

    /// Whether no transmission to the face is still within its lifetime.
    fn is_unused(&self, face: FaceId) -> bool {
        let record = self.entry.out_record(face);
        record.is_none_or(|record| record.expiry <= self.now)
    }

    /// The eligible face whose latest transmission is the oldest.
    fn used_longest_ago(&self) -> Option<FaceId> {
        let sent_at = |face: &FaceId| self.entry.out_record(*face).map(|record| record.sent_at);
        self.eligible().min_by_key(sent_at)
    }

    /// Whether it is too early for another transmission to the face, where each has a back-off of its own.
    fn is_held_back(&self, face: FaceId) -> bool {
        let record = self.entry.out_record(face);
        let mut record = record.into_iter().filter(|record| record.expiry > self.now);
        record.any(|record| self.now.since(record.sent_at) < record.suppression)
    }

    /// Does `send` with those of `faces` whose back-off is over.
    fn all_due(
        &self,
        faces: impl Iterator<Item = FaceId>,
        send: fn(Faces) -> Decision,
    ) -> Decision {
        let (held, due): (Faces, Faces) = faces.partition(|&face| self.is_held_back(face));
        match (due.is_empty(), held.is_empty()) {
            (false, _) => send(due),
            (true, false) => Decision::Suppress,
            (true, true) => Decision::Wait,
        }
    }

    /// Not back to where it came from, unless the link is ad hoc; and not out of its scope.
    pub(crate) fn is_eligible(&self, egress: FaceId) -> bool {
        let Some(face) = self.faces.get(egress) else {
            return false;
        };
        let from_local = self.faces.get(self.ingress).is_some_and(Face::is_local);
        (egress != self.ingress || face.is_ad_hoc())
            && scope_allows(self.name, from_local, face.is_local())
    }
}

/// Sends an Interest to the one face that `choose` gives, which is told whether it is new.
///
/// Any Interest for a name on its way counts as a retransmission, whoever sends it, as in NFD; its back-off is the
/// entry's.
fn one_at_a_time(
    context: &InterestContext<'_>,
    choose: impl FnOnce(bool) -> Option<FaceId>,
) -> Decision {
    let InterestContext { now, entry, .. } = *context;
    if !entry.has_pending_out_record(now) {
        return match choose(true) {
            Some(face) => Decision::Forward(Faces::from_iter([face])),
            None => Decision::Reject(NackReason::NoRoute),
        };
    }
    let last_sent = entry.out_records.iter().map(|record| record.sent_at).max();
    if last_sent.is_some_and(|last| now.since(last) < entry.suppression) {
        return Decision::Suppress;
    }
    match choose(false) {
        Some(face) => Decision::Retransmit(Faces::from_iter([face])),
        None => Decision::Wait,
    }
}

/// What NFD's best-route, random and asf make of Nacks: nothing until all upstreams have refused, then the mildest reason.
fn merge_nacks(now: Instant, entry: &PendingInterest) -> NackDecision {
    let pending = entry
        .out_records
        .iter()
        .filter(|r| r.nack.is_none() && r.expiry > now);
    let mut pending = pending.map(|record| record.face);
    let reason = entry
        .out_records
        .iter()
        .filter_map(|record| record.nack)
        .reduce(least_severe);
    let Some(reason) = reason else {
        return NackDecision::Wait;
    };
    match (pending.next(), pending.next()) {
        (None, _) => NackDecision::ReturnToAll(reason),
        // Two neighbours wait for each other: the one that we wait for must learn that we have nothing.
        (Some(last), None) if entry.in_record(last).is_some() => {
            NackDecision::ReturnTo(last, reason)
        }
        _ => NackDecision::Wait,
    }
}

/// Whether an Interest may pass between faces of the given scopes: `/localhost` stays on the host; `/localhop` goes one
/// hop, so it leaves the host only if it was born there.
pub(crate) fn scope_allows(name: &Name, from_local: bool, to_local: bool) -> bool {
    to_local || !is_localhost(name) && (from_local || !starts_with(name, b"localhop"))
}

/// Whether the name starts with `/localhost`.
pub(crate) fn is_localhost(name: &Name) -> bool {
    starts_with(name, b"localhost")
}

fn starts_with(name: &Name, word: &[u8]) -> bool {
    let [kind, length, rest @ ..] = &name.value()[..] else {
        return false;
    };
    // A generic component's type and the length of either word take one octet each.
    *kind == 8 && usize::from(*length) == word.len() && rest.starts_with(word)
}

/// The milder of two reasons: congestion, duplicate, no route, none. NFD's order for merging Nacks.
pub(crate) fn least_severe(a: NackReason, b: NackReason) -> NackReason {
    let severity = |reason| match reason {
        NackReason::Congestion => 0,
        NackReason::Duplicate => 1,
        NackReason::NoRoute => 2,
        NackReason::None | NackReason::Other(_) => 3,
    };
    if severity(a) <= severity(b) { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_hold_names_in() {
        let allows = |uri: &str, from, to| scope_allows(&uri.parse().unwrap(), from, to);
        let (local, remote) = (true, false);
        assert!(allows("/localhost/a", local, local) && !allows("/localhost/a", local, remote));
        assert!(allows("/localhop/a", local, remote) && allows("/localhop/a", remote, local));
        assert!(!allows("/localhop/a", remote, remote));
        assert!(allows("/a", remote, remote) && allows("/localhosts", remote, remote));
        assert!(allows("/32=localhost", remote, remote) && allows("/a/localhost", remote, remote));
    }

    #[test]
    fn the_milder_reason_wins_whichever_comes_first() {
        use NackReason::{Congestion, Duplicate, NoRoute, None, Other};
        let mild_to_severe = [Congestion, Duplicate, NoRoute, None];
        for (index, &mild) in mild_to_severe.iter().enumerate() {
            for &severe in &mild_to_severe[index..] {
                assert_eq!(least_severe(mild, severe), mild);
                assert_eq!(least_severe(severe, mild), mild);
            }
        }
        assert_eq!(least_severe(Other(7), NoRoute), NoRoute);
    }
}
