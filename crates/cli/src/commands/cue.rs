//! `namecast cue` and `namecast device`: the desk of a show, and the devices that execute its cues.

mod check;
mod desk;
mod device;
mod journal;
mod list;
mod log;
mod osc;
mod outlet;
mod press;
mod show;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use namecast_apps::cues::Press;
use namecast_command::parse_duration;
use namecast_packet::Name;
use namecast_units::Duration;

use crate::arguments::{Keys, Trusted};
use crate::connect::Connect;
use crate::rules::Rules;

use check::CheckCommand;
use desk::DeskCommand;
pub(super) use device::{DeviceCommand, run as run_device};
use log::LogCommand;
use press::{GoCommand, RunningDesk};

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
    /// Execute a cue, by a desk that runs.
    Go(GoCommand),
    /// End all that runs, by a desk that runs.
    Stop(RunningDesk),
    /// Before the show: check that each device answers, its clock, losses and key. Ends with an error if one is not ready.
    Check(CheckCommand),
    /// Print what was pressed and done, and check its signatures.
    Log(LogCommand),
}

/// Runs the command.
pub(super) async fn run(arguments: CueCommand) -> anyhow::Result<()> {
    match arguments.action {
        CueAction::Desk(arguments) => desk::run(arguments).await,
        CueAction::Go(arguments) => {
            let press = Press::Go(arguments.number);
            press::run(press, &arguments.desk).await
        }
        CueAction::Stop(desk) => press::run(Press::Stop, &desk).await,
        CueAction::Check(arguments) => check::run(arguments).await,
        CueAction::Log(arguments) => log::run(arguments).await,
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
    /// Append what is published to this file as it is signed: what was pressed, executed and refused. See namecast cue log.
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// A rehearsal: devices with this option execute the cues of desks with it, and no others.
    #[arg(long)]
    pub rehearsal: bool,
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
