//! Patterns get numbers: named ones from 1, one for all rules; temporary ones below 0, one for each place.

use core::fmt::Write as _;
use std::collections::BTreeMap;

use bytes::Bytes;

use super::super::error::{TextError, TextProblem};
use super::super::model::{Argument, Choice, Function, Symbol};
use super::super::syntax::{self, Operand, Part, Word};
use super::{Definition, Names, RuleId, error};

/// Number of a pattern: below 0 for temporary ones.
pub(super) type Tag = i64;

/// A definition whose references are resolved.
pub(super) struct Numbered {
    pub id: RuleId,
    pub parts: Vec<NumberedPart>,
    pub alternatives: Vec<Vec<Term>>,
    /// Sorted by name; with repetitions.
    pub signers: Vec<RuleId>,
}

/// A part of a name.
pub(super) enum NumberedPart {
    Value(Bytes),
    Pattern(Tag),
    Rule(RuleId),
}

/// Condition on the component behind patterns.
pub(super) struct Term {
    pub tags: Vec<Tag>,
    pub options: Vec<Choice>,
    /// The term as python-ndn writes it to compare and sort edges.
    pub key: String,
}

/// Numbers all patterns; returns the names of named ones, too.
pub(super) fn number(
    definitions: Vec<Definition>,
    names: &Names,
) -> Result<(Vec<Numbered>, Vec<Symbol>), TextError> {
    let mut numbers = Numbers {
        names,
        named: BTreeMap::new(),
        temporary: 0,
    };
    let rules: Result<Vec<_>, _> = definitions
        .into_iter()
        .map(|definition| numbers.definition(definition))
        .collect();
    let rules = rules?;
    let mut symbols: Vec<_> = numbers
        .named
        .into_iter()
        .map(|(name, tag)| Symbol {
            tag: tag.unsigned_abs(),
            name: name.into(),
        })
        .collect();
    symbols.sort_unstable_by_key(|symbol| symbol.tag);
    Ok((rules, symbols))
}

struct Numbers<'a> {
    names: &'a Names,
    named: BTreeMap<String, Tag>,
    /// Number of the last temporary pattern.
    temporary: Tag,
}

/// Numbers of the temporary patterns of one rule.
type Temporary = BTreeMap<String, Vec<Tag>>;

impl Numbers<'_> {
    fn definition(&mut self, definition: Definition) -> Result<Numbered, TextError> {
        let Definition { id, rule } = definition;
        let from = rule.name.text;
        let mut temporary = Temporary::new();
        let mut parts = Vec::with_capacity(rule.parts.len());
        for part in rule.parts {
            parts.push(match part {
                Part::Value(value) => NumberedPart::Value(value),
                Part::Pattern(word) => NumberedPart::Pattern(self.pattern(word, &mut temporary)),
                Part::Rule(word) => NumberedPart::Rule(self.names.find(&word, &from)?),
            });
        }
        let mut alternatives = Vec::with_capacity(rule.alternatives.len());
        for terms in rule.alternatives {
            let terms = terms
                .into_iter()
                .map(|term| self.term(term, &temporary, &from));
            alternatives.push(terms.collect::<Result<Vec<_>, _>>()?);
        }
        let signers = rule.signers.iter().map(|word| self.names.find(word, &from));
        let mut signers: Vec<_> = signers.collect::<Result<_, _>>()?;
        signers.sort_unstable();
        Ok(Numbered {
            id,
            parts,
            alternatives,
            signers,
        })
    }

    fn pattern(&mut self, word: Word, temporary: &mut Temporary) -> Tag {
        if word.text.starts_with('_') {
            self.temporary -= 1;
            temporary.entry(word.text).or_default().push(self.temporary);
            return self.temporary;
        }
        let next = self.named.len() as Tag + 1;
        *self.named.entry(word.text).or_insert(next)
    }

    fn term(
        &self,
        term: syntax::Term,
        temporary: &Temporary,
        from: &str,
    ) -> Result<Term, TextError> {
        let tags = match temporary.get(&term.pattern.text) {
            Some(tags) => tags.clone(),
            None => vec![self.named(&term.pattern, from)?],
        };
        let mut options = Vec::with_capacity(term.options.len());
        let mut key = "{".to_owned();
        for option in term.options {
            options.push(self.choice(option, &mut key, from)?);
            key.push(',');
        }
        key.push('}');
        Ok(Term { tags, options, key })
    }

    fn choice(
        &self,
        choice: syntax::Choice,
        key: &mut String,
        from: &str,
    ) -> Result<Choice, TextError> {
        let (name, arguments) = match choice {
            syntax::Choice::Operand(operand) => {
                return Ok(match self.argument(operand, key, from)? {
                    Argument::Value(value) => Choice::Value(value),
                    Argument::Tag(tag) => Choice::Tag(tag),
                });
            }
            syntax::Choice::Call(name, arguments) => (name, arguments),
        };
        let function = Function::named(&name.text).ok_or_else(|| {
            let problem = TextProblem::UnknownFunction(name.text.clone());
            error(name.place, from, problem)
        })?;
        key.push_str(function.name());
        key.push('(');
        let arguments = arguments.into_iter();
        let arguments: Result<_, _> = arguments
            .map(|argument| self.argument(argument, key, from))
            .collect();
        key.push(')');
        Ok(Choice::Call(function, arguments?))
    }

    fn argument(
        &self,
        operand: Operand,
        key: &mut String,
        from: &str,
    ) -> Result<Argument, TextError> {
        Ok(match operand {
            Operand::Value(value) => {
                key.push_str("v=");
                for octet in &value {
                    write!(key, "{octet:02x}").expect("a String takes everything");
                }
                Argument::Value(value)
            }
            Operand::Pattern(word) if word.text.starts_with('_') => {
                let problem = TextProblem::TemporaryPattern(word.text);
                return Err(error(word.place, from, problem));
            }
            Operand::Pattern(word) => {
                let tag = self.named(&word, from)?;
                write!(key, "t={tag}").expect("a String takes everything");
                Argument::Tag(tag.unsigned_abs())
            }
        })
    }

    /// Number of a pattern that a name before this place contains, in the order of [`super::sorted`].
    fn named(&self, word: &Word, from: &str) -> Result<Tag, TextError> {
        self.named.get(&word.text).copied().ok_or_else(|| {
            let problem = TextProblem::UnknownPattern(word.text.clone());
            error(word.place, from, problem)
        })
    }
}
