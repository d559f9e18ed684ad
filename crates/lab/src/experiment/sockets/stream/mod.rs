//! Live streams over real sockets, in real time.
//!
//! ```text
//!  test picture, encoded before ─▶ Publisher ─ Node ─ UDP ─ Relay ─ UDP ─ Node ─ … ─ Node ─ Watcher ─▶ FrameRecord
//! ```
//!
//! Nodes, publisher and watchers are those of `namecast forwarder`, `publish` and `watch` with their event loops, all in this
//! process; relays are those of `namecast impair`, one for each link that Interests take. The video is real, but encoded before
//! the run, so that encoders take no processor from it and all runs publish the same frames: each counts as captured and encoded
//! when it is published, as in the simulator. Nobody decodes.
//!
//! Other programs disturb such a run. Relays measure how late their frames were, and a task that only sleeps how late it was
//! woken. A run is repeated, as often as the scenario's `trials` say, and marked if it never went well, if more than one frame in a
//! hundred was over [`RELAY_DISTURBED_ABOVE`] late, that task ever over [`ENDS_DISTURBED_ABOVE`], or the publisher refused a frame.
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
mod world;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use namecast_media::ingest::{MediaFrame, clip};
use namecast_net::Clock;
use namecast_sim::scenario::{Observed, Snapshot, StreamScenario, Viewing};
use namecast_sim::topology::NodeIndex;
use namecast_stream::StreamKind;
use namecast_units::{Duration, Instant, Random};
use tokio::runtime::{Builder, Runtime};

use super::super::laboratory::{DISTURBED, Outcome, Refusal};
use crate::impair::{DISTURBED_ABOVE as RELAY_DISTURBED_ABOVE, Quantiles};
use crate::priority::rise;
use play::{Heard, Publishing, Watching};
use stage::Stage;
use world::{World, broken};

/// Threads on which nodes and applications run.
const WORKERS: usize = 2;
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
    let mut trials = 1;
    loop {
        let trial = Trial::run(&stage, &frames, seed)?;
        if !trial.is_disturbed() || trials == scenario.trials.get() {
            let mut metrics = trial.metrics(&stage);
            metrics.insert("trials".to_owned(), f64::from(trials));
            let series = Vec::new();
            return Ok(Outcome { metrics, series });
        }
        trials += 1;
    }
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
    /// When each watcher joined, and what it handed out.
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
        let starts = stage.roots.iter().map(|_| spread.mul_f64(random.unit()));
        let starts: Vec<_> = starts.collect();
        let times: Vec<_> = joins.iter().map(|(at, _)| *at).collect();
        let agenda = agenda(&times, &failures, &stage.scenario.edges());

        let runtime = runtime().map_err(broken)?;
        let world = runtime.block_on(World::start(stage, link_seed))?;
        let zero = Clock::new().now();
        let lateness = runtime.spawn(play::lateness(zero + stage.scenario.duration));
        let mut publishing = Vec::new();
        for (root, &start) in stage.roots.iter().zip(&starts) {
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
                        links: world.links(&stage.told)?,
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
            let reports = world.stop().await;
            let errors = reports.iter().map(|report| report.error_ms.p99);
            Ok(Self {
                starts,
                watched,
                snapshots,
                unpublished,
                relay_error_p99: errors.fold(0.0, f64::max),
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
            (DISTURBED, f64::from(u8::from(self.is_disturbed()))),
        ];
        metrics.extend(own.map(|(name, value)| (name.to_owned(), value)));
        metrics
    }
}

/// Threads for nodes and applications, with real-time priority where the system permits, as relays have it: without it, a run
/// is more likely to be disturbed, and known to be.
fn runtime() -> io::Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(WORKERS).enable_all();
    builder.on_thread_start(|| {
        let _ = rise();
    });
    builder.build()
}

/// What happens when, in order of time; of what happens at one time, reading comes last, as in the simulator.
fn agenda(
    joins: &[Duration],
    failures: &[(Duration, NodeIndex)],
    edges: &[Duration],
) -> Vec<(Duration, Item)> {
    let joins = joins.iter().enumerate();
    let joins = joins.map(|(place, &at)| (at, Item::Join(place)));
    let failures = failures.iter().map(|&(at, node)| (at, Item::Fail(node)));
    let reads = edges.iter().map(|&at| (at, Item::Read));
    let mut agenda: Vec<_> = joins.chain(failures).chain(reads).collect();
    agenda.sort_by_key(|&(at, _)| at);
    agenda
}

#[cfg(test)]
mod tests;
