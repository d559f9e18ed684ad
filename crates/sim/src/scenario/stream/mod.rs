//! Live streams over a network.

mod edge;
mod frames;
mod in_time;
mod measure;
mod observed;
mod passage;
mod path;
mod publishing;
mod requests;
mod run;
mod spec;
mod talks;
mod written;

use core::num::NonZeroU32;
use std::collections::BTreeMap;
use std::path::Path;

use namecast_packet::Name;
use namecast_units::{ByteSize, Duration};
use serde::{Deserialize, Serialize};

use super::ScenarioError;
use super::flows::Flow;
use super::forwarding::{Routes, Strategy};
use super::hops::{self, HopChoice};
use super::measure::Window;
use super::network::{Medium, PacketSize, usual_trials, validate_window};
use super::place::{Direction, check_constant, directions, find};
use crate::topology::{Spec, Topology};

pub use observed::{Observed, Snapshot, Viewing, WatcherSnapshot};
pub use path::BaseDelay;
pub(super) use run::Run;
pub use spec::{
    LadderSpec, PublisherSpec, RecoverySpec, Signature, StreamChange, StreamSpec, SynchroniserSpec,
    WatcherSpec,
};

/// Publishers and watchers of live streams on a network, and what is measured of them.
///
/// A *frame* is one of a watcher's video, or of its audio if it pulls no video. Those of a window are the ones captured in it,
/// from the first that the watcher showed, and until a second and the playout target before the run or the watcher ends.
///
/// | metric | meaning |
/// |---|---|
/// | `join` | from the first Interest to the first frame delivered, ms |
/// | `first-shown` | from joining to the first frame shown, ms |
/// | `rejoins` | times that the watcher joined again by itself |
/// | `frames` | frames of the window |
/// | `rendered`, `late`, `lost` | frames of the window that could be decoded when the watcher was to show them, that could later, and that were not delivered |
/// | `rendered-share`, `late-share`, `lost-share` | the same as shares of `frames` |
/// | `parity-share`, `retransmission-share` | frames that were completed with parity; by asking again without it; as shares of `frames` |
/// | `rebuilt-share` | frames whose lead was rebuilt from inter-frame FEC, as a share of `frames` |
/// | `gaps`, `longest-gap` | times that something was missing between two frames shown; longest time between two frames shown, ms |
/// | `stale` | seconds of playback that were more than a second older than the least old frame shown |
/// | `latency`, `latency-max` | from capture to display, ms |
/// | `drd` | time from Interest to Data that exists, as the watcher estimates it at the end, ms |
/// | `lead` | λ at the end, in frames |
/// | `response`, `response-max` | DRD′: from Interest to Data of the first segments of delta frames, ms |
/// | `chasing`, `adjusting`, `back-off` | of the last start: time until frames came as they were published; time until λ was found, unless just in time; of that and after it, time with older frames, ms |
/// | `interests`, `interests-again` | Interests sent; of those, sent again |
/// | `data-rate`, `content-rate`, `payload-rate` | Data received, headers included; its Content, of frames that nobody is shown included; payload of frames shown; Mbit/s |
/// | `object-rate` | content of the object that it fetches, Mbit/s |
/// | `overhead` | Data received per octet of payload in complete frames, less 1 |
/// | `rung-rate` | bitrate of the rung that a frame shown is of, Mbit/s |
/// | `goal-reached` | from joining to the first frame shown of the rung `goal`, s |
/// | `goal-share` | frames of the window that were shown at that rung, as a share of `frames` |
///
/// | `in-time-share`, `complete-share` | frames that could be decoded by capture + delay of the path at that moment + target; that were complete by then; as shares of all frames captured in the window (see below) |
/// | `shown-rate` | payload of frames in time, Mbit/s |
/// | `freeze` | longest time without a frame in time, less the time of a frame, ms |
/// | `switches` | changes of the rung from one frame in time to the next, per minute |
/// | `rung-back` | from the window's start, where frames of some rung are in time, to the first that is of at least this rung after the first that is not, s; 0 if all are |
/// | `goal-in-time` | from joining to the first frame in time of at least the rung `goal`, s |
/// | `quality-M` | mean quality of the picture on the screen by the measure M, from what the stream's [`quality`](StreamSpec::quality) says of its rungs; where no frame is in time, that of the last one that was |
/// | `sound-in-time-share`, `sound-gap`, `sound-back` | as `in-time-share`, `freeze` and `rung-back`, of the sound beside the video |
/// | `interest-ratio`, `interest-load` | most Interests in any ten seconds of the window, or in all of it: per segment needed; as a share of 1.5 per segment needed and 50 a second |
/// | `interests-peak`, `interest-peak-load` | most Interests in any second of the window; as a share of 1.25 per segment that the watcher took the path to carry, and 50 |
/// | `interests-per-segment` | most Interests for one segment, since the start |
///
/// A frame can be decoded as soon as it and all frames of its rung before it, from its key frame on, are complete, however late they
/// are. What the watcher itself holds to be in time (`rendered`) has no part in that. Frames in time are counted from when the watcher
/// joined, until 1.5 s before the run or the watcher ends.
///
/// They are means over all watchers; `rendered-share-min`, `in-time-share-min` and `shown-rate-min` are the least, `shown-rate-sum`
/// is the sum, `jain` is Jain's index of `shown-rate`. With up to ten watchers, `-N` after the name is that of watcher N.
///
/// | metric | meaning |
/// |---|---|
/// | `producer-data`, `producer-rate` | Data that left all publishers: packets; Mbit/s, headers included |
/// | `producer-interests` | Interests that reached them |
/// | `link-K-frames`, `link-K-rate` | what the K-th of `links` delivered: frames; Mbit/s, headers included |
/// | `link-K-utilisation` | the same as a share of its rate, as long as that does not change |
/// | `link-K-queue-delay` | mean wait of frames it delivered, ms |
/// | `link-K-dropped` | frames it did not deliver |
/// | `link-K-own-frames`, `link-K-own-dropped`, `link-K-own-rate-share` | Data of streams that it delivered; that its queue dropped; the share of all octets it delivered |
/// | `link-K-own-queue-delay`, `link-K-own-queue-delay-p95` | wait of Data of streams: the mean, and the 95th percentile, ms |
/// | `link-K-own-queue-long` | seconds in which Data of streams waited more than 100 ms on average |
/// | `streams-share` | with flows: share of what watchers and flows received, frames' payload and flows' content, that watchers received |
/// | `kind-K-goodput`, `kind-K-share`, `kind-K-jain` | of the flows whose [`kind`](Flow::kind) is K: content, mean of a flow, Mbit/s; their share of what watchers and flows received; Jain's index among them |
/// | `talk-in-time-share`, `talk-delay`, `talk-delay-p99` | of the voices of calls, in both directions: packets heard within 150 ms of being spoken, as a share of those spoken; time from mouth to ear, the mean and the 99th percentile, ms |
/// | `ideal-in-time-share`, `ideal-shown-rate` | with one watcher, where the rate of the first of `links` follows a trace or a model: the bound of [`oracle`](super::oracle) over the whole run |
/// | `pit`, `cached` | most Interests pending, and most octets of Data cached, in all nodes together, at any sample |
/// | `producer-held`, `producer-cached` | most Interests held, and most octets kept, by all publishers, at any sample |
/// | `watcher-samples`, `watcher-outstanding`, `watcher-buffered` | most samples, Interests and octets in tables of all watchers, at any sample |
/// | `events` | most deadlines in the simulator, at any sample |
///
/// Averages are over `measure`; for each of `windows`, the same metrics exist with its name after a hyphen. With `series`, every
/// `sample` gives a point of `data-N` (Mbit/s), `lead-N` (frames), `drd-N` (ms) and `bandwidth-N` (what the choice of the rung takes
/// the way to carry, Mbit/s) `rung-N` (bitrate of what it pulls, Mbit/s) of each of the first ten watchers, of `producer`
/// and `link-K` (Mbit/s), of `queue-K` (what a frame would wait there, ms), and of the table sizes above; and every frame one of `shown-N` (bitrate of the rung in time, at its capture, Mbit/s; 0 if in none), of `gap-N` (D_arr) and `response-N` (DRD′, ms) and
/// `pipeline-N` (λ).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct StreamScenario {
    /// What it runs on.
    #[serde(default)]
    pub medium: Medium,
    /// As [`NetworkScenario::trials`](super::NetworkScenario::trials).
    #[serde(default = "usual_trials")]
    pub trials: NonZeroU32,
    /// Nodes and links.
    pub topology: Spec,
    /// Content store of every node.
    #[serde(default)]
    pub cache: ByteSize,
    /// Content store of single nodes, by name.
    #[serde(default)]
    pub caches: BTreeMap<String, ByteSize>,
    /// Strategy of every node.
    #[serde(default)]
    pub strategy: Strategy,
    /// As [`NetworkScenario::hops`](super::NetworkScenario::hops).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<HopChoice>,
    /// Which next hops nodes know.
    #[serde(default)]
    pub routes: Routes,
    /// How packets are signed.
    #[serde(default)]
    pub signature: Signature,
    /// How long it takes.
    #[serde(with = "namecast_units::duration")]
    pub duration: Duration,
    /// The part that is averaged over; all of it if not given.
    #[serde(default)]
    pub measure: Window,
    /// Further parts, by name.
    #[serde(default)]
    pub windows: BTreeMap<String, Window>,
    /// Who publishes what.
    #[serde(default = "one_publisher")]
    pub publishers: Vec<PublisherSpec>,
    /// Who watches what.
    #[serde(default = "one_watcher")]
    pub watchers: Vec<WatcherSpec>,
    /// Who fetches numbered Data beside them.
    #[serde(default)]
    pub flows: Vec<Flow>,
    /// Size of the flows' Data.
    #[serde(default)]
    pub packet: PacketSize,
    /// What changes meanwhile.
    #[serde(default)]
    pub changes: Vec<StreamChange>,
    /// Directions of links to tell about, as `R1>R2`.
    #[serde(default)]
    pub links: Vec<String>,
    /// Whether curves are kept.
    #[serde(default)]
    pub series: bool,
    /// Time from one sample of curves and table sizes to the next.
    #[serde(default = "tenth_of_a_second", with = "namecast_units::duration")]
    pub sample: Duration,
}

