//! Regular topologies, and hosts at the edge of any.

use core::time::Duration;

use namecast_netem::{self as netem, Queue};
use namecast_units::{Bitrate, Random};
use serde::{Deserialize, Serialize};

use super::{Limits, NodeIndex, Topology, TopologyError};

/// Producers P1…Pn behind R1, consumers C1…Cn behind R2, and one link between the routers: figure 3 of the ARC paper.
///
/// The default is the paper's: access at 1 Gbit/s and 1 ms, a bottleneck of 10 Mbit/s and 8 ms with 50 packets of queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Dumbbell {
    /// Pairs of a producer and a consumer.
    pub flows: usize,
    /// From R1 to R2, the way of Data; and back, unless `bottleneck_back` says otherwise.
    pub bottleneck: netem::Config,
    /// From R2 to R1, the way of Interests.
    pub bottleneck_back: Option<netem::Config>,
    /// Between each producer and R1.
    pub producer_access: netem::Config,
    /// Between R2 and each consumer.
    pub consumer_access: netem::Config,
    /// Delay added to the access of consumer i, counted from 0: i times this. figure 13 of the ARC paper: 5 ms.
    #[serde(with = "namecast_units::duration")]
    pub consumer_delay_step: Duration,
}

impl Default for Dumbbell {
    fn default() -> Self {
        let link = |rate: Bitrate, delay| netem::Config {
            rate: Some(rate.into()),
            delay: Duration::from_millis(delay),
            queue: Queue::DropTail { packets: 50 },
            ..netem::Config::default()
        };
        let access = link(Bitrate::mbps(1_000), 1);
        Self {
            flows: 1,
            bottleneck: link(Bitrate::mbps(10), 8),
            bottleneck_back: None,
            producer_access: access.clone(),
            consumer_access: access,
            consumer_delay_step: Duration::ZERO,
        }
    }
}

impl Dumbbell {
    /// The topology: R1, R2, P1…Pn, C1…Cn; the bottleneck is link 0 and points from R1 to R2.
    ///
    /// # Errors
    /// If there is no flow, or more than `limits` allow.
    pub fn build(&self, limits: &Limits) -> Result<Topology, TopologyError> {
        at_least("flows", self.flows, 1)?;
        let ends = self.flows.saturating_mul(2);
        limits.check(ends.saturating_add(2), ends.saturating_add(1))?;
        let mut topology = Topology::default();
        let (left, right) = (topology.add_node("R1"), topology.add_node("R2"));
        let bottleneck = topology.connect(left, right, &self.bottleneck);
        if let Some(back) = &self.bottleneck_back {
            topology.links[bottleneck].backward = back.clone();
        }
        for flow in 1..=self.flows {
            let producer = topology.add_node(format!("P{flow}"));
            topology.connect(producer, left, &self.producer_access);
        }
        let mut access = self.consumer_access.clone();
        for flow in 1..=self.flows {
            let consumer = topology.add_node(format!("C{flow}"));
            topology.connect(right, consumer, &access);
            access.delay = access.delay.saturating_add(self.consumer_delay_step);
        }
        // Ends left and right, flows from top to bottom.
        let middle = (self.flows as f64 - 1.0) / 2.0;
        for (at, node) in topology.nodes.iter_mut().enumerate() {
            node.position = Some(match at {
                0 => (1.0, middle),
                1 => (2.0, middle),
                _ if at < 2 + self.flows => (0.0, (at - 2) as f64),
                _ => (3.0, (at - 2 - self.flows) as f64),
            });
        }
        Ok(topology)
    }
}

/// Bottlenecks in a row: a parking lot, in which one flow passes all of them, and each has one that passes it alone.
///
/// Bottleneck i leads from Ri to Ri+1. Beside the routers are P0 – R1 and Rn+1 – C0, the ends of the long flow, and for each
/// bottleneck Pi – Ri and Ri+1 – Ci. Links that are not given are those of [`Dumbbell`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ParkingLot {
    /// How many bottlenecks.
    pub bottlenecks: usize,
    /// Each of them, in both directions.
    pub bottleneck: netem::Config,
    /// Rates of single bottlenecks, from the first on, in both directions; the others have that of `bottleneck`.
    pub rates: Vec<Bitrate>,
    /// Between hosts and routers.
    pub access: netem::Config,
}

