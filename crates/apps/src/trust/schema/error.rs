//! Why a schema was refused.

use core::fmt;

use namecast_packet::DecodeError;

/// A place in a text, both counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Line.
    pub line: u32,
    /// Column, in characters.
    pub column: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// A mistake in the text of a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError {
    /// Where it is.
    pub place: Place,
    /// The rule that it is in, if it is in one.
    pub rule: Option<String>,
    /// The mistake.
    pub problem: TextProblem,
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.place)?;
        if let Some(rule) = &self.rule {
            write!(f, ", in rule {rule}")?;
        }
        write!(f, ": {}", self.problem)
    }
}

impl core::error::Error for TextError {}

/// Mistake in the text of a schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TextProblem {
    /// A character that begins nothing.
    #[error("unexpected character {0:?}")]
    Character(char),
    /// A quotation mark without a second one in its line.
    #[error("the quotation mark has no second one in this line")]
    OpenString,
    /// Another word was required.
    #[error("found {found}, expected {expected}")]
    Unexpected {
        /// The text found.
        found: String,
        /// The texts allowed.
        expected: &'static str,
    },
    /// A text in quotation marks that is no name component.
    #[error("\"{text}\" is not a name component: {reason}")]
    Component {
        /// The text.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// No rule has this name.
    #[error("there is no rule {0}")]
    UnknownRule(String),
    /// A rule whose name begins with `#_` belongs to its own definition alone.
    #[error("{0} is temporary, as its name begins with #_, so no other rule can refer to it")]
    TemporaryRule(String),
    /// Rules contain each other.
    #[error("the names of {0} contain each other")]
    Circle(String),
    /// Keys certify each other.
    #[error("{0} sign each other, so no anchor is above them")]
    SigningCircle(String),
    /// No name contains this pattern.
    #[error("no name contains the pattern {0}")]
    UnknownPattern(String),
    /// A pattern that begins with `_` has no value to compare with.
    #[error("{0} is temporary, as its name begins with _, so nothing can be compared with it")]
    TemporaryPattern(String),
    /// A function that is not known.
    #[error("there is no function {0}: the functions are $eq and $eq_type")]
    UnknownFunction(String),
    /// More than the limit.
    #[error("{count} {what}: the limit is {limit}")]
    TooMany {
        /// What is counted.
        what: &'static str,
        /// How many there are, at least.
        count: usize,
        /// How many there may be.
        limit: usize,
    },
}

/// A compiled schema that is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The octets break the format.
    #[error(transparent)]
    Octets(#[from] DecodeError),
    /// Another version of the format.
    #[error("version {0:#010x} of Light VerSec is unknown: the known one is 0x00011000")]
    Version(u64),
    /// More than the limit.
    #[error("{what} at octet {offset}: the limit is {limit}")]
    TooMany {
        /// What is counted.
        what: &'static str,
        /// Octets from the start to the first that is too many.
        offset: usize,
        /// How many there may be.
        limit: usize,
    },
    /// A function that is not known.
    #[error("function {name} at octet {offset} is unknown: the functions are $eq and $eq_type")]
    UnknownFunction {
        /// Its name.
        name: String,
        /// Octets from the start to the call.
        offset: usize,
    },
    /// The nodes are no tree, or name nodes that are not there.
    #[error("node {node}{}: {shape}", rules.as_ref().map(|rules| format!(" ({rules})")).unwrap_or_default())]
    Node {
        /// Number of the node.
        node: u64,
        /// Rules that end there, if any do.
        rules: Option<String>,
        /// What is wrong with it.
        shape: Shape,
    },
}

/// What is wrong with a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Shape {
    /// Numbers of nodes are their places.
    #[error("its number is not its place")]
    Number,
    /// There is no such node.
    #[error("it refers to node {0}, which does not exist")]
    Missing(u64),
    /// An edge leads to a node that has another parent.
    #[error("it is not the parent of node {0}")]
    Parent(u64),
    /// Two edges lead to one node.
    #[error("two edges lead to it")]
    TwoEdges,
    /// The first node has a parent.
    #[error("names start here, but it has a parent")]
    StartHasParent,
    /// The tree is deeper than names may be long.
    #[error("it is deeper than {0} components")]
    TooDeep(usize),
    /// Keys certify each other.
    #[error("its signers sign each other")]
    SigningCircle,
}
