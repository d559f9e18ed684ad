//! Share-based forwarding of \[PCON\]: a next hop whose Data come back marked loses some of its share to the others.

use core::time::Duration;
use std::collections::BTreeMap;

use namecast_packet::lp::NackReason;
use namecast_units::Instant;
use smallvec::SmallVec;

use super::kind::{StrategyKind, StrategyNameError};
use super::{Actions, Context, Decision, Hop, merge_nacks};
use crate::face::FaceId;
use crate::table::NextHop;

/// Which PCON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PconProfile {
    /// As published: all on the cheapest next hop at first, and also Nacks and Interests without an answer take shares; one Interest
    /// of a thousand is copied to all next hops.
    #[default]
    Published,
    /// As ndnSIM has it: equal shares at first, and marks only.
    NdnSim,
}

/// Part of its share that a next hop loses for a mark, and part of all for an Interest without an answer.
const CHANGE: f64 = 0.02;
/// How likely an Interest goes to all next hops.
const PROBE: f64 = 0.001;
/// Pause between two Nacks of one next hop that count.
const NACK_PAUSE: Duration = Duration::from_millis(110);
/// Name of the parameter in strategy names.
const PROFILE: &str = "profile";

impl PconProfile {
    /// Sets a parameter from a strategy name, if there is one so called.
    pub(super) fn set(
        &mut self,
        parameter: &str,
        value: &str,
    ) -> Option<Result<(), StrategyNameError>> {
        if parameter != PROFILE {
            return None;
        }
        *self = match value {
            "published" => Self::Published,
            "ndnsim" => Self::NdnSim,
            _ => {
                return Some(Err(StrategyNameError::Value {
                    parameter: PROFILE,
                    expected: "published or ndnsim",
                }));
            }
        };
        Some(Ok(()))
    }

    /// The parameters that differ from their defaults.
    pub(super) fn parameters(self) -> Vec<(&'static str, String)> {
        match self {
            Self::Published => Vec::new(),
            Self::NdnSim => vec![(PROFILE, "ndnsim".to_owned())],
        }
    }
}

/// The strategy for all prefixes that have it.
#[derive(Debug)]
pub(crate) struct Pcon {
    /// Prefixes that have it.
    pub(crate) choices: usize,
    /// By the hash of a prefix with routes.
    shares: BTreeMap<u64, Shares>,
    /// Prefixes whose shares are remembered; beyond, all begin anew.
    capacity: usize,
}

impl Pcon {
    pub(crate) const fn new(capacity: usize) -> Self {
        Self {
            choices: 0,
            shares: BTreeMap::new(),
            capacity,
        }
    }

    pub(crate) fn remove_face(&mut self, face: FaceId) {
        for shares in self.shares.values_mut() {
            shares.0.retain(|share| share.face != face);
        }
    }

    /// The shares of the next hops of a name.
    fn shares(&mut self, profile: PconProfile, context: &Context<'_>) -> &mut Shares {
        let depth = context.tables.fib.depth(context.name, context.hashes);
        let prefix = context.hashes.hash(depth);
        if self.shares.len() >= self.capacity && !self.shares.contains_key(&prefix) {
            self.shares.clear();
        }
        let shares = self.shares.entry(prefix).or_default();
        shares.settle(
            profile,
            context.tables.fib.next_hops(context.name, context.hashes),
        );
        shares
    }
}

impl Hop for Pcon {
    /// Equal Interests of others are held back; retransmissions go on.
    fn on_interest(&mut self, now: Instant, context: &mut Context<'_>) -> Actions {
        let Some(profile) = profile_of(context) else {
            return Actions::default();
        };
        let is_pending = context.is_awaited(now);
        if is_pending && !context.is_retransmission {
            return Decision::Suppress.into();
        }
        let eligible: SmallVec<[FaceId; 4]> = context.eligible().collect();
        let draw = context.random.unit();
        let Some(chosen) = self.shares(profile, context).draw(draw, &eligible) else {
            return Decision::Reject(NackReason::NoRoute).into();
        };
        let probes = profile == PconProfile::Published && context.random.chance(PROBE);
        let others = eligible
            .into_iter()
            .filter(|&face| probes && face != chosen);
        let faces = core::iter::once(chosen).chain(others).collect();
        match is_pending {
            true => Decision::Retransmit(faces).into(),
            false => Decision::Forward(faces).into(),
        }
    }

