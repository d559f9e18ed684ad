//! `namecast cue` and `namecast device`: the desk of a show, and the devices that execute its cues.

mod desk;
mod device;
mod journal;
mod list;
mod show;

use clap::{Args, Subcommand};
use namecast_command::parse_duration;
use namecast_packet::Name;
use namecast_units::Duration;

use crate::arguments::{Keys, Trusted};
use crate::connect::Connect;
use crate::rules::Rules;

use desk::DeskCommand;
pub(super) use device::{DeviceCommand, run as run_device};

/// `namecast cue`.
#[derive(Debug, Args)]
pub struct CueCommand {
    /// Part of the show.
    #[command(subcommand)]
    pub action: CueAction,
}

/// Parts of a show.
#[derive(Debug, Subcommand)]
pub enum CueAction {
    /// Run the desk of a show: it reads commands, and prints the reports of devices.
    Desk(DeskCommand),
}

/// Runs the command.
pub(super) async fn run(arguments: CueCommand) -> anyhow::Result<()> {
    match arguments.action {
        CueAction::Desk(arguments) => desk::run(arguments).await,
    }
}

/// Options of desk and device.
#[derive(Debug, Args)]
pub struct ShowOptions {
    /// Name of the show.
    pub show: Name,
    /// Stop after this time.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Duration>,
    /// Print JSON, one object a line.
    #[arg(long)]
    pub json: bool,
    /// Whose key counts.
    #[command(flatten)]
    pub trusted: Trusted,
    /// Which keys may sign for desks and devices.
    #[command(flatten)]
    pub rules: Rules,
    /// The forwarder to use.
    #[command(flatten)]
    pub connect: Connect,
    /// Directory of keys.
    #[command(flatten)]
    pub keys: Keys,
}
