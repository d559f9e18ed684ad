//! Two peers that send each other packets across a network: calls and exchanges of files.

mod peer;

use core::num::NonZeroU64;
use std::path::Path;

use namecast_forward::{self as forward, FaceId, NamedHop};
use namecast_packet::Name;
use namecast_units::{ByteSize, Duration, Instant, Random};
use serde::{Deserialize, Serialize};

use self::peer::{Peer, PeerConfig};
use super::hops::{self, HopChoice};
use super::place::{Direction, find};
use super::{Outcome, ScenarioError};
use crate::network::{ApplicationId, Network, NodeConfig};
use crate::topology::{NodeIndex, Topology, routes};

/// Octets of the headers of IP, version 4, and UDP.
const HEADERS: u64 = 28;
/// What each node keeps of Data: what was lost behind it is not requested from the other peer.
const CACHE: ByteSize = ByteSize::mebibytes(1);
/// Shares of values below the percentiles that are told.
const MEDIAN: f64 = 0.5;
const NINETY_NINE: f64 = 0.99;

/// Two peers, each of which sends packets that the other requests with a window of Interests.
///
/// In metrics, direction 1 is from the first peer to the second, and peer N is the one that requests.
///
/// | metric | meaning |
/// |---|---|
/// | `frames-N`, `bytes-N` | what crossed `link` in direction N, with IP and UDP headers |
/// | `lookups` | Interests for which `forwarder` looked into the FIB |
/// | `followed` | Interests that it sent where the Data went, without a look-up |
/// | `received-N` | share of the packets that peer N got |
/// | `wait-N`, `wait-p99-N`, `wait-max-N` | from when peer N wanted to send an Interest to its Data, ms: median, 99th percentile, longest |
/// | `age-N`, `age-p99-N` | from when a packet was made until peer N had it, ms, if peers make them at intervals |
/// | `time` | seconds until both had everything; the whole run if they did not |
/// | `goodput-N` | content that peer N got until then, Mbit/s |
/// | `retransmissions` | Interests that both repeated |
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Exchange {
    /// Nodes and links.
    pub topology: crate::topology::Spec,
    /// Both sides; the first begins.
    pub peers: [Side; 2],
    /// Whose look-ups are counted.
    pub forwarder: String,
    /// The first direction of a link between the peers, as `R1>R2`.
    pub link: String,
    /// Hops in every node. With `piggyback`, Data and Interests travel in one packet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<HopChoice>,
    /// Packets that each side sends.
    pub count: NonZeroU64,
    /// Interests that each side has outstanding.
    pub window: NonZeroU64,
    /// How long it takes at most.
    #[serde(with = "namecast_units::duration")]
    pub duration: Duration,
}

/// One side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Side {
    /// Where it is.
    pub node: String,
    /// What the names of its packets begin with.
    pub name: String,
    /// Octets of content of a packet.
    pub payload: u32,
    /// Time between two packets; zero: all are there from the beginning.
    #[serde(default, with = "namecast_units::duration")]
    pub interval: Duration,
}

impl Exchange {
    pub(super) fn validate(&self, base: &Path) -> Result<(), ScenarioError> {
        Run::new(self, base, 0).map(drop)
    }

    /// Whether Interests should wait for the next packet to travel with.
    fn has_bundles(&self) -> bool {
        let hops = self.hops.iter().filter_map(|hop| hop.name.parse().ok());
        hops.into_iter()
            .any(|hop| matches!(hop, NamedHop::Piggyback(_)))
    }

    pub(super) fn run(&self, base: &Path, seed: u64) -> Result<Outcome, ScenarioError> {
        Ok(Run::new(self, base, seed)?.finish())
    }
}

struct Run<'a> {
    scenario: &'a Exchange,
    network: Network,
    peers: [ApplicationId; 2],
    forwarder: NodeIndex,
    /// Ends of the link.
    ends: [(NodeIndex, FaceId); 2],
}

