//! Trust schemas: Light VerSec as python-ndn 0.5.2 has it.
//!
//! ```text
//!  text ─ lexer ─ parser ─ compiler ─▶ Model ◀─▶ binary, version 0x00011000
//!                                        │
//!                                      Schema ── check(packet, key) ─▶ Permission
//! ```
//!
//! A rule describes names, and names the rules that its signers' certificates match. The compiled model is a tree: an edge for
//! each component, a node where rules end. Compiled octets are those of python-ndn's `compile_lvs`. It reads more than this
//! parser does in four places, which no schema needs: numbers with `_` in them (`v=1_0`), a negative zero (`v=-0`), an escape
//! `%-0`, and functions other than `$eq` and `$eq_type`.

mod binary;
mod checker;
mod compiler;
mod component;
mod error;
mod lexer;
mod limits;
mod model;
mod parser;
mod sanity;
mod syntax;

use core::fmt;

use bytes::Bytes;
use namecast_packet::Name;

pub use checker::{Match, NamePattern, Permission, TooManySteps};
pub use error::{ModelError, Place, Shape, TextError, TextProblem};
pub use limits::Limits;

use checker::{Checker, Steps};
use model::Model;

/// Version of the binary format, the only one that python-ndn and ndnd know.
pub const VERSION: u64 = 0x0001_1000;

/// Rules that say which key may sign which name.
#[derive(Clone, PartialEq, Eq)]
pub struct Schema {
    model: Model,
    /// Maximum number of steps of one check.
    max_steps: u64,
}

impl Schema {
    /// Compiles Light VerSec text.
    ///
    /// # Errors
    /// The first mistake, with line, column and rule.
    pub fn compile(text: &str, limits: &Limits) -> Result<Self, TextError> {
        let rules = parser::parse(text, limits)?;
        let model = compiler::compile(rules, limits)?;
        Ok(Self::new(model, limits))
    }

    /// Decodes a compiled schema that fills `octets` whole.
    ///
    /// # Errors
    /// The first violation of the format, with field and offset, or of the tree, with its node.
    pub fn decode(octets: &Bytes, limits: &Limits) -> Result<Self, ModelError> {
        let model = binary::decode(octets, limits)?;
        sanity::check(&model, limits)?;
        Ok(Self::new(model, limits))
    }

    /// Returns a schema without rules, which lets nobody sign anything.
    pub fn nothing() -> Self {
        let model = Model {
            nodes: vec![model::Node::default()],
            ..Model::default()
        };
        Self::new(model, &Limits::default())
    }

    /// Returns the compiled schema as octets.
    pub fn encode(&self) -> Bytes {
        binary::encode(&self.model)
    }

    const fn checker(&self) -> Checker<'_> {
        Checker::new(&self.model)
    }

    const fn new(model: Model, limits: &Limits) -> Self {
        Self {
            model,
            max_steps: limits.max_steps,
        }
    }

    /// Returns the names of the rules that sign others and are signed by none, sorted: the certificate of the trust anchor matches
    /// one of them.
    pub fn anchors(&self) -> Vec<&str> {
        self.model.anchors()
    }

    /// Returns the names of all rules, sorted.
    pub fn rules(&self) -> Vec<&str> {
        let rules = self.model.nodes.iter().flat_map(|node| &node.rules);
        let mut rules: Vec<_> = rules.map(AsRef::as_ref).collect();
        rules.sort_unstable();
        rules.dedup();
        rules
    }

    /// Returns the number of nodes of the tree.
    pub fn node_count(&self) -> usize {
        self.model.nodes.len()
    }

    /// Returns how the key whose certificate is called `certificate` may sign `packet`; `None` if it may not. A digest at the end of
    /// either name is left out.
    ///
    /// # Errors
    /// If that takes more steps than the schema's limit.
    pub fn check(
        &self,
        packet: &Name,
        certificate: &Name,
    ) -> Result<Option<Permission<'_>>, TooManySteps> {
        let mut steps = Steps::new(self.max_steps);
        self.checker().check(packet, certificate, &mut steps)
    }

    /// Returns every way in which `name` matches rules. A digest at its end is left out.
    ///
    /// # Errors
    /// If that takes more steps than the schema's limit.
    pub fn matches(&self, name: &Name) -> Result<Vec<Match<'_>>, TooManySteps> {
        let mut steps = Steps::new(self.max_steps);
        self.checker().matches(name, &mut steps)
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Schema({} nodes)", self.node_count())
    }
}
