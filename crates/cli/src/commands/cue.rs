//! `namecast cue` and `namecast device`: the desk of a show, and what its cues set off.

mod desk;
mod device;
mod journal;
mod list;

use clap::{Args, Subcommand};
use namecast::{Node, Options};
use namecast_units::ByteSize;

use crate::arguments::Keys;
use crate::connect::Connect;

use desk::Desk;
pub(super) use device::{DeviceCommand, run as run_device};

/// What each side keeps: the other side requests it within seconds.
const CACHE: ByteSize = ByteSize::mebibytes(4);

/// `namecast cue`.
#[derive(Debug, Args)]
pub struct CueCommand {
    /// What to do.
    #[command(subcommand)]
    pub action: CueAction,
}

/// What to do with cues.
#[derive(Debug, Subcommand)]
pub enum CueAction {
    /// Run the desk of a show: it reads commands, and tells what each device did.
    Desk(Desk),
}

/// Runs what was asked for.
pub(super) async fn run(arguments: CueCommand) -> anyhow::Result<()> {
    match arguments.action {
        CueAction::Desk(arguments) => desk::run(arguments).await,
    }
}

/// A node behind the forwarder that is meant.
async fn node(connect: &Connect, keys: &Keys) -> anyhow::Result<Node> {
    let node = Node::start(Options {
        keys: keys.keys.clone(),
        cache: CACHE,
    });
    let chosen = connect.keep(node.inner()).await?;
    node.attach(chosen.face).await?;
    Ok(node)
}