    /// Data that answer a marked Interest are marked, since its direction is congested.
    fn on_data(&mut self, _now: Instant, context: &mut Context<'_>) -> Actions {
        let Some(profile) = profile_of(context) else {
            return Actions::default();
        };
        let mark = context.fields.congestion_mark;
        if mark > 0 {
            let face = context.face;
            self.shares(profile, context)
                .take(face, |share| CHANGE * share);
        }
        let mut entries = context.entries.iter();
        let is_marked = profile == PconProfile::Published
            && entries.any(|&id| {
                let mut downstreams = context.downstreams(id);
                downstreams.any(|(_, fields)| fields.congestion_mark > 0)
            });
        match is_marked && mark == 0 {
            true => Actions::default().set_congestion_mark(1),
            false => Actions::default(),
        }
    }

    fn on_nack(&mut self, now: Instant, context: &mut Context<'_>) -> Actions {
        if context.nack == Some(NackReason::Congestion)
            && profile_of(context) == Some(PconProfile::Published)
        {
            let face = context.face;
            let shares = self.shares(PconProfile::Published, context);
            if shares.admits_nack(now, face) {
                shares.take(face, |share| CHANGE * share);
            }
        }
        merge_nacks(now, context.entry()).into()
    }

    fn on_expiry(&mut self, _now: Instant, context: &mut Context<'_>) -> Actions {
        if profile_of(context) == Some(PconProfile::Published) {
            let asked = &context.entry().out_records;
            let asked: SmallVec<[FaceId; 4]> = asked.iter().map(|record| record.face).collect();
            let shares = self.shares(PconProfile::Published, context);
            asked.iter().for_each(|&face| shares.take(face, |_| CHANGE));
        }
        Actions::default()
    }
}

