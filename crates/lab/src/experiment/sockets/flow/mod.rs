//! The one flow of a dumbbell.
//!
//! ```text
//!  Fetcher ─ Node ─▶ "forward": Interests ─▶ Node ─ Server
//!                 ◀─ "backward": Data, bottleneck ◀─
//! ```
//!
//! The relay's links carry the delays of the access links, too, so that the base round-trip time is the simulator's. Deadlines
//! are kept by a [fine](Timer::fine) timer: the queue of a good controller is shorter than three milliseconds. Wakes are late all
//! the same, by some hundredth of a millisecond, and clocks say so: the pacer may make up for [`BURST`].
//!
//! A run is disturbed if more than one frame in a hundred was over [`DISTURBED_ABOVE`] late at the relay, or the task that waits.
//!
//! | metric | meaning |
//! |---|---|
//! | those of [`NetworkScenario`] | the same; the bottleneck's are the relay's |
//! | `relay-error-p99` | delay that 99 of 100 frames do not exceed beyond what the link wanted, ms |
//! | `ends-error-p99` | from a deadline to the moment at which a task that waits for it is woken, ms |
//! | `trials` | how often it was run |
//! | `disturbed` | 1 if one of the two was over [`DISTURBED_ABOVE`], else 0 |

mod stage;

use std::collections::BTreeMap;

use namecast::{Handle, Timer, drive};
use namecast_apps::Application;
use namecast_apps::sequence::{Fetcher, FetcherConfig, Server};
use namecast_net::{Clock, FaceId};
use namecast_sim::scenario::{FlowSnapshot, NetworkScenario, ObservedFlows};
use namecast_sim::topology::NodeIndex;
use namecast_stream::path::NumberedConfig;
use namecast_units::{Duration, Random};

use super::super::laboratory::{Outcome, Refusal};
use super::world::World;
use super::{broken, lateness, runtime, undisturbed};
use stage::Stage;

/// Lateness that at most one frame in a hundred may have. Stricter than the relay's own verdict: the shortest queue that is
/// compared is 2 ms, within a tenth.
const DISTURBED_ABOVE: Duration = Duration::from_micros(200);
/// Time's worth of its rate that the fetcher may send at once after a late wake, which else would be lost with each.
const BURST: Duration = Duration::from_millis(1);
/// How long the task sleeps that measures how late it is woken: as an Interest for a packet on 10 Mbit/s.
const PROBE: Duration = Duration::from_millis(1);

/// Looks for what cannot be done over sockets.
///
/// # Errors
/// The field at fault, and what was expected.
pub(in super::super) fn validate(scenario: &NetworkScenario) -> Result<(), Refusal> {
    Stage::new(scenario).map(drop)
}

/// Runs it, which takes as long as it says.
///
/// # Errors
/// If it cannot run over sockets, or the system gives no sockets or threads.
pub(in super::super) fn run(scenario: &NetworkScenario, seed: u64) -> Result<Outcome, Refusal> {
    let stage = Stage::new(scenario)?;
    undisturbed(scenario.trials, || {
        let metrics = trial(&stage, seed)?;
        let errors = metrics[RELAY_ERROR].max(metrics[ENDS_ERROR]);
        let is_disturbed = errors > DISTURBED_ABOVE.as_secs_f64() * 1e3;
        Ok((metrics, is_disturbed))
    })
}

const RELAY_ERROR: &str = "relay-error-p99";
const ENDS_ERROR: &str = "ends-error-p99";

/// Something that happens once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    /// The fetcher starts.
    Start,
    /// It stops.
    Stop,
    /// Everything that counts is read.
    Read,
}

