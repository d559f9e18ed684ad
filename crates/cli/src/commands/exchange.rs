//! `namecast exchange`: two files cross between two people.

mod files;

use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use clap::Args;
use namecast_apps::live::watcher::Trust;
use namecast_apps::session::exchange::{CHUNK_SIZE, Exchange, Offer, Said};
use namecast_apps::session::{
    CallId, End, EndpointConfig, Event, Flow, NoCall, Peer, SessionConfig,
};
use namecast_command::Stop;
use namecast_command::report::{ProgressLine, print_line, printable};
use namecast_packet::Name;
use namecast_units::{ByteSize, Duration};
use serde_json::{Value, json};

use super::FIGURES_INTERVAL;
use super::line::{Happened, Line, LineOptions, root};
use crate::hexadecimal::hex;
use crate::key_check::KeyCheck;
use crate::telemetry::{Reporter, tables};
use files::{Incoming, Outgoing, Rules};

/// Behind both names.
const APPLICATION: &str = "exchange";
/// Who was killed is noticed after this time.
const MAX_SILENCE: Duration = Duration::from_secs(10);
const KEEP_ALIVE: Duration = Duration::from_secs(2);
/// How long one call waits for an answer before the next.
const CALL_TIMEOUT: Duration = Duration::from_secs(15);
/// Messages that are read ahead of what is sent.
const MAX_QUEUED: usize = 512;

/// `namecast exchange`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  namecast exchange /alice /bob holiday.jpg          at Alice's, to Bob
  namecast exchange /bob /alice report.pdf           at Bob's, to Alice: whoever is first waits
  namecast exchange /bob /alice --into downloads     nothing to give, only to take

What was interrupted goes on where it stopped when both run it again. Whatever comes is verified by its SHA-256.
Exits with 1 where a file did not come whole.")]
pub struct ExchangeFiles {
    /// One's own name; its key signs, and is made on first use.
    pub name: Name,
    /// The other's name.
    pub peer: Name,
    /// The file to give; none: only take.
    pub file: Option<PathBuf>,
    /// Directory for what comes.
    #[arg(long, value_name = "DIRECTORY", default_value = ".")]
    pub into: PathBuf,
    /// Largest file that is taken.
    #[arg(long, value_name = "SIZE", default_value = "4 GiB")]
    pub max_size: ByteSize,
    /// How the other side is reached, and for how long.
    #[command(flatten)]
    pub line: LineOptions,
}

/// Runs until both have what they were to have.
pub(super) async fn run(arguments: ExchangeFiles) -> anyhow::Result<()> {
    let ExchangeFiles {
        name, peer, line, ..
    } = &arguments;
    let run = &line.run;
    ensure!(
        !name.is_empty() && !peer.is_empty() && name != peer,
        "give two names, one's own and the other's, as in namecast exchange /alice /bob FILE"
    );
    ensure!(
        arguments.into.is_dir(),
        "{} is no directory: write --into DIRECTORY for what comes",
        arguments.into.display()
    );
    let mut stop = Stop::new(run.duration)?;
    let mut progress = ProgressLine::new(!run.quiet && !run.json);
    let outgoing = match arguments.file.clone() {
        None => None,
        Some(file) => {
            progress.say(&format!("Reading {} …", file.display()));
            Some(tokio::task::spawn_blocking(move || Outgoing::open(&file)).await??)
        }
    };
    let keys = KeyCheck::new(peer.clone(), &line.trusted)?;
    let config = EndpointConfig {
        // One of both calls.
        answers: name > peer,
        trust: keys.trust(),
        caller: Some(root(peer, APPLICATION)),
        session: SessionConfig {
            flow: Flow::bulk(),
            max_silence: MAX_SILENCE,
            keep_alive: KEEP_ALIVE,
            max_queued: MAX_QUEUED,
            ..SessionConfig::default()
        },
        call_timeout: CALL_TIMEOUT,
        ..EndpointConfig::default()
    };
    let line = Line::open((name, APPLICATION), config, line).await?;
    let mut exchanging = Exchanging {
        is_caller: name < peer,
        peer: peer.clone(),
        into: arguments.into.clone(),
        rules: Rules {
            max_size: arguments.max_size.as_bytes(),
            is_known: !matches!(keys.trust(), Trust::FirstUse),
        },
        met: None,
        prints_json: run.json && !run.quiet,
        stats: Reporter::start(&tables::EXCHANGE, run, &arguments.line.observation).await?,
        outgoing,
        incoming: None,
        current: None,
        moved: (0, 0),
        dials_again: false,
        progress,
        keys,
        line,
    };
    let outcome = exchanging.follow(&mut stop).await;
    let figures = exchanging.figures().await;
    if let Ok(figures) = &figures {
        exchanging.stats.write(figures, true)?;
        if exchanging.prints_json {
            print_line(figures)?;
        }
    }
    let closed = exchanging.line.close().await;
    outcome.and(closed)
}

