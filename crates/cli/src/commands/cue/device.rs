//! `namecast device`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use namecast_apps::cues::osc::encode_cue;
use namecast_apps::cues::{ACKS, Cue, DeskClock, Device, DeviceConfig, Done, Outcome, Output};
use namecast_command::report::{print_error, print_line, printable};
use namecast_command::{Stop, number, parse_duration};
use namecast_units::{Duration, Timestamp};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::UdpSocket;
use tokio::process::Command;
use tokio::task::JoinSet;

use super::ShowOptions;
use super::journal::Journal;
use super::outlet::Outlet;
use super::show::{Heard, Show, What};

/// `namecast device`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  namecast device /show light-1                              print the cues that are executed
  namecast device /show light-1 --run ./light.sh             run it with action and number, the cue as JSON on standard input
  namecast device /show light-1 --journal light-1.journal    remember executed cues over restarts

  namecast device /show light-1 --desk main --desk backup    obey either desk, whichever leads
  namecast device /show sound --osc 192.0.2.7:53000          send each cue as OSC: /cue/12.5/start, or its values osc and args
  namecast device /show test --count 32                      32 devices for tests: test-1 to test-32

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
    /// Send executed cues as OSC to this address, by UDP.
    #[arg(long, value_name = "HOST:PORT")]
    pub osc: Option<String>,
    /// Run this number of devices, for tests: ID-1, ID-2, …
    #[arg(long, value_name = "NUMBER", value_parser = number::<u16>(1..=1_024), conflicts_with_all = ["journal", "log"])]
    pub count: Option<u16>,
}

/// A device that runs.
struct Running {
    id: String,
    /// Whether lines name the device: there are several.
    is_one_of_many: bool,
    device: Device,
    outlet: Outlet,
    journal: Option<Journal>,
    program: Option<PathBuf>,
    osc: Option<UdpSocket>,
    is_json: bool,
    /// The clock of the desk that was heard last.
    clock: Option<DeskClock>,
}

/// Runs until interrupted, or until its time is over.
pub(in super::super) async fn run(arguments: DeviceCommand) -> anyhow::Result<()> {
    let Some(count) = arguments.count else {
        let id = arguments.id.clone();
        return run_one(&arguments, id).await;
    };
    let arguments = Arc::new(arguments);
    let mut devices = JoinSet::new();
    for number in 1..=count {
        let arguments = Arc::clone(&arguments);
        let id = format!("{}-{number}", arguments.id);
        devices.spawn(async move { run_one(&arguments, id).await });
    }
    while let Some(ended) = devices.join_next().await {
        ended??;
    }
    Ok(())
}

async fn run_one(arguments: &DeviceCommand, id: String) -> anyhow::Result<()> {
    let options = &arguments.options;
    let mut stop = Stop::new(options.duration)?;
    let (journal, executed) = match &arguments.journal {
        Some(path) => {
            let (journal, executed) = Journal::open(path)?;
            (Some(journal), executed)
        }
        None => (None, Vec::new()),
    };
    let osc = match &arguments.osc {
        Some(address) => Some(osc_socket(address).await?),
        None => None,
    };
    let (show, mut heard) = Show::join(options).await?;
    let outlet = show.publish_reports(&id).await?;
    for desk in &arguments.desk {
        show.hear_desk(desk, None).await?;
    }
    let mut running = Running {
        device: Device::new(DeviceConfig {
            id: id.clone(),
            stale: arguments.stale,
            executed,
            rehearsal: options.rehearsal,
            ..DeviceConfig::default()
        }),
        id,
        is_one_of_many: arguments.count.is_some(),
        outlet,
        journal,
        program: arguments.run_program.clone(),
        osc,
        is_json: options.json,
        clock: None,
    };
    loop {
        let due = running.device.poll_timeout();
        let wait = due.map_or(Duration::MAX, |at| at.since(show.now()));
        tokio::select! {
            Some(heard) = heard.recv() => running.take(show.now(), heard).await?,
            () = tokio::time::sleep(wait), if due.is_some() => {}
            () = stop.wait() => break,
        }
        running.device.handle_timeout(show.now());
        running.act(&show).await?;
    }
    show.node.shutdown().await;
    Ok(())
}

/// A socket that sends to `address`.
async fn osc_socket(address: &str) -> anyhow::Result<UdpSocket> {
    let unknown =
        || format!("cannot send OSC to '{address}': write HOST:PORT, as in 192.0.2.7:53000");
    let found = tokio::net::lookup_host(address)
        .await
        .with_context(unknown)?;
    let to = found.into_iter().next().with_context(unknown)?;
    let any: IpAddr = match to {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(to).await.with_context(unknown)?;
    Ok(socket)
}

impl Running {
    async fn take(&mut self, now: Timestamp, heard: Heard) -> anyhow::Result<()> {
        let Heard {
            from: desk, what, ..
        } = heard;
        match what {
            What::Text(text) | What::Signer(_, text) => self.say(&text),
            What::Silence => {}
            What::Lost(error) => return Err(error.context(format!("desk {desk}"))),
            What::Refused(why) => self.refuse(&format!("desk {desk}: {why}")).await?,
            What::Message(message, clock) => match Cue::decode(&message) {
                Ok(cue) => {
                    self.clock = clock.0;
                    self.device.handle_cue(now, &desk, clock.to_ours(cue));
                }
                Err(error) => {
                    self.refuse(&format!("a cue of desk {desk}: {error}"))
                        .await?;
                }
            },
        }
        Ok(())
    }

    fn say(&self, text: &str) {
        if !self.is_json {
            print_error(text);
        }
    }

    /// Prints and reports a refusal that is of no cue.
    async fn refuse(&mut self, why: &str) -> anyhow::Result<()> {
        print_error(printable(why));
        self.outlet.send(ACKS, Done::refusal(why).encode()).await
    }

    /// Journals, executes and reports.
    async fn act(&mut self, show: &Show) -> anyhow::Result<()> {
        while let Some(output) = self.device.poll_output() {
            match output {
                Output::Journal(id) => {
                    let Some(journal) = &mut self.journal else {
                        continue;
                    };
                    if let Err(error) = tokio::task::block_in_place(|| journal.write(id)) {
                        print_error(format_args!("{error:#}"));
                        self.device.handle_journal_failure(show.now(), id);
                    }
                }
                Output::Execute(cue) => self.execute(&cue)?,
                Output::Report(mut done) => {
                    done.clock = self.clock.filter(|_| done.outcome == Outcome::Ready);
                    self.outlet.send(ACKS, done.encode()).await?;
                }
            }
        }
        Ok(())
    }

    fn execute(&self, cue: &Cue) -> anyhow::Result<()> {
        let word = cue.action.word();
        let device = Some(&self.id).filter(|_| self.is_one_of_many);
        match (self.is_json, device) {
            (true, _) => print_line(
                json!({ "executed": cue.number, "action": word, "id": cue.id.to_string(), "device": device }),
            )?,
            (false, None) => print_line(format_args!("{word} {}", cue.number))?,
            (false, Some(device)) => print_line(format_args!("{device}: {word} {}", cue.number))?,
        }
        if let Some(socket) = &self.osc
            && let Err(problem) = send_osc(socket, cue)
        {
            print_error(format_args!(
                "cue {} is not sent as OSC: {problem:#}",
                cue.number
            ));
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

/// Sends a cue as OSC, at once or not at all.
fn send_osc(socket: &UdpSocket, cue: &Cue) -> anyhow::Result<()> {
    socket.try_send(&encode_cue(cue)?)?;
    Ok(())
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
