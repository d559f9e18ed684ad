//! Adaptive SRTT-based forwarding, version 5 of NFD's asf: the next hop that answers fastest, with a probe of another now
//! and then. The strategy is that of \[ASF\].

use core::time::Duration;

use namecast_units::Random;
use smallvec::SmallVec;

use super::kind::StrategyNameError;
use super::{Decision, Faces, InterestContext, Strategy};
use crate::face::FaceId;
use crate::table::{NextHop, Standing};
use namecast_packet::lp::NackReason;

/// Parameters of adaptive SRTT-based forwarding: NFD's, with its defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AsfConfig {
    /// Time from probe to probe of a namespace; one second at least when read from a name.
    pub probing_interval: Duration,
    /// So many Interests in a row without an answer, and a next hop counts as failed.
    pub max_timeouts: u32,
    /// How long measurements of a next hop that is no longer used are kept; more than the probing interval.
    pub measurements_lifetime: Duration,
}

/// Names of the parameters in strategy names; times are in milliseconds.
const PROBING_INTERVAL: &str = "probing-interval";
const MAX_TIMEOUTS: &str = "max-timeouts";
const MEASUREMENTS_LIFETIME: &str = "measurements-lifetime";

impl AsfConfig {
    /// NFD's defaults.
    pub const DEFAULT: Self = Self {
        probing_interval: Duration::from_secs(60),
        max_timeouts: 3,
        measurements_lifetime: Duration::from_secs(5 * 60),
    };

    /// Sets a parameter from a strategy name, if there is one so called.
    pub(super) fn set(
        &mut self,
        parameter: &str,
        value: &str,
    ) -> Option<Result<(), StrategyNameError>> {
        let number = value.bytes().all(|octet| octet.is_ascii_digit());
        let number = number.then(|| value.parse().ok()).flatten();
        let time = number.map(|number: u32| Duration::from_millis(number.into()));
        let (parameter, expected, is_set) = match parameter {
            PROBING_INTERVAL => {
                let time = time.filter(|time| *time >= Duration::from_secs(1));
                let is_set = time.map(|time| self.probing_interval = time);
                (PROBING_INTERVAL, "milliseconds, 1000 at least", is_set)
            }
            MAX_TIMEOUTS => {
                let number = number.filter(|number| *number > 0);
                let is_set = number.map(|number| self.max_timeouts = number);
                (MAX_TIMEOUTS, "a number from 1", is_set)
            }
            MEASUREMENTS_LIFETIME => {
                let is_set = time.map(|time| self.measurements_lifetime = time);
                (MEASUREMENTS_LIFETIME, "milliseconds", is_set)
            }
            _ => return None,
        };
        Some(is_set.ok_or(StrategyNameError::Value {
            parameter,
            expected,
        }))
    }

    pub(super) fn check(&self) -> Result<(), StrategyNameError> {
        if self.measurements_lifetime > self.probing_interval {
            return Ok(());
        }
        Err(StrategyNameError::Value {
            parameter: MEASUREMENTS_LIFETIME,
            expected: "more than the probing interval",
        })
    }

    /// The parameters that differ from their defaults.
    pub(super) fn parameters(&self) -> Vec<(&'static str, u128)> {
        let of = |config: &Self| {
            [
                (PROBING_INTERVAL, config.probing_interval.as_millis()),
                (MAX_TIMEOUTS, config.max_timeouts.into()),
                (
                    MEASUREMENTS_LIFETIME,
                    config.measurements_lifetime.as_millis(),
                ),
            ]
        };
        let pairs = of(self).into_iter().zip(of(&Self::DEFAULT));
        pairs
            .filter_map(|(own, default)| (own != default).then_some(own))
            .collect()
    }

    fn standing(&self, context: &InterestContext<'_>, face: FaceId) -> Standing {
        let unmeasured = Standing::Unmeasured;
        context.measured.map_or(unmeasured, |namespace| {
            namespace.standing(face, context.now, self)
        })
    }

    /// Working next hops by round-trip time, then unmeasured ones, then failed ones; each by cost.
    fn best(
        &self,
        context: &InterestContext<'_>,
        hops: impl Iterator<Item = NextHop>,
    ) -> Option<FaceId> {
        let rank = |hop: &NextHop| {
            let standing = self.standing(context, hop.face);
            let is_avoided = context.avoid == Some(hop.face);
            (is_avoided, standing, hop.cost, hop.face)
        };
        hops.min_by_key(rank).map(|hop| hop.face)
    }

    /// Another next hop to send the Interest to as well, if a probe is due: the first unmeasured one; or else, of n, the
    /// one of rank j with probability (n + 1 − j) / (1 + … + n).
    fn probe(
        &self,
        context: &InterestContext<'_>,
        best: FaceId,
        random: &mut Random,
    ) -> Option<FaceId> {
        context
            .measured
            .filter(|namespace| namespace.is_probe_due(context.now))?;
        let excluded = [Some(best), Some(context.ingress), context.avoid];
        let rank = |hop: NextHop| {
            let (group, smoothed) = match self.standing(context, hop.face) {
                Standing::Unmeasured => (0, Duration::ZERO),
                Standing::Working(smoothed) => (1, smoothed),
                Standing::TimedOut => (2, Duration::ZERO),
            };
            (group, smoothed, hop.cost, hop.face)
        };
        let hops = context
            .eligible_hops()
            .filter(|hop| !excluded.contains(&Some(hop.face)));
        let mut ranked: SmallVec<[_; 4]> = hops.map(rank).collect();
        ranked.sort_unstable();
        if let Some(&(0, .., unmeasured)) = ranked.first() {
            return Some(unmeasured);
        }
        let count = ranked.len() as u64;
        let mut left = random.below(count * (count + 1) / 2);
        let weights = (1..=count).rev();
        ranked
            .into_iter()
            .zip(weights)
            .find_map(|((.., face), weight)| {
                let is_it = left < weight;
                left = left.saturating_sub(weight);
                is_it.then_some(face)
            })
    }
}

impl Default for AsfConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Strategy for AsfConfig {
    /// The first transmission goes to the best next hop, and perhaps to another as a probe. A retransmission goes to the
    /// best that is not pending, at once; if all are, to the one used longest ago, with a back-off of its own.
    fn after_interest(&self, context: &InterestContext<'_>, random: &mut Random) -> Decision {
        let InterestContext { now, entry, .. } = *context;
        if !entry.has_pending_out_record(now) {
            let Some(best) = self.best(context, context.eligible_hops()) else {
                return Decision::Reject(NackReason::NoRoute);
            };
            return match self.probe(context, best, random) {
                Some(probe) => Decision::Probe { best, probe },
                None => Decision::Forward(Faces::from_iter([best])),
            };
        }
        let unused = context.eligible_hops();
        let unused = unused.filter(|hop| context.is_unused(hop.face));
        if let Some(face) = self.best(context, unused) {
            return Decision::Forward(Faces::from_iter([face]));
        }
        match context.used_longest_ago() {
            None => Decision::Wait,
            Some(face) if context.is_held_back(face) => Decision::Suppress,
            Some(face) => Decision::Forward(Faces::from_iter([face])),
        }
    }
}
