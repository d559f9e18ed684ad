//! Best route, version 5 of NFD: the cheapest next hop first, the others on retransmission.

use namecast_units::Instant;

use super::{Decision, Faces, InterestContext, NackDecision, Strategy, least_severe};
use crate::face::FaceId;
use crate::table::pit::PendingInterest;
use namecast_packet::lp::NackReason;

pub(super) struct BestRoute;

impl Strategy for BestRoute {
    /// Any Interest for a name on its way counts as a retransmission, whoever sends it, as in NFD.
    fn after_interest(&self, context: &InterestContext<'_>) -> Decision {
        let InterestContext { now, entry, .. } = *context;
        if !entry.has_pending_out_record(now) {
            return match context.eligible().next() {
                Some(face) => Decision::Forward(Faces::from_iter([face])),
                None => Decision::Reject(NackReason::NoRoute),
            };
        }
        let last_sent = entry.out_records.iter().map(|record| record.sent_at).max();
        if last_sent.is_some_and(|last| now.since(last) < entry.suppression) {
            return Decision::Suppress;
        }
        let is_unused = |face: &FaceId| {
            let record = entry.out_record(*face);
            record.is_none_or(|record| record.expiry <= now)
        };
        let longest_ago = |face: &FaceId| entry.out_record(*face).map(|record| record.sent_at);
        let choice = context
            .eligible()
            .find(is_unused)
            .or_else(|| context.eligible().min_by_key(longest_ago));
        match choice {
            Some(face) => Decision::Retransmit(Faces::from_iter([face])),
            None => Decision::Wait,
        }
    }

    fn after_nack(&self, now: Instant, entry: &PendingInterest, _upstream: FaceId) -> NackDecision {
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
}
