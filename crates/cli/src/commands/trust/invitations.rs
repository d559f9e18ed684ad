//! Invitations: links by which others become members of a room, at the host and at the newcomer.

use anyhow::{Context, bail, ensure};
use clap::Args;
use namecast_apps::room::{InvitationSecret, Join, Link, Welcome, join_name};
use namecast_command::report::{local, print_error, print_line};
use namecast_command::{number, parse_duration};
use namecast_net::{Clock, Node, NodeConfig, random};
use namecast_packet::{Certificate, Data, Interest, KeyLocator, Name};
use namecast_units::{ByteSize, Duration};

use super::rooms::parse_text;
use crate::arguments::Keys;
use crate::asking::{Answer, Arrived, Asker, Question, nonce};
use crate::commands::key_store;
use crate::commands::uplink::Uplink;
use crate::connect::Connect;
use crate::rooms::{Invitation, Rooms};

/// From one transmission of a request to the next, and how long each waits at the host.
const REPEAT: Duration = Duration::from_secs(1);
const LIFETIME: Duration = Duration::from_secs(4);
/// Refusals after which the link counts as refused: the host may not have read it yet, which it does once a second.
const REFUSALS: u32 = 3;
/// How long the anchor's certificate is waited for.
const WAIT: Duration = Duration::from_secs(4);

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
    let is_digest = (8..=64).contains(&who.len()) && who.bytes().all(|it| it.is_ascii_hexdigit());
    ensure!(
        is_digest,
        "'{who}' is not the beginning of a key's digest: write the 8 to 64 digits that `namecast trust serve --knock` printed"
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

/// Requests a certificate from the host, and keeps it.
pub(super) async fn join(arguments: JoinRoom) -> anyhow::Result<()> {
    let JoinRoom {
        link, name, wait, ..
    } = arguments;
    let root = &link.root;
    let store = key_store(arguments.keys.keys)?;
    // Until the host gives a name to it.
    let own = join_name(root);
    let identity = store.identity(&own)?;
    let key = Certificate::decode(identity.certificate)?.public_key()?;
    let request = Join::new(
        (root, &link.anchor),
        &InvitationSecret::of_token(&link.token),
        (key.clone(), store.exchange_secret(&own)?.public()),
        name,
    );
    let interest = Interest::builder(own.clone())
        .parameters(request.encode())
        .lifetime(LIFETIME);
    let interest = interest.sign(nonce(), &*identity.signer, &identity.signer.info());
    let node = Node::start(NodeConfig::of_program(ByteSize::mebibytes(1)));
    let uplink = Uplink::new(&node, &arguments.connect).await?;
    node.add_route(root.clone(), uplink.face(), 0).await?;
    let mut asker = Asker::new(&node).await?;
    let answering = tokio::time::timeout(wait, answer(&mut asker, &interest));
    let answer = answering.await.unwrap_or_else(|_| {
        bail!(
            "no answer from the host of {root}: does `namecast trust serve {root}` run, and does somebody have to admit you there?"
        )
    })?;
    let anchor = anchor(&mut asker, &answer, &link).await?;
    let content = answer.content().context("the answer is empty")?;
    let welcome = Welcome::decode(&content)?;
    let certificate = welcome.certificate;
    let verified = certificate.data().verify(&anchor.public_key()?);
    verified.context("the anchor did not sign the certificate")?;
    ensure!(
        certificate.public_key()? == key && root.is_prefix_of(&certificate.identity()),
        "the host certified {}, which was not requested",
        certificate.name()
    );
    store.install(&certificate)?;
    node.shutdown().await;
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

/// Sends the request until it is answered.
async fn answer(asker: &mut Asker, interest: &Interest) -> anyhow::Result<Data> {
    let mut refusals = 0;
    loop {
        asker.send(&interest.with_nonce(nonce())).await?;
        let arriving = tokio::time::timeout(REPEAT, async {
            loop {
                match asker.receive().await? {
                    Arrived::Data(data) if interest.matches(&data) => return Ok(Some(data)),
                    Arrived::Nack(back, namecast_packet::lp::NackReason::None)
                        if back.name() == interest.name() =>
                    {
                        refusals += 1;
                        if refusals < REFUSALS {
                            return Ok(None);
                        }
                        bail!(
                            "the host refuses the link: it was used, has ended or is another room's, or the key was revoked. Ask for another link"
                        );
                    }
                    // Nobody serves the room yet, or too many are joining.
                    Arrived::Nack(back, _) if back.name() == interest.name() => return Ok(None),
                    _ => {}
                }
            }
        });
        match arriving.await {
            Ok(Ok(Some(data))) => return Ok(data),
            Ok(Ok(None)) => tokio::time::sleep(REPEAT).await,
            Ok(Err(error)) => return Err(error),
            Err(_) => {}
        }
    }
}

/// Fetches the anchor's certificate, which signed `answer`, and compares it with the link's digest.
async fn anchor(asker: &mut Asker, answer: &Data, link: &Link) -> anyhow::Result<Certificate> {
    let Some(KeyLocator::Name(locator)) = &answer.signature_info().key_locator else {
        bail!("the answer names no key");
    };
    let question = Question {
        can_be_prefix: true,
        ..Question::exact(locator.clone(), WAIT)
    };
    let Answer::Data(anchor) = asker.ask(&question).await? else {
        bail!("nobody has the anchor's certificate {locator}");
    };
    let anchor = Certificate::decode(anchor)?;
    let key = anchor.public_key()?;
    ensure!(
        key.digest() == link.anchor,
        "the answer is signed by another key than the link names"
    );
    answer
        .verify(&key)
        .context("the signature of the answer is wrong")?;
    Ok(anchor)
}
