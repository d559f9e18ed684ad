//! `namecast receive`: what `namecast send` sends, as files or to standard output.

mod storage;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::Args;
use namecast_apps::object::transfer::{
    Contents, Receiver, ReceiverConfig, ReceiverCounters, ReceiverEvent,
};
use namecast_command::report::{ProgressLine, print_bytes, print_line, printable};
use namecast_command::{Run, Stop, parse_duration};
use namecast_forward::{AnyNextConfig, NamedHop};
use namecast_net::{Handle, Node, NodeConfig, drive, random};
use namecast_packet::Name;
use namecast_units::{ByteSize, Duration, Instant};
use serde_json::json;
use tokio::sync::mpsc;

use super::ticket::Ticket;
use crate::arguments::Trusted;
use crate::connect::Connect;
use crate::key_check::KeyCheck;
use crate::telemetry::{Observation, Reporter, tables};
use storage::Storage;

/// Room for Data in the receiver's node.
const CACHE: ByteSize = ByteSize::mebibytes(1);
/// How often progress is shown, and what is here written down.
const TICK: Duration = Duration::from_millis(250);
const TICKS_A_SECOND: u32 = 4;
/// How long the sender's answer to the last report is waited for.
const REPORT_TIMEOUT: Duration = Duration::from_secs(3);

/// `namecast receive`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  namecast receive /alice/film                     into this directory
  namecast receive /alice/photos --into pictures   a directory, or several files
  namecast receive /alice/film --output - | mpv -  in order, as it comes
  namecast receive '/alice/secret#kX3…'            a ticket, as the sender printed it

What was interrupted goes on where it stopped when the same command runs again. Every packet is verified by its signature, every file by
its SHA-256. Exits with 1 where something did not come whole.")]
pub struct Receive {
    /// Name of what is sent, or a ticket.
    #[arg(value_name = "NAME|TICKET")]
    pub ticket: Ticket,
    /// Directory for what comes.
    #[arg(
        long,
        value_name = "DIRECTORY",
        default_value = ".",
        conflicts_with = "output"
    )]
    pub into: PathBuf,
    /// File for what comes, if it is a single one; '-' is standard output.
    #[arg(short, long, value_name = "FILE|-")]
    pub output: Option<PathBuf>,
    /// Largest total size.
    #[arg(long, value_name = "SIZE", default_value = "1 TiB")]
    pub max_size: ByteSize,
    /// Give up after this time without anything.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_duration)]
    pub wait: Duration,
    /// Serve missing segments to neighbours for this time after the download is complete.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse_duration)]
    pub stay: Duration,
    /// Request each segment by name, as where forwarders do not have the hop any-next.
    #[arg(long)]
    pub no_any_next: bool,
    /// How long it runs, and what it tells.
    #[command(flatten)]
    pub run: Run,
    /// Whose signature counts.
    #[command(flatten)]
    pub trusted: Trusted,
    /// The forwarder to receive through.
    #[command(flatten)]
    pub connect: Connect,
    /// Who looks on.
    #[command(flatten)]
    pub observation: Observation,
}

/// Where content goes.
#[derive(Clone, Debug)]
enum Target {
    Directory(PathBuf),
    File(PathBuf),
    StandardOutput,
}

