//! Shortest paths, as ndnSIM's `GlobalRoutingHelper` installs them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{LinkIndex, NodeIndex, Topology};

/// Sum of costs to the destination, then links on the way.
///
/// Each next hop is strictly nearer in this order, so routes never loop, not even over links that cost nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Distance {
    /// Sum of the links' costs.
    pub cost: u64,
    /// Number of links.
    pub hops: usize,
}

/// One way on from a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHop {
    /// The link to take.
    pub link: LinkIndex,
    /// Cost of the whole way over this link.
    pub cost: u64,
}

/// A link as seen from one of its ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Neighbour {
    pub(super) node: NodeIndex,
    link: LinkIndex,
    cost: u64,
}

/// Who is next to whom; made once, asked for many destinations.
#[derive(Clone, Debug)]
pub struct Graph {
    /// All nodes' neighbours, one node after the other.
    neighbours: Vec<Neighbour>,
    /// Where each node's begin; one more at the end.
    starts: Vec<usize>,
}

impl Graph {
    /// The graph of a topology. Links with ends that do not exist are left out.
    pub fn new(topology: &Topology) -> Self {
        let nodes = topology.nodes.len();
        let links = || {
            let links = topology.links.iter().enumerate();
            links.filter(|(_, link)| link.ends.0 < nodes && link.ends.1 < nodes)
        };
        let mut starts = vec![0; nodes + 1];
        for (_, link) in links() {
            starts[link.ends.0 + 1] += 1;
            starts[link.ends.1 + 1] += 1;
        }
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        let nobody = Neighbour {
            node: 0,
            link: 0,
            cost: 0,
        };
        let mut neighbours = vec![nobody; starts[nodes]];
        let mut free = starts.clone();
        for (at, link) in links() {
            let (from, to) = link.ends;
            for (node, other) in [(from, to), (to, from)] {
                neighbours[free[node]] = Neighbour {
                    node: other,
                    link: at,
                    cost: link.cost,
                };
                free[node] += 1;
            }
        }
        Self { neighbours, starts }
    }

    pub(super) fn neighbours(&self, node: NodeIndex) -> &[Neighbour] {
        &self.neighbours[self.starts[node]..self.starts[node + 1]]
    }

    /// Distance of every node to `destination`; none for those that cannot reach it.
    ///
    /// Dijkstra's algorithm: O(E · log V).
    ///
    /// # Panics
    /// If there is no such node.
    pub fn distances(&self, destination: NodeIndex) -> Vec<Option<Distance>> {
        let mut distances = vec![None; self.starts.len() - 1];
        let zero = Distance { cost: 0, hops: 0 };
        distances[destination] = Some(zero);
        let mut queue = BinaryHeap::from([Reverse((zero, destination))]);
        while let Some(Reverse((distance, node))) = queue.pop() {
            if distances[node] != Some(distance) {
                continue;
            }
            for neighbour in self.neighbours(node) {
                let candidate = over(neighbour, distance);
                let known = &mut distances[neighbour.node];
                if known.is_none_or(|known| candidate < known) {
                    *known = Some(candidate);
                    queue.push(Reverse((candidate, neighbour.node)));
                }
            }
        }
        distances
    }

    /// The link that each node takes towards `destination`; none at the destination and where there is no way.
    ///
    /// Of several ways the cheapest is taken, then the one with the fewest links, then the lowest neighbour.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn towards(&self, destination: NodeIndex) -> Vec<Option<LinkIndex>> {
        let distances = self.distances(destination);
        let best = |node: NodeIndex| {
            let here = distances[node].filter(|here| here.hops > 0)?;
            let ways = self.neighbours(node).iter().filter(|neighbour| {
                distances[neighbour.node].is_some_and(|there| over(neighbour, there) == here)
            });
            let way = ways.min_by_key(|neighbour| (neighbour.node, neighbour.link));
            way.map(|neighbour| neighbour.link)
        };
        (0..distances.len()).map(best).collect()
    }

    /// Every way on towards `destination` that leads nearer to it, the best first, for strategies that choose.
    ///
    /// ndnSIM's `CalculateAllPossibleRoutes` also lists ways that lead back; those make Interests loop, and are left out.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn all_next_hops(&self, destination: NodeIndex) -> Vec<Vec<NextHop>> {
        let distances = self.distances(destination);
        let ways = |node: NodeIndex| {
            let mut ways: Vec<_> = self
                .neighbours(node)
                .iter()
                .filter_map(|neighbour| {
                    let there = distances[neighbour.node]?;
                    let nearer = distances[node].is_some_and(|here| there < here);
                    nearer.then(|| (over(neighbour, there), neighbour.node, neighbour.link))
                })
                .collect();
            ways.sort_unstable();
            let hop = |(distance, _, link): (Distance, NodeIndex, LinkIndex)| NextHop {
                link,
                cost: distance.cost,
            };
            ways.into_iter().map(hop).collect()
        };
        (0..distances.len()).map(ways).collect()
    }
}

/// The way to a node at `distance`, made longer by the link to `neighbour`.
const fn over(neighbour: &Neighbour, distance: Distance) -> Distance {
    Distance {
        cost: distance.cost.saturating_add(neighbour.cost),
        hops: distance.hops + 1,
    }
}

/// [`Graph::towards`] for one destination. For several, make the graph once.
///
/// # Panics
/// If there is no such node.
pub fn towards(topology: &Topology, destination: NodeIndex) -> Vec<Option<LinkIndex>> {
    Graph::new(topology).towards(destination)
}

