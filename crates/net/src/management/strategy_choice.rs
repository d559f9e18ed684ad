//! Management of strategies: `strategy-choice/list`.

use bytes::Bytes;
use namecast_forward::StrategyKind;
use namecast_packet::tlv::{self, Reader, Writer};
use namecast_packet::{DecodeError, Name};
use serde::Serialize;

use super::control::decode_strategy;
use super::dataset::Item;
use super::numbers::STRATEGY;

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

    fn decode_fields(wire: &Bytes, mut reader: Reader<'_>) -> Result<Self, DecodeError> {
        let mut choice = Self::default();
        while let Some(field) = reader.element(Self::WHAT)? {
            match field.element_type {
                tlv::NAME => choice.prefix = Name::from_element(wire, &field)?,
                STRATEGY => choice.strategy = decode_strategy(wire, &field)?,
                _ => {}
            }
        }
        Ok(choice)
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
