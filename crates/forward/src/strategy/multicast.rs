//! Multicast, version 5 of NFD: every next hop, each with a back-off of its own.

use namecast_units::{Instant, Random};

use super::{Decision, InterestContext, NackDecision, Strategy};
use crate::table::pit::PendingInterest;

pub(super) struct Multicast;

impl Strategy for Multicast {
    fn after_interest(&self, context: &InterestContext<'_>, _random: &mut Random) -> Decision {
        context.all_due(context.eligible(), Decision::Forward)
    }

    /// Multicast neither reads nor sends Nacks: other upstreams may answer at any time.
    fn after_nack(&self, _now: Instant, _entry: &PendingInterest) -> NackDecision {
        NackDecision::Wait
    }

    fn wants_new_next_hops(&self) -> bool {
        true
    }
}
