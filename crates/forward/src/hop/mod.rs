//! Hops: what decides about packets on their way through a node, and remembers something for that.
//!
//! ```text
//!  Interest ─▶ on_arrival, if a hop takes those with extension fields
//!     │
//!     └─────▶ content store ─ hit ──▶ on_cache_hit ─▶ answer
//!                     └─────── miss ─▶ on_interest ──▶ next hops        installed hops first,
//!  Data ────▶ on_data ──▶ all who wait                                  then the strategy of the name
//!  Nack ────▶ on_nack ──▶ downstreams        time ─▶ on_expiry, on_timeout
//! ```
//!
//! A hop looks, remembers, and returns what it wants; the pipelines carry it out and keep the records. A strategy is a hop that
//! is chosen by prefix; a hop that is installed sees the packets of all names. The strategies here are the first users; ASF and
//! self-learning have states of their own, which there are only while some prefix needs them.

mod actions;
mod any_next;
mod asf;
mod best_route;
mod choices;
mod context;
mod hop_count;
mod hops;
mod kind;
mod measurements;
mod multicast;
mod named;
mod path_labels;
mod pcon;
mod piggyback;
mod random;
mod rate_feedback;
mod relay_feedback;
mod self_learning;

use core::fmt::Debug;

use namecast_packet::lp::NackReason;
use namecast_units::Instant;

use crate::face::FaceId;
use crate::table::pit::PendingInterest;

pub use actions::{Actions, Decision};
pub(crate) use actions::{Copied, Extras, Faces};
pub use any_next::{AnyNext, AnyNextConfig};
pub use asf::AsfConfig;
pub(crate) use choices::StrategyChoices;
pub use context::{Context, Event};
pub use hop_count::HopCount;
pub(crate) use hops::Hops;
pub use kind::{OwnStrategy, StrategyKind, StrategyNameError};
pub use named::{HopNameError, NamedHop};
pub use path_labels::{PathLabels, PathLabelsConfig};
pub use pcon::PconProfile;
pub(crate) use piggyback::Bundling;
pub use piggyback::{Piggyback, PiggybackConfig};
pub use rate_feedback::{RateEstimator, RateFeedback, RateFeedbackConfig, RateFeedbackError};
pub use relay_feedback::RelayFeedback;
pub use self_learning::{LEARNED_COST, LearnedNews, Learning};

/// A rule about packets: a forwarding strategy, or an extension of the forwarding plane.
///
/// [`Forwarder::install`](crate::Forwarder::install) has it see the packets of all names,
/// [`Forwarder::add_strategy`](crate::Forwarder::add_strategy) makes it a strategy. What it does not implement, it leaves to others.
/// Like all of the core it knows no clock and no randomness of its own. What it remembers of a face or of a pending Interest the
/// node's tables carry: see [`Context::face_state`] and [`Context::entry_state`].
pub trait Hop: Debug + Send {
    /// An Interest with extension fields arrived, or any Nack, or chunks that a neighbour has, and nothing was made of it: no loop was looked for, no content store and
    /// no record of pending Interests. Only hops that [want to](Self::sees_arrivals) hear of it.
    ///
    /// With a decision other than to continue the hop has taken it, and sends what it wants by itself; it may be dropped.
    fn on_arrival(&mut self, now: Instant, context: &mut Context<'_>) -> Actions {
        let _ = (now, context);
        Actions::default()
    }

    /// A face is gone.
    fn on_face_removed(&mut self, face: FaceId) {
        let _ = face;
    }

    /// An Interest arrived that the content store does not answer; it is pending already.
    fn on_interest(&mut self, now: Instant, context: &mut Context<'_>) -> Actions {
        let _ = (now, context);
        Actions::default()
    }

    /// Data arrived; those who wait for it are still pending. There may be none.
    ///
    /// Data may be dropped, or forwarded to faces besides those that wait.
    fn on_data(&mut self, now: Instant, context: &mut Context<'_>) -> Actions {
        let _ = (now, context);
        Actions::default()
    }

    /// The content store has Data for an Interest, which is not pending.
    ///
    /// The Interest may be dropped. A decision other than that or to continue has it treated as if there were no such Data.
    fn on_cache_hit(&mut self, now: Instant, context: &mut Context<'_>) -> Actions {
        let _ = (now, context);
        Actions::default()
    }

    /// An Interest came back from where it was sent; its record says so already.
    fn on_nack(&mut self, now: Instant, context: &mut Context<'_>) -> Actions {
        let _ = (now, context);
        Actions::default()
    }

    /// A pending Interest's time is over, and it is about to be forgotten. Nothing is decided about it any more.
    fn on_expiry(&mut self, now: Instant, context: &mut Context<'_>) -> Actions {
        let _ = (now, context);
        Actions::default()
    }

    /// The time that [`poll_timeout`](Self::poll_timeout) named has come. There is no packet to decide about.
    fn on_timeout(&mut self, now: Instant, context: &mut Context<'_>) -> Actions {
        let _ = (now, context);
        Actions::default()
    }

    /// When to call [`on_timeout`](Self::on_timeout) next, if ever.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// Returns whether [`on_arrival`](Self::on_arrival) is to be called.
    fn sees_arrivals(&self) -> bool {
        false
    }

    /// Returns whether neighbours are to hear that requests for any next packets are counted here.
    #[doc(hidden)]
    fn counts_requests(&self) -> bool {
        false
    }

    /// How bundles are treated, of [`Piggyback`] alone: that is for the pipeline to do, and the hop is asked about nothing else.
    #[doc(hidden)]
    fn piggyback(&self) -> Option<PiggybackConfig> {
        None
    }
}

/// Sends an Interest to the one face that `choose` gives, which is told whether it is new.
///
/// Any Interest for a name on its way counts as a retransmission, whoever sends it, as in NFD; its back-off is the
/// entry's.
fn one_at_a_time(
    now: Instant,
    context: &mut Context<'_>,
    choose: impl FnOnce(&mut Context<'_>, bool) -> Option<FaceId>,
) -> Decision {
    let entry = context.entry();
    if !entry.has_pending_out_record(now) {
        return match choose(context, true) {
            Some(face) => Decision::Forward([face].into_iter().collect()),
            None => Decision::Reject(NackReason::NoRoute),
        };
    }
    let last_sent = entry.out_records.iter().map(|record| record.sent_at).max();
    let is_early = last_sent.is_some_and(|last| now.since(last) < entry.suppression);
    if is_early && context.is_awaited(now) {
        return Decision::Suppress;
    }
    match choose(context, false) {
        Some(face) => Decision::Retransmit([face].into_iter().collect()),
        None => Decision::Wait,
    }
}

/// What NFD's best-route, random and asf make of Nacks: nothing until all upstreams have refused, then the mildest reason.
fn merge_nacks(now: Instant, entry: &PendingInterest) -> Decision {
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
        return Decision::Wait;
    };
    match (pending.next(), pending.next()) {
        (None, _) => Decision::Reject(reason),
        // Two neighbours wait for each other: the one that we wait for must learn that we have nothing.
        (Some(last), None) if entry.in_record(last).is_some() => Decision::RejectTo(last, reason),
        _ => Decision::Wait,
    }
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
