//! What of a stream scenario can be put between sockets, and as what.

use std::path::Path;

use namecast_media::ingest::{AudioConfig, VideoConfig};
use namecast_media::streams::{self, Cutting};
use namecast_netem as netem;
use namecast_packet::Name;
use namecast_sim::live::Media;
use namecast_sim::scenario::{
    BaseDelay, PublisherSpec, Routes, StreamChange, StreamScenario, StreamSpec, WatcherSpec,
    change_link,
};
use namecast_sim::topology::routes::Graph;
use namecast_sim::topology::{NodeIndex, Topology};
use namecast_stream::{StreamInfo, StreamKind};
use namecast_units::{ByteSize, Duration, Random};

use super::super::super::laboratory::Refusal;
use super::super::world::{Hop, Layout};
use super::super::{refuse, rules};

/// Nodes, links and ends of a scenario, as they are set up.
#[derive(Debug)]
pub(super) struct Stage<'a> {
    pub(super) scenario: &'a StreamScenario,
    /// What is published under each of its prefixes is the same.
    pub(super) layout: Layout,
    /// Links to tell about, in the order of the scenario.
    pub(super) told: Vec<Told>,
    /// Where the publishers are.
    pub(super) publisher: NodeIndex,
    pub(super) video: VideoConfig,
    pub(super) audio: Option<AudioConfig>,
    /// What is published, as the catalogue lists it.
    pub(super) streams: Vec<StreamInfo>,
    /// All watchers, copies included.
    pub(super) watchers: Vec<Viewer<'a>>,
    /// Nodes that fail, each with the change that says when.
    pub(super) failures: Vec<(&'a StreamChange, NodeIndex)>,
}

/// One watcher.
#[derive(Clone, Debug)]
pub(super) struct Viewer<'a> {
    pub(super) spec: &'a WatcherSpec,
    pub(super) node: NodeIndex,
    /// Place among the names of what it watches.
    pub(super) root: usize,
    /// When it joins, less what is drawn.
    pub(super) start: Duration,
    /// Delay of the path from the publisher.
    pub(super) base: BaseDelay,
}

/// One direction of a link to tell about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Told {
    /// Its place among the hops.
    pub(super) hop: usize,
    /// Whether it is the way of Data.
    pub(super) is_data: bool,
    /// Its rate in bits per second; infinite if it has none.
    pub(super) rate: f64,
}

fn refuse_any<const N: usize>(
    prefix: &str,
    extras: [(&str, bool, &str); N],
) -> Result<(), Refusal> {
    match extras.iter().find(|(_, is_there, _)| *is_there) {
        Some((field, _, expected)) => refuse(format!("{prefix}{field}"), expected),
        None => Ok(()),
    }
}

impl<'a> Stage<'a> {
    /// What `scenario`, which is valid, is between sockets. Files are looked for in `base`.
    ///
    /// # Errors
    /// The field of which sockets can make nothing.
    pub(super) fn new(scenario: &'a StreamScenario, base: &Path) -> Result<Self, Refusal> {
        let wrong = |error: &dyn core::fmt::Display| Refusal {
            field: Some("topology".to_owned()),
            message: error.to_string(),
        };
        let mut topology = scenario.topology(base).map_err(|error| wrong(&error))?;
        schedule_links(scenario, &mut topology)?;
        let node = |name: &str| topology.node(name).ok_or_else(|| wrong(&name));
        if scenario.series {
            return refuse("series", "none: only the simulator keeps curves");
        }
        refuse_any("", [("flows", !scenario.flows.is_empty(), "none")])?;
        let publisher = the_publisher(scenario)?;
        let at = node(&publisher.node)?;
        let hops = hops(&topology, at, scenario.routes)?;
        let roots: Vec<Name> = (1..=publisher.count)
            .map(|number| publisher.prefix.replace("{}", &number.to_string()).parse())
            .collect::<Result<_, _>>()
            .map_err(|error| wrong(&error))?;
        let (video, audio) = encoders(publisher)?;
        Ok(Self {
            scenario,
            told: told(scenario, &topology, &hops)?,
            watchers: watchers(scenario, &topology, at, &roots)?,
            layout: Layout {
                caches: caches(scenario, &topology),
                strategy: scenario.strategy.into(),
                rules: rules(&scenario.hops)?,
                hops,
                prefixes: roots,
                duration: scenario.duration,
            },
            publisher: at,
            streams: describe(publisher, &video, audio.as_ref()),
            video,
            audio,
            failures: failures(scenario, &node)?,
        })
    }

    /// The stream of that kind, as far as metrics need to know it.
    ///
    /// # Panics
    /// If nobody publishes one.
    pub(super) fn media(&self, kind: StreamKind) -> Media {
        let mut streams = self.scenario.publishers[0].streams.iter();
        let stream = streams.find(|stream| stream.kind == kind);
        stream.expect("the scenario is valid").media(0)
    }

