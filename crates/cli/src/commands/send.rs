//! `namecast send`: files as one object, to any number of receivers, until interrupted.

mod files;

use core::str::FromStr;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::Args;
use namecast_apps::object::transfer::{
    ContentKey, Heard, Policy, Sender, SenderConfig, SenderEvent, identity, version,
};
use namecast_command::report::{ProgressLine, print_line};
use namecast_command::{Run, Stop, number};
use namecast_forward::{AnyNextConfig, NamedHop};
use namecast_net::{
    Credential, FaceId, Handle, Identity, Node, NodeConfig, RegistrationState, Wanted, drive,
};
use namecast_packet::{Certificate, Name, Signer};
use namecast_units::{Bitrate, ByteSize};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::publish::{describe_registration, registration_problem};
use super::ticket::Ticket;
use super::uplink::Uplink;
use super::{FIGURES_INTERVAL, key_store};
use crate::arguments::Keys;
use crate::connect::Connect;
use crate::hexadecimal::hex;
use crate::rules::{Rules, credential};
use crate::telemetry::tables::{self, Command};
use crate::telemetry::{Observation, Reporter};
use files::Files;

/// Room for signed segments in the sender's node.
const CACHE: ByteSize = ByteSize::mebibytes(16);
/// Receivers whose progress is shown.
const MAX_SHOWN: usize = 4;

/// `namecast send`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  namecast send film.mkv /alice/film               then, anywhere: namecast receive /alice/film
  namecast send photos notes.txt /alice/photos --until 3
  namecast send secret.pdf /alice/secret --private          the printed ticket has the key
  namecast peek /alice/film --object > film.mkv    one file is also read by: ndncatchunks, ndnd cat

Receivers of different speeds get what they can of one flow where forwarders have the hop any-next: the sender sends little more than
the file, whoever is slow gets the rest as parity, by name from caches, or from the sender. docs/guide.md")]
pub struct Send {
    /// Files and directories to send; '-' is standard input to its end.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Name of what is sent, to which its version is added.
    pub name: Name,
    /// How fast: as-asked, which the fastest receiver decides; slowest or median, at the pace of that receiver; or a bitrate such as 5M.
    #[arg(
        long,
        value_name = "as-asked|median|slowest|BITRATE",
        default_value = "as-asked"
    )]
    pub policy: SendPolicy,
    /// End when this number of receivers has reported completion.
    #[arg(long, value_name = "RECEIVERS", value_parser = number::<u64>(1..=1_000_000_000))]
    pub until: Option<u64>,
    /// Seal what is sent with a key that only the printed ticket holds.
    #[arg(long)]
    pub private: bool,
    /// Make no parity: receivers request what they lack by name. Files above 1 GiB have none.
    #[arg(long)]
    pub no_parity: bool,
    /// How long it runs, and what it tells.
    #[command(flatten)]
    pub run: Run,
    /// Where it sends, and under which key.
    #[command(flatten)]
    pub through: Through,
}

/// Where a command sends, and under which key.
#[derive(Debug, Args)]
pub struct Through {
    /// The forwarder to send through.
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

/// How fast files are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SendPolicy(Policy);

impl FromStr for SendPolicy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = match text {
            "as-asked" => Some(Policy::AsAsked),
            "median" => Some(Policy::Quantile(0.5)),
            "slowest" => Some(Policy::Quantile(0.0)),
            _ => None,
        };
        if let Some(policy) = named {
            return Ok(Self(policy));
        }
        let rate: Bitrate = text.parse().map_err(|_| {
            format!(
                "'{text}' is no policy: write as-asked, median, slowest, or a bitrate such as 5M"
            )
        })?;
        match rate.as_bps() {
            0 => Err("at no bits a second nothing is sent: write a bitrate such as 5M".to_owned()),
            _ => Ok(Self(Policy::Rate(rate))),
        }
    }
}

/// What to send, and how.
pub(super) struct Sending {
    pub(super) files: Vec<PathBuf>,
    pub(super) name: Name,
    pub(super) policy: Policy,
    pub(super) until: Option<u64>,
    pub(super) is_private: bool,
    pub(super) is_coded: bool,
}

