//! The tree: chains that begin alike share nodes.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::super::error::{TextError, TextProblem};
use super::super::limits::Limits;
use super::super::model::{Constraint, Model, Node, NodeId, PatternEdge, Symbol, ValueEdge};
use super::expand::{Chain, Step};
use super::numbers::Tag;
use super::{Names, RuleId, joined, order};

/// Builds the tree of `chains`, which stand by rule.
pub(super) fn build(
    chains: &[Vec<Chain<'_>>],
    symbols: Vec<Symbol>,
    names: &Names,
    limits: &Limits,
) -> Result<Model, TextError> {
    let mut graph = Graph {
        nodes: Vec::new(),
        signers: Vec::new(),
        ends: vec![Vec::new(); chains.len()],
        last_tag: symbols.len() as u64,
        names,
        limits,
    };
    let all: Vec<_> = chains
        .iter()
        .enumerate()
        .flat_map(|(id, chains)| chains.iter().map(move |chain| (id, chain)))
        .collect();
    let start = graph.node(0, &all, None, &mut Vec::new())?;
    graph.resolve_signers()?;
    Ok(Model {
        start,
        named_patterns: symbols.len() as u64,
        nodes: graph.nodes,
        symbols,
    })
}

/// A chain and its rule.
type Named<'c, 'a> = (RuleId, &'c Chain<'a>);

struct Graph<'n> {
    nodes: Vec<Node>,
    /// Rules that sign what ends at each node.
    signers: Vec<Vec<RuleId>>,
    /// Nodes that each rule ends at.
    ends: Vec<Vec<NodeId>>,
    /// Tag of the last temporary pattern.
    last_tag: u64,
    names: &'n Names,
    limits: &'n Limits,
}

/// Chains that go on by one pattern, with what it must satisfy.
struct Move<'c, 'a> {
    tag: Tag,
    constraints: Vec<Constraint>,
    chains: Vec<Named<'c, 'a>>,
}

impl Graph<'_> {
    /// Adds the node that `chains` reach after `depth` components, and all behind it. `tags` are the patterns on the way. Calls
    /// itself as deep as the longest chain is, which is bounded.
    fn node(
        &mut self,
        depth: usize,
        chains: &[Named<'_, '_>],
        parent: Option<NodeId>,
        tags: &mut Vec<Tag>,
    ) -> Result<NodeId, TextError> {
        let id = self.nodes.len();
        if id >= self.limits.max_nodes {
            let problem = TextProblem::TooMany {
                what: "nodes",
                count: id + 1,
                limit: self.limits.max_nodes,
            };
            let rule = chains.first().map_or(0, |(rule, _)| *rule);
            return Err(self.names.error(rule, problem));
        }
        self.nodes.push(Node {
            parent: parent.map(|parent| parent as u64),
            values_sorted: true,
            ..Node::default()
        });
        self.signers.push(Vec::new());
        let mut values: BTreeMap<Bytes, Vec<Named<'_, '_>>> = BTreeMap::new();
        let mut patterns: BTreeMap<String, Move<'_, '_>> = BTreeMap::new();
        for &(rule, chain) in chains {
            match chain.steps.get(depth) {
                None => self.end(id, rule, chain),
                Some(Step::Value(value)) => {
                    values.entry(value.clone()).or_default().push((rule, chain));
                }
                Some(Step::Pattern(tag)) => {
                    let (key, constraints) = movement(chain, *tag, tags);
                    let moved = patterns.entry(key).or_insert_with(|| Move {
                        tag: *tag,
                        constraints,
                        chains: Vec::new(),
                    });
                    moved.chains.push((rule, chain));
                }
            }
        }
        for (value, chains) in values {
            let to = self.node(depth + 1, &chains, Some(id), tags)?;
            self.nodes[id].values.push(ValueEdge { to, value });
        }
        for moved in patterns.into_values() {
            let edge = self.pattern(depth, id, moved, tags)?;
            self.nodes[id].patterns.push(edge);
        }
        Ok(id)
    }

    fn end(&mut self, node: NodeId, rule: RuleId, chain: &Chain<'_>) {
        self.nodes[node].rules.push(self.names.text(rule).into());
        self.signers[node].extend_from_slice(&chain.signers);
        self.ends[rule].push(node);
    }

    fn pattern(
        &mut self,
        depth: usize,
        from: NodeId,
        moved: Move<'_, '_>,
        tags: &mut Vec<Tag>,
    ) -> Result<PatternEdge, TextError> {
        let tag = match u64::try_from(moved.tag) {
            Ok(tag) => tag,
            // Tags on the wire are not negative: temporary patterns have those above named ones.
            Err(_) => {
                self.last_tag += 1;
                self.last_tag
            }
        };
        tags.push(moved.tag);
        let to = self.node(depth + 1, &moved.chains, Some(from), tags)?;
        tags.pop();
        Ok(PatternEdge {
            to,
            tag,
            constraints: moved.constraints,
        })
    }

    /// Turns rules that sign into the nodes that they end at.
    fn resolve_signers(&mut self) -> Result<(), TextError> {
        let mut count = 0_usize;
        for (id, rules) in self.signers.iter().enumerate() {
            let ends = rules.iter().map(|&rule| self.ends[rule].len());
            count = count.saturating_add(ends.sum());
            if count > self.limits.max_expansion {
                let problem = TextProblem::TooMany {
                    what: "pairs of names and signers",
                    count,
                    limit: self.limits.max_expansion,
                };
                return Err(self.names.error(self.rule_at(id), problem));
            }
            let nodes = rules.iter().flat_map(|&rule| &self.ends[rule]);
            let mut nodes: Vec<_> = nodes.copied().collect();
            nodes.sort_unstable();
            self.nodes[id].signers = nodes;
        }
        let edges: Vec<_> = self.nodes.iter().map(|node| node.signers.clone()).collect();
        order::topological(&edges).map(drop).map_err(|circle| {
            let mut rules: Vec<_> = circle.iter().map(|&node| self.rule_at(node)).collect();
            rules.sort_unstable();
            rules.dedup();
            let problem = TextProblem::SigningCircle(joined(&rules, self.names));
            self.names.error(rules[0], problem)
        })
    }

    /// The first rule that ends at `node`.
    fn rule_at(&self, node: NodeId) -> RuleId {
        let rule = self.nodes[node].rules.first();
        rule.map_or(0, |rule| self.names.ids[&**rule])
    }
}

/// What `chain` requires of the component behind the pattern `tag`: as text to compare and sort, and as constraints. Nothing if the
/// pattern stands before, as its value is known then.
fn movement(chain: &Chain<'_>, tag: Tag, before: &[Tag]) -> (String, Vec<Constraint>) {
    let mut key = format!("{tag}:");
    let mut constraints = Vec::new();
    if !before.contains(&tag) {
        for term in chain.terms.iter().filter(|term| term.tags.contains(&tag)) {
            key.push_str(&term.key);
            constraints.push(term.options.clone());
        }
    }
    (key, constraints)
}
