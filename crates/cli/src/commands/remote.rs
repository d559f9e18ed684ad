//! `namecast remote`: a terminal on another machine, for those whose keys it knows.

mod authorised;
mod host;
mod shell;
mod terminal;

use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use bytes::{Bytes, BytesMut};
use clap::Args;
use namecast_apps::live::watcher::Trust;
use namecast_apps::session::{
    CallId, End, Endpoint, EndpointConfig, Event, Flow, NoCall, SessionConfig,
};
use namecast_command::Stop;
use namecast_command::report::{ProgressLine, print_bytes, print_line};
use namecast_packet::{Certificate, Name};
use namecast_units::{Duration, Instant};
use serde_json::{Value, json};

use super::line::{Happened, Line, LineOptions, root};
use super::{FIGURES_INTERVAL, key_store};
use crate::hexadecimal::hex;
use crate::key_check::KeyCheck;
use crate::telemetry::{Reporter, tables};
use terminal::{Key, Terminal};

/// Behind both names.
const APPLICATION: &str = "remote";
/// A session outlives an outage of this length.
const MAX_SILENCE: Duration = Duration::from_secs(60);
/// Longest time to wait for the other machine.
const CALL_TIMEOUT: Duration = Duration::from_secs(20);
/// Octets in one message.
const MAX_OCTETS: usize = 1_000;
/// First octets of messages.
const OCTETS: u8 = 0;
const SIZE: u8 = 1;
const RESUME: u8 = 2;
/// Echoes that are kept for their quantiles.
const MAX_ECHOES: usize = 1_000;

/// `namecast remote`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  namecast remote /host --serve --authorised-keys keys      at the machine; a line of keys: the digest that clients print
  namecast key trust /host DIGEST                           at the client, the digest that the machine prints
  namecast remote /me /host                                 a terminal there; Ctrl-] leaves it
  namecast remote /me /host --resume                        the one that was cut off

Nobody is let in by default, and no key is accepted because it is the first that is met, on either side.")]
pub struct Remote {
    /// One's own name; its key signs, and is made on first use.
    pub name: Name,
    /// The machine to work on.
    #[arg(required_unless_present = "serve", conflicts_with = "serve")]
    pub peer: Option<Name>,
    /// Let others work on this machine.
    #[arg(long, requires = "authorised_keys")]
    pub serve: bool,
    /// File of those who may: on each line the digest of a key, 64 hexadecimal digits, and then what one likes. It is read again
    /// whenever it has changed.
    #[arg(long, value_name = "FILE")]
    pub authorised_keys: Option<PathBuf>,
    /// The program that they work with; without it that of SHELL, or /bin/sh.
    #[arg(long, value_name = "PROGRAM", requires = "serve")]
    pub shell: Option<PathBuf>,
    /// Go on with the program of a session that was cut off, which is kept for ten minutes; without one, with a new program.
    #[arg(long, conflicts_with = "serve")]
    pub resume: bool,
    /// How the other side is reached, and for how long.
    #[command(flatten)]
    pub line: LineOptions,
}

fn config() -> EndpointConfig {
    EndpointConfig {
        session: SessionConfig {
            flow: Flow::interactive(),
            max_silence: MAX_SILENCE,
            ..SessionConfig::default()
        },
        call_timeout: CALL_TIMEOUT,
        ..EndpointConfig::default()
    }
}

/// Runs until interrupted, or the program there has ended.
pub(super) async fn run(arguments: Remote) -> anyhow::Result<()> {
    let own = key_store(arguments.line.keys.keys.clone())?.identity(&arguments.name)?;
    let own = Certificate::decode(own.certificate)?.public_key()?.digest();
    match &arguments.authorised_keys {
        Some(file) if arguments.serve => host::serve(&arguments, file, &hex(&own)).await,
        _ => work(&arguments, &hex(&own)).await,
    }
}

/// A message with octets of a terminal.
fn octets_message(octets: &[u8]) -> Bytes {
    let mut message = BytesMut::from(&[OCTETS][..]);
    message.extend_from_slice(octets);
    message.freeze()
}

