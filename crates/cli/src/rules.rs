//! `--schema`: which key may sign which name, for commands that read, and under whose certificate, for those that publish.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use clap::Args;
use namecast_apps::live::watcher::Pin;
use namecast_apps::object::Failure;
use namecast_apps::room::{Bulletin, BulletinConfig, Event};
use namecast_apps::trust::schema::{Limits, Schema};
use namecast_apps::trust::{Anchor, ChainConfig, Chains, Judgement, Moment, Roster, SharedChains};
use namecast_command::report::{print_error, printable};
use namecast_net::{Credential, FaceId, Handle, Identity, KeyStore, Member, Node, drive, random};
use namecast_packet::{Certificate, Data, KeyLocator, Name};
use namecast_units::Duration;
use tokio::sync::{mpsc, watch};

use crate::arguments::Trusted;
use crate::asking::{Answer, Asker, Question, Verified};
use crate::key_check::{KeyCheck, parse_pin};

/// How long the host is waited for, who may be starting.
const WAIT: Duration = Duration::from_secs(10);
/// From one refused request to the next.
const PAUSE: Duration = Duration::from_millis(500);

/// Which key may sign which name.
#[derive(Clone, Debug, Args)]
pub struct Rules {
    /// Accept what this trust schema lets certified keys sign: a file, as text or compiled, or the name whose anchor publishes schema and
    /// roster, such as /calls/fox. See namecast trust --help.
    #[arg(long, value_name = "FILE|NAME")]
    pub schema: Option<String>,
}

/// A publisher by the rules.
pub(crate) struct Certified {
    /// Its key, under the certificate that was installed.
    pub(crate) identity: Identity,
    /// Schema and roster, where a root publishes them.
    pub(crate) followed: Option<Followed>,
}

/// Where rules are.
enum Source {
    /// In a file.
    File(Schema),
    /// Published under this name.
    Root(Name),
}

impl Source {
    fn parse(text: &str) -> anyhow::Result<Self> {
        let path = Path::new(text);
        if path.exists() {
            return read(path).map(Self::File);
        }
        match text.parse::<Name>() {
            Ok(root) if text.starts_with('/') => Ok(Self::Root(root)),
            _ => bail!(
                "'{text}' is neither a file nor a name: write the file of a schema, or the name whose anchor publishes it, such as /calls/fox"
            ),
        }
    }
}

/// Reads a schema, as text or compiled.
pub(crate) fn read(path: &Path) -> anyhow::Result<Schema> {
    let shown = path.display();
    let octets = std::fs::read(path).with_context(|| format!("cannot read {shown}"))?;
    let limits = Limits::default();
    // No text begins with the letter of the version, as the name of a rule begins with '#'.
    if octets.first() == Some(&b'a') {
        let schema = Schema::decode(&octets.into(), &limits);
        return schema.with_context(|| format!("{shown} is no compiled schema"));
    }
    let text = String::from_utf8(octets);
    let text = text.with_context(|| format!("{shown} is neither text nor a compiled schema"))?;
    Schema::compile(&text, &limits).with_context(|| format!("cannot compile {shown}"))
}

/// Chains of certificates that readers judge by, while they are kept up to date.
#[derive(Debug)]
pub(crate) struct Followed {
    /// Chains of readers.
    pub(crate) chains: SharedChains,
    /// The roster in force; an empty one where the rules are a file.
    pub(crate) rosters: watch::Receiver<Arc<Roster>>,
    _bulletin: Handle<Bulletin>,
}

impl Followed {
    /// Verifies a packet, and fetches the certificates that this takes.
    ///
    /// # Errors
    /// If it does not count, or a certificate is missing.
    pub(crate) async fn verify(
        &self,
        asker: &mut Asker,
        node: &Node,
        packet: &Data,
    ) -> anyhow::Result<Verified> {
        for _ in 0..=ChainConfig::default().max_length {
            let moment = Moment::Live(node.clock().wall());
            let missing = match self.chains.with(|chains| chains.judge(packet, moment)) {
                Judgement::Accepted { certificate, key } => {
                    let found = self.chains.with(|it| it.certificate(&certificate).cloned());
                    let certificate = found.context("the certificate is gone")?;
                    return Ok(Verified::By(Box::new(certificate), (*key).clone()));
                }
                Judgement::Refused(why) => bail!("{} is refused: {why}", packet.name()),
                Judgement::Missing(name) => name,
            };
            let question = Question {
                can_be_prefix: true,
                ..Question::exact(missing.clone(), WAIT)
            };
            let Answer::Data(certificate) = asker.ask(&question).await? else {
                bail!("nobody has the certificate {missing}");
            };
            // Chains count what is none.
            let _ = self.chains.with(|chains| chains.offer(certificate));
        }
        bail!("{} leads to no anchor", packet.name())
    }
}

