//! The one flow of a dumbbell over real sockets, in real time.
//!
//! ```text
//!  Fetcher ─ Forwarder ─ UDP ─▶ Relay, "forward": Interests ─▶ UDP ─ Forwarder ─ Server
//!                            ◀─ "backward": Data, bottleneck ◀─
//!  └── thread "ends" ──┘      └──── thread "impair" ────┘      └── thread "ends" ──┘
//! ```
//!
//! Applications, forwarders, packets and link are the very code that the simulator runs; what is real are clock, sockets,
//! kernel and threads. The relay's links carry the delays of the access links, too, so that the base round-trip time is the
//! simulator's. Both nodes are driven by one thread that waits in `ppoll`, with real-time priority where the system permits,
//! and not by the event loop of `namecast-net`: its timers count milliseconds, and the queue of a good controller is
//! shorter than three. State machines are told the times at which packets came and deadlines were due, not those at which the
//! thread got to them: a pacer that is always some 30 µs late would ask for three in a hundred less than its controller
//! allows, and one that makes up for it in bursts holds ARC's queue a tenth longer.
//!
//! [`stream`] has live streams, on nodes with their event loops.
//!
//! Other programs disturb such a run. Relay and ends measure how late they were; a run in which more than one frame in a
//! hundred was over [`DISTURBED_ABOVE`] late is repeated, as often as the scenario's `trials` say, and marked if it never went well.
//!
//! | metric | meaning |
//! |---|---|
//! | those of [`NetworkScenario`] | the same; the bottleneck's are read off the relay at the edges of the window |
//! | `relay-error-p99` | delay that 99 of 100 frames do not exceed beyond what the link wanted, ms |
//! | `ends-error-p99` | the same from a deadline, or the kernel's receive time, to its handling at the ends, ms |
//! | `trials` | how often it was run |
//! | `disturbed` | 1 if one of the two was over [`DISTURBED_ABOVE`], else 0 |

mod ends;
mod host;
mod measure;
mod stage;
pub(super) mod stream;

use std::net::{Ipv4Addr, SocketAddr};
use std::thread::JoinHandle;

use namecast_net::Clock;
use namecast_sim::scenario::NetworkScenario;
use namecast_units::{Duration, Instant, Random};

use super::laboratory::{Outcome, Refusal};
use crate::impair::{Port, Relay, RelayConfig, Report};
use ends::{Ends, Told};
use host::Host;
use measure::Edge;
use stage::Stage;

/// Lateness that at most one frame in a hundred may have. Stricter than the relay's own verdict: the shortest queue that is
/// compared is 2 ms, within a tenth.
const DISTURBED_ABOVE: Duration = Duration::from_micros(200);
/// A port of this machine that the system chooses.
const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Looks for what cannot be done over sockets.
///
/// # Errors
/// The field at fault, and what was expected.
pub(super) fn validate(scenario: &NetworkScenario) -> Result<(), Refusal> {
    Stage::new(scenario).map(drop)
}

/// Runs it, which takes as long as it says.
///
/// # Errors
/// If it cannot run over sockets, or the system gives no sockets or threads.
pub(super) fn run(scenario: &NetworkScenario, seed: u64) -> Result<Outcome, Refusal> {
    let stage = Stage::new(scenario)?;
    let mut trials = 1;
    loop {
        let trial = Trial::run(&stage, seed)?;
        if !trial.is_disturbed() || trials == scenario.trials.get() {
            let mut metrics = measure::metrics(&stage, &trial.edges);
            metrics.insert("relay-error-p99".to_owned(), trial.report.error_ms.p99);
            metrics.insert("ends-error-p99".to_owned(), trial.told.error_ms.p99);
            metrics.insert("trials".to_owned(), f64::from(trials));
            let disturbed = f64::from(u8::from(trial.is_disturbed()));
            metrics.insert(super::laboratory::DISTURBED.to_owned(), disturbed);
            let series = Vec::new();
            return Ok(Outcome { metrics, series });
        }
        trials += 1;
    }
}

/// What came of one run.
struct Trial {
    told: Told,
    /// The relay's last.
    report: Report,
    edges: Vec<Edge>,
}

impl Trial {
    fn run(stage: &Stage<'_>, seed: u64) -> Result<Self, Refusal> {
        // The draws of the simulator, so that a seed means the same nonces and start.
        let mut random = Random::from_seed(seed);
        let link_seed = random.next_u64();
        let fetcher_seed = random.next_u64();
        let starts_at = stage.flow.start + stage.flow.start_spread.mul_f64(random.unit());

        let no_socket = |error| Refusal::from(format!("the system gives no socket: {error}"));
        let producer_port = Port::bind(ANY_PORT).map_err(no_socket)?;
        let mut config = RelayConfig::new(ANY_PORT, producer_port.address().map_err(no_socket)?);
        config.forward = stage.interests.clone();
        config.backward = stage.data.clone();
        config.seed = link_seed;
        config.max_clients = 1;
        config.idle_timeout = stage.scenario.duration + Duration::from_secs(60);
        let relay = Relay::start(config).map_err(|error| Refusal::from(error.to_string()))?;
        let consumer_port = Port::connect(relay.address()).map_err(no_socket)?;

        let clock = Clock::new();
        let zero = clock.now();
        let edges = measure::edges(stage.scenario);
        let ends = Ends::new(
            clock,
            Host::consumer(stage, fetcher_seed, consumer_port)?,
            Host::producer(stage, producer_port)?,
            ends::agenda(starts_at, stage.flow.stop, &edges),
        );
        let thread = std::thread::Builder::new().name("ends".to_owned());
        let thread = thread
            .spawn(move || ends.run(zero))
            .map_err(|error| Refusal::from(format!("the system gives no thread: {error}")))?;
        Self::watch(&relay, thread, &edges, zero)
    }

    /// Asks the relay at each edge, and both for their ends.
    fn watch(
        relay: &Relay,
        thread: JoinHandle<Told>,
        edges: &[Duration],
        zero: Instant,
    ) -> Result<Self, Refusal> {
        let ended = || Refusal::from("a thread ended early, which is a defect".to_owned());
        let mut reports = Vec::with_capacity(edges.len());
        for &edge in edges {
            std::thread::sleep((zero + edge).since(Clock::new().now()));
            reports.push(relay.report().ok_or_else(ended)?);
        }
        let told = thread.join().map_err(|_| ended())?;
        let report = relay.report().ok_or_else(ended)?;
        let edges = edges.iter().zip(&told.figures).zip(reports);
        let edges = edges.map(|((&at, &(read_at, figures)), relay)| Edge {
            at,
            read_at,
            figures,
            relay,
        });
        let edges = edges.collect();
        Ok(Self {
            told,
            report,
            edges,
        })
    }

    fn is_disturbed(&self) -> bool {
        let most = DISTURBED_ABOVE.as_secs_f64() * 1e3;
        self.report.error_ms.p99.max(self.told.error_ms.p99) > most
    }
}

#[cfg(test)]
mod tests;
