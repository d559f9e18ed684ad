//! Which rules a name matches, and which keys may sign it.
//!
//! A name walks down the tree, an edge for each component: first the edge with that very component, then each pattern that it
//! satisfies. Named patterns keep their value for the rest of the name, and for the name of the certificate.

use bytes::Bytes;
use namecast_packet::{Component, Name};

use super::model::{Argument, Choice, Constraint, Function, Model, Node, NodeId, PatternEdge};

/// A check that was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the name takes more than {0} steps to check")]
pub struct TooManySteps(pub u64);

/// A way in which a name matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match<'s> {
    /// Rules that end there; none if the name is only the beginning of others.
    pub rules: Vec<&'s str>,
    /// Named patterns with their components, in the order of the name.
    pub values: Vec<(&'s str, Bytes)>,
}

/// Why a key may sign a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permission<'s> {
    /// How the packet's name matches.
    pub packet: Match<'s>,
    /// Rules that the name of the key's certificate matches.
    pub signer: Vec<&'s str>,
    /// Names that the key may sign for the same reason.
    pub names: NamePattern,
}

/// Names that match a schema in the same way: equal but for components behind unnamed patterns without conditions, which are compared
/// with nothing. Whoever may sign one of them may sign all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern {
    /// Elements of components; `None`: any component.
    elements: Vec<Option<Bytes>>,
}

impl NamePattern {
    /// Returns whether `name` is one of these names.
    pub fn covers(&self, name: &Name) -> bool {
        let mut elements = name.elements();
        let mut wanted = self.elements.iter();
        loop {
            match (elements.next(), wanted.next()) {
                (None, None) => return true,
                (Some(_), Some(None)) => {}
                (Some(element), Some(Some(wanted))) if element == wanted => {}
                _ => return false,
            }
        }
    }
}

/// Counts steps down to nothing.
#[derive(Debug)]
pub(super) struct Steps {
    left: u64,
    limit: u64,
}

impl Steps {
    pub(super) const fn new(limit: u64) -> Self {
        Self { left: limit, limit }
    }

    fn take(&mut self, count: usize) -> Result<(), TooManySteps> {
        let left = self.left.checked_sub(count as u64);
        self.left = left.ok_or(TooManySteps(self.limit))?;
        Ok(())
    }
}

/// Components of named patterns, in the order in which they were met.
type Context<'n> = Vec<(u64, &'n [u8])>;

/// Checks names by a model.
pub(super) struct Checker<'s> {
    model: &'s Model,
}

impl<'s> Checker<'s> {
    pub(super) const fn new(model: &'s Model) -> Self {
        Self { model }
    }

    /// Finds a way in which the key called `certificate` may sign `packet`.
    pub(super) fn check(
        &self,
        packet: &Name,
        certificate: &Name,
        steps: &mut Steps,
    ) -> Result<Option<Permission<'s>>, TooManySteps> {
        let (packet, certificate) = (elements(packet), elements(certificate));
        let mut walk = Walk::new(self.model, &packet, Vec::new());
        while let Some(node) = walk.next(steps)? {
            let signers = &self.model.nodes[node].signers;
            if signers.is_empty() {
                continue;
            }
            let mut key = Walk::new(self.model, &certificate, walk.context.clone());
            while let Some(end) = key.next(steps)? {
                steps.take(signers.len() / 16)?;
                if signers.contains(&end) {
                    return Ok(Some(Permission {
                        packet: self.described(node, &walk.context),
                        signer: self.rules(end),
                        names: walk.names(),
                    }));
                }
            }
        }
        Ok(None)
    }

    /// Finds all ways in which `name` matches.
    pub(super) fn matches(
        &self,
        name: &Name,
        steps: &mut Steps,
    ) -> Result<Vec<Match<'s>>, TooManySteps> {
        let name = elements(name);
        let mut walk = Walk::new(self.model, &name, Vec::new());
        let mut found = Vec::new();
        while let Some(node) = walk.next(steps)? {
            found.push(self.described(node, &walk.context));
        }
        Ok(found)
    }

    fn described(&self, node: NodeId, context: &Context<'_>) -> Match<'s> {
        let named = context.iter().filter_map(|&(tag, value)| {
            let name = self.model.pattern_name(tag)?;
            Some((name, Bytes::copy_from_slice(value)))
        });
        Match {
            rules: self.rules(node),
            values: named.collect(),
        }
    }

    fn rules(&self, node: NodeId) -> Vec<&'s str> {
        let mut rules: Vec<_> = self.model.nodes[node]
            .rules
            .iter()
            .map(|rule| &**rule)
            .collect();
        rules.dedup();
        rules
    }
}

/// Components of `name` as elements, without a digest at the end.
fn elements(name: &Name) -> Vec<&[u8]> {
    // Most names fit.
    let mut elements = Vec::with_capacity(16);
    elements.extend(name.elements());
    let digest = Component::IMPLICIT_DIGEST as u8;
    if elements.last().is_some_and(|last| last[0] == digest) {
        elements.pop();
    }
    elements
}

fn find<'n>(context: &Context<'n>, tag: u64) -> Option<&'n [u8]> {
    let found = context.iter().find(|(known, _)| *known == tag);
    found.map(|(_, value)| *value)
}

/// A name on its way down the tree.
struct Walk<'m, 'n> {
    model: &'m Model,
    name: &'n [&'n [u8]],
    context: Context<'n>,
    /// Nodes from the start to here.
    path: Vec<Visit>,
}

