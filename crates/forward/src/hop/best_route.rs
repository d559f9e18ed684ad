//! Best route, version 5 of NFD: the cheapest next hop first, the others on retransmission.

use namecast_units::Instant;

use super::{Actions, Context, Hop, merge_nacks, one_at_a_time};

#[derive(Debug)]
pub(super) struct BestRoute;

impl Hop for BestRoute {
    fn on_interest(&mut self, now: Instant, context: &mut Context<'_>) -> Actions {
        let decision = one_at_a_time(now, context, |context, is_new| {
            if is_new {
                return context.eligible().next();
            }
            let unused = context
                .eligible()
                .find(|&face| context.is_unused(now, face));
            unused.or_else(|| context.used_longest_ago())
        });
        decision.into()
    }

    fn on_nack(&mut self, now: Instant, context: &mut Context<'_>) -> Actions {
        merge_nacks(now, context.entry()).into()
    }
}