fn one_publisher() -> Vec<PublisherSpec> {
    vec![PublisherSpec::default()]
}

fn one_watcher() -> Vec<WatcherSpec> {
    vec![WatcherSpec::default()]
}

const fn tenth_of_a_second() -> Duration {
    Duration::from_millis(100)
}

/// Most watchers of a scenario, copies included.
const MAX_WATCHERS: u32 = 1_000;
/// Watchers of which metrics and curves of their own are kept.
const MAX_TOLD: usize = 10;
/// Most samples of one run.
const MAX_SAMPLES: u128 = 1_000_000;

impl StreamScenario {
    pub(super) fn validate(&self, base: &Path) -> Result<(), ScenarioError> {
        hops::named_hops(&self.hops)?;
        let topology = self.topology(base)?;
        self.validate_publishers(&topology)?;
        self.validate_watchers(&topology)?;
        for (index, flow) in self.flows.iter().enumerate() {
            flow.check(&topology).map_err(|(field, problem)| {
                ScenarioError::new(format!("flows.{index}.{field}"), problem)
            })?;
        }
        for name in self.caches.keys() {
            find(&topology, name).map_err(|error| ScenarioError::new("caches", error))?;
        }
        for (index, change) in self.changes.iter().enumerate() {
            self.validate_change(change, &topology)
                .map_err(|(field, problem)| {
                    ScenarioError::new(format!("changes.{index}{field}"), problem)
                })?;
        }
        for (index, link) in self.links.iter().enumerate() {
            let direction = Direction::parse(link, &topology);
            direction.map_err(|error| ScenarioError::new(format!("links.{index}"), error))?;
        }
        validate_window("measure", &self.measure, self.duration)?;
        for (name, window) in &self.windows {
            validate_window(&format!("windows.{name}"), window, self.duration)?;
        }
        let samples = self.duration.as_nanos().checked_div(self.sample.as_nanos());
        if samples.is_none_or(|samples| samples > MAX_SAMPLES) {
            let problem = format!("expected at least a {MAX_SAMPLES}th of 'duration'");
            return Err(ScenarioError::new("sample", problem));
        }
        Ok(())
    }

