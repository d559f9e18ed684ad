//! Random topologies in which few nodes have many links, as in maps of the internet.

use namecast_netem as netem;
use namecast_units::Random;
use serde::{Deserialize, Serialize};

use super::builders::{AccessHosts, at_least, with_access};
use super::{Limits, NodeIndex, Topology, TopologyError, ordered};
use std::collections::BTreeSet;

/// Draws in vain before links are taken in order: only almost complete graphs get there.
const DRAWS: usize = 64;

/// Nodes n0, n1, … of which each new one prefers those that many others have linked to: Barabási and Albert 1999, with
/// an exact number of links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ScaleFree {
    /// How many nodes.
    pub nodes: usize,
    /// How many links, at least one less than nodes.
    pub links: usize,
    /// Fixes the graph.
    #[serde(default)]
    pub seed: u64,
    /// Every link.
    #[serde(default)]
    pub link: netem::Config,
    /// Hosts at its edge.
    #[serde(default)]
    pub access_hosts: Option<AccessHosts>,
}

impl ScaleFree {
    /// The topology, always connected.
    ///
    /// Each node links to ⌊links / (nodes − 1)⌋ earlier ones; the links that are then missing join nodes drawn with the
    /// same preference.
    ///
    /// # Errors
    /// If that many links cannot connect that many nodes, or `limits` do not allow them.
    pub fn build(&self, limits: &Limits) -> Result<Topology, TopologyError> {
        at_least("nodes", self.nodes, 1)?;
        at_least("links", self.links, self.nodes - 1)?;
        limits.check(self.nodes, self.links)?;
        let most = self.nodes.saturating_mul(self.nodes - 1) / 2;
        if self.links > most {
            let expected = format!("at most {most} between {} nodes", self.nodes);
            return Err(TopologyError::value("links", self.links, expected));
        }
        let mut growth = Growth {
            random: Random::from_seed(self.seed),
            ends: Vec::with_capacity(self.links * 2),
            pairs: BTreeSet::new(),
        };
        let each = self.links / (self.nodes - 1).max(1);
        for node in 1..self.nodes {
            for _ in 0..each.min(node) {
                let other = growth.partner(node, node);
                growth.link(node, other);
            }
        }
        while growth.pairs.len() < self.links {
            let node = growth.draw(self.nodes);
            if growth.degree_below(node, self.nodes) {
                let other = growth.partner(node, self.nodes);
                growth.link(node, other);
            }
        }
        let mut topology = Topology::default();
        for node in 0..self.nodes {
            topology.add_node(format!("n{node}"));
        }
        for pair in growth.ends.chunks_exact(2) {
            topology.connect(pair[0], pair[1], &self.link);
        }
        with_access(topology, self.access_hosts.as_ref(), limits)
    }
}

/// A graph that grows.
struct Growth {
    random: Random,
    /// Both ends of each link, in order: drawing from these prefers nodes in proportion to their links.
    ends: Vec<NodeIndex>,
    /// The links, lower end first.
    pairs: BTreeSet<(NodeIndex, NodeIndex)>,
}

impl Growth {
    /// A node below `bound`, in proportion to its links; any if there are none.
    fn draw(&mut self, bound: usize) -> NodeIndex {
        let choices = if self.ends.is_empty() {
            bound
        } else {
            self.ends.len()
        };
        let drawn = self.random.below(choices as u64);
        let drawn = usize::try_from(drawn).expect("below a usize");
        self.ends.get(drawn).copied().unwrap_or(drawn)
    }

    fn is_free(&self, node: NodeIndex, other: NodeIndex) -> bool {
        node != other && !self.pairs.contains(&ordered((node, other)))
    }

    /// Whether `node` lacks a link to one of the first `bound` nodes.
    fn degree_below(&self, node: NodeIndex, bound: usize) -> bool {
        (0..bound).any(|other| self.is_free(node, other))
    }

    /// A node below `bound` that `node` has no link to yet. There must be one.
    fn partner(&mut self, node: NodeIndex, bound: usize) -> NodeIndex {
        for _ in 0..DRAWS {
            let other = self.draw(bound);
            if other < bound && self.is_free(node, other) {
                return other;
            }
        }
        let free = (0..bound).find(|&other| self.is_free(node, other));
        free.expect("callers have made sure that there is one")
    }

    fn link(&mut self, node: NodeIndex, other: NodeIndex) {
        self.ends.extend([node, other]);
        self.pairs.insert(ordered((node, other)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(nodes: usize, links: usize, seed: u64) -> Result<Topology, TopologyError> {
        let shape = ScaleFree {
            nodes,
            links,
            seed,
            link: netem::Config::default(),
            access_hosts: None,
        };
        shape.build(&Limits::default())
    }

    #[test]
    fn every_possible_number_of_links_is_met_exactly() {
        for nodes in 1..12 {
            for links in nodes - 1..=nodes * (nodes - 1) / 2 {
                for seed in 0..3 {
                    let topology = build(nodes, links, seed).unwrap();
                    topology.check(&Limits::default()).unwrap();
                    assert!(topology.is_connected(), "{nodes} {links} {seed}");
                    assert_eq!((topology.nodes.len(), topology.links.len()), (nodes, links));
                }
            }
        }
        build(5, 3, 0).unwrap_err();
        build(5, 11, 0).unwrap_err();
        build(0, 0, 0).unwrap_err();
    }

    /// With 2 000 links of 1 000 nodes the mean degree is 4. Preferential attachment gives hubs of about √1000 · 2 = 63
    /// links; equal chances would give 4 + ln 1000 · 2 ≈ 15 at most. More than half of the nodes stay at or below 3.
    #[test]
    fn few_nodes_have_many_links() {
        for seed in 0..5 {
            let topology = build(1_000, 2_000, seed).unwrap();
            let mut degrees = vec![0; 1_000];
            for link in &topology.links {
                degrees[link.ends.0] += 1;
                degrees[link.ends.1] += 1;
            }
            let largest = *degrees.iter().max().unwrap();
            assert!((30..=250).contains(&largest), "{largest}");
            let small = degrees.iter().filter(|&&degree| degree <= 3).count();
            assert!((500..=900).contains(&small), "{small}");
        }
    }

    #[test]
    fn the_seed_fixes_the_graph() {
        assert_eq!(build(50, 80, 1).unwrap(), build(50, 80, 1).unwrap());
        assert_ne!(build(50, 80, 1).unwrap(), build(50, 80, 2).unwrap());
    }
}