/// An exchange in a call.
struct Current {
    call: CallId,
    exchange: Exchange,
}

struct Exchanging {
    is_caller: bool,
    peer: Name,
    into: PathBuf,
    rules: Rules,
    /// SHA-256 digest of the key of whoever was met first: nobody else may have this exchange.
    met: Option<[u8; 32]>,
    prints_json: bool,
    stats: Reporter,
    outgoing: Option<Outgoing>,
    incoming: Option<Incoming>,
    current: Option<Current>,
    /// Octets sent and received, in the newest call.
    moved: (u64, u64),
    /// Whether to call again with the next figures: the other side did not take the call.
    dials_again: bool,
    progress: ProgressLine,
    keys: KeyCheck,
    line: Line,
}

impl Exchanging {
    async fn follow(&mut self, stop: &mut Stop) -> anyhow::Result<()> {
        self.stats.observe(self.line.node());
        self.progress.say(&match self.is_caller {
            true => format!("Calling {} …", self.peer),
            false => format!("Waiting for {} …", self.peer),
        });
        self.dial().await?;
        let mut tick = tokio::time::interval(FIGURES_INTERVAL);
        loop {
            tokio::select! {
                happened = self.line.next() => match happened? {
                    Happened::Text(text) => self.progress.say_once(&text),
                    Happened::Event(Event::Ended(call, end)) if !self.is_current(call) => {
                        let peer = &self.peer;
                        self.progress.say_once(&format!("{peer} did not take the call: {end}"));
                        self.dials_again = true;
                    }
                    Happened::Event(Event::Ended(call, end)) => {
                        if self.is_over(call, &end)? {
                            return Ok(());
                        }
                        self.dial().await?;
                    }
                    Happened::Event(event) => self.hear(event).await?,
                },
                _ = tick.tick() => {
                    self.show().await?;
                    if core::mem::take(&mut self.dials_again) {
                        self.dial().await?;
                    }
                }
                () = stop.wait() => bail!(
                    "interrupted before both files were through; the same command goes on from there"
                ),
            }
        }
    }

    /// Calls, if this side is the one that does.
    async fn dial(&mut self) -> anyhow::Result<()> {
        if self.is_caller && self.current.is_none() {
            let (callee, trust) = (root(&self.peer, APPLICATION), self.keys.trust());
            self.line.dial(callee, trust).await?;
        }
        Ok(())
    }

    async fn hear(&mut self, event: Event) -> anyhow::Result<()> {
        match event {
            Event::Established {
                call,
                peer,
                was_called,
            } => self.meet(call, &peer, was_called).await,
            Event::Accepted(call) => self.begin(call).await,
            Event::Message(call, message) if self.is_current(call) => self.take(&message).await,
            Event::Room(call) if self.is_current(call) => self.give().await,
            Event::Refused(peer) => {
                let signer = self.keys.on_signer(&peer.signer);
                self.progress.say_once(&format!("Refused a call: {signer}"));
                Ok(())
            }
            Event::Failed(NoCall::Untrusted(peer)) => {
                bail!("{}", self.keys.on_signer(&peer.signer))
            }
            Event::Failed(why) => {
                let peer = &self.peer;
                self.progress.say_once(&format!(
                    "{why} from {peer} yet; trying on. There: namecast exchange {peer} NAME FILE"
                ));
                self.dial().await
            }
            _ => Ok(()),
        }
    }