impl Rules {
    /// Follows the rules that were given, if any, by the anchor that `key` names, through the forwarder at `uplink`.
    ///
    /// # Errors
    /// If they cannot be read, or no anchor is named, or nobody publishes them.
    pub(crate) async fn follow(
        &self,
        node: &Node,
        uplink: FaceId,
        key: Option<&str>,
    ) -> anyhow::Result<Option<Followed>> {
        let Some(schema) = &self.schema else {
            return Ok(None);
        };
        let source = Source::parse(schema)?;
        let key = key.context(
            "--schema needs its anchor: add --key with the digest that `namecast trust init` printed, or with the anchor's certificate",
        )?;
        let anchor = match parse_pin(key)? {
            Pin::Digest(digest) => Anchor::Digest(digest),
            Pin::Certificate(certificate) => Anchor::Certificate(certificate),
        };
        node.add_route(Name::root(), uplink, 0).await?;
        follow(node, source, anchor).await.map(Some)
    }

    /// Returns what readers of `name` go by: the rules that were given, which are kept up to date as long as the second value lives, or
    /// else what `trusted` says.
    ///
    /// # Errors
    /// As [`follow`](Self::follow), and if what `trusted` says cannot be read.
    pub(crate) async fn key_check(
        &self,
        node: &Node,
        uplink: FaceId,
        (name, trusted): (&Name, &Trusted),
    ) -> anyhow::Result<(KeyCheck, Option<Followed>)> {
        let followed = self.follow(node, uplink, trusted.key.as_deref()).await?;
        let keys = match &followed {
            Some(followed) => KeyCheck::certified(name.clone(), followed.chains.clone()),
            None => KeyCheck::new(name.clone(), trusted)?,
        };
        Ok((keys, followed))
    }

    /// Returns the key that publishes `name` by the rules that were given, under the certificate that was installed for it; `None` if no
    /// rules were given.
    ///
    /// # Errors
    /// If there is no certificate, or the rules do not let its key publish `name`.
    pub(crate) async fn identity(
        &self,
        node: &Node,
        uplink: FaceId,
        of: (&KeyStore, &Name),
    ) -> anyhow::Result<Option<Identity>> {
        let certified = self.publisher(node, uplink, of).await?;
        Ok(certified.map(|it| it.identity))
    }

    /// Returns the root whose schema and roster are followed, if one is.
    pub(crate) fn root(&self) -> Option<Name> {
        let source = Source::parse(self.schema.as_ref()?);
        match source.ok()? {
            Source::Root(root) => Some(root),
            Source::File(_) => None,
        }
    }

    /// Returns the key as [`identity`](Self::identity) does, and what the rules are followed by.
    ///
    /// # Errors
    /// As [`identity`](Self::identity).
    pub(crate) async fn publisher(
        &self,
        node: &Node,
        uplink: FaceId,
        (store, name): (&KeyStore, &Name),
    ) -> anyhow::Result<Option<Certified>> {
        let Some(schema) = &self.schema else {
            return Ok(None);
        };
        let identity = store.certified(name)?.with_context(|| {
            format!(
                "no certificate for {name} is installed: send `namecast trust request {name}` to who holds the anchor, and install the answer with `namecast trust install FILE`"
            )
        })?;
        let certificate = Certificate::decode(identity.certificate.clone())?;
        let (schema, followed) = match Source::parse(schema)? {
            Source::File(schema) => (Arc::new(schema), None),
            Source::Root(root) => {
                node.add_route(Name::root(), uplink, 0).await?;
                let anchor = issuer(node, &certificate).await?;
                let anchor = Anchor::Certificate(Box::new(anchor));
                let followed = follow(node, Source::Root(root), anchor).await?;
                let moment = Moment::Live(node.clock().wall());
                let judged = followed
                    .chains
                    .judge_certificate(certificate.data(), moment);
                if let Judgement::Refused(why) = judged {
                    bail!("{} is refused: {why}", certificate.name());
                }
                let schema = followed.chains.with(|chains| chains.schema().clone());
                (schema, Some(followed))
            }
        };
        // Metadata of a stream, or of an object.
        let example = name.builder().keyword("metadata").version(1).segment(0);
        ensure!(
            schema
                .check(&example.finish(), certificate.name())?
                .is_some(),
            "the schema does not allow {} to publish {name}",
            certificate.name()
        );
        Ok(Some(Certified { identity, followed }))
    }
}

/// Returns what shows forwarders that the holder of a certified key may register names.
pub(crate) fn credential(identity: Identity) -> Credential {
    Credential::Member(Member::new(identity.signer, [&identity.certificate]))
}

