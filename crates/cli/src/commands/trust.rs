//! `namecast trust`: schemas, which say which key may sign which name, and rooms, whose members are certified by an anchor.

mod invitations;
mod rooms;
mod serve;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand, ValueEnum};
use namecast_apps::trust::schema::{Match, Schema};
use namecast_apps::trust::template::Template;
use namecast_command::report::{print, print_bytes, print_line};
use namecast_packet::{Component, Name};
use serde_json::{Value, json};

use super::PastTime;
use crate::arguments::Keys;
use crate::rules::read;
use invitations::{Invite, LeaveRoom};
pub(super) use invitations::{JoinRoom, become_member};
use rooms::{Init, Request, Sign};
use serve::ServeRoom;

/// `namecast trust`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  namecast trust template /site > site.trust                  rules for streams of /site and of names below
  namecast trust template /calls/fox --template call          rules for a call and its members
  namecast trust compile site.trust                           check the rules
  namecast trust compile site.trust --output site.lvs         write them as python-ndn and ndnd read them
  namecast trust check /site/cam/catalogue/v=1/seg=0 /site/cam/KEY/1/site/v=1 --schema site.trust
                                                              may this certificate's key sign this name?
A room, from nothing:
  namecast trust init /calls/fox --template call              the host makes the anchor's key, and the rules
  namecast trust request /calls/fox/ann > ann.request         Ann makes a key, and requests a certificate
  namecast trust sign ann.request --valid 7d > ann.cert       the host certifies it
  namecast trust install ann.cert                             Ann keeps the certificate
  namecast trust serve /calls/fox                             the host publishes schema, roster and certificates
  namecast publish /calls/fox/ann --schema /calls/fox         Ann publishes under it
  namecast watch /calls/fox/ann --schema /calls/fox --key DIGEST
                                                              others watch, by the anchor's digest
By a link instead, while the host serves:
  namecast trust invite /calls/fox --uses 1                   the host makes a link, and sends it to Ann
  namecast trust join '#room=/calls/fox&key=…&t=…' --name Ann Ann becomes a member
  namecast trust leave /calls/fox/ann                         Ann leaves the room: nothing published later is sealed for her
  namecast trust revoke /calls/fox/ann                        the host revokes her key: readers refuse it within seconds")]
pub struct Trust {
    /// What to do.
    #[command(subcommand)]
    pub what: TrustWhat,
}

