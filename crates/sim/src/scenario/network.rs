//! Flows over a network.

use std::collections::BTreeMap;
use std::path::Path;

use namecast_netem as netem;
use namecast_units::{ByteSize, Duration};
use serde::{Deserialize, Serialize};

use super::flows::{Change, Flow};
use super::measure::{Convergence, Window};
use super::run::Run;
use super::{Outcome, ScenarioError};
use crate::topology::{NodeIndex, Spec, Topology};

/// What a scenario runs on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Medium {
    /// Virtual time.
    #[default]
    Simulator,
    /// Nodes on UDP sockets of this machine with an emulated link between them, in real time. Only for one flow.
    Sockets,
}

/// Size of Data packets, in octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PacketSize {
    /// Content.
    pub payload: u32,
    /// All of the packet; the signature is padded until it is reached.
    pub wire: u32,
}

impl Default for PacketSize {
    fn default() -> Self {
        Self {
            payload: 1_024,
            wire: 1_074,
        }
    }
}

/// Flows over a network, and what is measured of them.
///
/// | metric | meaning |
/// |---|---|
/// | `utilisation` | share of the bottleneck's rate that carried frames, headers included |
/// | `goodput` | content that all flows received, Mbit/s; `goodput-N` that of flow N |
/// | `goodput-min`, `goodput-max`, `jain` | the least, the most, and Jain's index of the flows' goodputs |
/// | `rtt`, `added-rtt` | mean Interest-to-Data time of all flows, ms; and what it is above that of an idle path |
/// | `queue-delay` | mean wait at the bottleneck, ms |
/// | `drops` | frames that the bottleneck dropped |
/// | `interests`, `gaps`, `timeouts`, `nacks` | counts over all flows |
/// | `convergence` | seconds from a change until the first flow's estimate has followed; the rest of the run if it never does |
/// | `estimate-PROBE` | the first flow's estimate at that time, Mbit/s of content |
///
/// Averages are over `measure`; for each of `windows`, the same metrics exist with its name after a hyphen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NetworkScenario {
    /// What it runs on.
    #[serde(default)]
    pub medium: Medium,
    /// Nodes and links.
    pub topology: Spec,
    /// Size of Data packets.
    #[serde(default)]
    pub packet: PacketSize,
    /// Content store of every node.
    #[serde(default)]
    pub cache: ByteSize,
    /// How long it takes.
    #[serde(with = "namecast_units::duration")]
    pub duration: Duration,
    /// The part that is averaged over; all of it if not given.
    #[serde(default)]
    pub measure: Window,
    /// Further parts, by name.
    #[serde(default)]
    pub windows: BTreeMap<String, Window>,
    /// Who fetches what.
    pub flows: Vec<Flow>,
    /// What changes meanwhile.
    #[serde(default)]
    pub changes: Vec<Change>,
    /// Direction of a link in which Data flows, as `R1>R2`.
    pub bottleneck: String,
    /// How long the first flow needs to follow a change.
    #[serde(default)]
    pub convergence: Option<Convergence>,
    /// Times at which the first flow's estimate is read.
    #[serde(default)]
    pub probes: BTreeMap<String, Probe>,
    /// Whether curves are kept: `estimate-N`, `rtt-N`, `goodput-N` of each flow, `queue` of the bottleneck.
    #[serde(default)]
    pub series: bool,
}

/// A point in time, as a file writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Probe(#[serde(with = "namecast_units::duration")] pub Duration);

/// Most flows of a scenario, copies included.
const MAX_FLOWS: u32 = 10_000;

