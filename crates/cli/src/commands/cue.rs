//! `namecast cue` and `namecast device`: the desk of a show, and the devices that execute its cues.

mod desk;
mod device;
mod journal;
mod list;

use clap::{Args, Subcommand};
use namecast::{Node, Options};
use namecast_command::parse_duration;
use namecast_units::{ByteSize, Duration};

use crate::arguments::Keys;
use crate::connect::Connect;

use desk::Desk;
pub(super) use device::{DeviceCommand, run as run_device};

/// Memory of each side for packets: the other side requests them within seconds.
const CACHE: ByteSize = ByteSize::mebibytes(4);

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
    Desk(Desk),
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
    /// Stop after this time.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Duration>,
    /// Print JSON, one object a line.
    #[arg(long)]
    pub json: bool,
    /// The forwarder to use.
    #[command(flatten)]
    pub connect: Connect,
    /// Directory of keys.
    #[command(flatten)]
    pub keys: Keys,
}

/// A node behind the forwarder of `options`.
async fn node(options: &ShowOptions) -> anyhow::Result<Node> {
    let node = Node::start(Options {
        keys: options.keys.keys.clone(),
        cache: CACHE,
    });
    let chosen = options.connect.keep(node.inner()).await?;
    node.attach(chosen.face).await?;
    Ok(node)
}
