//! Live streams.
//!
//! ```text
//!  test picture, encoded before ─▶ Publisher ─ Node ─ … ─ Node ─ Watcher ─▶ FrameRecord
//! ```
//!
//! The video is real, but encoded before the run, so that encoders take no processor from it and all runs publish the same
//! frames: each counts as captured and encoded when it is published, as in the simulator. Nobody decodes.
//!
//! A run is disturbed if more than one frame in a hundred was over [`RELAY_DISTURBED_ABOVE`] late at a relay, a task that waits
//! ever over [`ENDS_DISTURBED_ABOVE`], or the publisher refused a frame.
//!
//! | metric | meaning |
//! |---|---|
//! | those of [`StreamScenario`] | the same, without those of tables and of the start (`chasing` to `response-max`); octets at applications' faces count link headers |
//! | `relay-error-p99` | delay that 99 of 100 frames do not exceed beyond what their link wanted, ms; of the worst relay |
//! | `ends-error-p99`, `ends-error-max` | from a deadline to the moment at which a task that waits for it is woken, ms; timers count milliseconds |
//! | `trials` | how often it was run |
//! | `disturbed` | 1 if the run was, else 0 |

mod play;
mod stage;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use namecast::Timer;
use namecast_media::ingest::{MediaFrame, clip};
use namecast_net::Clock;
use namecast_sim::scenario::{Observed, Snapshot, StreamScenario, Viewing};
use namecast_sim::topology::NodeIndex;
use namecast_stream::StreamKind;
use namecast_units::{Duration, Instant, Random};

use super::super::laboratory::{Outcome, Refusal};
use super::world::World;
use super::{broken, lateness, runtime, undisturbed};
use crate::impair::{DISTURBED_ABOVE as RELAY_DISTURBED_ABOVE, Quantiles};
use play::{Heard, Publishing, Watching};
use stage::Stage;

/// How long the task sleeps that measures how late it is woken.
const PROBE: Duration = Duration::from_millis(5);
/// Lateness that nobody who waits may ever have: a tenth of the usual playout target. A watcher may take what is later for lost,
/// and ask for more than it needs.
const ENDS_DISTURBED_ABOVE: Duration = Duration::from_millis(10);

/// Looks for what cannot be done over sockets.
///
/// # Errors
/// The field at fault, and what was expected.
pub(in super::super) fn validate(scenario: &StreamScenario, base: &Path) -> Result<(), Refusal> {
    Stage::new(scenario, base).map(drop)
}

/// Runs it, which takes as long as it says, and before that what the encoders need.
///
/// # Errors
/// If it cannot run over sockets, there is no ffmpeg, or the system gives no sockets or threads.
pub(in super::super) fn run(
    scenario: &StreamScenario,
    base: &Path,
    seed: u64,
) -> Result<Outcome, Refusal> {
    let stage = Stage::new(scenario, base)?;
    let frames = clip::encode(&stage.video, stage.audio.as_ref(), scenario.duration);
    let frames: Arc<[MediaFrame]> = frames.map_err(broken)?.into();
    undisturbed(scenario.trials, || {
        let trial = Trial::run(&stage, &frames, seed)?;
        Ok((trial.metrics(&stage), trial.is_disturbed()))
    })
}

/// Something that happens once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    /// A watcher joins, by its place.
    Join(usize),
    /// A node fails.
    Fail(NodeIndex),
    /// Everything that counts is read.
    Read,
}

/// What came of one run.
struct Trial {
    /// When each publisher published its first frame, since the start of the run.
    starts: Vec<Duration>,
    /// When each watcher joined, and what it delivered.
    watched: Vec<(Instant, Heard)>,
    snapshots: Vec<Snapshot>,
    /// Frames that the publisher refused, or had no room for.
    unpublished: u64,
    /// Of the worst relay.
    relay_error_p99: f64,
    ends_error: Quantiles,
}