impl Default for ParkingLot {
    fn default() -> Self {
        let dumbbell = Dumbbell::default();
        Self {
            bottlenecks: 2,
            bottleneck: dumbbell.bottleneck,
            rates: Vec::new(),
            access: dumbbell.consumer_access,
        }
    }
}

impl ParkingLot {
    /// The topology: R1…Rn+1, P0, C0, P1, C1, …; link i, from 0, is bottleneck i + 1 and points the way of Data.
    ///
    /// # Errors
    /// If there is no bottleneck, or more than `limits` allow, or more rates than bottlenecks.
    pub fn build(&self, limits: &Limits) -> Result<Topology, TopologyError> {
        let count = self.bottlenecks;
        at_least("bottlenecks", count, 1)?;
        let nodes = count.saturating_mul(3).saturating_add(3);
        limits.check(nodes, nodes - 1)?;
        if self.rates.len() > count {
            let expected = format!("{count} at most, one for each bottleneck");
            return Err(TopologyError::value("rates", self.rates.len(), expected));
        }
        let mut topology = Topology::default();
        for at in 0..=count {
            let router = format!("R{}", at + 1);
            place(&mut topology, router, (at as f64, 0.0));
            if at > 0 {
                let mut bottleneck = self.bottleneck.clone();
                if let Some(rate) = self.rates.get(at - 1) {
                    bottleneck.rate = Some((*rate).into());
                }
                topology.connect(at - 1, at, &bottleneck);
            }
        }
        let crossing = (1..=count).map(|flow| (flow, flow - 1, flow));
        for (flow, first, last) in [(0, 0, count)].into_iter().chain(crossing) {
            let row = if flow == 0 { -1.0 } else { 1.0 };
            let producer = (first as f64 - 0.3, row);
            let producer = place(&mut topology, format!("P{flow}"), producer);
            topology.connect(producer, first, &self.access);
            let consumer = (last as f64 + 0.3, row);
            let consumer = place(&mut topology, format!("C{flow}"), consumer);
            topology.connect(last, consumer, &self.access);
        }
        Ok(topology)
    }
}

/// Nodes n0, n1, … in a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Line {
    /// How many nodes.
    pub nodes: usize,
    /// Every link.
    #[serde(default)]
    pub link: netem::Config,
    /// Hosts at its edge.
    #[serde(default)]
    pub access_hosts: Option<AccessHosts>,
}

impl Line {
    /// The topology; link i points from node i to node i + 1.
    ///
    /// # Errors
    /// If there is no node, or more than `limits` allow.
    pub fn build(&self, limits: &Limits) -> Result<Topology, TopologyError> {
        at_least("nodes", self.nodes, 1)?;
        limits.check(self.nodes, self.nodes - 1)?;
        let mut topology = Topology::default();
        for at in 0..self.nodes {
            place(&mut topology, format!("n{at}"), (at as f64, 0.0));
            if at > 0 {
                topology.connect(at - 1, at, &self.link);
            }
        }
        with_access(topology, self.access_hosts.as_ref(), limits)
    }
}

/// A tree in which every node above the leaves has equally many below it.
///
/// Node `n<level>-<place>`; the root is `n0-0`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Tree {
    /// Levels below the root.
    pub depth: usize,
    /// Nodes below each.
    pub fanout: usize,
    /// Every link.
    #[serde(default)]
    pub link: netem::Config,
    /// Rates towards the leaves, which take them in turn; without any, that of `link`.
    #[serde(default)]
    pub leaf_rates: Vec<Bitrate>,
    /// Link from a node `trunk` to the root; without one there is no such node.
    #[serde(default)]
    pub trunk: Option<netem::Config>,
    /// Hosts at its edge.
    #[serde(default)]
    pub access_hosts: Option<AccessHosts>,
}

