//! Flows over a network.

use core::num::NonZeroU32;
use std::collections::BTreeMap;
use std::path::Path;

use namecast_apps::sequence::ServerConfig;
use namecast_netem as netem;
use namecast_packet::{MAX_PACKET_SIZE, Name};
use namecast_units::{Bitrate, ByteSize, Duration};
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use super::ScenarioError;
use super::flows::{Change, Eviction, Flow};
use super::forwarding::{Routes, Strategy};
use super::hops::{self, HopChoice};
use super::measure::{Convergence, Window};
use super::place::{Direction, check_constant, directions, find};
use crate::topology::{Spec, Topology};

/// What a scenario runs on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Medium {
    /// Virtual time.
    #[default]
    Simulator,
    /// Nodes on UDP sockets of this machine with emulated links between them, in real time. Not all can be had so.
    Sockets,
}

/// [`NetworkScenario::trials`], where nothing is said.
pub(super) const fn usual_trials() -> NonZeroU32 {
    NonZeroU32::new(3).expect("three is not zero")
}

/// Size of Data packets, in octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, SmartDefault)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PacketSize {
    /// Content.
    #[default(1_024)]
    pub payload: u32,
    /// All of the packet; the signature is padded until it is reached.
    #[default(1_074)]
    pub wire: u32,
}

impl PacketSize {
    /// Returns what a server of such packets under `prefix` is told.
    pub fn server(self, prefix: Name) -> ServerConfig {
        ServerConfig {
            prefix,
            content_size: self.payload as usize,
            wire_size: Some(self.wire as usize),
            ..ServerConfig::default()
        }
    }
}

/// Flows over a network, and what is measured of them.
///
/// | metric | meaning |
/// |---|---|
/// | `utilisation` | share of the bottleneck's rate that carried frames, headers included |
/// | `goodput` | content that all flows received, Mbit/s; `goodput-N` that of flow N |
/// | `wire`, `wire-N` | whole frames that brought content for the first time, to all flows and to flow N, Mbit/s |
/// | `goodput-min`, `goodput-max`, `jain` | the least, the most, and Jain's index of the flows' goodputs |
/// | `kind-K-goodput`, `kind-K-share`, `kind-K-jain` | of the flows whose [`kind`](Flow::kind) is K: their mean, their share of what all flows received, Jain's index among them |
/// | `rtt`, `added-rtt` | mean Interest-to-Data time of all flows, ms; and what it is above that of an idle path; `rtt-N` that of flow N |
/// | `queue-delay` | mean wait at the bottleneck, ms |
/// | `drops` | frames that the bottleneck dropped |
/// | `window-N`, `spare-N` | of flow N, if any next Data are requested: mean of its window, and of the least requests to spare in 10 ms in which Data came |
/// | `completion-N`, `stall-N`, `repaired-N`, `from-peers-N`, `served-N` | of flow N, if it [ends](Flow::end): seconds until all had come; seconds that who plays it waits, for the first second and for what comes late; shares of its packets that came as repair, of those from neighbours, and that it gave to neighbours |
/// | `completion`, `completion-max`, `sent` | of all flows that end: mean and longest time; and frames over the bottleneck for each packet of the first |
/// | `load`, `least-load` | if flows end, over the whole run: frames on all links that have a rate, Gbit; and what they would carry if each packet crossed each link of the flow's routes once |
/// | `interests`, `gaps`, `timeouts`, `nacks` | counts over all flows |
/// | `convergence` | seconds from a change until the first flow's estimate has followed; missing if it never does |
/// | `segments-N`, `segment-rate-N`, `segment-rate-min-N` | of flow N, if it fetches in [segments](Flow::segment) after the start of `measure`: how many it completed, the mean and least rate of one, Mbit/s of content |
/// | `enough-share-N` | share of all segments of flow N but the first that had the rate `enough` or more |
/// | `switches-N`, `first-switch` | how often most of flow N's Data came from producers again after it had come from caches, and when, in seconds, any flow's did first |
/// | `switch-rate-N`, `switch-queue-N` | rate of the segment that flow N fetched at the first switch, Mbit/s of content; and mean wait in the queues of `links` meanwhile, ms |
/// | `switch-peak` | longest wait in a queue of `links` in the 2 s after the first switch, ms; `switch-peak-N` in that of its N-th |
/// | `link-N-rate`, `link-N-queue-delay`, `link-N-queue-max`, `link-N-drops` | of the N-th of `links` in `measure`: Mbit/s with headers; mean and longest wait in node and link, ms; frames dropped |
/// | `links-queue-delay` | mean wait of all Data on `links`, ms |
/// | `paths-N` | paths that flow N uses at the end |
/// | `estimate-PROBE` | the first flow's estimate at that time, Mbit/s of content |
///
/// Averages are over `measure`; for each of `windows`, the same metrics exist with its name after a hyphen. Of more than 1000 flows none
/// has metrics of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NetworkScenario {
    /// What it runs on.
    #[serde(default)]
    pub medium: Medium,
    /// Over sockets: how often it is run at most, until one run is not disturbed by other programs. The last one counts.
    #[serde(default = "usual_trials")]
    pub trials: NonZeroU32,
    /// Nodes and links.
    pub topology: Spec,
    /// Size of Data packets.
    #[serde(default)]
    pub packet: PacketSize,
    /// Content store of every node.
    #[serde(default)]
    pub cache: ByteSize,
    /// Hops of one's own in every node, by the names under which the program registers them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<HopChoice>,
    /// Strategy of every node.
    #[serde(default)]
    pub strategy: Strategy,
    /// Which next hops nodes know.
    #[serde(default)]
    pub routes: Routes,
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
    /// Content stores that are emptied meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evictions: Vec<Eviction>,
    /// Direction of a link in which Data flows, as `R1>R2`.
    pub bottleneck: String,
    /// Further directions of links in which Data flows, as `R1>R2`, whose queues are measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<String>,
    /// The rate that is enough for a segment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enough: Option<Bitrate>,
    /// How long the first flow needs to follow a change.
    #[serde(default)]
    pub convergence: Option<Convergence>,
    /// Times at which the first flow's estimate is read.
    #[serde(default)]
    pub probes: BTreeMap<String, Probe>,
    /// Whether curves are kept: `window-N`, `spare-N`, `estimate-N`, `rtt-N`, `goodput-N` of each flow, `link-rate-N` and `link-queue-N` of each of `links`.
    #[serde(default)]
    pub series: bool,
}