/// A node on the way.
struct Visit {
    node: NodeId,
    /// Edges that were tried: 1 for those with a component, then 1 for each pattern.
    tried: usize,
    /// Whether the way here gave a pattern its value.
    binds: bool,
}

impl<'m, 'n> Walk<'m, 'n> {
    fn new(model: &'m Model, name: &'n [&'n [u8]], context: Context<'n>) -> Self {
        let start = Visit {
            node: model.start,
            tried: 0,
            binds: false,
        };
        let mut path = Vec::with_capacity(name.len() + 1);
        path.push(start);
        Self {
            model,
            name,
            context,
            path,
        }
    }

    /// Returns the next node that the name ends at; its patterns are in the context until the next call.
    fn next(&mut self, steps: &mut Steps) -> Result<Option<NodeId>, TooManySteps> {
        loop {
            steps.take(1)?;
            let depth = self.path.len() - 1;
            let Some(visit) = self.path.last_mut() else {
                return Ok(None);
            };
            let tried = visit.tried;
            visit.tried += 1;
            let id = visit.node;
            let node = &self.model.nodes[id];
            let Some(&component) = self.name.get(depth) else {
                match tried {
                    0 => return Ok(Some(id)),
                    _ => {
                        if self.back() {
                            continue;
                        }
                        return Ok(None);
                    }
                }
            };
            let next = match tried {
                0 => value_edge(node, component, steps)?.map(|to| (to, false)),
                _ => match node.patterns.get(tried - 1) {
                    Some(edge) => self.pattern_edge(edge, component, steps)?,
                    None if self.back() => continue,
                    None => return Ok(None),
                },
            };
            if let Some((node, binds)) = next {
                self.path.push(Visit {
                    node,
                    tried: 0,
                    binds,
                });
            }
        }
    }

    /// Returns the names that match as this one does, at the node where it ends.
    fn names(&self) -> NamePattern {
        let elements = self.name.iter().zip(&self.path).map(|(element, visit)| {
            // Of the edges that were tried the last one led on.
            let pattern = visit.tried.checked_sub(2);
            let edge = pattern.map(|it| &self.model.nodes[visit.node].patterns[it]);
            let is_any = edge.is_some_and(|edge| {
                edge.tag > self.model.named_patterns && edge.constraints.is_empty()
            });
            (!is_any).then(|| Bytes::copy_from_slice(element))
        });
        NamePattern {
            elements: elements.collect(),
        }
    }

    /// Goes back to the node before; returns whether there is one.
    fn back(&mut self) -> bool {
        if self.path.pop().is_some_and(|visit| visit.binds) {
            self.context.pop();
        }
        !self.path.is_empty()
    }

    /// Node behind `edge`, if `component` satisfies it, and whether it is the pattern's value from now on.
    fn pattern_edge(
        &mut self,
        edge: &PatternEdge,
        component: &'n [u8],
        steps: &mut Steps,
    ) -> Result<Option<(NodeId, bool)>, TooManySteps> {
        if let Some(known) = find(&self.context, edge.tag) {
            return Ok((known == component).then_some((edge.to, false)));
        }
        for constraint in &edge.constraints {
            if !self.satisfies(component, constraint, steps)? {
                return Ok(None);
            }
        }
        let binds = edge.tag <= self.model.named_patterns;
        if binds {
            self.context.push((edge.tag, component));
        }
        Ok(Some((edge.to, binds)))
    }

    fn satisfies(
        &self,
        component: &[u8],
        constraint: &Constraint,
        steps: &mut Steps,
    ) -> Result<bool, TooManySteps> {
        for choice in constraint {
            steps.take(1)?;
            let holds = match choice {
                Choice::Value(value) => value == component,
                Choice::Tag(tag) => find(&self.context, *tag) == Some(component),
                Choice::Call(function, arguments) => {
                    steps.take(arguments.len())?;
                    let mut values = arguments.iter().map(|argument| match argument {
                        Argument::Value(value) => Some(&value[..]),
                        Argument::Tag(tag) => find(&self.context, *tag),
                    });
                    // python-ndn raises an error for the type of a pattern without a value; here nothing equals that.
                    values.all(|value| value.is_some_and(|value| function.holds(component, value)))
                }
            };
            if holds {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Function {
    fn holds(self, component: &[u8], argument: &[u8]) -> bool {
        match self {
            Self::Equal => component == argument,
            Self::EqualType => type_octets(component) == type_octets(argument),
        }
    }
}

/// The type of an element, as it is on the wire.
fn type_octets(element: &[u8]) -> &[u8] {
    let length = match element.first() {
        Some(253) => 3,
        Some(254) => 5,
        Some(255) => 9,
        _ => 1,
    };
    element.get(..length).unwrap_or(element)
}

/// Node behind the first edge with `component`.
fn value_edge(
    node: &Node,
    component: &[u8],
    steps: &mut Steps,
) -> Result<Option<NodeId>, TooManySteps> {
    if node.values_sorted {
        let found = node
            .values
            .binary_search_by(|edge| (*edge.value).cmp(component));
        return Ok(found.ok().map(|index| node.values[index].to));
    }
    steps.take(node.values.len())?;
    let found = node.values.iter().find(|edge| edge.value == component);
    Ok(found.map(|edge| edge.to))
}