/// Output, forwarder and key of a command that sends.
pub(super) struct Surroundings {
    pub(super) command: &'static Command,
    pub(super) run: Run,
    pub(super) through: Through,
}

impl Through {
    /// Returns what shows forwarders that `name` may be registered: the certificate, where rules are followed.
    fn credential(&self, name: &Name) -> anyhow::Result<Credential> {
        if self.rules.schema.is_none() {
            return Ok(Credential::None);
        }
        let identity = key_store(self.keys.keys.clone())?.certified(name)?;
        Ok(identity.map_or(Credential::None, credential))
    }

    /// Returns the key that signs `name`, which the rules certify, if there are rules.
    async fn identity(&self, node: &Node, uplink: FaceId, name: &Name) -> anyhow::Result<Identity> {
        let store = key_store(self.keys.keys.clone())?;
        let certified = self.rules.identity(node, uplink, (&store, name)).await?;
        Ok(certified.map_or_else(|| store.identity(name), Ok)?)
    }
}

/// Sends until interrupted.
pub(super) async fn run(arguments: Send) -> anyhow::Result<()> {
    let sending = Sending {
        files: arguments.files,
        name: arguments.name,
        policy: arguments.policy.0,
        until: arguments.until,
        is_private: arguments.private,
        is_coded: !arguments.no_parity,
    };
    let surroundings = Surroundings {
        command: &tables::SEND,
        run: arguments.run,
        through: arguments.through,
    };
    serve(sending, surroundings).await
}

/// Serves an object until interrupted.
///
/// # Errors
/// If it cannot be read or sent.
pub(super) async fn serve(
    sending: Sending,
    Surroundings {
        command,
        run,
        through,
    }: Surroundings,
) -> anyhow::Result<()> {
    let name = sending.name.clone();
    ensure!(!name.is_empty(), "give it a name, such as /alice/film");
    let mut stop = Stop::new(run.duration)?;
    let mut stats = Reporter::start(command, &run, &through.observation).await?;
    let mut progress = ProgressLine::new(!run.quiet && !run.json);
    let node = Node::start(
        NodeConfig::caching(CACHE).hop(|_| NamedHop::AnyNext(AnyNextConfig::default()).build()),
    );
    stats.observe(&node);
    let uplink = Uplink::new(&node, &through.connect).await?;
    let key = through.identity(&node, uplink.face(), &name).await?;
    let wanted = Wanted {
        credential: through.credential(&name)?,
        ..Wanted::new(name.clone(), 0)
    };
    let certificate = Certificate::decode(key.certificate)?;
    let digest = hex(&certificate.public_key()?.digest());
    progress.show("Reading …");
    let (paths, is_coded) = (sending.files.clone(), sending.is_coded);
    let reading = tokio::task::spawn_blocking(move || read(&paths, is_coded));
    let (mut files, _spooled) = stats.touch_while(reading).await??;
    progress.show("");
    let secret = set_version(&mut files, sending.is_private, &*key.signer);
    let config = SenderConfig {
        name: name.clone(),
        contents: files.contents.clone(),
        policy: sending.policy,
        key: secret.clone(),
    };
    let own = node.application_face().await?;
    node.add_route(name.clone(), own.id(), 0).await?;
    let source = Box::new(files.source());
    let sender = Sender::new(
        config,
        (key.signer, certificate),
        source,
        node.clock().both(),
    )?;
    let ticket = Ticket { name, key: secret };
    announce(&run, &sender, (&ticket, &digest))?;
    let (size, count) = (files.contents.size(), files.contents.files.len());
    progress.say(&format!(
        "Sending {count} file{}, {size} bytes, signed with key {digest}. Receive with: namecast receive {}",
        if count == 1 { "" } else { "s" },
        quoted(&ticket)
    ));
    let (sender, events) = drive(node.clock(), own, sender).spawn(|| {});
    let mut serving = Serving {
        run,
        until: sending.until,
        size,
        segments: files.contents.segments(),
        files,
        parity: None,
        sender,
        events,
        progress,
        stats,
        uplink,
        name: ticket.name,
    };
    let outcome = serving.follow((&node, wanted), &mut stop).await;
    node.shutdown().await;
    outcome?;
    serving.uplink.ensure_was_up()
}

