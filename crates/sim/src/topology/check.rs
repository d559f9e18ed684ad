//! What every topology must hold, wherever it comes from.

use std::collections::{BTreeMap, BTreeSet};

use namecast_forward::MIN_MTU;
use namecast_netem as netem;
use namecast_units::ByteSize;
use smart_default::SmartDefault;

use super::{Topology, TopologyError};

/// Longest name of a node, in octets.
pub(super) const MAX_NAME: usize = 255;

/// Bounds on what is read or built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SmartDefault)]
pub struct Limits {
    /// Most nodes.
    #[default(100_000)]
    pub nodes: usize,
    /// Most links.
    #[default(1_000_000)]
    pub links: usize,
    /// Largest file.
    #[default(ByteSize::mebibytes(128))]
    pub file: ByteSize,
}

impl Limits {
    /// # Errors
    /// If there are more nodes or links than allowed.
    pub(super) fn check(&self, nodes: usize, links: usize) -> Result<(), TopologyError> {
        for (field, found, most) in [("nodes", nodes, self.nodes), ("links", links, self.links)] {
            if found > most {
                return Err(TopologyError::value(
                    field,
                    found,
                    format!("at most {most}"),
                ));
            }
        }
        Ok(())
    }
}

impl Topology {
    /// Checks what builders and readers promise: names that are unique and fit into tables, links between two different
    /// nodes and no two between the same, numbers that make sense.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self, limits: &Limits) -> Result<(), TopologyError> {
        limits.check(self.nodes.len(), self.links.len())?;
        let mut names = BTreeSet::new();
        for node in &self.nodes {
            if !is_name(&node.name) {
                let expected =
                    format!("1 to {MAX_NAME} octets without blanks, not starting with '#'");
                return Err(TopologyError::value("node name", &node.name, expected));
            }
            if !names.insert(&node.name) {
                return Err(TopologyError::value(
                    "node name",
                    &node.name,
                    "another: it is taken",
                ));
            }
            if let Some((x, y)) = node
                .position
                .filter(|(x, y)| !x.is_finite() || !y.is_finite())
            {
                let field = format!("position of {}", node.name);
                return Err(TopologyError::value(
                    field,
                    format!("{x}, {y}"),
                    "two finite numbers",
                ));
            }
        }
        let mut pairs = BTreeMap::new();
        for (at, link) in self.links.iter().enumerate() {
            let (from, to) = link.ends;
            let nodes = self.nodes.len();
            if from >= nodes || to >= nodes {
                let expected = format!("nodes below {nodes}");
                return Err(TopologyError::value(
                    format!("ends of link {at}"),
                    format!("{from}, {to}"),
                    expected,
                ));
            }
            let field = format!("link {} – {}", self.nodes[from].name, self.nodes[to].name);
            if from == to {
                return Err(TopologyError::value(
                    field,
                    "one node twice",
                    "two different nodes",
                ));
            }
            if let Some(earlier) = pairs.insert(link.pair(), at) {
                let found = format!("links {earlier} and {at}");
                return Err(TopologyError::value(
                    field,
                    found,
                    "one link between two nodes",
                ));
            }
            if let Some(mtu) = link.service.mtu.filter(|mtu| *mtu < MIN_MTU) {
                let expected = format!("{MIN_MTU} octets or more");
                let field = format!("mtu of {field}");
                return Err(TopologyError::value(field, mtu, expected));
            }
            check_config(&field, &link.forward)?;
            check_config(&field, &link.backward)?;
        }
        Ok(())
    }
}

/// Whether tables of fields between blanks can hold the name.
pub(super) fn is_name(name: &str) -> bool {
    let blank = |c: char| c.is_whitespace() || c.is_control();
    (1..=MAX_NAME).contains(&name.len()) && !name.contains(blank) && !name.starts_with('#')
}

/// # Errors
/// The first number of `config` that makes no sense; `field` says whose it is.
fn check_config(field: &str, config: &netem::Config) -> Result<(), TopologyError> {
    config.validate().map_err(|error| TopologyError::Link {
        link: field.to_owned(),
        error,
    })
}

#[cfg(test)]
mod tests {
    use namecast_netem::Loss;
    use namecast_units::Bitrate;

    use super::*;

    fn pair() -> Topology {
        let mut topology = Topology::default();
        let (a, b) = (topology.add_node("a"), topology.add_node("b"));
        topology.connect(a, b, &netem::Config::default());
        topology
    }

    fn refusal(change: impl FnOnce(&mut Topology)) -> String {
        let mut topology = pair();
        change(&mut topology);
        topology.check(&Limits::default()).unwrap_err().to_string()
    }

    #[test]
    fn what_is_sound_passes_and_what_is_not_is_named() {
        pair().check(&Limits::default()).unwrap();
        assert_eq!(
            refusal(|t| t.nodes[1].name = "a".into()),
            "node name: found a, expected another: it is taken"
        );
        for name in ["", "a b", "#a", "a\u{0}", &"x".repeat(256)] {
            refusal(|t| t.nodes[0].name = name.to_owned());
        }
        assert_eq!(
            refusal(|t| t.links[0].ends = (1, 1)),
            "link b – b: found one node twice, expected two different nodes"
        );
        assert_eq!(
            refusal(|t| t.links[0].ends = (0, 2)),
            "ends of link 0: found 0, 2, expected nodes below 2"
        );
        assert_eq!(
            refusal(|t| {
                t.connect(1, 0, &netem::Config::default());
            }),
            "link b – a: found links 0 and 1, expected one link between two nodes"
        );
        assert_eq!(
            refusal(|t| t.links[0].service.mtu = Some(63)),
            "mtu of link a – b: found 63, expected 64 octets or more"
        );
        refusal(|t| t.nodes[0].position = Some((0.0, f64::NAN)));
    }

    #[test]
    fn shares_and_rates_must_make_sense_in_both_directions() {
        for share in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert!(refusal(|t| t.links[0].backward.duplicate = share).contains("duplicate"));
            refusal(|t| t.links[0].forward.loss = Loss::Random { share });
        }
        refusal(|t| t.links[0].forward.rate = Some(Bitrate::ZERO.into()));
    }

    #[test]
    fn there_is_a_bound_on_nodes_and_links() {
        let limits = |nodes, links| Limits {
            nodes,
            links,
            ..Limits::default()
        };
        pair().check(&limits(2, 1)).unwrap();
        let error = pair().check(&limits(1, 1)).unwrap_err();
        assert_eq!(error.to_string(), "nodes: found 2, expected at most 1");
        pair().check(&limits(2, 0)).unwrap_err();
    }
}
