//! Self-learning, version 1 of NFD: routes are found by asking everybody, and made by announcements that come with the answer.
//!
//! ```text
//!  no route, looks for one ──▶ every neighbour          no route, must follow one ──▶ Nack NoRoute
//!  a route                 ──▶ its next hops, marked NonDiscovery, so that nobody after them asks everybody
//! ```
//!
//! The way is that of \[SELFLEARNING\] and of NFD. Differs from NFD: transmissions are held back as in multicast; next hops that
//! lead back to where the Interest came from are none; and an Interest that must follow a route does not end one that is
//! looking for it.

use namecast_packet::lp::NackReason;
use namecast_units::{Instant, Random};

use super::{Decision, InterestContext, NackDecision, Strategy, merge_nacks};
use crate::face::Face;
use crate::table::pit::PendingInterest;

pub(super) struct SelfLearning;

impl Strategy for SelfLearning {
    fn after_interest(&self, context: &InterestContext<'_>, _random: &mut Random) -> Decision {
        if context.eligible().next().is_some() {
            return context.all_due(context.eligible(), Decision::Follow);
        }
        if !context.non_discovery {
            return context.all_due(context.neighbours(), Decision::Forward);
        }
        match context.entry.has_pending_out_record(context.now) {
            true => Decision::Wait,
            false => Decision::Reject(NackReason::NoRoute),
        }
    }

    /// Of those who were all asked, each may refuse, and most do as they were asked twice; and NFD's nodes take NoRoute for
    /// the end of a route. So only where routes were followed downstreams hear of it.
    fn after_nack(&self, now: Instant, entry: &PendingInterest) -> NackDecision {
        let mut sent = entry.out_records.iter();
        match sent.all(|record| record.non_discovery) {
            true => merge_nacks(now, entry),
            false => NackDecision::Wait,
        }
    }
}

impl InterestContext<'_> {
    /// All other hosts that the Interest may go to, routes or not.
    fn neighbours(&self) -> impl Iterator<Item = crate::face::FaceId> + '_ {
        let others = self.faces.iter().filter(|(_, face)| !Face::is_local(face));
        others.map(|(id, _)| id).filter(|&id| self.is_eligible(id))
    }
}