    fn validate_publishers(&self, topology: &Topology) -> Result<(), ScenarioError> {
        for (index, publisher) in self.publishers.iter().enumerate() {
            let wrong = |field: &str, problem: String| {
                ScenarioError::new(format!("publishers.{index}.{field}"), problem)
            };
            if !(1..=MAX_WATCHERS).contains(&publisher.count) {
                return Err(wrong("count", format!("expected 1 to {MAX_WATCHERS}")));
            }
            for number in [1, publisher.count] {
                let publisher = publisher.copy(number);
                find(topology, &publisher.node).map_err(|problem| wrong("node", problem))?;
                if let Some(caller) = &publisher.caller {
                    find(topology, caller).map_err(|problem| wrong("caller", problem))?;
                }
                let name = publisher.prefix.parse::<Name>();
                name.map_err(|error| wrong("prefix", error.to_string()))?;
            }
            if publisher.streams.is_empty() {
                return Err(wrong("streams", "expected at least one".to_owned()));
            }
            for (place, stream) in publisher.streams.iter().enumerate() {
                let checked = stream.check();
                checked.map_err(|(field, problem)| {
                    wrong(&format!("streams.{place}.{field}"), problem)
                })?;
                let mut before = publisher.streams[..place].iter();
                if before.any(|other| other.kind == stream.kind) {
                    let problem = "expected one of each kind".to_owned();
                    return Err(wrong(&format!("streams.{place}.kind"), problem));
                }
            }
        }
        Ok(())
    }

