//! Multicast, version 5 of NFD: every next hop, each with a back-off of its own.

use namecast_units::Instant;

use super::{Decision, Faces, InterestContext, NackDecision, Strategy};
use crate::face::FaceId;
use crate::table::pit::PendingInterest;

pub(super) struct Multicast;

impl Strategy for Multicast {
    fn after_interest(&self, context: &InterestContext<'_>) -> Decision {
        let InterestContext { now, entry, .. } = *context;
        let is_suppressed = |face: &FaceId| {
            let record = entry.out_record(*face).filter(|record| record.expiry > now);
            record.is_some_and(|record| now.since(record.sent_at) < record.suppression)
        };
        let (held, due): (Faces, Faces) = context.eligible().partition(is_suppressed);
        match (due.is_empty(), held.is_empty()) {
            (false, _) => Decision::Forward(due),
            (true, false) => Decision::Suppress,
            (true, true) => Decision::Wait,
        }
    }

    /// Multicast neither reads nor sends Nacks: other upstreams may answer at any time.
    fn after_nack(&self, _now: Instant, _entry: &PendingInterest, _from: FaceId) -> NackDecision {
        NackDecision::Wait
    }

    fn wants_new_next_hops(&self) -> bool {
        true
    }
}
