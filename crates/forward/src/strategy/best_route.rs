//! Best route, version 5 of NFD: the cheapest next hop first, the others on retransmission.

use namecast_units::Random;

use super::{Decision, InterestContext, Strategy, one_at_a_time};

pub(super) struct BestRoute;

impl Strategy for BestRoute {
    fn after_interest(&self, context: &InterestContext<'_>, _random: &mut Random) -> Decision {
        one_at_a_time(context, |is_new| {
            if is_new {
                return context.eligible().next();
            }
            let unused = context.eligible().find(|&face| context.is_unused(face));
            unused.or_else(|| context.used_longest_ago())
        })
    }
}
