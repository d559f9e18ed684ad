//! Serves a room's schema, roster and certificates.

use std::time::SystemTime;

use anyhow::Context;
use clap::Args;
use namecast_apps::room::{Host, Part};
use namecast_command::report::{ProgressLine, print_line};
use namecast_command::{Stop, parse_duration};
use namecast_net::{Handle, Node, NodeConfig, RegistrationState, drive};
use namecast_packet::{Certificate, Name};
use namecast_units::{ByteSize, Duration};

use super::super::publish::describe_registration;
use super::super::uplink::Uplink;
use super::super::{FIGURES_INTERVAL, key_store};
use crate::arguments::Keys;
use crate::connect::Connect;
use crate::hexadecimal::hex;
use crate::rooms::{Room, Rooms};

/// Cost of the route to the host. Forwarders let names below inherit it: those of members must lead to them first.
const COST: u64 = 100;

/// Serves a room.
#[derive(Debug, Args)]
pub struct ServeRoom {
    /// Root of the room.
    pub name: Name,
    /// Stop after this time.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Duration>,
    /// Print the anchor's digest, and errors, only.
    #[arg(short, long)]
    pub quiet: bool,
    /// The forwarder to serve it through.
    #[command(flatten)]
    pub connect: Connect,
    /// Where keys are.
    #[command(flatten)]
    pub keys: Keys,
}

/// Serves it until interrupted; changes of the room are published within a second.
pub(super) async fn run(arguments: ServeRoom) -> anyhow::Result<()> {
    let name = arguments.name;
    let rooms = Rooms::open()?;
    let mut room = Published::new(rooms.get(&name)?);
    let mut stop = Stop::new(arguments.duration)?;
    let mut progress = ProgressLine::new(!arguments.quiet);
    let anchor = key_store(arguments.keys.keys)?.anchor(&name)?;
    let certificate = Certificate::decode(anchor.certificate)?;
    let digest = hex(&certificate.public_key()?.digest());
    let host = Host::new(name.clone(), anchor.signer, certificate)?;
    let node = Node::start(NodeConfig::caching(ByteSize::mebibytes(1)));
    let mut uplink = Uplink::new(&node, &arguments.connect).await?;
    let own = node.application_face().await?;
    node.add_route(name.clone(), own.id(), 0).await?;
    let (host, _events) = drive(node.clock(), own, host).spawn(|| {});
    progress.say(&room.publish(&host).await?);
    let mut registered = node
        .register_prefix(uplink.face(), name.clone(), COST)
        .states();
    print_line(format_args!("{name}, anchor {digest}"))?;
    let mut tick = tokio::time::interval(FIGURES_INTERVAL);
    loop {
        tokio::select! {
            _ = tick.tick() => {
                if room.is_outdated(rooms.written_at(&name)) {
                    match rooms.get(&name) {
                        Ok(newer) => {
                            room.room = newer;
                            progress.say(&room.publish(&host).await?);
                        }
                        // What is served stays as it is.
                        Err(why) => progress.say_error(&format!("{why:#}")),
                    }
                }
            }
            (_, text) = uplink.changed() => progress.say_once(&text),
            Ok(()) = registered.changed() => {
                let state = registered.borrow_and_update().clone();
                if let RegistrationState::Refused(why) = &state {
                    anyhow::bail!("{} refuses {name}: {why}", uplink.remote());
                }
                if let Some(text) = describe_registration(&state, &name.to_string()) {
                    progress.say(&text);
                }
            }
            () = stop.wait() => break,
        }
    }
    node.shutdown().await;
    uplink.ensure_was_up()
}

/// A room, and what of it is served.
struct Published {
    room: Room,
    written_at: Option<SystemTime>,
    schema_version: u64,
    roster_version: u64,
}

impl Published {
    const fn new(room: Room) -> Self {
        Self {
            room,
            written_at: None,
            schema_version: 0,
            roster_version: 0,
        }
    }

    /// Returns whether the room's file was written since this was last called.
    fn is_outdated(&mut self, written_at: Option<SystemTime>) -> bool {
        core::mem::replace(&mut self.written_at, written_at) != written_at
    }

    /// Serves what is new. Returns what that is, for people.
    async fn publish(&mut self, host: &Handle<Host>) -> anyhow::Result<String> {
        let members = self.room.members()?;
        let roster = self.room.roster()?.encode();
        let schema = self.room.compiled()?.encode();
        let versions = [self.room.schema_version, self.room.roster_version];
        let is_new = [
            versions[0] > self.schema_version,
            versions[1] > self.roster_version,
        ];
        let count = members.len();
        let published = host.call(move |host, _| {
            for member in &members {
                host.add_certificate(&member.certificate);
            }
            let parts = [(Part::Schema, schema), (Part::Roster, roster)];
            for ((part, content), (version, is_new)) in
                parts.into_iter().zip(versions.into_iter().zip(is_new))
            {
                if is_new {
                    host.publish(part, version, content)?;
                }
            }
            anyhow::Ok(())
        });
        published.await.context("the node has stopped")??;
        [self.schema_version, self.roster_version] = versions;
        Ok(format!(
            "Serving schema version {}, roster version {} with {count} members",
            versions[0], versions[1]
        ))
    }
}
