//! Multicast, version 5 of NFD: every next hop, each with a back-off of its own.

use namecast_units::{Instant, Random};

use super::{Decision, Faces, InterestContext, NackDecision, Strategy};
use crate::table::pit::PendingInterest;

pub(super) struct Multicast;

impl Strategy for Multicast {
    fn after_interest(&self, context: &InterestContext<'_>, _random: &mut Random) -> Decision {
        let hops = context.eligible();
        let (held, due): (Faces, Faces) = hops.partition(|&face| context.is_held_back(face));
        match (due.is_empty(), held.is_empty()) {
            (false, _) => Decision::Forward(due),
            (true, false) => Decision::Suppress,
            (true, true) => Decision::Wait,
        }
    }

    /// Multicast neither reads nor sends Nacks: other upstreams may answer at any time.
    fn after_nack(&self, _now: Instant, _entry: &PendingInterest) -> NackDecision {
        NackDecision::Wait
    }

    fn wants_new_next_hops(&self) -> bool {
        true
    }
}