impl<'a> Run<'a> {
    fn new(scenario: &'a Exchange, base: &Path, seed: u64) -> Result<Self, ScenarioError> {
        let topology = scenario.topology.build(base);
        let topology = topology.map_err(|error| ScenarioError::new("topology", error))?;
        let mut random = Random::from_seed(seed);
        let config = NodeConfig {
            forwarder: forward::Config {
                content_store: forward::ContentStoreConfig::with_capacity(CACHE),
                ..forward::Config::default()
            },
            hops: hops::named_hops(&scenario.hops)?,
            ..NodeConfig::default()
        };
        let mut network = Network::new(&topology, random.next_u64(), |_| config.clone());
        let wrong = |field: &str, problem: String| ScenarioError::new(field, problem);
        let forwarder =
            find(&topology, &scenario.forwarder).map_err(|problem| wrong("forwarder", problem))?;
        let link = Direction::parse(&scenario.link, &topology)
            .map_err(|problem| wrong("link", problem))?;
        let ends = ends(&network, &topology, link)
            .ok_or_else(|| wrong("link", "expected a link".to_owned()))?;
        let mut peers = Vec::new();
        for number in [0, 1] {
            let peer = add_peer(scenario, number, (&mut network, &topology));
            peers.push(peer.map_err(|(field, problem)| {
                ScenarioError::new(format!("peers.{number}.{field}"), problem)
            })?);
        }
        Ok(Self {
            scenario,
            network,
            peers: [peers[0], peers[1]],
            forwarder,
            ends,
        })
    }

    fn finish(mut self) -> Outcome {
        self.network
            .run_until(Instant::ZERO + self.scenario.duration);
        let mut outcome = Outcome::default();
        let mut metric = |name: String, value: f64| {
            outcome.metrics.insert(name, value);
        };
        for (number, (node, face)) in (1..).zip(self.ends) {
            let node = self.network.node(node);
            let sent = node.face_counters(face).unwrap_or_default().outgoing;
            metric(format!("frames-{number}"), sent.frames as f64);
            let bytes = sent.octets.as_bytes() + HEADERS * sent.frames;
            metric(format!("bytes-{number}"), bytes as f64);
        }
        let forwarder = self.network.forwarder(self.forwarder);
        let decided: u64 = forwarder.strategies().map(|it| it.counters.interests).sum();
        let followed = forwarder.counters().bundles.followed;
        metric("lookups".to_owned(), (decided - followed) as f64);
        metric("followed".to_owned(), followed as f64);
        let peers = self.peers.map(|peer| {
            let peer = self.network.application::<Peer>(peer);
            peer.expect("an application of this type")
        });
        let finished = peers.map(|peer| peer.finished_at());
        let end = Instant::ZERO + self.scenario.duration;
        let end = finished.into_iter().map(|at| at.unwrap_or(end)).max();
        let time = end.unwrap_or_default().since(Instant::ZERO).as_secs_f64();
        metric("time".to_owned(), time);
        let repeated = peers.iter().map(|peer| peer.retransmissions).sum::<u64>();
        metric("retransmissions".to_owned(), repeated as f64);
        for (number, peer) in (1..).zip(peers) {
            let received = peer.waits.len() as f64;
            let share = received / self.scenario.count.get() as f64;
            metric(format!("received-{number}"), share);
            let payload = f64::from(self.scenario.peers[2 - number].payload);
            metric(
                format!("goodput-{number}"),
                received * payload * 8e-6 / time,
            );
            metric(format!("wait-{number}"), at_share(&peer.waits, MEDIAN));
            metric(
                format!("wait-p99-{number}"),
                at_share(&peer.waits, NINETY_NINE),
            );
            metric(format!("wait-max-{number}"), at_share(&peer.waits, 1.0));
            if !peer.ages.is_empty() {
                metric(format!("age-{number}"), at_share(&peer.ages, MEDIAN));
                metric(
                    format!("age-p99-{number}"),
                    at_share(&peer.ages, NINETY_NINE),
                );
            }
        }
        outcome
    }
}

/// The value below which this share of all is, in milliseconds; not a number if there are none.
fn at_share(values: &[Duration], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let place = (sorted.len() as f64 * share).ceil() as usize;
    let value = sorted.get(place.max(1) - 1);
    value.map_or(f64::NAN, |value| value.as_secs_f64() * 1e3)
}

/// The face that each direction of a link starts at.
fn ends(
    network: &Network,
    topology: &Topology,
    link: Direction,
) -> Option<[(NodeIndex, FaceId); 2]> {
    let (first, second) = topology.links[link.link].ends;
    let end = |node| Some((node, network.face_of(node, link.link)?));
    let both = [end(first)?, end(second)?];
    Some(match link.from_second {
        true => [both[1], both[0]],
        false => both,
    })
}