/// Sets the version of an object. Returns its key, if it is private.
fn set_version(files: &mut Files, is_private: bool, signer: &dyn Signer) -> Option<ContentKey> {
    let identity = identity(&files.contents);
    let secret = is_private.then(|| ContentKey::derive(signer, &identity));
    files.contents.version = version(&identity, secret.as_ref());
    secret
}

/// Directory of a copy of standard input, which exists until the command ends.
type Spooled = Option<tempfile::TempDir>;

/// Reads what is to be sent; standard input by way of a file.
fn read(paths: &[PathBuf], is_coded: bool) -> anyhow::Result<(Files, Spooled)> {
    let is_standard_input = |path: &&PathBuf| path.as_path() == Path::new("-");
    match paths.iter().filter(is_standard_input).count() {
        0 => return Ok((Files::read(paths, is_coded)?, None)),
        1 => {}
        _ => bail!("standard input can be read once: name it once"),
    }
    let directory = tempfile::tempdir().context("cannot keep standard input")?;
    let spooled = directory.path().join("standard-input");
    let mut file = std::fs::File::create(&spooled)?;
    std::io::copy(&mut std::io::stdin().lock(), &mut file).context("cannot keep standard input")?;
    file.flush()?;
    let paths: Vec<_> = paths
        .iter()
        .map(|path| match is_standard_input(&path) {
            true => spooled.clone(),
            false => path.clone(),
        })
        .collect();
    Ok((Files::read(&paths, is_coded)?, Some(directory)))
}

/// A ticket as shells take it.
fn quoted(ticket: &Ticket) -> String {
    match ticket.key {
        Some(_) => format!("'{ticket}'"),
        None => ticket.to_string(),
    }
}

/// Prints what others need, for programs.
fn announce(run: &Run, sender: &Sender, (ticket, digest): (&Ticket, &str)) -> anyhow::Result<()> {
    match run.json {
        true => print_line(json!({
            "name": sender.flow().to_string(),
            "ticket": ticket.to_string(),
            "key": digest,
        })),
        false if ticket.key.is_some() => print_line(ticket),
        false => print_line(sender.flow()),
    }
}

/// A sender that runs.
struct Serving {
    run: Run,
    until: Option<u64>,
    size: u64,
    segments: u64,
    files: Files,
    parity: Option<JoinHandle<anyhow::Result<()>>>,
    sender: Handle<Sender>,
    events: mpsc::Receiver<SenderEvent>,
    progress: ProgressLine,
    stats: Reporter,
    uplink: Uplink,
    name: Name,
}

impl Serving {
    /// Follows what happens, until there is no reason to go on.
    async fn follow(
        &mut self,
        (node, wanted): (&Node, Wanted),
        stop: &mut Stop,
    ) -> anyhow::Result<()> {
        let registration = node.register(self.uplink.face(), wanted);
        let mut registered = registration.states();
        let mut tick = tokio::time::interval(FIGURES_INTERVAL);
        loop {
            tokio::select! {
                _ = tick.tick() => if self.show(false).await? {
                    return self.end().await;
                },
                Some(event) = self.events.recv() => match event {
                    SenderEvent::Failed(error) => bail!("{error}"),
                    SenderEvent::NeedsParity => {
                        let files = self.files.clone();
                        self.parity = Some(tokio::task::spawn_blocking(move || files.make_parity()));
                    }
                },
                made = finished(&mut self.parity) => self.on_parity(made).await,
                (_, text) = self.uplink.changed() => self.progress.say_once(&text),
                Ok(()) = registered.changed() => {
                    let state = registered.borrow_and_update().clone();
                    if let RegistrationState::Refused(why) = &state {
                        bail!("{} refuses {}: {why}", self.uplink.remote(), self.name);
                    }
                    if let Some(text) = describe_registration(&state, &self.name.to_string()) {
                        self.progress.say(&text);
                    }
                    self.stats.set_problem("registration", registration_problem(&state, &self.name));
                }
                () = stop.wait() => return self.end().await,
            }
        }
    }

