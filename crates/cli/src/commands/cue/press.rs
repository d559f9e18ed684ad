//! `namecast cue go` and `namecast cue stop`: press a running desk's keys.

use std::net::SocketAddr;

use anyhow::{Context, bail};
use clap::Args;
use namecast_apps::cues::Press;
use namecast_apps::cues::osc::{Frames, decode_reply, encode_press, encode_slip};
use namecast_command::parse_address;
use namecast_units::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::osc::DEFAULT_ADDRESS;

/// A desk answers within this time.
const TIMEOUT: Duration = Duration::from_secs(5);

/// `namecast cue go`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  namecast cue go 12.5      the cue of this number
  namecast cue go           the next cue of the list

The desk runs with --osc: namecast cue desk /show --list show.toml --osc. It sends the cue under its own term, so nothing is sent where
another desk leads; the command then says which one, and ends with an error.")]
pub struct GoCommand {
    /// Number of the cue; without it: the next one of the desk's list.
    pub number: Option<String>,
    /// The desk.
    #[command(flatten)]
    pub desk: RunningDesk,
}

/// A desk that runs.
#[derive(Debug, Args)]
pub struct RunningDesk {
    /// Address on which the desk hears OSC.
    #[arg(long, value_name = "ADDRESS", default_value = DEFAULT_ADDRESS, value_parser = parse_address)]
    pub osc: SocketAddr,
}

/// Presses a key of the desk.
pub(super) async fn run(press: Press, desk: &RunningDesk) -> anyhow::Result<()> {
    let pressed = timeout(TIMEOUT, send(&press, desk.osc)).await;
    match pressed.context("the desk does not answer")?? {
        None => Ok(()),
        Some(problem) => bail!(problem),
    }
}

/// Returns the problem if the desk sent nothing.
async fn send(press: &Press, address: SocketAddr) -> anyhow::Result<Option<String>> {
    let stream = TcpStream::connect(address).await;
    let mut stream = stream.with_context(|| {
        format!("no desk hears OSC on {address}: start it with `namecast cue desk … --osc`")
    })?;
    stream
        .write_all(&encode_slip(&encode_press(press)?))
        .await?;
    let mut frames = Frames::default();
    let mut buffer = [0; 4_096];
    loop {
        let length = stream.read(&mut buffer).await?;
        if length == 0 {
            bail!("the desk at {address} closed the connection without an answer");
        }
        if let Some(packet) = frames.read(&buffer[..length])?.first() {
            return Ok(decode_reply(packet)?);
        }
    }
}
