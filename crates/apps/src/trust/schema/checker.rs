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
    /// Names for which the key has the same permission.
    pub scope: Scope,
}

/// What decides, beside the key, whether a packet may be signed: the place in the tree where its name ends, and the components behind the
/// patterns that a certificate's name may share with it. Names with equal scopes may be signed by the same keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope {
    node: NodeId,
    values: Vec<Option<Bytes>>,
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
    shared: &'s [Shared],
}

impl<'s> Checker<'s> {
    /// `shared` are those of [`shared_patterns`].
    pub(super) const fn new(model: &'s Model, shared: &'s [Shared]) -> Self {
        Self { model, shared }
    }

    /// Returns whether the key called `certificate` may sign `packet`.
    pub(super) fn allows(
        &self,
        packet: &Name,
        certificate: &Name,
        steps: &mut Steps,
    ) -> Result<bool, TooManySteps> {
        let found = self.find((packet, certificate), steps, |_, _, _| ())?;
        Ok(found.is_some())
    }

    /// Finds a way in which the key called `certificate` may sign `packet`.
    pub(super) fn check(
        &self,
        packet: &Name,
        certificate: &Name,
        steps: &mut Steps,
    ) -> Result<Option<Permission<'s>>, TooManySteps> {
        self.find((packet, certificate), steps, |node, end, context| {
            Permission {
                packet: self.described(node, context),
                signer: self.rules(end),
                scope: self.scope(node, context),
            }
        })
    }

    /// Calls `found` with the nodes that names of packet and certificate end at, and the patterns of the former, once the latter may
    /// sign it.
    fn find<T>(
        &self,
        (packet, certificate): (&Name, &Name),
        steps: &mut Steps,
        found: impl FnOnce(NodeId, NodeId, &Context<'_>) -> T,
    ) -> Result<Option<T>, TooManySteps> {
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
                    return Ok(Some(found(node, end, &walk.context)));
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

    /// Finds the scopes of `packet`, all that some key may sign.
    pub(super) fn scopes(
        &self,
        packet: &Name,
        steps: &mut Steps,
    ) -> Result<Vec<Scope>, TooManySteps> {
        let elements = elements(packet);
        let mut walk = Walk::new(self.model, &elements, Vec::new());
        let mut scopes = Vec::new();
        while let Some(node) = walk.next(steps)? {
            if !self.model.nodes[node].signers.is_empty() {
                scopes.push(self.scope(node, &walk.context));
            }
        }
        Ok(scopes)
    }

    fn scope(&self, node: NodeId, context: &Context<'_>) -> Scope {
        let value = |tag: &u64| find(context, *tag).map(Bytes::copy_from_slice);
        let values = match &self.shared[node] {
            Shared::Patterns(tags) => tags.iter().map(value).collect(),
            Shared::All => {
                let all = context.iter();
                all.map(|(_, value)| Some(Bytes::copy_from_slice(value)))
                    .collect()
            }
        };
        Scope { node, values }
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

/// Named patterns whose values decide which certificates may sign what ends at a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shared {
    /// These, sorted.
    Patterns(Vec<u64>),
    /// Too many to list: all that the name has.
    All,
}

/// Most patterns that are listed; with more of them, names share less than a list would let them.
const MAX_SHARED: usize = 64;
/// Most patterns that are read to find those.
const MAX_READ: usize = 1_024;

/// Returns the patterns that names share with certificates, for each node.
pub(super) fn shared_patterns(model: &Model) -> Vec<Shared> {
    let mut paths = vec![None; model.nodes.len()];
    let nodes = model.nodes.iter();
    let shared = nodes.map(|node| {
        let mut ends = node.signers.clone();
        ends.sort_unstable();
        ends.dedup();
        let mut all = Vec::new();
        for end in ends {
            let path = paths[end].get_or_insert_with(|| on_path(model, end));
            let Shared::Patterns(tags) = path else {
                return Shared::All;
            };
            all.extend_from_slice(tags);
            all.sort_unstable();
            all.dedup();
            if all.len() > MAX_SHARED {
                return Shared::All;
            }
        }
        Shared::Patterns(all)
    });
    shared.collect()
}

/// Named patterns on the way to `end`, and those that they are compared with.
fn on_path(model: &Model, end: NodeId) -> Shared {
    let mut tags = Vec::new();
    let mut at = end;
    while at != model.start
        && let Some(parent) = model.nodes[at].parent
        && let Some(node) = usize::try_from(parent)
            .ok()
            .and_then(|parent| model.nodes.get(parent))
    {
        let edge = node.patterns.iter().find(|edge| edge.to == at);
        for tag in edge.into_iter().flat_map(tags_of) {
            tags.push(tag);
            if tags.len() > MAX_READ {
                return Shared::All;
            }
        }
        // Each node counts, so that a circle of nodes that no name reaches ends.
        tags.push(u64::MAX);
        if tags.len() > MAX_READ {
            return Shared::All;
        }
        at = parent as NodeId;
    }
    tags.retain(|&tag| tag <= model.named_patterns);
    tags.sort_unstable();
    tags.dedup();
    match tags.len() <= MAX_SHARED {
        true => Shared::Patterns(tags),
        false => Shared::All,
    }
}

/// The pattern of `edge`, and those that it is compared with.
fn tags_of(edge: &PatternEdge) -> impl Iterator<Item = u64> + '_ {
    let choices = edge.constraints.iter().flatten();
    let compared = choices.flat_map(|choice| {
        let (tag, arguments) = match choice {
            Choice::Value(_) => (None, &[][..]),
            Choice::Tag(tag) => (Some(*tag), &[][..]),
            Choice::Call(_, arguments) => (None, &arguments[..]),
        };
        let arguments = arguments.iter().filter_map(|argument| match argument {
            Argument::Value(_) => None,
            Argument::Tag(tag) => Some(*tag),
        });
        tag.into_iter().chain(arguments)
    });
    core::iter::once(edge.tag).chain(compared)
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
