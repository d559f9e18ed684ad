//! The machine's side: who works here, with which programs, and for whom one is kept.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

use namecast_apps::session::{CallId, End, EndpointConfig, Event};
use namecast_command::Stop;
use namecast_command::report::ProgressLine;
use namecast_net::Clock;
use namecast_units::{Duration, Instant};

use super::super::FIGURES_INTERVAL;
use super::super::line::{Happened, Line};
use super::shell::Shell;
use super::{APPLICATION, Remote, Said, authorised, config, read};
use crate::hexadecimal::hex;
use crate::telemetry::{Reporter, tables};

/// How long a program is kept for whoever was cut off.
const MAX_ABSENCE: Duration = Duration::from_secs(600);
/// Programs that are kept.
const MAX_KEPT: usize = 16;

/// A program whose user was cut off.
struct Kept {
    key: [u8; 32],
    since: Instant,
    shell: Shell,
}

struct Host<'a> {
    arguments: &'a Remote,
    line: Line,
    /// Keys of those who are here.
    guests: BTreeMap<CallId, [u8; 32]>,
    shells: BTreeMap<CallId, Shell>,
    /// The newest last.
    kept: Vec<Kept>,
}

/// Lets those work here whose keys are in `file`, until interrupted.
pub(super) async fn serve(arguments: &Remote, file: &Path, own: &str) -> anyhow::Result<()> {
    let run = &arguments.line.run;
    let mut stop = Stop::new(run.duration)?;
    let mut progress = ProgressLine::new(!run.quiet && !run.json);
    let mut stats = Reporter::start(&tables::REMOTE, run, &arguments.line.observation).await?;
    let mut changed = changed_at(file);
    let keys = authorised::read(file)?;
    let name = &arguments.name;
    let count = keys.len();
    progress.say(&format!(
        "Letting {count} keys work on this machine as {name}"
    ));
    progress.say(&format!(
        "Clients accept it once: namecast key trust {name} {own}"
    ));
    let config = EndpointConfig {
        answers: true,
        authorised: Some(keys),
        ..config()
    };
    let mut host = Host {
        arguments,
        line: Line::open((name, APPLICATION), config, &arguments.line).await?,
        guests: BTreeMap::new(),
        shells: BTreeMap::new(),
        kept: Vec::new(),
    };
    stats.observe(host.line.node());
    let mut tick = tokio::time::interval(FIGURES_INTERVAL);
    let outcome = loop {
        tokio::select! {
            happened = host.line.next() => match happened {
                Err(error) => break Err(error),
                Ok(Happened::Text(text)) => progress.say_once(&text),
                Ok(Happened::Event(event)) => {
                    if let Some(text) = host.hear(event).await? {
                        progress.say(&text);
                    }
                }
            },
            _ = tick.tick() => {
                let found = changed_at(file);
                if found != changed {
                    changed = found;
                    progress.say(&host.authorise(file).await?);
                }
                host.forget();
                stats.write(&host.line.figures(None).await?, false)?;
            }
            () = stop.wait() => break Ok(()),
        }
    };
    stats.write(&host.line.figures(None).await?, true)?;
    drop((host.shells, host.kept));
    let closed = host.line.close().await;
    outcome.and(closed)
}

/// When a file was changed, and its size; `None` if it is not there.
fn changed_at(file: &Path) -> Option<(SystemTime, u64)> {
    let about = file.metadata().ok()?;
    Some((about.modified().ok()?, about.len()))
}

