//! Serves a room's schema, roster and certificates.

use std::collections::BTreeMap;
use std::time::SystemTime;

use anyhow::Context;
use clap::Args;
use namecast_apps::group;
use namecast_apps::room::{Host, HostEvent, Join, Part, Welcome};
use namecast_apps::trust::EXCHANGE_KEY;
use namecast_command::report::{ProgressLine, print_line, printable};
use namecast_command::{Stop, parse_duration};
use namecast_net::management::{Client, ControlParameters};
use namecast_net::{
    Clock, FaceId, Handle, Identity, Node, NodeConfig, RegistrationState, Wanted, drive,
};
use namecast_packet::{Certificate, Component, Description, Name, Validity};
use namecast_units::{ByteSize, Duration};

use super::super::publish::describe_registration;
use super::super::uplink::Uplink;
use super::super::{FIGURES_INTERVAL, key_store};
use super::rooms::Issuing;
use crate::arguments::Keys;
use crate::connect::Connect;
use crate::hexadecimal::hex;
use crate::rooms::{Joined, Room, Rooms, identity_of};
use crate::rules::credential;

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
    /// Newcomers with a link wait until somebody says yes: their names and keys are printed, and `namecast trust admit DIGEST` lets one in.
    #[arg(long)]
    pub knock: bool,
    /// Print the anchor's digest, who waits, and errors, only.
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
    let store = key_store(arguments.keys.keys)?;
    let anchor = store.anchor(&name)?;
    let certificate = Certificate::decode(anchor.certificate)?;
    let digest = hex(&certificate.public_key()?.digest());
    let host = Host::new(name.clone(), anchor.signer, certificate)?;
    let node = Node::start(NodeConfig::caching(ByteSize::mebibytes(1)));
    let mut uplink = Uplink::new(&node, &arguments.connect).await?;
    // With them the host tells whose requests to join are whose.
    let own = node.application_face_with_local_fields().await?;
    node.add_route(name.clone(), own.id(), 0).await?;
    let (host, mut events) = drive(node.clock(), own, host).spawn(|| {});
    let mut door = Door {
        name: name.clone(),
        rooms: rooms.clone(),
        anchor: store.anchor(&name)?,
        knock: arguments.knock,
        clock: node.clock(),
        waiting: BTreeMap::new(),
    };
    progress.say(&room.publish(&host).await?);
    let wanted = Wanted {
        credential: credential(store.anchor(&name)?),
        ..Wanted::new(name.clone(), COST)
    };
    let mut registered = node.register(uplink.face(), wanted).states();
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
                door.look(&mut room, (&host, &mut progress)).await?;
            }
            Some(event) = events.recv() => {
                let said = (&host, &mut progress);
                match event {
                    HostEvent::Join(join) => door.take(&mut room, *join, said).await?,
                    HostEvent::Leave(certificate) => door.leave(&mut room, &certificate, said).await?,
                }
            }
            (_, text) = uplink.changed() => progress.say_once(&text),
            Ok(()) = registered.changed() => {
                let state = registered.borrow_and_update().clone();
                on_registration(&state, (&node, &uplink, &name), &mut progress).await?;
            }
            () = stop.wait() => break,
        }
    }
    node.shutdown().await;
    uplink.ensure_was_up()
}

/// Tells people about the registration of the room, and sets the strategy of its group once it is registered.
///
/// # Errors
/// If the forwarder refuses the room.
async fn on_registration(
    state: &RegistrationState,
    (node, uplink, room): (&Node, &Uplink, &Name),
    progress: &mut ProgressLine,
) -> anyhow::Result<()> {
    let remote = uplink.remote();
    if let RegistrationState::Refused(why) = state {
        anyhow::bail!("{remote} refuses {room}: {why}");
    }
    if let Some(text) = describe_registration(state, &room.to_string()) {
        progress.say(&text);
    }
    if *state == RegistrationState::Registered
        && let Err(why) = multicast(node, uplink.face(), room).await
    {
        progress.say(&format!(
            "{remote} does not send {room}/v=3 to all members ({why:#}). There: namecast strategy set {room}/v=3 multicast"
        ));
    }
    Ok(())
}