    fn is_current(&self, call: CallId) -> bool {
        self.current.as_ref().is_some_and(|it| it.call == call)
    }

    /// The other side is there, and has shown its key.
    async fn meet(&mut self, call: CallId, peer: &Peer, was_called: bool) -> anyhow::Result<()> {
        let key = peer.signer.key_digest;
        if self.met.is_some_and(|met| met != key) {
            return self.line.hang_up(call, "busy").await;
        }
        let signer = self.keys.on_signer(&peer.signer);
        let remembered = self.keys.on_verified()?;
        if self.met.replace(key).is_none() {
            self.progress
                .say(&format!("Connected to {}", peer.identity));
            self.progress.say(&signer);
            remembered
                .into_iter()
                .for_each(|text| self.progress.say(&text));
        }
        if !was_called {
            return Ok(());
        }
        if let Some(before) = self.current.take() {
            // Whoever calls again has lost the call before.
            let call = before.call;
            self.line.hang_up(call, "").await?;
        }
        self.line.call(move |it, now| it.accept(now, call)).await?;
        self.begin(call).await
    }

    async fn begin(&mut self, call: CallId) -> anyhow::Result<()> {
        let own = self.outgoing.as_ref().map(|it| it.offer.clone());
        self.current = Some(Current {
            call,
            exchange: Exchange::new(own),
        });
        self.incoming = None;
        self.say_all().await
    }

    /// Sends what the exchange has to say, and closes the call once nothing is left.
    async fn say_all(&mut self) -> anyhow::Result<()> {
        let Some(current) = &mut self.current else {
            return Ok(());
        };
        let call = current.call;
        let messages: Vec<_> = core::iter::from_fn(|| current.exchange.poll_message()).collect();
        let is_done = current.exchange.is_done();
        self.send(call, messages).await?;
        if is_done {
            self.line.hang_up(call, DONE).await?;
        }
        Ok(())
    }

    /// Sends messages, for which there is room.
    async fn send(&self, call: CallId, messages: Vec<Bytes>) -> anyhow::Result<()> {
        let send = move |it: &mut namecast_apps::session::Endpoint, now| {
            for message in messages {
                // A call that has ended takes nothing; that is reported.
                if it.send(now, call, message).is_err() {
                    break;
                }
            }
        };
        self.line.call(send).await
    }

    async fn take(&mut self, message: &Bytes) -> anyhow::Result<()> {
        let Some(current) = &mut self.current else {
            return Ok(());
        };
        match current.exchange.handle_message(message)? {
            Said::Offers(offer) => self.on_offer(&offer).await,
            Said::Wants(offset) => {
                if let Some(outgoing) = &mut self.outgoing {
                    outgoing.go_to(offset)?;
                }
                self.give().await
            }
            Said::Chunk(octets) => {
                if let Some(incoming) = &mut self.incoming {
                    incoming.write(&octets)?;
                }
                self.finish().await
            }
            Said::Nothing => self.say_all().await,
            Said::Result(true) => {
                self.progress
                    .say(&format!("{} has the file whole", self.peer));
                self.say_all().await
            }
            Said::Result(false) => bail!(
                "{} did not get the file whole: run the same command again",
                self.peer
            ),
        }
    }

    async fn on_offer(&mut self, offer: &Offer) -> anyhow::Result<()> {
        let (into, wanted, rules) = (self.into.clone(), offer.clone(), self.rules);
        let opening = tokio::task::spawn_blocking(move || Incoming::open(&into, wanted, rules));
        let incoming = match opening.await? {
            Ok(incoming) => incoming,
            Err(error) => {
                self.refuse("the other side cannot write the file").await?;
                return Err(error);
            }
        };
        let (name, size) = (printable(&offer.name), offer.size);
        self.progress.say(&match incoming.received() {
            0 => format!("Receiving {name}, {size} bytes"),
            here => format!("Receiving {name}, {size} bytes, of which {here} are here"),
        });
        if let Some(current) = &mut self.current {
            current.exchange.want(incoming.received());
        }
        self.incoming = Some(incoming);
        self.say_all().await?;
        self.finish().await
    }

