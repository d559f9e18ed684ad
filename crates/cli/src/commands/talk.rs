//! `namecast talk`: a call between two people, with Opus at 50 packets a second.

mod sound;

use std::collections::BTreeMap;

use anyhow::{bail, ensure};
use clap::Args;
use namecast_apps::live::watcher::Trust;
use namecast_apps::session::{
    CallId, End, Endpoint, EndpointConfig, Event, Flow, NoCall, Peer, SessionConfig,
};
use namecast_command::report::{ProgressLine, causes, print_line};
use namecast_command::{Stop, parse_duration};
use namecast_media::ingest::source::Input;
use namecast_media::voice::Sink;
use namecast_packet::Name;
use namecast_units::{Bitrate, Duration};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin, stdin};
use tokio::time::{Instant, sleep_until};

use super::FIGURES_INTERVAL;
use super::line::{Happened, Line, LineOptions, root};
use crate::key_check::KeyCheck;
use crate::telemetry::{Reporter, tables};
use sound::Sound;

/// Behind both names.
const APPLICATION: &str = "talk";
/// Longest time between what comes and what is played.
const MAX_BUFFER: Duration = Duration::from_millis(150);
/// Packets that wait for an Interest; older ones are dropped.
const MAX_QUEUED: usize = 4;
/// What nobody hears for this long is over.
const MAX_SILENCE: Duration = Duration::from_secs(15);
/// How long it rings, at both sides.
const RING: Duration = Duration::from_secs(45);
/// A caller whose call was not taken does not ring again for so long, so that others can.
const REST: Duration = Duration::from_secs(30);
/// The same for one that hung up before its call was taken.
const SHORT_REST: Duration = Duration::from_secs(5);
/// Callers whose calls were not taken that are remembered; of more, the one longest ago is forgotten.
const MAX_RESTING: usize = 256;

/// `namecast talk`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  namecast talk /bob                                   wait for calls
  namecast talk /alice /bob                            call Bob
  namecast talk /bob --answer --output heard.wav       take every call, and record what comes
  namecast talk /alice /bob --input speech.wav --output none

Nothing is recorded from the microphone before the call is taken. All that is said is encrypted.
Exits with 1 where nobody answered.")]
pub struct Talk {
    /// One's own name; its key signs, and is made on first use.
    pub name: Name,
    /// Who is called; none: wait for a call.
    pub peer: Option<Name>,
    /// Take calls without asking.
    #[arg(long, conflicts_with = "peer")]
    pub answer: bool,
    /// What is listened to: microphone, test, a file, alsa:DEVICE or pulse:DEVICE.
    #[arg(long, value_name = "INPUT", default_value = "microphone")]
    pub input: Input,
    /// Where the other side is heard: speaker, none, a file, alsa:DEVICE or pulse:DEVICE.
    #[arg(long, value_name = "OUTPUT", default_value = "speaker")]
    pub output: Sink,
    /// Bitrate of the sound.
    #[arg(long, value_name = "BITRATE", default_value = "32k")]
    pub bitrate: Bitrate,
    /// What comes is played at most so long after it could have come, so that lost packets can come again, and sooner where nothing
    /// comes late; up to 150ms.
    #[arg(long, value_name = "TIME", default_value = "150ms", value_parser = parse_buffer)]
    pub buffer: Duration,
    /// How the other side is reached, and for how long.
    #[command(flatten)]
    pub line: LineOptions,
}

fn parse_buffer(text: &str) -> Result<Duration, String> {
    let buffer = parse_duration(text).map_err(|error| error.to_string())?;
    match buffer <= MAX_BUFFER {
        true => Ok(buffer),
        false => Err(format!("{text} is too long to talk: write 0ms to 150ms")),
    }
}

