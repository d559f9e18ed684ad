//! Nodes and links before anything runs on them.
//!
//! ```text
//!  builders (dumbbell, grid, …) ─┐
//!  TOML: Spec ───────────────────┼─▶ Topology ─▶ routes
//!  files: ndnsim, rocketfuel, …  ┘       └─▶ ndnsim::write
//! ```

mod builders;
mod check;
mod error;
pub mod graphml;
pub mod mini_ndn;
pub mod ndnsim;
mod rates;
pub mod rocketfuel;
pub mod routes;
mod scale_free;
mod spec;
mod text;

use std::collections::BTreeMap;

use namecast_forward::SendQueueConfig;
use namecast_netem as netem;
use namecast_units::ByteSize;

pub use builders::{AccessHosts, Diamond, Dumbbell, Grid, Line, ParkingLot, Tree};
pub use check::Limits;
pub use error::TopologyError;
pub use scale_free::ScaleFree;
pub use spec::{
    CongestionLawSpec, ExplicitSpec, FileFormat, FileSpec, LinkSpec, NodeQueueSpec, NodeSpec, Spec,
};

/// Place of a node in [`Topology::nodes`].
pub type NodeIndex = usize;

/// Place of a link in [`Topology::links`].
pub type LinkIndex = usize;

/// A graph of nodes and links.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Topology {
    /// The nodes.
    pub nodes: Vec<Node>,
    /// The links between them; at most one between two nodes.
    pub links: Vec<Link>,
    /// What its source says that was ignored: a sentence for each kind.
    pub remarks: Vec<String>,
}

/// A host or router.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// Its name, unique in the topology.
    pub name: String,
    /// Where to draw it, if the source says: x, y.
    pub position: Option<(f64, f64)>,
}

/// A link between two nodes, with a direction each way.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Its two ends.
    pub ends: (NodeIndex, NodeIndex),
    /// What routes sum up; lower is preferred.
    pub cost: u64,
    /// The direction from the first end to the second.
    pub forward: netem::Config,
    /// The direction from the second end to the first.
    pub backward: netem::Config,
    /// What both ends do with packets.
    pub service: LinkService,
}

/// What the ends of a link do to get packets across it: NDNLPv2. The default is nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkService {
    /// Largest frame, in octets; larger packets are fragmented. None: any.
    pub mtu: Option<usize>,
    /// Whether frames are acknowledged, and sent again if lost.
    pub reliability: bool,
    /// The queue that each end has of its own; `None`: the link takes every frame at once.
    pub node_queue: Option<NodeQueue>,
}

/// The queue that a node has before what its system buffers for a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeQueue {
    /// Octets that the system buffers: they are the queue of the emulated link, and frames beyond wait in the node. Once a frame
    /// found no room there is none until less than half is taken, as Linux has it. A frame that
    /// is larger is buffered alone.
    pub socket_buffer: ByteSize,
    /// Bounds of what waits in the node, and when that is marked.
    pub send_queue: SendQueueConfig,
}

impl Link {
    /// The end that is not `node`, if the link ends there.
    pub const fn other_end(&self, node: NodeIndex) -> Option<NodeIndex> {
        match self.ends {
            (a, b) if a == node => Some(b),
            (a, b) if b == node => Some(a),
            _ => None,
        }
    }

    /// Its ends in order of index, the same for either direction.
    pub(crate) const fn pair(&self) -> (NodeIndex, NodeIndex) {
        ordered(self.ends)
    }
}

impl Topology {
    /// Adds a node and says where. Whether its name is unique only [`check`](Self::check) sees.
    pub fn add_node(&mut self, name: impl Into<String>) -> NodeIndex {
        self.nodes.push(Node {
            name: name.into(),
            position: None,
        });
        self.nodes.len() - 1
    }

    /// Adds a link of cost 1 that is the same in both directions.
    pub fn connect(&mut self, from: NodeIndex, to: NodeIndex, config: &netem::Config) -> LinkIndex {
        self.links.push(Link {
            ends: (from, to),
            cost: 1,
            forward: config.clone(),
            backward: config.clone(),
            service: LinkService::default(),
        });
        self.links.len() - 1
    }