/// Runs once, and measures.
fn trial(stage: &Stage<'_>, seed: u64) -> Result<BTreeMap<String, f64>, Refusal> {
    // The draws of the simulator, so that a seed means the same nonces and start.
    let mut random = Random::from_seed(seed);
    let link_seed = random.next_u64();
    let fetcher = stage
        .flow
        .fetcher(1, stage.scenario.packet, random.next_u64())?;
    let starts_at = stage.flow.start + stage.flow.start_spread.mul_f64(random.unit());

    let runtime = runtime().map_err(broken)?;
    let (world, _server, fetcher) = runtime.block_on(async {
        let world = World::start(&stage.layout, link_seed).await?;
        let server = serve(stage, &world).await?;
        let config = FetcherConfig {
            sample_interval: None,
            requests: NumberedConfig {
                burst: BURST,
                ..fetcher.requests
            },
            ..fetcher
        };
        let (_, fetcher) = run_on(&world, Stage::CONSUMER, Fetcher::new(config)).await?;
        Ok::<_, Refusal>((world, server, fetcher))
    })?;
    let clock = Clock::new();
    let zero = clock.now();
    let timer = runtime.block_on(async { Timer::fine() }).map_err(broken)?;
    let lateness = runtime.spawn(lateness(timer, PROBE, zero + stage.scenario.duration));
    let mut snapshots = Vec::new();
    for (at, item) in agenda(starts_at, stage.flow.stop, &stage.scenario.edges()) {
        std::thread::sleep((zero + at).since(clock.now()));
        let called = runtime.block_on(fetcher.call(move |fetcher, now| {
            match item {
                Item::Start => fetcher.start(now.monotonic),
                Item::Stop => fetcher.stop(now.monotonic),
                Item::Read => {}
            }
            (now.monotonic, fetcher.figures())
        }));
        let (taken_at, figures) = called.ok_or_else(|| broken("the fetcher ended early"))?;
        if item == Item::Read {
            snapshots.push(FlowSnapshot {
                at,
                taken_at: taken_at.since(zero),
                flows: vec![figures],
                bottleneck: world.counters(0, true)?,
            });
        }
    }
    let ends_error = runtime.block_on(lateness).map_err(broken)?.p99;
    let relay_error = runtime.block_on(world.stop());
    let observed = ObservedFlows {
        scenario: stage.scenario,
        base_rtts: vec![stage.base_rtt.as_secs_f64() * 1e3],
        capacity: vec![(Duration::ZERO, stage.rate)],
        snapshots,
    };
    let mut metrics = observed.metrics();
    let own = [(RELAY_ERROR, relay_error), (ENDS_ERROR, ends_error)];
    metrics.extend(own.map(|(name, value)| (name.to_owned(), value)));
    Ok(metrics)
}

/// What happens when, in order of time.
fn agenda(
    starts_at: Duration,
    stops_at: Option<Duration>,
    edges: &[Duration],
) -> Vec<(Duration, Item)> {
    let start = [(starts_at, Item::Start)].into_iter();
    let stop = stops_at.map(|at| (at, Item::Stop));
    let edges = edges.iter().map(|&at| (at, Item::Read));
    let mut agenda: Vec<_> = start.chain(stop).chain(edges).collect();
    agenda.sort_by_key(|&(at, _)| at);
    agenda
}

/// Starts the server that answers the flow, until the handle is dropped.
async fn serve(stage: &Stage<'_>, world: &World) -> Result<Handle<Server>, Refusal> {
    let prefix = &stage.layout.prefixes[0];
    let server = Server::new(stage.scenario.packet.server(prefix.clone()));
    let server = server.map_err(|error| Refusal {
        field: Some("packet".to_owned()),
        message: error.to_string(),
    })?;
    let (face, server) = run_on(world, Stage::PRODUCER, server).await?;
    let node = world.node(Stage::PRODUCER);
    let added = node.add_route(prefix.clone(), face, 0).await;
    added.map_err(broken)?;
    Ok(server)
}

/// Runs an application, which reports nothing, on a face of its own.
async fn run_on<A>(
    world: &World,
    node: NodeIndex,
    application: A,
) -> Result<(FaceId, Handle<A>), Refusal>
where
    A: Application<Event: Send> + Send + 'static,
{
    let face = world.node(node).application_face().await.map_err(broken)?;
    let id = face.id();
    let timer = Timer::fine().map_err(broken)?;
    let driven = drive(Clock::new(), face, application).timed_by(timer);
    Ok((id, driven.spawn(|| {}).0))
}

#[cfg(test)]
mod tests;