impl Tree {
    /// The topology, level by level; links point away from the root.
    ///
    /// # Errors
    /// If nothing is below a node, or there are more nodes than `limits` allow.
    pub fn build(&self, limits: &Limits) -> Result<Topology, TopologyError> {
        at_least("fanout", self.fanout, 1)?;
        let (mut width, mut nodes) = (1_usize, 1_usize);
        for _ in 0..self.depth {
            width = width.saturating_mul(self.fanout);
            nodes = nodes.saturating_add(width);
            limits.check(nodes, nodes - 1)?;
        }
        let leaves = width as f64;
        let mut topology = Topology::default();
        place(
            &mut topology,
            "n0-0".to_owned(),
            (0.0, (leaves - 1.0) / 2.0),
        );
        let (mut above, mut width) = (0..1, 1_usize);
        for level in 1..=self.depth {
            let first = topology.nodes.len();
            width *= self.fanout;
            let share = leaves / width as f64;
            for at in 0..width {
                let y = (at as f64 + 0.5).mul_add(share, -0.5);
                let node = place(&mut topology, format!("n{level}-{at}"), (level as f64, y));
                let link = topology.connect(above.start + at / self.fanout, node, &self.link);
                let count = self.leaf_rates.len().max(1);
                let rate = self.leaf_rates.get(at % count);
                if let Some(rate) = rate.filter(|_| level == self.depth) {
                    topology.links[link].forward.rate = Some((*rate).into());
                }
            }
            above = first..first + width;
        }
        if let Some(trunk) = &self.trunk {
            limits.check(nodes.saturating_add(1), nodes)?;
            let node = place(
                &mut topology,
                "trunk".to_owned(),
                (-1.0, (leaves - 1.0) / 2.0),
            );
            topology.connect(node, 0, trunk);
        }
        with_access(topology, self.access_hosts.as_ref(), limits)
    }
}

/// Nodes `n<x>-<y>`, each linked to those beside, above and below it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Grid {
    /// Nodes in a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Every link.
    #[serde(default)]
    pub link: netem::Config,
    /// Hosts at its edge.
    #[serde(default)]
    pub access_hosts: Option<AccessHosts>,
}

impl Grid {
    /// The topology, row by row.
    ///
    /// # Errors
    /// If it has no nodes, or more than `limits` allow.
    pub fn build(&self, limits: &Limits) -> Result<Topology, TopologyError> {
        at_least("width", self.width, 1)?;
        at_least("height", self.height, 1)?;
        let nodes = self.width.saturating_mul(self.height);
        limits.check(nodes, 0)?;
        limits.check(nodes, 2 * nodes - self.width - self.height)?;
        let mut topology = Topology::default();
        for y in 0..self.height {
            for x in 0..self.width {
                let node = place(&mut topology, format!("n{x}-{y}"), (x as f64, y as f64));
                if x > 0 {
                    topology.connect(node - 1, node, &self.link);
                }
                if y > 0 {
                    topology.connect(node - self.width, node, &self.link);
                }
            }
        }
        with_access(topology, self.access_hosts.as_ref(), limits)
    }
}

/// Two ways from one router to another: west – north – east, and west – south – east.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Diamond {
    /// Both links of the northern way.
    pub north: netem::Config,
    /// Both links of the southern way.
    pub south: netem::Config,
    /// Cost of each southern link; each northern one costs 1. Zero counts as 1.
    pub south_cost: u64,
    /// Hosts at its edge.
    pub access_hosts: Option<AccessHosts>,
}