/// The certificate of the key that signed `certificate`: whoever has it installed trusts its issuer.
pub(crate) async fn issuer(node: &Node, certificate: &Certificate) -> anyhow::Result<Certificate> {
    let info = certificate.data().signature_info();
    let Some(KeyLocator::Name(locator)) = info.key_locator else {
        bail!("{} names no issuer", certificate.name());
    };
    let mut asker = Asker::new(node).await?;
    let question = Question {
        can_be_prefix: true,
        ..Question::exact(locator.clone(), WAIT)
    };
    let asking = tokio::time::timeout(WAIT, async {
        loop {
            match asker.ask(&question).await? {
                Answer::Data(issuer) => return anyhow::Ok(issuer),
                _ => tokio::time::sleep(PAUSE).await,
            }
        }
    });
    let asked = asking.await;
    let issuer = asked.unwrap_or_else(|_| {
        bail!("nobody has the anchor's certificate {locator}: does `namecast trust serve` run?")
    })?;
    let issuer = Certificate::decode(issuer)?;
    let verified = certificate.data().verify(&issuer.public_key()?);
    verified.with_context(|| format!("{locator} did not sign {}", certificate.name()))?;
    Ok(issuer)
}

/// Judges by `source` and `anchor`, and keeps schema, roster and certificates up to date.
async fn follow(node: &Node, source: Source, anchor: Anchor) -> anyhow::Result<Followed> {
    let (schema, root) = match source {
        Source::File(schema) => (schema, None),
        Source::Root(root) => (Schema::nothing(), Some(root)),
    };
    let config = ChainConfig::default();
    let chains = Chains::new(Arc::new(schema), 0, anchor.clone(), config);
    let chains = SharedChains::new(chains);
    let clock = node.clock();
    let config = BulletinConfig {
        wall_at_zero: clock.wall_at_zero(),
        seed: u64::from_le_bytes(random()),
        ..BulletinConfig::new(root.clone(), anchor)
    };
    let bulletin = Bulletin::new(config, chains.clone());
    let face = node.application_face().await?;
    let (bulletin, mut events) = drive(clock, face, bulletin).spawn(|| {});
    let mut roster = Arc::default();
    if let Some(root) = &root {
        let mut why = "no answer".to_owned();
        let waiting = both(&bulletin, &mut events, &mut why);
        roster = match tokio::time::timeout(WAIT, waiting).await {
            Ok(Some(roster)) => roster,
            _ => bail!(
                "no schema and roster of {root}: {why}; does `namecast trust serve {root}` run?"
            ),
        };
    }
    let (tell_roster, rosters) = watch::channel(roster);
    tokio::spawn(async move {
        while let Some(event) = events.recv().await {
            if let Event::Roster(_, roster) = &event {
                tell_roster.send_replace(roster.clone());
            }
            if let Some(text) = text(&event) {
                print_error(printable(&text));
            }
        }
    });
    Ok(Followed {
        chains,
        rosters,
        _bulletin: bulletin,
    })
}

/// Waits for schema and roster. Returns the roster once both are in force; `None` if they cannot be used, and `why` says why.
async fn both(
    bulletin: &Handle<Bulletin>,
    events: &mut mpsc::Receiver<Event>,
    why: &mut String,
) -> Option<Arc<Roster>> {
    let (mut has_schema, mut roster) = (false, None);
    while let Some(event) = events.recv().await {
        match event {
            Event::Schema(_) => has_schema = true,
            Event::Roster(_, newest) => roster = Some(newest),
            Event::Failed(_, failure) => {
                *why = failure.to_string();
                if matches!(failure, Failure::NotAccepted(_)) {
                    return None;
                }
                tokio::time::sleep(PAUSE).await;
                bulletin.try_call(|bulletin, now| bulletin.look(now.monotonic));
            }
            event => {
                *why = text(&event).unwrap_or_default();
                return None;
            }
        }
        if has_schema && roster.is_some() {
            return roster;
        }
    }
    None
}

/// Returns the message about an event, if there is one.
fn text(event: &Event) -> Option<String> {
    match event {
        Event::Schema(version) => {
            tracing::info!(version, "a schema is in force");
            None
        }
        Event::Roster(version, roster) => {
            let (members, revocations) = (roster.members.len(), roster.revocations.len());
            tracing::info!(version, members, revocations, "a roster is in force");
            None
        }
        Event::SetBack(part, set_back) => Some(format!(
            "The {part} received is older than the one in force ({set_back}): a cache or relay holds newer ones back, or the host was restored from an old copy"
        )),
        Event::Malformed(part, why) => Some(format!(
            "The {part} that the anchor signed cannot be read: {why}"
        )),
        // The versions in force stay in force while the host is away.
        Event::Failed(part, why) => {
            tracing::info!(%part, %why, "no answer from the host");
            None
        }
    }
}
