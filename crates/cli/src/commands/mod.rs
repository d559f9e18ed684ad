//! One file per command.

mod archive;
mod demo;
mod forwarder;
mod key;
mod page;
mod publish;
mod publishing;
mod status;
mod watch;

use std::path::PathBuf;

use namecast_net::{KeyStore, KeyStoreError};
use namecast_units::Duration;

pub use watch::NotLive;

use crate::arguments::Command;
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
        #[cfg(feature = "lab")]
        Command::Lab(command) => namecast_lab::run(command).await,
    }
}

fn key_store(directory: Option<PathBuf>) -> Result<KeyStore, KeyStoreError> {
    match directory {
        Some(directory) => KeyStore::open(directory),
        None => KeyStore::open_default(),
    }
}