    /// When each failure takes place, drawn as the simulator does.
    pub(super) fn failures_at(&self, random: &mut Random) -> Vec<(Duration, NodeIndex)> {
        let mut failures = Vec::new();
        for change in &self.scenario.changes {
            let at = change.at + change.spread.mul_f64(random.unit());
            let found = self
                .failures
                .iter()
                .find(|(of, _)| core::ptr::eq(*of, change));
            failures.extend(found.map(|(_, node)| (at, *node)));
        }
        failures
    }
}

/// Changes of links become part of these. Nothing of them is drawn, as relays count the time from their own start.
fn schedule_links(scenario: &StreamScenario, topology: &mut Topology) -> Result<(), Refusal> {
    for (index, change) in scenario.changes.iter().enumerate() {
        let Some(link) = &change.link else { continue };
        if change.up.is_some() || !change.spread.is_zero() {
            return refuse(
                format!("changes.{index}"),
                "a link's 'rate' or 'delay', without 'spread'",
            );
        }
        let step = netem::Step {
            at: change.at,
            rate: change.rate,
            delay: change.delay,
        };
        change_link(topology, link, step).map_err(|message| Refusal {
            field: Some(format!("changes.{index}.link")),
            message,
        })?;
    }
    Ok(())
}

fn caches(scenario: &StreamScenario, topology: &Topology) -> Vec<ByteSize> {
    let nodes = topology.nodes.iter();
    let cache = |name| *scenario.caches.get(name).unwrap_or(&scenario.cache);
    nodes.map(|node| cache(&node.name)).collect()
}

/// The only publisher, which publishes from beginning to end, perhaps the same under several names.
fn the_publisher(scenario: &StreamScenario) -> Result<&PublisherSpec, Refusal> {
    let [publisher] = scenario.publishers.as_slice() else {
        return refuse("publishers", "one");
    };
    let extras = [
        ("start", !publisher.start.is_zero(), "the beginning"),
        ("stop", publisher.stop.is_some(), "none"),
        ("shared", publisher.shared, "'false'"),
        ("headers", publisher.headers > 0, "0"),
        ("caller", publisher.caller.is_some(), "none"),
    ];
    refuse_any("publishers.0.", extras)?;
    Ok(publisher)
}

/// The links that lead nearer to the publisher.
fn hops(topology: &Topology, publisher: NodeIndex, routes: Routes) -> Result<Vec<Hop>, Refusal> {
    for (index, link) in topology.links.iter().enumerate() {
        let extras = [
            ("mtu", link.service.mtu.is_some(), "none"),
            ("reliability", link.service.reliability, "'false'"),
            ("node-queue", link.service.node_queue.is_some(), "none"),
        ];
        refuse_any(&format!("topology.link.{index}."), extras)?;
    }
    let taken = match routes {
        Routes::Shortest => 1,
        Routes::All => usize::MAX,
    };
    let mut hops = Vec::new();
    let ways = Graph::new(topology).all_next_hops(publisher);
    for (from, ways) in ways.into_iter().enumerate() {
        for way in ways.into_iter().take(taken) {
            let link = &topology.links[way.link];
            let is_forward = link.ends.0 == from;
            let (interests, data) = match is_forward {
                true => (&link.forward, &link.backward),
                false => (&link.backward, &link.forward),
            };
            hops.push(Hop {
                from,
                to: link.other_end(from).expect("a way starts at its node"),
                cost: way.cost,
                interests: interests.clone(),
                data: data.clone(),
            });
        }
    }
    Ok(hops)
}

fn told(
    scenario: &StreamScenario,
    topology: &Topology,
    hops: &[Hop],
) -> Result<Vec<Told>, Refusal> {
    let told = scenario.links.iter().enumerate().map(|(index, text)| {
        let ends = text
            .split_once('>')
            .and_then(|(from, to)| Some((topology.node(from.trim())?, topology.node(to.trim())?)));
        let find = |is_data: bool| {
            let along = |hop: &Hop| match is_data {
                true => (hop.to, hop.from),
                false => (hop.from, hop.to),
            };
            let hop = hops.iter().position(|hop| Some(along(hop)) == ends)?;
            let config = match is_data {
                true => &hops[hop].data,
                false => &hops[hop].interests,
            };
            let rate = config.rate.as_ref().and_then(netem::Rate::mean);
            let rate = rate.map_or(f64::INFINITY, |rate| rate.as_bps() as f64);
            Some(Told { hop, is_data, rate })
        };
        match find(false).or_else(|| find(true)) {
            Some(told) => Ok(told),
            None => refuse(format!("links.{index}"), "a link that Interests take"),
        }
    });
    told.collect()
}

