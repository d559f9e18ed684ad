//! Management of strategies: `strategy-choice/set`, `strategy-choice/unset`, `strategy-choice/list`.

use bytes::Bytes;
use namecast_apps::management::Item;
use namecast_apps::management::numbers::STRATEGY;
use namecast_forward::{StrategyCounters, StrategyKind, StrategyNameError};
use namecast_packet::tlv::{self, Element, Writer};
use namecast_packet::{DecodeError, Field, Name};
use serde::Serialize;

use super::{ControlParameters, MAX_PREFIX_COMPONENTS, Manager, Refused};

/// The strategy of one prefix, as `strategy-choice/list` tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StrategyChoice {
    /// Names it is for.
    #[serde(serialize_with = "super::serialize_text")]
    pub prefix: Name,
    /// Name of the strategy.
    #[serde(serialize_with = "super::serialize_text")]
    pub strategy: Name,
    /// What became of their Interests; other forwarders do not tell.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub counts: Option<StrategyCounts>,
}

/// What became of the Interests that a strategy decided on, since it was chosen if these are numbers as forwarders tell them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StrategyCounts<N = u64> {
    /// Interests, retransmissions included, but not those that the content store answered.
    pub interests: N,
    /// Of these, sent again while the first was pending.
    pub retransmissions: N,
    /// Of these, held back since an equal one was on its way.
    pub suppressed: N,
    /// Of these, refused as there was no next hop.
    pub rejected: N,
    /// Pending Interests that Data satisfied.
    pub satisfied: N,
    /// Pending Interests whose time ran out.
    pub timeouts: N,
    /// Nacks from next hops.
    pub nacks: N,
}

/// Ours, from the numbers for applications, and even, so that others skip them. In the order of the fields above.
const COUNTS: [u32; 7] = [240, 242, 244, 246, 248, 250, 252];

impl<N: Copy> StrategyCounts<N> {
    /// All of them, in the order of the fields.
    pub const fn in_order(self) -> [N; COUNTS.len()] {
        [
            self.interests,
            self.retransmissions,
            self.suppressed,
            self.rejected,
            self.satisfied,
            self.timeouts,
            self.nacks,
        ]
    }

    /// All of them in that order, to be changed.
    pub const fn in_order_mut(&mut self) -> [&mut N; COUNTS.len()] {
        [
            &mut self.interests,
            &mut self.retransmissions,
            &mut self.suppressed,
            &mut self.rejected,
            &mut self.satisfied,
            &mut self.timeouts,
            &mut self.nacks,
        ]
    }
}

impl From<StrategyCounters> for StrategyCounts {
    fn from(counters: StrategyCounters) -> Self {
        Self {
            interests: counters.interests,
            retransmissions: counters.retransmissions,
            suppressed: counters.suppressed,
            rejected: counters.rejected,
            satisfied: counters.satisfied,
            timeouts: counters.timeouts,
            nacks: counters.nacks,
        }
    }
}

impl From<namecast_forward::StrategyChoice> for StrategyChoice {
    fn from(choice: namecast_forward::StrategyChoice) -> Self {
        Self {
            prefix: choice.prefix,
            strategy: choice.kind.name(),
            counts: Some(choice.counters.into()),
        }
    }
}

impl Item for StrategyChoice {
    const TYPE: u32 = 128;
    const WHAT: &'static str = "StrategyChoice";

    fn encode_fields(&self, writer: &mut Writer) {
        self.prefix.encode(writer);
        writer.nested(STRATEGY, |inner| self.strategy.encode(inner));
        if let Some(counts) = self.counts {
            for (number, count) in COUNTS.into_iter().zip(counts.in_order()) {
                writer.number(number, count);
            }
        }
    }

    fn read_field(&mut self, wire: &Bytes, field: &Element) -> Result<(), DecodeError> {
        match field.element_type {
            tlv::NAME => self.prefix = Name::from_element(wire, field)?,
            STRATEGY => self.strategy = Field::read(Self::WHAT, wire, field)?,
            other => {
                if let Some(at) = COUNTS.iter().position(|&number| number == other) {
                    let counts = self.counts.get_or_insert_default();
                    *counts.in_order_mut()[at] = field.number(Self::WHAT, wire)?;
                }
            }
        }
        Ok(())
    }
}

impl Manager {
    pub(super) async fn execute_strategy_choice(
        &self,
        verb: &[u8],
        parameters: &ControlParameters,
    ) -> Result<ControlParameters, Refused> {
        let prefix = parameters.name.clone().ok_or_else(Refused::invalid)?;
        match verb {
            b"set" => {
                let wanted = parameters.strategy.as_ref().ok_or_else(Refused::invalid)?;
                let kind = self.set_strategy(&prefix, wanted)?;
                Ok(ControlParameters {
                    name: Some(prefix),
                    strategy: Some(kind.name()),
                    ..ControlParameters::default()
                })
            }
            b"unset" if prefix.is_empty() => Err(Refused::invalid()),
            b"unset" => {
                let unset = self.node.unset_strategy(&prefix);
                unset.map_err(Refused::internal)?;
                Ok(ControlParameters {
                    name: Some(prefix),
                    ..ControlParameters::default()
                })
            }
            _ => Err(Refused::new(501, "Unsupported command")),
        }
    }

    fn set_strategy(&self, prefix: &Name, wanted: &Name) -> Result<StrategyKind, Refused> {
        if prefix.len() > MAX_PREFIX_COMPONENTS {
            let limit = MAX_PREFIX_COMPONENTS;
            let text = format!("Prefix has too many components (limit is {limit})");
            return Err(Refused::new(414, text));
        }
        let kind = (self.node.strategy_named(wanted)).map_err(refusal)?;
        let set = self.node.set_strategy(prefix, kind);
        set.map_err(Refused::internal)?;
        Ok(kind)
    }
}

/// NFD's codes for a strategy that is not there and one that cannot be made so.
fn refusal(error: StrategyNameError) -> Refused {
    match error {
        StrategyNameError::Unknown | StrategyNameError::Version { .. } => {
            Refused::new(404, "Strategy not registered")
        }
        StrategyNameError::Parameter(_) | StrategyNameError::Value { .. } => {
            Refused::new(409, format!("Error instantiating strategy: {error}"))
        }
    }
}