/// Adds a peer with routes to it from everywhere.
fn add_peer(
    scenario: &Exchange,
    number: usize,
    (network, topology): (&mut Network, &Topology),
) -> Result<ApplicationId, (&'static str, String)> {
    let (own, other) = (&scenario.peers[number], &scenario.peers[1 - number]);
    let node = find(topology, &own.node).map_err(|problem| ("node", problem))?;
    let parse = |name: &str| {
        name.parse::<Name>()
            .map_err(|error| ("name", error.to_string()))
    };
    let config = PeerConfig {
        own: parse(&own.name)?,
        other: parse(&other.name)?,
        is_first: number == 0,
        is_bundled: scenario.has_bundles(),
        count: scenario.count.get(),
        window: scenario.window.get(),
        payload: own.payload as usize,
        interval: own.interval,
        other_interval: other.interval,
    };
    let towards = routes::towards(topology, node);
    let name = config.own.clone();
    let added = network.add_producer(node, &name, Peer::new(config), &towards);
    added.map_err(|error| ("name", error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(window: u64, more: &str, hops: &str) -> Outcome {
        let text = format!(
            r#"
            forwarder = "R"
            link = "A>R"
            count = 500
            window = {window}
            duration = "60 s"
            hops = [{hops}]
            peers = [{{ node = "A", name = "/a/call/b", payload = 1000 {more} }}, {{ node = "B", name = "/b/call/a", payload = 1000 {more} }}]
            [topology]
            kind = "explicit"
            node = [{{ name = "A" }}, {{ name = "R" }}, {{ name = "B" }}]
            link = [
              {{ ends = ["A", "R"], config = {{ rate = "100 Mbit/s", delay = "1 ms" }} }},
              {{ ends = ["R", "B"], config = {{ rate = "100 Mbit/s", delay = "1 ms" }} }},
            ]"#
        );
        let exchange: Exchange = toml::from_str(&text).expect("well-formed");
        exchange.run(Path::new("."), 1).expect("valid")
    }

    /// \[PIGGYBACK\]'s counts: N + w packets from who begins and N from the other instead of 2N, and w look-ups for w Interests by
    /// themselves, here one more for each direction. Plain ones are looked up all.
    #[test]
    fn an_exchange_takes_half_the_packets_and_no_look_ups() {
        for window in [1, 5, 40] {
            let plain = exchange(window, "", "");
            let bundled = exchange(window, "", "'piggyback'");
            let [plain, bundled] =
                [plain, bundled].map(|outcome| move |name: &str| outcome.metrics[name]);
            assert_eq!((plain("frames-1"), plain("frames-2")), (1_000.0, 1_000.0));
            assert_eq!((plain("lookups"), plain("followed")), (1_000.0, 0.0));
            assert_eq!(bundled("frames-1"), 500.0 + window as f64);
            assert_eq!(bundled("frames-2"), 500.0);
            assert_eq!(bundled("lookups"), window as f64 + 2.0);
            for name in ["received-1", "received-2"] {
                assert_eq!((plain(name), bundled(name)), (1.0, 1.0));
            }
            // One Data packet of 1100 octets takes 0.09 ms a link.
            assert!(bundled("wait-1") - plain("wait-1") < 0.2);
        }
    }

    /// Packets every 20 ms: each but the first w + 1 Interests leaves with one, and nothing comes later for that.
    #[test]
    fn a_call_takes_half_the_packets_and_no_time() {
        let plain = exchange(2, r#", interval = "20 ms""#, "");
        let bundled = exchange(2, r#", interval = "20 ms""#, "'piggyback'");
        for number in ["1", "2"] {
            let frames = |outcome: &Outcome| outcome.metrics[&format!("frames-{number}")];
            assert_eq!(frames(&plain), 1_000.0);
            assert!(
                (500.0..510.0).contains(&frames(&bundled)),
                "{}",
                frames(&bundled)
            );
            let age = |outcome: &Outcome| outcome.metrics[&format!("age-p99-{number}")];
            assert!((2.0..2.3).contains(&age(&plain)), "{}", age(&plain));
            assert!(age(&bundled) < age(&plain) + 0.2, "{}", age(&bundled));
        }
    }
}