    /// Checks the file that came, once it is here.
    async fn finish(&mut self) -> anyhow::Result<()> {
        let is_complete = self.incoming.as_ref().is_some_and(Incoming::is_complete);
        let Some(incoming) = self.incoming.take_if(|_| is_complete) else {
            return Ok(());
        };
        let (name, digest) = (incoming.offer().name.clone(), incoming.offer().digest);
        let finished = incoming.finish();
        if let Some(current) = &mut self.current {
            current.exchange.finish(finished.is_ok());
        }
        self.say_all().await?;
        let path = finished.with_context(|| format!("{name} did not come whole"))?;
        let digest = hex(&digest);
        self.progress.say(&format!(
            "Received {}, SHA-256 {digest}, verified",
            path.display()
        ));
        if self.prints_json {
            print_line(json!({ "received": path, "sha256": digest }))?;
        }
        Ok(())
    }

    /// Sends as much of the file as there is room for.
    async fn give(&mut self) -> anyhow::Result<()> {
        let (Some(current), Some(outgoing)) = (&mut self.current, &mut self.outgoing) else {
            return Ok(());
        };
        let call = current.call;
        let room = self.line.call(move |it, _| it.room(call)).await?;
        let mut messages = Vec::new();
        while messages.len() < room && current.exchange.unsent().is_some_and(|left| left > 0) {
            let octets = outgoing.read(CHUNK_SIZE)?;
            messages.push(current.exchange.chunk(&octets));
        }
        let has_more = current.exchange.unsent().is_some_and(|left| left > 0);
        let send = move |it: &mut namecast_apps::session::Endpoint, now| {
            for message in messages {
                let _ = it.send(now, call, message);
            }
            if has_more {
                it.wake_when_room(call);
            }
        };
        self.line.call(send).await
    }

    async fn refuse(&mut self, why: &'static str) -> anyhow::Result<()> {
        let Some(current) = self.current.take() else {
            return Ok(());
        };
        self.line.hang_up(current.call, why).await
    }

    /// Returns whether all is done, now that a call has ended.
    fn is_over(&mut self, call: CallId, end: &End) -> anyhow::Result<bool> {
        let Some(current) = self.current.take_if(|it| it.call == call) else {
            return Ok(false);
        };
        self.moved = (current.exchange.sent(), current.exchange.received());
        if current.exchange.is_done() {
            return Ok(true);
        }
        if let End::Other(why) = end
            && !why.is_empty()
            && why != DONE
        {
            bail!("{} ended the exchange: {why}", self.peer);
        }
        self.progress.say(&format!(
            "The call has ended ({end}); going on with the next"
        ));
        Ok(false)
    }

    async fn figures(&mut self) -> anyhow::Result<Value> {
        let call = self.current.as_ref().map(|it| it.call);
        let mut figures = self.line.figures(call).await?;
        if let Some(Current { exchange, .. }) = &self.current {
            self.moved = (exchange.sent(), exchange.received());
        }
        (figures["bytes_sent"], figures["bytes_received"]) =
            (json!(self.moved.0), json!(self.moved.1));
        Ok(figures)
    }

    async fn show(&mut self) -> anyhow::Result<()> {
        let figures = self.figures().await?;
        self.stats.write(&figures, false)?;
        let Some(current) = &self.current else {
            return Ok(());
        };
        let own = self.outgoing.as_ref().map(|it| it.offer.size);
        let other = current.exchange.offered().map(|it| it.size);
        let part = |done: u64, size: Option<u64>| match size {
            Some(size) => format!("{done} of {size} bytes"),
            None => "nothing".to_owned(),
        };
        let sent = part(current.exchange.sent(), own);
        let received = part(current.exchange.received(), other);
        self.progress
            .show(&format!("sent {sent}, received {received}"));
        Ok(())
    }
}

/// Said at the end, when all went well.
const DONE: &str = "done";