    async fn on_parity(&mut self, made: anyhow::Result<()>) {
        match made {
            Ok(()) => {
                self.sender.call(|sender, _| sender.add_parity()).await;
            }
            // Without it, receivers request by name what they lack.
            Err(error) => self
                .progress
                .say_error(&format!("No parity is sent: {error:#}")),
        }
    }

    /// Shows and writes figures. Returns whether as many receivers as were expected have all.
    async fn show(&mut self, is_final: bool) -> anyhow::Result<bool> {
        let figures = self.sender.call(|sender, now| {
            let receivers = sender.receivers(now.monotonic);
            (*sender.counters(), receivers, sender.complete())
        });
        let Some((counters, receivers, complete)) = figures.await else {
            return Ok(false);
        };
        let of_receiver = |(id, heard): &([u8; 8], Heard)| {
            let report = heard.report;
            let share = 1.0 - report.missing.min(self.segments) as f64 / self.segments as f64;
            json!({
                "receiver": hex(id),
                "percent": (share * 100.0).floor(),
                "missing": report.missing,
                "rate_bps": report.rate.as_bps(),
            })
        };
        let all: Vec<Value> = receivers.iter().map(of_receiver).collect();
        let figures = json!({
            "size": self.size,
            "provided": counters.provided,
            "parity": counters.parity,
            "answered": counters.answered,
            "refused": counters.refused,
            "malformed": counters.malformed,
            "reports": counters.reports,
            "receiving": receivers.iter().filter(|(_, it)| it.report.missing > 0).count(),
            "complete": complete,
            "receivers": all,
        });
        self.stats.write(&figures, is_final)?;
        if self.run.json && !self.run.quiet && (is_final || !receivers.is_empty()) {
            print_line(&figures)?;
        }
        self.progress.show(&self.text(&receivers, complete));
        Ok(self.until.is_some_and(|until| complete >= until))
    }

    /// Progress and time left of those who receive.
    fn text(&self, receivers: &[([u8; 8], Heard)], complete: u64) -> String {
        let mut receiving: Vec<_> = receivers
            .iter()
            .filter(|(_, it)| it.report.missing > 0)
            .collect();
        receiving.sort_by_key(|(_, heard)| heard.report.missing);
        let mut parts: Vec<_> = receiving
            .iter()
            .take(MAX_SHOWN)
            .map(|(_, heard)| {
                let missing = heard.report.missing.min(self.segments);
                let percent = 100 * (self.segments - missing) / self.segments;
                let octets = missing * u64::from(self.files.contents.segment_size);
                let rate = heard.report.rate.as_bps();
                match (octets * 8).checked_div(rate) {
                    Some(seconds) => format!("{percent} % ({seconds} s left)"),
                    None => format!("{percent} %"),
                }
            })
            .collect();
        if let Some(more @ 1..) = receiving.len().checked_sub(MAX_SHOWN) {
            parts.push(format!("{more} more"));
        }
        parts.push(format!("{complete} complete"));
        format!("Receivers: {}", parts.join(", "))
    }

    async fn end(&mut self) -> anyhow::Result<()> {
        self.show(true).await?;
        self.progress.show("");
        Ok(())
    }
}

/// Waits for parity that is being made; for ever if none is.
async fn finished(parity: &mut Option<JoinHandle<anyhow::Result<()>>>) -> anyhow::Result<()> {
    let Some(making) = parity else {
        return core::future::pending().await;
    };
    let made = making.await;
    *parity = None;
    made?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_understood_or_say_what_to_write() {
        let policy = |text: &str| text.parse::<SendPolicy>().map(|it| it.0);
        assert_eq!(policy("as-asked"), Ok(Policy::AsAsked));
        assert_eq!(policy("median"), Ok(Policy::Quantile(0.5)));
        assert_eq!(policy("slowest"), Ok(Policy::Quantile(0.0)));
        assert_eq!(policy("5M"), Ok(Policy::Rate(Bitrate::mbps(5))));
        for wrong in ["fast", "0", ""] {
            assert!(policy(wrong).unwrap_err().contains("such as 5M"), "{wrong}");
        }
    }
}
