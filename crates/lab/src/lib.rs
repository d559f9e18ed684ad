//! The laboratory: experiments from files, benchmarks, and a relay with an emulated link between real programs.
//!
//! ```text
//!  experiments/*.toml ─▶ experiment ─┬─ namecast-sim, in virtual time
//!                                    └─ nodes of namecast-net, in real time, with impair between them
//! ```

mod bench;
pub mod experiment;
pub mod impair;
mod priority;

use clap::Subcommand;

use bench::Bench;
use experiment::arguments::ExperimentArguments;
use impair::arguments::Impair;

/// What a laboratory does.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Relay UDP through an emulated link: rate, delay, jitter, loss, queue.
    Impair(Box<Impair>),
    /// Measure, as ratios to a raw limit taken in the same run.
    Bench(Bench),
    /// Repeat figures and tables of papers: list, run, report.
    Experiment(ExperimentArguments),
}

/// Does what was asked for.
///
/// # Errors
/// What went wrong, with what to do next.
pub async fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Impair(arguments) => impair::command::run(*arguments).await,
        Command::Bench(arguments) => bench::run(arguments).await,
        Command::Experiment(arguments) => experiment::command::run(arguments).await,
    }
}
