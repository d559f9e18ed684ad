//! What a text says, before names are resolved.

use bytes::Bytes;

use super::error::Place;

/// A word of the text and where it is.
#[derive(Clone, Debug)]
pub(super) struct Word {
    pub text: String,
    pub place: Place,
}

/// One definition of a rule.
#[derive(Debug)]
pub(super) struct Rule {
    /// Its name, with the `#`.
    pub name: Word,
    /// Components of the names that it describes.
    pub parts: Vec<Part>,
    /// Sets of constraints, of which one must hold.
    pub alternatives: Vec<Vec<Term>>,
    /// Rules that certificates of signers match.
    pub signers: Vec<Word>,
}

/// A part of the names that a rule describes.
#[derive(Debug)]
pub(super) enum Part {
    /// This component, type and length included.
    Value(Bytes),
    /// Any component.
    Pattern(Word),
    /// All components of another rule.
    Rule(Word),
}

/// What the component behind a pattern must be.
#[derive(Debug)]
pub(super) struct Term {
    pub pattern: Word,
    pub options: Vec<Choice>,
}

/// One alternative of a term.
#[derive(Debug)]
pub(super) enum Choice {
    /// A component or a pattern.
    Operand(Operand),
    /// What a function accepts.
    Call(Word, Vec<Operand>),
}

/// What a component is compared with.
#[derive(Debug)]
pub(super) enum Operand {
    /// This component, type and length included.
    Value(Bytes),
    /// The component behind a pattern.
    Pattern(Word),
}