impl NetworkScenario {
    pub(super) fn validate(&self, base: &Path) -> Result<(), ScenarioError> {
        let topology = self.topology(base)?;
        let direction = Direction::parse(&self.bottleneck, &topology);
        let direction = direction.map_err(|error| ScenarioError::new("bottleneck", error))?;
        if direction.config(&topology).rate.is_none() {
            let problem = format!("'{}' has no rate to compare with", self.bottleneck);
            return Err(ScenarioError::new("bottleneck", problem));
        }
        for (index, flow) in self.flows.iter().enumerate() {
            flow.check(&topology).map_err(|(field, problem)| {
                ScenarioError::new(format!("flows.{index}.{field}"), problem)
            })?;
        }
        let flows = self
            .flows
            .iter()
            .fold(0, |sum: u32, flow| sum.saturating_add(flow.count));
        if !(1..=MAX_FLOWS).contains(&flows) {
            let problem = format!("{flows} flows: expected 1 to {MAX_FLOWS}");
            return Err(ScenarioError::new("flows", problem));
        }
        for (index, change) in self.changes.iter().enumerate() {
            let field = format!("changes.{index}.link");
            directions(&change.link, &topology)
                .map_err(|error| ScenarioError::new(field, error))?;
        }
        if let Some(convergence) = self.convergence {
            let count = self.changes.len();
            if !(1..=count).contains(&convergence.change) {
                let problem = format!("expected 1 to {count}, the number of changes");
                return Err(ScenarioError::new("convergence.change", problem));
            }
            if convergence.below.is_none() && convergence.above.is_none() {
                return Err(ScenarioError::new(
                    "convergence",
                    "expected 'below' or 'above'",
                ));
            }
        }
        let windows = self
            .windows
            .iter()
            .map(|(name, window)| (format!("windows.{name}"), window));
        let windows = windows.chain([("measure".to_owned(), &self.measure)]);
        for (field, window) in windows {
            let until = window.until.unwrap_or(self.duration);
            if window.from >= until || until > self.duration {
                let problem = "expected 'from' before 'until', and both within 'duration'";
                return Err(ScenarioError::new(field, problem));
            }
        }
        if self.packet.wire < self.packet.payload + 40 {
            let problem = format!(
                "expected at least {}: headers need 40",
                self.packet.payload + 40
            );
            return Err(ScenarioError::new("packet.wire", problem));
        }
        Ok(())
    }

    /// The topology.
    ///
    /// # Errors
    /// If it cannot be built.
    pub fn topology(&self, base: &Path) -> Result<Topology, ScenarioError> {
        let topology = self.topology.build(base);
        topology.map_err(|error| ScenarioError::new("topology", error))
    }

    pub(super) fn run(&self, base: &Path, seed: u64) -> Result<Outcome, ScenarioError> {
        self.start(base, seed, false).map(Run::finish)
    }

    /// A run at its beginning; `traced` if its applications are to tell what they fetch.
    pub(super) fn start(
        &self,
        base: &Path,
        seed: u64,
        traced: bool,
    ) -> Result<Run<'_>, ScenarioError> {
        self.validate(base)?;
        if self.medium != Medium::Simulator {
            let problem = "the simulator runs 'simulator' only";
            return Err(ScenarioError::new("medium", problem));
        }
        Run::new(self, self.topology(base)?, seed, traced)
    }
}

/// A direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Direction {
    pub(super) link: usize,
    pub(super) from_second: bool,
}

impl Direction {
    /// Reads `A>B`.
    pub(super) fn parse(text: &str, topology: &Topology) -> Result<Self, String> {
        let expected = || {
            format!(
                "'{text}' is no direction of a link: write R1>R2, with names of connected nodes"
            )
        };
        let (from, to) = text.split_once('>').ok_or_else(expected)?;
        let from = find(topology, from.trim())?;
        let to = find(topology, to.trim())?;
        let mut links = topology.links.iter().enumerate();
        links
            .find_map(|(link, candidate)| {
                let from_second = candidate.ends == (to, from);
                (candidate.ends == (from, to) || from_second).then_some(Self { link, from_second })
            })
            .ok_or_else(expected)
    }

    /// What the direction is like.
    pub(super) fn config(self, topology: &Topology) -> &netem::Config {
        let link = &topology.links[self.link];
        if self.from_second {
            &link.backward
        } else {
            &link.forward
        }
    }

    /// The same, to change it.
    pub(super) fn config_mut(self, topology: &mut Topology) -> &mut netem::Config {
        let link = &mut topology.links[self.link];
        if self.from_second {
            &mut link.backward
        } else {
            &mut link.forward
        }
    }
}

/// Reads `A>B` as one direction, and `A-B` as both. Names may have hyphens.
pub(super) fn directions(text: &str, topology: &Topology) -> Result<Vec<Direction>, String> {
    if text.contains('>') {
        return Direction::parse(text, topology).map(|direction| vec![direction]);
    }
    let both = text.match_indices('-').find_map(|(at, _)| {
        let (from, to) = (&text[..at], &text[at + 1..]);
        Direction::parse(&format!("{from}>{to}"), topology).ok()
    });
    let first = both.ok_or_else(|| {
        format!("'{text}' is no link: write R1-R2, or R1>R2 for one direction, with names of connected nodes")
    })?;
    let second = Direction {
        from_second: !first.from_second,
        ..first
    };
    Ok(vec![first, second])
}

/// The node of that name.
pub(super) fn find(topology: &Topology, name: &str) -> Result<NodeIndex, String> {
    topology.node(name).ok_or_else(|| {
        let names = topology.nodes.iter().take(8);
        let names: Vec<_> = names.map(|node| &*node.name).collect();
        let (count, names) = (topology.nodes.len(), names.join(", "));
        format!("there is no node '{name}' among the {count}, such as {names}")
    })
}
