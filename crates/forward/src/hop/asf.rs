//! Adaptive SRTT-based forwarding, version 5 of NFD's asf: the next hop that answers fastest, with a probe of another now
//! and then. The strategy is that of \[ASF\].

use core::time::Duration;

use namecast_packet::Name;
use namecast_packet::lp::NackReason;
use namecast_units::Instant;
use smallvec::SmallVec;

use super::kind::{StrategyKind, StrategyNameError};
use super::measurements::{Exchange, Measurements, Namespace, Standing};
use super::{Actions, Context, Decision, Hop, merge_nacks};
use crate::face::FaceId;
use crate::name_hash::NameHashes;
use crate::table::NextHop;

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
    pub(super) fn parameters(&self) -> Vec<(&'static str, String)> {
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
            .map(|(parameter, value)| (parameter, value.to_string()))
            .collect()
    }
}

impl Default for AsfConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Adaptive SRTT-based forwarding for all prefixes that have it, each with its parameters.
#[derive(Debug)]
pub(crate) struct Asf {
    /// Prefixes that have it.
    pub(crate) choices: usize,
    pub(crate) measurements: Measurements,
}

impl Asf {
    /// Measures at most `capacity` pairs of a prefix and a next hop.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            choices: 0,
            measurements: Measurements::new(capacity),
        }
    }
}

impl Hop for Asf {
    fn on_interest(&mut self, now: Instant, context: &mut Context<'_>) -> Actions {
        let Some((namespace, config)) = measured_by(context, context.name, context.hashes) else {
            return Actions::default();
        };
        let choice = Choice {
            now,
            config,
            measured: self.measurements.namespace(namespace),
        };
        let decision = choice.decide(context);
        let mut sent = Exchange {
            now,
            namespace,
            face: FaceId::NONE,
            name: context.hashes.whole(),
        };
        let both;
        let (faces, probe): (&[FaceId], _) = match &decision {
            Decision::Forward(faces) => (faces, None),
            Decision::Probe { best, probe } => {
                both = [*best, *probe];
                (&both, Some(*probe))
            }
            _ => return decision.into(),
        };
        for &face in faces {
            if !context.may_reach(face) {
                continue;
            }
            sent.face = face;
            self.measurements.on_sent(&sent, &config, context.random);
            if probe == Some(face) {
                let next = now + config.probing_interval;
                self.measurements.on_probe(namespace, next);
            }
        }
        decision.into()
    }

    /// Where another face was faster there is no entry any more, and yet the answer to a probe must count: NFD keeps the
    /// entry for 50 ms more, here the measurements know what they wait for.
    fn on_data(&mut self, now: Instant, context: &mut Context<'_>) -> Actions {
        for &id in context.entries {
            let entry = context.tables.pit.get(id);
            let sent_at = entry.out_record(context.face).map(|record| record.sent_at);
            self.on_answer(now, context, &entry.name, sent_at);
        }
        if context.entries.is_empty() {
            self.on_answer(now, context, context.name, None);
        }
        Actions::default()
    }

    fn on_nack(&mut self, now: Instant, context: &mut Context<'_>) -> Actions {
        // Without a reason, as from a producer that has no such Data, it says nothing of the path.
        if context.nack != Some(NackReason::None)
            && let Some((namespace, _)) = measured_by(context, context.name, context.hashes)
        {
            self.measurements.on_nack(&Exchange {
                now,
                namespace,
                face: context.face,
                name: context.hashes.whole(),
            });
        }
        merge_nacks(now, context.entry()).into()
    }
}

impl Asf {
    /// Measures Data that answer an Interest called `asked`, which was sent to where they came from.
    fn on_answer(
        &mut self,
        now: Instant,
        context: &Context<'_>,
        asked: &Name,
        sent_at: Option<Instant>,
    ) {
        let shorter = match asked == context.name {
            true => None,
            false => context.tables.hashes(asked),
        };
        let hashes = shorter.as_ref().unwrap_or(context.hashes);
        if let Some((namespace, config)) = measured_by(context, asked, hashes) {
            let answer = Exchange {
                now,
                namespace,
                face: context.face,
                name: hashes.whole(),
            };
            self.measurements.on_data(&answer, sent_at, &config);
        }
    }
}

/// The namespace that an Interest called `name` is measured with, and the parameters, if its strategy is this: NFD's namespace,
/// which is the prefix with routes, or the one that the strategy is chosen for, whichever is longer.
fn measured_by(
    context: &Context<'_>,
    name: &Name,
    hashes: &NameHashes,
) -> Option<(u64, AsfConfig)> {
    let (depth, StrategyKind::Asf(config)) = context.choices.chosen(name, hashes)? else {
        return None;
    };
    let depth = depth.max(context.tables.fib.depth(name, hashes));
    Some((hashes.hash(depth), *config))
}

/// One choice of next hops.
struct Choice<'a> {
    now: Instant,
    config: AsfConfig,
    measured: Option<&'a Namespace>,
}

impl Choice<'_> {
    /// The first transmission goes to the best next hop, and perhaps to another as a probe. A retransmission goes to the
    /// best that is not pending, at once; if all are, to the one used longest ago, with a back-off of its own.
    fn decide(&self, context: &mut Context<'_>) -> Decision {
        let now = self.now;
        let to = |face| Decision::Forward([face].into_iter().collect());
        if !context.entry().has_pending_out_record(now) {
            let Some(best) = self.best(context, context.eligible_hops()) else {
                return Decision::Reject(NackReason::NoRoute);
            };
            return match self.probe(context, best) {
                Some(probe) => Decision::Probe { best, probe },
                None => to(best),
            };
        }
        let unused = context.eligible_hops();
        let unused = unused.filter(|hop| context.is_unused(now, hop.face));
        if let Some(face) = self.best(context, unused) {
            return to(face);
        }
        match context.used_longest_ago() {
            None => Decision::Wait,
            Some(face) if context.is_held_back(now, face) => Decision::Suppress,
            Some(face) => to(face),
        }
    }

    fn standing(&self, face: FaceId) -> Standing {
        let unmeasured = Standing::Unmeasured;
        self.measured.map_or(unmeasured, |namespace| {
            namespace.standing(face, self.now, &self.config)
        })
    }

    /// Working next hops by round-trip time, then unmeasured ones, then failed ones; each by cost.
    fn best(&self, context: &Context<'_>, hops: impl Iterator<Item = NextHop>) -> Option<FaceId> {
        let rank = |hop: &NextHop| {
            let is_avoided = context.fields.avoid_face == Some(hop.face);
            (is_avoided, self.standing(hop.face), hop.cost, hop.face)
        };
        hops.min_by_key(rank).map(|hop| hop.face)
    }

    /// Another next hop to send the Interest to as well, if a probe is due: the first unmeasured one; or else, of n, the
    /// one of rank j with probability (n + 1 − j) / (1 + … + n).
    fn probe(&self, context: &mut Context<'_>, best: FaceId) -> Option<FaceId> {
        self.measured
            .filter(|namespace| namespace.is_probe_due(self.now))?;
        let excluded = [Some(best), Some(context.face), context.fields.avoid_face];
        let rank = |hop: NextHop| {
            let (group, smoothed) = match self.standing(hop.face) {
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
        let mut left = context.random.below(count * (count + 1) / 2);
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