/// [`Graph::all_next_hops`] for one destination. For several, make the graph once.
///
/// # Panics
/// If there is no such node.
pub fn all_next_hops(topology: &Topology, destination: NodeIndex) -> Vec<Vec<NextHop>> {
    Graph::new(topology).all_next_hops(destination)
}

#[cfg(test)]
mod tests {
    use namecast_netem::Config;
    use namecast_units::Random;

    use super::*;

    fn topology(nodes: usize, links: &[(usize, usize, u64)]) -> Topology {
        let mut topology = Topology::default();
        for node in 0..nodes {
            topology.add_node(format!("n{node}"));
        }
        for &(from, to, cost) in links {
            let link = topology.connect(from, to, &Config::default());
            topology.links[link].cost = cost;
        }
        topology
    }

    /// ```text
    ///  0 ─1─ 1 ─1─ 2        to 2: from 0 over 1 costs 2, directly 5; 3 is a leaf of 0; 4 is alone
    ///  │╲────5─────╱
    ///  3
    /// ```
    #[test]
    fn the_cheapest_way_is_taken_and_all_nearer_ones_are_listed() {
        let topology = topology(5, &[(0, 1, 1), (1, 2, 1), (2, 0, 5), (3, 0, 1)]);
        assert_eq!(
            towards(&topology, 2),
            [Some(0), Some(1), None, Some(3), None]
        );
        let hops = all_next_hops(&topology, 2);
        let cheap = NextHop { link: 0, cost: 2 };
        let direct = NextHop { link: 2, cost: 5 };
        assert_eq!(hops[0], [cheap, direct]);
        assert_eq!(hops[3], [NextHop { link: 3, cost: 3 }]);
        assert!(hops[2].is_empty() && hops[4].is_empty());
    }

    #[test]
    fn ties_go_to_fewer_links_then_to_the_lower_neighbour() {
        // From 0 to 4 at cost 2: over 1 and 2 (three links), over 3, or over 5; 3 wins though its link comes last.
        let ways = [
            (0, 1, 1),
            (1, 2, 0),
            (2, 4, 1),
            (0, 5, 1),
            (5, 4, 1),
            (3, 4, 1),
            (0, 3, 1),
        ];
        assert_eq!(towards(&topology(6, &ways), 4)[0], Some(6));
    }

    #[test]
    fn links_that_cost_nothing_do_not_make_loops() {
        let ring: Vec<_> = (0..6).map(|node| (node, (node + 1) % 6, 0)).collect();
        let topology = topology(6, &ring);
        check_routes(&topology, 2);
    }

    /// Follows every route and every next hop; each step must lead nearer by label, and reach the destination.
    fn check_routes(topology: &Topology, destination: usize) {
        let naive = bellman_ford(topology, destination);
        let graph = Graph::new(topology);
        let distances = graph.distances(destination);
        let routes = graph.towards(destination);
        let hops = graph.all_next_hops(destination);
        for node in 0..topology.nodes.len() {
            assert_eq!(distances[node].map(|d| (d.cost, d.hops)), naive[node]);
            let (mut at, mut cost, mut steps) = (node, 0, 0);
            while let Some(link) = routes[at] {
                cost += topology.links[link].cost;
                at = topology.links[link].other_end(at).unwrap();
                steps += 1;
                assert!(steps <= topology.nodes.len(), "a loop");
            }
            match naive[node] {
                Some(expected) => assert_eq!((at, (cost, steps)), (destination, expected)),
                None => assert_eq!(at, node),
            }
            let nearer = topology.links.iter().enumerate().filter_map(|(at, link)| {
                let other = link.other_end(node)?;
                let there = naive[other]?;
                (there < naive[node]?).then(|| (at, there.0 + link.cost))
            });
            let mut expected: Vec<_> = nearer.collect();
            let mut found: Vec<_> = hops[node].iter().map(|hop| (hop.link, hop.cost)).collect();
            assert!(found.is_sorted_by_key(|hop| hop.1));
            assert_eq!(found.first().map(|hop| hop.0), routes[node]);
            expected.sort_unstable();
            found.sort_unstable();
            assert_eq!(found, expected);
        }
    }

    /// The naive twin: relaxes every link until nothing changes.
    fn bellman_ford(topology: &Topology, destination: usize) -> Vec<Option<(u64, usize)>> {
        let mut distances = vec![None; topology.nodes.len()];
        distances[destination] = Some((0, 0));
        loop {
            let before = distances.clone();
            for link in &topology.links {
                for (from, to) in [link.ends, (link.ends.1, link.ends.0)] {
                    let Some((cost, hops)) = distances[to] else {
                        continue;
                    };
                    let candidate = (cost + link.cost, hops + 1);
                    if distances[from].is_none_or(|known| candidate < known) {
                        distances[from] = Some(candidate);
                    }
                }
            }
            if distances == before {
                return distances;
            }
        }
    }

    #[test]
    fn routes_match_a_naive_twin() {
        for seed in 0..200 {
            let mut random = Random::from_seed(seed);
            let mut draw = |bound| usize::try_from(random.below(bound)).unwrap();
            let nodes = 2 + draw(12);
            let mut links = Vec::new();
            for from in 0..nodes {
                for to in 0..from {
                    if draw(3) == 0 {
                        links.push((from, to, draw(4) as u64));
                    }
                }
            }
            println!("seed {seed}");
            check_routes(&topology(nodes, &links), draw(nodes as u64));
        }
    }
}
