//! One file per command.

mod archive;
mod demo;
mod experiment;
mod forwarder;
mod impair;
mod key;
mod page;
mod publish;
mod publishing;
mod status;
mod watch;

use std::path::PathBuf;

use namecast_net::{Clock, KeyStore, KeyStoreError};
use namecast_units::{Duration, Instant};

use tokio::signal::unix::{Signal, SignalKind, signal};
pub use watch::NotLive;

use crate::arguments::{BenchWhat, Command};
use crate::manage::{self, Managed};

/// How often figures are written and shown.
const FIGURES_INTERVAL: Duration = Duration::from_secs(1);

/// Runs what was asked for.
///
/// # Errors
/// What went wrong, with what to do next.
pub async fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Demo(arguments) => demo::run(arguments).await,
        Command::Publish(arguments) => publish::run(arguments).await,
        Command::Watch(arguments) => watch::run(arguments).await,
        Command::Archive(arguments) => archive::run(arguments).await,
        Command::Forwarder(arguments) => forwarder::run(arguments).await,
        Command::Status(arguments) => match arguments.port {
            Some(port) => status::run(port, arguments.target.json).await,
            None => manage::run(Managed::Status(arguments.target)).await,
        },
        Command::Top(arguments) => manage::run(Managed::Top(arguments)).await,
        Command::Trace(arguments) => manage::run(Managed::Trace(arguments)).await,
        Command::Face(arguments) => manage::run(Managed::Face(arguments)).await,
        Command::Route(arguments) => manage::run(Managed::Route(arguments)).await,
        Command::Strategy(arguments) => manage::run(Managed::Strategy(arguments)).await,
        Command::Cs(arguments) => manage::run(Managed::Cs(arguments)).await,
        Command::Key(arguments) => key::run(arguments),
        Command::Impair(arguments) => impair::run(*arguments).await,
        Command::Experiment(arguments) => experiment::run(arguments).await,
        Command::Bench(bench) => match bench.what {
            BenchWhat::Stream(arguments) => crate::bench::stream::run(&arguments).await,
            BenchWhat::Forwarder(arguments) => crate::bench::forwarder::run(&arguments),
            BenchWhat::Memory(arguments) => crate::bench::forwarder::memory::run(&arguments),
            BenchWhat::Sim(arguments) => crate::bench::sim::run(&arguments),
        },
    }
}

/// Says when to stop: at an interrupt, or when the time is over.
#[derive(Debug)]
struct Stop {
    interrupt: Signal,
    terminate: Signal,
    deadline: Option<Instant>,
}

impl Stop {
    /// From now on, interrupts end the command gracefully.
    fn new(duration: Option<Duration>) -> anyhow::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            deadline: duration.map(|duration| Clock::new().now() + duration),
        })
    }

    /// Waits until it is time to stop. May be called again and again.
    async fn wait(&mut self) {
        let left = self.deadline.map(|at| at.since(Clock::new().now()));
        let over = async {
            match left {
                Some(left) => tokio::time::sleep(left).await,
                None => core::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            () = over => {}
        }
    }
}

fn key_store(directory: Option<PathBuf>) -> Result<KeyStore, KeyStoreError> {
    match directory {
        Some(directory) => KeyStore::open(directory),
        None => KeyStore::open_default(),
    }
}
