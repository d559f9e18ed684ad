//! Topologies as configuration files write them.

use core::time::Duration;
use std::path::{Path, PathBuf};

use namecast_forward::{CongestionLaw, CongestionMarking, SendQueueConfig};
use namecast_netem as netem;
use namecast_units::ByteSize;
use serde::{Deserialize, Serialize};

use super::builders::with_access;
use super::graphml::read_graphml;
use super::mini_ndn::read_mini_ndn;
use super::rocketfuel::{MapOptions, Source, read_map, read_weights};
use super::{
    AccessHosts, Diamond, Dumbbell, Grid, Limits, Line, Link, LinkService, Node, NodeQueue,
    ParkingLot, ScaleFree, Topology, TopologyError, Tree, ndnsim, rates, text,
};

/// A topology in a scenario file.
///
/// ```toml
/// topology = { kind = "dumbbell", flows = 32, bottleneck = { rate = "100 Mbit/s", delay = "8ms" } }
///
/// [topology]
/// kind = "file"
/// path = "3967.weights.intra"
/// format = "rocketfuel-weights"
/// latencies = "3967.latencies.intra"
///
/// [topology]
/// kind = "explicit"
/// node = [{ name = "a" }, { name = "b", position = [1.0, 0.0] }]
/// link = [{ ends = ["a", "b"], cost = 2, config = { rate = "10 Mbit/s", delay = "5ms" }, mtu = 1400, reliability = true }]
///
/// [topology]
/// kind = "dumbbell"
/// bottleneck = { rate = { trace = "traces/lte.trace" }, delay = "20ms" } # or { model = "lte", seed = 1 }
/// bottleneck-back = { rate = "5 Mbit/s", delay = "20ms" }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one to a scenario, and it is not moved about"
)]
pub enum Spec {
    /// Producers and consumers on both sides of a bottleneck.
    Dumbbell(Dumbbell),
    /// Bottlenecks in a row, with a flow across all and one across each.
    ParkingLot(ParkingLot),
    /// Nodes in a row.
    Line(Line),
    /// A tree.
    Tree(Tree),
    /// A grid.
    Grid(Grid),
    /// Two ways from one router to another.
    Diamond(Diamond),
    /// A random graph with hubs.
    ScaleFree(ScaleFree),
    /// A file.
    File(FileSpec),
    /// Lists of nodes and links.
    Explicit(ExplicitSpec),
}

/// A topology in a file of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FileSpec {
    /// Where it is, seen from the file that names it.
    pub path: PathBuf,
    /// What it is.
    pub format: FileFormat,
    /// For weights: the file with latencies, if there is one.
    #[serde(default)]
    pub latencies: Option<PathBuf>,
    /// For weights, GraphML and mini-ndn: what the files do not say about links.
    #[serde(default)]
    pub link: Option<netem::Config>,
    /// For maps: what they do not say.
    #[serde(default)]
    pub map: Option<MapOptions>,
    /// Hosts at its edge.
    #[serde(default)]
    pub access_hosts: Option<AccessHosts>,
}

/// How a topology is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileFormat {
    /// ndnSIM's annotated topology.
    Ndnsim,
    /// Rocketfuel's weights.
    RocketfuelWeights,
    /// Rocketfuel's router-level map.
    RocketfuelMap,
    /// GraphML, such as the maps of the Internet Topology Zoo.
    Graphml,
    /// A configuration of mini-ndn.
    MiniNdn,
}

impl FileFormat {
    /// Whether [`FileSpec::link`] says what the file does not.
    const fn takes_link(self) -> bool {
        matches!(
            self,
            Self::RocketfuelWeights | Self::Graphml | Self::MiniNdn
        )
    }
}

/// A topology node by node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ExplicitSpec {
    /// The nodes.
    pub node: Vec<NodeSpec>,
    /// The links.
    #[serde(default)]
    pub link: Vec<LinkSpec>,
    /// Hosts at its edge.
    #[serde(default)]
    pub access_hosts: Option<AccessHosts>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NodeSpec {
    /// Its name.
    pub name: String,
    /// Where to draw it: x, y.
    #[serde(default)]
    pub position: Option<(f64, f64)>,
}

