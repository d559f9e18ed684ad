//! `namecast cue desk`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use namecast::{Node, Publication, Trust, Watched};
use namecast_apps::cues::{self, ACKS, Action, CUES, Cue, CueId, Done};
use namecast_command::report::{print_error, print_line};
use namecast_command::{Stop, parse_duration};
use namecast_packet::Name;
use namecast_units::{Duration, Timestamp};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader, stdin};
use tokio::sync::mpsc;

use super::list::{Entry, List};
use super::{ShowOptions, node};

/// Reports of devices that wait to be shown.
const MAX_REPORTS: usize = 1_024;
/// Cues whose times are kept for their reports.
const MAX_SENT: usize = 1_024;

/// `namecast cue desk`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  namecast cue desk /show --list show.toml       read commands from standard input
  echo 'go 12.5' | namecast cue desk /show --device light-1 --duration 5s

Commands, one a line: 'go 12.5', 'standby 12.5', 'undo 12.5', 'stop'; 'go' or an empty line: the next cue of the list.
A list is a TOML file: devices = ['light-1'], and for each cue [[cue]] with number, text, targets and values.")]
pub struct Desk {
    /// Name of the show. Its key signs, and is made on first use.
    pub show: Name,
    /// The cue list.
    #[arg(long, value_name = "FILE")]
    pub list: Option<PathBuf>,
    /// A device whose reports are shown, besides those of the list. May be repeated.
    #[arg(long, value_name = "ID")]
    pub device: Vec<String>,
    /// Time from a command to its execution: all devices have the cue by then, and execute it together.
    #[arg(long, value_name = "TIME", default_value = "300ms", value_parser = parse_duration)]
    pub lead: Duration,
    /// Options of both sides.
    #[command(flatten)]
    pub options: ShowOptions,
}

/// A desk that runs.
struct Running {
    node: Node,
    publication: Publication,
    list: List,
    /// Place of the list's next cue.
    next: usize,
    lead: Duration,
    is_json: bool,
    /// Cues that were sent, the oldest first.
    sent: BTreeSet<(Timestamp, CueId)>,
}

/// Runs until interrupted, or until its time is over.
pub(super) async fn run(arguments: Desk) -> anyhow::Result<()> {
    let mut stop = Stop::new(arguments.options.duration)?;
    let mut list = match &arguments.list {
        Some(path) => List::read(path)?,
        None => List::default(),
    };
    list.devices.extend(arguments.device.iter().cloned());
    list.devices.sort_unstable();
    list.devices.dedup();
    let node = node(&arguments.options).await?;
    let root = cues::desk_root(&arguments.show);
    let publish = node.publish(&root.to_string())?;
    let publication = publish.stream(cues::stream(CUES)).start().await?;
    let (reports, mut heard) = mpsc::channel(MAX_REPORTS);
    for device in &list.devices {
        listen(&node, &arguments.show, device, reports.clone()).await?;
    }
    let mut desk = Running {
        node,
        publication,
        list,
        next: 0,
        lead: arguments.lead,
        is_json: arguments.options.json,
        sent: BTreeSet::new(),
    };
    desk.say(
        || {
            format!(
                "Desk of {}. Devices: namecast device {} ID",
                arguments.show, arguments.show
            )
        },
        || json!({ "show": arguments.show.to_string() }),
    )?;
    let mut lines = BufReader::new(stdin()).lines();
    let mut is_reading = true;
    loop {
        tokio::select! {
            line = lines.next_line(), if is_reading => match line? {
                Some(line) => desk.obey(&line).await?,
                None => is_reading = false,
            },
            Some((device, done)) = heard.recv() => desk.show(&device, &done)?,
            () = stop.wait() => break,
        }
    }
    desk.node.shutdown().await;
    Ok(())
}

/// Passes on the reports of a device.
async fn listen(
    node: &Node,
    show: &Name,
    device: &str,
    reports: mpsc::Sender<(String, Done)>,
) -> anyhow::Result<()> {
    let root = cues::device_root(show, device).to_string();
    let watch = node.watch(&root)?.data().stream(ACKS);
    let mut watching = watch.trust(Trust::FirstUse).start().await?;
    let device = device.to_owned();
    tokio::spawn(async move {
        while let Some(watched) = watching.next().await {
            if let Watched::Frame(frame) = watched
                && let Ok(done) = Done::decode(&frame.payload)
                && reports.send((device.clone(), done)).await.is_err()
            {
                return;
            }
        }
    });
    Ok(())
}

impl Running {
    /// Obeys a command line. An unknown one prints an error.
    async fn obey(&mut self, line: &str) -> anyhow::Result<()> {
        let mut words = line.split_whitespace();
        let (word, number) = (words.next().unwrap_or("go"), words.next());
        let action = match word {
            "go" => Action::Go,
            "standby" => Action::Standby,
            "undo" => Action::Undo,
            "stop" => Action::Stop,
            other => {
                print_error(format_args!(
                    "'{other}' is no command: write go, standby, undo or stop, and a cue's number"
                ));
                return Ok(());
            }
        };
        let entry = match (action, number) {
            (Action::Stop, _) => Entry::unlisted("stop"),
            (_, Some(number)) => match self.list.find(number) {
                Some(place) => {
                    self.next = place + usize::from(action == Action::Go);
                    self.list.cues[place].clone()
                }
                None => Entry::unlisted(number),
            },
            (_, None) => match self.list.cues.get(self.next) {
                Some(entry) => {
                    self.next += usize::from(action == Action::Go);
                    entry.clone()
                }
                None => {
                    print_error("the list has no next cue: write its number");
                    return Ok(());
                }
            },
        };
        let lead = match action {
            // A stop does not wait.
            Action::Stop => Duration::ZERO,
            _ => self.lead,
        };
        let at = self.node.wall() + lead;
        let cue = entry.cue(action, CueId(namecast_net::random()), at);
        self.send(&cue, &entry.text).await
    }

    async fn send(&mut self, cue: &Cue, text: &str) -> anyhow::Result<()> {
        let octets = match cue.encode() {
            Ok(octets) => octets,
            Err(error) => {
                print_error(error);
                return Ok(());
            }
        };
        self.publication.send(CUES, octets).await?;
        self.sent.insert((cue.at, cue.id));
        if self.sent.len() > MAX_SENT {
            self.sent.pop_first();
        }
        let word = cue.action.word();
        self.say(
            || {
                format!("{word} {} {text}", cue.number)
                    .trim_end()
                    .to_owned()
            },
            || json!({ "sent": cue.number, "action": word, "id": cue.id.to_string() }),
        )
    }

    /// Prints the report of a device.
    fn show(&self, device: &str, done: &Done) -> anyhow::Result<()> {
        let sent = self.sent.iter().find(|(_, id)| *id == done.id);
        let late = sent.map(|(at, _)| {
            let micros = done.at.as_micros() as i64 - at.as_micros() as i64;
            micros as f64 / 1e3
        });
        let word = done.outcome.word();
        self.say(
            || {
                let number = &done.number;
                match late {
                    Some(late) => format!("  {number} {word} by {device}, {late:.1} ms after its time"),
                    None => format!("  {number} {word} by {device}"),
                }
            },
            || json!({ "device": device, "number": done.number, "outcome": word, "late_ms": late, "id": done.id.to_string() }),
        )
    }

    fn say(
        &self,
        text: impl FnOnce() -> String,
        value: impl FnOnce() -> serde_json::Value,
    ) -> anyhow::Result<()> {
        match self.is_json {
            true => print_line(value()),
            false => print_line(text()),
        }
    }
}
