//! Management of strategies: `strategy-choice/set`, `strategy-choice/unset`, `strategy-choice/list`.

use bytes::Bytes;
use namecast_apps::management::Item;
use namecast_apps::management::numbers::STRATEGY;
use namecast_forward::{StrategyKind, StrategyNameError};
use namecast_packet::tlv::{self, Element, Writer};
use namecast_packet::{DecodeError, Field, Name};

use super::{ControlParameters, MAX_PREFIX_COMPONENTS, Manager, Refused};
use crate::node::{STRATEGY_COUNTS, StrategyChoice};

/// Ours, from the numbers for applications, and even, so that others skip them. In the order of the fields above.
const COUNTS: [u32; STRATEGY_COUNTS] = [240, 242, 244, 246, 248, 250, 252];

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