/// Runs until one of both hangs up.
pub(super) async fn run(arguments: Talk) -> anyhow::Result<()> {
    let Talk {
        name, peer, line, ..
    } = &arguments;
    let run = &line.run;
    ensure!(
        !name.is_empty()
            && peer
                .as_ref()
                .is_none_or(|peer| !peer.is_empty() && peer != name),
        "give two names, one's own and whom to call, as in namecast talk /alice /bob"
    );
    let mut stop = Stop::new(run.duration)?;
    let config = EndpointConfig {
        answers: peer.is_none(),
        trust: match &line.trusted.key {
            // It pins whoever calls, under any name.
            Some(_) => KeyCheck::new(name.clone(), &line.trusted)?.trust(),
            None => Trust::FirstUse,
        },
        session: SessionConfig {
            flow: Flow::VOICE,
            max_queued: MAX_QUEUED,
            max_silence: MAX_SILENCE,
            ..SessionConfig::default()
        },
        call_timeout: RING,
        ..EndpointConfig::default()
    };
    let line = Line::open((name, APPLICATION), config, line).await?;
    let mut talking = Talking {
        stats: Reporter::start(&tables::TALK, run, &arguments.line.observation).await?,
        progress: ProgressLine::new(!run.quiet && !run.json),
        prints_json: run.json && !run.quiet,
        ringing: None,
        resting: BTreeMap::new(),
        sound: None,
        line,
        arguments,
    };
    talking.stats.observe(talking.line.node());
    let outcome = talking.follow(&mut stop).await;
    let ended = talking.finish().await;
    outcome.and(ended)
}

/// Somebody who calls, and waits to be answered.
struct Ringing {
    call: CallId,
    keys: KeyCheck,
    /// SHA-256 digest of the caller's key.
    key: [u8; 32],
    until: Instant,
}

struct Talking {
    stats: Reporter,
    progress: ProgressLine,
    prints_json: bool,
    ringing: Option<Ringing>,
    /// Keys whose calls were not taken, and until when they do not ring.
    resting: BTreeMap<[u8; 32], Instant>,
    /// Since the call was taken.
    sound: Option<Sound>,
    line: Line,
    arguments: Talk,
}

impl Talking {
    async fn follow(&mut self, stop: &mut Stop) -> anyhow::Result<()> {
        let mut answers = BufReader::new(stdin()).lines();
        let mut tick = tokio::time::interval(FIGURES_INTERVAL);
        self.dial().await?;
        loop {
            tokio::select! {
                happened = self.line.next() => match happened? {
                    Happened::Text(text) => self.progress.say_once(&text),
                    Happened::Event(event) => {
                        if self.ends_with(event).await? {
                            return Ok(());
                        }
                    }
                },
                answer = answer(&mut answers), if self.asks() => self.on_answer(&answer).await?,
                packet = next_spoken(&mut self.sound) => {
                    if let Some((call, packet)) = packet {
                        // Nobody may be there to hear it.
                        let send = move |it: &mut Endpoint, now| it.send(now, call, packet).is_ok();
                        self.line.call(send).await?;
                    }
                }
                _ = tick.tick() => self.show().await?,
                () = end_of_ring(self.ringing.as_ref()) => self.stop_ringing("nobody answered").await?,
                () = stop.wait() => {
                    self.hang_up("hung up").await?;
                    return match (&self.arguments.peer, &self.sound) {
                        (Some(peer), None) => bail!("{peer} did not take the call"),
                        _ => Ok(()),
                    };
                }
            }
            // However late this is, nothing is concealed that has come.
            while let Ok(event) = self.line.events.try_recv() {
                if self.ends_with(event).await? {
                    return Ok(());
                }
            }
            if let Some(sound) = &mut self.sound {
                sound.play(self.line.node.clock());
            }
        }
    }

    /// Whether somebody at the terminal is to say if a call is taken.
    fn asks(&self) -> bool {
        self.ringing.is_some() && self.sound.is_none()
    }

    async fn dial(&mut self) -> anyhow::Result<()> {
        let Some(peer) = &self.arguments.peer else {
            let name = &self.arguments.name;
            self.progress.say(&format!("Waiting for calls of {name}"));
            return Ok(());
        };
        self.progress.say(&format!("Calling {peer} …"));
        let trust = KeyCheck::new(peer.clone(), &self.arguments.line.trusted)?.trust();
        let callee = root(peer, APPLICATION);
        self.line.dial(callee, trust).await
    }

    /// Takes what the endpoint reports. Returns whether the command ends with it.
    async fn ends_with(&mut self, event: Event) -> anyhow::Result<bool> {
        if let Event::Ended(call, end) = &event {
            return self.is_over(*call, end);
        }
        match self.hear(event).await {
            Err(error) if self.arguments.peer.is_none() => {
                // Whoever waits for calls goes on after one that failed.
                self.progress.say_error(&causes(&error));
                self.ringing = None;
                self.sound = None;
                Ok(false)
            }
            heard => heard.map(|()| false),
        }
    }