impl Diamond {
    /// The topology: nodes west, north, south, east; links point from west to east, the northern two first.
    ///
    /// # Errors
    /// If `limits` do not even allow this.
    pub fn build(&self, limits: &Limits) -> Result<Topology, TopologyError> {
        limits.check(4, 4)?;
        let mut topology = Topology::default();
        let west = place(&mut topology, "west".to_owned(), (0.0, 0.0));
        let north = place(&mut topology, "north".to_owned(), (1.0, -1.0));
        let south = place(&mut topology, "south".to_owned(), (1.0, 1.0));
        let east = place(&mut topology, "east".to_owned(), (2.0, 0.0));
        topology.connect(west, north, &self.north);
        topology.connect(north, east, &self.north);
        for ends in [(west, south), (south, east)] {
            let link = topology.connect(ends.0, ends.1, &self.south);
            topology.links[link].cost = self.south_cost.max(1);
        }
        with_access(topology, self.access_hosts.as_ref(), limits)
    }
}

/// Hosts acc0, acc1, … at the edge of a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct AccessHosts {
    /// How many. A router gets a second one only when all others have one.
    pub count: usize,
    /// Every host's link.
    #[serde(default)]
    pub link: netem::Config,
    /// Fixes which routers.
    #[serde(default)]
    pub seed: u64,
}

impl Topology {
    /// The same with hosts at its edge, behind routers in random order.
    ///
    /// # Errors
    /// If there is no router for them, there are more than `limits` allow, or a name is taken.
    pub fn with_access_hosts(
        mut self,
        hosts: &AccessHosts,
        limits: &Limits,
    ) -> Result<Self, TopologyError> {
        let routers = self.nodes.len();
        at_least("nodes to attach hosts to", routers, 1)?;
        limits.check(
            routers.saturating_add(hosts.count),
            self.links.len().saturating_add(hosts.count),
        )?;
        let mut order: Vec<NodeIndex> = (0..routers).collect();
        shuffle(&mut order, &mut Random::from_seed(hosts.seed));
        for host in 0..hosts.count {
            let node = self.add_node(format!("acc{host}"));
            self.connect(node, order[host % routers], &hosts.link);
        }
        self.check(limits)?;
        Ok(self)
    }
}

/// Adds the hosts of a configuration, if there are any.
pub(super) fn with_access(
    topology: Topology,
    hosts: Option<&AccessHosts>,
    limits: &Limits,
) -> Result<Topology, TopologyError> {
    match hosts {
        Some(hosts) => topology.with_access_hosts(hosts, limits),
        None => Ok(topology),
    }
}

/// Every order is equally likely: Fisher and Yates.
fn shuffle(order: &mut [NodeIndex], random: &mut Random) {
    for last in (1..order.len()).rev() {
        let other = random.below(last as u64 + 1);
        order.swap(last, usize::try_from(other).expect("not above an index"));
    }
}

fn place(topology: &mut Topology, name: String, position: (f64, f64)) -> NodeIndex {
    let node = topology.add_node(name);
    topology.nodes[node].position = Some(position);
    node
}