/// Receives it.
pub(super) async fn run(arguments: Receive) -> anyhow::Result<()> {
    let Ticket { name, key } = arguments.ticket;
    ensure!(
        !name.is_empty(),
        "give the name that is sent, such as /alice/film"
    );
    let target = match arguments.output {
        None => Target::Directory(arguments.into),
        Some(path) if path == Path::new("-") => Target::StandardOutput,
        Some(path) => Target::File(path),
    };
    let run = arguments.run;
    let mut stop = Stop::new(run.duration)?;
    let mut stats = Reporter::start(&tables::RECEIVE, &run, &arguments.observation).await?;
    let keys = KeyCheck::new(name.clone(), &arguments.trusted)?;
    let config = NodeConfig::of_program(CACHE);
    let node = Node::start(config.hop(|_| NamedHop::AnyNext(AnyNextConfig::default()).build()));
    stats.observe(&node);
    let face = arguments.connect.reach(&node).await?.face;
    node.add_route(Name::root(), face, 0).await?;
    let receiver = Receiver::new(ReceiverConfig {
        name: name.clone(),
        trust: keys.trust(),
        wall_at_zero: node.clock().wall_at_zero(),
        key,
        any_next: !arguments.no_any_next,
        id: random(),
        seed: u64::from_le_bytes(random()),
    });
    let own = node.application_face().await?;
    let (receiver, events) = drive(node.clock(), own, receiver).spawn(|| {});
    let mut receiving = Receiving {
        name,
        target,
        max_size: arguments.max_size,
        wait: arguments.wait,
        stay: arguments.stay,
        prints_json: run.json && !run.quiet,
        progress: ProgressLine::new(!run.quiet && !run.json),
        keys,
        stats,
        receiver,
        events,
        storage: None,
        pace: Pace::new(node.clock().now()),
        _temporary: None,
    };
    let outcome = receiving.follow(&node, &mut stop).await;
    node.shutdown().await;
    outcome
}

/// How fast content comes.
#[derive(Debug)]
struct Pace {
    heard_at: Instant,
    /// Octets of content that are here, and bits a second of late.
    octets: u64,
    rate: f64,
    looked_at: Instant,
    ticks: u32,
}

impl Pace {
    const fn new(now: Instant) -> Self {
        Self {
            heard_at: now,
            octets: 0,
            rate: 0.0,
            looked_at: now,
            ticks: 0,
        }
    }

    /// Samples the rate. `octets`: total received.
    fn look(&mut self, now: Instant, octets: u64) {
        let time = now.since(self.looked_at).as_secs_f64().max(0.001);
        let rate = octets.saturating_sub(self.octets) as f64 / time;
        let weight = if self.rate > 0.0 { 0.1 } else { 1.0 };
        self.rate += weight * (rate - self.rate);
        if octets > self.octets {
            self.heard_at = now;
        }
        (self.octets, self.looked_at) = (octets, now);
        self.ticks += 1;
    }
}

struct Receiving {
    name: Name,
    target: Target,
    max_size: ByteSize,
    wait: Duration,
    stay: Duration,
    prints_json: bool,
    progress: ProgressLine,
    keys: KeyCheck,
    stats: Reporter,
    receiver: Handle<Receiver>,
    events: mpsc::Receiver<ReceiverEvent>,
    storage: Option<Storage>,
    pace: Pace,
    /// Directory of what goes to standard output.
    _temporary: Option<tempfile::TempDir>,
}