/// Has the forwarder behind `face` send Interests for the state vectors of a room's group to all members, instead of the nearest one.
async fn multicast(node: &Node, face: FaceId, room: &Name) -> anyhow::Result<()> {
    let parameters = ControlParameters {
        name: Some(room.builder().version(group::VERSION).finish()),
        strategy: Some("/localhost/nfd/strategy/multicast".parse()?),
        ..ControlParameters::default()
    };
    let mut client = Client::of_peer(node, face).await?;
    client.command("strategy-choice/set", &parameters).await?;
    Ok(())
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
        // Theirs count on: for recordings, and for who has not heard yet that they left.
        let left = self.room.left()?.into_iter().map(|it| it.certificate);
        let certificates = members.into_iter().map(|it| it.certificate).chain(left);
        let certificates: Vec<_> = certificates.collect();
        let secrets = self.room.secrets();
        let published = host.call(move |host, _| {
            host.set_invitations(&secrets);
            for certificate in &certificates {
                host.add_certificate(certificate);
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

/// Newcomers of a room.
struct Door {
    name: Name,
    rooms: Rooms,
    anchor: Identity,
    knock: bool,
    clock: Clock,
    /// Newcomers that wait for `trust admit`, by the digest of their key.
    waiting: BTreeMap<[u8; 32], Join>,
}

impl Door {
    /// Takes a request: it is answered at once, or once somebody says yes.
    async fn take(
        &mut self,
        room: &mut Published,
        join: Join,
        (host, progress): (&Handle<Host>, &mut ProgressLine),
    ) -> anyhow::Result<()> {
        let digest = join.key.digest();
        if self.knock && !room.room.has_admitted(&digest) && !room.room.has_member(&digest)? {
            let (label, key) = (printable(&join.label), &hex(&digest)[..16]);
            progress.say_error(&format!(
                "'{label}' with the key {key} wants to join {}: `namecast trust admit {key}` lets them in",
                self.name
            ));
            self.waiting.insert(digest, join);
            return Ok(());
        }
        self.decide(room, &join, (host, progress)).await
    }

    /// Answers those to whom somebody said yes, and forgets those who wait no more.
    async fn look(
        &mut self,
        room: &mut Published,
        (host, progress): (&Handle<Host>, &mut ProgressLine),
    ) -> anyhow::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let waiting = host.call(|host, _| host.waiting().copied().collect::<Vec<_>>());
        let waiting = waiting.await.unwrap_or_default();
        self.waiting.retain(|digest, _| waiting.contains(digest));
        let admitted = self
            .waiting
            .extract_if(.., |digest, _| room.room.has_admitted(digest));
        let admitted: Vec<_> = admitted.map(|(_, join)| join).collect();
        for join in &admitted {
            self.decide(room, join, (host, progress)).await?;
        }
        Ok(())
    }

    /// Takes a member off the roster, which answers it.
    async fn leave(
        &self,
        room: &mut Published,
        certificate: &Name,
        (host, progress): (&Handle<Host>, &mut ProgressLine),
    ) -> anyhow::Result<()> {
        let now = self.clock.wall();
        let left = self
            .rooms
            .change(&self.name, |room| room.leave(now, certificate));
        match left {
            Ok(true) => progress.say(&format!("{} has left", identity_of(certificate))),
            // It was revoked or renewed by another command meanwhile.
            Ok(false) => {}
            Err(why) => {
                progress.say_error(&format!(
                    "{} cannot leave: {why:#}",
                    identity_of(certificate)
                ));
                return Ok(());
            }
        }
        room.room = self.rooms.get(&self.name)?;
        progress.say(&room.publish(host).await?);
        Ok(())
    }

    /// Certifies a newcomer, or refuses to.
    async fn decide(
        &self,
        room: &mut Published,
        join: &Join,
        (host, progress): (&Handle<Host>, &mut ProgressLine),
    ) -> anyhow::Result<()> {
        let digest = join.key.digest();
        let now = self.clock.wall();
        let issue = |room: &Room, identity: &Name, valid: Duration| {
            let issuing = Issuing {
                root: &self.name,
                schema: &room.compiled()?,
                anchor: &self.anchor,
                validity: Validity {
                    not_before: now,
                    not_after: now + valid,
                },
            };
            let key_id = Component {
                kind: Component::GENERIC,
                value: &digest[..8],
            };
            let exchange = Description {
                key: EXCHANGE_KEY.into(),
                value: join.exchange_key.to_vec().into(),
            };
            issuing.certify(identity, (&join.key, key_id), &[exchange])
        };
        let joined = self
            .rooms
            .change(&self.name, |room| room.join(now, join, issue));
        let why = match joined {
            Ok(Joined::Member {
                certificate,
                is_new,
            }) => {
                if is_new {
                    room.room = self.rooms.get(&self.name)?;
                    progress.say(&format!("{} has joined", certificate.identity()));
                    progress.say(&room.publish(host).await?);
                }
                let welcome = Welcome {
                    schema_version: room.schema_version,
                    roster_version: room.roster_version,
                    certificate: *certificate,
                };
                // `None`: the node has stopped.
                let _ = host
                    .call(move |host, _| host.welcome(digest, &welcome))
                    .await;
                return Ok(());
            }
            Ok(Joined::Refused(why)) => why.to_owned(),
            Err(why) => format!("{why:#}"),
        };
        let label = printable(&join.label);
        progress.say_error(&format!("'{label}' cannot join {}: {why}", self.name));
        let _ = host.call(move |host, _| host.turn_away(digest)).await;
        Ok(())
    }
}
