//! `namecast put`: a file or standard input as an object, until interrupted.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use clap::Args;
use namecast_apps::object::{Server, ServerConfig, ServerCounters};
use namecast_command::report::{ProgressLine, print_line};
use namecast_command::{Run, Stop, parse_duration};
use namecast_net::{Node, NodeConfig, RegistrationState, drive};
use namecast_packet::{Certificate, Name};
use namecast_units::{ByteSize, Duration};
use serde_json::{Value, json};

use super::publish::{describe_registration, registration_problem};
use super::uplink::Uplink;
use super::{FIGURES_INTERVAL, key_store};
use crate::arguments::Keys;
use crate::connect::Connect;
use crate::hexadecimal::hex;
use crate::rules::Rules;
use crate::telemetry::{Observation, Reporter, tables};

/// Octets that an object may have. It takes twice as much memory while its segments are signed.
const MAX_SIZE: u64 = 64 << 30;

/// `namecast put`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  namecast put /files/report.pdf report.pdf
  date | namecast put /clock
  namecast peek /files/report.pdf --object > copy.pdf          or: ndnd cat, ndncatchunks")]
pub struct Put {
    /// Name of the object, to which its version is added.
    pub name: Name,
    /// What it holds; without it, or as '-': standard input to its end.
    pub file: Option<PathBuf>,
    /// Stop after this time.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Duration>,
    /// Print the name with its version, and errors, only.
    #[arg(short, long)]
    pub quiet: bool,
    /// The forwarder to serve it through.
    #[command(flatten)]
    pub connect: Connect,
    /// Who looks on.
    #[command(flatten)]
    pub observation: Observation,
    /// Where keys are.
    #[command(flatten)]
    pub keys: Keys,
    /// Rules to publish by.
    #[command(flatten)]
    pub rules: Rules,
}

/// Serves it until interrupted.
pub(super) async fn run(arguments: Put) -> anyhow::Result<()> {
    let name = arguments.name;
    ensure!(
        !name.is_empty(),
        "give the object a name, such as /files/report.pdf"
    );
    let content = read(arguments.file.as_deref())?;
    let size = content.len();
    let mut stop = Stop::new(arguments.duration)?;
    let run = Run {
        quiet: arguments.quiet,
        ..Run::default()
    };
    let mut stats = Reporter::start(&tables::PUT, &run, &arguments.observation).await?;
    let mut progress = ProgressLine::new(!arguments.quiet);
    let node = Node::start(NodeConfig::caching(ByteSize::mebibytes(1)));
    stats.observe(&node);
    let mut uplink = Uplink::new(&node, &arguments.connect).await?;
    let store = key_store(arguments.keys.keys)?;
    let rules = &arguments.rules;
    let certified = rules
        .identity(&node, uplink.face(), (&store, &name))
        .await?;
    let key = certified.map_or_else(|| store.identity(&name), Ok)?;
    let certificate = Certificate::decode(key.certificate)?;
    let digest = hex(&certificate.public_key()?.digest());
    let config = ServerConfig {
        max_size: ByteSize::bytes(size as u64),
        ..ServerConfig::new(name.clone())
    };
    let server = Server::new(config, key.signer, certificate)?;
    let own = node.application_face().await?;
    node.add_route(name.clone(), own.id(), 0).await?;
    let (server, _requested) = drive(node.clock(), own, server).spawn(|| {});
    let object = name.clone();
    progress.show(&format!("Signing {size} bytes …"));
    let put = server.call(move |server, now| server.put(object, content, now.wall));
    let versioned = put.await.context("the node has stopped")??;
    progress.show("");
    let mut registered = node
        .register_prefix(uplink.face(), name.clone(), 0)
        .states();
    print_line(versioned)?;
    progress.say(&format!("Serving {size} bytes, signed with key {digest}"));
    let mut tick = tokio::time::interval(FIGURES_INTERVAL);
    loop {
        tokio::select! {
            _ = tick.tick() => {
                if let Some(counters) = server.call(|it, _| *it.counters()).await {
                    stats.write(&figures(&counters, size), false)?;
                }
            }
            (_, text) = uplink.changed() => progress.say_once(&text),
            Ok(()) = registered.changed() => {
                let state = registered.borrow_and_update().clone();
                if let RegistrationState::Refused(why) = &state {
                    bail!("{} refuses {name}: {why}", uplink.remote());
                }
                if let Some(text) = describe_registration(&state, &name.to_string()) {
                    progress.say(&text);
                }
                stats.set_problem("registration", registration_problem(&state, &name));
            }
            () = stop.wait() => break,
        }
    }
    node.shutdown().await;
    uplink.ensure_was_up()
}

/// What became of Interests for an object of `size` octets.
fn figures(counters: &ServerCounters, size: usize) -> Value {
    json!({
        "size": size,
        "answered": counters.answered,
        "refused": counters.refused,
        "expired": counters.expired,
        "overflow": counters.overflow,
        "malformed": counters.malformed,
    })
}

fn read(file: Option<&Path>) -> anyhow::Result<Bytes> {
    let mut content = Vec::new();
    let file = file.filter(|file| *file != Path::new("-"));
    match file {
        Some(file) => {
            let opened = std::fs::File::open(file);
            let opened = opened.with_context(|| format!("cannot open {}", file.display()))?;
            opened.take(MAX_SIZE + 1).read_to_end(&mut content)?
        }
        None => std::io::stdin()
            .lock()
            .take(MAX_SIZE + 1)
            .read_to_end(&mut content)?,
    };
    ensure!(
        content.len() as u64 <= MAX_SIZE,
        "more than {MAX_SIZE} bytes: put it in parts, under several names"
    );
    Ok(content.into())
}