/// A message with the size of a terminal.
fn size_message((rows, columns): (u16, u16)) -> Bytes {
    let mut message = BytesMut::from(&[SIZE][..]);
    message.extend_from_slice(&rows.to_be_bytes());
    message.extend_from_slice(&columns.to_be_bytes());
    message.freeze()
}

/// What a message says.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Said {
    Octets(Bytes),
    Size(u16, u16),
    /// The program of the session before is to go on.
    Resume,
}

fn read(message: &Bytes) -> Option<Said> {
    let body = message.slice(1.min(message.len())..);
    match (message.first()?, &body[..]) {
        (&OCTETS, _) => Some(Said::Octets(body)),
        (&SIZE, &[a, b, c, d]) => Some(Said::Size(
            u16::from_be_bytes([a, b]),
            u16::from_be_bytes([c, d]),
        )),
        (&RESUME, []) => Some(Said::Resume),
        _ => None,
    }
}

async fn work(arguments: &Remote, own: &str) -> anyhow::Result<()> {
    let run = &arguments.line.run;
    let peer = arguments
        .peer
        .clone()
        .context("name the machine to work on")?;
    let keys = KeyCheck::new(peer.clone(), &arguments.line.trusted)?;
    ensure!(
        keys.trust() != Trust::FirstUse,
        "the key of {peer} is not known: write namecast key trust {peer} DIGEST with the digest that it prints, or --key DIGEST. One's \
         own, for its file of authorised keys: {own}"
    );
    let stop = Stop::new(run.duration)?;
    let line = Line::open((&arguments.name, APPLICATION), config(), &arguments.line);
    let mut working = Working {
        line: line.await?,
        stats: Reporter::start(&tables::REMOTE, run, &arguments.line.observation).await?,
        progress: ProgressLine::new(!run.quiet),
        peer,
        keys,
        call: None,
        unsent: None,
        resumes: arguments.resume,
        typed_at: None,
        echoes: Vec::new(),
        received: 0,
    };
    working
        .progress
        .say(&format!("Calling {} with key {own} …", working.peer));
    working.stats.observe(working.line.node());
    let outcome = working.follow(stop).await;
    let figures = working.figures().await?;
    working.stats.write(&figures, true)?;
    if run.json {
        print_line(&figures)?;
    }
    let closed = working.line.close().await;
    outcome.and(closed)
}

/// A terminal here, whose program runs there.
struct Working {
    line: Line,
    stats: Reporter,
    progress: ProgressLine,
    peer: Name,
    keys: KeyCheck,
    /// Once the machine has let this one in.
    call: Option<CallId>,
    /// What was typed while there was no room for it: nothing more is read until there is.
    unsent: Option<Bytes>,
    /// Whether the program of the session before is to go on.
    resumes: bool,
    /// When the key was typed whose echo has not come.
    typed_at: Option<Instant>,
    echoes: Vec<Duration>,
    received: u64,
}

impl Working {
    async fn follow(&mut self, mut stop: Stop) -> anyhow::Result<()> {
        let (callee, trust) = (root(&self.peer, APPLICATION), self.keys.trust());
        self.line.dial(callee, trust).await?;
        let mut terminal: Option<Terminal> = None;
        let mut tick = tokio::time::interval(FIGURES_INTERVAL);
        loop {
            tokio::select! {
                happened = self.line.next() => match happened? {
                    Happened::Text(text) if terminal.is_none() => self.progress.say_once(&text),
                    Happened::Event(Event::Ended(_, end)) => {
                        drop(terminal);
                        return self.end(&end);
                    }
                    Happened::Event(Event::Accepted(call)) => {
                        self.call = Some(call);
                        let opened = Terminal::open()?;
                        if self.resumes {
                            self.send(Bytes::from_static(&[RESUME])).await?;
                        }
                        self.send(size_message(opened.size())).await?;
                        terminal = Some(opened);
                    }
                    Happened::Event(Event::Room(_)) => {
                        if let Some(message) = self.unsent.take() {
                            self.send(message).await?;
                        }
                    }
                    Happened::Event(event) => self.hear(event)?,
                    Happened::Text(_) => {}
                },
                key = next_key(&mut terminal), if self.unsent.is_none() => match key {
                    Key::Octets(octets) => {
                        self.typed_at.get_or_insert(self.line.node.clock().now());
                        self.send(octets_message(&octets)).await?;
                    }
                    Key::Size(size) => self.send(size_message(size)).await?,
                    Key::Leave => return self.leave().await,
                },
                _ = tick.tick() => {
                    let figures = self.figures().await?;
                    self.stats.write(&figures, false)?;
                }
                () = stop.wait() => return self.leave().await,
            }
        }
    }