/// Encoders for what is published.
fn encoders(publisher: &PublisherSpec) -> Result<(VideoConfig, Option<AudioConfig>), Refusal> {
    let (mut video, mut audio) = (None, None);
    for (index, stream) in publisher.streams.iter().enumerate() {
        let prefix = format!("publishers.0.streams.{index}.");
        let encoder = "none: the encoder decides";
        let extras = [
            ("key-factor", stream.key_factor.is_some(), encoder),
            ("deviation", stream.deviation.is_some(), encoder),
        ];
        refuse_any(&prefix, extras)?;
        match stream.kind {
            StreamKind::Audio => audio = Some(audio_config(stream, &prefix)?),
            StreamKind::Video | StreamKind::Data | StreamKind::Other => {
                video = Some(video_config(stream, &prefix)?)
            }
        }
    }
    match video {
        Some(video) => Ok((video, audio)),
        None => refuse("publishers.0.streams", "a video"),
    }
}

fn video_config(stream: &StreamSpec, prefix: &str) -> Result<VideoConfig, Refusal> {
    let media = stream.media(0);
    let wanted: Vec<_> = media.rungs.iter().map(|rung| &*rung.name).collect();
    let ladder = wanted.join(",").parse().map_err(|error| Refusal {
        field: Some(format!("{prefix}rungs")),
        message: format!("over sockets, {error}"),
    })?;
    Ok(VideoConfig {
        ladder,
        rate: media.rate,
        key_interval: media.key_interval,
        ..VideoConfig::default()
    })
}

fn audio_config(stream: &StreamSpec, prefix: &str) -> Result<AudioConfig, Refusal> {
    let media = stream.media(0);
    let is_opus = media.rate.num == AudioConfig::PACKETS_PER_SECOND;
    let [rung] = media.rungs.as_slice() else {
        return refuse(format!("{prefix}rungs"), "one");
    };
    let extras = [
        ("rate", !is_opus, "50"),
        ("key-interval", media.key_interval != 1, "1"),
        (
            "rungs",
            !(6_000..=256_000).contains(&rung.bitrate.as_bps()),
            "6 to 256 kbit/s",
        ),
    ];
    refuse_any(prefix, extras)?;
    Ok(AudioConfig {
        bitrate: rung.bitrate,
        ..AudioConfig::default()
    })
}

/// The catalogue's streams, cut as the scenario says.
fn describe(
    publisher: &PublisherSpec,
    video: &VideoConfig,
    audio: Option<&AudioConfig>,
) -> Vec<StreamInfo> {
    let cutting = Cutting {
        segment_size: 0,
        parity_percent: 0,
    };
    let mut streams = streams::describe(Some(video), audio, cutting);
    for info in &mut streams {
        let mut specs = publisher.streams.iter();
        if let Some(spec) = specs.find(|spec| spec.kind == info.kind) {
            let media = spec.media(0);
            info.segment_size = media.segment_size;
            info.parity_percent = media.parity_percent;
        }
    }
    streams
}

fn watchers<'a>(
    scenario: &'a StreamScenario,
    topology: &Topology,
    publisher: NodeIndex,
    roots: &[Name],
) -> Result<Vec<Viewer<'a>>, Refusal> {
    let mut watchers = Vec::new();
    for (index, watcher) in scenario.watchers.iter().enumerate() {
        let field = |name: &str| format!("watchers.{index}.{name}");
        let extras = [
            (
                "stop",
                watcher.stop.is_some(),
                "none: it watches to the end",
            ),
            ("shared-uplink", watcher.shared_uplink, "'false'"),
            ("object", watcher.object.is_some(), "none"),
        ];
        refuse_any(&format!("watchers.{index}."), extras)?;
        for number in 1..=watcher.count {
            let prefix = watcher.prefix(number);
            let root = roots
                .iter()
                .position(|root| prefix.parse().as_ref() == Ok(root));
            let (Some(node), Some(root)) = (topology.node(&watcher.node(number)), root) else {
                return refuse(field("prefix"), "a name that is published");
            };
            watchers.push(Viewer {
                spec: watcher,
                node,
                root,
                start: watcher.start + watcher.stagger * (number - 1),
                base: BaseDelay::new(topology, publisher, node),
            });
        }
    }
    Ok(watchers)
}

/// Nodes that fail.
fn failures<'a>(
    scenario: &'a StreamScenario,
    node: &dyn Fn(&str) -> Result<NodeIndex, Refusal>,
) -> Result<Vec<(&'a StreamChange, NodeIndex)>, Refusal> {
    let mut failures = Vec::new();
    for (index, change) in scenario.changes.iter().enumerate() {
        if change.link.is_some() {
            continue;
        }
        let has_application = |name: &String| {
            let watchers = scenario.watchers.iter();
            let mut watching = watchers.flat_map(|it| (1..=it.count).map(|n| it.node(n)));
            scenario.publishers[0].node == *name || watching.any(|node| node == *name)
        };
        match (&change.node, change.up) {
            (Some(name), Some(false)) if !has_application(name) => {
                failures.push((change, node(name)?));
            }
            _ => {
                return refuse(
                    format!("changes.{index}"),
                    "a link's 'rate' or 'delay', or a node without publisher and watchers, and 'up = false'",
                );
            }
        }
    }
    Ok(failures)
}