/// What to do with schemas.
#[derive(Debug, Subcommand)]
pub enum TrustWhat {
    /// Print rules under a name, to begin with.
    Template {
        /// Name whose key is the anchor.
        name: Name,
        /// Template of the rules.
        #[arg(long, value_enum, default_value_t = TemplateName::Streams)]
        template: TemplateName,
    },
    /// Compile a schema in Light VerSec text, and show what it holds.
    Compile {
        /// The schema: text, or a compiled one to check.
        file: PathBuf,
        /// Write the compiled schema to this file; '-' for standard output.
        #[arg(short, long, value_name = "FILE|-")]
        output: Option<PathBuf>,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Make a room: an anchor's key, and rules for who may sign what below its name.
    Init(Init),
    /// Make a key for a name, if there is none, and print a request for a certificate.
    Request(Request),
    /// Certify the key of a request, with the anchor's key of the room that its name belongs to, and print the certificate.
    Sign(Sign),
    /// Keep a certificate that was issued for a key of this machine: `--schema` publishes under it.
    Install {
        /// The certificate, as `namecast trust sign` printed it.
        file: PathBuf,
        /// Where keys are.
        #[command(flatten)]
        keys: Keys,
    },
    /// Make a link by which others become members of a room, and print it.
    Invite(Invite),
    /// Become a member of a room by a link.
    Join(JoinRoom),
    /// Leave a room: the host takes the member off the roster at once, and its key is not revoked.
    Leave(LeaveRoom),
    /// Say yes to a newcomer who waits at `namecast trust serve --knock`.
    Admit {
        /// Digest of the newcomer's key, as it was printed there, or its first 16 digits or more.
        #[arg(value_name = "DIGEST")]
        who: String,
        /// Root of the room, if there are several here.
        #[arg(long, value_name = "NAME")]
        room: Option<Name>,
    },
    /// Revoke the key of a member, from now on, or from when it was stolen.
    Revoke {
        /// Name of the member, or the digest of the key.
        #[arg(value_name = "NAME|DIGEST")]
        who: String,
        /// Revoke the key of a digest in this room alone.
        #[arg(long, value_name = "NAME")]
        room: Option<Name>,
        /// Refuse recordings, too, of what was published since this time, as `watch --from` takes it; 0: all of them. A revocation can be
        /// dated back later.
        #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
        since: Option<PastTime>,
    },
    /// Show members and revocations of rooms on this machine.
    Members {
        /// Root of a room; without it, all rooms.
        room: Option<Name>,
        /// Print one JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Publish a room's schema, roster and certificates, until interrupted.
    Serve(ServeRoom),
    /// Check whether a key may sign a name. Exits with status 1 if it may not.
    Check {
        /// Name of the packet.
        name: Name,
        /// Name of the key's certificate, whole: /…/KEY/ID/ISSUER/VERSION.
        #[arg(value_name = "KEY-NAME")]
        key: Name,
        /// The schema, as text or compiled.
        #[arg(long, value_name = "FILE")]
        schema: PathBuf,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
}

/// Template of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TemplateName {
    /// Streams of a site: cameras, for example.
    Streams,
    /// A call of several members.
    Call,
    /// A show: streams, cues and devices.
    Show,
    /// Tracks of several trackers.
    Tracks,
}

impl From<TemplateName> for Template {
    fn from(name: TemplateName) -> Self {
        match name {
            TemplateName::Streams => Self::Streams,
            TemplateName::Call => Self::Call,
            TemplateName::Show => Self::Show,
            TemplateName::Tracks => Self::Tracks,
        }
    }
}

/// Does what is asked for.
pub(super) async fn run(arguments: Trust) -> anyhow::Result<()> {
    match arguments.what {
        TrustWhat::Template { name, template } => print(Template::from(template).rules(&name)),
        TrustWhat::Compile { file, output, json } => compile(&file, output.as_deref(), json),
        TrustWhat::Init(arguments) => rooms::init(arguments),
        TrustWhat::Request(arguments) => rooms::request(arguments),
        TrustWhat::Sign(arguments) => rooms::sign(arguments),
        TrustWhat::Install { file, keys } => rooms::install(&file, keys),
        TrustWhat::Invite(arguments) => invitations::invite(arguments),
        TrustWhat::Join(arguments) => invitations::join(arguments).await,
        TrustWhat::Leave(arguments) => invitations::leave_room(arguments).await,
        TrustWhat::Admit { who, room } => invitations::admit(&who, room.as_ref()),
        TrustWhat::Revoke { who, room, since } => rooms::revoke(&who, room.as_ref(), since),
        TrustWhat::Members { room, json } => rooms::members(room, json),
        TrustWhat::Serve(arguments) => serve::run(arguments).await,
        TrustWhat::Check {
            name,
            key,
            schema,
            json,
        } => check(&name, &key, &read(&schema)?, json),
    }
}

fn compile(file: &Path, output: Option<&Path>, json: bool) -> anyhow::Result<()> {
    let schema = read(file)?;
    let octets = schema.encode();
    match output {
        Some(path) if path == Path::new("-") => return print_bytes(&octets),
        Some(path) => std::fs::write(path, &octets)
            .with_context(|| format!("cannot write {}", path.display()))?,
        None => {}
    }
    if json {
        let object = json!({
            "rules": schema.rules(),
            "anchors": schema.anchors(),
            "nodes": schema.node_count(),
            "bytes": octets.len(),
        });
        return print_line(serde_json::to_string_pretty(&object)?);
    }
    print_line(format_args!(
        "{}: {} rules, {} nodes, {} bytes compiled; anchors: {}",
        file.display(),
        schema.rules().len(),
        schema.node_count(),
        octets.len(),
        listed(&schema.anchors())
    ))
}

fn check(name: &Name, key: &Name, schema: &Schema, json: bool) -> anyhow::Result<()> {
    let permission = schema.check(name, key)?;
    if json {
        let packet = permission.as_ref().map(|permission| &permission.packet);
        let object = json!({
            "allowed": permission.is_some(),
            "rules": packet.map(|packet| &packet.rules),
            "patterns": packet.map(patterns),
            "signer_rules": permission.as_ref().map(|permission| &permission.signer),
        });
        print_line(serde_json::to_string_pretty(&object)?)?;
    }
    let Some(permission) = permission else {
        let rules = |name: &Name| -> anyhow::Result<String> {
            let matches = schema.matches(name)?;
            let rules: Vec<_> = matches.into_iter().flat_map(|it| it.rules).collect();
            Ok(listed(&rules))
        };
        bail!(
            "the schema does not allow {key} to sign {name}: the name matches {}, the key {}",
            rules(name)?,
            rules(key)?
        );
    };
    if json {
        return Ok(());
    }
    print_line(format_args!(
        "allowed: {} matches {}, {} matches {}",
        name,
        listed(&permission.packet.rules),
        key,
        listed(&permission.signer)
    ))
}

fn listed(rules: &[&str]) -> String {
    match rules {
        [] => "no rule".to_owned(),
        _ => rules.join(", "),
    }
}

/// Named patterns and the components that they stand for.
fn patterns(packet: &Match<'_>) -> Value {
    let values = packet.values.iter().map(|(pattern, value)| {
        let name = Name::root().builder();
        let written = match value_of(value) {
            Some(component) => name.component(component).finish().to_string(),
            None => String::new(),
        };
        (
            (*pattern).to_owned(),
            Value::String(written.trim_start_matches('/').to_owned()),
        )
    });
    Value::Object(values.collect())
}

/// The component that an element holds.
fn value_of(element: &[u8]) -> Option<Component<'_>> {
    let mut reader = namecast_packet::tlv::Reader::new(element);
    let field = reader.element("Name component").ok()??;
    Some(Component {
        kind: u16::try_from(field.element_type).ok()?,
        value: &element[field.value],
    })
}