    fn validate_watchers(&self, topology: &Topology) -> Result<(), ScenarioError> {
        let mut total: u32 = 0;
        for (index, watcher) in self.watchers.iter().enumerate() {
            let wrong = |field: &str, problem: String| {
                ScenarioError::new(format!("watchers.{index}.{field}"), problem)
            };
            for number in [watcher.count.min(1), watcher.count] {
                find(topology, &watcher.node(number)).map_err(|problem| wrong("node", problem))?;
            }
            let publishers = [watcher.count.min(1), watcher.count].map(|number| {
                let prefix = watcher.prefix(number);
                let published = self.publisher_of(&prefix);
                published.ok_or_else(|| wrong("prefix", format!("nobody publishes '{prefix}'")))
            });
            let [publisher, last] = publishers;
            last?;
            let publisher = publisher?;
            let kind = watcher.main_kind();
            if !(watcher.video || watcher.audio) {
                return Err(wrong("video", "expected video or audio".to_owned()));
            }
            let stream = publisher.streams.iter().find(|stream| stream.kind == kind);
            let Some(stream) = stream else {
                let problem = "the publisher has no such stream".to_owned();
                return Err(wrong("video", problem));
            };
            let rungs = stream.media(0).rungs;
            let named = [
                (Some(&watcher.rung), "rung"),
                (watcher.goal.as_ref(), "goal"),
            ];
            for (name, field) in named {
                let is_relative =
                    |name: &str| field == "rung" && ["auto", "highest", "lowest"].contains(&name);
                let is_known = |name: &String| {
                    is_relative(name) || rungs.iter().any(|rung| rung.name == *name)
                };
                if let Some(name) = name.filter(|name| !is_known(name)) {
                    let names: Vec<_> = rungs.iter().map(|rung| &*rung.name).collect();
                    let problem = format!("'{name}' is no rung: there are {}", names.join(", "));
                    return Err(wrong(field, problem));
                }
            }
            if let Some(controller) = &watcher.controller {
                (controller.get()).map_err(|problem| wrong("controller", problem))?;
            }
            if let Err((field, problem)) = watcher.ladder.check(watcher.profile) {
                return Err(wrong(&format!("ladder.{field}"), problem));
            }
            total = total.saturating_add(watcher.count);
        }
        if total > MAX_WATCHERS {
            let problem = format!("{total} watchers: expected at most {MAX_WATCHERS}");
            return Err(ScenarioError::new("watchers", problem));
        }
        Ok(())
    }