pub(super) fn at_least(field: &str, found: usize, least: usize) -> Result<(), TopologyError> {
    if found < least {
        return Err(TopologyError::value(
            field,
            found,
            format!("at least {least}"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: fn() -> Limits = Limits::default;

    fn ends(topology: &Topology) -> Vec<(&str, &str)> {
        let name = |node: NodeIndex| topology.nodes[node].name.as_str();
        let links = topology.links.iter();
        links
            .map(|link| (name(link.ends.0), name(link.ends.1)))
            .collect()
    }

    fn sound(topology: &Topology) {
        topology.check(&LIMITS()).unwrap();
        assert!(topology.is_connected());
        assert!(topology.nodes.iter().all(|node| node.position.is_some()));
    }

    #[test]
    fn a_dumbbell_is_named_and_wired_as_in_the_paper() {
        let topology = Dumbbell {
            flows: 2,
            ..Dumbbell::default()
        }
        .build(&LIMITS())
        .unwrap();
        sound(&topology);
        let expected = [
            ("R1", "R2"),
            ("P1", "R1"),
            ("P2", "R1"),
            ("R2", "C1"),
            ("R2", "C2"),
        ];
        assert_eq!(ends(&topology), expected);
        let bottleneck = &topology.links[0];
        assert_eq!(bottleneck.forward.rate, Some(Bitrate::mbps(10).into()));
        assert_eq!(bottleneck.forward.queue, Queue::DropTail { packets: 50 });
        assert_eq!(bottleneck.forward, bottleneck.backward);
        assert_eq!(topology.links[4].forward.delay, Duration::from_millis(1));
    }

    /// Figure 13: 32 flows, the n-th with 5·(n − 1) + 1 ms; the last has 156 ms.
    #[test]
    fn consumers_of_a_dumbbell_can_be_farther_and_farther_away() {
        let dumbbell = Dumbbell {
            flows: 32,
            consumer_delay_step: Duration::from_millis(5),
            bottleneck_back: Some(netem::Config::default()),
            ..Dumbbell::default()
        };
        let topology = dumbbell.build(&LIMITS()).unwrap();
        sound(&topology);
        let delay = |name: &str| {
            let node = topology.node(name).unwrap();
            let link = topology
                .links
                .iter()
                .find(|link| link.other_end(node).is_some());
            let link = link.unwrap();
            assert_eq!(link.forward, link.backward);
            link.forward.delay.as_millis()
        };
        assert_eq!(
            [delay("C1"), delay("C2"), delay("C32"), delay("P32")],
            [1, 6, 156, 1]
        );
        assert_eq!(topology.links[0].backward, netem::Config::default());
    }

    #[test]
    fn lines_trees_grids_and_diamonds_have_the_right_links() {
        let link = netem::Config::default();
        let line = Line {
            nodes: 3,
            link: link.clone(),
            access_hosts: None,
        };
        let line = line.build(&LIMITS()).unwrap();
        assert_eq!(ends(&line), [("n0", "n1"), ("n1", "n2")]);
        let rates = [Bitrate::mbps(1), Bitrate::mbps(2), Bitrate::mbps(3)];
        let tree = Tree {
            depth: 2,
            fanout: 2,
            link: link.clone(),
            leaf_rates: rates.to_vec(),
            trunk: Some(link.clone()),
            access_hosts: None,
        };
        let tree = tree.build(&LIMITS()).unwrap();
        assert_eq!(
            ends(&tree),
            [
                ("n0-0", "n1-0"),
                ("n0-0", "n1-1"),
                ("n1-0", "n2-0"),
                ("n1-0", "n2-1"),
                ("n1-1", "n2-2"),
                ("n1-1", "n2-3"),
                ("trunk", "n0-0")
            ]
        );
        let leaf_rates = tree.links[2..6].iter().map(|it| it.forward.rate.clone());
        let in_turn = [0, 1, 2, 0].map(|it| Some(netem::Rate::from(rates[it])));
        assert!(leaf_rates.eq(in_turn));
        let unchanged = tree.links.iter().all(|it| it.backward == link);
        assert!(unchanged && tree.links[1].forward == link);
        // Leaves at 0, 1, 2, 3; their parents between them.
        assert_eq!(tree.nodes[2].position, Some((1.0, 2.5)));
        let grid = Grid {
            width: 3,
            height: 2,
            link,
            access_hosts: None,
        };
        let grid = grid.build(&LIMITS()).unwrap();
        assert_eq!(
            ends(&grid),
            [
                ("n0-0", "n1-0"),
                ("n1-0", "n2-0"),
                ("n0-0", "n0-1"),
                ("n0-1", "n1-1"),
                ("n1-0", "n1-1"),
                ("n1-1", "n2-1"),
                ("n2-0", "n2-1")
            ]
        );
        let diamond = Diamond {
            south_cost: 3,
            ..Diamond::default()
        };
        let diamond = diamond.build(&LIMITS()).unwrap();
        let costs: Vec<_> = diamond.links.iter().map(|link| link.cost).collect();
        assert_eq!(costs, [1, 1, 3, 3]);
        assert_eq!(ends(&diamond)[2..], [("west", "south"), ("south", "east")]);
        for topology in [line, tree, grid, diamond] {
            sound(&topology);
        }
    }

    #[test]
    fn a_parking_lot_has_a_flow_across_all_and_one_across_each() {
        let lot = ParkingLot {
            rates: vec![Bitrate::mbps(4)],
            ..ParkingLot::default()
        };
        let topology = lot.build(&LIMITS()).unwrap();
        assert_eq!(
            ends(&topology),
            [
                ("R1", "R2"),
                ("R2", "R3"),
                ("P0", "R1"),
                ("R3", "C0"),
                ("P1", "R1"),
                ("R2", "C1"),
                ("P2", "R2"),
                ("R3", "C2"),
            ]
        );
        let rates = [0, 1].map(|link| topology.links[link].forward.rate.clone());
        let expected = [4, 10].map(|rate| Some(Bitrate::mbps(rate).into()));
        assert_eq!(rates, expected);
        sound(&topology);
        let wrong = ParkingLot {
            bottlenecks: 1,
            rates: vec![Bitrate::mbps(4); 2],
            ..ParkingLot::default()
        };
        let error = wrong.build(&LIMITS()).unwrap_err().to_string();
        assert_eq!(
            error,
            "rates: found 2, expected 1 at most, one for each bottleneck"
        );
    }

    #[test]
    fn every_router_gets_a_host_before_any_gets_two() {
        let grid = Grid {
            width: 4,
            height: 3,
            link: netem::Config::default(),
            access_hosts: None,
        };
        let hosts = |count, seed| AccessHosts {
            count,
            link: netem::Config::default(),
            seed,
        };
        let grid = grid.build(&LIMITS()).unwrap();
        let build = |count, seed| {
            grid.clone()
                .with_access_hosts(&hosts(count, seed), &LIMITS())
                .unwrap()
        };
        let routers = |topology: &Topology| {
            topology.links[17..]
                .iter()
                .map(|link| link.ends.1)
                .collect::<Vec<_>>()
        };
        let twelve = build(12, 7);
        assert_eq!((twelve.nodes.len(), twelve.links.len()), (24, 29));
        let mut sorted = routers(&twelve);
        assert!(!sorted.is_sorted());
        sorted.sort_unstable();
        assert_eq!(sorted, (0..12).collect::<Vec<_>>());
        assert_eq!(routers(&build(13, 7))[12], routers(&twelve)[0]);
        assert_eq!(build(12, 7), twelve);
        assert_ne!(build(12, 8), twelve);
        // Twice would take the names twice.
        twelve
            .with_access_hosts(&hosts(1, 0), &LIMITS())
            .unwrap_err();
    }

    #[test]
    fn sizes_of_nothing_and_sizes_without_end_are_refused() {
        let grid = |width, height| Grid {
            width,
            height,
            link: netem::Config::default(),
            access_hosts: None,
        };
        grid(0, 3).build(&LIMITS()).unwrap_err();
        grid(usize::MAX, usize::MAX).build(&LIMITS()).unwrap_err();
        let tree = Tree {
            depth: usize::MAX,
            fanout: 2,
            link: netem::Config::default(),
            leaf_rates: Vec::new(),
            trunk: None,
            access_hosts: None,
        };
        tree.build(&LIMITS()).unwrap_err();
        let chain = Tree {
            depth: usize::MAX,
            fanout: 1,
            ..tree
        };
        chain.build(&LIMITS()).unwrap_err();
        let dumbbell = |flows| Dumbbell {
            flows,
            ..Dumbbell::default()
        };
        dumbbell(usize::MAX).build(&LIMITS()).unwrap_err();
        let lot = |bottlenecks| ParkingLot {
            bottlenecks,
            ..ParkingLot::default()
        };
        lot(usize::MAX).build(&LIMITS()).unwrap_err();
        lot(0).build(&LIMITS()).unwrap_err();
        let error = dumbbell(0).build(&LIMITS()).unwrap_err();
        assert_eq!(error.to_string(), "flows: found 0, expected at least 1");
    }
}
