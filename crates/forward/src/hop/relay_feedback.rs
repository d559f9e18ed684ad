//! What neighbours say of Data, for the applications of a program's own node.

use namecast_packet::Extensions;
use namecast_units::Instant;

use super::hop_count::{Answerer, count_hops};
use super::rate_feedback::tag_of;
use super::{Actions, Context, Hop};

/// The hop of a node that serves one program: hop count, source and rate tag of Data go on to its applications.
///
/// It trusts faces on this host as it does others, since one of them may be the host's own node. On a node that strangers'
/// applications connect to, [`HopCount`](super::HopCount) and [`RateFeedback`](super::RateFeedback) do not.
#[derive(Clone, Copy, Debug, Default)]
pub struct RelayFeedback;

impl Hop for RelayFeedback {
    fn on_data(&mut self, _now: Instant, context: &mut Context<'_>) -> Actions {
        let actions = count_hops(context, Answerer::Neighbour);
        match tag_of(context) {
            Some(tag) => actions.set_number(Extensions::RATE_TAG, tag),
            None => actions,
        }
    }
}