/// A point in time, as a file writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Probe(#[serde(with = "namecast_units::duration")] pub Duration);

/// Most flows of a scenario, copies included.
const MAX_FLOWS: u32 = 25_000;
/// Most of which each has metrics of its own.
pub(super) const MAX_SHOWN_FLOWS: usize = 1_000;

impl NetworkScenario {
    pub(super) fn validate(&self, base: &Path) -> Result<(), ScenarioError> {
        hops::named_hops(&self.hops)?;
        let topology = self.topology(base)?;
        let direction = Direction::parse(&self.bottleneck, &topology);
        let direction = direction.map_err(|error| ScenarioError::new("bottleneck", error))?;
        let rate = &direction.config(&topology).rate;
        if rate.as_ref().and_then(netem::Rate::constant).is_none() {
            let problem = format!("'{}' has no constant rate to compare with", self.bottleneck);
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
            let affected = directions(&change.link, &topology)
                .map_err(|error| ScenarioError::new(field, error))?;
            if change.rate.is_some() {
                check_constant(&affected, &topology).map_err(|problem| {
                    ScenarioError::new(format!("changes.{index}.rate"), problem)
                })?;
            }
        }
        for (index, link) in self.links.iter().enumerate() {
            Direction::parse(link, &topology)
                .map_err(|problem| ScenarioError::new(format!("links.{index}"), problem))?;
        }
        for (index, eviction) in self.evictions.iter().enumerate() {
            find(&topology, &eviction.node).map_err(|problem| {
                ScenarioError::new(format!("evictions.{index}.node"), problem)
            })?;
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
        self.validate_times()?;
        let (least, most) = (self.packet.payload.saturating_add(40), MAX_PACKET_SIZE);
        if !(least as usize..=most).contains(&(self.packet.wire as usize)) {
            let problem = format!("expected {least} to {most}: headers need 40");
            return Err(ScenarioError::new("packet.wire", problem));
        }
        Ok(())
    }

    fn validate_times(&self) -> Result<(), ScenarioError> {
        let windows = self.windows.iter();
        let windows = windows.map(|(name, window)| (format!("windows.{name}"), window));
        for (field, window) in windows.chain([("measure".to_owned(), &self.measure)]) {
            validate_window(&field, window, self.duration)?;
        }
        for (name, probe) in &self.probes {
            if probe.0 > self.duration {
                let problem = "expected a time within 'duration'";
                return Err(ScenarioError::new(format!("probes.{name}"), problem));
            }
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
}

/// Checks that a window is within the run.
pub(super) fn validate_window(
    field: &str,
    window: &Window,
    duration: Duration,
) -> Result<(), ScenarioError> {
    let until = window.until.unwrap_or(duration);
    if window.from >= until || until > duration {
        let problem = "expected 'from' before 'until', and both within 'duration'";
        return Err(ScenarioError::new(field, problem));
    }
    Ok(())
}
