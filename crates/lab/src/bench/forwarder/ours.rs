//! Our own forwarder: `namecast forwarder`.

use std::net::SocketAddr;

use anyhow::Context;
use smart_default::SmartDefault;
use tempfile::TempDir;

use super::super::measure::namecast;
use super::measured::Measured;

/// What is different from a forwarder without a configuration file.
#[derive(Clone, Debug, SmartDefault)]
pub(super) struct Options {
    /// Threads that forward, each of which gets a processor.
    #[default(1)]
    pub(super) threads: usize,
    /// Rank of the first of these processors.
    pub(super) processor: usize,
    /// Octets of the longest frame to a consumer.
    pub(super) mtu: Option<usize>,
    /// Whether neighbours count as hosts of their own.
    pub(super) is_remote: bool,
    /// Hops that see all packets; all neighbours hear their fields.
    pub(super) hops: Vec<String>,
}

/// Starts it with a route to each producer for the names of the load with its number.
pub(super) fn start(
    producers: &[SocketAddr],
    options: &Options,
) -> anyhow::Result<(Measured, SocketAddr, TempDir)> {
    let directory = tempfile::tempdir()?;
    let socket = directory.path().join("node.sock");
    let mtu = options.mtu.map(|mtu| format!("loopback-mtu = {mtu}"));
    let mut text = format!(
        "threads = {}\n\
         hops = {:?}\n\
         [faces]\n\
         extension-fields = {:?}\n\
         [listen]\n\
         udp = [\"127.0.0.1:0\"]\n\
         tcp = []\n\
         unix = [{socket:?}]\n\
         [udp]\n\
         loopback-is-local = {}\n\
         {}\n",
        options.threads,
        options.hops,
        if options.hops.is_empty() {
            "auto"
        } else {
            "on"
        },
        !options.is_remote,
        mtu.unwrap_or_default()
    );
    for (number, producer) in producers.iter().enumerate() {
        text += &format!(
            "[[face]]\n\
             uri = \"udp4://{producer}\"\n\
             [[route]]\n\
             prefix = \"/bench/{number}\"\n\
             face = \"udp4://{producer}\"\n"
        );
    }
    let file = directory.path().join("namecast.toml");
    std::fs::write(&file, text)?;
    let mut command = namecast()?;
    command
        .args(["forwarder", "--port", "0", "--json", "--config"])
        .arg(&file);
    let processors = options.processor..options.processor + options.threads;
    let mut program = Measured::start(command, processors)?;
    let said: serde_json::Value = serde_json::from_str(&program.line()?)?;
    let uri = said["faces"][0]
        .as_str()
        .context("the forwarder has no face")?;
    let address = uri.split("://").last().context("no address")?;
    Ok((program, address.parse()?, directory))
}
