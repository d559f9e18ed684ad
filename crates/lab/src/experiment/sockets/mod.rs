//! Scenarios over real sockets, in real time.
//!
//! ```text
//!  application ─ drive ─ Node ─ UDP ─▶ Relay: one for each link ─▶ UDP ─ Node ─ … ─ Node ─ drive ─ application
//! ```
//!
//! Nodes, applications and the loop that drives them are those of `namecast forwarder`, `publish` and `watch`, all in this
//! process; relays are those of `namecast impair`. [`flow`] has flows of numbered Data, [`stream`] live streams.
//!
//! Other programs disturb such a run. Relays measure how late their frames were, and a task that only sleeps how late it was
//! woken. A disturbed run is repeated, as often as the scenario's `trials` say, and marked if it never went well.

pub(super) mod flow;
pub(super) mod stream;
mod world;

use core::fmt::Display;
use core::num::NonZeroU32;
use std::collections::BTreeMap;
use std::io;

use namecast::Timer;
use namecast_net::Clock;
use namecast_sim::CustomHop;
use namecast_sim::scenario::{HopChoice, named_hops};
use namecast_units::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

use super::laboratory::{DISTURBED, Outcome, Refusal};
use crate::impair::{Errors, Quantiles};
use crate::priority::rise;

/// Threads on which nodes and applications run.
const WORKERS: usize = 2;

/// Refuses what sockets cannot be told, with the field.
fn refuse<T>(field: impl Into<String>, expected: &str) -> Result<T, Refusal> {
    Err(Refusal {
        field: Some(field.into()),
        message: format!("over sockets, expected {expected}"),
    })
}

/// The hops that a scenario names.
fn rules(hops: &[HopChoice]) -> Result<Vec<CustomHop>, Refusal> {
    named_hops(hops).map_err(|error| Refusal {
        field: Some(error.field),
        message: error.problem,
    })
}

/// What the system or a node refused.
fn broken(error: impl Display) -> Refusal {
    Refusal::from(format!("the run over sockets failed: {error}"))
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

/// Runs up to `trials` times, until `run` returns metrics of a run that was not disturbed. The last one counts.
fn undisturbed(
    trials: NonZeroU32,
    mut run: impl FnMut() -> Result<(BTreeMap<String, f64>, bool), Refusal>,
) -> Result<Outcome, Refusal> {
    for trial in 1.. {
        let (mut metrics, is_disturbed) = run()?;
        if !is_disturbed || trial == trials.get() {
            metrics.insert("trials".to_owned(), f64::from(trial));
            metrics.insert(DISTURBED.to_owned(), f64::from(u8::from(is_disturbed)));
            let series = Vec::new();
            return Ok(Outcome { metrics, series });
        }
    }
    unreachable!("the last trial returns")
}

/// Measures how late a task is woken by `timer`, after `pause` each time, until `end`.
async fn lateness(timer: Timer, pause: Duration, end: Instant) -> Quantiles {
    let clock = Clock::new();
    let mut errors = Errors::new();
    while clock.now() < end {
        let due = clock.now() + pause;
        timer.sleep_until(clock, Some(due)).await;
        errors.record(clock.now().since(due));
    }
    errors.quantiles()
}