/// The profile of a name whose strategy this is.
fn profile_of(context: &Context<'_>) -> Option<PconProfile> {
    match context.choices.find(context.name, context.hashes).1 {
        StrategyKind::Pcon(profile) => Some(*profile),
        _ => None,
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Share {
    face: FaceId,
    part: f64,
    /// When a Nack counts again.
    nack_at: Instant,
}

/// The shares of a prefix's next hops, the cheapest first. They are 1 together.
#[derive(Debug, Default)]
struct Shares(SmallVec<[Share; 4]>);

impl Shares {
    /// Gives each next hop a share: a new one none, unless all are new; what those had that are gone goes to all in proportion.
    fn settle(&mut self, profile: PconProfile, hops: &[NextHop]) {
        let is_same = self
            .0
            .iter()
            .map(|share| share.face)
            .eq(hops.iter().map(|hop| hop.face));
        if is_same {
            return;
        }
        let known = core::mem::take(&mut self.0);
        self.0.extend(hops.iter().map(|hop| {
            let known = known.iter().find(|share| share.face == hop.face);
            known.copied().unwrap_or(Share {
                face: hop.face,
                part: 0.0,
                nack_at: Instant::ZERO,
            })
        }));
        let total: f64 = self.0.iter().map(|share| share.part).sum();
        if total > 0.0 {
            self.0.iter_mut().for_each(|share| share.part /= total);
            return;
        }
        let count = self.0.len();
        for (place, share) in self.0.iter_mut().enumerate() {
            share.part = match (profile, place) {
                (PconProfile::NdnSim, _) => 1.0 / count as f64,
                (PconProfile::Published, 0) => 1.0,
                (PconProfile::Published, _) => 0.0,
            };
        }
    }

    /// The next hop that a number from 0 to 1 falls to, of those that are eligible.
    fn draw(&self, number: f64, eligible: &[FaceId]) -> Option<FaceId> {
        let part = |face: FaceId| {
            let mut shares = self.0.iter();
            shares
                .find(|share| share.face == face)
                .map_or(0.0, |share| share.part)
        };
        let total: f64 = eligible.iter().map(|&face| part(face)).sum();
        let mut left = number * total;
        let chosen = eligible.iter().copied().find(|&face| {
            let is_it = left < part(face);
            left -= part(face);
            is_it
        });
        chosen.or(eligible.first().copied())
    }

    /// Takes some of the share of a next hop, as `how_much` says of it, and spreads it equally over the others.
    fn take(&mut self, face: FaceId, how_much: impl Fn(f64) -> f64) {
        let others = self.0.len().saturating_sub(1);
        let mut shares = self.0.iter_mut();
        let Some(loser) = shares
            .find(|share| share.face == face)
            .filter(|_| others > 0)
        else {
            return;
        };
        let taken = how_much(loser.part).min(loser.part);
        loser.part -= taken;
        let others = others as f64;
        let winners = self.0.iter_mut().filter(|share| share.face != face);
        winners.for_each(|share| share.part += taken / others);
    }

    /// Whether a Nack of a next hop counts, which it then does not for a while.
    fn admits_nack(&mut self, now: Instant, face: FaceId) -> bool {
        let mut shares = self.0.iter_mut();
        let share = shares.find(|share| share.face == face && share.nack_at <= now);
        share
            .map(|share| share.nack_at = now + NACK_PAUSE)
            .is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hops(faces: &[u64]) -> Vec<NextHop> {
        let hop = |&face| NextHop {
            face: FaceId::from_number(face),
            cost: face,
        };
        faces.iter().map(hop).collect()
    }

    fn parts(shares: &Shares) -> Vec<f64> {
        let parts = shares.0.iter().map(|share| share.part);
        parts.map(|part| (part * 1e6).round() / 1e6).collect()
    }

    const FIRST: FaceId = FaceId::from_number(1);

    /// 2 % of 1 to two others, 1 % each; then 2 % of 0.98; then 0.02 of all.
    #[test]
    fn a_mark_takes_two_percent_of_a_share_and_a_timeout_two_of_all() {
        let mut shares = Shares::default();
        shares.settle(PconProfile::Published, &hops(&[1, 2, 3]));
        assert_eq!(parts(&shares), [1.0, 0.0, 0.0]);
        shares.take(FIRST, |share| CHANGE * share);
        assert_eq!(parts(&shares), [0.98, 0.01, 0.01]);
        shares.take(FIRST, |share| CHANGE * share);
        assert_eq!(parts(&shares), [0.9604, 0.0198, 0.0198]);
        shares.take(FIRST, |_| CHANGE);
        assert_eq!(parts(&shares), [0.9404, 0.0298, 0.0298]);
        let second = FaceId::from_number(2);
        shares.take(second, |_| CHANGE);
        shares.take(second, |_| CHANGE);
        assert_eq!(parts(&shares), [0.9553, 0.0, 0.0447]);
    }

    /// The share of a next hop that is gone is the others', and a new one begins with none.
    #[test]
    fn shares_are_one_together_whatever_comes_and_goes() {
        let mut shares = Shares::default();
        shares.settle(PconProfile::NdnSim, &hops(&[1, 2, 3, 4]));
        assert_eq!(parts(&shares), [0.25; 4]);
        shares.settle(PconProfile::NdnSim, &hops(&[1, 3, 5]));
        assert_eq!(parts(&shares), [0.5, 0.5, 0.0]);
        shares.settle(PconProfile::NdnSim, &hops(&[5]));
        assert_eq!(parts(&shares), [1.0]);
        shares.take(FaceId::from_number(5), |share| CHANGE * share);
        assert_eq!(parts(&shares), [1.0]);
    }

    #[test]
    fn a_number_falls_to_the_next_hop_that_has_its_part() {
        let mut shares = Shares::default();
        shares.settle(PconProfile::NdnSim, &hops(&[1, 2, 3, 4]));
        let [first, second, third] = [1, 2, 3].map(FaceId::from_number);
        let all = [first, second, third];
        let drawn = [0.0, 0.33, 0.34, 0.66, 0.67, 0.99].map(|number| shares.draw(number, &all));
        let expected = [first, first, second, second, third, third];
        assert_eq!(drawn, expected.map(Some));
        assert_eq!(shares.draw(0.99, &[third]), Some(third));
        assert_eq!(
            shares.draw(0.5, &[FaceId::from_number(9)]),
            Some(FaceId::from_number(9))
        );
        assert_eq!(shares.draw(0.5, &[]), None);
    }

    #[test]
    fn nacks_of_one_next_hop_count_once_in_110_ms() {
        let mut shares = Shares::default();
        shares.settle(PconProfile::Published, &hops(&[1, 2]));
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let counted = [0, 109, 110, 200, 220].map(|millis| shares.admits_nack(at(millis), FIRST));
        assert_eq!(counted, [true, false, true, false, true]);
        assert!(shares.admits_nack(at(1), FaceId::from_number(2)));
    }
}
