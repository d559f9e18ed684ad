//! Nodes and links before anything runs on them.

use namecast_netem as netem;

/// Place of a node in [`Topology::nodes`].
pub type NodeIndex = usize;

/// A graph of nodes and links.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Topology {
    /// The nodes.
    pub nodes: Vec<Node>,
    /// The links between them; at most one between two nodes.
    pub links: Vec<Link>,
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
}