    /// Gives up the call that rings. Its caller does not ring again at once.
    async fn stop_ringing(&mut self, why: &'static str) -> anyhow::Result<()> {
        let Some(Ringing { call, key, .. }) = self.ringing.take() else {
            return Ok(());
        };
        self.line.hang_up(call, why).await?;
        if let Some(peer) = &self.arguments.peer {
            bail!("{peer} did not take the call");
        }
        self.progress.say("The call was not taken.");
        self.have_rest(key, REST);
        Ok(())
    }

    /// Calls by `key` do not ring for `time`.
    fn have_rest(&mut self, key: [u8; 32], time: Duration) {
        let now = Instant::now();
        self.resting.retain(|_, until| *until > now);
        if self.resting.len() >= MAX_RESTING {
            let first = self.resting.iter().min_by_key(|(_, until)| **until);
            let first = first.map(|(key, _)| *key);
            first.map(|key| self.resting.remove(&key));
        }
        self.resting.insert(key, now + time);
    }

    async fn hear(&mut self, event: Event) -> anyhow::Result<()> {
        match event {
            Event::Established {
                call,
                peer,
                was_called,
            } => self.meet(call, &peer, was_called).await,
            Event::Accepted(call) if self.is_ringing(call) => self.begin().await,
            Event::Message(call, message) => {
                if self.is_ringing(call) && self.arguments.peer.is_some() {
                    // Only who has taken the call speaks; that it did was lost.
                    self.begin().await?;
                }
                let now = self.line.node.clock();
                if let Some(sound) = self.sound.as_mut().filter(|it| it.call == call) {
                    sound.take(now, &message);
                }
                Ok(())
            }
            Event::Failed(NoCall::Untrusted(peer)) => {
                let mut keys = KeyCheck::new(peer.identity.clone(), &self.arguments.line.trusted)?;
                bail!("{}", keys.on_signer(&peer.signer))
            }
            Event::Failed(why) => {
                let Some(peer) = &self.arguments.peer else {
                    return Ok(());
                };
                bail!("{why} from {peer}: it must run namecast talk {peer}")
            }
            _ => Ok(()),
        }
    }

    fn is_ringing(&self, call: CallId) -> bool {
        self.ringing.as_ref().is_some_and(|it| it.call == call)
    }

    /// Somebody is there, and has shown the key.
    async fn meet(&mut self, call: CallId, peer: &Peer, was_called: bool) -> anyhow::Result<()> {
        let who = &peer.identity;
        let mut keys = KeyCheck::new(who.clone(), &self.arguments.line.trusted)?;
        let key = peer.signer.key_digest;
        let rests = (self.resting.get(&key)).is_some_and(|until| *until > Instant::now());
        if was_called && (self.ringing.is_some() || self.sound.is_some() || rests) {
            return self.line.hang_up(call, "busy").await;
        }
        let signer = keys.on_signer(&peer.signer);
        if was_called && let Some(why) = refusal(&keys.trust(), peer) {
            self.progress
                .say(&format!("Refused a call of {who}: {why}"));
            return self.line.hang_up(call, "refused").await;
        }
        self.progress.say(&signer);
        self.ringing = Some(Ringing {
            call,
            keys,
            key,
            until: Instant::now() + RING,
        });
        if self.prints_json {
            print_line(json!({ "ringing": who.to_string(), "was_called": was_called }))?;
        }
        match (was_called, self.arguments.answer) {
            (false, _) => self.progress.say(&format!("Ringing at {who} …")),
            (true, true) => return self.accept().await,
            (true, false) => self
                .progress
                .say_error(&format!("{who} is calling. Take the call? [y/n]")),
        }
        Ok(())
    }

    async fn on_answer(&mut self, answer: &str) -> anyhow::Result<()> {
        match answer.trim() {
            "y" | "yes" => self.accept().await,
            "n" | "no" => self.stop_ringing("declined").await,
            _ => {
                self.progress
                    .say_error("Write y to take the call, or n to decline it.");
                Ok(())
            }
        }
    }

