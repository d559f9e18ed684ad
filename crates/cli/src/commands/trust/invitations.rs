//! Invitations: links by which others become members of a room, at the host and at the newcomer; and how a member leaves.

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use namecast_apps::room::{
    InvitationSecret, JoinEvent, Joiner, Link, WaitReason, Welcome, join_name, leave,
};
use namecast_command::report::{local, print_error, print_line};
use namecast_command::{number, parse_duration};
use namecast_net::{Clock, Node, NodeConfig, drive, random};
use namecast_packet::{Certificate, Name};
use namecast_units::{ByteSize, Duration};

use super::rooms::parse_text;
use crate::arguments::Keys;
use crate::asking::{Answer, Asker, nonce};
use crate::commands::key_store;
use crate::commands::uplink::Uplink;
use crate::connect::Connect;
use crate::rooms::{Invitation, Rooms};
use crate::rules::issuer;

/// Makes a link that invites to a room.
#[derive(Debug, Args)]
pub struct Invite {
    /// Root of the room.
    pub name: Name,
    /// Role of those who join with the link, for people.
    #[arg(long, default_value = "member", value_parser = parse_text)]
    pub role: String,
    /// How many may join with the link. Without: any number.
    #[arg(long, value_name = "N", value_parser = number::<u32>(1..=1_000_000))]
    pub uses: Option<u32>,
    /// The link works for this time.
    #[arg(long, value_name = "TIME", default_value = "1d", value_parser = parse_duration)]
    pub expires: Duration,
    /// Certificates of those who join are valid for this time.
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = parse_duration)]
    pub valid: Duration,
    /// Print the link with this address before the '#'.
    #[arg(long, value_name = "URL", default_value = "")]
    pub page: String,
    /// Where keys are.
    #[command(flatten)]
    pub keys: Keys,
}

/// Joins a room with a link.
#[derive(Debug, Args)]
pub struct JoinRoom {
    /// The link, as `namecast trust invite` printed it: …#room=…&key=…&t=…
    pub link: Link,
    /// Name shown to people; the host makes the member's name of its letters and digits.
    #[arg(long, default_value = "", value_parser = parse_text)]
    pub name: String,
    /// How long the host is waited for, who may have to say yes.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_duration)]
    pub wait: Duration,
    /// The forwarder to ask.
    #[command(flatten)]
    pub connect: Connect,
    /// Where keys are.
    #[command(flatten)]
    pub keys: Keys,
}

/// Leaves a room.
#[derive(Debug, Args)]
pub struct LeaveRoom {
    /// Name of the member, such as /calls/fox/ann.
    pub name: Name,
    /// How long the host is waited for.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    pub wait: Duration,
    /// The forwarder to ask.
    #[command(flatten)]
    pub connect: Connect,
    /// Where keys are.
    #[command(flatten)]
    pub keys: Keys,
}

/// Prints a link, and keeps the digest of its token.
pub(super) fn invite(arguments: Invite) -> anyhow::Result<()> {
    let Invite { name, page, .. } = arguments;
    let anchor = key_store(arguments.keys.keys)?.anchor(&name)?;
    let anchor = Certificate::decode(anchor.certificate)?;
    let token = random();
    let until = Clock::new().wall() + arguments.expires;
    let invitation = Invitation {
        secret: InvitationSecret::of_token(&token),
        role: arguments.role,
        uses: arguments.uses,
        until,
        valid: arguments.valid,
    };
    Rooms::open()?.change(&name, |room| room.invite(Clock::new().wall(), &invitation))?;
    let link = Link {
        root: name.clone(),
        anchor: anchor.public_key()?.digest(),
        token,
    };
    print_line(format_args!("{page}{link}"))?;
    let uses = match arguments.uses {
        None => "any number of times".to_owned(),
        Some(1) => "once".to_owned(),
        Some(uses) => format!("{uses} times"),
    };
    print_error(format!(
        "Anybody with this link can join {uses} until {}, while `namecast trust serve {name}` runs: `namecast trust join LINK`",
        local(until)
    ));
    Ok(())
}

/// Admits the newcomer whose key has a digest that begins so.
pub(super) fn admit(who: &str, room: Option<&Name>) -> anyhow::Result<()> {
    let is_digest = (16..=64).contains(&who.len()) && who.bytes().all(|it| it.is_ascii_hexdigit());
    ensure!(
        is_digest,
        "'{who}' is not the beginning of a key's digest: write the 16 to 64 digits that `namecast trust serve --knock` printed"
    );
    let rooms = Rooms::open()?;
    let roots = match room {
        Some(room) => vec![room.clone()],
        None => rooms.roots()?,
    };
    let [root] = &roots[..] else {
        bail!(
            "there are {} rooms here: say which one with --room",
            roots.len()
        );
    };
    rooms.change(root, |room| room.admit(who))?;
    print_line(format_args!("admitted {who} to {root}"))
}

