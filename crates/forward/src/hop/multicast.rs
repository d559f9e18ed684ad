//! Multicast, version 5 of NFD: every next hop, each with a back-off of its own.

use namecast_units::Instant;

use super::{Actions, Context, Decision, Hop};

/// It neither reads nor sends Nacks: other upstreams may answer at any time.
#[derive(Debug)]
pub(super) struct Multicast;

impl Hop for Multicast {
    fn on_interest(&mut self, now: Instant, context: &mut Context<'_>) -> Actions {
        context
            .all_due(now, context.eligible(), Decision::Forward)
            .into()
    }
}