    async fn accept(&mut self) -> anyhow::Result<()> {
        if let Some(ringing) = &self.ringing {
            let call = ringing.call;
            self.line.call(move |it, now| it.accept(now, call)).await?;
        }
        self.begin().await
    }

    /// The call is taken: from now on there is sound.
    async fn begin(&mut self) -> anyhow::Result<()> {
        let Some(mut ringing) = self.ringing.take() else {
            return Ok(());
        };
        if let Some(text) = ringing.keys.on_verified()? {
            self.progress.say(&text);
        }
        self.progress
            .say("Connected. Interrupt (Ctrl-C) to hang up.");
        if self.prints_json {
            print_line(json!({ "connected": true }))?;
        }
        match Sound::start(ringing.call, &self.arguments) {
            Ok(sound) => self.sound = Some(sound),
            Err(error) => {
                let call = ringing.call;
                self.line.hang_up(call, "no sound there").await?;
                return Err(error);
            }
        }
        Ok(())
    }

    async fn hang_up(&mut self, why: &'static str) -> anyhow::Result<()> {
        let talking = self.sound.as_ref().map(|it| it.call);
        let ringing = self.ringing.as_ref().map(|it| it.call);
        let Some(call) = talking.or(ringing) else {
            return Ok(());
        };
        self.line.hang_up_and_wait(call, why).await
    }

    /// Returns whether the command ends with this call.
    fn is_over(&mut self, call: CallId, end: &End) -> anyhow::Result<bool> {
        let rang = self.ringing.take_if(|it| it.call == call);
        let was_ringing = rang.is_some();
        if let Some(Ringing { key, .. }) = rang {
            self.have_rest(key, SHORT_REST);
        }
        let was_talking = self.sound.as_ref().is_some_and(|it| it.call == call);
        if !was_ringing && !was_talking {
            return Ok(false);
        }
        match (&self.arguments.peer, was_talking) {
            (Some(peer), false) => bail!("{peer} did not take the call: {end}"),
            (None, false) => {
                self.progress.say(&format!("The call has ended: {end}"));
                Ok(false)
            }
            (_, true) => {
                self.progress.say(&format!("The call has ended: {end}"));
                Ok(true)
            }
        }
    }

    async fn show(&mut self) -> anyhow::Result<()> {
        let figures = self.figures().await?;
        self.stats.write(&figures, false)?;
        if let Some(sound) = &mut self.sound {
            if let Some(trouble) = sound.trouble() {
                self.progress.say_error(&trouble);
            }
            let line = sound.line();
            self.progress.show(&line);
        }
        Ok(())
    }

    async fn figures(&mut self) -> anyhow::Result<serde_json::Value> {
        let call = self.sound.as_ref().map(|it| it.call);
        let mut figures = self.line.figures(call).await?;
        if let Some(sound) = &self.sound {
            figures["sound"] = sound.figures();
        }
        Ok(figures)
    }

    async fn finish(mut self) -> anyhow::Result<()> {
        let figures = self.figures().await?;
        self.stats.write(&figures, true)?;
        if self.prints_json {
            print_line(&figures)?;
        }
        if let Some(sound) = self.sound.take() {
            sound.close()?;
        }
        self.line.close().await
    }
}

/// Why a caller's key does not count, if it does not.
fn refusal(trust: &Trust, peer: &Peer) -> Option<&'static str> {
    match trust {
        Trust::Remembered(digest) if *digest != peer.signer.key_digest => Some(
            "it is another key than the one remembered for this name; if that is right: namecast key forget",
        ),
        _ => None,
    }
}

/// Waits until it has rung for long enough; never, where nothing rings.
async fn end_of_ring(ringing: Option<&Ringing>) {
    match ringing {
        Some(ringing) => sleep_until(ringing.until).await,
        None => core::future::pending().await,
    }
}

/// The next line of the terminal; never, where there is none.
async fn answer(lines: &mut Lines<BufReader<Stdin>>) -> String {
    match lines.next_line().await {
        Ok(Some(line)) => line,
        _ => core::future::pending().await,
    }
}

/// Waits for something to send, or until something is due to be played.
async fn next_spoken(sound: &mut Option<Sound>) -> Option<(CallId, bytes::Bytes)> {
    match sound {
        Some(sound) => sound.next().await,
        None => core::future::pending().await,
    }
}
