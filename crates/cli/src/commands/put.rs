//! `namecast put`: a file or standard input as an object, until interrupted.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use clap::Args;
use namecast_apps::object::{Server, ServerConfig};
use namecast_command::report::{ProgressLine, print_line};
use namecast_command::{Stop, parse_duration};
use namecast_net::{Node, NodeConfig, RegistrationState, drive};
use namecast_packet::{Certificate, Name};
use namecast_units::{ByteSize, Duration};

use super::key_store;
use super::publish::describe_registration;
use super::uplink::Uplink;
use crate::arguments::Keys;
use crate::connect::Connect;
use crate::page_server::hex;

/// Octets that an object may have.
const MAX_SIZE: u64 = 256 << 20;

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
    /// Where keys are.
    #[command(flatten)]
    pub keys: Keys,
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
    let mut progress = ProgressLine::new(!arguments.quiet);
    let key = key_store(arguments.keys.keys)?.identity(&name)?;
    let certificate = Certificate::decode(key.certificate)?;
    let digest = hex(&certificate.public_key()?.digest());
    let server = Server::new(ServerConfig::new(name.clone()), key.signer, certificate)?;
    let node = Node::start(NodeConfig::caching(ByteSize::mebibytes(1)));
    let mut uplink = Uplink::new(&node, &arguments.connect).await?;
    let own = node.application_face().await?;
    node.add_route(name.clone(), own.id(), 0).await?;
    let (server, _requested) = drive(node.clock(), own, server).spawn(|| {});
    let object = name.clone();
    let put = server.call(move |server, now| server.put(object, content, now.wall));
    let versioned = put.await.context("the node has stopped")??;
    let registration = node.register_prefix(uplink.face(), name.clone(), 0);
    let mut registered = registration.states();
    print_line(versioned)?;
    progress.say(&format!("Serving {size} bytes, signed with key {digest}"));
    loop {
        tokio::select! {
            (_, text) = uplink.changed() => progress.say_once(&text),
            Ok(()) = registered.changed() => {
                let state = registered.borrow_and_update().clone();
                if let RegistrationState::Refused(why) = &state {
                    bail!("{} refuses {name}: {why}", uplink.remote());
                }
                if let Some(text) = describe_registration(&state, &name.to_string()) {
                    progress.say(&text);
                }
            }
            () = stop.wait() => break,
        }
    }
    registration.cancel();
    node.shutdown().await;
    uplink.ensure_was_up()
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