    /// The node of this name. It looks at every node: for many names, use [`names`](Self::names).
    pub fn node(&self, name: &str) -> Option<NodeIndex> {
        self.nodes.iter().position(|node| node.name == name)
    }

    /// Every node by its name.
    pub fn names(&self) -> BTreeMap<&str, NodeIndex> {
        let nodes = self.nodes.iter().enumerate();
        nodes.map(|(at, node)| (node.name.as_str(), at)).collect()
    }

    /// Whether every node can reach every other. No nodes are connected.
    pub fn is_connected(&self) -> bool {
        self.largest_component().len() == self.nodes.len()
    }

    /// The largest set of nodes that reach each other, in order of index; of equal ones the one with the lowest index.
    pub fn largest_component(&self) -> Vec<NodeIndex> {
        let graph = routes::Graph::new(self);
        let mut seen = vec![false; self.nodes.len()];
        let mut largest = Vec::new();
        for start in 0..self.nodes.len() {
            if seen[start] {
                continue;
            }
            seen[start] = true;
            let mut component = vec![start];
            let mut next = 0;
            while let Some(&node) = component.get(next) {
                next += 1;
                for neighbour in graph.neighbours(node) {
                    if !seen[neighbour.node] {
                        seen[neighbour.node] = true;
                        component.push(neighbour.node);
                    }
                }
            }
            if component.len() > largest.len() {
                largest = component;
            }
        }
        largest.sort_unstable();
        largest
    }

    /// Only these nodes, in this order, and the links between them.
    pub fn restricted_to(&self, nodes: &[NodeIndex]) -> Self {
        let mut places = vec![None; self.nodes.len()];
        for (place, &node) in nodes.iter().enumerate() {
            places[node] = Some(place);
        }
        let links = self.links.iter().filter_map(|link| {
            let ends = (places[link.ends.0]?, places[link.ends.1]?);
            Some(Link {
                ends,
                ..link.clone()
            })
        });
        Self {
            nodes: nodes.iter().map(|&at| self.nodes[at].clone()).collect(),
            links: links.collect(),
            remarks: self.remarks.clone(),
        }
    }
}

pub(crate) const fn ordered((a, b): (NodeIndex, NodeIndex)) -> (NodeIndex, NodeIndex) {
    if a < b { (a, b) } else { (b, a) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topology(nodes: usize, links: &[(usize, usize)]) -> Topology {
        let mut topology = Topology::default();
        for node in 0..nodes {
            topology.add_node(format!("n{node}"));
        }
        for &(from, to) in links {
            topology.connect(from, to, &netem::Config::default());
        }
        topology
    }

    #[test]
    fn the_largest_component_is_found_and_kept_with_its_links() {
        let topology = topology(6, &[(0, 1), (5, 3), (3, 4)]);
        assert!(!topology.is_connected());
        assert_eq!(topology.largest_component(), [3, 4, 5]);
        let kept = topology.restricted_to(&[3, 4, 5]);
        let ends: Vec<_> = kept.links.iter().map(|link| link.ends).collect();
        assert_eq!(ends, [(2, 0), (0, 1)]);
        assert_eq!(kept.nodes[2].name, "n5");
        assert!(kept.is_connected());
    }

    #[test]
    fn of_equal_components_the_first_counts_and_nothing_is_connected() {
        assert_eq!(topology(4, &[(2, 3), (0, 1)]).largest_component(), [0, 1]);
        assert!(Topology::default().is_connected());
    }

    #[test]
    fn a_link_knows_its_other_end() {
        let topology = topology(3, &[(2, 1)]);
        let link = &topology.links[0];
        assert_eq!(link.other_end(1), Some(2));
        assert_eq!(link.other_end(2), Some(1));
        assert_eq!(link.other_end(0), None);
        assert_eq!(link.pair(), (1, 2));
    }
}
