//! `namecast device`.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::Context;
use clap::Args;
use namecast::{Publication, Watched, Watching};
use namecast_apps::cues::{self, ACKS, CUES, Cue, Device, DeviceConfig, Output};
use namecast_command::report::{print_error, print_line};
use namecast_command::{Stop, number, parse_duration};
use namecast_packet::Name;
use namecast_units::{Duration, Timestamp};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::journal::Journal;
use super::{ShowOptions, node};
use crate::arguments::Trusted;
use crate::key_check::KeyCheck;

/// How often the offset to the desk's clock is read.
const READS_CLOCK: Duration = Duration::from_millis(250);

/// `namecast device`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  namecast device /show light-1                              print the cues that are executed
  namecast device /show light-1 --run ./light.sh             run it with action and number, the cue as JSON on standard input
  namecast device /show light-1 --journal light-1.journal    remember executed cues over restarts

Each cue is executed once and at its time by the desk's clock. A cue that is later than --stale is reported to the desk, and not executed.")]
pub struct DeviceCommand {
    /// Name of the show.
    pub show: Name,
    /// Name of this device, by which cues name it.
    pub id: String,
    /// Program that executes cues.
    #[arg(long = "run", id = "run-program", value_name = "PROGRAM")]
    pub run_program: Option<PathBuf>,
    /// File of the cues that were executed. Without it, a device that starts again may execute a cue twice.
    #[arg(long, value_name = "FILE")]
    pub journal: Option<PathBuf>,
    /// A cue that arrives later than this after its time is not executed.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_duration)]
    pub stale: Duration,
    /// End after so many cues were executed.
    #[arg(long, value_parser = number::<u64>(1..=u64::MAX))]
    pub count: Option<u64>,
    /// Whose key counts.
    #[command(flatten)]
    pub trusted: Trusted,
    /// Options of both sides.
    #[command(flatten)]
    pub options: ShowOptions,
}

/// A device that runs.
struct Running {
    device: Device,
    publication: Publication,
    journal: Option<Journal>,
    program: Option<PathBuf>,
    key_check: KeyCheck,
    is_json: bool,
    /// The desk's clock less ours, in microseconds.
    offset: i64,
}

/// Runs until interrupted, until its time is over, or until it has executed enough.
pub(in super::super) async fn run(arguments: DeviceCommand) -> anyhow::Result<()> {
    let mut stop = Stop::new(arguments.options.duration)?;
    let (journal, executed) = match &arguments.journal {
        Some(path) => {
            let (journal, executed) = Journal::open(path)?;
            (Some(journal), executed)
        }
        None => (None, Vec::new()),
    };
    let node = node(&arguments.options).await?;
    let root = cues::desk_root(&arguments.show);
    let key_check = KeyCheck::new(root.clone(), &arguments.trusted)?;
    let own = cues::device_root(&arguments.show, &arguments.id).to_string();
    let publish = node.publish(&own)?;
    let publication = publish.stream(cues::stream(ACKS)).start().await?;
    let watch = node.watch(&root.to_string())?.data().stream(CUES);
    let mut watching = watch.trust(key_check.trust()).start().await?;
    let mut running = Running {
        device: Device::new(DeviceConfig {
            id: arguments.id.clone(),
            stale: arguments.stale,
            executed,
            ..DeviceConfig::default()
        }),
        publication,
        journal,
        program: arguments.run_program,
        key_check,
        is_json: arguments.options.json,
        offset: 0,
    };
    let mut clock = tokio::time::interval(READS_CLOCK);
    loop {
        let now = running.desk_time(node.wall());
        let due = running.device.poll_timeout();
        let wait = due.map_or(Duration::MAX, |at| at.since(now));
        tokio::select! {
            watched = watching.next() => match watched {
                Some(watched) => running.take(node.wall(), watched)?,
                None => anyhow::bail!("the node has stopped"),
            },
            () = tokio::time::sleep(wait), if due.is_some() => {}
            _ = clock.tick() => running.read_clock(&watching).await,
            () = stop.wait() => break,
        }
        let now = running.desk_time(node.wall());
        running.device.handle_timeout(now);
        running.act().await?;
        let executed = running.device.counters().executed;
        if arguments.count.is_some_and(|count| executed >= count) {
            break;
        }
    }
    node.shutdown().await;
    Ok(())
}

impl Running {
    /// The desk's clock when ours shows `wall`.
    const fn desk_time(&self, wall: Timestamp) -> Timestamp {
        Timestamp::from_micros(wall.as_micros().saturating_add_signed(self.offset))
    }

    async fn read_clock(&mut self, watching: &Watching) {
        let stats = watching.stats().await;
        if let Some(millis) = stats.and_then(|stats| stats.clock_offset_ms) {
            self.offset = (millis * 1e3) as i64;
        }
    }

    fn take(&mut self, wall: Timestamp, watched: Watched) -> anyhow::Result<()> {
        match watched {
            Watched::Signer(signer) => {
                let text = self.key_check.on_signer(&signer);
                self.say(&text);
            }
            Watched::Frame(frame) => {
                if let Some(text) = self.key_check.on_verified()? {
                    self.say(&text);
                }
                match Cue::decode(&frame.payload) {
                    Ok(cue) => self.device.handle_cue(self.desk_time(wall), cue),
                    Err(error) => print_error(format_args!("a cue was refused: {error}")),
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn say(&self, text: &str) {
        if !self.is_json {
            print_error(text);
        }
    }

    /// Journals, executes and reports.
    async fn act(&mut self) -> anyhow::Result<()> {
        while let Some(output) = self.device.poll_output() {
            match output {
                Output::Journal(id) => {
                    if let Some(journal) = &mut self.journal {
                        tokio::task::block_in_place(|| journal.write(id))?;
                    }
                }
                Output::Execute(cue) => self.execute(&cue)?,
                Output::Report(done) => self.publication.send(ACKS, done.encode()).await?,
            }
        }
        Ok(())
    }

    fn execute(&self, cue: &Cue) -> anyhow::Result<()> {
        let word = cue.action.word();
        match self.is_json {
            true => print_line(
                json!({ "executed": cue.number, "action": word, "id": cue.id.to_string() }),
            )?,
            false => print_line(format_args!("{word} {}", cue.number))?,
        }
        let Some(program) = &self.program else {
            return Ok(());
        };
        // The device goes on after a program that fails.
        if let Err(error) = start(program, (word, cue)) {
            print_error(format_args!("{error:#}"));
        }
        Ok(())
    }
}

/// Starts the program of a cue, which nobody waits for.
fn start(program: &Path, (word, cue): (&str, &Cue)) -> anyhow::Result<()> {
    let mut child = Command::new(program)
        .arg(word)
        .arg(&cue.number)
        .stdin(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let input = child.stdin.take();
    let json = serde_json::to_vec(cue)?;
    tokio::spawn(async move {
        if let Some(mut input) = input {
            // A program need not read it.
            let _ = input.write_all(&json).await;
        }
        if let Ok(status) = child.wait().await
            && !status.success()
        {
            print_error(format_args!("the program of a cue ended with {status}"));
        }
    });
    Ok(())
}