    fn hear(&mut self, event: Event) -> anyhow::Result<()> {
        match event {
            Event::Message(_, message) => {
                if let Some(Said::Octets(octets)) = read(&message) {
                    if let Some(at) = self.typed_at.take()
                        && self.echoes.len() < MAX_ECHOES
                    {
                        self.echoes.push(self.line.node.clock().now().since(at));
                    }
                    self.received += octets.len() as u64;
                    print_bytes(&octets)?;
                }
                Ok(())
            }
            Event::Failed(NoCall::Untrusted(peer)) => {
                bail!("{}", self.keys.on_signer(&peer.signer))
            }
            Event::Failed(why) => bail!("{}", self.not_let_in(&why.to_string())),
            _ => Ok(()),
        }
    }

    /// Sends a message, now or as soon as there is room: the path is down, or what is typed is a large text.
    async fn send(&mut self, message: Bytes) -> anyhow::Result<()> {
        let Some(call) = self.call else {
            return Ok(());
        };
        let send = move |it: &mut Endpoint, now| it.send(now, call, message);
        self.unsent = self.line.call(send).await?.err().map(|full| full.0);
        Ok(())
    }

    async fn leave(&mut self) -> anyhow::Result<()> {
        let Some(call) = self.call else {
            bail!("{}", self.not_let_in("no answer so far"));
        };
        self.line.hang_up_and_wait(call, "left").await
    }

    fn not_let_in(&self, why: &str) -> String {
        let peer = &self.peer;
        format!(
            "{why} from {peer}: it must run namecast remote {peer} --serve, and this key must be in its file of authorised keys"
        )
    }

    fn end(&self, end: &End) -> anyhow::Result<()> {
        match end {
            End::Other(why) if why == shell::ENDED => Ok(()),
            end if self.call.is_none() => bail!(
                "{} did not let this key in: {end}. Add it to the file of authorised keys there",
                self.peer
            ),
            end => bail!("the terminal at {} is gone: {end}", self.peer),
        }
    }

    async fn figures(&mut self) -> anyhow::Result<Value> {
        let mut figures = self.line.figures(self.call).await?;
        let mut echoes = self.echoes.clone();
        echoes.sort();
        let quantile = |permille: usize| {
            let at = echoes.len().checked_sub(1)? * permille / 1_000;
            Some(echoes[at].as_secs_f64() * 1e3)
        };
        figures["echo_ms"] = json!({ "p50": quantile(500), "p99": quantile(990) });
        figures["bytes_received"] = json!(self.received);
        Ok(figures)
    }
}

async fn next_key(terminal: &mut Option<Terminal>) -> Key {
    match terminal {
        Some(terminal) => terminal.next().await,
        None => core::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_or_refused() {
        let octets = Bytes::from_static(b"\x03\x00");
        assert_eq!(read(&octets_message(&octets)), Some(Said::Octets(octets)));
        assert_eq!(read(&size_message((24, 80))), Some(Said::Size(24, 80)));
        assert_eq!(read(&Bytes::from_static(&[RESUME])), Some(Said::Resume));
        for wrong in [
            &[][..],
            &[SIZE, 0, 1],
            &[SIZE, 0, 1, 2, 3, 4],
            &[RESUME, 0],
            &[3],
        ] {
            assert_eq!(read(&Bytes::copy_from_slice(wrong)), None);
        }
    }
}