/// Becomes a member, and prints until when.
pub(super) async fn join(arguments: JoinRoom) -> anyhow::Result<()> {
    let root = arguments.link.root.clone();
    let welcome = become_member(arguments).await?;
    let certificate = welcome.certificate;
    print_line(format_args!(
        "{} is certified until {}",
        certificate.identity(),
        local(certificate.validity().not_after)
    ))?;
    print_error(format!(
        "Schema version {}, roster version {}. Publish with `namecast publish {} --schema {root}`",
        welcome.schema_version,
        welcome.roster_version,
        certificate.identity()
    ));
    Ok(())
}

/// Requests a certificate from the host, and keeps it.
pub(in crate::commands) async fn become_member(arguments: JoinRoom) -> anyhow::Result<Welcome> {
    let JoinRoom {
        link, name, wait, ..
    } = arguments;
    let root = &link.root;
    let store = key_store(arguments.keys.keys)?;
    // Until the host gives a name to it.
    let own = join_name(root);
    let identity = store.identity(&own)?;
    let key = Certificate::decode(identity.certificate)?.public_key()?;
    let keys = (key, store.exchange_secret(&own)?.public());
    let seed = u64::from_le_bytes(random());
    let joiner = Joiner::new(link.clone(), keys, name, &*identity.signer, seed);
    let node = Node::start(NodeConfig::of_program(ByteSize::mebibytes(1)));
    let uplink = Uplink::new(&node, &arguments.connect).await?;
    node.add_route(root.clone(), uplink.face(), 0).await?;
    let face = node.application_face().await?;
    let (_joiner, mut events) = drive(node.clock(), face, joiner).spawn(|| {});
    let mut why = "the forwarder does not answer".to_owned();
    let joining = tokio::time::timeout(wait, async {
        while let Some(event) = events.recv().await {
            match event {
                JoinEvent::Joined(joined) => return Ok(joined.welcome),
                JoinEvent::Failed(failure) => bail!("{failure}"),
                JoinEvent::Waiting(reason) => {
                    reason_of(reason, root).clone_into(&mut why);
                    print_error(format!("Waiting: {why}"));
                }
            }
        }
        bail!("the node has stopped")
    });
    let welcome = match joining.await {
        Ok(welcome) => welcome?,
        Err(_) => bail!("no answer from the host of {root}: {why}"),
    };
    store.install(&welcome.certificate)?;
    node.shutdown().await;
    Ok(welcome)
}

/// Returns why a newcomer waits.
fn reason_of(reason: WaitReason, root: &Name) -> String {
    match reason {
        WaitReason::HostAway => {
            format!("nobody serves {root}: its host has to run `namecast trust serve {root}`")
        }
        WaitReason::Undecided => {
            "no answer yet: the host may have to say yes, or no forwarder leads to it".to_owned()
        }
        WaitReason::Crowded => "too many are joining".to_owned(),
    }
}

/// Tells the host that a member leaves, until it answers.
pub(super) async fn leave_room(arguments: LeaveRoom) -> anyhow::Result<()> {
    let LeaveRoom { name, wait, .. } = arguments;
    let store = key_store(arguments.keys.keys)?;
    let identity = store.certified(&name)?;
    let identity = identity.with_context(|| {
        format!(
            "no certificate for {name} is installed here: only {name} can leave, where its key is"
        )
    })?;
    let certificate = Certificate::decode(identity.certificate)?;
    let node = Node::start(NodeConfig::of_program(ByteSize::mebibytes(1)));
    let uplink = Uplink::new(&node, &arguments.connect).await?;
    node.add_route(Name::root(), uplink.face(), 0).await?;
    // The key of the room's root certified the member.
    let anchor = issuer(&node, &certificate).await?;
    let root = anchor.identity();
    let interest = leave(&root, &*identity.signer, nonce());
    let mut asker = Asker::new(&node).await?;
    let answer = match tokio::time::timeout(wait, asker.ask_signed(&interest)).await {
        Ok(answer) => answer?,
        Err(_) => bail!(
            "no answer from the host of {root}: {}",
            reason_of(WaitReason::HostAway, &root)
        ),
    };
    match answer {
        Answer::Data(data) => {
            let verified = data.verify(&anchor.public_key()?);
            verified.context("the answer is not signed by the room's anchor")?;
        }
        _ => bail!(
            "the host of {root} refuses: {} is not one of its certificates, or was replaced by a newer one, which is not installed here",
            certificate.name()
        ),
    }
    node.shutdown().await;
    print_line(format_args!("{name} has left {root}"))?;
    print_error(
        "The key and the name stay yours: join again by a link that is made from now on".to_owned(),
    );
    Ok(())
}