/// A link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LinkSpec {
    /// The names of its ends.
    pub ends: (String, String),
    /// What routes sum up.
    #[serde(default = "one")]
    pub cost: u64,
    /// From the first end to the second; and back, unless `back` says otherwise.
    #[serde(default)]
    pub config: netem::Config,
    /// From the second end to the first.
    #[serde(default)]
    pub back: Option<netem::Config>,
    /// Largest frame, in octets; larger packets are fragmented. None: any.
    #[serde(default)]
    pub mtu: Option<usize>,
    /// Whether frames are acknowledged, and sent again if lost.
    #[serde(default)]
    pub reliability: bool,
    /// The queue that each end has of its own; `None`: the link takes every frame at once.
    #[serde(default)]
    pub node_queue: Option<NodeQueueSpec>,
}

/// The queue that a node has before what its system buffers for a link, with congestion marks.
///
/// ```toml
/// node-queue = { socket-buffer = "64 KiB", law = "nfd", threshold = "64 KiB", interval = "100ms" }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NodeQueueSpec {
    /// Octets that the system buffers.
    pub socket_buffer: ByteSize,
    /// Octets that wait in the node at most.
    #[serde(default = "max_size")]
    pub max_size: ByteSize,
    /// What marks go by.
    #[serde(default)]
    pub law: CongestionLawSpec,
    /// Octets that may wait in the node without being marked; CoDel does not go by them.
    #[serde(default = "threshold")]
    pub threshold: ByteSize,
    /// How long the queue must be long until a packet is marked.
    #[serde(default = "interval", with = "namecast_units::duration")]
    pub interval: Duration,
}

/// What a node's marks go by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CongestionLawSpec {
    /// NFD's present rule.
    #[default]
    Nfd,
    /// NFD's rule as ndnSIM has it.
    Ndnsim,
    /// CoDel.
    Codel,
    /// CoDel as PCON was published with it.
    Pcon,
    /// Nothing: packets are not marked.
    None,
}

/// That of the forwarder's configuration.
const fn max_size() -> ByteSize {
    ByteSize::mebibytes(4)
}

fn threshold() -> ByteSize {
    CongestionMarking::default().threshold
}

fn interval() -> Duration {
    CongestionMarking::default().interval
}

impl NodeQueueSpec {
    fn build(self) -> NodeQueue {
        let law = match self.law {
            CongestionLawSpec::Nfd => Some(CongestionLaw::Nfd),
            CongestionLawSpec::Ndnsim => Some(CongestionLaw::NdnSim),
            CongestionLawSpec::Codel => Some(CongestionLaw::CoDel),
            CongestionLawSpec::Pcon => Some(CongestionLaw::Pcon),
            CongestionLawSpec::None => None,
        };
        let marking = law.map(|law| CongestionMarking {
            law,
            interval: self.interval,
            threshold: self.threshold,
        });
        NodeQueue {
            socket_buffer: self.socket_buffer,
            send_queue: SendQueueConfig {
                max_size: self.max_size,
                marking,
                ..SendQueueConfig::default()
            },
        }
    }
}

const fn one() -> u64 {
    1
}

impl Spec {
    /// The topology; files, also of links' traces, are looked for in `base_dir`, the directory of the file that held this.
    ///
    /// # Errors
    /// If a file cannot be read or is wrong, or numbers make no sense.
    pub fn build(&self, base_dir: &Path) -> Result<Topology, TopologyError> {
        self.build_within(base_dir, &Limits::default())
    }

    /// The same with bounds other than the default.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn build_within(
        &self,
        base_dir: &Path,
        limits: &Limits,
    ) -> Result<Topology, TopologyError> {
        let mut topology = match self {
            Self::Dumbbell(shape) => shape.build(limits),
            Self::ParkingLot(shape) => shape.build(limits),
            Self::Line(shape) => shape.build(limits),
            Self::Tree(shape) => shape.build(limits),
            Self::Grid(shape) => shape.build(limits),
            Self::Diamond(shape) => shape.build(limits),
            Self::ScaleFree(shape) => shape.build(limits),
            Self::File(file) => file.build(base_dir, limits),
            Self::Explicit(lists) => lists.build(limits),
        }?;
        rates::resolve(&mut topology, base_dir)?;
        topology.check(limits)?;
        Ok(topology)
    }
}

