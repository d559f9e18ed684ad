//! The laboratory: experiments from files, benchmarks, and a relay with an emulated link between real programs.
//!
//! ```text
//!  experiments/*.toml ─▶ experiment ─┬─ namecast-sim, in virtual time
//!                                    └─ nodes of namecast-net, in real time, with impair between them
//! ```
//!
//! [`main`] makes a program of it that has rate controllers and hops of one's own: `examples/own_controller.rs`, `examples/own_hop.rs`.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod bench;
pub mod experiment;
pub mod impair;
mod priority;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use namecast_command::Logs;
use namecast_command::report::StatsFile;

use bench::Bench;
use experiment::Simulator;
use experiment::arguments::ExperimentArguments;
use impair::Report;
use impair::arguments::Impair;
pub use namecast_forward as forward;
use namecast_forward::Hop;
use namecast_sim::CustomHop;
pub use namecast_stream::rate;
use namecast_stream::rate::{CustomControl, RateControl, RateController};
pub use namecast_units as units;
use namecast_units::Instant;

/// What a laboratory does.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Relay UDP through an emulated link: rate, delay, jitter, loss, queue.
    Impair(Box<Impair>),
    /// What ends by itself.
    #[command(flatten)]
    Study(Study),
}

/// What a laboratory does until it is done.
#[derive(Debug, Subcommand)]
pub enum Study {
    /// Measure, as ratios to a raw limit taken in the same run.
    Bench(Bench),
    /// Repeat figures and tables of papers: list, run, report.
    Experiment(ExperimentArguments),
}

/// Returns a laboratory to which controllers and hops may be added before it runs.
pub fn main() -> Laboratory {
    Laboratory::default()
}

/// A program that does what `namecast experiment`, `bench` and `impair` do, with more controllers and hops.
#[derive(Clone, Debug, Default)]
pub struct Laboratory {
    simulator: Simulator,
}

#[derive(Debug, Parser)]
#[command(
    version,
    max_term_width = 100,
    about = "A laboratory: experiments, benchmarks, and a relay with an emulated link"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    logs: Logs,
}

impl Laboratory {
    /// Lets experiment files name a controller, as in `controller = "mine"`: `build` makes one, and is told the time at which
    /// its periods start.
    ///
    /// # Panics
    /// If one of our own controllers is called so.
    #[must_use]
    pub fn controller(
        mut self,
        name: &'static str,
        build: fn(Instant) -> Box<dyn RateController>,
    ) -> Self {
        let is_free = name.parse::<RateControl>().is_err() && name != "live";
        assert!(is_free, "there is a controller called '{name}'");
        self.simulator.register(CustomControl { name, build });
        self
    }

    /// Lets experiment files have every node ask a hop about its packets, as in `hops = ["mine"]`: `build` makes one for each
    /// node, simulated or on sockets.
    #[must_use]
    pub fn hop(mut self, name: &'static str, build: fn() -> Box<dyn Hop>) -> Self {
        self.simulator.register_hop(CustomHop::new(name, build));
        self
    }

    /// Does what the program's arguments say.
    pub fn run(self) -> ExitCode {
        let Arguments { command, logs } = Arguments::parse();
        let failure = |_: &anyhow::Error| ExitCode::FAILURE;
        namecast_command::execute(&logs, self.carry_out(command), failure)
    }

    /// Does what was asked for.
    ///
    /// # Errors
    /// What went wrong, with what to do next.
    pub async fn carry_out(self, command: Command) -> anyhow::Result<()> {
        match command {
            Command::Impair(arguments) => {
                let mut stats = StatsFile::create(arguments.run.stats.as_deref())?;
                let write = |report: &Report, is_final| stats.write(report, is_final);
                impair::run(*arguments, write).await
            }
            Command::Study(Study::Bench(arguments)) => bench::run(arguments).await,
            Command::Study(Study::Experiment(arguments)) => {
                experiment::command::run(arguments, self.simulator).await
            }
        }
    }
}