impl Receiving {
    /// Follows what happens until all is here.
    async fn follow(&mut self, node: &Node, stop: &mut Stop) -> anyhow::Result<()> {
        let mut tick = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                event = self.events.recv() => {
                    let event = event.context("the node has stopped")?;
                    if self.on_event((node, stop), event).await? {
                        return Ok(());
                    }
                }
                _ = tick.tick() => self.on_tick(node).await?,
                () = stop.wait() => {
                    self.save()?;
                    bail!("interrupted before all was here; the same command goes on from there");
                }
            }
        }
    }

    /// Takes what the receiver reports. Returns whether all is done.
    async fn on_event(
        &mut self,
        (node, stop): (&Node, &mut Stop),
        event: ReceiverEvent,
    ) -> anyhow::Result<bool> {
        match event {
            ReceiverEvent::Waiting(_) => {
                let name = &self.name;
                self.progress.say_once(&format!(
                    "Nobody sends {name} yet; trying on. There: namecast send FILE {name}"
                ));
            }
            ReceiverEvent::Contents(contents, signer) => {
                let signer = self.keys.on_signer(&signer);
                let remembered = self.keys.on_verified()?;
                self.progress.say(&signer);
                remembered
                    .into_iter()
                    .for_each(|text| self.progress.say(&text));
                self.pace = Pace::new(node.clock().now());
                return self.begin(*contents).await;
            }
            ReceiverEvent::Segment(number, content, signature) => {
                if let Some(storage) = &mut self.storage {
                    storage.keep(number, &content, &signature)?;
                }
            }
            ReceiverEvent::Enough => {
                self.complete(stop).await?;
                return Ok(true);
            }
            ReceiverEvent::Failed(why) => {
                self.save()?;
                bail!("cannot receive {}: {why}", self.name)
            }
            ReceiverEvent::Reported => {}
        }
        Ok(false)
    }

    /// Opens what is here of the object, and requests the rest. Returns whether nothing is to be requested.
    async fn begin(&mut self, contents: Contents) -> anyhow::Result<bool> {
        let size = contents.size();
        ensure!(
            size <= self.max_size.as_bytes(),
            "{size} bytes are to come, more than {} are not received: allow more with --max-size",
            self.max_size.as_bytes()
        );
        let (into, is_file) = match &self.target {
            Target::Directory(directory) => (directory.clone(), false),
            Target::File(file) => (file.clone(), true),
            Target::StandardOutput => {
                let directory = tempfile::tempdir().context("cannot keep what comes")?;
                let file = directory.path().join("content");
                self._temporary = Some(directory);
                (file, true)
            }
        };
        let opening = tokio::task::spawn_blocking(move || {
            if storage::are_here(&contents, &into, is_file)? {
                return Ok(None);
            }
            Storage::open(contents, &into, is_file).map(Some)
        });
        let opened: anyhow::Result<_> = opening.await?;
        let Some(storage) = opened? else {
            self.progress
                .say(&format!("All of {} is here already", self.name));
            return Ok(true);
        };
        let contents = storage.contents();
        let count = contents.files.len();
        let first = printable(&contents.files[0].path).into_owned();
        let what = match count {
            1 => first,
            count => format!("{count} files, {first} and others"),
        };
        let (here, segments) = (storage.here().clone(), contents.segments());
        self.progress.say(&match here.count() {
            0 => format!("Receiving {what}, {size} bytes"),
            here => {
                format!("Receiving {what}, {size} bytes; {here} of {segments} segments are here")
            }
        });
        storage.save()?;
        let kept = Box::new(storage.pieces());
        self.storage = Some(storage);
        self.receiver
            .call(move |receiver, now| receiver.begin(now.monotonic, here, kept))
            .await
            .context("the node has stopped")?;
        Ok(false)
    }

    async fn on_tick(&mut self, node: &Node) -> anyhow::Result<()> {
        self.print_what_is_here()?;
        let figures = self
            .receiver
            .call(|it, _| (it.counters(), it.progress()))
            .await;
        let Some((counters, progress)) = figures else {
            return Ok(());
        };
        let now = node.clock().now();
        let segment = self
            .storage
            .as_ref()
            .map_or(0, |it| it.contents().segment_size);
        self.pace.look(now, counters.segments * u64::from(segment));
        if now.since(self.pace.heard_at) > self.wait {
            self.save()?;
            let (name, wait) = (&self.name, self.wait.as_secs());
            bail!(
                "nothing came of {name} for {wait} s: check the name, and that it is sent; the same command goes on from here"
            );
        }
        self.progress.show(&self.text(progress));
        if self.pace.ticks.is_multiple_of(TICKS_A_SECOND) {
            self.save()?;
            self.write_figures((counters, progress), false)?;
        }
        Ok(())
    }

    fn text(&self, progress: Option<(u64, bool)>) -> String {
        let (Some((needed, _)), Some(storage)) = (progress, &self.storage) else {
            return String::new();
        };
        let segments = storage.contents().segments();
        let percent = 100 * (segments - needed.min(segments)) / segments;
        let left = needed as f64 * f64::from(storage.contents().segment_size);
        let rate = self.pace.rate;
        match rate > 0.0 {
            true => format!(
                "{percent} %, {:.1} MB/s, {:.0} s left",
                rate / 1e6,
                left / rate
            ),
            false => format!("{percent} %"),
        }
    }

    fn write_figures(
        &mut self,
        (counters, progress): (ReceiverCounters, Option<(u64, bool)>),
        is_final: bool,
    ) -> anyhow::Result<()> {
        let Some(storage) = &self.storage else {
            return Ok(());
        };
        let (missing, is_any_next) = progress.unwrap_or_default();
        let figures = json!({
            "size": storage.contents().size(),
            "segments": storage.contents().segments(),
            "missing": missing,
            "any_next": is_any_next,
            "received": counters.segments,
            "received_any_next": counters.any_next,
            "received_from_neighbours": counters.from_neighbours,
            "served": counters.served,
            "duplicates": counters.duplicates,
            "forged": counters.forged,
            "marked": counters.marked,
            "unexpected": counters.unexpected,
            "rate_bps": (self.pace.rate * 8.0) as u64,
        });
        self.stats.write(&figures, is_final)?;
        if self.prints_json && !matches!(self.target, Target::StandardOutput) {
            print_line(&figures)?;
        }
        Ok(())
    }

    /// Prints what is here in order, if that is wanted.
    fn print_what_is_here(&mut self) -> anyhow::Result<()> {
        let (Target::StandardOutput, Some(storage)) = (&self.target, &mut self.storage) else {
            return Ok(());
        };
        loop {
            let octets = storage.read_on()?;
            if octets.is_empty() {
                return Ok(());
            }
            print_bytes(&octets)?;
        }
    }

    fn save(&self) -> anyhow::Result<()> {
        match (&self.target, &self.storage) {
            (Target::Directory(_) | Target::File(_), Some(storage)) => storage.save(),
            _ => Ok(()),
        }
    }

    /// Makes what is missing, checks and names all, tells the sender, and gives neighbours what they lack.
    async fn complete(&mut self, stop: &mut Stop) -> anyhow::Result<()> {
        self.write_last_figures().await?;
        let Some(mut storage) = self.storage.take() else {
            return Ok(());
        };
        self.progress.show("Checking …");
        let checking = tokio::task::spawn_blocking(move || storage.complete().map(|()| storage));
        let storage = self.stats.touch_while(checking).await??;
        let count = storage.contents().files.len();
        self.storage = Some(storage);
        self.print_what_is_here()?;
        let Some(storage) = &self.storage else {
            return Ok(());
        };
        let paths = match self.target {
            Target::StandardOutput => Vec::new(),
            _ => storage.name()?,
        };
        self.progress.show("");
        let first = paths.first().map(|path| path.display().to_string());
        self.progress.say(&match (first, count) {
            (Some(first), 1) => format!("Received {first}, verified"),
            (Some(first), count) => format!("Received {count} files, {first} and others, verified"),
            (None, _) => format!("Received {}, verified", self.name),
        });
        if self.prints_json && !matches!(self.target, Target::StandardOutput) {
            print_line(json!({ "received": paths }))?;
        }
        self.report().await;
        if !self.stay.is_zero() {
            tokio::select! {
                () = tokio::time::sleep(self.stay) => {}
                () = stop.wait() => {}
            }
            self.write_last_figures().await?;
        }
        self.storage.take().map_or(Ok(()), Storage::remove)
    }

    async fn write_last_figures(&mut self) -> anyhow::Result<()> {
        let figures = self
            .receiver
            .call(|it, _| (it.counters(), it.progress()))
            .await;
        figures.map_or(Ok(()), |figures| self.write_figures(figures, true))
    }

    /// Tells the sender that all is here. It need not be there any more.
    async fn report(&mut self) {
        let finish = self
            .receiver
            .call(|receiver, now| receiver.finish(now.monotonic));
        finish.await;
        let reported = async {
            while let Some(event) = self.events.recv().await {
                if event == ReceiverEvent::Reported {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(REPORT_TIMEOUT, reported).await;
    }
}