impl FileSpec {
    fn build(&self, base_dir: &Path, limits: &Limits) -> Result<Topology, TopologyError> {
        self.check_options()?;
        let path = base_dir.join(&self.path);
        let file = path.display().to_string();
        let source = text::read(&path, limits)?;
        let source = Source {
            text: &source,
            file: &file,
        };
        let topology = match self.format {
            FileFormat::Ndnsim => ndnsim::read(source.text, source.file, limits),
            FileFormat::RocketfuelWeights => self.weights(source, base_dir, limits),
            FileFormat::RocketfuelMap => {
                read_map(source, &self.map.clone().unwrap_or_default(), limits)
            }
            FileFormat::Graphml => read_graphml(source, &self.link(), limits),
            FileFormat::MiniNdn => read_mini_ndn(source, &self.link(), limits),
        }?;
        if topology.nodes.is_empty() {
            let expected = match self.format {
                FileFormat::RocketfuelMap => "a router within the radius that 'map' allows",
                _ => "a node",
            };
            return Err(text::end_error(source.text, source.file, expected));
        }
        with_access(topology, self.access_hosts.as_ref(), limits)
    }

    fn link(&self) -> netem::Config {
        self.link.clone().unwrap_or_default()
    }

    fn weights(
        &self,
        weights: Source<'_>,
        base_dir: &Path,
        limits: &Limits,
    ) -> Result<Topology, TopologyError> {
        let link = self.link();
        let Some(latencies) = &self.latencies else {
            return read_weights(weights, None, &link, limits);
        };
        let path = base_dir.join(latencies);
        let latencies = Source {
            text: &text::read(&path, limits)?,
            file: &path.display().to_string(),
        };
        read_weights(weights, Some(latencies), &link, limits)
    }

    /// Options of other formats would be ignored, so they are refused.
    fn check_options(&self) -> Result<(), TopologyError> {
        let weights = self.format == FileFormat::RocketfuelWeights;
        let map = self.format == FileFormat::RocketfuelMap;
        for (field, is_there, belongs, format) in [
            (
                "latencies",
                self.latencies.is_some(),
                weights,
                "rocketfuel-weights",
            ),
            (
                "link",
                self.link.is_some(),
                self.format.takes_link(),
                "rocketfuel-weights\", \"graphml\" or \"mini-ndn",
            ),
            ("map", self.map.is_some(), map, "rocketfuel-map"),
        ] {
            if is_there && !belongs {
                let expected = format!("it only with format = \"{format}\"");
                return Err(TopologyError::value(field, "a value", expected));
            }
        }
        Ok(())
    }
}

impl ExplicitSpec {
    fn build(&self, limits: &Limits) -> Result<Topology, TopologyError> {
        limits.check(self.node.len(), self.link.len())?;
        let node = |node: &NodeSpec| Node {
            name: node.name.clone(),
            position: node.position,
        };
        let mut topology = Topology {
            nodes: self.node.iter().map(node).collect(),
            ..Topology::default()
        };
        let names = topology.names();
        let mut links = Vec::with_capacity(self.link.len());
        for (at, link) in self.link.iter().enumerate() {
            let end = |name: &str| {
                let field = || format!("ends of link {at}");
                let error = || TopologyError::value(field(), name, "the name of a node");
                names.get(name).copied().ok_or_else(error)
            };
            links.push(Link {
                ends: (end(&link.ends.0)?, end(&link.ends.1)?),
                cost: link.cost,
                forward: link.config.clone(),
                backward: link.back.clone().unwrap_or_else(|| link.config.clone()),
                service: LinkService {
                    mtu: link.mtu,
                    reliability: link.reliability,
                    node_queue: link.node_queue.map(NodeQueueSpec::build),
                },
            });
        }
        topology.links = links;
        with_access(topology, self.access_hosts.as_ref(), limits)
    }
}
