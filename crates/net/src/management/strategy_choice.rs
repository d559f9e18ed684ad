//! Management of strategies: `strategy-choice/set`, `strategy-choice/unset`, `strategy-choice/list`.

use bytes::Bytes;
use namecast_forward::{StrategyKind, StrategyNameError};
use namecast_packet::tlv::{self, Element, Writer};
use namecast_packet::{DecodeError, Name};
use serde::Serialize;

use super::control::decode_strategy;
use super::dataset::Item;
use super::numbers::STRATEGY;
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
}

impl Item for StrategyChoice {
    const TYPE: u32 = 128;
    const WHAT: &'static str = "StrategyChoice";

    fn encode_fields(&self, writer: &mut Writer) {
        self.prefix.encode(writer);
        writer.nested(STRATEGY, |inner| self.strategy.encode(inner));
    }

    fn read_field(&mut self, wire: &Bytes, field: &Element) -> Result<(), DecodeError> {
        match field.element_type {
            tlv::NAME => self.prefix = Name::from_element(wire, field)?,
            STRATEGY => self.strategy = decode_strategy(wire, field)?,
            _ => {}
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
                let kind = self.set_strategy(&prefix, wanted).await?;
                Ok(ControlParameters {
                    name: Some(prefix),
                    strategy: Some(kind.name()),
                    ..ControlParameters::default()
                })
            }
            b"unset" if prefix.is_empty() => Err(Refused::invalid()),
            b"unset" => {
                let unset = self.node.unset_strategy(prefix.clone()).await;
                unset.map_err(Refused::internal)?;
                Ok(ControlParameters {
                    name: Some(prefix),
                    ..ControlParameters::default()
                })
            }
            _ => Err(Refused::new(501, "Unsupported command")),
        }
    }

    async fn set_strategy(&self, prefix: &Name, wanted: &Name) -> Result<StrategyKind, Refused> {
        if prefix.len() > MAX_PREFIX_COMPONENTS {
            let limit = MAX_PREFIX_COMPONENTS;
            let text = format!("Prefix has too many components (limit is {limit})");
            return Err(Refused::new(414, text));
        }
        let kind = strategy_kind(wanted)?;
        let set = self.node.set_strategy(prefix.clone(), kind).await;
        set.map_err(Refused::internal)?;
        Ok(kind)
    }
}

/// All choices, and what holds where nothing was chosen.
pub(super) fn choices(chosen: Vec<(Name, StrategyKind)>) -> Vec<StrategyChoice> {
    let has_root = chosen.first().is_some_and(|(prefix, _)| prefix.is_empty());
    let default = (!has_root).then(|| (Name::root(), StrategyKind::default()));
    let all = default.into_iter().chain(chosen);
    all.map(|(prefix, kind)| StrategyChoice {
        prefix,
        strategy: kind.name(),
    })
    .collect()
}

/// The strategy of this name, with NFD's codes for one that is not there and one that cannot be made so.
fn strategy_kind(name: &Name) -> Result<StrategyKind, Refused> {
    StrategyKind::from_name(name).map_err(|error| match error {
        StrategyNameError::Unknown | StrategyNameError::Version { .. } => {
            Refused::new(404, "Strategy not registered")
        }
        StrategyNameError::Parameter(_) | StrategyNameError::Value { .. } => {
            Refused::new(409, format!("Error instantiating strategy: {error}"))
        }
    })
}
