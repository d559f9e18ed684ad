//! Which strategy holds where, and what became of the Interests that it decided on.

use namecast_packet::Name;

use super::StrategyKind;
use crate::counters::StrategyCounters;
use crate::name_hash::{NameHasher, NameHashes};
use crate::table::{AddRouteError, ChoiceId, PrefixTable};

#[derive(Debug)]
struct Choice {
    kind: StrategyKind,
    counters: StrategyCounters,
}

/// Strategies by name prefix.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct StrategyChoices {
    /// Of Interests for which nothing was chosen.
    default: StrategyCounters,
    prefixes: PrefixTable<Choice>,
}

impl StrategyChoices {
    pub(crate) fn new(hasher: NameHasher, capacity: usize) -> Self {
        Self {
            prefixes: PrefixTable::new(hasher, capacity),
            default: StrategyCounters::default(),
        }
    }

    /// The strategy chosen for exactly `prefix`.
    pub(crate) fn get(&mut self, prefix: &Name) -> Option<StrategyKind> {
        self.prefixes.get_mut(prefix).map(|choice| choice.kind)
    }

    /// Chooses a strategy. If it is another than before, counting begins anew; the choice whose counters are gone is
    /// returned.
    pub(crate) fn set(
        &mut self,
        prefix: &Name,
        kind: StrategyKind,
    ) -> Result<Option<ChoiceId>, AddRouteError> {
        let make = || Choice {
            kind,
            counters: StrategyCounters::default(),
        };
        let choice = self.prefixes.get_or_insert(prefix, make)?;
        if choice.kind == kind {
            return Ok(None);
        }
        *choice = make();
        Ok(self.prefixes.place(prefix).map(ChoiceId::from_place))
    }

    /// Takes a choice back, and returns what stood for it.
    pub(crate) fn unset(&mut self, prefix: &Name) -> Option<ChoiceId> {
        let place = self.prefixes.place(prefix)?;
        self.prefixes.remove(prefix);
        Some(ChoiceId::from_place(place))
    }

    /// The strategy in force for a name, and the choice by which it is.
    #[inline]
    pub(crate) fn find(&self, name: &Name, hashes: &NameHashes) -> (ChoiceId, &StrategyKind) {
        match self.prefixes.longest_place(name, hashes) {
            Some((place, choice)) => (ChoiceId::from_place(place), &choice.kind),
            None => (ChoiceId::DEFAULT, &StrategyKind::DEFAULT),
        }
    }

    /// The strategy that a choice stands for, if it does.
    pub(crate) fn kind(&self, choice: ChoiceId) -> Option<&StrategyKind> {
        match choice {
            ChoiceId::DEFAULT => Some(&StrategyKind::DEFAULT),
            other => self.prefixes.at(other.place()).map(|choice| &choice.kind),
        }
    }

    /// Components of the prefix by which a strategy was chosen for a name, and the strategy; none if none was.
    pub(crate) fn chosen(
        &self,
        name: &Name,
        hashes: &NameHashes,
    ) -> Option<(usize, &StrategyKind)> {
        let (depth, choice) = self.prefixes.longest_prefix(name, hashes)?;
        Some((depth, &choice.kind))
    }

    /// Counts for a choice.
    #[inline]
    pub(crate) fn count(&mut self, choice: ChoiceId, count: impl FnOnce(&mut StrategyCounters)) {
        match choice {
            ChoiceId::DEFAULT => count(&mut self.default),
            other => {
                if let Some(choice) = self.prefixes.at_mut(other.place()) {
                    count(&mut choice.counters);
                }
            }
        }
    }

    /// All choices, in no order that means anything.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Name, StrategyKind, StrategyCounters)> {
        let all = self.prefixes.iter();
        all.map(|(prefix, choice)| (prefix, choice.kind, choice.counters))
    }

    /// What became of Interests for which nothing was chosen.
    pub(crate) const fn default_counters(&self) -> StrategyCounters {
        self.default
    }
}
