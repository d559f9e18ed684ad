//! A compiled schema: a tree whose edges are name components.

use bytes::Bytes;

/// Place of a node in [`Model::nodes`].
pub(super) type NodeId = usize;

/// A compiled schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Model {
    /// Node that names start at.
    pub start: NodeId,
    /// Number of named patterns: they have the tags from 1 to this, and keep their value.
    pub named_patterns: u64,
    /// All nodes.
    pub nodes: Vec<Node>,
    /// Names of patterns.
    pub symbols: Vec<Symbol>,
}

/// Where a name may end or go on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Node {
    /// Node before; `None` for the start.
    pub parent: Option<u64>,
    /// Rules that end here.
    pub rules: Vec<Box<str>>,
    /// Components that may come next.
    pub values: Vec<ValueEdge>,
    /// Whether `values` are sorted and differ, as compilers leave them.
    pub values_sorted: bool,
    /// Patterns that may come next, tried in this order after `values`.
    pub patterns: Vec<PatternEdge>,
    /// Nodes that certificates of signers end at.
    pub signers: Vec<NodeId>,
}

/// A component that may come next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ValueEdge {
    /// Node behind it.
    pub to: NodeId,
    /// The component, type and length included.
    pub value: Bytes,
}

/// A pattern that may come next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PatternEdge {
    /// Node behind it.
    pub to: NodeId,
    /// Number of the pattern.
    pub tag: u64,
    /// What the component must satisfy, all of it.
    pub constraints: Vec<Constraint>,
}

/// Alternatives of which a component must satisfy one.
pub(super) type Constraint = Vec<Choice>;

/// One alternative of a constraint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// This component.
    Value(Bytes),
    /// The component that a pattern stands for.
    Tag(u64),
    /// What a function accepts.
    Call(Function, Vec<Argument>),
}

/// An argument of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Argument {
    /// This component.
    Value(Bytes),
    /// The component that a pattern stands for.
    Tag(u64),
}

/// A function that constraints may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    /// Equal to each argument.
    Equal,
    /// Of the type of each argument.
    EqualType,
}

impl Function {
    /// The function called `name`, with its `$`.
    pub(super) fn named(name: &str) -> Option<Self> {
        [Self::Equal, Self::EqualType]
            .into_iter()
            .find(|function| function.name() == name)
    }

    /// Returns the name, with its `$`.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Equal => "$eq",
            Self::EqualType => "$eq_type",
        }
    }
}

/// The name of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Symbol {
    /// Number of the pattern.
    pub tag: u64,
    /// Its name.
    pub name: Box<str>,
}

impl Model {
    /// Returns the name of the pattern `tag`, if it has one.
    pub(super) fn pattern_name(&self, tag: u64) -> Option<&str> {
        let symbol = self.symbols.iter().find(|symbol| symbol.tag == tag);
        symbol.map(|symbol| &*symbol.name)
    }

    /// Returns the rules of nodes that sign others and are signed by none, sorted.
    pub(super) fn anchors(&self) -> Vec<&str> {
        let signers = self.nodes.iter().flat_map(|node| &node.signers);
        let roots = signers.map(|&signer| &self.nodes[signer]);
        let roots = roots.filter(|node| node.signers.is_empty());
        let mut rules: Vec<_> = roots
            .flat_map(|node| &node.rules)
            .map(AsRef::as_ref)
            .collect();
        rules.sort_unstable();
        rules.dedup();
        rules
    }

    /// Returns the rules that end at `node`, for people.
    pub(super) fn rules_of(&self, node: NodeId) -> Option<String> {
        let rules = &self.nodes.get(node)?.rules;
        (!rules.is_empty()).then(|| rules.join(", "))
    }
}
