//! From definitions to the tree, in the steps and the order of python-ndn's compiler, so that the octets are equal.
//!
//! ```text
//!  definitions ─ order ─▶ referred to first ─ numbers ─▶ patterns have tags ─ expand ─▶ chains ─ graph ─▶ Model
//! ```

mod expand;
mod graph;
mod numbers;
pub(super) mod order;

use std::collections::BTreeMap;

use super::error::{Place, TextError, TextProblem};
use super::limits::Limits;
use super::model::Model;
use super::syntax::{Part, Rule, Word};

/// Compiles definitions.
pub(super) fn compile(rules: Vec<Rule>, limits: &Limits) -> Result<Model, TextError> {
    let names = Names::of(&rules);
    let rules = sorted(rules, &names)?;
    let (rules, patterns) = numbers::number(rules, &names)?;
    let expanded = expand::expand(&rules, &names, limits)?;
    graph::build(&expanded, patterns, &names, limits)
}

/// Place of a rule's name among all names, sorted.
type RuleId = usize;

/// Names of all rules, sorted.
struct Names {
    ids: BTreeMap<String, RuleId>,
    /// Name and first definition.
    names: Vec<Word>,
}

impl Names {
    fn of(rules: &[Rule]) -> Self {
        let mut places: BTreeMap<String, Place> = BTreeMap::new();
        let mut temporary = 0;
        for rule in rules {
            let name = full_name(rule, &mut temporary);
            places.entry(name).or_insert(rule.name.place);
        }
        let names: Vec<_> = places
            .into_iter()
            .map(|(text, place)| Word { text, place })
            .collect();
        let ids = names.iter().enumerate();
        let ids = ids.map(|(id, name)| (name.text.clone(), id)).collect();
        Self { ids, names }
    }

    /// Rule that `word` refers to, in the rule `from`.
    fn find(&self, word: &Word, from: &str) -> Result<RuleId, TextError> {
        self.ids.get(&word.text).copied().ok_or_else(|| {
            let text = word.text.clone();
            let problem = match text.starts_with("#_") {
                true => TextProblem::TemporaryRule(text),
                false => TextProblem::UnknownRule(text),
            };
            error(word.place, from, problem)
        })
    }

    fn text(&self, id: RuleId) -> &str {
        &self.names[id].text
    }

    fn place(&self, id: RuleId) -> Place {
        self.names[id].place
    }

    /// A mistake of the whole rule `id`.
    fn error(&self, id: RuleId, problem: TextProblem) -> TextError {
        error(self.place(id), self.text(id), problem)
    }
}

/// Each temporary rule is another one: python-ndn numbers them.
fn full_name(rule: &Rule, temporary: &mut usize) -> String {
    let name = &rule.name.text;
    if !name.starts_with("#_") {
        return name.clone();
    }
    *temporary += 1;
    format!("{name}#{temporary}")
}

fn error(place: Place, rule: &str, problem: TextProblem) -> TextError {
    TextError {
        place,
        rule: Some(rule.to_owned()),
        problem,
    }
}

/// A definition that knows its rule.
struct Definition {
    id: RuleId,
    rule: Rule,
}

/// Rules that others refer to come first, as python-ndn sorts them.
fn sorted(rules: Vec<Rule>, names: &Names) -> Result<Vec<Definition>, TextError> {
    let mut edges = vec![Vec::new(); names.names.len()];
    let mut definitions = Vec::with_capacity(rules.len());
    let mut temporary = 0;
    for rule in rules {
        let id = names.ids[&full_name(&rule, &mut temporary)];
        for part in &rule.parts {
            if let Part::Rule(word) = part {
                edges[id].push(names.find(word, &rule.name.text)?);
            }
        }
        definitions.push(Definition { id, rule });
    }
    let order = order::topological(&edges).map_err(|circle| {
        let problem = TextProblem::Circle(joined(&circle, names));
        names.error(circle[0], problem)
    })?;
    let mut ranks = vec![0; order.len()];
    for (rank, &id) in order.iter().enumerate() {
        ranks[id] = rank;
    }
    definitions.sort_by_key(|definition| ranks[definition.id]);
    Ok(definitions)
}

fn joined(ids: &[RuleId], names: &Names) -> String {
    let texts: Vec<_> = ids.iter().map(|&id| names.text(id)).collect();
    texts.join(", ")
}
