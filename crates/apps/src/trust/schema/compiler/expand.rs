//! Rules are written out: a chain of components for each way to read the rules that they refer to.

use std::rc::Rc;

use bytes::Bytes;

use super::super::error::{TextError, TextProblem};
use super::super::limits::Limits;
use super::numbers::{Numbered, NumberedPart, Tag, Term};
use super::{Names, RuleId};

/// A name that a rule describes, without references.
#[derive(Clone)]
pub(super) struct Chain<'a> {
    pub steps: Vec<Step>,
    pub terms: Vec<&'a Term>,
    pub signers: Rc<[RuleId]>,
}

/// A component of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Value(Bytes),
    Pattern(Tag),
}

impl Chain<'_> {
    /// Returns the number of components, tags and options, which the limit bounds.
    fn size(&self) -> usize {
        let terms = self.terms.iter();
        let options: usize = terms
            .map(|term| (1 + term.options.len()) * term.tags.len())
            .sum();
        self.steps.len() + options
    }
}

/// Writes out all rules, which are sorted so that those referred to come first. Returns the chains of each rule.
pub(super) fn expand<'a>(
    rules: &'a [Numbered],
    names: &Names,
    limits: &Limits,
) -> Result<Vec<Vec<Chain<'a>>>, TextError> {
    let mut expansion = Expansion {
        chains: vec![Vec::new(); names.names.len()],
        size: 0,
        names,
        limits,
    };
    for rule in rules {
        let chains = expansion.definition(rule)?;
        expansion.chains[rule.id].extend(chains);
    }
    Ok(expansion.chains)
}

struct Expansion<'a, 'n> {
    /// Chains of each rule.
    chains: Vec<Vec<Chain<'a>>>,
    /// Size of all chains that were made.
    size: usize,
    names: &'n Names,
    limits: &'n Limits,
}

impl<'a> Expansion<'a, '_> {
    fn definition(&mut self, rule: &'a Numbered) -> Result<Vec<Chain<'a>>, TextError> {
        let signers: Rc<[RuleId]> = rule.signers.clone().into();
        let chain = |terms: Vec<&'a Term>| Chain {
            steps: Vec::new(),
            terms,
            signers: signers.clone(),
        };
        let mut chains: Vec<_> = match rule.alternatives.is_empty() {
            true => vec![chain(Vec::new())],
            false => {
                let alternatives = rule.alternatives.iter();
                alternatives
                    .map(|terms| chain(terms.iter().collect()))
                    .collect()
            }
        };
        for chain in &chains {
            self.count(rule.id, chain.size())?;
        }
        for part in &rule.parts {
            let step = match part {
                NumberedPart::Value(value) => Step::Value(value.clone()),
                NumberedPart::Pattern(tag) => Step::Pattern(*tag),
                NumberedPart::Rule(inner) => {
                    chains = self.product(rule.id, &chains, *inner)?;
                    continue;
                }
            };
            self.count(rule.id, chains.len())?;
            for chain in &mut chains {
                self.bound(rule.id, chain.steps.len() + 1)?;
                chain.steps.push(step.clone());
            }
        }
        Ok(chains)
    }

    /// Each of `chains` with each chain of `inner` behind it.
    fn product(
        &mut self,
        id: RuleId,
        chains: &[Chain<'a>],
        inner: RuleId,
    ) -> Result<Vec<Chain<'a>>, TextError> {
        let mut product = Vec::new();
        for index in 0..self.chains[inner].len() {
            for chain in chains {
                let mut chain = chain.clone();
                let inner = &self.chains[inner][index];
                chain.steps.extend_from_slice(&inner.steps);
                chain.terms.extend_from_slice(&inner.terms);
                self.bound(id, chain.steps.len())?;
                self.count(id, chain.size())?;
                product.push(chain);
            }
        }
        Ok(product)
    }

    fn count(&mut self, id: RuleId, size: usize) -> Result<(), TextError> {
        self.size = self.size.saturating_add(size);
        let (count, limit) = (self.size, self.limits.max_expansion);
        self.within(id, "components and options, written out", count, limit)
    }

    fn bound(&self, id: RuleId, count: usize) -> Result<(), TextError> {
        self.within(id, "components", count, self.limits.max_components)
    }

    fn within(
        &self,
        id: RuleId,
        what: &'static str,
        count: usize,
        limit: usize,
    ) -> Result<(), TextError> {
        match count <= limit {
            true => Ok(()),
            false => Err(self
                .names
                .error(id, TextProblem::TooMany { what, count, limit })),
        }
    }
}