    fn validate_change(
        &self,
        change: &StreamChange,
        topology: &Topology,
    ) -> Result<(), (&'static str, String)> {
        let wrong = |field, problem: &str| Err((field, problem.to_owned()));
        let is_of_link = change.rate.is_some() || change.delay.is_some();
        if let Some(place) = change.watcher {
            return self.validate_weighing(change, place);
        }
        match (&change.link, &change.node, change.publisher) {
            (Some(link), None, None) => {
                let affected = directions(link, topology).map_err(|problem| (".link", problem))?;
                if change.rate.is_some() {
                    check_constant(&affected, topology).map_err(|problem| (".rate", problem))?;
                }
                if !is_of_link && change.up.is_none() {
                    return wrong("", "expected 'rate', 'delay' or 'up'");
                }
                return Ok(());
            }
            (None, Some(node), None) => {
                find(topology, node).map_err(|problem| (".node", problem))?;
            }
            (None, None, Some(place)) => {
                let count = self.publishers.len();
                let publisher = place
                    .checked_sub(1)
                    .and_then(|place| self.publishers.get(place));
                let Some(publisher) = publisher else {
                    return wrong(".publisher", &format!("expected 1 to {count}"));
                };
                if change.up == Some(true) && !publisher.shared {
                    let problem = "only a 'shared' publisher can start again: others count anew";
                    return wrong(".up", problem);
                }
            }
            _ => {
                return wrong(
                    "",
                    "expected one of 'link', 'node', 'publisher' and 'watcher'",
                );
            }
        }
        if is_of_link || change.up.is_none() {
            return wrong("", "expected 'up', and 'rate' and 'delay' of links only");
        }
        Ok(())
    }

    /// Checks a change of the watcher at `place`.
    fn validate_weighing(
        &self,
        change: &StreamChange,
        place: usize,
    ) -> Result<(), (&'static str, String)> {
        let all: u32 = self.watchers.iter().map(|watcher| watcher.count).sum();
        if !(1..=all as usize).contains(&place) {
            return Err((".watcher", format!("expected 1 to {all}")));
        }
        let alone = StreamChange {
            at: change.at,
            spread: change.spread,
            watcher: change.watcher,
            weight: change.weight,
            ..StreamChange::default()
        };
        if change.weight.is_none() || *change != alone {
            return Err(("", "expected 'weight', and nothing of others".to_owned()));
        }
        Ok(())
    }

    /// When something is to be read off a run: where windows begin and end, in order, and at its end.
    pub fn edges(&self) -> Vec<Duration> {
        let windows = self.all_windows().into_iter();
        let mut edges: Vec<_> = windows.flat_map(|(_, from, until)| [from, until]).collect();
        edges.push(self.duration);
        edges.sort_unstable();
        edges.dedup();
        edges
    }

    /// Suffix, start and end of each window.
    fn all_windows(&self) -> Vec<(String, Duration, Duration)> {
        let named = self.windows.iter();
        let named = named.map(|(name, window)| (format!("-{name}"), window));
        let all = [(String::new(), &self.measure)].into_iter().chain(named);
        let bounds = all.map(|(suffix, window)| {
            let until = window.until.unwrap_or(self.duration);
            (suffix, window.from, until)
        });
        bounds.collect()
    }

    /// All publishers, copies included, each with its number among the copies.
    fn all_publishers(&self) -> Vec<(PublisherSpec, u32)> {
        let publishers = self.publishers.iter();
        let copies = publishers.flat_map(|publisher| {
            (1..=publisher.count).map(|number| (publisher.copy(number), number))
        });
        copies.collect()
    }

    /// The first publisher of that name.
    fn publisher_of(&self, prefix: &str) -> Option<PublisherSpec> {
        let mut publishers = self.all_publishers().into_iter();
        let found = publishers.find(|(publisher, _)| publisher.prefix == prefix);
        found.map(|(publisher, _)| publisher)
    }

    /// The topology; files are looked for in `base`.
    ///
    /// # Errors
    /// If it cannot be built.
    pub fn topology(&self, base: &Path) -> Result<Topology, ScenarioError> {
        let topology = self.topology.build(base);
        topology.map_err(|error| ScenarioError::new("topology", error))
    }
}