impl Trial {
    fn run(stage: &Stage<'_>, frames: &Arc<[MediaFrame]>, seed: u64) -> Result<Self, Refusal> {
        // The draws of the simulator, so that a seed means the same times and Nonces.
        let mut random = Random::from_seed(seed);
        let failures = stage.failures_at(&mut random);
        let link_seed = random.next_u64();
        let _media_seed = random.next_u64();
        let joins = stage.watchers.iter().map(|viewer| {
            let at = viewer.start + viewer.spec.start_spread.mul_f64(random.unit());
            (at, random.next_u64())
        });
        let joins: Vec<_> = joins.collect();
        let spread = stage.scenario.publishers[0].start_spread;
        let starts = stage
            .layout
            .prefixes
            .iter()
            .map(|_| spread.mul_f64(random.unit()));
        let starts: Vec<_> = starts.collect();
        let agenda = agenda(&joins, &failures, &stage.scenario.edges());

        let runtime = runtime().map_err(broken)?;
        let world = runtime.block_on(World::start(&stage.layout, link_seed))?;
        let zero = Clock::new().now();
        let lateness = lateness(Timer::default(), PROBE, zero + stage.scenario.duration);
        let lateness = runtime.spawn(lateness);
        let mut publishing = Vec::new();
        for (root, &start) in stage.layout.prefixes.iter().zip(&starts) {
            let frames = (Arc::clone(frames), zero + start);
            let start = Publishing::start(stage, &world, root, frames);
            publishing.push(runtime.block_on(start)?);
        }
        let mut watching: Vec<Option<Watching>> = joins.iter().map(|_| None).collect();
        let mut snapshots = Vec::new();
        for (at, item) in agenda {
            std::thread::sleep((zero + at).since(Clock::new().now()));
            match item {
                Item::Join(place) => {
                    let told = (joins[place].1, zero);
                    let join = Watching::start(stage, &world, &stage.watchers[place], told);
                    watching[place] = Some(runtime.block_on(join)?);
                }
                Item::Fail(node) => {
                    let node = world.node(node).clone();
                    runtime.spawn(async move { node.shutdown().await });
                }
                Item::Read => {
                    let read = play::snapshot(&world, &publishing, &watching, at);
                    snapshots.push(Snapshot {
                        links: links(stage, &world)?,
                        ..runtime.block_on(read)?
                    });
                }
            }
        }
        runtime.block_on(async {
            let ends_error = lateness.await.map_err(broken)?;
            let mut watched = Vec::new();
            for watching in watching.into_iter().flatten() {
                watched.push((watching.joined_at, watching.stop().await));
            }
            let mut unpublished = 0;
            for publishing in publishing {
                unpublished += publishing.stop().await?;
            }
            Ok(Self {
                starts,
                watched,
                snapshots,
                unpublished,
                relay_error_p99: world.stop().await,
                ends_error,
            })
        })
    }

    fn is_disturbed(&self) -> bool {
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        self.unpublished > 0
            || self.relay_error_p99 > millis(RELAY_DISTURBED_ABOVE)
            || self.ends_error.max > millis(ENDS_DISTURBED_ABOVE)
    }

    fn metrics(&self, stage: &Stage<'_>) -> BTreeMap<String, f64> {
        let watchers = stage.watchers.iter().zip(&self.watched);
        let watchers = watchers.map(|(viewer, (joined_at, heard))| Viewing {
            spec: viewer.spec,
            joined_at: *joined_at,
            media: stage.media(viewer.spec.main_kind()),
            origin: Instant::ZERO + self.starts[viewer.root],
            sound: (stage.audio.is_some() && viewer.spec.audio && viewer.spec.video)
                .then(|| stage.media(StreamKind::Audio)),
            base: Some(viewer.base.clone()),
            records: &heard.records,
            simulated: None,
        });
        let observed = Observed {
            scenario: stage.scenario,
            watchers: watchers.collect(),
            snapshots: self.snapshots.clone(),
            link_rates: stage.told.iter().map(|told| told.rate).collect(),
        };
        let mut metrics = observed.metrics();
        let own = [
            ("relay-error-p99", self.relay_error_p99),
            ("ends-error-p99", self.ends_error.p99),
            ("ends-error-max", self.ends_error.max),
        ];
        metrics.extend(own.map(|(name, value)| (name.to_owned(), value)));
        metrics
    }
}

/// What the links to tell about have counted so far.
fn links(stage: &Stage<'_>, world: &World) -> Result<Vec<namecast_netem::Counters>, Refusal> {
    let told = stage.told.iter();
    told.map(|told| world.counters(told.hop, told.is_data))
        .collect()
}

/// What happens when, in order of time; of what happens at one time, reading comes last, as in the simulator.
fn agenda(
    joins: &[(Duration, u64)],
    failures: &[(Duration, NodeIndex)],
    edges: &[Duration],
) -> Vec<(Duration, Item)> {
    let joins = joins.iter().enumerate();
    let joins = joins.map(|(place, &(at, _))| (at, Item::Join(place)));
    let failures = failures.iter().map(|&(at, node)| (at, Item::Fail(node)));
    let reads = edges.iter().map(|&at| (at, Item::Read));
    let mut agenda: Vec<_> = joins.chain(failures).chain(reads).collect();
    agenda.sort_by_key(|&(at, _)| at);
    agenda
}

#[cfg(test)]
mod tests;