impl Host<'_> {
    /// Reads the file of keys again; who works here goes on. Nobody is let in by a file that cannot be read.
    async fn authorise(&self, file: &Path) -> anyhow::Result<String> {
        let (keys, said) = match authorised::read(file) {
            Ok(keys) => {
                let said = format!("Letting {} keys work here from now on", keys.len());
                (keys, said)
            }
            Err(error) => (Vec::new(), format!("Letting nobody else in: {error:#}")),
        };
        self.line.call(|it, _| it.authorise(keys)).await?;
        Ok(said)
    }

    /// Ends the programs that have been kept for too long, or have ended.
    fn forget(&mut self) {
        let now = self.clock().now();
        self.kept
            .retain(|it| !it.shell.has_ended() && now.since(it.since) < MAX_ABSENCE);
    }

    fn clock(&self) -> Clock {
        self.line.node.clock()
    }

    /// Does what an event of the endpoint is about. Returns what the machine's owner should know.
    async fn hear(&mut self, event: Event) -> anyhow::Result<Option<String>> {
        match event {
            Event::Established { call, peer, .. } => {
                self.guests.insert(call, peer.signer.key_digest);
                self.line.call(move |it, now| it.accept(now, call)).await?;
                let digest = hex(&peer.signer.key_digest);
                Ok(Some(format!("{} (key {digest}) works here", peer.identity)))
            }
            Event::Message(call, message) => {
                let done = match read(&message) {
                    Some(said) => self.take(call, said).await,
                    None => Err(anyhow::anyhow!("that made no sense")),
                };
                let Err(error) = done else { return Ok(None) };
                let why = format!("{error:#}");
                let said = Some(format!("somebody is not served: {why}"));
                self.line.hang_up(call, why).await?;
                Ok(said)
            }
            Event::Room(call) => {
                if let Some(shell) = self.shells.get(&call) {
                    shell.wake();
                }
                Ok(None)
            }
            Event::Ended(call, end) => Ok(self.leave(call, &end)),
            Event::Refused(peer) => {
                let digest = hex(&peer.signer.key_digest);
                Ok(Some(format!("refused {}, key {digest}", peer.identity)))
            }
            _ => Ok(None),
        }
    }

    /// Takes what somebody types; the first of it starts a program, or has one go on.
    async fn take(&mut self, call: CallId, said: Said) -> anyhow::Result<()> {
        let Some(&key) = self.guests.get(&call) else {
            return Ok(());
        };
        if !self.shells.contains_key(&call) {
            let before = match said {
                Said::Resume => self.resume(call, key).await?,
                _ => None,
            };
            let shell = match before {
                Some(shell) => shell,
                None => {
                    let program = self.arguments.shell.as_deref();
                    Shell::start(call, self.line.endpoint.clone(), program)?
                }
            };
            self.shells.insert(call, shell);
        }
        let is_taken = self.shells.get(&call).is_some_and(|it| it.take(said));
        anyhow::ensure!(is_taken, "the program reads too little");
        Ok(())
    }

    /// A program of `key`: one that is kept, the newest first, or one whose session is not known yet to be cut off.
    async fn resume(&mut self, call: CallId, key: [u8; 32]) -> anyhow::Result<Option<Shell>> {
        self.forget();
        if let Some(place) = self.kept.iter().rposition(|it| it.key == key) {
            let shell = self.kept.remove(place).shell;
            return Ok(shell.move_to(call).then_some(shell));
        }
        let mut calls = self.shells.keys();
        let before = calls.find(|it| self.guests.get(it) == Some(&key));
        let Some((before, shell)) = before.copied().and_then(|it| self.shells.remove_entry(&it))
        else {
            return Ok(None);
        };
        self.line.hang_up(before, "gone on with elsewhere").await?;
        Ok(shell.move_to(call).then_some(shell))
    }

    /// Somebody is gone; whose session was cut off may come back.
    fn leave(&mut self, call: CallId, end: &End) -> Option<String> {
        let key = self.guests.remove(&call)?;
        let shell = self.shells.remove(&call);
        if let (End::Silence, Some(shell)) = (end, shell) {
            let since = self.clock().now();
            self.kept.push(Kept { key, since, shell });
            if self.kept.len() > MAX_KEPT {
                self.kept.remove(0);
            }
        }
        Some(format!("somebody has left: {end}"))
    }
}
