//! `namecast device`.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::Context;
use clap::Args;
use namecast::Publication;
use namecast_apps::cues::{ACKS, Cue, Device, DeviceConfig, Output};
use namecast_command::report::{print_error, print_line};
use namecast_command::{Stop, number, parse_duration};
use namecast_units::{Duration, Timestamp};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::ShowOptions;
use super::journal::Journal;
use super::show::{Heard, Show, What};

/// `namecast device`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  namecast device /show light-1                              print the cues that are executed
  namecast device /show light-1 --run ./light.sh             run it with action and number, the cue as JSON on standard input
  namecast device /show light-1 --journal light-1.journal    remember executed cues over restarts

  namecast device /show light-1 --desk main --desk backup    obey either desk, whichever leads

Each cue is executed once and at its time by the desk's clock. A cue that is later than --stale is reported to the desk, and not executed.")]
pub struct DeviceCommand {
    /// Options of both sides.
    #[command(flatten)]
    pub options: ShowOptions,
    /// Name of this device, by which cues name it.
    pub id: String,
    /// A desk to obey. May be repeated.
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub desk: Vec<String>,
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
}

/// A device that runs.
struct Running {
    device: Device,
    publication: Publication,
    journal: Option<Journal>,
    program: Option<PathBuf>,
    is_json: bool,
}

/// Runs until interrupted, until its time is over, or until it has executed enough.
pub(in super::super) async fn run(arguments: DeviceCommand) -> anyhow::Result<()> {
    let options = &arguments.options;
    let mut stop = Stop::new(options.duration)?;
    let (journal, executed) = match &arguments.journal {
        Some(path) => {
            let (journal, executed) = Journal::open(path)?;
            (Some(journal), executed)
        }
        None => (None, Vec::new()),
    };
    let (show, mut heard) = Show::join(options).await?;
    let publication = show.publish_reports(&arguments.id).await?;
    for desk in &arguments.desk {
        show.hear_desk(desk, None).await?;
    }
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
        is_json: options.json,
    };
    loop {
        let due = running.device.poll_timeout();
        let wait = due.map_or(Duration::MAX, |at| at.since(show.now()));
        tokio::select! {
            Some(heard) = heard.recv() => running.take(show.now(), heard)?,
            () = tokio::time::sleep(wait), if due.is_some() => {}
            () = stop.wait() => break,
        }
        running.device.handle_timeout(show.now());
        running.act().await?;
        let executed = running.device.counters().executed;
        if arguments.count.is_some_and(|count| executed >= count) {
            break;
        }
    }
    show.node.shutdown().await;
    Ok(())
}

impl Running {
    fn take(&mut self, now: Timestamp, heard: Heard) -> anyhow::Result<()> {
        let Heard { from: desk, what } = heard;
        match what {
            What::Text(text) => self.say(&text),
            What::Silence => {}
            What::Lost(error) => return Err(error.context(format!("desk {desk}"))),
            What::Message(message, clock) => match Cue::decode(&message) {
                Ok(cue) => self.device.handle_cue(now, &desk, clock.to_ours(cue)),
                Err(error) => print_error(format_args!("a cue of {desk} was refused: {error}")),
            },
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
